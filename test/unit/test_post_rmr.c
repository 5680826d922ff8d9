/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* Sends that invalidate, and reads into an RMR: every check, and what reaches the device. */
#include "test/unit/rig.h"

static DAT_LMR_TRIPLET iov[2] = { { 0x1000, FAKE_MAX_MESSAGE, 1 }, { 0x2000, 1, 1 } };
static const DAT_DTO_COOKIE cookie = { .as_64 = 1 };

static DAT_RETURN post(struct rig *rig, DAT_COUNT count, DAT_LMR_TRIPLET *list,
		       DAT_COMPLETION_FLAGS flags, DAT_BOOLEAN invalidate)
{
	return dat_ep_post_send_with_invalidate(rig->ep, count, list, cookie, flags, invalidate,
						0x777);
}

static void test_checks(void)
{
	DAT_EP_ATTR attr = rig_attr();
	struct rig rig;

	rig_open(&rig, &attr);
	IS(post(&rig, 0, NULL, 0, DAT_TRUE), E(INVALID_STATE, INVALID_STATE_EP_UNCONNECTED));
	rig_connect(&rig);
	IS(dat_ep_post_send_with_invalidate(rig.pz, 0, NULL, cookie, 0, DAT_TRUE, 1),
	   E(INVALID_HANDLE, INVALID_HANDLE_EP));
	IS(post(&rig, -1, iov, 0, DAT_TRUE), E(INVALID_PARAMETER, INVALID_ARG2));
	IS(post(&rig, 5, iov, 0, DAT_TRUE), E(INVALID_PARAMETER, INVALID_ARG2));
	IS(post(&rig, 1, NULL, 0, DAT_TRUE), E(INVALID_PARAMETER, INVALID_ARG3));
	IS(post(&rig, 0, NULL, 0x80, DAT_TRUE), E(INVALID_PARAMETER, INVALID_ARG5));
	IS(post(&rig, 2, iov, 0, DAT_TRUE), E(INVALID_PARAMETER, INVALID_ARG3));
	fake.devices[0].attr.mem_extensions = fake.devices[0].attr.mw_type2 = false;
	IS(post(&rig, 0, NULL, 0, DAT_TRUE), E0(MODEL_NOT_SUPPORTED));
	IS(post(&rig, 0, NULL, 0, DAT_FALSE), E0(MODEL_NOT_SUPPORTED));
	rig_close(&rig);
}

static void test_at_the_device(void)
{
	DAT_EP_ATTR attr = rig_attr();
	DAT_EVENT event;
	struct rig rig;

	rig_open(&rig, &attr);
	rig_connect(&rig);
	MUST(post(&rig, 1, iov + 1, DAT_COMPLETION_SOLICITED_WAIT_FLAG, DAT_TRUE));
	CU_ASSERT_EQUAL(fake.last.op, IB_OP_SEND_INV);
	CU_ASSERT_EQUAL(fake.last.flags, IB_POST_SIGNALED | IB_POST_SOLICITED | IB_POST_INLINE);
	CU_ASSERT_EQUAL(fake.last.word, 0x777);
	CU_ASSERT_EQUAL(fake.last.segments[0].virtual_address, 0x2000);
	rig_complete(rig.request, fake.last.wr_id, DAT_DTO_SUCCESS, 0);
	event = rig_take(rig.request);
	CU_ASSERT_EQUAL(event.event_number, DAT_DTO_COMPLETION_EVENT);
	CU_ASSERT_EQUAL(event.event_data.dto_completion_event_data.operation, DAT_DTO_SEND);
	CU_ASSERT_EQUAL(event.event_data.dto_completion_event_data.transfered_length, 1);
	MUST(post(&rig, 0, NULL, 0, DAT_FALSE));
	CU_ASSERT_EQUAL(fake.last.op, IB_OP_SEND);
	rig_close(&rig);
}

static void test_read_to_rmr(void)
{
	DAT_RMR_TRIPLET triplet = { 0x1000, 1, 2 };
	DAT_EP_ATTR attr = rig_attr();
	struct rig rig;

	rig_open(&rig, &attr);
	IS(dat_ep_post_rdma_read_to_rmr(rig.pz, &triplet, cookie, &triplet, 0),
	   E(INVALID_HANDLE, INVALID_HANDLE_EP));
	IS(dat_ep_post_rdma_read_to_rmr(rig.ep, &triplet, cookie, &triplet, 0),
	   E0(MODEL_NOT_SUPPORTED));
	rig_close(&rig);
}

static const struct unit_test tests[] = {
	{ "a send that invalidates: each check", test_checks },
	{ "a send that invalidates reaches the device", test_at_the_device },
	{ "a read into an RMR: each check, and the device's request", test_read_to_rmr },
};

UNIT_MAIN("post_rmr", tests)
