/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* Taking a trigger, with or without waiting for it. */
#include <errno.h>
#include <poll.h>
#include <string.h>
#include "dapl/udapl/cno.h"
#include "dapl/udapl/evd.h"
#include "dapl/udapl/provider.h"
#include "util/clock.h"
#include "util/log.h"

/* One thread inside dat_cno_wait. */
struct guest {
	struct dapl_cno *cno;
	uint64_t deadline;
	unsigned round;			/* of the CNO when it came */
	int cancel_state;		/* the consumer's, in force only while asleep */
	struct pollfd wake;
};

static bool has_pending(struct dapl_evd *evd)
{
	bool pending;

	lock_take(&evd->lock);
	evd->ready = false;
	pending = evd->queued || evd->broken;
	lock_give(&evd->lock);
	return pending;
}

/*
 * The next EVD with something in it; NULL: not triggered. Completions that are still in the CQ of
 * one need no look: it is armed, so they have a trigger of their own.
 */
static struct dapl_evd *take_locked(struct dapl_cno *cno, bool latest)
{
	struct dapl_evd *evd;

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

/* What a look at the CNO says, WAIT_ON when the thread has to go on waiting. */
#define WAIT_ON UINT32_MAX

static DAT_RETURN look_locked(const struct guest *self, struct dapl_evd **evd)
{
	struct dapl_cno *cno = self->cno;

	*evd = take_locked(cno, false);
	if (*evd || self->round != cno->round)
		return DAT_SUCCESS;
	/* After the look: a trigger in the last moment is taken. */
	if (self->deadline != CLOCK_NEVER && clock_now() >= self->deadline)
		return DAT_QUEUE_EMPTY;		/* no failure: without a class */
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

/* Cancellation can hit the thread only in here, where it holds no lock. */
static int sleep_cancellable(struct guest *self, const struct timespec *left)
{
	int n, error;

	pthread_cleanup_push(leave_cancelled, self);
	pthread_setcancelstate(self->cancel_state, NULL);
	n = ppoll(&self->wake, 1, left, NULL);
	error = n < 0 ? errno : 0;
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
	pthread_cleanup_pop(0);
	return error;
}

static int sleep_until(struct guest *self)
{
	struct timespec left;

	if (self->deadline == CLOCK_NEVER)
		return sleep_cancellable(self, NULL);
	left = clock_left(self->deadline);
	return sleep_cancellable(self, &left);
}

/* Sleeps without the lock. WAIT_ON, or how the wait ends. */
static DAT_RETURN doze_locked(struct guest *self)
{
	const char *call = "eventfd";
	int error;

	self->wake = (struct pollfd){ .fd = wakefd_get(&self->cno->wake), .events = POLLIN };
	error = errno;
	if (self->wake.fd >= 0) {
		pthread_mutex_unlock(&self->cno->lock);
		call = "ppoll";
		error = sleep_until(self);
		pthread_mutex_lock(&self->cno->lock);
		if (!error)
			return WAIT_ON;
		if (error == EINTR)
			return DAT_INTERRUPTED_CALL;	/* no failure: without a class */
	}
	log_at(LOG_ERROR, "cno %p: %s: %s", (void *)self->cno, call, strerror(error));
	return DAT_ERROR(DAT_INTERNAL_ERROR, 0);
}

static DAT_RETURN wait_locked(struct guest *self, struct dapl_evd **evd)
{
	DAT_RETURN status;

	do {
		status = look_locked(self, evd);
		if (status == WAIT_ON)
			status = doze_locked(self);
	} while (status == WAIT_ON);
	return status;
}

DAT_RETURN dapl_cno_wait(DAT_CNO_HANDLE handle, DAT_TIMEOUT timeout, DAT_EVD_HANDLE *evd_handle)
{
	struct guest self = { .cno = cno_from(handle), .deadline = CLOCK_NEVER };
	struct dapl_cno *cno = self.cno;
	DAT_RETURN status = DAT_ERROR(DAT_INVALID_STATE, DAT_INVALID_STATE_CNO_DEAD);
	struct dapl_evd *evd = NULL;

	if (!cno)
		return DAT_ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_CNO);
	if (!evd_handle)
		return DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG3);
	if (!obj_hold(&cno->obj))
		return status;

	if (timeout != DAT_TIMEOUT_INFINITE)
		self.deadline = timeout ? clock_now() + timeout * NSEC_PER_USEC : 0;
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &self.cancel_state);
	pthread_mutex_lock(&cno->lock);
	if (!cno->dying) {
		self.round = cno->round;
		cno->waiters++;
		status = wait_locked(&self, &evd);
		leave_locked(&self);
	}
	pthread_mutex_unlock(&cno->lock);
	obj_release(&cno->obj);
	pthread_setcancelstate(self.cancel_state, NULL);
	if (status == DAT_SUCCESS || status == DAT_QUEUE_EMPTY)
		*evd_handle = evd;
	return status;
}

DAT_RETURN dapl_cno_trigger(DAT_CNO_HANDLE handle, DAT_EVD_HANDLE *evd_handle)
{
	struct dapl_cno *cno = cno_from(handle);
	struct dapl_evd *evd;

	if (!cno)
		return DAT_ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_CNO);
	if (!evd_handle)
		return DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);

	pthread_mutex_lock(&cno->lock);
	evd = take_locked(cno, true);
	pthread_mutex_unlock(&cno->lock);
	*evd_handle = evd;
	return evd ? DAT_SUCCESS : DAT_QUEUE_EMPTY;	/* no failure: without a class */
}
