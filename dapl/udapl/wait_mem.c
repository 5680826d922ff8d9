/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* Waiting until memory changes or an EVD or CNO has something: remote writes raise no descriptor. */
#include <errno.h>
#include <time.h>
#include "dapl/udapl/evd.h"
#include "dapl/udapl/ext.h"
#include "dapl/udapl/sleep.h"
#include "util/clock.h"
#include "util/wait_word.h"

/* Events are noticed within the first while the thread looks, within the last once it sleeps. */
#define ROUND	(50 * NSEC_PER_USEC)
#define LOOKING (200 * NSEC_PER_USEC)
#define NAP	(100 * NSEC_PER_USEC)

struct word_wait {
	struct dapl_evd *evd; /* one of these, or none */
	struct dapl_cno *cno;
	const volatile DAT_UINT64 *addr;
	DAT_UINT64 mask, old;
	uint64_t begin, deadline;
};

/* WAIT_ON: nothing is the matter with the EVD. */
static DAT_RETURN look_at_evd(struct dapl_evd *evd)
{
	DAT_RETURN status = WAIT_ON;

	lock_acquire(&evd->lock);
	if (evd->state & EVD_DYING) {
		status = DAT_ERROR(DAT_ABORT, 0);
	} else if (evd->state & EVD_WAITED) {
		status = DAT_ERROR(DAT_INVALID_STATE, DAT_INVALID_STATE_EVD_WAITER);
	} else if (evd->state & EVD_UNWAITABLE) {
		status = DAT_ERROR(DAT_INVALID_STATE, DAT_INVALID_STATE_EVD_UNWAITABLE);
	} else {
		evd_drain_locked(evd);
		if (evd_take_signal(evd) || evd->state & (EVD_QUEUED | EVD_BROKEN))
			status = DAT_EV_BUSY;
	}
	evd_unlock(evd);
	return status;
}

static DAT_RETURN look_at_cno(struct dapl_cno *cno)
{
	DAT_RETURN status = WAIT_ON;

	if (cno_has_news(cno))
		return DAT_EV_BUSY;
	pthread_mutex_lock(&cno->lock);
	if (cno->dying) {
		status = DAT_ERROR(DAT_ABORT, 0);
	} else if (cno_take_signal_locked(cno)) {
		cno_show_locked(cno);
		status = DAT_EV_BUSY;
	}
	pthread_mutex_unlock(&cno->lock);
	return status;
}

static bool has_changed(const struct word_wait *wait)
{
	/* acquire: what was written before the word is seen */
	return (__atomic_load_n(wait->addr, __ATOMIC_ACQUIRE) ^ wait->old) & wait->mask;
}

static DAT_RETURN look(const struct word_wait *wait)
{
	DAT_RETURN status = WAIT_ON;

	if (has_changed(wait))
		return DAT_SUCCESS;
	if (wait->evd)
		status = look_at_evd(wait->evd);
	else if (wait->cno)
		status = look_at_cno(wait->cno);
	if (status != WAIT_ON)
		return status;
	if (wait->deadline != CLOCK_NEVER && clock_now() >= wait->deadline)
		return has_changed(wait) ? DAT_SUCCESS : DAT_TIMEOUT_EXPIRED;
	return WAIT_ON;
}

/* At rest on the word if the processor can, however long it takes; else a look at full speed. */
static void rest(const struct word_wait *wait)
{
	uint64_t now = clock_now(), end = now + ROUND;

	if (end > wait->deadline)
		end = wait->deadline;
	do {
		wait_word(wait->addr, wait->mask, wait->old, end > now ? end - now : 0);
		now = clock_now();
	} while (now < end && !has_changed(wait));
}

static DAT_RETURN nap(const struct word_wait *wait)
{
	struct timespec time = { .tv_nsec = (long)NAP };
	uint64_t now = clock_now();

	if (wait->deadline < now + NAP)
		time.tv_nsec = wait->deadline > now ? (long)(wait->deadline - now) : 0;
	/* no failure: without a class */
	return clock_nanosleep(CLOCK_MONOTONIC, 0, &time, NULL) == EINTR ? DAT_INTERRUPTED_CALL
									 : WAIT_ON;
}

static DAT_RETURN wait_for_word(const struct word_wait *wait)
{
	bool at_rest = wait_word_is_supported();
	DAT_RETURN status;

	for (;;) {
		status = look(wait);
		if (status != WAIT_ON)
			return status;
		if (at_rest || clock_now() - wait->begin < LOOKING) {
			rest(wait);
			continue;
		}
		status = nap(wait);
		if (status != WAIT_ON)
			return has_changed(wait) ? DAT_SUCCESS : status;
	}
}

DAT_RETURN ext_wait_mem(DAT_HANDLE handle, va_list args)
{
	struct word_wait wait = { .evd = evd_from(handle),
				  .cno = cno_from(handle),
				  .begin = clock_now(),
				  .deadline = CLOCK_NEVER };
	DAT_TIMEOUT timeout;

	wait.addr = va_arg(args, const volatile DAT_UINT64 *);
	wait.mask = va_arg(args, DAT_UINT64);
	wait.old = va_arg(args, DAT_UINT64);
	timeout = va_arg(args, DAT_TIMEOUT);
	if (!wait.evd && !wait.cno && !ia_from(handle))
		return DAT_ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE1);
	if (!wait.addr || (uintptr_t)wait.addr % 8)
		return DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG3);
	if (!wait.mask)
		return DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG4);

	if (timeout != DAT_TIMEOUT_INFINITE)
		wait.deadline = wait.begin + timeout * NSEC_PER_USEC;
	return wait_for_word(&wait);
}
