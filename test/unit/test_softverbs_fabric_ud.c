/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* Datagrams to other hosts: the bytes, those that wait for a link, what is lost. */
#include <sys/wait.h>
#include "test/unit/fabric_ud.h"

/* ---- bytes ---- */

static void bytes(void)
{
	struct ud_ring_record head = { .dest = 0x123456,
				       .source = 0x654321,
				       .qkey = 0x80010000,
				       .flags = DATAGRAM_IMM,
				       .imm = htonl(7) },
			      back;
	uint8_t frame[FAR_DATAGRAM_SIZE + DATAGRAM_MAX + 1] = { 0 };
	bool solicited;

	memcpy(head.dgid, elsewhere, sizeof(head.dgid));
	sv_far_datagram_write(frame, &head, true);
	CU_ASSERT_EQUAL(memcmp(frame, "\0\x12\x34\x56\0\x65\x43\x21\x80\1\0\0\0\0\0\7\0\0\0\3", 20),
			0);
	CU_ASSERT_TRUE(sv_far_datagram_read(frame, FAR_DATAGRAM_SIZE + 9, &back, &solicited));
	CU_ASSERT_TRUE(solicited);
	CU_ASSERT_EQUAL(back.length, 9);
	CU_ASSERT_EQUAL(back.qkey, head.qkey);
	CU_ASSERT_EQUAL(back.imm, head.imm);
	CU_ASSERT_EQUAL(memcmp(back.dgid, elsewhere, sizeof(back.dgid)), 0);
	CU_ASSERT_TRUE(sv_far_datagram_read(frame, sizeof(frame) - 1, &back, &solicited));
	/* longer than a packet; half a header; an unknown flag */
	CU_ASSERT_FALSE(sv_far_datagram_read(frame, sizeof(frame), &back, &solicited));
	CU_ASSERT_FALSE(sv_far_datagram_read(frame, FAR_DATAGRAM_SIZE - 1, &back, &solicited));
	frame[16] = 1;
	CU_ASSERT_FALSE(sv_far_datagram_read(frame, FAR_DATAGRAM_SIZE, &back, &solicited));
}

/* ---- sending ---- */

/* The next frame is the datagram of that number. */
static bool comes(int fd, uint32_t imm, uint32_t length)
{
	uint8_t payload[FAR_DATAGRAM_SIZE + DATAGRAM_MAX];
	struct ud_ring_record head;
	struct wire_frame frame;
	bool solicited;

	return rig_frame_read(fd, &frame, payload, sizeof(payload)) &&
	       frame.type == WIRE_DATAGRAM &&
	       sv_far_datagram_read(payload, frame.size, &head, &solicited) &&
	       head.imm == htonl(imm) && head.flags == DATAGRAM_IMM && head.length == length &&
	       head.dest == THEIR_QP && head.qkey == QKEY && !solicited &&
	       !memcmp(head.dgid, elsewhere, sizeof(head.dgid)) &&
	       (!length || payload[FAR_DATAGRAM_SIZE + length - 1] == (uint8_t)imm);
}

static bool has_no_link(void *arg)
{
	const struct sv_ip *host = &ah_of(own.ah)->host;
	struct sv_peer *peer = sv_fabric_peer_at(host, OTHER);

	(void)arg;
	if (peer)
		sv_peer_put(peer);
	return !peer;
}

/* The longest datagrams that wait for a link */
#define FIT (FABRIC_BACKLOG / (WIRE_HEADER + FAR_DATAGRAM_SIZE + DATAGRAM_MAX))

static void first_ones_wait(void)
{
	struct wire_target target;
	int listener, fd;

	own_open();
	listener = rig_listen(own.port);
	for (uint32_t i = 0; i < FIT + 6; i++)
		send_one(own.qp, i, DATAGRAM_MAX);
	CU_ASSERT_EQUAL(lost(FAR_NOT_SENT), 6);
	fd = rig_accept(listener);
	rig_answer(fd, WIRE_LINKED, &target);
	CU_ASSERT_EQUAL(target.kind, WIRE_TO_SLOT);
	CU_ASSERT_EQUAL(target.slot, OTHER);
	for (uint32_t i = 0; i < FIT; i++)
		CU_ASSERT_TRUE_FATAL(comes(fd, i, DATAGRAM_MAX));
	/* now they go directly, whatever their length */
	for (uint32_t i = 0; i < 70; i++) {
		send_one(own.qp, i, i);
		CU_ASSERT_TRUE(comes(fd, i, i));
	}
	CU_ASSERT_EQUAL(lost(FAR_NOT_SENT), 6);

	/* after the end of the link, another one is begun */
	close(fd);
	CU_ASSERT_TRUE_FATAL(unit_wait_for(has_no_link, NULL, UNIT_PATIENCE));
	send_one(own.qp, 201, 1);
	fd = rig_accept(listener);
	rig_answer(fd, WIRE_LINKED, &target);
	CU_ASSERT_TRUE(comes(fd, 201, 1));
	close(fd);
	close(listener);
	own_close();
}

/* A request that has completed is on its way, whatever becomes of the QP. */
static void outlive_the_qp(void)
{
	struct wire_target target;
	int listener, fd;

	own_open();
	listener = rig_listen(own.port);
	send_one(own.qp, 1, 100);
	send_one(own.qp, 2, 100);
	CU_ASSERT_EQUAL(ibv_destroy_qp(own.qp), 0);
	own.qp = NULL;
	fd = rig_accept(listener);
	rig_answer(fd, WIRE_LINKED, &target);
	CU_ASSERT_TRUE(comes(fd, 1, 100));
	CU_ASSERT_TRUE(comes(fd, 2, 100));
	close(fd);
	close(listener);
	own_close();
}

/* Those within the process do not wait behind them. */
static void local_ones_go_on(void)
{
	struct ibv_ah_attr attr = { .is_global = 1, .port_num = 1 };
	struct ibv_sge sge;
	struct ibv_send_wr wr = { .wr_id = 7,
				  .sg_list = &sge,
				  .num_sge = 1,
				  .opcode = IBV_WR_SEND,
				  .wr.ud = { .remote_qkey = QKEY } },
			   *bad;
	struct ibv_wc wc = { 0 };
	int listener;

	own_open();
	listener = rig_listen(own.port);
	send_one(own.qp, 1, 100);
	memcpy(attr.grh.dgid.raw, home, sizeof(home));
	wr.wr.ud.ah = ibv_create_ah(own.pd, &attr);
	CU_ASSERT_PTR_NOT_NULL_FATAL(wr.wr.ud.ah);
	CU_ASSERT_FALSE(ah_of(wr.wr.ud.ah)->is_far);
	wr.wr.ud.remote_qpn = own.qp->qp_num;
	sge = (struct ibv_sge){ (uintptr_t)own.memory, 10, own.mr->lkey };
	recv_post(8, ROOM);
	CU_ASSERT_EQUAL(ibv_post_send(own.qp, &wr, &bad), 0);
	CU_ASSERT_TRUE(completes(&wc));
	CU_ASSERT_EQUAL(wc.wr_id, 8);
	CU_ASSERT_EQUAL(wc.byte_len, GRH_SIZE + 10);
	CU_ASSERT_EQUAL(ibv_destroy_ah(wr.wr.ud.ah), 0);
	own_close();
	close(listener);
}

static void end_with_the_device(void)
{
	int listener;

	own_open();
	listener = rig_listen(own.port);
	send_one(own.qp, 1, 100);
	own_close(); /* and the memory checker finds nothing */
	close(listener);
}

static bool are_lost(void *arg)
{
	return lost(FAR_NOT_SENT) == *(const uint64_t *)arg;
}

static bool searches_again(void *arg)
{
	struct pollfd poll_fd = { .fd = *(const int *)arg, .events = POLLIN };

	send_one(own.qp, 3, 1);
	return poll(&poll_fd, 1, 0) == 1;
}

static void no_process_there(void)
{
	struct wire_target target;
	uint64_t two = 2;
	int listener, fd;

	own_open();
	/* no host: the connection is refused */
	send_one(own.qp, 1, 1);
	send_one(own.qp, 2, 1);
	CU_ASSERT_TRUE(unit_wait_for(are_lost, &two, UNIT_PATIENCE));
	/* a host without that process; it is searched for anew after a while */
	listener = rig_listen(own.port);
	CU_ASSERT_TRUE_FATAL(unit_wait_for(searches_again, &listener, UNIT_PATIENCE));
	fd = rig_accept(listener);
	rig_answer(fd, WIRE_ABSENT, &target);
	CU_ASSERT_TRUE(rig_is_closed(fd));
	close(fd);
	/* another process than the one that was asked for is no way to it */
	CU_ASSERT_TRUE_FATAL(unit_wait_for(searches_again, &listener, UNIT_PATIENCE));
	fd = rig_accept(listener);
	rig_answer(fd, WIRE_LINKED, &target);
	CU_ASSERT_TRUE(comes(fd, 3, 1));
	close(fd);
	close(listener);
	own_close();
}

/* A link to the other host; its end, and the listener. */
static int link_open(int *listener)
{
	struct wire_target target;
	int fd;

	*listener = rig_listen(own.port);
	send_one(own.qp, 0, 1);
	fd = rig_accept(*listener);
	rig_answer(fd, WIRE_LINKED, &target);
	CU_ASSERT_TRUE(comes(fd, 0, 1));
	return fd;
}

struct reader {
	int fd;
	_Atomic(uint64_t) count;
	bool in_order;
};

static void *read_all(void *arg)
{
	uint8_t payload[FAR_DATAGRAM_SIZE + DATAGRAM_MAX];
	struct ud_ring_record head;
	struct reader *reader = arg;
	struct wire_frame frame;
	uint32_t last = 0;
	bool solicited;

	while (rig_frame_read(reader->fd, &frame, payload, sizeof(payload))) {
		reader->in_order &= sv_far_datagram_read(payload, frame.size, &head, &solicited) &&
				    ntohl(head.imm) > last;
		last = ntohl(head.imm);
		atomic_fetch_add(&reader->count, 1);
	}
	return NULL;
}

#define MANY 5000u

static bool all_are_accounted_for(void *arg)
{
	struct reader *reader = arg;

	return atomic_load(&reader->count) + lost(FAR_NOT_SENT) == MANY;
}

/* A fast sender waits for a slow link; what is lost nevertheless is counted, and the others keep their order. */
static void many(void)
{
	struct reader reader = { .in_order = true };
	pthread_t thread;
	int listener;

	own_open();
	reader.fd = link_open(&listener);
	CU_ASSERT_EQUAL_FATAL(pthread_create(&thread, NULL, read_all, &reader), 0);
	for (uint32_t i = 1; i <= MANY; i++)
		send_one(own.qp, i, DATAGRAM_MAX);
	CU_ASSERT_TRUE(unit_wait_for(all_are_accounted_for, &reader, UNIT_PATIENCE));
	CU_ASSERT_TRUE(atomic_load(&reader.count) > 0);
	own_close();
	CU_ASSERT_EQUAL(pthread_join(thread, NULL), 0);
	CU_ASSERT_TRUE(reader.in_order);
	close(reader.fd);
	close(listener);
}

/* The QP is destroyed while its request waits for the link. */
static void cut_short(void)
{
	struct ibv_wc wc;
	unsigned count = 0;
	int listener, fd;

	own_open();
	fd = link_open(&listener);
	do {
		post_one(own.qp, 1, DATAGRAM_MAX);
	} while (ibv_poll_cq(own.cq, 1, &wc) == 1 && count++ < 32768);
	CU_ASSERT_TRUE(count < 32768);
	CU_ASSERT_EQUAL(ibv_destroy_qp(own.qp), 0);
	own.qp = NULL;
	CU_ASSERT_EQUAL(lost(FAR_NOT_SENT), 0);
	own_close();
	close(fd);
	close(listener);
}

/* A peer that reads nothing costs 20 ms, and a bounded buffer. */
static void backlog(void)
{
	uint64_t begin = clock_now();
	int listener, fd;
	unsigned count = 0;

	own_open();
	fd = link_open(&listener);
	while (!lost(FAR_NOT_SENT) && count++ < 32768)
		send_one(own.qp, 1, DATAGRAM_MAX);
	CU_ASSERT_EQUAL(lost(FAR_NOT_SENT), 1);
	CU_ASSERT_TRUE(clock_now() - begin >= 20 * NSEC_PER_MSEC);
	close(fd);
	CU_ASSERT_TRUE(unit_wait_for(has_no_link, NULL, UNIT_PATIENCE));
	close(listener);
	own_close();
}

/* A forked child neither sends nor keeps what waits in its parent. */
static void forked(void)
{
	struct ibv_send_wr wr = { .opcode = IBV_WR_SEND }, *bad;
	struct wire_target target;
	int listener, fd, status = -1;
	pid_t child;

	own_open();
	listener = rig_listen(own.port);
	send_one(own.qp, 1, 10);
	child = fork();
	if (!child)
		_exit(ibv_post_send(own.qp, &wr, &bad) != ENODEV || sv_ud_lost(FAR_NOT_SENT));
	CU_ASSERT_EQUAL(waitpid(child, &status, 0), child);
	CU_ASSERT_EQUAL(status, 0);
	send_one(own.qp, 2, 10);
	fd = rig_accept(listener);
	rig_answer(fd, WIRE_LINKED, &target);
	CU_ASSERT_TRUE(comes(fd, 1, 10));
	CU_ASSERT_TRUE(comes(fd, 2, 10));
	close(fd);
	close(listener);
	own_close();
}

static const struct unit_test tests[] = {
	{ "the frame of a datagram is big-endian, and checked", bytes },
	{ "the first ones wait for the link, in order, not too many", first_ones_wait },
	{ "those that wait outlive their QP", outlive_the_qp },
	{ "but not the device", end_with_the_device },
	{ "those within the process go on", local_ones_go_on },
	{ "without a process there the request succeeds; later it is found", no_process_there },
	{ "a fast sender waits; the order is kept, losses are counted", many },
	{ "a request that waits for the link ends with its QP", cut_short },
	{ "a peer that reads nothing costs a moment and a bounded buffer", backlog },
	{ "a forked child has none of those that wait", forked },
};

int main(int argc, char **argv)
{
	size_t count = sizeof(tests) / sizeof(tests[0]);

	return unit_main("softverbs fabric, datagrams", tests, rig_can() ? count : 1, argc, argv);
}
