/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/*
 * Calls of verbs and rdma_cm other than those that wait are no cancellation points: a thread that is cancelled ends after the
 * call, with no lock held and no object lost. With a kernel's device they are ioctl(2), or leave nothing behind.
 */
#include <sys/resource.h>
#include "softverbs/base/kernel.h"
#include "test/unit/cm.h"
#include "test/unit/node.h"

static const char *last; /* call that has begun */

#define CALL(call) (last = #call, (call))

int __wrap_madvise(void *addr, size_t length, int advice);
int __real_madvise(void *addr, size_t length, int advice);

/* The answer of a kernel before 5.14, with which a registration reads /proc/self/maps. */
int __wrap_madvise(void *addr, size_t length, int advice)
{
	if (advice < MADV_POPULATE_READ)
		return __real_madvise(addr, length, advice);
	errno = EINVAL;
	return -1;
}

static bool strict; /* objects allocate their pages */

bool __wrap_sv_os_promises_strictly(void);

bool __wrap_sv_os_promises_strictly(void)
{
	return strict;
}

/* Ends the calling thread in the first cancellation point. */
static bool verbs_life(void)
{
	struct node_options options = { .srq = 64, .qps = 2, .channel = true };
	struct ibv_srq_attr fewer = { .max_wr = 32 };
	struct node node;
	struct ibv_wc wc;
	bool ok;

	ok = CALL(node_open(&node, &options)) && !CALL(ibv_resize_cq(node.cq, 8192)) &&
	     !CALL(ibv_modify_srq(node.srq, &fewer, IBV_SRQ_MAX_WR)) &&
	     CALL(node_qp_connect(node.qp[0], node.qp[1]->qp_num, &options)) &&
	     CALL(node_qp_connect(node.qp[1], node.qp[0]->qp_num, &options)) &&
	     !CALL(ibv_req_notify_cq(node.cq, 0)) && !CALL(node_recv(&node, 1, 1, 0, 64)) &&
	     !CALL(node_send(&node, 0, 2, 64, 64, IBV_SEND_SIGNALED)) &&
	     CALL(node_poll(&node, &wc)) && CALL(node_poll(&node, &wc)) &&
	     !CALL(qp_to(node.qp[0], IBV_QPS_ERR)) && !CALL(qp_to(node.qp[1], IBV_QPS_RESET));
	return !CALL(node_close(&node)) && ok;
}

/* The wait for an event is a cancellation point. */
static bool takes(struct rdma_event_channel *channel, enum rdma_cm_event_type type,
		  struct seen *seen)
{
	int state;
	bool came;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
	came = cm_expect(channel, type, seen);
	pthread_setcancelstate(state, NULL);
	return came;
}

static bool resolves(struct rdma_cm_id *id, uint16_t port)
{
	struct sockaddr_in addr = cm_loopback(port);

	return !CALL(rdma_resolve_addr(id, NULL, (struct sockaddr *)&addr, 1000)) &&
	       takes(id->channel, RDMA_CM_EVENT_ADDR_RESOLVED, NULL) &&
	       !CALL(rdma_resolve_route(id, 1000)) &&
	       takes(id->channel, RDMA_CM_EVENT_ROUTE_RESOLVED, NULL);
}

static bool disconnects(struct pair *pair)
{
	return !CALL(rdma_disconnect(pair->active)) &&
	       takes(pair->far, RDMA_CM_EVENT_DISCONNECTED, NULL) &&
	       !CALL(rdma_disconnect(pair->passive)) &&
	       takes(pair->near, RDMA_CM_EVENT_DISCONNECTED, NULL);
}

static bool connects(struct pair *pair)
{
	struct rdma_conn_param ask = cm_param(0x123), reply = cm_param(0x456);
	struct seen seen;

	if (CALL(rdma_connect(pair->active, &ask)) ||
	    !takes(pair->far, RDMA_CM_EVENT_CONNECT_REQUEST, &seen))
		return false;
	pair->passive = seen.event.id;
	return !CALL(rdma_accept(pair->passive, &reply)) &&
	       takes(pair->near, RDMA_CM_EVENT_CONNECT_RESPONSE, NULL) &&
	       !CALL(rdma_establish(pair->active)) &&
	       takes(pair->far, RDMA_CM_EVENT_ESTABLISHED, NULL);
}

static bool cm_life(void)
{
	struct pair pair = { .near = NULL };
	bool ok;

	pair.near = CALL(rdma_create_event_channel());
	pair.far = CALL(rdma_create_event_channel());
	pair.active = pair.near ? CALL(cm_new(pair.near)) : NULL;
	pair.listener = pair.far ? CALL(cm_listener(pair.far, 0)) : NULL;
	ok = pair.active && pair.listener &&
	     resolves(pair.active, ntohs(rdma_get_src_port(pair.listener))) && connects(&pair) &&
	     disconnects(&pair);
	CALL(pair_free(&pair));
	return ok;
}

/* ---- the thread ---- */

static void *live(void *life)
{
	static const char done[] = "";

	pthread_cleanup_push(unit_forget_stack, NULL);
	pthread_cancel(pthread_self());
	life = ((bool (*)(void))life)() ? (void *)(uintptr_t)done : NULL;
	pthread_cleanup_pop(0);
	return life;
}

static void returns_from_each_call(bool (*life)(void))
{
	pthread_t thread;
	void *result;

	CU_ASSERT_FATAL(!pthread_create(&thread, NULL, live, (void *)life));
	CU_ASSERT_FATAL(!pthread_join(thread, &result));
	CU_ASSERT(result && result != PTHREAD_CANCELED);
	if (!result || result == PTHREAD_CANCELED)
		fprintf(stderr, "%s in %s\n", result ? "cancelled" : "failed", last);
}

static void test_verbs(void)
{
	returns_from_each_call(verbs_life);
}

static void test_verbs_strict(void)
{
	strict = true;
	returns_from_each_call(verbs_life);
	strict = false;
}

static void test_cm(void)
{
	returns_from_each_call(cm_life);
}

static bool fails_to_open(void)
{
	struct ibv_device **list = CALL(ibv_get_device_list(NULL));
	struct ibv_context *context = list ? CALL(ibv_open_device(list[0])) : NULL;
	int error = errno;

	CALL(ibv_free_device_list(list));
	return !context && error == EMFILE;
}

/* One descriptor is free: the second that the device needs is not. */
static void test_open(void)
{
	int lowest = dup(0);
	struct rlimit limit, less;

	close(lowest);
	getrlimit(RLIMIT_NOFILE, &limit);
	less = limit;
	less.rlim_cur = (rlim_t)lowest + 1;
	setrlimit(RLIMIT_NOFILE, &less);
	returns_from_each_call(fails_to_open);
	setrlimit(RLIMIT_NOFILE, &limit);
}

static const struct unit_test tests[] = {
	{ "a cancelled thread returns from each call of verbs", test_verbs },
	{ "the same where objects allocate their pages", test_verbs_strict },
	{ "a cancelled thread returns from each call of rdma_cm", test_cm },
	{ "a cancelled thread returns from a device that cannot be opened", test_open },
};

UNIT_MAIN("softverbs_cancel", tests)
