/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* Posting: the checks in their order, and the request that reaches the device. */
#include "test/unit/rig.h"

static DAT_LMR_TRIPLET iov[8];
static DAT_RMR_TRIPLET remote = { 0x5000, 64, 0x99 };
static const DAT_DTO_COOKIE cookie = { .as_64 = 1 };

static DAT_LMR_TRIPLET *segments(DAT_SEG_LENGTH a, DAT_SEG_LENGTH b, DAT_SEG_LENGTH c)
{
	DAT_SEG_LENGTH lengths[] = { a, b, c };
	unsigned i;

	for (i = 0; i < 3; i++)
		iov[i] = (DAT_LMR_TRIPLET){ 0x1000 * (i + 1), lengths[i], 0x10 + i };
	return iov;
}

static void open_connected(struct rig *rig)
{
	DAT_EP_ATTR attr = rig_attr();

	segments(1, 1, 1);
	rig_open(rig, &attr);
	rig_connect(rig);
}

static void test_handles(void)
{
	struct rig rig;

	open_connected(&rig);
	IS(dat_ep_post_send(rig.pz, 1, iov, cookie, 0), E(INVALID_HANDLE, INVALID_HANDLE_EP));
	IS(dat_ep_post_recv(rig.conn, 1, iov, cookie, 0), E(INVALID_HANDLE, INVALID_HANDLE_EP));
	IS(dat_ep_post_rdma_read(NULL, 1, iov, cookie, &remote, 0),
	   E(INVALID_HANDLE, INVALID_HANDLE_EP));
	IS(dat_ep_post_rdma_write(rig.ia, 1, iov, cookie, &remote, 0),
	   E(INVALID_HANDLE, INVALID_HANDLE_EP));
	rig_close(&rig);
}

static void test_num_segments(void)
{
	struct rig rig;

	open_connected(&rig);
	IS(dat_ep_post_send(rig.ep, -1, iov, cookie, 0), E(INVALID_PARAMETER, INVALID_ARG2));
	IS(dat_ep_post_send(rig.ep, 5, iov, cookie, 0), E(INVALID_PARAMETER, INVALID_ARG2));
	IS(dat_ep_post_recv(rig.ep, -1, iov, cookie, 0), E(INVALID_PARAMETER, INVALID_ARG2));
	IS(dat_ep_post_recv(rig.ep, 4, iov, cookie, 0), E(INVALID_PARAMETER, INVALID_ARG2));
	IS(dat_ep_post_rdma_read(rig.ep, 3, iov, cookie, &remote, 0),
	   E(INVALID_PARAMETER, INVALID_ARG2));
	IS(dat_ep_post_rdma_write(rig.ep, 4, iov, cookie, &remote, 0),
	   E(INVALID_PARAMETER, INVALID_ARG2));
	IS(dat_ep_post_rdma_write(rig.ep, -1, iov, cookie, &remote, 0),
	   E(INVALID_PARAMETER, INVALID_ARG2));
	MUST(dat_ep_post_rdma_read(rig.ep, 2, iov, cookie, &remote, 0));
	MUST(dat_ep_post_rdma_write(rig.ep, 3, iov, cookie, &remote, 0));
	rig_close(&rig);
}

static void test_pointers(void)
{
	struct rig rig;

	open_connected(&rig);
	IS(dat_ep_post_send(rig.ep, 1, NULL, cookie, 0), E(INVALID_PARAMETER, INVALID_ARG3));
	IS(dat_ep_post_recv(rig.ep, 1, NULL, cookie, 0), E(INVALID_PARAMETER, INVALID_ARG3));
	IS(dat_ep_post_rdma_read(rig.ep, 1, NULL, cookie, NULL, 0),
	   E(INVALID_PARAMETER, INVALID_ARG3));
	IS(dat_ep_post_rdma_write(rig.ep, 1, NULL, cookie, NULL, 0),
	   E(INVALID_PARAMETER, INVALID_ARG3));
	IS(dat_ep_post_rdma_read(rig.ep, 1, iov, cookie, NULL, 0x80),
	   E(INVALID_PARAMETER, INVALID_ARG5));
	IS(dat_ep_post_rdma_write(rig.ep, 0, NULL, cookie, NULL, 0),
	   E(INVALID_PARAMETER, INVALID_ARG5));
	rig_close(&rig);
}

static void test_flags(void)
{
	static const DAT_COMPLETION_FLAGS never[] = {
		DAT_COMPLETION_UNSIGNALLED_FLAG,
		DAT_COMPLETION_EVD_THRESHOLD_FLAG,
		DAT_COMPLETION_LMR_INVALIDATE_FENCE_FLAG,
		0x40,
	};
	static const DAT_COMPLETION_FLAGS not_for_receives[] = {
		DAT_COMPLETION_SUPPRESS_FLAG,
		DAT_COMPLETION_SOLICITED_WAIT_FLAG,
		DAT_COMPLETION_BARRIER_FENCE_FLAG,
	};
	struct rig rig;
	size_t i;

	open_connected(&rig);
	for (i = 0; i < COUNT(never); i++) {
		IS(dat_ep_post_send(rig.ep, 1, iov, cookie, never[i]),
		   E(INVALID_PARAMETER, INVALID_ARG5));
		IS(dat_ep_post_recv(rig.ep, 1, iov, cookie, never[i]),
		   E(INVALID_PARAMETER, INVALID_ARG5));
		IS(dat_ep_post_rdma_read(rig.ep, 1, iov, cookie, &remote, never[i]),
		   E(INVALID_PARAMETER, INVALID_ARG6));
		IS(dat_ep_post_rdma_write(rig.ep, 1, iov, cookie, &remote, never[i]),
		   E(INVALID_PARAMETER, INVALID_ARG6));
	}
	for (i = 0; i < COUNT(not_for_receives); i++)
		IS(dat_ep_post_recv(rig.ep, 1, iov, cookie, not_for_receives[i]),
		   E(INVALID_PARAMETER, INVALID_ARG5));
	rig_close(&rig);
}

static void test_flags_on_the_wire(void)
{
	DAT_COMPLETION_FLAGS all = DAT_COMPLETION_SUPPRESS_FLAG |
				   DAT_COMPLETION_SOLICITED_WAIT_FLAG |
				   DAT_COMPLETION_BARRIER_FENCE_FLAG;
	struct rig rig;

	open_connected(&rig);
	segments(FAKE_INLINE, 1, 0);
	MUST(dat_ep_post_send(rig.ep, 2, iov, cookie, DAT_COMPLETION_DEFAULT_FLAG));
	CU_ASSERT_EQUAL(fake.last.flags, IB_POST_SIGNALED);
	MUST(dat_ep_post_send(rig.ep, 2, iov, cookie, all));
	CU_ASSERT_EQUAL(fake.last.flags, IB_POST_SOLICITED | IB_POST_FENCE);
	/* SOLICITED has no effect on operations that the peer does not see */
	MUST(dat_ep_post_rdma_write(rig.ep, 2, iov, cookie, &remote, all));
	CU_ASSERT_EQUAL(fake.last.flags, IB_POST_FENCE);
	MUST(dat_ep_post_rdma_read(rig.ep, 2, iov, cookie, &remote,
				   DAT_COMPLETION_BARRIER_FENCE_FLAG));
	CU_ASSERT_EQUAL(fake.last.flags, IB_POST_SIGNALED | IB_POST_FENCE);
	rig_close(&rig);
}

static void test_unsignalled_by_attribute(void)
{
	DAT_EP_ATTR attr = rig_attr();
	struct rig rig;

	attr.request_completion_flags = DAT_COMPLETION_UNSIGNALLED_FLAG;
	rig_open(&rig, &attr);
	rig_connect(&rig);
	MUST(rig_send(&rig, 1, DAT_COMPLETION_UNSIGNALLED_FLAG));
	CU_ASSERT_TRUE(fake.last.flags & IB_POST_SIGNALED);
	IS(dat_ep_post_recv(rig.ep, 0, NULL, cookie, DAT_COMPLETION_UNSIGNALLED_FLAG),
	   E(INVALID_PARAMETER, INVALID_ARG5));
	MUST(rig_send(&rig, 2, DAT_COMPLETION_SUPPRESS_FLAG | DAT_COMPLETION_UNSIGNALLED_FLAG));
	CU_ASSERT_FALSE(fake.last.flags & IB_POST_SIGNALED);
	rig_close(&rig);
}

static void test_length(void)
{
	struct rig rig;

	open_connected(&rig);
	segments(FAKE_MAX_MESSAGE, 1, 1);
	IS(dat_ep_post_send(rig.ep, 2, iov, cookie, 0), E(INVALID_PARAMETER, INVALID_ARG3));
	IS(dat_ep_post_rdma_read(rig.ep, 2, iov, cookie, &remote, 0),
	   E(INVALID_PARAMETER, INVALID_ARG3));
	IS(dat_ep_post_rdma_write(rig.ep, 2, iov, cookie, &remote, 0),
	   E(INVALID_PARAMETER, INVALID_ARG3));
	MUST(dat_ep_post_recv(rig.ep, 2, iov, cookie, 0));
	/* a sum of lengths beyond 32 bits */
	segments(UINT32_MAX, 2, 1);
	IS(dat_ep_post_send(rig.ep, 2, iov, cookie, 0), E(INVALID_PARAMETER, INVALID_ARG3));
	segments(FAKE_MAX_MESSAGE - 1, 1, 1);
	MUST(dat_ep_post_send(rig.ep, 2, iov, cookie, 0));
	/* the length of the remote segment is ignored */
	MUST(dat_ep_post_rdma_write(rig.ep, 2, iov, cookie, &remote, 0));
	rig_close(&rig);
}

static void test_states(void)
{
	DAT_EP_ATTR attr = rig_attr();
	struct rig rig;

	segments(1, 1, 1);
	rig_open(&rig, &attr);
	MUST(rig_recv(&rig, 1));
	IS(dat_ep_post_send(rig.ep, 1, iov, cookie, 0),
	   E(INVALID_STATE, INVALID_STATE_EP_UNCONNECTED));
	IS(dat_ep_post_rdma_read(rig.ep, 1, iov, cookie, &remote, 0),
	   E(INVALID_STATE, INVALID_STATE_EP_UNCONNECTED));
	IS(dat_ep_post_rdma_write(rig.ep, 1, iov, cookie, &remote, 0),
	   E(INVALID_STATE, INVALID_STATE_EP_UNCONNECTED));
	rig_start_connect(&rig);
	IS(rig_send(&rig, 1, 0), E(INVALID_STATE, INVALID_STATE_EP_ACTCONNPENDING));
	MUST(rig_recv(&rig, 2));
	rig_establish();
	MUST(rig_send(&rig, 2, 0));
	MUST(dat_ep_disconnect(rig.ep, DAT_CLOSE_ABRUPT_FLAG));
	IS(rig_send(&rig, 3, 0), E(INVALID_STATE, INVALID_STATE_EP_DISCPENDING));
	MUST(rig_recv(&rig, 3));
	fake.upcalls.conn(rig.ep, fake.conn, IB_CONN_DISCONNECTED, NULL, 0);
	/* accepted, and flushed later */
	MUST(rig_send(&rig, 4, 0));
	MUST(rig_recv(&rig, 4));
	CU_ASSERT_TRUE(fake.last.qp->error);
	rig_close(&rig);
}

static void test_no_qp(void)
{
	DAT_EP_ATTR attr = rig_attr();
	struct rig rig;

	rig_open(&rig, NULL);
	MUST(dat_ep_create(rig.ia, DAT_HANDLE_NULL, rig.recv, rig.request, rig.conn, &attr,
			   &rig.ep));
	IS(rig_recv(&rig, 1), E(INVALID_STATE, INVALID_STATE_EP_NOTREADY));
	rig_close(&rig);
}

static void test_full(void)
{
	DAT_EP_ATTR attr = rig_attr();
	DAT_EVENT event;
	uint64_t first, i;
	struct rig rig;

	attr.max_request_dtos = attr.max_recv_dtos = 5;
	rig_open(&rig, &attr);
	rig_connect(&rig);
	MUST(rig_send(&rig, 0, 0));
	first = fake.last.wr_id;
	for (i = 1; i < 5; i++)
		MUST(rig_send(&rig, i, 0));
	IS(rig_send(&rig, 5, 0), E(INSUFFICIENT_RESOURCES, RESOURCE_MEMORY));
	rig_complete(rig.request, first, DAT_DTO_SUCCESS, 0);
	IS(rig_send(&rig, 5, 0), E(INSUFFICIENT_RESOURCES, RESOURCE_MEMORY));
	MUST(dat_evd_dequeue(rig.request, &event));
	MUST(rig_send(&rig, 5, 0));
	IS(rig_send(&rig, 6, 0), E(INSUFFICIENT_RESOURCES, RESOURCE_MEMORY));
	for (i = 0; i < 5; i++)
		MUST(rig_recv(&rig, i));
	IS(rig_recv(&rig, 5), E(INSUFFICIENT_RESOURCES, RESOURCE_MEMORY));
	rig_close(&rig);
}

static void test_a_side_without_an_evd(void)
{
	DAT_EP_ATTR attr = rig_attr();
	struct rig rig;

	attr.max_recv_dtos = attr.max_recv_iov = 0;
	rig_open(&rig, NULL);
	MUST(dat_ep_create(rig.ia, rig.pz, DAT_HANDLE_NULL, rig.request, rig.conn, &attr, &rig.ep));
	IS(rig_recv(&rig, 1), E(INSUFFICIENT_RESOURCES, RESOURCE_MEMORY));
	rig_close(&rig);
}

static void test_device_refuses(void)
{
	static const DAT_RETURN answers[] = {
		E(INSUFFICIENT_RESOURCES, RESOURCE_MEMORY),
		E0(INVALID_PARAMETER),
		E0(INTERNAL_ERROR),
	};
	DAT_BOOLEAN recv_idle, request_idle;
	struct rig rig;
	size_t i;

	open_connected(&rig);
	for (i = 0; i < COUNT(answers); i++) {
		fake.refuse = answers[i];
		IS(rig_send(&rig, 1, 0), answers[i]);
		fake.refuse = answers[i];
		IS(rig_recv(&rig, 1), answers[i]);
	}
	/* the slots were freed */
	MUST(dat_ep_get_status(rig.ep, NULL, &recv_idle, &request_idle));
	CU_ASSERT_EQUAL(recv_idle, DAT_TRUE);
	CU_ASSERT_EQUAL(request_idle, DAT_TRUE);
	rig_close(&rig);
}

static void goes_to(const DAT_RMR_TRIPLET *there)
{
	CU_ASSERT_PTR_NOT_NULL_FATAL(fake.last.remote);
	CU_ASSERT_EQUAL(fake.last.remote->virtual_address, there->virtual_address);
	CU_ASSERT_EQUAL(fake.last.remote->rmr_context, there->rmr_context);
}

static void test_lists_go_as_they_are(void)
{
	struct rig rig;

	open_connected(&rig);
	segments(3, 4, 5);
	MUST(dat_ep_post_send(rig.ep, 3, iov, cookie, 0));
	CU_ASSERT_PTR_EQUAL(fake.last.list, iov);
	CU_ASSERT_EQUAL(fake.last.count, 3);
	CU_ASSERT_EQUAL(fake.last.op, IB_OP_SEND);
	MUST(dat_ep_post_rdma_write(rig.ep, 0, NULL, cookie, &remote, 0));
	goes_to(&remote);
	CU_ASSERT_EQUAL(fake.last.op, IB_OP_WRITE);
	CU_ASSERT_EQUAL(fake.last.count, 0);
	MUST(dat_ep_post_rdma_read(rig.ep, 2, iov, cookie, &remote, 0));
	goes_to(&remote);
	CU_ASSERT_EQUAL(fake.last.op, IB_OP_READ);
	MUST(dat_ep_post_recv(rig.ep, 3, iov, cookie, 0));
	CU_ASSERT_PTR_EQUAL(fake.last.list, iov);
	rig_close(&rig);
}

static void test_empty_segments_are_dropped(void)
{
	struct rig rig;

	open_connected(&rig);
	segments(0, 9, 0);
	MUST(dat_ep_post_send(rig.ep, 3, iov, cookie, 0));
	CU_ASSERT_EQUAL(fake.last.count, 1);
	CU_ASSERT_EQUAL(fake.last.segments[0].virtual_address, 0x2000);
	CU_ASSERT_EQUAL(fake.last.segments[0].segment_length, 9);
	segments(7, 0, 8);
	MUST(dat_ep_post_recv(rig.ep, 3, iov, cookie, 0));
	CU_ASSERT_EQUAL(fake.last.count, 2);
	CU_ASSERT_EQUAL(fake.last.segments[1].segment_length, 8);
	segments(0, 0, 0);
	MUST(dat_ep_post_rdma_read(rig.ep, 2, iov, cookie, &remote, 0));
	CU_ASSERT_EQUAL(fake.last.count, 0);
	rig_close(&rig);
}

static void test_inline(void)
{
	struct rig rig;

	open_connected(&rig);
	segments(FAKE_INLINE, 1, 0);
	MUST(dat_ep_post_send(rig.ep, 1, iov, cookie, 0));
	CU_ASSERT_TRUE(fake.last.flags & IB_POST_INLINE);
	MUST(dat_ep_post_send(rig.ep, 2, iov, cookie, 0));
	CU_ASSERT_FALSE(fake.last.flags & IB_POST_INLINE);
	MUST(dat_ep_post_send(rig.ep, 0, NULL, cookie, 0));
	CU_ASSERT_TRUE(fake.last.flags & IB_POST_INLINE);
	MUST(dat_ep_post_rdma_write(rig.ep, 1, iov, cookie, &remote, 0));
	CU_ASSERT_TRUE(fake.last.flags & IB_POST_INLINE);
	MUST(dat_ep_post_rdma_read(rig.ep, 1, iov, cookie, &remote, 0));
	CU_ASSERT_FALSE(fake.last.flags & IB_POST_INLINE);
	rig_close(&rig);
}

static const struct unit_test tests[] = {
	{ "handles", test_handles },
	{ "num_segments above max iov is ARG2", test_num_segments },
	{ "pointers", test_pointers },
	{ "flags that no post may carry", test_flags },
	{ "flags reach the device", test_flags_on_the_wire },
	{ "UNSIGNALLED is refused unless the endpoint has that flag",
	  test_unsignalled_by_attribute },
	{ "the device's largest message, counted in 64 bits, is the only limit", test_length },
	{ "states", test_states },
	{ "no QP", test_no_qp },
	{ "a full queue has room for one request after one completion", test_full },
	{ "a side without an EVD has no queue", test_a_side_without_an_evd },
	{ "a post that the device refuses uses no slot", test_device_refuses },
	{ "the consumer's list of segments reaches the device unchanged",
	  test_lists_go_as_they_are },
	{ "segments of length 0 are dropped", test_empty_segments_are_dropped },
	{ "payload is inline up to the size that the device granted", test_inline },
};

UNIT_MAIN("post", tests)
