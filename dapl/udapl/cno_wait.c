/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* Taking a trigger, with or without waiting for it. */
#include <errno.h>
#include <sched.h>
#include <string.h>
#include "dapl/udapl/cno.h"
#include "dapl/udapl/evd.h"
#include "dapl/udapl/provider.h"
#include "dapl/udapl/sleep.h"
#include "util/clock.h"
#include "util/log.h"

/* So many takes from the ready list may pass over completions that are yet to get on it. */
#define TAKES 8

/* One thread inside dat_cno_wait. */
struct guest {
	struct dapl_cno *cno;
	unsigned round; /* of the CNO when it came */
	struct sleeper sleeper;
};

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
 * The next EVD with something in it; NULL: not triggered. Completions that are still in the CQ of
 * one need no look: it is armed, so they have a trigger of their own.
 */
static struct dapl_evd *take_locked(struct dapl_cno *cno, bool latest)
{
	struct dapl_evd *evd;

	cno->changed = false;
	if (latest || TAILQ_EMPTY(&cno->ready) || ++cno->takes % TAKES == 0)
		cno_serve_locked(cno);
	while ((evd = latest ? TAILQ_LAST(&cno->ready, cno_ready) : TAILQ_FIRST(&cno->ready))) {
		TAILQ_REMOVE(&cno->ready, evd, ready_link);
		if (has_pending(evd)) {
			cno->missed = false;
			break;
		}
	}
	cno_show_locked(cno);
	return evd;
}

static DAT_RETURN look_locked(const struct guest *self, struct dapl_evd **evd)
{
	struct dapl_cno *cno = self->cno;

	*evd = take_locked(cno, false);
	if (*evd || self->round != cno->round || cno_take_signal_locked(cno))
		return DAT_SUCCESS;
	/* After the look: a trigger in the last moment is taken. */
	if (sleep_is_over(&self->sleeper))
		return DAT_QUEUE_EMPTY; /* no failure: without a class */
	return WAIT_ON;
}

static void leave_locked(const struct guest *self)
{
	struct dapl_cno *cno = self->cno;

	cno->waiters--;
	if (self->round != cno->round)
		cno->leaving--;
	cno_show_locked(cno);
}

static void leave_cancelled(void *arg)
{
	const struct guest *self = arg;
	struct dapl_cno *cno = self->cno;

	pthread_mutex_lock(&cno->lock);
	leave_locked(self);
	pthread_mutex_unlock(&cno->lock);
	obj_release(&cno->obj);
}

/* Sleeps without the lock. WAIT_ON, or how the wait ends. */
static DAT_RETURN doze_locked(struct guest *self)
{
	int error;

	pthread_mutex_unlock(&self->cno->lock);
	error = sleep_on(&self->sleeper);
	pthread_mutex_lock(&self->cno->lock);
	if (!error)
		return WAIT_ON;
	if (error == EINTR)
		return DAT_INTERRUPTED_CALL; /* no failure: without a class */
	log_at(LOG_ERROR, "cno %p: ppoll: %s", (void *)self->cno, strerror(error));
	return DAT_ERROR(DAT_INTERNAL_ERROR, 0);
}

/* Lets others run between two looks. */
static void pause_locked(struct dapl_cno *cno)
{
	pthread_mutex_unlock(&cno->lock);
	if (cno->policy == DAT_EV_WAIT_YIELD)
		sched_yield();
	else
		cpu_relax();
	pthread_mutex_lock(&cno->lock);
}

static DAT_RETURN wait_locked(struct guest *self, struct dapl_evd **evd)
{
	struct dapl_cno *cno = self->cno;
	uint64_t until = cno->spin ? clock_now() + cno->spin : 0;
	DAT_RETURN status;

	cno_widen_locked(cno);
	for (;;) {
		status = look_locked(self, evd);
		if (status != WAIT_ON)
			return status;
		if (cno->policy != DAT_EV_WAIT_BLOCK || (until && clock_now() < until)) {
			pause_locked(cno);
			continue;
		}
		status = doze_locked(self);
		if (status != WAIT_ON)
			return status;
	}
}

DAT_RETURN dapl_cno_wait(DAT_CNO_HANDLE handle, DAT_TIMEOUT timeout, DAT_EVD_HANDLE *evd_handle)
{
	struct guest self = { .cno = cno_from(handle) };
	struct dapl_cno *cno = self.cno;
	DAT_RETURN status = DAT_ERROR(DAT_INVALID_STATE, DAT_INVALID_STATE_CNO_DEAD);
	struct dapl_evd *evd = NULL;

	if (!cno)
		return DAT_ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_CNO);
	if (!evd_handle)
		return DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG3);
	if (!obj_hold(&cno->obj))
		return status;

	self.sleeper = (struct sleeper){
		.leave = leave_cancelled,
		.arg = &self,
		.count = 1,
		.fds = { { .fd = cno->epoll, .events = POLLIN } },
	};
	sleep_begin(&self.sleeper, timeout);
	pthread_mutex_lock(&cno->lock);
	if (!cno->dying) {
		self.round = cno->round;
		cno->waiters++;
		status = wait_locked(&self, &evd);
		leave_locked(&self);
	}
	pthread_mutex_unlock(&cno->lock);
	obj_release(&cno->obj);
	sleep_end(&self.sleeper);
	if (status == DAT_SUCCESS || status == DAT_QUEUE_EMPTY)
		*evd_handle = evd;
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
