/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/*
 * The fast path of posting (one segment without flags, or a suppressed request) behaves as the slow
 * path does.
 */
#include "test/unit/rig.h"

static DAT_LMR_TRIPLET piece = { 0x1000, 8, 0x10 };
static DAT_RMR_TRIPLET remote = { 0x5000, 64, 0x99 };
static const DAT_DTO_COOKIE cookie = { .as_64 = 7 };

static DAT_RETURN post_send(DAT_EP_HANDLE ep)
{
	return dat_ep_post_send(ep, 1, &piece, cookie, DAT_COMPLETION_DEFAULT_FLAG);
}

static DAT_RETURN post_recv(DAT_EP_HANDLE ep)
{
	return dat_ep_post_recv(ep, 1, &piece, cookie, DAT_COMPLETION_DEFAULT_FLAG);
}

static DAT_RETURN post_write(DAT_EP_HANDLE ep)
{
	return dat_ep_post_rdma_write(ep, 1, &piece, cookie, &remote, DAT_COMPLETION_DEFAULT_FLAG);
}

static DAT_RETURN post_read(DAT_EP_HANDLE ep)
{
	return dat_ep_post_rdma_read(ep, 1, &piece, cookie, &remote, DAT_COMPLETION_DEFAULT_FLAG);
}

static DAT_RETURN post_send_silent(DAT_EP_HANDLE ep)
{
	return dat_ep_post_send(ep, 1, &piece, cookie, DAT_COMPLETION_SUPPRESS_FLAG);
}

static DAT_RETURN post_write_silent(DAT_EP_HANDLE ep)
{
	return dat_ep_post_rdma_write(ep, 1, &piece, cookie, &remote, DAT_COMPLETION_SUPPRESS_FLAG);
}

static DAT_RETURN (*const requests[])(DAT_EP_HANDLE ep) = { post_send, post_write, post_read };

static void open_unconnected(struct rig *rig)
{
	DAT_EP_ATTR attr = rig_attr();

	piece.segment_length = 8;
	attr.max_recv_dtos = attr.max_request_dtos = 5;
	rig_open(rig, &attr);
}

static void open_connected(struct rig *rig)
{
	open_unconnected(rig);
	rig_connect(rig);
}

static uint64_t counted(DAT_EP_HANDLE ep, DAT_EP_COUNTERS which)
{
	DAT_UINT64 value[DCNT_EP_ALL_COUNTERS] = { 0 };

	MUST(dat_ib_query_counters(ep, which, value, 0));
	return value[which];
}

static void reap(DAT_EVD_HANDLE evd, uint64_t wr_id)
{
	DAT_EVENT event;

	rig_complete(evd, wr_id, DAT_DTO_SUCCESS, 0);
	MUST(dat_evd_dequeue(evd, &event));
}

static bool has_ended(void *arg)
{
	const struct rig *rig = arg;

	fake_run_timers();
	return state_of(rig->ep) == DAT_EP_STATE_DISCONNECTED;
}

static void test_states(void)
{
	struct rig rig;
	size_t i;

	open_unconnected(&rig);
	for (i = 0; i < COUNT(requests); i++)
		IS(requests[i](rig.ep), E(INVALID_STATE, INVALID_STATE_EP_UNCONNECTED));
	MUST(post_recv(rig.ep));
	rig_start_connect(&rig);
	for (i = 0; i < COUNT(requests); i++)
		IS(requests[i](rig.ep), E(INVALID_STATE, INVALID_STATE_EP_ACTCONNPENDING));
	rig_establish();
	for (i = 0; i < COUNT(requests); i++)
		MUST(requests[i](rig.ep));
	/* with requests outstanding the graceful disconnect is not complete */
	MUST(dat_ep_disconnect(rig.ep, DAT_CLOSE_GRACEFUL_FLAG));
	for (i = 0; i < COUNT(requests); i++)
		IS(requests[i](rig.ep), E(INVALID_STATE, INVALID_STATE_EP_DISCPENDING));
	fake.upcalls.conn(fake.conn->owner, fake.conn, IB_CONN_DISCONNECTED, NULL, 0);
	CU_ASSERT_TRUE(
		unit_wait_for(has_ended, &rig, UNIT_PATIENCE)); /* requests are outstanding */
	MUST(post_send(rig.ep));				/* will be flushed */
	MUST(post_recv(rig.ep));
	MUST(dat_ep_reset(rig.ep));
	IS(post_send(rig.ep), E(INVALID_STATE, INVALID_STATE_EP_UNCONNECTED));
	MUST(post_recv(rig.ep));
	rig_close(&rig);
}

static void test_marker(void)
{
	struct rig rig;

	open_connected(&rig);
	MUST(rig_send(&rig, 1, DAT_COMPLETION_SUPPRESS_FLAG));
	MUST(dat_ep_disconnect(rig.ep, DAT_CLOSE_GRACEFUL_FLAG));
	IS(post_send(rig.ep), E(INVALID_STATE, INVALID_STATE_EP_DISCPENDING));
	rig_close(&rig);
}

static void test_full(void)
{
	uint64_t ids[5];
	struct rig rig;
	unsigned i, side;

	open_connected(&rig);
	for (side = 0; side < 2; side++) {
		DAT_RETURN (*post)(DAT_EP_HANDLE ep) = side ? post_recv : post_send;
		DAT_EVD_HANDLE evd = side ? rig.recv : rig.request;

		for (i = 0; i < 5; i++) {
			MUST(post(rig.ep));
			ids[i] = fake.last.wr_id;
		}
		for (i = 0; i < 20; i++) {
			IS(post(rig.ep), E(INSUFFICIENT_RESOURCES, RESOURCE_MEMORY));
			reap(evd, ids[i % 5]);
			MUST(post(rig.ep));
			ids[i % 5] = fake.last.wr_id;
		}
	}
	rig_close(&rig);
}

/* Requests of both paths share the queue. */
static void test_both_ways_share_the_queue(void)
{
	struct rig rig;
	uint64_t first;
	unsigned i;

	open_connected(&rig);
	MUST(post_send(rig.ep));
	first = fake.last.wr_id;
	for (i = 0; i < 2; i++) {
		MUST(rig_send(&rig, 1, DAT_COMPLETION_DEFAULT_FLAG));
		MUST(post_write(rig.ep));
	}
	IS(post_read(rig.ep), E(INSUFFICIENT_RESOURCES, RESOURCE_MEMORY));
	IS(rig_send(&rig, 1, 0), E(INSUFFICIENT_RESOURCES, RESOURCE_MEMORY));
	reap(rig.request, first);
	MUST(post_read(rig.ep));
	IS(rig_send(&rig, 1, 0), E(INSUFFICIENT_RESOURCES, RESOURCE_MEMORY));
	for (i = 0; i < 2; i++) {
		MUST(post_recv(rig.ep));
		MUST(rig_recv(&rig, 1));
	}
	MUST(post_recv(rig.ep));
	IS(rig_recv(&rig, 1), E(INSUFFICIENT_RESOURCES, RESOURCE_MEMORY));
	IS(post_recv(rig.ep), E(INSUFFICIENT_RESOURCES, RESOURCE_MEMORY));
	rig_close(&rig);
}

static void test_refused(void)
{
	static const DAT_RETURN answers[] = {
		E(INSUFFICIENT_RESOURCES, RESOURCE_MEMORY),
		E0(INVALID_PARAMETER),
		E0(INTERNAL_ERROR),
	};
	DAT_BOOLEAN recv_idle, request_idle;
	DAT_EP_STATE state;
	struct rig rig;
	size_t i, j;

	open_connected(&rig);
	for (i = 0; i < COUNT(answers); i++) {
		for (j = 0; j < COUNT(requests); j++) {
			fake.refuse = answers[i];
			IS(requests[j](rig.ep), answers[i]);
		}
		fake.refuse = answers[i];
		IS(post_recv(rig.ep), answers[i]);
	}
	/* the state is as before the post */
	MUST(dat_ep_get_status(rig.ep, &state, &recv_idle, &request_idle));
	CU_ASSERT_TRUE(recv_idle && request_idle);
	CU_ASSERT_EQUAL(counted(rig.ep, DCNT_EP_POST_SEND), 0);
	CU_ASSERT_EQUAL(counted(rig.ep, DCNT_EP_POST_WRITE_DATA), 0);
	CU_ASSERT_EQUAL(counted(rig.ep, DCNT_EP_POST_RECV_DATA), 0);
	for (i = 0; i < 5; i++) {
		MUST(post_send(rig.ep));
		MUST(post_recv(rig.ep));
	}
	CU_ASSERT_EQUAL(counted(rig.ep, DCNT_EP_POST_SEND), 5);
	CU_ASSERT_EQUAL(counted(rig.ep, DCNT_EP_POST_SEND_DATA), 40);
	CU_ASSERT_EQUAL(counted(rig.ep, DCNT_EP_POST_RECV), 5);
	CU_ASSERT_EQUAL(counted(rig.ep, DCNT_EP_POST_RECV_DATA), 40);
	rig_close(&rig);
}

/* A signalled request on the fast path retires the suppressed requests before it. */
static void test_after_suppressed(void)
{
	struct rig rig;
	unsigned round, i;

	open_connected(&rig);
	for (round = 0; round < 6; round++) {
		for (i = 0; i < 2; i++)
			MUST(rig_send(&rig, i, DAT_COMPLETION_SUPPRESS_FLAG));
		MUST(post_send(rig.ep));
		CU_ASSERT_TRUE(fake.last.flags & IB_POST_SIGNALED);
		reap(rig.request, fake.last.wr_id);
	}
	for (i = 0; i < 5; i++)
		MUST(post_send(rig.ep));
	IS(post_send(rig.ep), E(INSUFFICIENT_RESOURCES, RESOURCE_MEMORY));
	rig_close(&rig);
}

/*
 * Returns whether the last post asked the device for a completion, and makes that completion; the
 * consumer sees no event.
 */
static bool was_signalled(struct rig *rig)
{
	DAT_EVENT event;

	if (!(fake.last.flags & IB_POST_SIGNALED))
		return false;
	rig_complete(rig->request, fake.last.wr_id, DAT_DTO_SUCCESS, 0);
	IS(dat_evd_dequeue(rig->request, &event), DAT_QUEUE_EMPTY);
	return true;
}

static void test_suppressed(void)
{
	unsigned i, silent = 0, signalled = 0;
	struct rig rig;

	open_unconnected(&rig);
	IS(post_send_silent(rig.ep), E(INVALID_STATE, INVALID_STATE_EP_UNCONNECTED));
	IS(post_write_silent(rig.ep), E(INVALID_STATE, INVALID_STATE_EP_UNCONNECTED));
	rig_connect(&rig);
	for (i = 0; i < 60; i++) {
		MUST(i % 2 ? post_write_silent(rig.ep) : post_send_silent(rig.ep));
		CU_ASSERT_EQUAL(fake.last.op, i % 2 ? IB_OP_WRITE : IB_OP_SEND);
		CU_ASSERT_PTR_EQUAL(fake.last.list, &piece);
		CU_ASSERT_EQUAL(fake.last.flags & ~(unsigned)IB_POST_SIGNALED, IB_POST_INLINE);
		if (was_signalled(&rig)) {
			signalled++;
			silent = 0;
		} else {
			CU_ASSERT_TRUE(++silent < 3); /* at least one completion for half a queue */
		}
	}
	CU_ASSERT_EQUAL(signalled, 20);
	CU_ASSERT_EQUAL(counted(rig.ep, DCNT_EP_POST_SEND), 30);
	CU_ASSERT_EQUAL(counted(rig.ep, DCNT_EP_POST_WRITE_DATA), 30 * 8);
	fake.refuse = E0(INTERNAL_ERROR);
	IS(post_send_silent(rig.ep), E0(INTERNAL_ERROR));
	CU_ASSERT_EQUAL(counted(rig.ep, DCNT_EP_POST_SEND), 30);
	MUST(post_send_silent(rig.ep));
	CU_ASSERT_TRUE(was_signalled(&rig));
	IS(dat_ep_post_rdma_write(rig.ep, 1, &piece, cookie, NULL, DAT_COMPLETION_SUPPRESS_FLAG),
	   E(INVALID_PARAMETER, INVALID_ARG5));
	rig_close(&rig);
}

static void test_what_the_device_gets(void)
{
	static const unsigned ops[] = { IB_OP_SEND, IB_OP_WRITE, IB_OP_READ };
	struct rig rig;
	size_t i;

	open_connected(&rig);
	for (i = 0; i < COUNT(ops); i++) {
		MUST(requests[i](rig.ep));
		CU_ASSERT_EQUAL(fake.last.op, ops[i]);
		CU_ASSERT_PTR_EQUAL(fake.last.list, &piece);
		CU_ASSERT_EQUAL(fake.last.count, 1);
		CU_ASSERT_EQUAL(fake.last.flags,
				IB_POST_SIGNALED | (ops[i] == IB_OP_READ ? 0 : IB_POST_INLINE));
		if (ops[i] == IB_OP_SEND)
			continue;
		CU_ASSERT_EQUAL(fake.last.remote->virtual_address, remote.virtual_address);
		CU_ASSERT_EQUAL(fake.last.remote->rmr_context, remote.rmr_context);
	}
	piece.segment_length = FAKE_INLINE + 1;
	MUST(post_write(rig.ep));
	CU_ASSERT_EQUAL(fake.last.flags, IB_POST_SIGNALED);
	piece.segment_length = 0;
	MUST(post_send(rig.ep));
	CU_ASSERT_EQUAL(fake.last.count, 0);
	MUST(post_recv(rig.ep));
	CU_ASSERT_EQUAL(fake.last.count, 0);
	piece.segment_length = 8;
	MUST(post_recv(rig.ep));
	CU_ASSERT_PTR_EQUAL(fake.last.list, &piece);
	CU_ASSERT_EQUAL(fake.last.count, 1);
	rig_close(&rig);
}

static void test_pointers(void)
{
	struct rig rig;

	open_connected(&rig);
	IS(dat_ep_post_send(rig.ep, 1, NULL, cookie, 0), E(INVALID_PARAMETER, INVALID_ARG3));
	IS(dat_ep_post_recv(rig.ep, 1, NULL, cookie, 0), E(INVALID_PARAMETER, INVALID_ARG3));
	IS(dat_ep_post_rdma_write(rig.ep, 1, &piece, cookie, NULL, 0),
	   E(INVALID_PARAMETER, INVALID_ARG5));
	IS(dat_ep_post_rdma_read(rig.ep, 1, &piece, cookie, NULL, 0),
	   E(INVALID_PARAMETER, INVALID_ARG5));
	rig_close(&rig);
}

static void test_largest_message(void)
{
	uint64_t largest = FAKE_MAX_MESSAGE;
	struct rig rig;

	open_connected(&rig);
	CU_ASSERT_FATAL(largest > 0 && largest < UINT32_MAX);
	piece.segment_length = (DAT_SEG_LENGTH)largest;
	MUST(post_send(rig.ep));
	piece.segment_length++;
	IS(post_send(rig.ep), E(INVALID_PARAMETER, INVALID_ARG3));
	IS(post_read(rig.ep), E(INVALID_PARAMETER, INVALID_ARG3));
	rig_close(&rig);
}

static const struct unit_test tests[] = {
	{ "the fast path follows the states of the endpoint", test_states },
	{ "an internal request does not open a closed queue", test_marker },
	{ "a full queue has room for one request after one completion", test_full },
	{ "the fast and the slow path fill one queue", test_both_ways_share_the_queue },
	{ "a request that the device refuses leaves the queue unchanged", test_refused },
	{ "a signalled request retires the suppressed ones before it", test_after_suppressed },
	{ "the device completes one suppressed request in half a queue", test_suppressed },
	{ "requests of the fast path reach the device unchanged", test_what_the_device_gets },
	{ "pointers", test_pointers },
	{ "the device's largest message", test_largest_message },
};

UNIT_MAIN("post_plain", tests)
