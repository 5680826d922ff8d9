/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* UNSIGNALLED and other streams on one EVD: each keeps its own rule of which completions notify. */
#include "test/unit/rig.h"

#define UNSIGNALLED DAT_COMPLETION_UNSIGNALLED_FLAG
#define PLAIN	    DAT_COMPLETION_DEFAULT_FLAG

/* An EP with both queues on one EVD and UNSIGNALLED requests, as a shipped MPI creates it. */
static struct rig rig;
static DAT_EVD_HANDLE both;

static DAT_EP_ATTR attr_of(DAT_COMPLETION_FLAGS recv, DAT_COMPLETION_FLAGS request)
{
	DAT_EP_ATTR attr = rig_attr();

	attr.recv_completion_flags = recv;
	attr.request_completion_flags = request;
	return attr;
}

static DAT_EP_HANDLE ep_open(DAT_COMPLETION_FLAGS recv, DAT_COMPLETION_FLAGS request)
{
	DAT_EP_ATTR attr = attr_of(recv, request);
	DAT_EP_HANDLE ep = DAT_HANDLE_NULL;

	MUST(dat_ep_create(rig.ia, rig.pz, both, both, rig.conn, &attr, &ep));
	return ep;
}

static void setup(void)
{
	rig_open(&rig, NULL);
	both = rig_evd(&rig, RIG_QLEN, DAT_EVD_DTO_FLAG);
}

static void teardown(void)
{
	MUST(dat_ep_free(rig.ep));
	rig.ep = DAT_HANDLE_NULL;
	MUST(dat_evd_free(both));
	rig_close(&rig);
}

static void setup_connected(void)
{
	setup();
	rig.ep = ep_open(PLAIN, UNSIGNALLED);
	rig_connect(&rig);
}

/*
 * complete_silent completes a request that makes no notification, complete_recv a receive that
 * makes one.
 */
static void complete_silent(uint64_t cookie)
{
	MUST(rig_send(&rig, cookie, UNSIGNALLED));
	rig_complete(both, fake.last.wr_id, DAT_DTO_SUCCESS, 0);
}

static void complete_recv(uint64_t cookie)
{
	MUST(rig_recv(&rig, cookie));
	rig_complete(both, fake.last.wr_id, DAT_DTO_SUCCESS, 10);
}

static DAT_EVD_STATE configuration(void)
{
	DAT_EVD_PARAM param;

	MUST(dat_evd_query(both, DAT_EVD_FIELD_ALL, &param));
	return param.evd_state & DAT_EVD_STATE_CONFIG_THRESHOLD;
}

/* ---- a waiter ---- */

struct waiter {
	pthread_t thread;
	DAT_COUNT threshold, more;
	DAT_EVENT event;
	DAT_RETURN status;
	atomic_bool over;
};

static void *wait_run(void *arg)
{
	struct waiter *w = arg;

	w->status = dat_evd_wait(both, DAT_TIMEOUT_INFINITE, w->threshold, &w->event, &w->more);
	atomic_store(&w->over, true);
	return NULL;
}

/* True if the waiter blocks and has drained all earlier completions. */
static bool is_asleep(void *arg)
{
	struct dapl_evd *evd = both;
	bool asleep;

	(void)arg;
	lock_acquire(&evd->lock);
	asleep = evd->state & EVD_WAITED && evd->arming & EVD_ARMED &&
		 !(evd->notes & EVD_MAY_RETURN);
	lock_release(&evd->lock);
	return asleep;
}

static bool is_asleep_with_one(void *arg)
{
	struct dapl_evd *evd = both;
	bool one;

	lock_acquire(&evd->lock);
	one = evd_count_locked(evd) == 1;
	lock_release(&evd->lock);
	return one && is_asleep(arg);
}

static void wait_start(struct waiter *w, DAT_COUNT threshold)
{
	*w = (struct waiter){ .threshold = threshold };
	CU_ASSERT_EQUAL_FATAL(pthread_create(&w->thread, NULL, wait_run, w), 0);
	CU_ASSERT_TRUE_FATAL(unit_wait_for(is_asleep, NULL, UNIT_PATIENCE));
}

static void wait_end(struct waiter *w, uint64_t cookie, DAT_COUNT more)
{
	CU_ASSERT_TRUE_FATAL(unit_join(w->thread));
	IS(w->status, DAT_SUCCESS);
	CU_ASSERT_EQUAL(rig_cookie(&w->event), cookie);
	CU_ASSERT_EQUAL(w->more, more);
}

/* The waiter drains a completion that does not notify, and blocks again. */
static void silent_passes(struct waiter *w, uint64_t cookie)
{
	complete_silent(cookie);
	CU_ASSERT_TRUE_FATAL(unit_wait_for(is_asleep_with_one, NULL, UNIT_PATIENCE));
	CU_ASSERT_FALSE(atomic_load(&w->over));
}

static void test_wait(void)
{
	struct waiter w;

	setup_connected();
	wait_start(&w, 1);
	silent_passes(&w, 1);
	complete_recv(2);
	wait_end(&w, 1, 1);
	CU_ASSERT_EQUAL(configuration(), DAT_EVD_STATE_CONFIG_THRESHOLD);
	teardown();
}

/* A request without the flag notifies, and so does a failed one. */
static void test_wait_for_a_request(void)
{
	struct waiter w;
	DAT_EVENT event;

	setup_connected();
	wait_start(&w, 1);
	silent_passes(&w, 1);
	MUST(rig_send(&rig, 2, PLAIN));
	rig_complete(both, fake.last.wr_id, DAT_DTO_SUCCESS, 0);
	wait_end(&w, 1, 1);
	MUST(dat_evd_dequeue(both, &event));
	wait_start(&w, 1);
	MUST(rig_send(&rig, 3, UNSIGNALLED));
	rig_complete(both, fake.last.wr_id, DAT_DTO_ERR_FLUSHED, 0);
	wait_end(&w, 3, 0);
	teardown();
}

static void test_threshold(void)
{
	struct waiter w;

	setup_connected();
	wait_start(&w, 2);
	silent_passes(&w, 1);
	complete_recv(2);
	wait_end(&w, 1, 1);
	teardown();
}

/*
 * Thresholds are refused once the last stream that is not UNSIGNALLED has gone, and allowed again
 * with the next.
 */
static void test_threshold_needs_another_stream(void)
{
	DAT_EP_HANDLE other;
	DAT_EVENT event;
	DAT_COUNT more;

	setup();
	rig.ep = ep_open(UNSIGNALLED, UNSIGNALLED);
	CU_ASSERT_EQUAL(configuration(), DAT_EVD_STATE_CONFIG_NOTIFY);
	IS(dat_evd_wait(both, 0, 2, &event, &more),
	   E(INVALID_STATE, INVALID_STATE_EVD_CONFIG_NOTIFY));
	other = ep_open(PLAIN, UNSIGNALLED);
	CU_ASSERT_EQUAL(configuration(), DAT_EVD_STATE_CONFIG_THRESHOLD);
	IS(dat_evd_wait(both, 0, 2, &event, &more), DAT_TIMEOUT_EXPIRED);
	MUST(dat_ep_free(other));
	IS(dat_evd_wait(both, 0, 2, &event, &more),
	   E(INVALID_STATE, INVALID_STATE_EVD_CONFIG_NOTIFY));
	other = ep_open(DAT_COMPLETION_EVD_THRESHOLD_FLAG, PLAIN);
	MUST(dat_ep_free(rig.ep));
	rig.ep = other;
	CU_ASSERT_EQUAL(configuration(), DAT_EVD_STATE_CONFIG_THRESHOLD);
	IS(dat_evd_wait(both, 0, 2, &event, &more), DAT_TIMEOUT_EXPIRED);
	teardown();
}

/* ---- a CNO ---- */

static void test_cno(void)
{
	DAT_OS_WAIT_PROXY_AGENT none = DAT_OS_WAIT_PROXY_AGENT_NULL;
	DAT_EVD_HANDLE triggered;
	DAT_CNO_HANDLE cno;
	DAT_EVENT event;

	setup_connected();
	MUST(dat_cno_create(rig.ia, none, &cno));
	MUST(dat_evd_modify_cno(both, cno));
	complete_silent(1);
	IS(dat_cno_wait(cno, 1000, &triggered), DAT_QUEUE_EMPTY);
	complete_recv(2);
	MUST(dat_cno_wait(cno, PATIENCE, &triggered));
	CU_ASSERT_PTR_EQUAL(triggered, both);
	MUST(dat_evd_dequeue(both, &event));
	CU_ASSERT_EQUAL(rig_cookie(&event), 1);
	MUST(dat_evd_dequeue(both, &event));
	CU_ASSERT_EQUAL(rig_cookie(&event), 2);
	MUST(dat_evd_modify_cno(both, DAT_HANDLE_NULL));
	MUST(dat_cno_free(cno));
	teardown();
}

/* ---- creation and change ---- */

static void test_creation(void)
{
	static const DAT_COMPLETION_FLAGS flags[] = { PLAIN, DAT_COMPLETION_EVD_THRESHOLD_FLAG,
						      UNSIGNALLED };
	DAT_EP_HANDLE second;
	size_t i, k;

	setup();
	for (i = 0; i < 9; i++) {
		for (k = 0; k < 9; k++) {
			rig.ep = ep_open(flags[i / 3], flags[i % 3]);
			second = ep_open(flags[k / 3], flags[k % 3]);
			MUST(dat_ep_free(rig.ep));
			MUST(dat_ep_free(second));
		}
	}
	rig.ep = ep_open(PLAIN, PLAIN);
	teardown();
}

static void test_modify(void)
{
	DAT_EP_PARAM param = { .ep_attr = attr_of(PLAIN, UNSIGNALLED) };

	setup();
	rig.ep = ep_open(PLAIN, PLAIN);
	IS(rig_send(&rig, 1, UNSIGNALLED), E(INVALID_PARAMETER, INVALID_ARG5));
	MUST(dat_ep_modify(rig.ep, DAT_EP_FIELD_EP_ATTR_REQUEST_COMPLETION_FLAGS, &param));
	rig_connect(&rig);
	MUST(rig_send(&rig, 1, UNSIGNALLED));
	teardown();
}

static const struct unit_test tests[] = {
	{ "a wait sleeps through an UNSIGNALLED completion, and ends with another", test_wait },
	{ "a request without the flag ends a wait, and so does a failure",
	  test_wait_for_a_request },
	{ "UNSIGNALLED completions count for a threshold", test_threshold },
	{ "a threshold needs one stream that is not UNSIGNALLED",
	  test_threshold_needs_another_stream },
	{ "a CNO is triggered by the completions that notify", test_cno },
	{ "endpoints with all mixtures of flags share an EVD", test_creation },
	{ "an endpoint's requests can become UNSIGNALLED beside its receives", test_modify },
};

UNIT_MAIN("evd_mixed", tests)
