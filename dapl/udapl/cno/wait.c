/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* Consumes a trigger of a CNO, with or without a wait. */
#include <errno.h>
#include <string.h>
#include "dapl/udapl/cno/cno.h"
#include "dapl/udapl/evd/evd.h"
#include "dapl/udapl/base/provider.h"
#include "dapl/udapl/base/wait.h"
#include "util/cancel.h"
#include "util/log.h"

/*
 * After this many takes from the ready list the channels are read again, so that an EVD whose
 * completions are not on the list is not passed over.
 */
#define TAKES 8

/* One thread inside dat_cno_wait. */
struct waiter {
	struct wait wait;
	struct dapl_cno *cno;
	struct dapl_evd *evd; /* the EVD that the wait returns */
	unsigned round;	      /* the CNO's round when the wait began */
};

static struct waiter *cno_wait_waiter_of(struct wait *wait)
{
	return (struct waiter *)wait;
}

static bool has_pending(struct dapl_evd *evd)
{
	bool pending;

	lock_acquire(&evd->lock);
	evd->state &= ~EVD_READY;
	pending = evd->state & (EVD_QUEUED | EVD_BROKEN);
	lock_release(&evd->lock);
	return pending;
}

/*
 * Returns the next EVD that has an event, or NULL if the CNO is not triggered. Completions in the
 * CQ of an EVD are not polled: the CQ is armed, so they make a trigger of their own.
 */
static struct dapl_evd *take_locked(struct dapl_cno *cno, bool latest)
{
	struct dapl_evd *evd;

	cno->state &= ~CNO_CHANGED;
	if (latest || TAILQ_EMPTY(&cno->ready) || ++cno->takes % TAKES == 0)
		cno_serve_locked(cno);
	while ((evd = latest ? TAILQ_LAST(&cno->ready, cno_ready) : TAILQ_FIRST(&cno->ready))) {
		TAILQ_REMOVE(&cno->ready, evd, ready_link);
		if (has_pending(evd)) {
			cno->state &= ~CNO_MISSED;
			break;
		}
	}
	cno_show_locked(cno);
	return evd;
}

static DAT_RETURN cno_wait_poll_locked(struct wait *wait)
{
	struct waiter *self = cno_wait_waiter_of(wait);
	struct dapl_cno *cno = self->cno;

	self->evd = take_locked(cno, false);
	if (self->evd || self->round != cno->round || cno_take_signal_locked(cno))
		return DAT_SUCCESS;
	/* A trigger that came after the last poll is taken. */
	if (wait_is_over(wait))
		return DAT_QUEUE_EMPTY; /* no failure: without a class */
	return WAIT_ON;
}

static void cno_wait_leave_locked(const struct waiter *self)
{
	struct dapl_cno *cno = self->cno;

	cno->waiters--;
	if (self->round != cno->round)
		cno->leaving--;
	cno_show_locked(cno);
}

static void cno_wait_leave_cancelled(struct wait *wait)
{
	const struct waiter *self = cno_wait_waiter_of(wait);
	struct dapl_cno *cno = self->cno;

	pthread_mutex_lock(&cno->lock);
	cno_wait_leave_locked(self);
	pthread_mutex_unlock(&cno->lock);
	obj_release(&cno->obj);
}

static DAT_RETURN blocked(const struct dapl_cno *cno, int error)
{
	if (!error)
		return WAIT_ON;
	if (error == EINTR)
		return DAT_INTERRUPTED_CALL; /* no failure: without a class */
	log_at(LOG_ERROR, "cno %p: ppoll: %s", (const void *)cno, strerror(error));
	return DAT_ERROR(DAT_INTERNAL_ERROR, 0);
}

/*
 * The descriptor becomes readable for everything that a poll could find, so the lock stays free for
 * triggers until then.
 */
static DAT_RETURN cno_wait_pause_locked(struct wait *wait)
{
	struct dapl_cno *cno = cno_wait_waiter_of(wait)->cno;
	int error = 0;

	pthread_mutex_unlock(&cno->lock);
	do
		wait_relax(wait);
	while (!poll(wait->fds, wait->count, 0) && !wait_break_is_due(wait) && !wait_is_over(wait));
	if (wait_break_is_due(wait))
		error = wait_break(wait, 0);
	pthread_mutex_lock(&cno->lock);
	return blocked(cno, error);
}

static DAT_RETURN cno_wait_block_locked(struct wait *wait)
{
	struct dapl_cno *cno = cno_wait_waiter_of(wait)->cno;
	int error;

	pthread_mutex_unlock(&cno->lock);
	error = wait_block(wait);
	pthread_mutex_lock(&cno->lock);
	return blocked(cno, error);
}

static const struct wait_ops cno_ops = {
	.poll_locked = cno_wait_poll_locked,
	.pause_locked = cno_wait_pause_locked,
	.block_locked = cno_wait_block_locked,
	.leave = cno_wait_leave_cancelled,
};

static DAT_RETURN wait_held(struct waiter *self)
{
	struct dapl_cno *cno = self->cno;
	DAT_RETURN status = DAT_ERROR(DAT_INVALID_STATE, DAT_INVALID_STATE_CNO_DEAD);

	pthread_mutex_lock(&cno->lock);
	if (!(cno->state & CNO_DYING)) {
		self->round = cno->round;
		cno->waiters++;
		cno_widen_locked(cno);
		status = wait_run_locked(&self->wait);
		cno_wait_leave_locked(self);
	}
	pthread_mutex_unlock(&cno->lock);
	return status;
}

DAT_RETURN dapl_cno_wait(DAT_CNO_HANDLE handle, DAT_TIMEOUT timeout, DAT_EVD_HANDLE *evd_handle)
{
	struct waiter self = { .cno = cno_from(handle) };
	struct dapl_cno *cno = self.cno;
	DAT_RETURN status;

	if (!cno)
		return DAT_ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_CNO);
	if (!evd_handle)
		return DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG3);

	self.wait = (struct wait){
		.ops = &cno_ops,
		.policy = cno->policy,
		.spin = cno->spin,
		.cancel = cancel_off(),
		.count = 1,
		.fds = { { .fd = cno->epoll, .events = POLLIN } },
	};
	status = DAT_ERROR(DAT_INVALID_STATE, DAT_INVALID_STATE_CNO_DEAD);
	if (obj_hold(&cno->obj)) {
		wait_begin(&self.wait, timeout);
		status = wait_held(&self);
		obj_release(&cno->obj);
		wait_end(&self.wait);
	}
	cancel_restore(self.wait.cancel);
	if (status == DAT_SUCCESS || status == DAT_QUEUE_EMPTY)
		*evd_handle = self.evd;
	return status;
}

DAT_RETURN dapl_cno_trigger(DAT_CNO_HANDLE handle, DAT_EVD_HANDLE *evd_handle)
{
	struct dapl_cno *cno = cno_from(handle);
	struct dapl_evd *evd;
	bool signalled;

	if (!cno)
		return DAT_ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_CNO);
	if (!evd_handle)
		return DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);

	pthread_mutex_lock(&cno->lock);
	cno_widen_locked(cno);
	evd = take_locked(cno, true);
	signalled = !evd && cno_take_signal_locked(cno);
	if (signalled)
		cno_show_locked(cno);
	pthread_mutex_unlock(&cno->lock);
	*evd_handle = evd;
	/* no failure: without a class */
	return evd || signalled ? DAT_SUCCESS : DAT_QUEUE_EMPTY;
}
