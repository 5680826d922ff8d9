/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* RDMA writes with immediate data over the software device. */
#include <dat2/dat_ib_extensions.h>
#include <string.h>
#include "test/unit/two_ends.h"

static void setup_connected(void)
{
	setup();
	connect_pair(&a, &b);
}

static DAT_RETURN write_immed(DAT_COUNT count, DAT_LMR_TRIPLET *list, DAT_UINT32 data,
			      DAT_RMR_CONTEXT rkey)
{
	DAT_RMR_TRIPLET remote = { (uintptr_t)env.memory + 4096, 1, rkey };

	return dat_ib_post_rdma_write_immed(a.ep, count, list, (DAT_DTO_COOKIE){ .as_64 = 7 },
					    &remote, data, 0);
}

static void expect_extended(DAT_EVD_HANDLE evd, uint64_t cookie, int operation, int type,
			    DAT_SEG_LENGTH length, DAT_UINT32 immediate)
{
	const DAT_DTO_COMPLETION_EVENT_DATA *dto;
	const DAT_IB_EXTENSION_EVENT_DATA *data;
	DAT_EVENT event;

	memset(&event, 0, sizeof(event));
	if (!event_next(evd, &event))
		return;
	dto = &event.event_data.dto_completion_event_data;
	data = (const DAT_IB_EXTENSION_EVENT_DATA *)event.event_extension_data;
	CU_ASSERT_EQUAL((int)event.event_number, DAT_IB_DTO_EVENT);
	CU_ASSERT_EQUAL(dto->user_cookie.as_64, cookie);
	CU_ASSERT_EQUAL(dto->status, DAT_DTO_SUCCESS);
	CU_ASSERT_EQUAL((int)dto->operation, operation);
	CU_ASSERT_EQUAL(dto->transfered_length, length);
	CU_ASSERT_EQUAL((int)data->type, type);
	CU_ASSERT_EQUAL(data->status, DAT_OP_SUCCESS);
	CU_ASSERT_EQUAL(data->val.immed.data, immediate);
}

static void round_trip(DAT_UINT32 immediate, DAT_COUNT count, DAT_SEG_LENGTH length)
{
	DAT_LMR_TRIPLET none, from[2] = { segment(&env, 0, 100), segment(&env, 200, length - 100) };

	memset(&none, 0, sizeof(none));
	memset(env.memory, (int)(immediate | 1), 4096);
	memset(env.memory + 4096, 0, 4096);
	/* the receive gets no data in its buffer */
	MUST(dat_ep_post_recv(b.ep, 1, &none, (DAT_DTO_COOKIE){ .as_64 = 8 }, 0));
	MUST(write_immed(count, from, immediate, env.rkey));
	length = count ? length : 0;
	expect_extended(a.request, 7, DAT_IB_DTO_RDMA_WRITE_IMMED, DAT_IB_RDMA_WRITE_IMMED, length,
			0);
	expect_extended(b.recv, 8, DAT_IB_DTO_RECV_IMMED, DAT_IB_RDMA_WRITE_IMMED_DATA, length,
			immediate);
	CU_ASSERT_EQUAL(memcmp(env.memory, env.memory + 4096, length), 0);
	CU_ASSERT_EQUAL(env.memory[4096 + length], 0);
}

static void test_round_trips(void)
{
	static const DAT_UINT32 values[] = { 0, 1, 0x01020304, 0xffffffff };
	size_t i;

	setup_connected();
	for (i = 0; i < COUNT(values); i++)
		round_trip(values[i], 2, 1000);
	round_trip(5, 0, 100);
	teardown();
}

static void test_refused(void)
{
	DAT_LMR_TRIPLET from;
	DAT_EVENT event;

	setup_connected();
	from = segment(&env, 0, 10);
	MUST(try_recv(&b, 1));
	MUST(write_immed(1, &from, 1, env.rkey ^ 0x10000));
	memset(&event, 0, sizeof(event));
	CU_ASSERT_TRUE(event_next(a.request, &event));
	CU_ASSERT_EQUAL((int)event.event_number, DAT_IB_DTO_EVENT);
	CU_ASSERT_EQUAL(event.event_data.dto_completion_event_data.status,
			DAT_DTO_ERR_REMOTE_ACCESS);
	CU_ASSERT_EQUAL(((DAT_IB_EXTENSION_EVENT_DATA *)event.event_extension_data)->status,
			DAT_IB_OP_ERR);
	/* the receive was not consumed */
	expect_dto(b.recv, b.ep, 1, DAT_DTO_ERR_FLUSHED);
	expect(a.conn, DAT_CONNECTION_EVENT_BROKEN, a.ep);
	teardown();
}

static const struct unit_test tests[] = {
	{ "immediate data keeps its bytes, with and without a payload", test_round_trips },
	{ "a write that is refused uses up no receive", test_refused },
};

UNIT_MAIN("ext_immed", tests)
