/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* Waits until memory changes or an EVD or CNO has an event: remote writes raise no descriptor. */
#include <errno.h>
#include "dapl/udapl/evd/evd.h"
#include "dapl/udapl/cno/cno.h"
#include "dapl/udapl/base/wait.h"
#include "util/cancel.h"
#include "util/clock.h"
#include "util/wait_word.h"

/*
 * Events are noticed within the first interval while the thread polls, and within the last one once
 * it blocks.
 */
#define ROUND	 (50 * NSEC_PER_USEC)
#define POLLING	 (200 * NSEC_PER_USEC)
#define BLOCKING (100 * NSEC_PER_USEC)

struct word_wait {
	struct wait wait;
	struct dapl_evd *evd; /* an EVD, a CNO, or none */
	struct dapl_cno *cno;
	const volatile DAT_UINT64 *addr;
	DAT_UINT64 mask, old;
	uint64_t begin;
};

/* The thread holds nothing between two polls. */
static void wait_mem_leave(struct wait *wait)
{
	(void)wait;
}

static const struct wait_ops word_ops = { .leave = wait_mem_leave };

/* WAIT_ON if the EVD has nothing to report. */
static DAT_RETURN evd_poll(struct dapl_evd *evd)
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

static DAT_RETURN cno_poll(struct dapl_cno *cno)
{
	DAT_RETURN status = WAIT_ON;

	if (cno_is_pending(cno))
		return DAT_EV_BUSY;
	pthread_mutex_lock(&cno->lock);
	if (cno->state & CNO_DYING) {
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
	/* acquire: writes before that of the word are seen */
	return (__atomic_load_n(wait->addr, __ATOMIC_ACQUIRE) ^ wait->old) & wait->mask;
}

static DAT_RETURN word_poll(const struct word_wait *wait)
{
	DAT_RETURN status = WAIT_ON;

	if (has_changed(wait))
		return DAT_SUCCESS;
	if (wait->evd)
		status = evd_poll(wait->evd);
	else if (wait->cno)
		status = cno_poll(wait->cno);
	if (status != WAIT_ON)
		return status;
	if (wait_is_over(&wait->wait))
		return has_changed(wait) ? DAT_SUCCESS : DAT_TIMEOUT_EXPIRED;
	return WAIT_ON;
}

/*
 * Waits for a write to the word if the processor can do that, for any time; else polls at full
 * speed.
 */
static void rest(const struct word_wait *wait)
{
	uint64_t now = clock_now(), end = now + ROUND;

	if (end > wait->wait.deadline)
		end = wait->wait.deadline;
	do {
		wait_word(wait->addr, wait->mask, wait->old, end > now ? end - now : 0);
		now = clock_now();
	} while (now < end && !has_changed(wait));
}

/* Blocks for a short time, or not at all if the thread has waited on the word. */
static DAT_RETURN word_block(struct word_wait *wait, uint64_t nanoseconds)
{
	uint64_t now = clock_now(), deadline = wait->wait.deadline;
	int error;

	if (deadline < now + nanoseconds)
		nanoseconds = deadline > now ? deadline - now : 0;
	error = wait_break(&wait->wait, nanoseconds);
	return error == EINTR ? DAT_INTERRUPTED_CALL : WAIT_ON; /* no failure: without a class */
}

static DAT_RETURN wait_for_word(struct word_wait *wait)
{
	bool at_rest = wait_word_is_supported(), polls;
	DAT_RETURN status;

	for (;;) {
		status = word_poll(wait);
		if (status != WAIT_ON)
			return status;
		polls = at_rest || clock_now() - wait->begin < POLLING;
		if (polls)
			rest(wait);
		if (!polls || wait_break_is_due(&wait->wait))
			status = word_block(wait, polls ? 0 : BLOCKING);
		if (status != WAIT_ON)
			return has_changed(wait) ? DAT_SUCCESS : status;
	}
}

DAT_RETURN ext_wait_mem(DAT_HANDLE handle, va_list args)
{
	struct word_wait wait = { .evd = evd_from(handle),
				  .cno = cno_from(handle),
				  .begin = clock_now() };
	DAT_TIMEOUT timeout;
	DAT_RETURN status;

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

	wait.wait.ops = &word_ops;
	wait.wait.cancel = cancel_off();
	wait_begin(&wait.wait, timeout);
	status = wait_for_word(&wait);
	wait_end(&wait.wait);
	cancel_restore(wait.wait.cancel);
	return status;
}
