/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* Answers to requests of another host: for several of them, with a request, and when neither is at hand. */
#include "test/unit/fabric_rc.h"

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

static struct far_request request_of(unsigned number, enum ibv_wr_opcode opcode)
{
	return (struct far_request){ .dest = own.qp->qp_num,
				     .source = THEIR_QP,
				     .connection = 77,
				     .number = number,
				     .opcode = (uint8_t)opcode,
				     .length = opcode == IBV_WR_SEND ? 0 : 8,
				     .rnr_retry = 7,
				     .retry = 7,
				     .timeout = 14 };
}

static void their_request_put(const struct far_request *request)
{
	uint8_t bytes[FAR_REQUEST_SIZE];

	sv_far_request_write(bytes, request);
	their_frame(WIRE_REQUEST, bytes, sizeof(bytes));
}

static void their_request(unsigned number, enum ibv_wr_opcode opcode)
{
	struct far_request request = request_of(number, opcode);

	their_request_put(&request);
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

/* ---- answers that go with a request ---- */

static void request_answers(void)
{
	struct far_request request;
	struct far_done done[2];
	int fd = linked_open(21, done);

	request = request_of(5, IBV_WR_SEND); /* not its turn: it is not taken */
	request.flags = FAR_ANSWERS;
	request.answer.connection = done[1].connection;
	request.answer.number = done[1].number;
	their_request_put(&request);
	they_send(fd);
	assert_completes(1, IBV_WC_SUCCESS);
	assert_completes(2, IBV_WC_SUCCESS);
	linked_close(fd);
}

/* A request of theirs is executed by this thread's polls. */
static void they_request(int fd, unsigned number)
{
	recvs_post(1);
	their_request(number, IBV_WR_SEND);
	they_send(fd);
	assert_completes(50, IBV_WC_SUCCESS);
}

static void assert_silent(int fd)
{
	struct pollfd poll_fd = { .fd = fd, .events = POLLIN };

	CU_ASSERT_EQUAL(poll(&poll_fd, 1, 0), 0);
}

static void answers_wait_for_a_request(void)
{
	struct far_request request = { .flags = 0 };
	struct far_done done[2];
	int fd = linked_open(21, done);
	struct wire_frame frame;
	uint8_t payload[FAR_REQUEST_SIZE];
	struct ibv_wc wc;

	they_request(fd, 0); /* threads poll from here on */
	assert_answered(fd, 0, IBV_WC_SUCCESS);
	busy_begin(0, false);
	they_request(fd, 1);
	assert_silent(fd);
	send_one(3);
	CU_ASSERT_TRUE(rig_frame_read(fd, &frame, payload, sizeof(payload)));
	CU_ASSERT_EQUAL(frame.type, WIRE_REQUEST);
	CU_ASSERT_TRUE(sv_far_request_read(payload, frame.size, &request));
	CU_ASSERT_EQUAL(request.flags, FAR_ANSWERS);
	CU_ASSERT_EQUAL(request.answer.connection, 77);
	CU_ASSERT_EQUAL(request.answer.number, 1);
	for (unsigned i = 0; i < 2; i++)
		CU_ASSERT_EQUAL(ibv_poll_cq(own.cq, 1, &wc), 0);
	assert_silent(fd); /* it has gone */

	they_request(fd, 2); /* one more poll */
	assert_silent(fd);
	CU_ASSERT_EQUAL(ibv_poll_cq(own.cq, 1, &wc), 0);
	assert_answered(fd, 2, IBV_WC_SUCCESS);

	they_request(fd, 3); /* none: the engine */
	assert_silent(fd);
	busy_let_go();
	assert_answered(fd, 3, IBV_WC_SUCCESS);
	busy_end();
	assert_silent(fd);
	linked_close(fd);
}

/* The QP ends before its answer has gone. */
static void answers_go_at_the_end(void)
{
	struct far_done done[2];
	int fd = linked_open(21, done);

	they_request(fd, 0);
	assert_answered(fd, 0, IBV_WC_SUCCESS);
	busy_begin(0, false);
	they_request(fd, 1);
	assert_silent(fd);
	CU_ASSERT_EQUAL(ibv_modify_qp(own.qp, &(struct ibv_qp_attr){ .qp_state = IBV_QPS_RESET },
				      IBV_QP_STATE),
			0);
	assert_answered(fd, 1, IBV_WC_SUCCESS);
	busy_let_go();
	busy_end();
	linked_close(fd);
}

static const struct unit_test tests[] = {
	{ "an answer is for the requests before it", one_answer_for_two },
	{ "but for none that brings data: the link ends", no_answer_for_a_read },
	{ "an answer that is no success is for one request", not_ready_answers_one },
	{ "requests that come together get one answer", answers_are_joined },
	{ "a request that waits for a receive is answered after it", answer_comes_late },
	{ "a request is an answer, too", request_answers },
	{ "an answer waits for a request, a poll, or the engine", answers_wait_for_a_request },
	{ "but no longer than its QP", answers_go_at_the_end },
};

int main(int argc, char **argv)
{
	return rig_can() ? unit_main("softverbs fabric answers", tests,
				     sizeof(tests) / sizeof(tests[0]), argc, argv)
			 : 77;
}
