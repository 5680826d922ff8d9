/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/*
 * The socket CM's passive side, against requesters of all versions, broken requesters, and many at
 * once.
 */
#include <sys/resource.h>
#include "test/unit/scm_rig.h"

/* Nanoseconds by which the wrapped clock is behind; the channel's timer uses the kernel's clock. */
static _Atomic(uint64_t) behind;

int __real_clock_gettime(clockid_t clock, struct timespec *ts);
int __wrap_clock_gettime(clockid_t clock, struct timespec *ts);
int __wrap_clock_gettime(clockid_t clock, struct timespec *ts)
{
	int status = __real_clock_gettime(clock, ts);

	ts->tv_sec -= (time_t)(behind / NSEC_PER_SEC);
	return status;
}

static unsigned char pattern[CM_DATA_OLD];

static const struct rdma_conn_param answer_param = { .responder_resources = 5, .qp_num = 0x77 };

/* Sends the RTU and takes ESTABLISHED. */
static void establish(struct rig *rig, int fd, const struct rdma_cm_id *id)
{
	struct seen seen;

	wire_send(fd, "\0\11\0\5", 4);
	rig_expect(rig, RDMA_CM_EVENT_ESTABLISHED, &seen);
	CU_ASSERT_PTR_EQUAL(seen.event.id, id);
}

/*
 * Disconnects: the consumer gets its event at once, the peer four bytes and the end of the socket.
 */
static void part(struct rig *rig, int fd, struct rdma_cm_id *id)
{
	unsigned char bytes[5];
	struct seen seen;

	CU_ASSERT_EQUAL(rdma_disconnect(id), 0);
	rig_expect(rig, RDMA_CM_EVENT_DISCONNECTED, &seen);
	CU_ASSERT_PTR_EQUAL(seen.event.id, id);
	CU_ASSERT_EQUAL(wire_read(rig, fd, bytes, 5), 4);
	CU_ASSERT_EQUAL(memcmp(bytes, "\0\0\xde\xad", 4), 0);
	CU_ASSERT_NOT_EQUAL(rdma_disconnect(id), 0);
	CU_ASSERT_EQUAL(errno, EINVAL);
	CU_ASSERT_EQUAL(rdma_destroy_id(id), 0);
	close(fd);
}

/* A request of this form makes an event with this data; after the answer the connection works. */
static void serve(unsigned ver, size_t header, size_t size, size_t chunk)
{
	unsigned char bytes[512], answer[CM_MESSAGE_MAX];
	size_t length = wire_message(bytes, ver, CM_REQ, header, pattern, size, IBV_QPT_RC), at;
	size_t answer_header = ver < 8 ? CM_HEADER_OLD : CM_HEADER;
	struct rdma_conn_param param = answer_param;
	struct seen seen;
	struct rig rig;
	int fd;

	rig_open(&rig);
	rig_listen(&rig);
	fd = wire_connect(rig.port);
	for (at = 0; at < length; at += chunk) {
		wire_send(fd, bytes + at, length - at < chunk ? length - at : chunk);
		if (at + chunk < length)
			while (rig_poll(&rig, &seen))
				CU_FAIL("an event of half a request");
	}
	rig_expect(&rig, RDMA_CM_EVENT_CONNECT_REQUEST, &seen);
	CU_ASSERT_PTR_EQUAL(seen.event.listen_id, rig.listener);
	CU_ASSERT_EQUAL(seen.size, size);
	CU_ASSERT_EQUAL(memcmp(seen.data, pattern, size), 0);
	CU_ASSERT_EQUAL(seen.event.param.conn.initiator_depth, ver < 7 ? CM_DEPTH_UNKNOWN : 3);
	CU_ASSERT_EQUAL(seen.event.param.conn.responder_resources, CM_DEPTH_UNKNOWN);
	CU_ASSERT_EQUAL(seen.event.param.conn.qp_num, 0x1234);
	CU_ASSERT_EQUAL(ntohs(rdma_get_dst_port(seen.event.id)), 0x4321);
	CU_ASSERT_EQUAL(ntohs(rdma_get_src_port(seen.event.id)), rig.port);

	param.private_data = pattern;
	param.private_data_len = CM_DATA;
	CU_ASSERT_EQUAL(rdma_accept(seen.event.id, &param), 0);
	CU_ASSERT_EQUAL(wire_read(&rig, fd, answer, answer_header + CM_DATA),
			answer_header + CM_DATA);
	CU_ASSERT_EQUAL(memcmp(answer, "\0\11\0\2", 4), 0);
	CU_ASSERT_EQUAL(answer[16] << 8 | answer[17], CM_DATA);
	CU_ASSERT_EQUAL(answer[28], 5);
	CU_ASSERT_EQUAL(answer[32], ver < 9 ? IBV_MTU_2048 : IBV_MTU_1024);
	CU_ASSERT_EQUAL(answer[36 + 7], 0x77);
	CU_ASSERT_EQUAL(answer[36 + 27], IBV_QPT_RC);
	CU_ASSERT_EQUAL(memcmp(answer + answer_header, pattern, CM_DATA), 0);
	establish(&rig, fd, seen.event.id);
	part(&rig, fd, seen.event.id);
	rig_close(&rig);
}

static void test_versions(void)
{
	static const size_t sizes[] = { 0, 1, 2, 3, 48, 67, 68 };
	size_t i;

	for (i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		serve(9, CM_HEADER, sizes[i], 512);
		serve(8, CM_HEADER, sizes[i], 512);
		serve(7, CM_HEADER_OLD, sizes[i], 512);
		serve(6, CM_HEADER_OLD, sizes[i], 512);
	}
	serve(7, CM_HEADER_OLD, 118, 512);
	serve(10, CM_HEADER, 68, 512);
}

static void test_old_form(void)
{
	size_t size;

	for (size = 0; size <= CM_DATA; size++)
		serve(9, CM_HEADER_OLD, size, 512);
}

static void test_fragments(void)
{
	serve(9, CM_HEADER, 68, 1);
	serve(7, CM_HEADER_OLD, 118, 1);
	serve(9, CM_HEADER, 48, 147);
}

/*
 * Only one of the old form's two bytes has arrived: the CM waits for the other one; the data
 * follows it.
 */
static void test_half_form(void)
{
	unsigned char bytes[512];
	size_t size = wire_message(bytes, 9, CM_REQ, CM_HEADER_OLD, pattern, 20, IBV_QPT_RC);
	struct seen seen;
	struct rig rig;
	int fd;

	rig_open(&rig);
	rig_listen(&rig);
	fd = wire_connect(rig.port);
	wire_send(fd, bytes, size - 1);
	CU_ASSERT_FALSE(rig_poll(&rig, &seen));
	wire_send(fd, bytes + size - 1, 1);
	rig_expect(&rig, RDMA_CM_EVENT_CONNECT_REQUEST, &seen);
	CU_ASSERT_EQUAL(seen.size, 20);
	CU_ASSERT_EQUAL(memcmp(seen.data, pattern, 20), 0);
	CU_ASSERT_EQUAL(rdma_destroy_id(seen.event.id), 0);
	close(fd);
	rig_close(&rig);
}

/* The old form's two bytes arrive late; the CM still understands the RTU behind them. */
static void test_late_bytes(void)
{
	unsigned char bytes[512], answer[CM_MESSAGE_MAX];
	struct rdma_conn_param param = answer_param;
	struct seen seen;
	struct rig rig;
	int fd, after;

	for (after = 0; after < 2; after++) {
		rig_open(&rig);
		rig_listen(&rig);
		fd = wire_connect(rig.port);
		wire_message(bytes, 9, CM_REQ, CM_HEADER, NULL, 0, IBV_QPT_RC);
		wire_send(fd, bytes, CM_HEADER);
		rig_expect(&rig, RDMA_CM_EVENT_CONNECT_REQUEST, &seen);
		wire_send(fd, "\0", 1);
		if (after)
			CU_ASSERT_FALSE(rig_poll(&rig, &(struct seen){ .size = 0 }));
		wire_send(fd, "\0", 1);
		CU_ASSERT_EQUAL(rdma_accept(seen.event.id, &param), 0);
		CU_ASSERT_EQUAL(wire_read(&rig, fd, answer, CM_HEADER), CM_HEADER);
		establish(&rig, fd, seen.event.id);
		part(&rig, fd, seen.event.id);
		rig_close(&rig);
	}
}

/* A malformed request is answered with a rejection, and makes no event. */
static void refuse(const unsigned char *bytes, size_t size)
{
	unsigned char answer[CM_MESSAGE_MAX];
	struct seen seen;
	struct rig rig;
	int fd;

	rig_open(&rig);
	rig_listen(&rig);
	fd = wire_connect(rig.port);
	wire_send(fd, bytes, size);
	CU_ASSERT_EQUAL(wire_read(&rig, fd, answer, CM_HEADER), CM_HEADER);
	CU_ASSERT_EQUAL(answer[3], CM_REJ_CM);
	CU_ASSERT_TRUE(answer[1] >= CM_VERSION_MIN);
	CU_ASSERT_EQUAL(answer[16] | answer[17], 0);
	CU_ASSERT_FALSE(rig_poll(&rig, &seen));
	close(fd);
	rig_close(&rig);
}

static void test_nonsense(void)
{
	unsigned char bytes[512];
	size_t size;

	memset(bytes, 'G', sizeof(bytes));
	refuse(bytes, 400); /* another protocol */
	size = wire_message(bytes, 5, CM_REQ, CM_HEADER, pattern, 48, IBV_QPT_RC);
	refuse(bytes, size); /* too old */
	wire_message(bytes, 9, CM_REQ, CM_HEADER, pattern, 69, IBV_QPT_RC);
	refuse(bytes, CM_HEADER); /* too much data */
	wire_message(bytes, 7, CM_REQ, CM_HEADER_OLD, NULL, 0, IBV_QPT_RC);
	bytes[16] = bytes[17] = 0xff;
	refuse(bytes, CM_HEADER_OLD);
	for (unsigned op = 0; op < 9; op++) {
		if (op == CM_REQ)
			continue;
		size = wire_message(bytes, 9, op, CM_HEADER, pattern, 8, IBV_QPT_RC);
		refuse(bytes, size);
	}
	wire_message(bytes, 9, CM_REQ, CM_HEADER, NULL, 0, 9);
	refuse(bytes, CM_HEADER); /* an unknown QP type */
	wire_message(bytes, 9, CM_REQ, CM_HEADER, NULL, 0, IBV_QPT_RC);
	refuse(bytes, CM_HEADER + 3); /* more bytes behind it than an old form has */
	wire_message(bytes, 7, CM_REQ, CM_HEADER_OLD, NULL, 0, IBV_QPT_RC);
	refuse(bytes, CM_HEADER_OLD + 2);
}

/* Listeners of both kinds; each gets only its requests. */
static void test_kinds(void)
{
	unsigned char bytes[512], answer[CM_MESSAGE_MAX];
	struct rdma_conn_param param = { .qp_num = 0x99 };
	struct seen seen;
	struct rig rig;
	int fd;

	rig_open(&rig);
	rig_listen(&rig);
	fd = wire_connect(rig.port);
	wire_send(fd, bytes, wire_message(bytes, 9, CM_REQ, CM_HEADER, pattern, 9, IBV_QPT_UD));
	rig_expect(&rig, RDMA_CM_EVENT_CONNECT_REQUEST, &seen);
	CU_ASSERT_PTR_EQUAL(seen.event.listen_id, rig.datagrams);
	CU_ASSERT_EQUAL(seen.event.id->ps, RDMA_PS_UDP);
	CU_ASSERT_EQUAL(seen.size, 9);
	CU_ASSERT_EQUAL(seen.event.param.ud.qp_num, 0x1234);
	CU_ASSERT_EQUAL(seen.event.param.ud.qkey, CM_UD_QKEY);
	CU_ASSERT_EQUAL(seen.event.param.ud.ah_attr.dlid, 7);
	CU_ASSERT_EQUAL(seen.event.param.ud.ah_attr.is_global, 1); /* across Ethernet */
	CU_ASSERT_EQUAL(seen.event.param.ud.ah_attr.grh.dgid.raw[0], 0xfe);
	CU_ASSERT_EQUAL(rdma_accept(seen.event.id, &param), 0);
	CU_ASSERT_EQUAL(wire_read(&rig, fd, answer, CM_HEADER), CM_HEADER);
	CU_ASSERT_EQUAL(answer[3], CM_REP);
	CU_ASSERT_EQUAL(answer[36 + 27], IBV_QPT_UD);
	/* the RTU ends it, without an event */
	wire_send(fd, "\0\11\0\5", 4);
	CU_ASSERT_TRUE(wire_ends(&rig, fd));
	CU_ASSERT_EQUAL(rdma_destroy_id(seen.event.id), 0);
	close(fd);
	rig_close(&rig);
}

/*
 * The rejection is the REQ with another operation and the consumer's data, without rdma_cm's
 * header.
 */
static void reject(const void *data, uint8_t size, unsigned op)
{
	unsigned char bytes[512], answer[CM_MESSAGE_MAX + 1];
	struct seen seen;
	struct rig rig;
	int fd;

	rig_open(&rig);
	rig_listen(&rig);
	fd = wire_connect(rig.port);
	wire_send(fd, bytes, wire_message(bytes, 9, CM_REQ, CM_HEADER, pattern, 30, IBV_QPT_RC));
	rig_expect(&rig, RDMA_CM_EVENT_CONNECT_REQUEST, &seen);
	CU_ASSERT_EQUAL(rdma_reject(seen.event.id, data, size), 0);
	CU_ASSERT_EQUAL(wire_read(&rig, fd, answer, sizeof(answer)), CM_HEADER + size);
	CU_ASSERT_EQUAL(answer[3], op);
	CU_ASSERT_EQUAL(answer[17], size);
	CU_ASSERT_EQUAL(memcmp(answer + 20, bytes + 20, CM_HEADER - 20), 0);
	CU_ASSERT_EQUAL(memcmp(answer + CM_HEADER, data ? data : "", size), 0);
	CU_ASSERT_NOT_EQUAL(rdma_reject(seen.event.id, data, size), 0);
	CU_ASSERT_EQUAL(errno, EINVAL);
	CU_ASSERT_EQUAL(rdma_destroy_id(seen.event.id), 0);
	close(fd);
	rig_close(&rig);
}

static void test_reject(void)
{
	reject(pattern, 0, CM_REJ_USER);
	reject(pattern, 1, CM_REJ_USER);
	reject(pattern, CM_DATA, CM_REJ_USER);
	reject(NULL, 0, CM_REJ_CM);
}

/*
 * Destroying a request, or the listener before the request is delivered, rejects the waiting peer.
 */
static void test_destroyed(void)
{
	unsigned char bytes[512], answer[CM_MESSAGE_MAX];
	struct seen seen;
	struct rig rig;
	int fd, half;

	rig_open(&rig);
	rig_listen(&rig);
	fd = wire_connect(rig.port);
	wire_send(fd, bytes, wire_message(bytes, 9, CM_REQ, CM_HEADER, pattern, 30, IBV_QPT_RC));
	rig_expect(&rig, RDMA_CM_EVENT_CONNECT_REQUEST, &seen);
	CU_ASSERT_EQUAL(rdma_destroy_id(seen.event.id), 0);
	CU_ASSERT_EQUAL(wire_read(&rig, fd, answer, CM_HEADER), CM_HEADER);
	CU_ASSERT_EQUAL(answer[3], CM_REJ_CM);
	half = wire_connect(rig.port);
	wire_send(half, bytes, 20);
	CU_ASSERT_FALSE(rig_poll(&rig, &seen));
	CU_ASSERT_EQUAL(rdma_destroy_id(rig.listener), 0);
	rig.listener = NULL;
	CU_ASSERT_EQUAL(wire_read(&rig, half, answer, CM_HEADER), CM_HEADER);
	CU_ASSERT_EQUAL(answer[3], CM_REJ_CM);
	close(half);
	close(fd);
	rig_close(&rig);
}

/* The answer finds that the requester has gone, whether its close was seen before or not. */
static void test_gone(void)
{
	unsigned char bytes[512];
	struct rdma_conn_param param = answer_param;
	struct seen seen, none;
	struct rig rig;
	int fd, seen_before;

	for (seen_before = 0; seen_before < 2; seen_before++) {
		rig_open(&rig);
		rig_listen(&rig);
		fd = wire_connect(rig.port);
		wire_send(fd, bytes,
			  wire_message(bytes, 9, CM_REQ, CM_HEADER, pattern, 30, IBV_QPT_RC));
		rig_expect(&rig, RDMA_CM_EVENT_CONNECT_REQUEST, &seen);
		close(fd);
		if (seen_before)
			CU_ASSERT_FALSE(rig_poll(&rig, &none));
		CU_ASSERT_NOT_EQUAL(rdma_accept(seen.event.id, &param), 0);
		CU_ASSERT_EQUAL(errno, EINVAL);
		CU_ASSERT_NOT_EQUAL(rdma_reject(seen.event.id, NULL, 0), 0);
		CU_ASSERT_EQUAL(errno, EINVAL);
		CU_ASSERT_EQUAL(rdma_destroy_id(seen.event.id), 0);
		rig_close(&rig);
	}
}

/* An accepted peer that dies or sends something else than the RTU. */
static void test_no_rtu(void)
{
	unsigned char bytes[512], answer[CM_MESSAGE_MAX];
	struct rdma_conn_param param = answer_param;
	static const char *const rtus[] = { NULL, "\0\11\0\4", "\0\11\1\5", "\0\0\xde\xad" };
	struct seen seen;
	struct rig rig;
	size_t i;
	int fd;

	for (i = 0; i < sizeof(rtus) / sizeof(rtus[0]); i++) {
		rig_open(&rig);
		rig_listen(&rig);
		fd = wire_connect(rig.port);
		wire_send(fd, bytes,
			  wire_message(bytes, 9, CM_REQ, CM_HEADER, pattern, 30, IBV_QPT_RC));
		rig_expect(&rig, RDMA_CM_EVENT_CONNECT_REQUEST, &seen);
		CU_ASSERT_EQUAL(rdma_accept(seen.event.id, &param), 0);
		CU_ASSERT_EQUAL(wire_read(&rig, fd, answer, CM_HEADER), CM_HEADER);
		if (rtus[i])
			wire_send(fd, rtus[i], 4);
		else
			close(fd);
		rig_expect(&rig, RDMA_CM_EVENT_CONNECT_ERROR, NULL);
		CU_ASSERT_EQUAL(rdma_destroy_id(seen.event.id), 0);
		if (rtus[i])
			close(fd);
		rig_close(&rig);
	}
}

/*
 * The request and the RTU have 30 seconds each. While a limit is set the wrapped clock is behind, so
 * that it is over after LIMIT. Each function returns the nanoseconds that passed until then.
 */
#define LIMIT (1 * NSEC_PER_SEC)

static uint64_t no_request_comes(void *unused)
{
	unsigned char answer[CM_MESSAGE_MAX];
	uint64_t begun, took;
	struct seen seen;
	struct rig rig;
	int fd;

	(void)unused;
	rig_open(&rig);
	rig_listen(&rig);
	fd = wire_connect(rig.port);
	wire_send(fd, "\0\11\0\1", 4);
	begun = clock_now();
	behind = 30 * NSEC_PER_SEC - LIMIT;
	CU_ASSERT_FALSE(rig_poll(&rig, &seen));
	behind = 0;
	CU_ASSERT_EQUAL(wire_read(&rig, fd, answer, CM_HEADER), CM_HEADER);
	took = clock_now() - begun;
	CU_ASSERT_EQUAL(answer[3], CM_REJ_CM);
	CU_ASSERT_TRUE(took >= LIMIT);
	close(fd);
	rig_close(&rig);
	return took;
}

static uint64_t no_rtu_comes(void *unused)
{
	struct rdma_conn_param param = answer_param;
	unsigned char bytes[512];
	uint64_t begun, took;
	struct seen seen;
	struct rig rig;
	int fd;

	(void)unused;
	rig_open(&rig);
	rig_listen(&rig);
	fd = wire_connect(rig.port);
	wire_send(fd, bytes, wire_message(bytes, 9, CM_REQ, CM_HEADER, pattern, 30, IBV_QPT_RC));
	rig_expect(&rig, RDMA_CM_EVENT_CONNECT_REQUEST, &seen);
	begun = clock_now();
	behind = 30 * NSEC_PER_SEC - LIMIT;
	CU_ASSERT_EQUAL(rdma_accept(seen.event.id, &param), 0);
	behind = 0;
	rig_expect(&rig, RDMA_CM_EVENT_CONNECT_ERROR, NULL);
	took = clock_now() - begun;
	CU_ASSERT_TRUE(took >= LIMIT);
	CU_ASSERT_EQUAL(rdma_destroy_id(seen.event.id), 0);
	close(fd);
	rig_close(&rig);
	return took;
}

static void test_patience(void)
{
	CU_ASSERT(unit_is_soon(no_request_comes, NULL, 2 * LIMIT));
	CU_ASSERT(unit_is_soon(no_rtu_comes, NULL, 2 * LIMIT));
}

/* The peer's disconnect or death makes DISCONNECTED; an answer is sent. */
static void test_farewell(void)
{
	unsigned char bytes[512], answer[CM_MESSAGE_MAX];
	struct rdma_conn_param param = answer_param;
	struct seen seen;
	struct rig rig;
	int fd, dies;

	for (dies = 0; dies < 2; dies++) {
		rig_open(&rig);
		rig_listen(&rig);
		fd = wire_connect(rig.port);
		wire_send(fd, bytes,
			  wire_message(bytes, 9, CM_REQ, CM_HEADER, pattern, 30, IBV_QPT_RC));
		rig_expect(&rig, RDMA_CM_EVENT_CONNECT_REQUEST, &seen);
		CU_ASSERT_EQUAL(rdma_accept(seen.event.id, &param), 0);
		CU_ASSERT_EQUAL(wire_read(&rig, fd, answer, CM_HEADER), CM_HEADER);
		establish(&rig, fd, seen.event.id);
		if (dies)
			close(fd);
		else
			wire_send(fd, "\0\0\xde\xad", 4);
		rig_expect(&rig, RDMA_CM_EVENT_DISCONNECTED, NULL);
		if (!dies) {
			CU_ASSERT_EQUAL(wire_read(&rig, fd, answer, 5), 4);
			close(fd);
		}
		CU_ASSERT_EQUAL(rdma_destroy_id(seen.event.id), 0);
		rig_close(&rig);
	}
}

static rlim_t descriptors(rlim_t most)
{
	struct rlimit limit;

	getrlimit(RLIMIT_NOFILE, &limit);
	limit.rlim_cur = most && most < limit.rlim_max ? most : limit.rlim_max;
	setrlimit(RLIMIT_NOFILE, &limit);
	return limit.rlim_cur;
}

/*
 * More half-open connections than the CM keeps: the oldest are closed, and a real request is
 * served.
 */
static void test_flood(void)
{
	enum { FLOOD = 1100 };
	unsigned char bytes[512], answer[CM_MESSAGE_MAX];
	static int fds[FLOOD];
	struct seen seen;
	struct rig rig;
	int fd, i;

	if (descriptors(0) < 2 * FLOOD + 64) {
		printf("too few descriptors for a flood\n");
		return;
	}
	rig_open(&rig);
	rig_listen(&rig);
	for (i = 0; i < FLOOD; i++) {
		fds[i] = wire_connect(rig.port);
		CU_ASSERT_FALSE(rig_poll(&rig, &seen));
	}
	fd = wire_connect(rig.port);
	wire_send(fd, bytes, wire_message(bytes, 9, CM_REQ, CM_HEADER, pattern, 30, IBV_QPT_RC));
	rig_expect(&rig, RDMA_CM_EVENT_CONNECT_REQUEST, &seen);
	CU_ASSERT_EQUAL(wire_read(&rig, fds[0], answer, CM_HEADER), CM_HEADER);
	CU_ASSERT_EQUAL(answer[3], CM_REJ_CM);
	CU_ASSERT_EQUAL(recv(fds[FLOOD - 1], answer, 1, MSG_DONTWAIT), -1);
	CU_ASSERT_EQUAL(errno, EAGAIN);
	for (i = 0; i < FLOOD; i++)
		close(fds[i]);
	CU_ASSERT_EQUAL(rdma_destroy_id(seen.event.id), 0);
	close(fd);
	rig_close(&rig);
}

/* Without free descriptors the CM does not spin, and accepts the connection once there is one. */
static void test_no_descriptor(void)
{
	struct pollfd poll_fd = { .events = POLLIN };
	unsigned char bytes[512];
	struct seen seen;
	struct rig rig;
	unsigned i;
	int fd;

	rig_open(&rig);
	rig_listen(&rig);
	fd = wire_connect(rig.port);
	wire_send(fd, bytes, wire_message(bytes, 9, CM_REQ, CM_HEADER, pattern, 30, IBV_QPT_RC));
	descriptors((rlim_t)fd + 1);
	for (i = 0; i < 3; i++)
		CU_ASSERT_FALSE(rig_poll(&rig, &seen));
	poll_fd.fd = rig.channel->fd;
	CU_ASSERT_EQUAL(poll(&poll_fd, 1, 10), 0);
	descriptors(0);
	rig_expect(&rig, RDMA_CM_EVENT_CONNECT_REQUEST, &seen);
	CU_ASSERT_EQUAL(rdma_destroy_id(seen.event.id), 0);
	close(fd);
	rig_close(&rig);
}

static void test_ports(void)
{
	struct sockaddr_in own = { .sin_family = AF_INET };
	struct rdma_cm_id *id, *other;
	struct rig rig;

	rig_open(&rig);
	rig_listen(&rig);
	id = rig_id(&rig, RDMA_PS_TCP, rig.port);
	CU_ASSERT_NOT_EQUAL(rdma_listen(id, 0), 0);
	CU_ASSERT_EQUAL(errno, EADDRINUSE);
	CU_ASSERT_NOT_EQUAL(rdma_bind_addr(id, (struct sockaddr *)&own), 0);
	CU_ASSERT_EQUAL(errno, EINVAL);
	CU_ASSERT_EQUAL(rdma_destroy_id(id), 0);
	/* the port is free when its listener is destroyed */
	CU_ASSERT_EQUAL(rdma_destroy_id(rig.listener), 0);
	rig.listener = NULL;
	other = rig_id(&rig, RDMA_PS_TCP, rig.port);
	CU_ASSERT_EQUAL(rdma_listen(other, 0), 0);
	CU_ASSERT_EQUAL(rdma_destroy_id(other), 0);
	rig_close(&rig);
}

static const struct unit_test tests[] = {
	{ "passive: requests of each version, with private data of each size, are accepted",
	  test_versions },
	{ "passive: the old form with the new version is accepted", test_old_form },
	{ "passive: a request may come byte by byte", test_fragments },
	{ "passive: the CM waits for the second of the old form's two bytes", test_half_form },
	{ "passive: bytes of the old form may come late", test_late_bytes },
	{ "passive: a malformed request is rejected and logged", test_nonsense },
	{ "passive: requests for datagrams reach their listeners", test_kinds },
	{ "passive: consumer and CM reject with their own codes", test_reject },
	{ "passive: a destroyed request or listener rejects the peer", test_destroyed },
	{ "passive: a requester that has gone is reported", test_gone },
	{ "passive: no RTU", test_no_rtu },
	{ "passive: a request and an RTU that do not come time out", test_patience },
	{ "passive: the peer's disconnect and its death make DISCONNECTED", test_farewell },
	{ "passive: the oldest of many half-open connections are closed", test_flood },
	{ "passive: a connection waits for a free descriptor", test_no_descriptor },
	{ "passive: a port has one listener", test_ports },
};

int main(int argc, char **argv)
{
	size_t i;

	for (i = 0; i < sizeof(pattern); i++)
		pattern[i] = (unsigned char)(i + 3);
	return unit_main("scm_passive", tests, sizeof(tests) / sizeof(tests[0]), argc, argv);
}
