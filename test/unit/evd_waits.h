/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/*
 * Waiting: thresholds, deadlines, and everything that can end a sleep. EVD_BLOCKS: on a device that lets a thread sleep on a CQ
 * without its channel.
 */
#ifndef EVD_WAITS_H
#define EVD_WAITS_H

#include <signal.h>
#include "test/unit/evd_waiter.h"

#define SHORT 20000u /* in microseconds; a wait that runs out */

static void test_checks(void)
{
	DAT_EVENT event;
	DAT_COUNT more;
	struct rig rig;

	rig_open(&rig, NULL);
	IS(dat_evd_wait(rig.pz, 0, 1, &event, &more),
	   E(INVALID_HANDLE, INVALID_HANDLE_EVD_REQUEST));
	IS(dat_evd_wait(rig.recv, 0, 1, NULL, &more), E(INVALID_PARAMETER, INVALID_ARG4));
	IS(dat_evd_wait(rig.recv, 0, 1, &event, NULL), E(INVALID_PARAMETER, INVALID_ARG5));
	IS(dat_evd_wait(rig.recv, 0, 0, &event, &more), E(INVALID_PARAMETER, INVALID_ARG3));
	IS(dat_evd_wait(rig.recv, 0, RIG_QLEN + 1, &event, &more),
	   E(INVALID_PARAMETER, INVALID_ARG3));
	MUST(dat_evd_set_unwaitable(rig.recv));
	IS(dat_evd_wait(rig.recv, DAT_TIMEOUT_INFINITE, 1, &event, &more),
	   E(INVALID_STATE, INVALID_STATE_EVD_UNWAITABLE));
	IS(dat_evd_dequeue(rig.recv, &event), DAT_QUEUE_EMPTY);
	MUST(dat_evd_clear_unwaitable(rig.recv));
	IS(dat_evd_wait(rig.recv, 0, 1, &event, &more), DAT_TIMEOUT_EXPIRED);
	rig_close(&rig);
}

static void test_threshold_on_entry(void)
{
	DAT_EVENT event;
	DAT_COUNT more = 77;
	struct rig rig;

	rig_open(&rig, NULL);
	MUST(rig_post_se(rig.recv, 1));
	MUST(rig_post_se(rig.recv, 2));
	memset(&event, 0xab, sizeof(event));
	IS(dat_evd_wait(rig.recv, 0, 3, &event, &more), 0x000f0000u);
	CU_ASSERT_EQUAL(more, 2);
	CU_ASSERT_EQUAL(event.event_number, 0xababababu);
	MUST(rig_post_se(rig.recv, 3));
	MUST(dat_evd_wait(rig.recv, DAT_TIMEOUT_INFINITE, 3, &event, &more));
	CU_ASSERT_EQUAL(more, 2);
	CU_ASSERT_EQUAL((uintptr_t)event.event_data.software_event_data.pointer, 1);
	MUST(dat_evd_wait(rig.recv, DAT_TIMEOUT_INFINITE, 1, &event, &more));
	CU_ASSERT_EQUAL(more, 1);
	MUST(dat_evd_dequeue(rig.recv, &event));
	rig_close(&rig);
}

static void test_timeout_0_touches_no_device(void)
{
	DAT_EVENT event;
	DAT_COUNT more;
	struct rig rig;

	rig_open(&rig, NULL);
	IS(dat_evd_wait(rig.request, 0, 1, &event, &more), DAT_TIMEOUT_EXPIRED);
	CU_ASSERT_EQUAL(rig_cq(rig.request)->arms, 0);
	rig_close(&rig);
}

static void test_timeout_is_not_rounded_down(void)
{
	DAT_EVENT event;
	DAT_COUNT more = 5;
	uint64_t begin;
	struct rig rig;

	rig_open(&rig, NULL);
	begin = clock_now();
	IS(dat_evd_wait(rig.request, 500, 1, &event, &more), DAT_TIMEOUT_EXPIRED);
	CU_ASSERT_TRUE(clock_now() - begin >= 500 * NSEC_PER_USEC);
	CU_ASSERT_EQUAL(more, 0);
	CU_ASSERT_TRUE(rig_cq(rig.request)->arms <= 1);
	rig_close(&rig);
}

/* ---- what wakes a second thread ---- */

static void test_software_event_wakes(void)
{
	struct waiter w;
	DAT_EVENT event;
	DAT_COUNT more;
	struct rig rig;

	rig_open(&rig, NULL);
	wait_start(&w, rig.recv, DAT_TIMEOUT_INFINITE, 1);
	IS(dat_evd_dequeue(rig.recv, &event), E(INVALID_STATE, INVALID_STATE_EVD_WAITER));
	IS(dat_evd_wait(rig.recv, 0, 1, &event, &more), E(INVALID_STATE, INVALID_STATE_EVD_WAITER));
	IS(dat_ia_close(rig.ia, DAT_CLOSE_GRACEFUL_FLAG),
	   E(INVALID_STATE, INVALID_STATE_IA_IN_USE));
	MUST(rig_post_se(rig.recv, 42));
	IS(wait_end(&w), DAT_SUCCESS);
	CU_ASSERT_EQUAL((uintptr_t)w.event.event_data.software_event_data.pointer, 42);
	CU_ASSERT_EQUAL(w.more, 0);
	rig_close(&rig);
}

static void test_completion_wakes(void)
{
	DAT_EP_ATTR attr = rig_attr();
	struct waiter w;
	struct rig rig;

	rig_open(&rig, &attr);
	MUST(rig_recv(&rig, 7));
	wait_start(&w, rig.recv, DAT_TIMEOUT_INFINITE, 1);
	rig_complete(rig.recv, fake.last.wr_id, DAT_DTO_SUCCESS, 3);
	IS(wait_end(&w), DAT_SUCCESS);
	CU_ASSERT_EQUAL(rig_cookie(&w.event), 7);
	CU_ASSERT_EQUAL(rig_cq(rig.recv)->arms, 1);
	rig_close(&rig);
}

/*
 * Runs a wait that has to time out after an event within it. If the event came after the timeout,
 * `run` returns false and is repeated with a longer one, for busy machines.
 */
static void run_out(bool (*run)(DAT_TIMEOUT timeout))
{
	DAT_TIMEOUT timeout = SHORT;

	while (!run(timeout) && timeout < PATIENCE)
		timeout *= 4;
	CU_ASSERT_TRUE(timeout < PATIENCE);
}

static bool wake_below_threshold(DAT_TIMEOUT timeout)
{
	DAT_EVENT event;
	struct waiter w;
	struct rig rig;
	bool in_time;

	rig_open(&rig, NULL);
	wait_start(&w, rig.recv, timeout, 2);
	MUST(rig_post_se(rig.recv, 1));
	in_time = !atomic_load(&w.over);
	IS(wait_end(&w), DAT_TIMEOUT_EXPIRED);
	CU_ASSERT_TRUE(!in_time || w.more == 1);
	CU_ASSERT_TRUE(w.took >= timeout * NSEC_PER_USEC);
	CU_ASSERT_TRUE(w.took < timeout * NSEC_PER_USEC + UNIT_PATIENCE * NSEC_PER_MSEC);
	MUST(dat_evd_dequeue(rig.recv, &event));
	rig_close(&rig);
	return in_time;
}

static void test_wake_below_threshold_keeps_the_deadline(void)
{
	run_out(wake_below_threshold);
}

static void test_threshold_of_completions(void)
{
	DAT_EP_ATTR attr = rig_attr();
	uint64_t ids[3];
	struct waiter w;
	DAT_EVENT event;
	int i;
	struct rig rig;

	rig_open(&rig, &attr);
	for (i = 0; i < 3; i++) {
		MUST(rig_recv(&rig, (uint64_t)i));
		ids[i] = fake.last.wr_id;
	}
	wait_start(&w, rig.recv, DAT_TIMEOUT_INFINITE, 3);
	for (i = 0; i < 3; i++) {
		CU_ASSERT_TRUE(unit_wait_for(is_asleep, rig.recv, UNIT_PATIENCE));
		rig_complete(rig.recv, ids[i], DAT_DTO_SUCCESS, 0);
	}
	IS(wait_end(&w), DAT_SUCCESS);
	CU_ASSERT_EQUAL(rig_cookie(&w.event), 0);
	CU_ASSERT_EQUAL(w.more, 2);
	MUST(dat_evd_dequeue(rig.recv, &event));
	MUST(dat_evd_dequeue(rig.recv, &event));
	rig_close(&rig);
}

static void test_set_unwaitable_wakes(void)
{
	struct waiter w;
	struct rig rig;

	rig_open(&rig, NULL);
	wait_start(&w, rig.request, DAT_TIMEOUT_INFINITE, 1);
	MUST(dat_evd_set_unwaitable(rig.request));
	IS(wait_end(&w), E(INVALID_STATE, INVALID_STATE_EVD_UNWAITABLE));
	wait_start(&w, rig.conn, DAT_TIMEOUT_INFINITE, 1);
	MUST(dat_evd_set_unwaitable(rig.conn));
	IS(wait_end(&w), E(INVALID_STATE, INVALID_STATE_EVD_UNWAITABLE));
	rig_close(&rig);
}

static void test_free_aborts(void)
{
	struct waiter w;
	DAT_EVD_HANDLE spare;
	struct rig rig;

	rig_open(&rig, NULL);
	spare = rig_evd(&rig, 4, DAT_EVD_DTO_FLAG);
	wait_start(&w, spare, DAT_TIMEOUT_INFINITE, 1);
	MUST(dat_evd_free(spare));
	IS(wait_end(&w), E0(ABORT));
	rig_close(&rig);
}

static void test_abrupt_close_aborts(void)
{
	struct waiter w, async;
	struct rig rig;

	rig_open(&rig, NULL);
	wait_start(&w, rig.request, DAT_TIMEOUT_INFINITE, 1);
	wait_start(&async, rig.async, DAT_TIMEOUT_INFINITE, 1);
	MUST(dat_ia_close(rig.ia, DAT_CLOSE_ABRUPT_FLAG));
	IS(wait_end(&w), E0(ABORT));
	IS(wait_end(&async), E0(ABORT));
}

static void test_broken_cq_wakes(void)
{
	struct waiter w;
	struct rig rig;

	rig_open(&rig, NULL);
	wait_start(&w, rig.request, DAT_TIMEOUT_INFINITE, 1);
	fake.upcalls.async(&fake.devices[0], IB_ASYNC_CQ_ERROR, rig.request);
	IS(wait_end(&w), E0(INVALID_STATE));
	rig_take(rig.async);
	rig_close(&rig);
}

static void on_signal(int number)
{
	(void)number;
}

static void signal_test(int flags, unsigned spin_us)
{
	struct sigaction action = { .sa_handler = on_signal, .sa_flags = flags }, old;
	struct waiter w;
	DAT_EVENT event;
	int sent = 0;
	struct rig rig;

	CU_ASSERT_EQUAL_FATAL(sigaction(SIGUSR1, &action, &old), 0);
	rig_open(&rig, NULL);
	MUST(rig_post_se(rig.recv, 1));
	MUST(DAT_EVD_WAIT_POLICY(rig.recv, DAT_EV_WAIT_BLOCK, spin_us));
	wait_start(&w, rig.recv, DAT_TIMEOUT_INFINITE, 2);
	/* The thread may not block yet, so the signal is sent until the wait has ended. */
	while (is_asleep(rig.recv))
		sent |= pthread_kill(w.thread, SIGUSR1);
	CU_ASSERT_EQUAL(sent, 0);
	IS(wait_end(&w), 0x00130000u);
	CU_ASSERT_EQUAL(w.more, 1);
	MUST(dat_evd_dequeue(rig.recv, &event));
	rig_close(&rig);
	CU_ASSERT_EQUAL(sigaction(SIGUSR1, &old, NULL), 0);
}

static void test_signal(void)
{
	signal_test(0, 0);
	signal_test(SA_RESTART, 0);
	signal_test(SA_RESTART, 1000); /* signals are held back once it has polled for so long */
}

static void test_cancel(void)
{
	struct waiter w;
	DAT_EVENT event;
	DAT_COUNT more;
	struct rig rig;

	rig_open(&rig, NULL);
	w = (struct waiter){ .evd = rig.recv, .timeout = DAT_TIMEOUT_INFINITE, .threshold = 1 };
	CU_ASSERT_EQUAL_FATAL(pthread_create(&w.thread, NULL, wait_cancelled, &w), 0);
	CU_ASSERT_TRUE(unit_wait_for(is_asleep, rig.recv, UNIT_PATIENCE));
	CU_ASSERT_EQUAL(pthread_cancel(w.thread), 0);
	CU_ASSERT_TRUE_FATAL(unit_join(w.thread));
	CU_ASSERT_EQUAL(w.took, 0); /* the wait did not return */
	/* another thread can wait, and the lock is free */
	MUST(rig_post_se(rig.recv, 1));
	MUST(dat_evd_wait(rig.recv, 0, 1, &event, &more));
	rig_close(&rig);
}

/* ---- classes of completions ---- */

static void open_class(struct rig *rig, DAT_COMPLETION_FLAGS recv, DAT_COMPLETION_FLAGS request)
{
	DAT_EP_ATTR attr = rig_attr();

	rig_open(rig, NULL);
	MUST(dat_evd_free(rig->recv));
	rig->recv = rig_evd(rig, RIG_QLEN, DAT_EVD_DTO_FLAG);
	attr.recv_completion_flags = recv;
	attr.request_completion_flags = request;
	MUST(dat_ep_create(rig->ia, rig->pz, rig->recv, rig->request, rig->conn, &attr, &rig->ep));
}

static void test_threshold_above_1_needs_its_class(void)
{
	DAT_EVENT event;
	DAT_COUNT more;
	struct rig rig;

	open_class(&rig, DAT_COMPLETION_SOLICITED_WAIT_FLAG, DAT_COMPLETION_UNSIGNALLED_FLAG);
	IS(dat_evd_wait(rig.recv, 0, 2, &event, &more),
	   E(INVALID_STATE, INVALID_STATE_EVD_CONFIG_SOLICITED));
	IS(dat_evd_wait(rig.request, 0, 2, &event, &more),
	   E(INVALID_STATE, INVALID_STATE_EVD_CONFIG_NOTIFY));
	IS(dat_evd_wait(rig.recv, 0, 1, &event, &more), DAT_TIMEOUT_EXPIRED);
	rig_close(&rig);
}

static bool unsignalled_does_not_wake(DAT_TIMEOUT timeout)
{
	DAT_COMPLETION_FLAGS flag = DAT_COMPLETION_UNSIGNALLED_FLAG;
	uint64_t silent, loud;
	struct waiter w;
	DAT_EVENT event;
	struct rig rig;
	bool in_time;

	open_class(&rig, flag, flag);
	MUST(dat_ep_post_recv(rig.ep, 0, NULL, (DAT_DTO_COOKIE){ .as_64 = 1 }, flag));
	silent = fake.last.wr_id;
	MUST(dat_ep_post_recv(rig.ep, 0, NULL, (DAT_DTO_COOKIE){ .as_64 = 2 }, 0));
	loud = fake.last.wr_id;
	wait_start(&w, rig.recv, timeout, 1);
	rig_complete(rig.recv, silent, DAT_DTO_SUCCESS, 0);
	in_time = !atomic_load(&w.over);
	if (wait_end(&w) == DAT_TIMEOUT_EXPIRED && !in_time) {
		rig_close(&rig);
		return false;
	}
	/* the event counts, but only the deadline ends the wait */
	IS(w.status, DAT_SUCCESS);
	CU_ASSERT_TRUE(w.took >= timeout * NSEC_PER_USEC);
	CU_ASSERT_EQUAL(rig_cookie(&w.event), 1);
	wait_start(&w, rig.recv, DAT_TIMEOUT_INFINITE, 1);
	rig_complete(rig.recv, loud, DAT_DTO_SUCCESS, 0);
	IS(wait_end(&w), DAT_SUCCESS);
	/* at the start of a wait any event counts */
	MUST(dat_ep_post_recv(rig.ep, 0, NULL, (DAT_DTO_COOKIE){ .as_64 = 3 }, flag));
	rig_complete(rig.recv, fake.last.wr_id, DAT_DTO_SUCCESS, 0);
	MUST(dat_evd_wait(rig.recv, DAT_TIMEOUT_INFINITE, 1, &event, &w.more));
	CU_ASSERT_EQUAL(rig_cookie(&event), 3);
	/* an error wakes whatever its flags */
	MUST(dat_ep_post_recv(rig.ep, 0, NULL, (DAT_DTO_COOKIE){ .as_64 = 4 }, flag));
	wait_start(&w, rig.recv, DAT_TIMEOUT_INFINITE, 1);
	rig_complete(rig.recv, fake.last.wr_id, DAT_DTO_ERR_FLUSHED, 0);
	IS(wait_end(&w), DAT_SUCCESS);
	rig_close(&rig);
	return in_time;
}

static void test_unsignalled_does_not_wake(void)
{
	run_out(unsignalled_does_not_wake);
}

static void test_solicited(void)
{
	struct ib_completion plain = { .status = DAT_DTO_SUCCESS };
	struct waiter w;
	DAT_EVENT event;
	struct rig rig;

	open_class(&rig, DAT_COMPLETION_SOLICITED_WAIT_FLAG, DAT_COMPLETION_DEFAULT_FLAG);
	MUST(rig_recv(&rig, 1));
	plain.wr_id = fake.last.wr_id;
	MUST(rig_recv(&rig, 2));
	wait_start(&w, rig.recv, DAT_TIMEOUT_INFINITE, 1);
	CU_ASSERT_TRUE(rig_cq(rig.recv)->solicited_only);
	fake_complete(rig_cq(rig.recv), &plain, false);
	CU_ASSERT_TRUE(is_asleep(rig.recv));
	plain.wr_id = fake.last.wr_id;
	fake_complete(rig_cq(rig.recv), &plain, true);
	IS(wait_end(&w), DAT_SUCCESS);
	CU_ASSERT_EQUAL(rig_cookie(&w.event), 1);
	CU_ASSERT_EQUAL(w.more, 1);
	MUST(dat_evd_dequeue(rig.recv, &event));
	rig_close(&rig);
}

static void test_arming_fails(void)
{
	DAT_EVENT event;
	DAT_COUNT more;
	struct rig rig;

	rig_open(&rig, NULL);
	fake.refuse = E0(INTERNAL_ERROR);
	IS(dat_evd_wait(rig.request, DAT_TIMEOUT_INFINITE, 1, &event, &more), E0(INTERNAL_ERROR));
	IS(dat_evd_wait(rig.request, 0, 1, &event, &more), DAT_TIMEOUT_EXPIRED);
	rig_close(&rig);
}

/* ---- between poll and sleep ---- */

static uint64_t late_id;

static void complete_now(struct ib_cq *cq)
{
	const struct ib_completion completion = { .wr_id = late_id, .status = DAT_DTO_SUCCESS };

	fake_complete(cq, &completion, false);
}

/* A completion between the waiter's first poll and its arming, for which the CQ does not fire. */
static void test_completion_before_the_arming(void)
{
	DAT_EP_ATTR attr = rig_attr();
	DAT_EVENT event;
	DAT_COUNT more;
	struct rig rig;

	rig_open(&rig, &attr);
	MUST(rig_recv(&rig, 7));
	late_id = fake.last.wr_id;
	fake.on_arm = complete_now;
	MUST(dat_evd_wait(rig.recv, PATIENCE, 1, &event, &more));
	CU_ASSERT_EQUAL(rig_cookie(&event), 7);
	CU_ASSERT_EQUAL(rig_cq(rig.recv)->blocks, 0);
	rig_close(&rig);
}

__attribute__((constructor)) static void choose_the_device(void)
{
	fake.blocks = EVD_BLOCKS;
}

static const struct unit_test evd_waits[] = {
	{ "to 6", test_checks },
	{ "threshold: a wait returns at once when pending >= threshold", test_threshold_on_entry },
	{ "a wait with enough events neither arms nor blocks", test_timeout_0_touches_no_device },
	{ "a timeout of 500 us lasts 500 us", test_timeout_is_not_rounded_down },
	{ "a software event wakes the waiter; a second waiter is refused",
	  test_software_event_wakes },
	{ "a completion wakes the waiter", test_completion_wakes },
	{ "a wait that is woken below its threshold keeps its deadline",
	  test_wake_below_threshold_keeps_the_deadline },
	{ "threshold: completions that come one by one wake once", test_threshold_of_completions },
	{ "set_unwaitable wakes the waiter, with a CQ and without", test_set_unwaitable_wakes },
	{ "free ends a wait with ABORT", test_free_aborts },
	{ "abrupt close ends waits with ABORT", test_abrupt_close_aborts },
	{ "a CQ that breaks wakes the waiter", test_broken_cq_wakes },
	{ "a signal ends a wait, SA_RESTART or not", test_signal },
	{ "a thread that is cancelled while it blocks leaves nothing behind", test_cancel },
	{ "threshold above 1 needs a threshold EVD", test_threshold_above_1_needs_its_class },
	{ "UNSIGNALLED requests wake by the flag of the post", test_unsignalled_does_not_wake },
	{ "SOLICITED_WAIT receives wake by the sender's flag", test_solicited },
	{ "a wait on a CQ that cannot be armed fails", test_arming_fails },
	{ "a completion between poll and arming ends the wait", test_completion_before_the_arming },
};

#endif
