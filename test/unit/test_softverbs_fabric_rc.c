/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* An RC QP that looks for its peer on another host, which the test plays. */
#include <infiniband/verbs.h>
#include "softverbs/cm/cm.h"
#include "softverbs/fabric/data.h"
#include "softverbs/verbs/qp.h"
#include "test/unit/busy_engine.h"
#include "test/unit/fabric_rig.h"
#include "util/clock.h"

#define OTHER	 5u /* the slot of the process of the other host */
#define THEIR_QP (OTHER << 12 | 3)

/* 192.0.2.1, an address that no host has (RFC 5737) */
static const uint8_t elsewhere[16] = { [10] = 0xff, 0xff, 192, 0, 2, 1 };

static struct {
	uint16_t port;
	struct ibv_context *context;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_qp *qp;
} own;

static void qp_connect(uint8_t timeout)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT, .port_num = 1 };

	CU_ASSERT_EQUAL(ibv_modify_qp(own.qp, &attr,
				      IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
					      IBV_QP_ACCESS_FLAGS),
			0);
	attr = (struct ibv_qp_attr){ .qp_state = IBV_QPS_RTR,
				     .path_mtu = IBV_MTU_1024,
				     .dest_qp_num = THEIR_QP,
				     .max_dest_rd_atomic = 1,
				     .ah_attr = { .is_global = 1, .port_num = 1 } };
	memcpy(attr.ah_attr.grh.dgid.raw, elsewhere, sizeof(elsewhere));
	CU_ASSERT_EQUAL(ibv_modify_qp(own.qp, &attr,
				      IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
					      IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
					      IBV_QP_MIN_RNR_TIMER),
			0);
	attr = (struct ibv_qp_attr){
		.qp_state = IBV_QPS_RTS, .timeout = timeout, .retry_cnt = 7, .max_rd_atomic = 1
	};
	CU_ASSERT_EQUAL(ibv_modify_qp(own.qp, &attr,
				      IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
					      IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
					      IBV_QP_MAX_QP_RD_ATOMIC),
			0);
	/* the other host, as it is known to programs, is at the rig's address */
	CU_ASSERT_PTR_NOT_NULL_FATAL(far_of(qp_of(own.qp)));
	CU_ASSERT_TRUE(sv_ip_parse(&far_of(qp_of(own.qp))->host, "::ffff:" RIG_HOST));
}

static void own_open(uint8_t timeout)
{
	struct ibv_qp_init_attr init = { .qp_type = IBV_QPT_RC, .cap = { 8, 8, 1, 1, 8 } };

	own.port = rig_on();
	own.context = ibv_open_device(sv_device_soft());
	CU_ASSERT_PTR_NOT_NULL_FATAL(own.context);
	own.pd = ibv_alloc_pd(own.context);
	own.cq = ibv_create_cq(own.context, 64, NULL, NULL, 0);
	init.send_cq = init.recv_cq = own.cq;
	own.qp = ibv_create_qp(own.pd, &init);
	CU_ASSERT_PTR_NOT_NULL_FATAL(own.qp);
	qp_connect(timeout);
}

static void own_close(void)
{
	CU_ASSERT_EQUAL(ibv_destroy_qp(own.qp), 0);
	CU_ASSERT_EQUAL(ibv_destroy_cq(own.cq), 0);
	CU_ASSERT_EQUAL(ibv_dealloc_pd(own.pd), 0);
	CU_ASSERT_EQUAL(ibv_close_device(own.context), 0);
	sv_runtime_release();
}

static void send_one(uint32_t imm)
{
	struct ibv_send_wr wr = { .wr_id = imm,
				  .opcode = IBV_WR_SEND_WITH_IMM,
				  .send_flags = IBV_SEND_SIGNALED,
				  .imm_data = htonl(imm) },
			   *bad;

	CU_ASSERT_EQUAL(ibv_post_send(own.qp, &wr, &bad), 0);
}

/* The request comes over that link; the answer to it. */
static bool comes(int fd, uint32_t imm, struct far_done *done)
{
	struct wire_frame frame;
	struct far_request request;
	uint8_t payload[FAR_REQUEST_SIZE];

	if (!rig_frame_read(fd, &frame, payload, sizeof(payload)) || frame.type != WIRE_REQUEST ||
	    !sv_far_request_read(payload, frame.size, &request) || request.dest != THEIR_QP)
		return false;
	*done = (struct far_done){ .dest = request.source,
				   .source = request.dest,
				   .connection = request.connection,
				   .number = request.number };
	return request.imm == htonl(imm);
}

/* A peer that breaks off has not said that there is no such process. The QP's first retry is 8.6 s away. */
static void broken_off(void)
{
	struct wire_target target;
	struct far_done done;
	uint64_t begin;
	int listener, fd;

	own_open(21);
	listener = rig_listen(own.port);
	begin = clock_now();
	send_one(7);
	for (unsigned i = 0; i < 3; i++)
		close(rig_accept(listener)); /* the target is not read: TCP resets */
	fd = rig_accept(listener);
	rig_answer(fd, WIRE_LINKED, &target);
	CU_ASSERT_EQUAL(target.slot, OTHER);
	CU_ASSERT_TRUE(comes(fd, 7, &done));
	CU_ASSERT_TRUE(clock_now() - begin < 8 * NSEC_PER_SEC);
	close(fd);
	close(listener);
	own_close();
}

/* ---- threads that poll ---- */

/* The QP has a link, and has sent requests 1 and 2. The socket. */
static int linked_open(uint8_t timeout, struct far_done done[static 2])
{
	struct wire_target target;
	int listener, fd;

	own_open(timeout);
	listener = rig_listen(own.port);
	send_one(1);
	fd = rig_accept(listener);
	close(listener);
	rig_answer(fd, WIRE_LINKED, &target);
	CU_ASSERT_TRUE_FATAL(comes(fd, 1, &done[0]));
	send_one(2);
	CU_ASSERT_TRUE_FATAL(comes(fd, 2, &done[1]));
	busy_end(); /* the engine has done what it does with a link that is ready */
	return fd;
}

static void linked_close(int fd)
{
	close(fd);
	own_close();
}

/* What the peer sends next, at once. */
static uint8_t theirs[1024];
static size_t theirs_size;

static void their_frame(enum wire_type type, const void *payload, size_t size)
{
	struct wire_frame frame = { .size = (uint32_t)size, .type = (uint16_t)type };

	sv_wire_header_write(theirs + theirs_size, &frame);
	memcpy(theirs + theirs_size + WIRE_HEADER, payload, size);
	theirs_size += WIRE_HEADER + size;
}

static void their_answer(const struct far_done *done)
{
	uint8_t bytes[FAR_DONE_SIZE];

	sv_far_done_write(bytes, done);
	their_frame(WIRE_DONE, bytes, sizeof(bytes));
}

static void they_send(int fd)
{
	rig_write(fd, theirs, theirs_size);
	theirs_size = 0;
}

static bool one_completes(void *wc)
{
	return ibv_poll_cq(own.cq, 1, wc) == 1;
}

static void assert_completes(uint64_t wr_id, enum ibv_wc_status status)
{
	struct ibv_wc wc = { .wr_id = 0 };

	CU_ASSERT_TRUE(unit_wait_for(one_completes, &wc, UNIT_PATIENCE));
	CU_ASSERT_EQUAL(wc.wr_id, wr_id);
	CU_ASSERT_EQUAL(wc.status, status);
}

static void polls_read(void)
{
	struct far_done done[2];
	int fd = linked_open(21, done);

	busy_begin(0, false);
	for (unsigned i = 0; i < 2; i++) {
		their_answer(&done[i]);
		they_send(fd);
		assert_completes(i + 1, IBV_WC_SUCCESS);
	}
	busy_let_go();
	busy_end();
	linked_close(fd);
}

/* A message of rdma_cm, for a connection that is not there, between two answers. */
static void polls_leave_the_rest(void)
{
	struct cm_message message = { .kind = CM_MSG_DREQ, .space = RDMA_PS_TCP, .to = 77 };
	uint8_t bytes[CM_WIRE_SIZE];
	struct far_done done[2];
	int fd = linked_open(21, done);
	struct ibv_wc wc;

	message.source.sin6_family = message.target.sin6_family = AF_INET6;
	sv_cm_wire_write(bytes, &message);
	busy_begin(0, false);
	their_answer(&done[0]);
	their_frame(WIRE_CM, bytes, sizeof(bytes));
	their_answer(&done[1]);
	they_send(fd);
	assert_completes(1, IBV_WC_SUCCESS);
	for (unsigned i = 0; i < 100; i++)
		CU_ASSERT_EQUAL(ibv_poll_cq(own.cq, 1, &wc), 0);
	busy_let_go();
	assert_completes(2, IBV_WC_SUCCESS);
	busy_end(); /* threads that poll read again */
	send_one(3);
	CU_ASSERT_TRUE(comes(fd, 3, &done[0]));
	busy_begin(0, false);
	their_answer(&done[0]);
	they_send(fd);
	assert_completes(3, IBV_WC_SUCCESS);
	busy_let_go();
	busy_end();
	linked_close(fd);
}

/* What comes before the end, or before what is malformed, is done, once. */
static void polls_meet(bool is_end)
{
	struct far_done done[2];
	int fd = linked_open(14, done);

	busy_begin(0, false);
	their_answer(&done[0]);
	if (!is_end)
		their_frame(WIRE_REQUEST, "rubbish", 7);
	they_send(fd);
	if (is_end)
		shutdown(fd, SHUT_WR);
	assert_completes(1, IBV_WC_SUCCESS);
	busy_let_go();
	CU_ASSERT_TRUE(rig_is_closed(fd));
	assert_completes(2, IBV_WC_RETRY_EXC_ERR);
	linked_close(fd);
}

static void polls_meet_rubbish(void)
{
	polls_meet(false);
}

static void polls_meet_the_end(void)
{
	polls_meet(true);
}

/* ---- answers for several requests ---- */

static void one_answer_for_two(void)
{
	struct far_done done[2];
	int fd = linked_open(21, done);

	their_answer(&done[1]);
	they_send(fd);
	assert_completes(1, IBV_WC_SUCCESS);
	assert_completes(2, IBV_WC_SUCCESS);
	linked_close(fd);
}

/* A request whose data have not come is not answered by a later one. */
static void no_answer_for_a_read(void)
{
	struct ibv_send_wr wr = { .wr_id = 3,
				  .opcode = IBV_WR_RDMA_READ,
				  .send_flags = IBV_SEND_SIGNALED },
			   *bad;
	struct far_done done[2];
	int fd = linked_open(14, done);

	CU_ASSERT_EQUAL(ibv_post_send(own.qp, &wr, &bad), 0);
	send_one(4);
	done[1].number = 3;
	their_answer(&done[1]);
	they_send(fd);
	assert_completes(1, IBV_WC_SUCCESS);
	assert_completes(2, IBV_WC_SUCCESS);
	assert_completes(3, IBV_WC_RETRY_EXC_ERR);
	linked_close(fd);
}

static void not_ready_answers_one(void)
{
	struct far_done done[2];
	int fd = linked_open(21, done);
	struct ibv_wc wc;

	done[1].status = FAR_NOT_READY; /* late, of before the requests were sent again */
	their_answer(&done[1]);
	done[1].status = IBV_WC_REM_OP_ERR;
	their_answer(&done[1]);
	they_send(fd);
	busy_end();
	CU_ASSERT_EQUAL(ibv_poll_cq(own.cq, 1, &wc), 0);
	their_answer(&done[0]);
	they_send(fd);
	assert_completes(1, IBV_WC_SUCCESS);
	linked_close(fd);
}

static void their_request(unsigned number, enum ibv_wr_opcode opcode)
{
	struct far_request request = { .dest = own.qp->qp_num,
				       .source = THEIR_QP,
				       .connection = 77,
				       .number = number,
				       .opcode = (uint8_t)opcode,
				       .length = opcode == IBV_WR_SEND ? 0 : 8,
				       .rnr_retry = 7,
				       .retry = 7,
				       .timeout = 14 };
	uint8_t bytes[FAR_REQUEST_SIZE];

	sv_far_request_write(bytes, &request);
	their_frame(WIRE_REQUEST, bytes, sizeof(bytes));
}

static void assert_answered(int fd, unsigned number, enum ibv_wc_status status)
{
	struct wire_frame frame = { .type = 0 };
	struct far_done done = { .number = 99 };
	uint8_t payload[FAR_DONE_SIZE];

	CU_ASSERT_TRUE(rig_frame_read(fd, &frame, payload, sizeof(payload)));
	CU_ASSERT_EQUAL(frame.type, WIRE_DONE);
	CU_ASSERT_TRUE(sv_far_done_read(payload, frame.size, &done));
	CU_ASSERT_EQUAL(done.number, number);
	CU_ASSERT_EQUAL(done.status, status);
}

static void recvs_post(unsigned count)
{
	struct ibv_recv_wr wr = { .wr_id = 50 }, *bad;

	while (count--)
		CU_ASSERT_EQUAL(ibv_post_recv(own.qp, &wr, &bad), 0);
}

/* What comes at once has one answer; one that says more than that a request was executed comes after it. */
static void answers_are_joined(void)
{
	struct far_done done[2];
	int fd = linked_open(21, done);

	recvs_post(4);
	for (unsigned i = 0; i < 3; i++)
		their_request(i, IBV_WR_SEND);
	they_send(fd);
	assert_answered(fd, 2, IBV_WC_SUCCESS);
	their_request(3, IBV_WR_SEND);
	their_request(4, IBV_WR_ATOMIC_FETCH_AND_ADD); /* the QP allows none */
	they_send(fd);
	assert_answered(fd, 3, IBV_WC_SUCCESS);
	assert_answered(fd, 4, IBV_WC_REM_INV_REQ_ERR);
	linked_close(fd);
}

/* Where nothing is read any more when it is executed. */
static void answer_comes_late(void)
{
	struct far_done done[2];
	int fd = linked_open(21, done);
	struct pollfd poll_fd = { .fd = fd, .events = POLLIN };

	their_request(0, IBV_WR_SEND);
	they_send(fd);
	CU_ASSERT_EQUAL(poll(&poll_fd, 1, 10), 0);
	recvs_post(1);
	assert_answered(fd, 0, IBV_WC_SUCCESS);
	linked_close(fd);
}

static const struct unit_test tests[] = {
	{ "a thread that polls reads the answers", polls_read },
	{ "what is not data waits for the engine, and what is behind it", polls_leave_the_rest },
	{ "a malformed frame ends the link", polls_meet_rubbish },
	{ "the end of a peer, found by a poll", polls_meet_the_end },
	{ "an answer is for the requests before it", one_answer_for_two },
	{ "but for none that brings data: the link ends", no_answer_for_a_read },
	{ "an answer that is no success is for one request", not_ready_answers_one },
	{ "requests that come together get one answer", answers_are_joined },
	{ "a request that waits for a receive is answered after it", answer_comes_late },
	{ "a link that breaks off is begun again long before the retry of the QP", broken_off },
};

int main(int argc, char **argv)
{
	return rig_can() ? unit_main("softverbs fabric rc", tests, sizeof(tests) / sizeof(tests[0]),
				     argc, argv)
			 : 77;
}
