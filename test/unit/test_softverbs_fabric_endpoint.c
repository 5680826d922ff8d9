/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* The device's endpoint of libfabric, with an endpoint of the test's own as the peer's. */
#include "softverbs/attend.h"
#include "softverbs/fabric/data.h"
#include "softverbs/fabric/endpoint.h"
#include "softverbs/fabric/order.h"
#include "softverbs/fabric/transport.h"
#include "test/unit/fabric_rig.h"
#include "test/unit/process.h"
#include "util/clock.h"

static struct {
	struct sv_endpoint *endpoint;
	struct sv_endpoint_name name;
	uint64_t device; /* the address of the device's endpoint */
	struct sv_endpoint_op op;
	uint8_t sent[256], arrived[256];
	size_t arrived_size;
	bool under_way;
	uint64_t dropped; /* before */
	unsigned answers;
	uint32_t answered[4]; /* the numbers of the requests */
} mine;

#define MY_TOKEN 0x1122334455667788u

static void mine_arrived(const uint8_t *bytes, size_t size)
{
	struct far_done done;

	if (size == WIRE_TOKEN + WIRE_HEADER + FAR_DONE_SIZE &&
	    sv_far_done_read(bytes + WIRE_TOKEN + WIRE_HEADER, FAR_DONE_SIZE, &done))
		mine.answered[mine.answers++ % 4] = done.number;
	mine.arrived_size = size;
	memcpy(mine.arrived, bytes, size < sizeof(mine.arrived) ? size : sizeof(mine.arrived));
}

static void mine_sent(struct sv_endpoint_op *op, int error)
{
	CU_ASSERT_PTR_EQUAL(op, &mine.op);
	CU_ASSERT_EQUAL(error, 0);
	mine.under_way = false;
}

static const struct sv_endpoint_calls *calls(void)
{
	return sv_endpoint_calls();
}

static bool mine_send_again(void *size)
{
	int error;

	calls()->read(mine.endpoint);
	error = calls()->send(mine.endpoint, mine.device, &mine.op, mine.sent, *(size_t *)size);
	mine.under_way = error == EINPROGRESS;
	CU_ASSERT_TRUE(!error || error == EAGAIN || error == EINPROGRESS);
	return error != EAGAIN;
}

static bool mine_is_done(void *unused)
{
	(void)unused;
	calls()->read(mine.endpoint);
	return !mine.under_way;
}

/* A message of that number; one without the right token is read by nothing. */
static void mine_send(uint64_t token, unsigned number, enum wire_type type, const void *payload,
		      size_t size)
{
	struct wire_frame frame = { .size = (uint32_t)size, .type = (uint16_t)type };
	size_t whole = WIRE_TOKEN + WIRE_HEADER + size;

	wire_put(mine.sent, token, WIRE_TOKEN);
	sv_wire_header_write(mine.sent + WIRE_TOKEN, &frame);
	wire_put(mine.sent + WIRE_TOKEN + ORDER_NUMBER, number, 4);
	memcpy(mine.sent + WIRE_TOKEN + WIRE_HEADER, payload, size);
	CU_ASSERT_TRUE_FATAL(unit_wait_for(mine_send_again, &whole, UNIT_PATIENCE));
	CU_ASSERT_TRUE_FATAL(unit_wait_for(mine_is_done, NULL, UNIT_PATIENCE));
}

static bool mine_has_got(void *unused)
{
	(void)unused;
	calls()->read(mine.endpoint);
	return mine.arrived_size;
}

static bool one_is_dropped(void *unused)
{
	(void)unused;
	calls()->read(mine.endpoint);
	return sv_fabric_endpoint_dropped() == mine.dropped + 1;
}

/* Links as the process that leads. The socket. */
static int mine_link(uint16_t port, struct wire_answer *answer)
{
	static const struct sv_endpoint_events events = { mine_arrived, mine_sent };
	static const uint8_t host[16] = { [10] = 0xff, 0xff, 127, 0, 0, 1 };
	struct wire_target target = { .kind = WIRE_TO_SLOT,
				      .slot = sv_runtime_peer_id(),
				      .from_slot = 9,
				      .from_nonce = { 0, 1 } };
	int fd;

	CU_ASSERT_EQUAL_FATAL(calls()->open("tcp", "127.0.0.1", 1u << 17, &events, &mine.endpoint,
					    &mine.name),
			      0);
	mine.arrived_size = mine.answers = 0;
	mine.dropped = sv_fabric_endpoint_dropped();
	target.end = (struct wire_end){ .name = mine.name, .token = MY_TOKEN };
	fd = rig_dial(port); /* from here on there are two seconds */
	CU_ASSERT_EQUAL(rig_prove(fd, ""), WIRE_WELCOME);
	CU_ASSERT_EQUAL_FATAL(rig_target(fd, &target, answer), WIRE_LINKED);
	CU_ASSERT_STRING_EQUAL(answer->end.name.kind, mine.name.kind);
	CU_ASSERT_EQUAL_FATAL(calls()->peer_add(mine.endpoint, &answer->end.name, host,
						&mine.device),
			      0);
	rig_frame(fd, WIRE_OPEN, "", 0);
	return fd;
}

/* The device has ended the link. */
static void mine_is_ended(int fd)
{
	CU_ASSERT_TRUE(rig_is_closed(fd));
	close(fd);
	sv_runtime_release();
	calls()->close(mine.endpoint);
}

/* A send to a QP that is not there. */
static void request_write(uint8_t *bytes, uint32_t number)
{
	struct far_request request = { .dest = (uint32_t)sv_runtime_peer_id() << 12 | 7,
				       .source = 9u << 12 | 1,
				       .number = number,
				       .opcode = IBV_WR_SEND };

	sv_far_request_write(bytes, &request);
}

static bool three_answers(void *unused)
{
	(void)unused;
	calls()->read(mine.endpoint);
	return mine.answers == 3;
}

/* The provider completes the third message first, then the second one. */
static void order(void)
{
	uint8_t bytes[FAR_REQUEST_SIZE];
	struct wire_answer answer;
	uint16_t port = rig_on_as("tcp");
	int fd = mine_link(port, &answer);

	mine_send(answer.end.token, 0, WIRE_OPEN, "", 0);
	for (uint32_t number = 3; number; number--) {
		CU_ASSERT_EQUAL(mine.answers, 0);
		request_write(bytes, number);
		mine_send(answer.end.token, number, WIRE_REQUEST, bytes, sizeof(bytes));
	}
	CU_ASSERT_TRUE(unit_wait_for(three_answers, NULL, UNIT_PATIENCE));
	for (uint32_t i = 0; i < 3; i++)
		CU_ASSERT_EQUAL(mine.answered[i], i + 1);

	/* a number whose turn is over: the link ends */
	mine_send(answer.end.token, 3, WIRE_REQUEST, bytes, sizeof(bytes));
	mine_is_ended(fd);
}

/* Requests for a QP that is not there: without the token there is no answer, with it there is one. */
static void messages(void)
{
	uint8_t bytes[FAR_REQUEST_SIZE];
	const uint8_t *at = mine.arrived;
	struct wire_answer answer;
	struct wire_frame frame;
	struct far_done done;
	uint16_t port = rig_on_as("tcp");
	int fd = mine_link(port, &answer);

	request_write(bytes, 0);
	mine_send(answer.end.token + 1, 0, WIRE_REQUEST, bytes, sizeof(bytes));
	CU_ASSERT_TRUE(unit_wait_for(one_is_dropped, NULL, UNIT_PATIENCE));
	mine_send(answer.end.token, 0, WIRE_OPEN, "", 0);
	mine_send(answer.end.token, 1, WIRE_REQUEST, bytes, sizeof(bytes));
	CU_ASSERT_TRUE_FATAL(unit_wait_for(mine_has_got, NULL, UNIT_PATIENCE));
	CU_ASSERT_EQUAL(mine.arrived_size, WIRE_TOKEN + WIRE_HEADER + FAR_DONE_SIZE);
	CU_ASSERT_EQUAL(wire_get(&at, WIRE_TOKEN), MY_TOKEN);
	CU_ASSERT_TRUE(sv_wire_header_read(at, &frame));
	CU_ASSERT_EQUAL(frame.type, WIRE_DONE);
	CU_ASSERT_TRUE(sv_far_done_read(at + WIRE_HEADER, FAR_DONE_SIZE, &done));
	CU_ASSERT_EQUAL(done.status, FAR_NOT_READY);
	CU_ASSERT_TRUE(one_is_dropped(NULL));

	/* a message of rdma_cm has no business there: the link ends */
	mine_send(answer.end.token, 2, WIRE_CM, bytes, sizeof(bytes));
	mine_is_ended(fd);
}

/* A sound request, by the way that requests do not take. */
static void by_the_link(void)
{
	uint8_t bytes[FAR_REQUEST_SIZE];
	struct wire_answer answer;
	uint16_t port = rig_on_as("tcp");
	int fd = mine_link(port, &answer);

	mine_send(answer.end.token, 0, WIRE_OPEN, "", 0);
	request_write(bytes, 1);
	rig_frame(fd, WIRE_REQUEST, bytes, sizeof(bytes));
	mine_is_ended(fd);
}

/* The peer leaves after message 2. It is answered when that one was handled, which waits for message 1. */
static void peer_leaves(void)
{
	uint8_t bytes[FAR_REQUEST_SIZE], number[WIRE_LEAVE_SIZE];
	struct wire_answer answer;
	struct wire_frame frame;
	uint16_t port = rig_on_as("tcp");
	int fd = mine_link(port, &answer);
	struct pollfd poll_fd = { .fd = fd, .events = POLLIN };

	request_write(bytes, 0);
	mine_send(answer.end.token, 0, WIRE_OPEN, "", 0);
	wire_put(number, 3, sizeof(number));
	rig_frame(fd, WIRE_LEAVE, number, sizeof(number));
	mine_send(answer.end.token, 2, WIRE_REQUEST, bytes, sizeof(bytes));
	mine_send(answer.end.token + 1, 0, WIRE_REQUEST, bytes, sizeof(bytes));
	CU_ASSERT_TRUE(unit_wait_for(one_is_dropped, NULL, UNIT_PATIENCE));
	CU_ASSERT_EQUAL(poll(&poll_fd, 1, 0), 0);
	mine_send(answer.end.token, 1, WIRE_REQUEST, bytes, sizeof(bytes));
	CU_ASSERT_TRUE(rig_frame_read(fd, &frame, bytes, 0));
	CU_ASSERT_EQUAL(frame.type, WIRE_LEFT);

	/* a malformed one: the link ends */
	rig_frame(fd, WIRE_LEAVE, "", 0);
	mine_is_ended(fd);
}

/* Reads how many messages the device has sent, and has handled them. */
static void *leave_answer(void *socket)
{
	uint8_t number[WIRE_LEAVE_SIZE];
	const uint8_t *at = number;
	struct wire_frame frame;
	int fd = *(int *)socket;

	if (!rig_frame_read(fd, &frame, number, sizeof(number)) || frame.type != WIRE_LEAVE)
		return NULL;
	rig_frame(fd, WIRE_LEFT, "", 0);
	return wire_get(&at, sizeof(number)) == 1 ? socket : NULL;
}

static _Thread_local bool clock_stands; /* for this thread */

int __real_clock_gettime(clockid_t id, struct timespec *now);
int __wrap_clock_gettime(clockid_t id, struct timespec *now);
int __wrap_clock_gettime(clockid_t id, struct timespec *now)
{
	static _Thread_local struct timespec last;

	if (!clock_stands || id != CLOCK_MONOTONIC)
		return __real_clock_gettime(id, now);
	if (!last.tv_sec)
		__real_clock_gettime(id, &last);
	*now = last;
	return 0;
}

/* The device is closed when the peer has answered: the time that it has for that never passes. */
static void leaves(void)
{
	uint8_t bytes[FAR_REQUEST_SIZE];
	struct wire_answer answer;
	uint16_t port = rig_on_as("tcp");
	int fd = mine_link(port, &answer);
	void *right = NULL;
	pthread_t other;

	request_write(bytes, 0);
	mine_send(answer.end.token, 0, WIRE_OPEN, "", 0);
	mine_send(answer.end.token, 1, WIRE_REQUEST, bytes, sizeof(bytes));
	CU_ASSERT_TRUE(unit_wait_for(mine_has_got, NULL, UNIT_PATIENCE));
	CU_ASSERT_EQUAL_FATAL(pthread_create(&other, NULL, leave_answer, &fd), 0);
	clock_stands = true;
	sv_runtime_release();
	clock_stands = false;
	CU_ASSERT_EQUAL(pthread_join(other, &right), 0);
	CU_ASSERT_PTR_NOT_NULL(right);
	CU_ASSERT_TRUE(rig_is_closed(fd));
	close(fd);
	calls()->close(mine.endpoint);
}

/* The child has no endpoint until it opens the device itself; the parent's is as before. */
static void forked(void)
{
	struct wire_answer answer;
	uint16_t port = rig_on_as("tcp");
	int fd = mine_link(port, &answer), status = -1;
	pid_t child;

	mine_send(answer.end.token, 0, WIRE_OPEN, "", 0);
	child = fork();
	if (!child) {
		bool right = !sv_fabric_endpoint_is_open() && !sv_far_progress(false);

		if (right && !PROCESS_TSAN && !PROCESS_ASAN) {
			right = !sv_runtime_hold(&sv_data_client) && sv_fabric_endpoint_is_open();
			sv_runtime_release();
		}
		_exit(right ? 0 : 1);
	}
	CU_ASSERT_EQUAL(waitpid(child, &status, 0), child);
	CU_ASSERT_EQUAL(status, 0);
	CU_ASSERT_TRUE(sv_fabric_endpoint_is_open());
	mine_send(answer.end.token + 1, 0, WIRE_OPEN, "", 0);
	CU_ASSERT_TRUE(unit_wait_for(one_is_dropped, NULL, UNIT_PATIENCE));
	close(fd);
	sv_runtime_release();
	calls()->close(mine.endpoint);
}

static const struct unit_test tests[] = {
	{ "messages are taken from those that were given a token", messages },
	{ "a request that comes by the link ends it", by_the_link },
	{ "messages are handled in the order in which they were sent", order },
	{ "a peer that leaves gets an answer when its messages were handled", peer_leaves },
	{ "a device is closed when its messages were handled", leaves },
	{ "a forked process leaves the endpoint alone", forked },
};

int main(int argc, char **argv)
{
	if (!rig_can() || !rig_has_libfabric())
		return 77;
	return unit_main("softverbs fabric endpoint", tests, sizeof(tests) / sizeof(tests[0]), argc,
			 argv);
}
