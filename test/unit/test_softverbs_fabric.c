/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* Links between hosts: the port, the proofs, what a stranger costs, the bytes. */
#include "softverbs/attend.h"
#include "softverbs/cm/cm.h"
#include "softverbs/fabric/data.h"
#include "softverbs/fabric/endpoint.h"
#include "softverbs/fabric/order.h"
#include "softverbs/fabric/transport.h"
#include "softverbs/link/engine.h"
#include "test/unit/fabric_rig.h"
#include "test/unit/process.h"
#include "util/clock.h"

static bool plugin_is_loaded(void)
{
	FILE *maps = fopen("/proc/self/maps", "re");
	bool loaded = false;
	char line[512];

	while (maps && fgets(line, sizeof(line), maps))
		loaded |= strstr(line, "libsoftverbs-fabric") != NULL;
	if (maps)
		fclose(maps);
	return loaded;
}

static void off_by_default(void)
{
	CU_ASSERT_EQUAL_FATAL(sv_runtime_hold(&sv_data_client), 0);
	CU_ASSERT_FALSE(sv_fabric_is_on());
	CU_ASSERT_FALSE(plugin_is_loaded());
	sv_runtime_release();
}

static void needs_a_key(void)
{
	setenv("SOFTVERBS_FABRIC", "link", 1);
	CU_ASSERT_EQUAL_FATAL(sv_runtime_hold(&sv_data_client), 0);
	CU_ASSERT_FALSE(sv_fabric_is_on());
	sv_runtime_release();
}

static void needs_a_way(void)
{
	setenv("SOFTVERBS_FABRIC", "no such provider", 1);
	setenv("SOFTVERBS_FABRIC_KEY", "none", 1);
	CU_ASSERT_EQUAL_FATAL(sv_runtime_hold(&sv_data_client), 0);
	CU_ASSERT_FALSE(sv_fabric_is_on());
	sv_runtime_release();
}

static void check_is_answered(void)
{
	struct wire_target target = { .kind = WIRE_TO_CHECK, .from_slot = 9, .end = rig_end };
	struct wire_answer answer;
	uint16_t port = rig_on();
	int fd = rig_dial(port);

	CU_ASSERT_EQUAL(rig_prove(fd, ""), WIRE_WELCOME);
	CU_ASSERT_EQUAL(rig_target(fd, &target, &answer), WIRE_LINKED);
	CU_ASSERT_EQUAL(answer.slot, sv_runtime_peer_id());
	close(fd);

	fd = rig_dial(port);
	CU_ASSERT_EQUAL(rig_prove(fd, ""), WIRE_WELCOME);
	target.kind = WIRE_TO_PORT;
	target.space = 0x106;
	target.port = 1;
	CU_ASSERT_EQUAL(rig_target(fd, &target, &answer), WIRE_ABSENT);
	close(fd);
	sv_runtime_release();
	CU_ASSERT_EQUAL(rig_dial(port), -1);
}

/* The same process again: one link is enough. */
static void one_link(void)
{
	struct wire_target target = {
		.kind = WIRE_TO_SLOT, .from_slot = 9, .from_nonce = { 1, 2 }, .end = rig_end
	};
	struct wire_answer answer;
	uint16_t port = rig_on();
	int first = rig_dial(port), second = rig_dial(port);

	target.slot = sv_runtime_peer_id();
	CU_ASSERT_EQUAL(rig_prove(first, ""), WIRE_WELCOME);
	CU_ASSERT_EQUAL(rig_target(first, &target, &answer), WIRE_LINKED);
	CU_ASSERT_EQUAL(rig_prove(second, ""), WIRE_WELCOME);
	CU_ASSERT_EQUAL(rig_target(second, &target, &answer), WIRE_ALREADY);
	close(first);
	close(second);
	sv_runtime_release();
}

static void strangers(void)
{
	uint8_t prelude[WIRE_PRELUDE] = { 0 }, garbage[WIRE_PRELUDE];
	uint32_t version;
	uint8_t nonce[WIRE_NONCE];
	uint16_t port = rig_on();
	uint64_t begin = clock_now();
	int silent = rig_dial(port), fd = rig_dial(port);

	memset(garbage, 'x', sizeof(garbage));
	rig_write(fd, garbage, sizeof(garbage));
	CU_ASSERT_TRUE(rig_is_closed(fd));
	close(fd);

	fd = rig_dial(port);
	CU_ASSERT_EQUAL(rig_prove(fd, "another key, which is long"), WIRE_WRONG_KEY);
	CU_ASSERT_TRUE(rig_is_closed(fd));
	close(fd);

	/* another version gets this one's prelude, and no more */
	fd = rig_dial(port);
	sv_wire_prelude_write(prelude, nonce);
	prelude[7]++;
	rig_write(fd, prelude, sizeof(prelude));
	CU_ASSERT_TRUE(rig_read(fd, prelude, sizeof(prelude)));
	CU_ASSERT_TRUE(sv_wire_prelude_read(prelude, &version, nonce));
	CU_ASSERT_EQUAL(version, WIRE_VERSION);
	CU_ASSERT_TRUE(rig_is_closed(fd));
	close(fd);

	/* proven, and then nonsense */
	fd = rig_dial(port);
	CU_ASSERT_EQUAL(rig_prove(fd, ""), WIRE_WELCOME);
	rig_write(fd, garbage, sizeof(garbage));
	CU_ASSERT_TRUE(rig_is_closed(fd));
	close(fd);

	/* one that says nothing is closed by and by, not at once */
	CU_ASSERT_TRUE(rig_is_closed(silent));
	CU_ASSERT_TRUE(clock_now() - begin >= NSEC_PER_SEC);
	close(silent);
	sv_runtime_release();
}

static void bytes(void)
{
	static const uint8_t expected[] = { 0,	3, 0x0a, 0xbc, 0, 0, 1, 6, 0x12, 0x34, 0,    9,
					    0,	0, 0,	 0,    0, 0, 0, 0, 0,	 0,    0xff, 0xff,
					    10, 0, 0,	 1,    1, 2, 3, 4, 5,	 6,    7,    8 };
	struct wire_target target = { .kind = WIRE_TO_PORT,
				      .slot = 0xabc,
				      .space = 0x106,
				      .port = 0x1234,
				      .from_slot = 9,
				      .address = { [10] = 0xff, 0xff, 10, 0, 0, 1 },
				      .from_nonce = { 0x0102030405060708, 0 },
				      .end = { .name = { "tcp", 3, 2, { 4, 5 } }, .token = 6 } },
			   back;
	uint8_t written[WIRE_TARGET_SIZE];

	sv_wire_target_write(written, &target);
	CU_ASSERT_EQUAL(memcmp(written, expected, sizeof(expected)), 0);
	CU_ASSERT_TRUE(sv_wire_target_read(written, sizeof(written), &back));
	CU_ASSERT_EQUAL(back.port, target.port);
	CU_ASSERT_EQUAL(back.from_nonce[0], target.from_nonce[0]);
	CU_ASSERT_EQUAL(memcmp(&back.end, &target.end, sizeof(back.end)), 0);
	CU_ASSERT_FALSE(sv_wire_target_read(written, sizeof(written) - 1, &back));
	written[1] = 9;
	CU_ASSERT_FALSE(sv_wire_target_read(written, sizeof(written), &back));
}

/* The end that an answer ends with: the kind goes into the log, the size bounds the address. */
static void ends(void)
{
	struct wire_answer answer = { .slot = 9, .end = { .name.kind = "x", .name.size = 128 } },
			   back;
	uint8_t written[WIRE_ANSWER_SIZE], *end = written + sizeof(written) - WIRE_END_SIZE;

	sv_wire_answer_write(written, &answer);
	CU_ASSERT_TRUE(sv_wire_answer_read(written, sizeof(written), &back));
	CU_ASSERT_EQUAL(back.end.name.size, 128);
	end[SV_KIND_MAX + 7]++;
	CU_ASSERT_FALSE(sv_wire_answer_read(written, sizeof(written), &back));
	end[SV_KIND_MAX + 7]--;
	end[1] = '\n';
	CU_ASSERT_FALSE(sv_wire_answer_read(written, sizeof(written), &back));
	memset(end, 'x', SV_KIND_MAX);
	CU_ASSERT_FALSE(sv_wire_answer_read(written, sizeof(written), &back));
	memset(end, 0, SV_KIND_MAX);
	CU_ASSERT_FALSE(sv_wire_answer_read(written, sizeof(written), &back));
}

/* A process that takes requests in another way is no peer: the answer names the way of this one. */
static void another_kind(void)
{
	struct wire_target target = { .kind = WIRE_TO_CHECK, .end.name.kind = "another" };
	struct wire_answer answer;
	uint16_t port = rig_on();
	int fd = rig_dial(port);

	CU_ASSERT_EQUAL(rig_prove(fd, ""), WIRE_WELCOME);
	CU_ASSERT_EQUAL(rig_target(fd, &target, &answer), WIRE_UNLIKE);
	CU_ASSERT_STRING_EQUAL(answer.end.name.kind, WIRE_KIND_LINK);
	close(fd);
	fd = rig_dial(port);
	target.kind = WIRE_TO_SLOT;
	target.slot = sv_runtime_peer_id();
	CU_ASSERT_EQUAL(rig_prove(fd, ""), WIRE_WELCOME);
	CU_ASSERT_EQUAL(rig_target(fd, &target, &answer), WIRE_UNLIKE);
	close(fd);
	sv_runtime_release();
}

static void headers(void)
{
	struct wire_frame frame = { .size = WIRE_FRAME_MAX, .type = WIRE_CM }, back;
	uint8_t written[WIRE_HEADER];

	sv_wire_header_write(written, &frame);
	CU_ASSERT_TRUE(sv_wire_header_read(written, &back));
	CU_ASSERT_EQUAL(back.size, WIRE_FRAME_MAX);
	CU_ASSERT_EQUAL(back.type, WIRE_CM);
	written[7] = 1; /* of the four bytes that are 0 */
	CU_ASSERT_FALSE(sv_wire_header_read(written, &back));
	frame.size++;
	sv_wire_header_write(written, &frame);
	CU_ASSERT_FALSE(sv_wire_header_read(written, &back));
	frame = (struct wire_frame){ .type = WIRE_TYPES };
	sv_wire_header_write(written, &frame);
	CU_ASSERT_FALSE(sv_wire_header_read(written, &back));
	frame.type = 0;
	sv_wire_header_write(written, &frame);
	CU_ASSERT_FALSE(sv_wire_header_read(written, &back));
}

static void requests(void)
{
	struct far_request request = { .dest = 0x123456,
				       .source = 0x654321,
				       .connection = 7,
				       .number = 0x01020304,
				       .opcode = IBV_WR_SEND,
				       .flags = FAR_SOLICITED,
				       .rnr_retry = 7,
				       .retry = 6,
				       .timeout = 19,
				       .length = 4 },
			   back;
	uint8_t frame[FAR_REQUEST_SIZE + 4] = { 0 };

	sv_far_request_write(frame, &request);
	CU_ASSERT_EQUAL(memcmp(frame, "\0\x12\x34\x56\0\x65\x43\x21\0\0\0\7\1\2\3\4", 16), 0);
	CU_ASSERT_TRUE(sv_far_request_read(frame, sizeof(frame), &back));
	CU_ASSERT_EQUAL(back.timeout, 19);
	CU_ASSERT_EQUAL(back.length, 4);
	/* a part that is longer than the whole; none of a whole that is not empty; half a header */
	request.length = 3;
	sv_far_request_write(frame, &request);
	CU_ASSERT_FALSE(sv_far_request_read(frame, sizeof(frame), &back));
	CU_ASSERT_FALSE(sv_far_request_read(frame, FAR_REQUEST_SIZE, &back));
	CU_ASSERT_FALSE(sv_far_request_read(frame, FAR_REQUEST_SIZE - 1, &back));
	request.offset = 4;
	sv_far_request_write(frame, &request);
	CU_ASSERT_FALSE(sv_far_request_read(frame, FAR_REQUEST_SIZE + 1, &back));
	/* a read has no payload; an opcode that goes over no wire */
	request = (struct far_request){ .opcode = IBV_WR_RDMA_READ, .length = 4 };
	sv_far_request_write(frame, &request);
	CU_ASSERT_TRUE(sv_far_request_read(frame, FAR_REQUEST_SIZE, &back));
	CU_ASSERT_FALSE(sv_far_request_read(frame, sizeof(frame), &back));
	request.opcode = IBV_WR_LOCAL_INV;
	sv_far_request_write(frame, &request);
	CU_ASSERT_FALSE(sv_far_request_read(frame, FAR_REQUEST_SIZE, &back));
}

static void answers(void)
{
	struct far_done done = { .status = FAR_NOT_READY, .number = 9 }, back;
	uint8_t frame[FAR_DONE_SIZE + 8] = { 0 };

	sv_far_done_write(frame, &done);
	CU_ASSERT_TRUE(sv_far_done_read(frame, FAR_DONE_SIZE, &back));
	CU_ASSERT_EQUAL(back.status, FAR_NOT_READY);
	CU_ASSERT_EQUAL(back.number, 9);
	CU_ASSERT_FALSE(sv_far_done_read(frame, sizeof(frame), &back));
	done = (struct far_done){ .length = 8 };
	sv_far_done_write(frame, &done);
	CU_ASSERT_TRUE(sv_far_done_read(frame, sizeof(frame), &back));
	done.status = 200;
	sv_far_done_write(frame, &done);
	CU_ASSERT_FALSE(sv_far_done_read(frame, sizeof(frame), &back));
}

static void cm_messages(void)
{
	struct sockaddr_in four = { .sin_family = AF_INET,
				    .sin_port = htons(7174),
				    .sin_addr.s_addr = htonl(0x0a4f0001) };
	struct cm_message message = { .kind = CM_MSG_REQ,
				      .from = 3,
				      .space = RDMA_PS_TCP,
				      .source.sin6_family = AF_INET6,
				      .source.sin6_addr = IN6ADDR_LOOPBACK_INIT,
				      .params = { .qpn = 0x123456, .retry_count = 5 },
				      .data = "hello" },
			  back;
	uint8_t wire[CM_WIRE_SIZE];

	memcpy(&message.target, &four, sizeof(four));
	sv_cm_wire_write(wire, &message);
	CU_ASSERT_EQUAL(memcmp(wire, "\0\0\0\1\0\0\0\0\0\0\0\3", 12), 0);
	CU_ASSERT_TRUE(sv_cm_wire_read(wire, sizeof(wire), &back));
	CU_ASSERT_EQUAL(memcmp(&back.target, &four, sizeof(four)), 0);
	CU_ASSERT_EQUAL(memcmp(&back.source, &message.source, sizeof(back.source)), 0);
	CU_ASSERT_EQUAL(back.params.qpn, 0x123456);
	CU_ASSERT_STRING_EQUAL((char *)back.data, "hello");
	CU_ASSERT_FALSE(sv_cm_wire_read(wire, sizeof(wire) - 1, &back));
	wire[3] = 8; /* no such kind */
	CU_ASSERT_FALSE(sv_cm_wire_read(wire, sizeof(wire), &back));
}

/* ---- an endpoint of the test's own, as a peer ---- */

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

static bool three_answers(void *unused)
{
	(void)unused;
	calls()->read(mine.endpoint);
	return mine.answers == 3;
}

/* The provider completes the third message first, then the second one. */
static void order(void)
{
	struct far_request request = { .source = 9u << 12 | 1, .opcode = IBV_WR_SEND };
	uint8_t bytes[FAR_REQUEST_SIZE];
	struct wire_answer answer;
	uint16_t port = rig_on_as("tcp");
	int fd = mine_link(port, &answer);

	request.dest = (uint32_t)sv_runtime_peer_id() << 12 | 7;
	mine_send(answer.end.token, 0, WIRE_OPEN, "", 0);
	for (request.number = 3; request.number; request.number--) {
		CU_ASSERT_EQUAL(mine.answers, 0);
		sv_far_request_write(bytes, &request);
		mine_send(answer.end.token, request.number, WIRE_REQUEST, bytes, sizeof(bytes));
	}
	CU_ASSERT_TRUE(unit_wait_for(three_answers, NULL, UNIT_PATIENCE));
	for (uint32_t i = 0; i < 3; i++)
		CU_ASSERT_EQUAL(mine.answered[i], i + 1);

	/* a number whose turn is over: the link ends */
	mine_send(answer.end.token, 3, WIRE_REQUEST, bytes, sizeof(bytes));
	CU_ASSERT_TRUE(rig_is_closed(fd));
	close(fd);
	sv_runtime_release();
	calls()->close(mine.endpoint);
}

/* Requests for a QP that is not there: without the token there is no answer, with it there is one. */
static void messages(void)
{
	struct far_request request = { .source = 9u << 12 | 1, .opcode = IBV_WR_SEND };
	uint8_t bytes[FAR_REQUEST_SIZE];
	const uint8_t *at = mine.arrived;
	struct wire_answer answer;
	struct wire_frame frame;
	struct far_done done;
	uint16_t port = rig_on_as("tcp");
	int fd = mine_link(port, &answer);

	request.dest = (uint32_t)sv_runtime_peer_id() << 12 | 7;
	sv_far_request_write(bytes, &request);
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
	CU_ASSERT_TRUE(rig_is_closed(fd));
	close(fd);
	sv_runtime_release();
	calls()->close(mine.endpoint);
}

/* The peer leaves after message 2. It is answered when that one was handled, which waits for message 1. */
static void peer_leaves(void)
{
	struct far_request request = { .source = 9u << 12 | 1, .opcode = IBV_WR_SEND };
	uint8_t bytes[FAR_REQUEST_SIZE], number[WIRE_LEAVE_SIZE];
	struct wire_answer answer;
	struct wire_frame frame;
	uint16_t port = rig_on_as("tcp");
	int fd = mine_link(port, &answer);
	struct pollfd poll_fd = { .fd = fd, .events = POLLIN };

	request.dest = (uint32_t)sv_runtime_peer_id() << 12 | 7;
	sv_far_request_write(bytes, &request);
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
	CU_ASSERT_TRUE(rig_is_closed(fd));
	close(fd);
	sv_runtime_release();
	calls()->close(mine.endpoint);
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

static uint64_t leaving(void *unused)
{
	struct far_request request = { .source = 9u << 12 | 1, .opcode = IBV_WR_SEND };
	uint8_t bytes[FAR_REQUEST_SIZE];
	struct wire_answer answer;
	uint16_t port = rig_on_as("tcp");
	int fd = mine_link(port, &answer);
	void *right = NULL;
	pthread_t other;
	uint64_t began;

	(void)unused;
	request.dest = (uint32_t)sv_runtime_peer_id() << 12 | 7;
	sv_far_request_write(bytes, &request);
	mine_send(answer.end.token, 0, WIRE_OPEN, "", 0);
	mine_send(answer.end.token, 1, WIRE_REQUEST, bytes, sizeof(bytes));
	CU_ASSERT_TRUE(unit_wait_for(mine_has_got, NULL, UNIT_PATIENCE));
	CU_ASSERT_EQUAL_FATAL(pthread_create(&other, NULL, leave_answer, &fd), 0);
	began = clock_now();
	sv_runtime_release();
	began = clock_now() - began;
	CU_ASSERT_EQUAL(pthread_join(other, &right), 0);
	CU_ASSERT_PTR_NOT_NULL(right);
	CU_ASSERT_TRUE(rig_is_closed(fd));
	close(fd);
	calls()->close(mine.endpoint);
	return began;
}

/* The device is closed when the peer has answered, not after the time that it has for that. */
static void leaves(void)
{
	CU_ASSERT_TRUE(unit_is_soon(leaving, NULL, 150 * NSEC_PER_MSEC));
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
	{ "without the setting no library is loaded", off_by_default },
	{ "without a key the fabric stays off", needs_a_key },
	{ "with a way that is none, too", needs_a_way },
	{ "a target is big-endian, and checked", bytes },
	{ "an end is checked", ends },
	{ "the header of a frame is checked", headers },
	{ "requests of QPs are checked", requests },
	{ "their answers, too", answers },
	{ "messages of rdma_cm keep addresses and data", cm_messages },
	{ "a check is answered; a port without a listener is absent", check_is_answered },
	{ "two processes have one link", one_link },
	{ "a process of another kind is refused", another_kind },
	{ "strangers are refused, each in its way", strangers },
	{ "messages are taken from those that were given a token", messages },
	{ "messages are handled in the order in which they were sent", order },
	{ "a peer that leaves gets an answer when its messages were handled", peer_leaves },
	{ "a device is closed when its messages were handled", leaves },
	{ "a forked process leaves the endpoint alone", forked },
};

int main(int argc, char **argv)
{
	size_t count = sizeof(tests) / sizeof(tests[0]);

	if (!rig_can())
		count = 1;
	else if (!rig_has_libfabric())
		count -= 5;
	return unit_main("softverbs fabric", tests, count, argc, argv);
}
