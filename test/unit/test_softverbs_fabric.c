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
};

int main(int argc, char **argv)
{
	size_t count = sizeof(tests) / sizeof(tests[0]);

	return unit_main("softverbs fabric", tests, rig_can() ? count : 1, argc, argv);
}
