/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* Extension operations: which exist, the checks of the posts, and the resulting events. */
#include <dat2/dat_ib_extensions.h>
#include "test/unit/rig.h"

static DAT_LMR_TRIPLET local = { 0x1000, 8, 0x10 };
static DAT_RMR_TRIPLET remote = { 0x5000, 8, 0x99 };
static const DAT_DTO_COOKIE cookie = { .as_64 = 0x1122334455667788 };

#define ADD(ep, l, r, flags)	  dat_ib_post_fetch_and_add(ep, 5, l, cookie, r, flags)
#define SWAP(ep, l, r, flags)	  dat_ib_post_cmp_and_swap(ep, 6, 7, l, cookie, r, flags)
#define IMMED(ep, n, l, r, flags) dat_ib_post_rdma_write_immed(ep, n, l, cookie, r, 0x7777, flags)

static void open_connected(struct rig *rig)
{
	DAT_EP_ATTR attr = rig_attr();

	rig_open(rig, &attr);
	rig_connect(rig);
}

static const DAT_IB_EXTENSION_EVENT_DATA *extension(const DAT_EVENT *event)
{
	CU_ASSERT_EQUAL((int)event->event_number, DAT_IB_DTO_EVENT);
	return (const DAT_IB_EXTENSION_EVENT_DATA *)event->event_extension_data;
}

static void expect_extended(DAT_EVD_HANDLE evd, DAT_DTO_COMPLETION_STATUS status, int operation,
			    int type, DAT_SEG_LENGTH length, DAT_UINT32 immediate)
{
	DAT_EVENT event = rig_take(evd);
	const DAT_IB_EXTENSION_EVENT_DATA *data = extension(&event);
	const DAT_DTO_COMPLETION_EVENT_DATA *dto = &event.event_data.dto_completion_event_data;

	CU_ASSERT_EQUAL(dto->user_cookie.as_64, cookie.as_64);
	CU_ASSERT_EQUAL(dto->status, status);
	CU_ASSERT_EQUAL((int)dto->operation, operation);
	CU_ASSERT_EQUAL(dto->transfered_length, length);
	CU_ASSERT_EQUAL((int)data->type, type);
	CU_ASSERT_EQUAL(data->status, status == DAT_DTO_SUCCESS ? DAT_OP_SUCCESS : DAT_IB_OP_ERR);
	CU_ASSERT_EQUAL(data->val.immed.data, immediate);
	CU_ASSERT_PTR_NULL(data->remote_ah.ah);
	CU_ASSERT_EQUAL(data->context.as_64, 0);
}

static void test_what_there_is_not(void)
{
	struct rig rig;
	int op;

	open_connected(&rig);
	for (op = DAT_IB_COLLECTIVE_CREATE_MEMBER_OP; op <= DAT_IB_COLLECTIVE_BARRIER_OP; op++)
		IS(dat_extension_op(rig.ep, op), E0(NOT_IMPLEMENTED));
	IS(dat_extension_op(rig.ep, 0x4fff), E0(NOT_IMPLEMENTED));
	IS(dat_extension_op(rig.ia, -1), E0(NOT_IMPLEMENTED));
	rig_close(&rig);
}

static void test_handles(void)
{
	struct rig rig;

	open_connected(&rig);
	IS(ADD(rig.pz, &local, &remote, 0), E(INVALID_HANDLE, INVALID_HANDLE_EP));
	IS(SWAP(rig.ia, &local, &remote, 0), E(INVALID_HANDLE, INVALID_HANDLE_EP));
	IS(IMMED(rig.conn, 1, &local, &remote, 0), E(INVALID_HANDLE, INVALID_HANDLE_EP));
	IS(dat_ib_post_send_ud(rig.ep, 1, &local, NULL, cookie, 0),
	   E(INVALID_HANDLE, INVALID_HANDLE_EP));
	rig_close(&rig);
}

static void test_atomic_checks(void)
{
	DAT_LMR_TRIPLET little = { 0x1000, 7, 0x10 };
	DAT_RMR_TRIPLET odd = { 0x5004, 8, 0x99 };
	struct rig rig;

	open_connected(&rig);
	IS(ADD(rig.ep, NULL, &remote, 0), E(INVALID_PARAMETER, INVALID_ARG3));
	IS(SWAP(rig.ep, NULL, &remote, 0), E(INVALID_PARAMETER, INVALID_ARG4));
	IS(ADD(rig.ep, &little, &remote, 0), E(INVALID_PARAMETER, INVALID_ARG3));
	IS(SWAP(rig.ep, &little, &remote, 0), E(INVALID_PARAMETER, INVALID_ARG4));
	IS(ADD(rig.ep, &local, NULL, 0), E(INVALID_PARAMETER, INVALID_ARG5));
	IS(SWAP(rig.ep, &local, NULL, 0), E(INVALID_PARAMETER, INVALID_ARG6));
	IS(ADD(rig.ep, &local, &odd, 0), E(INVALID_PARAMETER, INVALID_ARG5));
	IS(SWAP(rig.ep, &local, &odd, 0), E(INVALID_PARAMETER, INVALID_ARG6));
	IS(ADD(rig.ep, &local, &remote, 0x80), E(INVALID_PARAMETER, INVALID_ARG6));
	IS(SWAP(rig.ep, &local, &remote, DAT_COMPLETION_UNSIGNALLED_FLAG),
	   E(INVALID_PARAMETER, INVALID_ARG7));
	fake.devices[0].attr.atomics = false;
	IS(ADD(rig.ep, &local, &remote, 0), E0(MODEL_NOT_SUPPORTED));
	IS(SWAP(rig.ep, &local, &remote, 0), E0(MODEL_NOT_SUPPORTED));
	CU_ASSERT_EQUAL(fake.posts, 0);
	rig_close(&rig);
}

static void test_immed_checks(void)
{
	DAT_LMR_TRIPLET large[2] = { { 0x1000, FAKE_MAX_MESSAGE, 1 }, { 0x1000, 1, 1 } };
	struct rig rig;

	open_connected(&rig);
	IS(IMMED(rig.ep, -1, &local, &remote, 0), E(INVALID_PARAMETER, INVALID_ARG2));
	IS(IMMED(rig.ep, 4, &local, &remote, 0), E(INVALID_PARAMETER, INVALID_ARG2));
	IS(IMMED(rig.ep, 1, NULL, &remote, 0), E(INVALID_PARAMETER, INVALID_ARG3));
	IS(IMMED(rig.ep, 1, &local, NULL, 0x80), E(INVALID_PARAMETER, INVALID_ARG5));
	IS(IMMED(rig.ep, 1, &local, &remote, 0x80), E(INVALID_PARAMETER, INVALID_ARG7));
	IS(IMMED(rig.ep, 2, large, &remote, 0), E(INVALID_PARAMETER, INVALID_ARG3));
	fake.devices[0].attr.iwarp = true;
	IS(IMMED(rig.ep, 1, &local, &remote, 0), E0(MODEL_NOT_SUPPORTED));
	CU_ASSERT_EQUAL(fake.posts, 0);
	rig_close(&rig);
}

static void test_states(void)
{
	DAT_EP_ATTR attr = rig_attr();
	struct rig rig;

	rig_open(&rig, &attr);
	IS(ADD(rig.ep, &local, &remote, 0), E(INVALID_STATE, INVALID_STATE_EP_UNCONNECTED));
	IS(IMMED(rig.ep, 0, NULL, &remote, 0), E(INVALID_STATE, INVALID_STATE_EP_UNCONNECTED));
	rig_start_connect(&rig);
	IS(SWAP(rig.ep, &local, &remote, 0), E(INVALID_STATE, INVALID_STATE_EP_ACTCONNPENDING));
	rig_establish();
	rig_take(rig.conn);
	fake.upcalls.conn(rig.ep, fake.conn, IB_CONN_DISCONNECTED, NULL, 0);
	rig_take(rig.conn);
	/* this one will be flushed */
	MUST(ADD(rig.ep, &local, &remote, 0));
	rig_close(&rig);
}

static void test_full(void)
{
	struct rig rig;
	int i;

	open_connected(&rig);
	for (i = 0; i < 8; i++)
		MUST(ADD(rig.ep, &local, &remote, 0));
	IS(SWAP(rig.ep, &local, &remote, 0), E(INSUFFICIENT_RESOURCES, RESOURCE_MEMORY));
	IS(IMMED(rig.ep, 0, NULL, &remote, 0), E(INSUFFICIENT_RESOURCES, RESOURCE_MEMORY));
	rig_complete(rig.request, fake.last.wr_id, DAT_DTO_SUCCESS, 0);
	rig_take(rig.request);
	fake.refuse = E0(INTERNAL_ERROR);
	IS(SWAP(rig.ep, &local, &remote, 0), E0(INTERNAL_ERROR));
	for (i = 0; i < 8; i++)
		MUST(IMMED(rig.ep, 0, NULL, &remote, 0));
	rig_close(&rig);
}

static void test_at_the_device(void)
{
	DAT_LMR_TRIPLET larger = { 0x1000, 100, 0x10 };
	DAT_LMR_TRIPLET holed[3] = { { 0x1000, 3, 1 }, { 0, 0, 0 }, { 0x2000, 4, 2 } };
	struct rig rig;

	open_connected(&rig);
	MUST(ADD(rig.ep, &larger, &remote, DAT_COMPLETION_BARRIER_FENCE_FLAG));
	CU_ASSERT_EQUAL(fake.last.op, IB_OP_ADD);
	CU_ASSERT_EQUAL(fake.last.flags, IB_POST_SIGNALED | IB_POST_FENCE);
	CU_ASSERT_EQUAL(fake.last.count, 1);
	CU_ASSERT_EQUAL(fake.last.segments[0].segment_length, 8);
	CU_ASSERT_EQUAL(fake.last.operand, 5);
	CU_ASSERT_EQUAL(fake.last.remote->virtual_address, 0x5000);
	/*
	 * the peer gets no message, so SOLICITED has no meaning; the result is read, so INLINE has
	 * none
	 */
	MUST(SWAP(rig.ep, &local, &remote, DAT_COMPLETION_SOLICITED_WAIT_FLAG));
	CU_ASSERT_EQUAL(fake.last.op, IB_OP_SWAP);
	CU_ASSERT_EQUAL(fake.last.flags, IB_POST_SIGNALED);
	CU_ASSERT_EQUAL(fake.last.operand, 6);
	CU_ASSERT_EQUAL(fake.last.swap, 7);
	MUST(IMMED(rig.ep, 3, holed, &remote,
		   DAT_COMPLETION_SOLICITED_WAIT_FLAG | DAT_COMPLETION_SUPPRESS_FLAG));
	CU_ASSERT_EQUAL(fake.last.op, IB_OP_WRITE_IMM);
	CU_ASSERT_EQUAL(fake.last.flags, IB_POST_SOLICITED | IB_POST_INLINE);
	CU_ASSERT_EQUAL(fake.last.count, 2);
	CU_ASSERT_EQUAL(fake.last.segments[1].virtual_address, 0x2000);
	CU_ASSERT_EQUAL(fake.last.word, 0x7777);
	rig_close(&rig);
}

static void test_requests_complete(void)
{
	DAT_LMR_TRIPLET two[2] = { { 0x1000, 100, 1 }, { 0x2000, 23, 1 } };
	DAT_EVENT event;
	struct rig rig;

	open_connected(&rig);
	MUST(ADD(rig.ep, &local, &remote, 0));
	rig_complete(rig.request, fake.last.wr_id, DAT_DTO_SUCCESS, 999);
	expect_extended(rig.request, DAT_DTO_SUCCESS, DAT_IB_DTO_FETCH_ADD, DAT_IB_FETCH_AND_ADD, 8,
			0);
	MUST(SWAP(rig.ep, &local, &remote, 0));
	rig_complete(rig.request, fake.last.wr_id, DAT_DTO_SUCCESS, 999);
	expect_extended(rig.request, DAT_DTO_SUCCESS, DAT_IB_DTO_CMP_SWAP, DAT_IB_CMP_AND_SWAP, 8,
			0);
	MUST(IMMED(rig.ep, 2, two, &remote, 0));
	rig_complete(rig.request, fake.last.wr_id, DAT_DTO_SUCCESS, 999);
	expect_extended(rig.request, DAT_DTO_SUCCESS, DAT_IB_DTO_RDMA_WRITE_IMMED,
			DAT_IB_RDMA_WRITE_IMMED, 123, 0);
	MUST(IMMED(rig.ep, 2, two, &remote, DAT_COMPLETION_SUPPRESS_FLAG));
	rig_complete(rig.request, fake.last.wr_id, DAT_DTO_SUCCESS, 0);
	IS(dat_evd_dequeue(rig.request, &event), DAT_QUEUE_EMPTY);
	MUST(IMMED(rig.ep, 0, NULL, &remote, DAT_COMPLETION_SUPPRESS_FLAG));
	rig_complete(rig.request, fake.last.wr_id, DAT_DTO_ERR_FLUSHED, 0);
	expect_extended(rig.request, DAT_DTO_ERR_FLUSHED, DAT_IB_DTO_RDMA_WRITE_IMMED,
			DAT_IB_RDMA_WRITE_IMMED, 0, 0);
	MUST(ADD(rig.ep, &local, &remote, 0));
	rig_complete(rig.request, fake.last.wr_id, DAT_DTO_ERR_REMOTE_ACCESS, 0);
	expect_extended(rig.request, DAT_DTO_ERR_REMOTE_ACCESS, DAT_IB_DTO_FETCH_ADD,
			DAT_IB_FETCH_AND_ADD, 0, 0);
	fake_run_timers();
	CU_ASSERT_EQUAL(rig_take(rig.conn).event_number, DAT_CONNECTION_EVENT_BROKEN);
	rig_close(&rig);
}

static void test_receives_with_immediate_data(void)
{
	DAT_EVENT event;
	struct rig rig;

	open_connected(&rig);
	MUST(rig_recv(&rig, cookie.as_64));
	fake_complete(rig_cq(rig.recv),
		      &(struct ib_completion){ .wr_id = fake.last.wr_id,
					       .flags = IB_WITH_IMMEDIATE,
					       .opcode = IB_RECV_WRITE,
					       .byte_len = 40,
					       .immediate = 0xffffffff },
		      false);
	expect_extended(rig.recv, DAT_DTO_SUCCESS, DAT_IB_DTO_RECV_IMMED,
			DAT_IB_RDMA_WRITE_IMMED_DATA, 40, 0xffffffff);
	MUST(rig_recv(&rig, cookie.as_64));
	fake_complete(rig_cq(rig.recv),
		      &(struct ib_completion){ .wr_id = fake.last.wr_id,
					       .flags = IB_WITH_IMMEDIATE,
					       .opcode = IB_RECV_WRITE - 1,
					       .byte_len = 41,
					       .immediate = 1 },
		      false);
	expect_extended(rig.recv, DAT_DTO_SUCCESS, DAT_IB_DTO_RECV_MSG_IMMED,
			DAT_IB_RECV_IMMED_DATA, 41, 1);
	MUST(rig_recv(&rig, cookie.as_64));
	rig_complete(rig.recv, fake.last.wr_id, DAT_DTO_ERR_FLUSHED, 0);
	event = rig_take(rig.recv);
	CU_ASSERT_EQUAL(event.event_number, DAT_DTO_COMPLETION_EVENT);
	CU_ASSERT_EQUAL(event.event_data.dto_completion_event_data.operation, DAT_DTO_RECEIVE);
	rig_close(&rig);
}

static const char *named(DAT_IA_HANDLE ia, const char *name)
{
	DAT_PROVIDER_ATTR attr;
	DAT_COUNT i;

	MUST(dat_ia_query(ia, NULL, 0, NULL, DAT_PROVIDER_FIELD_ALL, &attr));
	for (i = 0; i < attr.num_provider_specific_attr; i++)
		if (!strcmp(attr.provider_specific_attr[i].name, name))
			return attr.provider_specific_attr[i].value;
	return "absent";
}

static void test_attributes(void)
{
	DAT_IA_ATTR attr;
	struct rig rig;

	rig_open(&rig, NULL);
	MUST(dat_ia_query(rig.ia, NULL, DAT_IA_FIELD_ALL, &attr, 0, NULL));
	CU_ASSERT_EQUAL(attr.extension_supported, DAT_EXTENSION_IB);
	CU_ASSERT_EQUAL(attr.extension_version, 209);
	CU_ASSERT_STRING_EQUAL(named(rig.ia, "DAT_EXTENSION_INTERFACE"), "TRUE");
	CU_ASSERT_STRING_EQUAL(named(rig.ia, "DAT_IB_FETCH_AND_ADD"), "TRUE");
	CU_ASSERT_STRING_EQUAL(named(rig.ia, "DAT_IB_CMP_AND_SWAP"), "TRUE");
	CU_ASSERT_STRING_EQUAL(named(rig.ia, "DAT_IB_IMMED_DATA"), "TRUE");
	CU_ASSERT_STRING_EQUAL(named(rig.ia, "DAT_IB_UD"), "absent");
	CU_ASSERT_STRING_EQUAL(named(rig.ia, "DAT_COLL_BARRIER"), "absent");
	rig_close(&rig);
}

static const struct unit_test tests[] = {
	{ "collectives and unknown operations are refused", test_what_there_is_not },
	{ "handles", test_handles },
	{ "atomics, each check", test_atomic_checks },
	{ "write with immediate data, each check", test_immed_checks },
	{ "states", test_states },
	{ "a full queue and a refusing device are reported", test_full },
	{ "requests reach the device with their operands", test_at_the_device },
	{ "completions and failures make extension events", test_requests_complete },
	{ "receives with immediate data make extension events", test_receives_with_immediate_data },
	{ "attributes", test_attributes },
};

UNIT_MAIN("ext", tests)
