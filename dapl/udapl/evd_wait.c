/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/*
 * Waiting for events: look, arm, look again, sleep; one mechanism for all that can happen to an
 * EVD.
 */
#include <errno.h>
#include <sched.h>
#include <string.h>
#include "dapl/udapl/evd_take.h"
#include "dapl/udapl/provider.h"
#include "dapl/udapl/sleep.h"
#include "util/clock.h"
#include "util/log.h"

#define LOOKS 32 /* between two at the clock and at all else that ends a wait */

/* One thread inside a wait that does not succeed at once; it owns the EVD's wait right. */
struct waiter {
	struct dapl_evd *evd;
	/* on `wake`, and the channel: of the CQ if there is one, of the CM if this thread reads it */
	struct sleeper sleeper;
	bool may_read, reads;
};

DAT_RETURN evd_check_class_locked(const struct dapl_evd *evd, DAT_COUNT threshold)
{
	if (threshold > 1 && evd->arming & EVD_UNSIGNALLED)
		return DAT_ERROR(DAT_INVALID_STATE, DAT_INVALID_STATE_EVD_CONFIG_NOTIFY);
	if (threshold > 1 && evd->arming & EVD_SOLICITED)
		return DAT_ERROR(DAT_INVALID_STATE, DAT_INVALID_STATE_EVD_CONFIG_SOLICITED);
	return DAT_SUCCESS;
}

static DAT_RETURN check_locked(const struct dapl_evd *evd, DAT_COUNT threshold)
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

static DAT_RETURN look_locked(const struct waiter *self, DAT_EVENT *event, DAT_COUNT *more)
{
	struct dapl_evd *evd = self->evd;
	bool enough, over;

	evd_drain_locked(evd);
	enough = evd_count_locked(evd) >= evd->need;
	if (enough && evd->may_return)
		return take_first_locked(evd, event, more);
	if (evd->state & EVD_DYING)
		return DAT_ERROR(DAT_ABORT, 0);
	if (evd->state & EVD_UNWAITABLE)
		return DAT_ERROR(DAT_INVALID_STATE, DAT_INVALID_STATE_EVD_UNWAITABLE);
	if (evd->state & EVD_BROKEN && !enough)
		return DAT_ERROR(DAT_INVALID_STATE, 0);
	over = sleep_is_over(&self->sleeper);
	if (over && enough)
		return take_first_locked(evd, event, more);
	*more = evd_count_locked(evd);
	if (over)
		return DAT_TIMEOUT_EXPIRED; /* no failure: without a class */
	if (evd_take_signal(evd))
		return DAT_INTERRUPTED_CALL; /* likewise */
	return WAIT_ON;
}

/* What came in the gap triggers the CNO; of `known` events the consumer has been told. */
static void leave_locked(struct dapl_evd *evd, DAT_COUNT known)
{
	evd->state &= ~EVD_WAITED;
	if (evd->state & EVD_DYING)
		wakefd_raise(&evd->left);
	evd_look_locked(evd, known);
}

/* ---- CM events ---- */

/*
 * Who waits for events that the CM brings, and for nothing else, reads the CM's events itself: the
 * event thread would have to be woken to wake this one. No EVD lock is held.
 */
static void read_begin(struct waiter *self)
{
	if (!self->may_read || self->reads)
		return;
	self->sleeper.fds[1].fd = ib_cm_take(self->evd->obj.ia->device);
	self->reads = self->sleeper.fds[1].fd >= 0;
	self->sleeper.count = self->reads ? 2 : 1;
}

static void read_end(struct waiter *self)
{
	if (!self->reads)
		return;
	ib_cm_give(self->evd->obj.ia->device);
	self->reads = false;
	self->sleeper.count = 1;
}

/* Where the event thread is in upcalls it reads for itself, after them; those may take any time. */
static void read_events(struct waiter *self)
{
	struct dapl_evd *evd = self->evd;

	lock_acquire(&evd->lock);
	evd->awake = true; /* what is posted to this EVD need not wake it */
	lock_release(&evd->lock);
	if (ib_cm_read(evd->obj.ia->device))
		return;
	self->may_read = false;
	read_end(self);
}

/* ---- the end of a wait ---- */

static void leave_cancelled(void *arg)
{
	struct waiter *self = arg;
	struct dapl_evd *evd = self->evd;

	read_end(self);
	lock_acquire(&evd->lock);
	leave_locked(evd, 0);
	evd_unlock(evd);
}

/* Sleeps without the lock. WAIT_ON, or how the wait ends. */
static DAT_RETURN doze_locked(struct waiter *self, DAT_COUNT *more)
{
	struct dapl_evd *evd = self->evd;
	struct pollfd *fds = self->sleeper.fds;
	DAT_COUNT missing = evd->need - evd_count_locked(evd);
	bool fired = false, failed;
	int error;

	/*
	 * Cleared together with the decision to sleep, under the lock: what arrives from now on
	 * says itself whether it may end the sleep.
	 */
	evd->may_return = evd->awake = false;
	if (evd->cq && missing > 1)
		evd->arming |= EVD_MODERATED;
	else
		evd->arming &= ~EVD_MODERATED;
	evd_tally_locked(evd, DCNT_EVD_WAIT_BLOCKED);
	fds[0].revents = fds[1].revents = 0;
	evd_unlock(evd);
	if (evd->cq)
		ib_cq_moderate(evd->cq, missing > 1 ? (uint32_t)missing : 1);
	read_begin(self);
	error = sleep_on(&self->sleeper);
	if (!error && fds[1].revents & POLLIN && evd->cq)
		fired = ib_cq_collect(evd->cq);
	else if (!error && fds[1].revents & POLLIN)
		read_events(self);
	if (!error && fds[0].revents & POLLIN)
		wakefd_clear(&evd->wake);
	failed = (error && error != EINTR) ||
		 (fds[0].revents | fds[1].revents) & (POLLERR | POLLNVAL);
	if (failed)
		log_at(LOG_ERROR, "evd %p: ppoll: %s", (void *)evd,
		       error ? strerror(error) : "a descriptor failed");
	lock_acquire(&evd->lock);
	if (fired) {
		evd_tally_locked(evd, DCNT_EVD_WAIT_NOTIFY);
		evd_disarmed_locked(evd);
		/* Which completion was the solicited one the device does not say. */
		evd->may_return |= !!(evd->arming & EVD_SOLICITED);
	}
	if (failed)
		return DAT_ERROR(DAT_INTERNAL_ERROR, 0);
	if (error == EINTR) {
		evd_drain_locked(evd);
		*more = evd_count_locked(evd);
		return DAT_INTERRUPTED_CALL; /* no failure: without a class */
	}
	return WAIT_ON;
}

/* Nothing is at hand but that this thread waits: the next event is the CQ's next. */
static bool is_plain_locked(const struct dapl_evd *evd)
{
	return evd->state == EVD_WAITED;
}

/* Where one completion is enough it goes straight to the caller. The lock is given back between two looks. */
static bool look_often_locked(struct dapl_evd *evd, DAT_EVENT *event, DAT_COUNT *more)
{
	for (unsigned looks = 0; looks < LOOKS && is_plain_locked(evd) && evd->need == 1; looks++) {
		if (evd_take_plain_locked(evd, event)) {
			if (!ib_cq_was_last(evd->cq))
				evd_drain_locked(evd);
			*more = evd_count_locked(evd);
			return true;
		}
		lock_release(&evd->lock);
		lock_acquire(&evd->lock);
	}
	return false;
}

/*
 * Looks for a bounded time before the first sleep, which is worth it where a completion is soon
 * and a processor is free; without bounds where nobody is to sleep.
 */
static DAT_RETURN spin_locked(const struct waiter *self, DAT_EVENT *event, DAT_COUNT *more)
{
	struct dapl_evd *evd = self->evd;
	DAT_EV_WAIT_POLICY policy = evd->policy;
	uint64_t until;
	DAT_RETURN status;

	if (policy == DAT_EV_WAIT_BLOCK && !evd->spin)
		return look_locked(self, event, more);
	until = clock_now() + evd->spin;
	for (;;) {
		if (look_often_locked(evd, event, more))
			return DAT_SUCCESS;
		status = look_locked(self, event, more);
		if (status != WAIT_ON || (policy == DAT_EV_WAIT_BLOCK && clock_now() >= until))
			return status;
		evd_unlock(evd);
		if (policy == DAT_EV_WAIT_YIELD)
			sched_yield();
		else
			cpu_relax();
		lock_acquire(&evd->lock);
	}
}

static DAT_RETURN sleep_locked(struct waiter *self, DAT_EVENT *event, DAT_COUNT *more)
{
	struct dapl_evd *evd = self->evd;
	DAT_RETURN status;

	evd->may_return = true; /* before the first sleep any event counts */
	status = spin_locked(self, event, more);
	while (status == WAIT_ON) {
		if (evd->cq && evd_arm_cq_locked(evd, false) != DAT_SUCCESS)
			return DAT_ERROR(DAT_INTERNAL_ERROR, 0);
		status = look_locked(self, event, more);
		if (status == WAIT_ON)
			status = doze_locked(self, more);
		if (status == WAIT_ON)
			status = look_locked(self, event, more);
	}
	return status;
}

/* The wait's result tells how many events are left. */
static bool status_counts(DAT_RETURN status)
{
	return status == DAT_SUCCESS || status == DAT_TIMEOUT_EXPIRED ||
	       status == DAT_INTERRUPTED_CALL;
}

static DAT_RETURN wait_slow(struct dapl_evd *evd, DAT_TIMEOUT timeout, DAT_COUNT threshold,
			    DAT_EVENT *event, DAT_COUNT *more)
{
	struct waiter self = { .evd = evd };
	struct sleeper *sleeper = &self.sleeper;
	DAT_RETURN status;
	bool freed;

	sleeper->leave = leave_cancelled;
	sleeper->arg = &self;
	sleep_begin(sleeper, timeout);
	sleeper->fds[0] = (struct pollfd){ .fd = wakefd_get(&evd->wake), .events = POLLIN };
	lock_acquire(&evd->lock);
	status = check_locked(evd, threshold);
	/* Under the lock: one that is being freed has no CQ any more. */
	sleeper->fds[1] =
		(struct pollfd){ .fd = evd->cq ? ib_cq_fd(evd->cq) : -1, .events = POLLIN };
	sleeper->count = evd->cq ? 2 : 1;
	self.may_read = !evd->cq && evd->flags & (DAT_EVD_CONNECTION_FLAG | DAT_EVD_CR_FLAG);
	if (status == DAT_SUCCESS && sleeper->fds[0].fd < 0) {
		log_at(LOG_ERROR, "evd %p: eventfd: %s", (void *)evd, strerror(errno));
		status = DAT_ERROR(DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_DEVICE);
	}
	if (status == DAT_SUCCESS) {
		evd->state |= EVD_WAITED;
		evd->need = threshold;
		status = sleep_locked(&self, event, more);
		if (self.reads) { /* the device may go as soon as this EVD is left */
			lock_release(&evd->lock);
			read_end(&self);
			lock_acquire(&evd->lock);
		}
		leave_locked(evd, status_counts(status) ? *more : 0);
	}
	/* Freed between look and lock: the descriptor may have been made after its end. */
	freed = evd->state & EVD_DYING && !(evd->state & EVD_WAITED);
	evd_unlock(evd);
	if (freed)
		wakefd_close(&evd->wake);
	sleep_end(sleeper);
	return status;
}

/* With anything but a completion at hand. Caller holds the lock, which is given back. */
static __attribute__((noinline)) DAT_RETURN wait_special(struct dapl_evd *evd, DAT_TIMEOUT timeout,
							 DAT_COUNT threshold, DAT_EVENT *event,
							 DAT_COUNT *more)
{
	DAT_RETURN status;

	if (threshold <= 0 || threshold > evd->qlen)
		status = DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG3);
	else
		status = check_locked(evd, threshold);
	if (status != DAT_SUCCESS) {
		lock_release(&evd->lock);
		return status;
	}
	evd_drain_locked(evd);
	if (evd_count_locked(evd) >= threshold) {
		status = take_first_locked(evd, event, more);
	} else if (!timeout) {
		*more = evd_count_locked(evd);
		status = DAT_TIMEOUT_EXPIRED; /* no failure: without a class */
	} else {
		evd_unlock(evd);
		return wait_slow(evd, timeout, threshold, event, more);
	}
	evd_unlock(evd);
	return status;
}

/* An event is taken, and there are others. Gives the lock back. */
static __attribute__((noinline)) DAT_RETURN leave_with_more(struct dapl_evd *evd, DAT_COUNT *more)
{
	evd_drain_locked(evd);
	*more = evd_count_locked(evd);
	evd_unlock(evd);
	return DAT_SUCCESS;
}

DAT_RETURN dapl_evd_wait(DAT_EVD_HANDLE handle, DAT_TIMEOUT timeout, DAT_COUNT threshold,
			 DAT_EVENT *event, DAT_COUNT *more)
{
	struct dapl_evd *evd = handle;

	if (__builtin_expect(!obj_is(handle, OBJ_EVD), 0))
		return DAT_ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EVD_REQUEST);
	if (__builtin_expect(!event, 0))
		return DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG4);
	if (__builtin_expect(!more, 0))
		return DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG5);

	lock_acquire(&evd->lock);
	evd_tally_locked(evd, DCNT_EVD_WAIT);
	/* One completion goes straight to the caller; what is behind it has to be counted. */
	if (__builtin_expect(!(evd->state), 1) && threshold == 1 && ib_cq_store_is_empty(evd->cq) &&
	    evd_take_plain_locked(evd, event)) {
		if (__builtin_expect(!ib_cq_was_last(evd->cq), 0))
			return leave_with_more(evd, more);
		*more = 0;
		lock_release(&evd->lock);
		return DAT_SUCCESS;
	}
	return wait_special(evd, timeout, threshold, event, more);
}
