/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* The messages of the socket CM and the UD CM, compared with those of dapl 2.1.10. */
#include <string.h>
#include <infiniband/verbs.h>
#include "dapl/cm/message.h"
#include "test/unit/unit.h"

/* The first 64 bytes of a recorded request of dtest over the UD CM. */
static const unsigned char seen_req[64] = {
	0x00, 0x09, 0x00, 0x01, 0x00, 0x01, 0xb0, 0xc0, 0x00, 0xf7, 0x10, 0x01, 0x00,
	0xc5, 0x90, 0x01, 0x00, 0x30, 0x00, 0x00, 0x00, 0x00, 0x00, 0x01, 0x00, 0x00,
	0x00, 0x00, 0x04, 0x00, 0x00, 0x00, 0x05, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
	0x01, 0x00, 0xf7, 0x10, 0x02, 0xfe, 0x80, 0,	0,    0,    0,	  0,	0,
	0,    0,    0,	  0,	0,    0,    0,	  0x99, 0,    0,    0,	  0x02,
};

static void test_reference(void)
{
	struct cm_endpoint from = { .lid = 1, .qpn = 0xf71002, .qp_type = IBV_QPT_RC };
	struct cm_message message = { .ver = 9,
				      .op = CM_REQ,
				      .sport = 1,
				      .dport = 0xb0c0,
				      .sqpn = 0xf71001,
				      .dqpn = 0xc59001,
				      .p_size = 48,
				      .s_id = 1,
				      .rd_in = 4,
				      .mtu = IBV_MTU_4096 };
	unsigned char bytes[CM_HEADER];

	from.gid[0] = 0xfe;
	from.gid[1] = 0x80;
	from.gid[15] = 0x99;
	cm_endpoint_write(&from, message.saddr);
	cm_message_write(&message, bytes);
	CU_ASSERT_EQUAL(memcmp(bytes, seen_req, sizeof(seen_req)), 0);
}

static bool same_endpoint(const struct cm_endpoint *a, const struct cm_endpoint *b)
{
	return a->family == b->family && a->lid == b->lid && a->qpn == b->qpn &&
	       !memcmp(a->gid, b->gid, sizeof(a->gid)) && a->port == b->port && a->sl == b->sl &&
	       a->qp_type == b->qp_type;
}

static void test_round_trip(void)
{
	struct cm_endpoint endpoint = { .family = 10,
					.lid = 0xbfff,
					.qpn = 0xfedcba,
					.gid = { 1, 2, 3, [15] = 16 },
					.port = 0x8001,
					.sl = 15,
					.qp_type = 4 },
			   read_endpoint;
	struct cm_message message = { .ver = 0x0102,
				      .op = 0x0304,
				      .sport = 0xabcdef,
				      .dport = 0x123456,
				      .sqpn = 0x01020304,
				      .dqpn = 0xf0e0d0c0,
				      .p_size = 0xfffe,
				      .s_id = 0x89abcdef,
				      .d_id = 0x76543210,
				      .rd_in = 0xfd,
				      .rtns = 0xfc,
				      .mtu = 0xfb },
			  back;
	unsigned char bytes[CM_HEADER], again[CM_HEADER];

	cm_endpoint_write(&endpoint, message.saddr);
	memset(message.daddr, 0x5a, sizeof(message.daddr));
	cm_message_write(&message, bytes);
	cm_message_read(&back, bytes);
	CU_ASSERT_EQUAL(back.ver, message.ver);
	CU_ASSERT_EQUAL(back.op, message.op);
	CU_ASSERT_EQUAL(back.sport, message.sport);
	CU_ASSERT_EQUAL(back.dport, message.dport);
	CU_ASSERT_EQUAL(back.sqpn, message.sqpn);
	CU_ASSERT_EQUAL(back.dqpn, message.dqpn);
	CU_ASSERT_EQUAL(back.p_size, message.p_size);
	CU_ASSERT_EQUAL(back.s_id, message.s_id);
	CU_ASSERT_EQUAL(back.d_id, message.d_id);
	CU_ASSERT_EQUAL(back.rd_in, message.rd_in);
	CU_ASSERT_EQUAL(back.rtns, message.rtns);
	CU_ASSERT_EQUAL(back.mtu, message.mtu);
	CU_ASSERT_EQUAL(memcmp(back.daddr, message.daddr, CM_ENDPOINT), 0);
	cm_endpoint_read(&read_endpoint, back.saddr);
	CU_ASSERT_TRUE(same_endpoint(&read_endpoint, &endpoint));
	cm_message_write(&back, again);
	CU_ASSERT_EQUAL(memcmp(bytes, again, sizeof(bytes)), 0);
}

/* The number of bytes that a stream's reader needs, and the offset of the data. */
static void test_frames(void)
{
	static const struct {
		unsigned ver, size;
		int needed, at; /* -1: refused */
	} rows[] = {
		{ 5, 0, -1, 0 },	 { 6, 118, 268, 150 }, { 7, 0, 150, 150 },
		{ 7, 119, -1, 0 },	 { 8, 0, 148, 148 },   { 8, 68, 216, 148 },
		{ 9, 1, 149, 148 },	 { 9, 68, 216, 148 },  { 9, 69, -1, 0 },
		{ 9, 0xffff, -1, 0 },	 { 7, 0xffff, -1, 0 }, { 10, 68, 216, 148 },
		{ 0xffff, 0, 148, 148 }, { 0, 0, -1, 0 },
	};
	unsigned char bytes[CM_MESSAGE_MAX] = { 0 };
	const unsigned char *data;
	struct cm_message message;
	size_t i;

	CU_ASSERT_EQUAL(cm_frame_read(bytes, 0, &message, &data), CM_HEADER);
	CU_ASSERT_EQUAL(cm_frame_read(bytes, CM_HEADER - 1, &message, &data), CM_HEADER);
	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		memset(bytes, 0, sizeof(bytes));
		message = (struct cm_message){ .ver = (uint16_t)rows[i].ver,
					       .p_size = (uint16_t)rows[i].size };
		cm_message_write(&message, bytes);
		data = NULL;
		CU_ASSERT_EQUAL(cm_frame_read(bytes, CM_HEADER, &message, &data), rows[i].needed);
		if (rows[i].needed < 0)
			continue;
		CU_ASSERT_TRUE(rows[i].needed == CM_HEADER || !data);
		CU_ASSERT_EQUAL(cm_frame_read(bytes, (size_t)rows[i].needed, &message, &data),
				rows[i].needed);
		CU_ASSERT_PTR_EQUAL(data, bytes + rows[i].at);
	}
}

/* Both forms, with zeros before the data. */
static void test_forms(void)
{
	struct cm_message message = { .ver = 9, .op = CM_REQ, .p_size = CM_DATA };
	unsigned char data[CM_DATA], bytes[CM_MESSAGE_MAX];

	memset(data, 0xa5, sizeof(data));
	memset(bytes, 0xff, sizeof(bytes));
	CU_ASSERT_EQUAL(cm_frame_write(&message, data, CM_HEADER, bytes), CM_HEADER + CM_DATA);
	CU_ASSERT_EQUAL(memcmp(bytes + CM_HEADER, data, CM_DATA), 0);
	memset(bytes, 0xff, sizeof(bytes));
	CU_ASSERT_EQUAL(cm_frame_write(&message, data, CM_HEADER_OLD, bytes),
			CM_HEADER_OLD + CM_DATA);
	CU_ASSERT_EQUAL(bytes[CM_HEADER], 0);
	CU_ASSERT_EQUAL(bytes[CM_HEADER + 1], 0);
	CU_ASSERT_EQUAL(memcmp(bytes + CM_HEADER_OLD, data, CM_DATA), 0);
}

static const struct unit_test tests[] = {
	{ "message: the bytes are those of dapl 2.1.10", test_reference },
	{ "message: a written message is parsed back", test_round_trip },
	{ "message: the length depends on version and private data", test_frames },
	{ "message: both forms are parsed", test_forms },
};

UNIT_MAIN("scm_message", tests)
