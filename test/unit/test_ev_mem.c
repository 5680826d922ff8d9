/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* Waiting for a change of memory, and arming many objects before one sleep. */
#include <signal.h>
#include "dapl/udapl/base/wait.h"
#include "test/unit/ev_rig.h"
#include "util/wait_word.h"

static DAT_UINT64 word __attribute__((aligned(16)));

static void test_checks(void)
{
	struct evd_sleeper sleeper;
	struct rig rig;

	rig_open(&rig, NULL);
	word = 1;
	IS(DAT_WAIT_MEM(rig.pz, &word, 1, 0, 0), BAD_HANDLE1);
	IS(DAT_WAIT_MEM(rig.ia, NULL, 1, 0, 0), ARG(3));
	IS(DAT_WAIT_MEM(rig.ia, (void *)((char *)&word + 4), 1, 0, 0), ARG(3));
	IS(DAT_WAIT_MEM(rig.ia, &word, 0, 0, 0), ARG(4));
	evd_sleep_start(&sleeper, rig.recv);
	IS(DAT_WAIT_MEM(rig.recv, &word, 1, 1, 0), E(INVALID_STATE, INVALID_STATE_EVD_WAITER));
	MUST(dat_evd_set_unwaitable(rig.recv));
	IS(evd_sleep_end(&sleeper), E(INVALID_STATE, INVALID_STATE_EVD_UNWAITABLE));
	IS(DAT_WAIT_MEM(rig.recv, &word, 1, 1, 0), E(INVALID_STATE, INVALID_STATE_EVD_UNWAITABLE));
	rig_close(&rig);
}

static void test_changed_before(void)
{
	struct rig rig;

	rig_open(&rig, NULL);
	word = 0x100;
	IS(DAT_WAIT_MEM(rig.ia, &word, ~0ull, 0, DAT_TIMEOUT_INFINITE), DAT_SUCCESS);
	IS(DAT_WAIT_MEM(rig.ia, &word, ~0ull, 0, 0), DAT_SUCCESS);
	/* the changed bits are not in the mask */
	IS(DAT_WAIT_MEM(rig.ia, &word, 0xff, 0, 0), DAT_TIMEOUT_EXPIRED);
	MUST(rig_post_se(rig.recv, 1));
	IS(DAT_WAIT_MEM(rig.recv, &word, ~0ull, 0, 0), DAT_SUCCESS); /* memory is checked first */
	rig_empty(rig.recv, 1);
	rig_close(&rig);
}

static void test_never(void)
{
	uint64_t begin, took;
	struct rig rig;

	rig_open(&rig, NULL);
	word = 5;
	begin = clock_now();
	IS(DAT_WAIT_MEM(rig.ia, &word, ~0ull, 5, 30000), DAT_TIMEOUT_EXPIRED);
	took = clock_now() - begin;
	CU_ASSERT_TRUE(took >= 30 * NSEC_PER_MSEC);
	begin = clock_now();
	IS(DAT_WAIT_MEM(rig.recv, &word, ~0ull, 5, 700), DAT_TIMEOUT_EXPIRED);
	CU_ASSERT_TRUE(clock_now() - begin >= 700 * NSEC_PER_USEC);
	rig_close(&rig);
}

/* ---- a second thread that waits ---- */

struct mem_waiter {
	pthread_t thread;
	DAT_HANDLE handle;
	atomic_bool inside;
	DAT_RETURN status;
	DAT_UINT64 seen;
};

static DAT_UINT64 payload;
static _Thread_local struct mem_waiter *waiter;

/*
 * These functions block. A thread that enters one has found its object and nothing to return for.
 */
static void inside(void)
{
	if (waiter)
		atomic_store(&waiter->inside, true);
}

void __real_wait_word(const volatile uint64_t *, uint64_t, uint64_t, uint64_t);
void __wrap_wait_word(const volatile uint64_t *, uint64_t, uint64_t, uint64_t);
int __real_wait_break(struct wait *, uint64_t);
int __wrap_wait_break(struct wait *, uint64_t);

void __wrap_wait_word(const volatile uint64_t *addr, uint64_t mask, uint64_t seen, uint64_t time)
{
	inside();
	__real_wait_word(addr, mask, seen, time);
}

int __wrap_wait_break(struct wait *wait, uint64_t nanoseconds)
{
	inside();
	return __real_wait_break(wait, nanoseconds);
}

static void *wait_run(void *arg)
{
	struct mem_waiter *w = waiter = arg;

	w->status = DAT_WAIT_MEM(w->handle, &word, 0xff, 7, DAT_TIMEOUT_INFINITE);
	w->seen = payload;
	return NULL;
}

static bool is_inside(void *arg)
{
	return atomic_load(&((struct mem_waiter *)arg)->inside);
}

static void waiter_start(struct mem_waiter *w, DAT_HANDLE handle)
{
	__atomic_store_n(&word, 0x107, __ATOMIC_SEQ_CST);
	*w = (struct mem_waiter){ .handle = handle };
	CU_ASSERT_EQUAL_FATAL(pthread_create(&w->thread, NULL, wait_run, w), 0);
	CU_ASSERT_TRUE(unit_wait_for(is_inside, w, UNIT_PATIENCE));
}

static DAT_RETURN waiter_end(struct mem_waiter *w)
{
	CU_ASSERT_TRUE_FATAL(unit_join(w->thread));
	return w->status;
}

static void test_changed_during(void)
{
	struct mem_waiter w[3];
	DAT_CNO_HANDLE cno;
	struct rig rig;
	unsigned round, i;

	rig_open(&rig, NULL);
	cno = rig_cno(&rig);
	for (round = 0; round < 20; round++) {
		payload = 0;
		waiter_start(&w[0], rig.ia);
		waiter_start(&w[1], rig.recv);
		waiter_start(&w[2], cno);
		__atomic_store_n(&word, 0x207, __ATOMIC_SEQ_CST); /* not in the mask */
		payload = 4711;
		__atomic_store_n(&word, 0x208, __ATOMIC_RELEASE);
		for (i = 0; i < COUNT(w); i++) {
			IS(waiter_end(&w[i]), DAT_SUCCESS);
			CU_ASSERT_EQUAL(w[i].seen, 4711);
		}
	}
	MUST(dat_cno_free(cno));
	rig_close(&rig);
}

static void test_event_meanwhile(void)
{
	struct mem_waiter w;
	DAT_CNO_HANDLE cno;
	struct rig rig;

	rig_open_ep(&rig);
	rig_connect(&rig);
	cno = rig_cno(&rig);
	MUST(rig_recv(&rig, 1));
	waiter_start(&w, rig.recv);
	rig_complete(rig.recv, fake.last.wr_id, DAT_DTO_SUCCESS, 0);
	IS(waiter_end(&w), DAT_EV_BUSY);
	IS(DAT_WAIT_MEM(rig.recv, &word, 0xff, 7, 0), DAT_EV_BUSY); /* the call took no event */
	rig_empty(rig.recv, 1);
	waiter_start(&w, rig.recv);
	MUST(DAT_EVD_SIGNAL(rig.recv));
	IS(waiter_end(&w), DAT_EV_BUSY);
	/* the signal is used up */
	IS(DAT_WAIT_MEM(rig.recv, &word, 0xff, 7, 0), DAT_TIMEOUT_EXPIRED);
	MUST(dat_evd_modify_cno(rig.recv, cno));
	waiter_start(&w, cno);
	MUST(rig_post_se(rig.recv, 1));
	IS(waiter_end(&w), DAT_EV_BUSY);
	rig_empty(rig.recv, 1);
	waiter_start(&w, cno);
	MUST(DAT_CNO_SIGNAL(cno));
	IS(waiter_end(&w), DAT_EV_BUSY);
	IS(DAT_WAIT_MEM(cno, &word, 0xff, 7, 0), DAT_TIMEOUT_EXPIRED);
	waiter_start(&w, rig.recv);
	MUST(dat_evd_set_unwaitable(rig.recv));
	IS(waiter_end(&w), E(INVALID_STATE, INVALID_STATE_EVD_UNWAITABLE));
	MUST(dat_evd_modify_cno(rig.recv, DAT_HANDLE_NULL));
	MUST(dat_cno_free(cno));
	rig_close(&rig);
}

static void test_freed_meanwhile(void)
{
	DAT_EVD_HANDLE evd;
	struct mem_waiter w;
	DAT_CNO_HANDLE cno;
	struct rig rig;

	rig_open(&rig, NULL);
	MUST(dat_evd_create(rig.ia, 8, DAT_HANDLE_NULL, DAT_EVD_SOFTWARE_FLAG, &evd));
	waiter_start(&w, evd);
	IS(dat_evd_free(evd), DAT_SUCCESS);
	IS(waiter_end(&w), E(ABORT, NO_SUBTYPE));
	IS(DAT_WAIT_MEM(evd, &word, 0xff, 7, 0), BAD_HANDLE1);
	cno = rig_cno(&rig);
	waiter_start(&w, cno);
	IS(dat_cno_free(cno), DAT_SUCCESS);
	IS(waiter_end(&w), E(ABORT, NO_SUBTYPE));
	IS(DAT_WAIT_MEM(cno, &word, 0xff, 7, 0), BAD_HANDLE1);
	rig_close(&rig);
}

static atomic_uint signals;

static void on_signal(int number)
{
	(void)number;
	atomic_fetch_add(&signals, 1);
}

static bool is_interrupted(void *arg)
{
	struct mem_waiter *w = arg;

	if (!pthread_tryjoin_np(w->thread, NULL))
		return true;
	pthread_kill(w->thread, SIGUSR1);
	return false;
}

/* Sends signals repeatedly, because one that arrives before the wait has no effect. */
static void test_interrupted(void)
{
	struct sigaction action = { .sa_handler = on_signal }, old;
	struct mem_waiter w;
	struct rig rig;

	rig_open(&rig, NULL);
	sigaction(SIGUSR1, &action, &old);
	waiter_start(&w, rig.ia);
	CU_ASSERT_TRUE(unit_wait_for(is_interrupted, &w, UNIT_PATIENCE));
	IS(w.status, DAT_INTERRUPTED_CALL);
	sigaction(SIGUSR1, &old, NULL);
	rig_close(&rig);
}

static void test_wait_word(void)
{
	uint64_t begin = clock_now();

	/* Returns with and without a write, with and without the CPU's wait instructions. */
	word = 3;
	wait_word(&word, ~0ull, 4, NSEC_PER_SEC);
	wait_word(&word, ~0ull, 3, 100 * NSEC_PER_USEC);
	CU_ASSERT_TRUE(clock_now() - begin < UNIT_PATIENCE * NSEC_PER_MSEC);
}

/* ---- DAT_TRYWAIT ---- */

static void test_trywait(void)
{
	DAT_HANDLE handles[4];
	DAT_COUNT busy = 77;
	DAT_CNO_HANDLE cno;
	struct rig rig;

	rig_open_ep(&rig);
	rig_connect(&rig);
	cno = rig_cno(&rig);
	MUST(dat_evd_modify_cno(rig.request, cno));
	handles[0] = rig.conn;
	handles[1] = cno;
	handles[2] = rig.recv;
	handles[3] = rig.pz;
	IS(DAT_TRYWAIT(rig.recv, handles, 3, &busy), BAD_HANDLE1);
	IS(DAT_TRYWAIT(rig.ia, NULL, 3, &busy), ARG(3));
	IS(DAT_TRYWAIT(rig.ia, handles, 0, &busy), ARG(4));
	CU_ASSERT_EQUAL(busy, 77);
	IS(DAT_TRYWAIT(rig.ia, handles, 4, &busy), BAD_HANDLE1);
	CU_ASSERT_EQUAL(busy, 3);
	CU_ASSERT_EQUAL(rig_cq(rig.recv)->arms, 0); /* nothing was armed */
	handles[3] = (DAT_HANDLE)(uintptr_t)1;
	IS(DAT_TRYWAIT(rig.ia, handles, 4, NULL), BAD_HANDLE1);
	MUST(rig_post_se(rig.recv, 1));
	MUST(DAT_CNO_SIGNAL(cno));
	IS(DAT_TRYWAIT(rig.ia, handles, 3, &busy), DAT_EV_BUSY);
	CU_ASSERT_EQUAL(busy, 1);
	CU_ASSERT_EQUAL(rig_cq(rig.recv)->arms, 0); /* objects after the ready one are unchanged */
	IS(DAT_TRYWAIT(rig.ia, handles, 3, &busy), DAT_EV_BUSY);
	CU_ASSERT_EQUAL(busy, 2);
	rig_empty(rig.recv, 1);
	MUST(dat_evd_set_unwaitable(rig.recv));
	IS(DAT_TRYWAIT(rig.ia, handles, 3, &busy), E(INVALID_STATE, INVALID_STATE_EVD_UNWAITABLE));
	CU_ASSERT_EQUAL(busy, 2);
	MUST(dat_evd_clear_unwaitable(rig.recv));
	busy = 77;
	IS(DAT_TRYWAIT(rig.ia, handles, 3, &busy), DAT_SUCCESS);
	CU_ASSERT_EQUAL(busy, 77);
	rig_receive(&rig, 1);
	CU_ASSERT_TRUE(rig_readable(rig_evd_fd(rig.recv)));
	rig_empty(rig.recv, 1);
	MUST(dat_evd_modify_cno(rig.request, DAT_HANDLE_NULL));
	MUST(dat_cno_free(cno));
	rig_close(&rig);
}

static const struct unit_test tests[] = {
	{ "every check", test_checks },
	{ "memory that changed before the call ends it at once", test_changed_before },
	{ "memory that does not change: the call ends at the timeout, not early", test_never },
	{ "a change during the call ends it, and earlier writes are visible", test_changed_during },
	{ "an event, a signal or an unwaitable EVD ends the call", test_event_meanwhile },
	{ "a free of the EVD or CNO ends the call", test_freed_meanwhile },
	{ "a signal handler ends a sleep", test_interrupted },
	{ "the wait for one write is bounded", test_wait_word },
	{ "many objects can be armed before one sleep", test_trywait },
};

UNIT_MAIN("ev_mem", tests)
