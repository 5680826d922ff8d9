/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* A thread that waits for events. The loop is that of base/wait.c; one set of operations serves all kinds of EVDs. */
#include <errno.h>
#include <string.h>
#include "dapl/udapl/evd/evd_take.h"
#include "dapl/udapl/evd/waiter.h"
#include "dapl/udapl/base/provider.h"
#include "util/cancel.h"
#include "util/log.h"

#define QUICK_POLLS 32 /* polls of the CQ alone between two full polls */

DAT_RETURN evd_check_class_locked(const struct dapl_evd *evd, DAT_COUNT threshold)
{
	if (threshold > 1 && evd->arming & EVD_UNSIGNALLED)
		return DAT_ERROR(DAT_INVALID_STATE, DAT_INVALID_STATE_EVD_CONFIG_NOTIFY);
	if (threshold > 1 && evd->arming & EVD_SOLICITED)
		return DAT_ERROR(DAT_INVALID_STATE, DAT_INVALID_STATE_EVD_CONFIG_SOLICITED);
	return DAT_SUCCESS;
}

static DAT_RETURN evd_wait_check_locked(const struct dapl_evd *evd, DAT_COUNT threshold)
{
	if (evd->state & EVD_DYING)
		return DAT_ERROR(DAT_ABORT, 0);
	if (evd->state & EVD_BROKEN && evd->head == evd->tail && !(evd->state & EVD_HOLDING))
		return DAT_ERROR(DAT_INVALID_STATE, 0);
	if (evd->state & EVD_UNWAITABLE)
		return DAT_ERROR(DAT_INVALID_STATE, DAT_INVALID_STATE_EVD_UNWAITABLE);
	if (evd->state & EVD_WAITED)
		return DAT_ERROR(DAT_INVALID_STATE, DAT_INVALID_STATE_EVD_WAITER);
	return evd_check_class_locked(evd, threshold);
}

static DAT_RETURN take_first_locked(struct dapl_evd *evd, DAT_EVENT *event, DAT_COUNT *more)
{
	evd_take_locked(evd, event);
	*more = evd_count_locked(evd);
	return DAT_SUCCESS;
}

static bool evd_is_fast_locked(const struct dapl_evd *evd)
{
	return evd->state == EVD_WAITED;
}

/*
 * If one completion is enough and the EVD takes no other events, the completion is passed directly to the caller. The
 * lock is ceded between two polls to a thread that waits for it.
 */
static bool poll_quickly_locked(const struct waiter *self)
{
	struct dapl_evd *evd = self->evd;

	for (unsigned i = 0; i < QUICK_POLLS && evd_is_fast_locked(evd) && evd->need == 1; i++) {
		if (evd_take_fast_locked(evd, self->event)) {
			if (!ib_cq_was_last(evd->cq))
				evd_drain_locked(evd);
			*self->more = evd_count_locked(evd);
			return true;
		}
		lock_cede(&evd->lock);
	}
	return false;
}

/* After a drain: the status that ends the wait, or WAIT_ON. */
static DAT_RETURN evd_wait_status_locked(const struct waiter *self)
{
	struct dapl_evd *evd = self->evd;
	bool enough = evd_count_locked(evd) >= evd->need, over;

	if (enough && evd->notes & EVD_MAY_RETURN)
		return take_first_locked(evd, self->event, self->more);
	if (evd->state & EVD_DYING)
		return DAT_ERROR(DAT_ABORT, 0);
	if (evd->state & EVD_UNWAITABLE)
		return DAT_ERROR(DAT_INVALID_STATE, DAT_INVALID_STATE_EVD_UNWAITABLE);
	if (evd->state & EVD_BROKEN && !enough)
		return DAT_ERROR(DAT_INVALID_STATE, 0);
	over = wait_is_over(&self->wait);
	if (over && enough)
		return take_first_locked(evd, self->event, self->more);
	*self->more = evd_count_locked(evd);
	if (over)
		return DAT_TIMEOUT_EXPIRED; /* no failure: without a class */
	if (evd_take_signal(evd))
		return DAT_INTERRUPTED_CALL; /* likewise */
	return WAIT_ON;
}

static DAT_RETURN evd_wait_poll_locked(struct wait *wait)
{
	const struct waiter *self = evd_wait_waiter_of(wait);

	if (wait->polls && poll_quickly_locked(self))
		return DAT_SUCCESS;
	evd_drain_locked(self->evd);
	return evd_wait_status_locked(self);
}

static DAT_RETURN arm_locked(struct wait *wait)
{
	const struct waiter *self = evd_wait_waiter_of(wait);

	if (self->evd->cq && evd_arm_cq_locked(self->evd, false) != DAT_SUCCESS)
		return DAT_ERROR(DAT_INTERNAL_ERROR, 0);
	return evd_wait_status_locked(self);
}

/*
 * Triggers the CNO for events that arrived during the wait, beyond the `known` ones that the call
 * reported.
 */
static void evd_wait_leave_locked(struct dapl_evd *evd, DAT_COUNT known)
{
	evd->state &= ~EVD_WAITED;
	if (evd->state & EVD_DYING)
		wakefd_raise(&evd->left);
	evd_rearm_and_count_locked(evd, known);
}

/* ---- between two polls ---- */

static void evd_wait_leave_cancelled(struct wait *wait)
{
	struct waiter *self = evd_wait_waiter_of(wait);
	struct dapl_evd *evd = self->evd;
	bool fired = evd_wait_unblock(self);

	evd_wait_read_end(self);
	lock_acquire(&evd->lock);
	if (fired)
		evd_disarmed_locked(evd);
	evd_wait_leave_locked(evd, 0);
	evd_unlock(evd);
}

static DAT_RETURN evd_wait_pause_locked(struct wait *wait)
{
	struct waiter *self = evd_wait_waiter_of(wait);
	struct dapl_evd *evd = self->evd;
	int error = 0;

	if (evd_read_cm_locked(evd, self->pauses++))
		return WAIT_ON;
	evd_unlock(evd);
	wait_relax(wait);
	if (wait_break_is_due(wait))
		error = wait_break(wait, 0);
	lock_admit(&evd->lock);
	lock_acquire(&evd->lock);
	return error == EINTR ? evd_wait_interrupted_locked(self) : WAIT_ON;
}

static const struct wait_ops evd_ops = {
	.poll_locked = evd_wait_poll_locked,
	.arm_locked = arm_locked,
	.pause_locked = evd_wait_pause_locked,
	.block_locked = evd_wait_block_locked,
	.leave = evd_wait_leave_cancelled,
};

/* ---- the call ---- */

/* True if the call sets *more for this status. */
static bool status_counts(DAT_RETURN status)
{
	return status == DAT_SUCCESS || status == DAT_TIMEOUT_EXPIRED ||
	       status == DAT_INTERRUPTED_CALL;
}

/* Sets the descriptors to block on. Under the EVD's lock, because an EVD that is being freed loses its CQ. */
static DAT_RETURN evd_wait_open_locked(struct waiter *self, int wake)
{
	struct dapl_evd *evd = self->evd;
	struct wait *wait = &self->wait;

	wait->policy = evd->policy;
	wait->spin = evd->spin;
	wait->fds[0] = (struct pollfd){ .fd = wake, .events = POLLIN };
	wait->fds[1] = (struct pollfd){ .fd = evd->cq ? ib_cq_fd(evd->cq) : -1, .events = POLLIN };
	wait->fds[2] = (struct pollfd){ .fd = -1, .events = POLLIN };
	wait->count = evd->cq ? 2 : 1;
	self->reads_cm = self->may_read = evd_has_cm_alone(evd);
	if (wake >= 0)
		return DAT_SUCCESS;
	log_at(LOG_ERROR, "evd %p: eventfd: %s", (void *)evd, strerror(errno));
	return DAT_ERROR(DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_DEVICE);
}

static DAT_RETURN evd_wait_run_locked(struct waiter *self, DAT_COUNT threshold)
{
	struct dapl_evd *evd = self->evd;
	DAT_RETURN status;

	evd->state |= EVD_WAITED;
	evd->need = threshold;
	/* until the thread first blocks, any event may end the wait */
	evd->notes |= EVD_MAY_RETURN;
	status = wait_run_locked(&self->wait);
	/* the device may be closed once this thread has left the EVD */
	if (self->reads || self->awaits) {
		lock_release(&evd->lock);
		evd_wait_read_end(self);
		lock_acquire(&evd->lock);
	}
	evd_wait_leave_locked(evd, status_counts(status) ? *self->more : 0);
	return status;
}

static DAT_RETURN wait_slow(struct waiter *self, DAT_TIMEOUT timeout, DAT_COUNT threshold)
{
	struct dapl_evd *evd = self->evd;
	DAT_RETURN status;
	bool freed;
	int wake;

	wait_begin(&self->wait, timeout);
	wake = wakefd_get(&evd->wake);
	lock_acquire(&evd->lock);
	status = evd_wait_check_locked(evd, threshold);
	if (status == DAT_SUCCESS)
		status = evd_wait_open_locked(self, wake);
	if (status == DAT_SUCCESS)
		status = evd_wait_run_locked(self, threshold);
	/* Freed between check and lock: the descriptor may have been created after evd_end closed it. */
	freed = evd->state & EVD_DYING && !(evd->state & EVD_WAITED);
	evd_unlock(evd);
	if (freed)
		wakefd_close(&evd->wake);
	wait_end(&self->wait);
	return status;
}

/* The status of a wait that ends without blocking, or WAIT_ON. Releases the lock. */
static DAT_RETURN wait_at_once(struct dapl_evd *evd, DAT_TIMEOUT timeout, DAT_COUNT threshold,
			       DAT_EVENT *event, DAT_COUNT *more)
{
	DAT_RETURN status;

	if (threshold <= 0 || threshold > evd->qlen)
		status = DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG3);
	else
		status = evd_wait_check_locked(evd, threshold);
	if (status != DAT_SUCCESS) {
		lock_release(&evd->lock);
		return status;
	}
	evd_drain_locked(evd);
	status = WAIT_ON;
	if (evd_count_locked(evd) >= threshold) {
		status = take_first_locked(evd, event, more);
	} else if (!timeout) {
		*more = evd_count_locked(evd);
		status = DAT_TIMEOUT_EXPIRED; /* no failure: without a class */
	}
	evd_unlock(evd);
	return status;
}

DAT_RETURN evd_wait_locked(struct dapl_evd *evd, int cancel, DAT_TIMEOUT timeout,
			   DAT_COUNT threshold, DAT_EVENT *event, DAT_COUNT *more)
{
	struct waiter self = { .evd = evd, .event = event, .more = more };
	DAT_RETURN status;

	self.wait.ops = &evd_ops;
	self.wait.cancel = cancel;
	status = wait_at_once(evd, timeout, threshold, event, more);
	return status == WAIT_ON ? wait_slow(&self, timeout, threshold) : status;
}
