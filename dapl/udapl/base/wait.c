/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* The one place where consumers' threads block, and the loop around it: poll, arm, poll again, block. */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include "dapl/udapl/base/wait.h"
#include "util/cancel.h"
#include "util/clock.h"
#include "util/lock.h"

/*
 * The interval between two points at which a thread that does not block can be cancelled or
 * interrupted; each is a system call.
 */
#define BREAK_INTERVAL (100 * NSEC_PER_USEC)

void wait_begin(struct wait *self, DAT_TIMEOUT timeout)
{
	self->deadline = CLOCK_NEVER;
	/* A timeout of 0 has passed whatever the clock says. */
	if (timeout != DAT_TIMEOUT_INFINITE)
		self->deadline = timeout ? clock_now() + timeout * NSEC_PER_USEC : 0;
	self->signals_held = self->polls = false;
	self->next_break = clock_now() + BREAK_INTERVAL;
}

static void signals_release(struct wait *self)
{
	if (self->signals_held)
		pthread_sigmask(SIG_SETMASK, &self->signal_mask, NULL);
	self->signals_held = false;
}

void wait_end(struct wait *self)
{
	signals_release(self);
}

bool wait_is_over(const struct wait *self)
{
	return self->deadline != CLOCK_NEVER && clock_now() >= self->deadline;
}

static void wait_leave(void *arg)
{
	struct wait *self = arg;

	self->ops->leave(self);
	signals_release(self);
}

static int by_ppoll(struct wait *self, const struct timespec *timeout)
{
	int n = ppoll(self->fds, self->count, timeout,
		      self->signals_held ? &self->signal_mask : NULL);

	return n < 0 ? errno : 0;
}

static int by_no_descriptor(struct wait *self, const struct timespec *timeout)
{
	int n = ppoll(NULL, 0, timeout, self->signals_held ? &self->signal_mask : NULL);

	return n < 0 ? errno : 0;
}

/*
 * A cancellation point of a thread with deferred cancellation: asynchronous cancellation could end
 * it between any two instructions of this file.
 */
static int block_until(struct wait *self, wait_by *by, const struct timespec *timeout)
{
	int error, state = self->cancel & CANCEL_STATE ? PTHREAD_CANCEL_DISABLE
						       : PTHREAD_CANCEL_ENABLE;

	if (LOCK_CHECKED)
		lock_check_none("ppoll");
	pthread_cleanup_push(wait_leave, self);
	pthread_setcancelstate(state, &state);
	error = by(self, timeout);
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
	pthread_cleanup_pop(0);
	return error;
}

int wait_block_by(struct wait *self, wait_by *by)
{
	struct timespec left = { 0 };
	bool ends = self->deadline != CLOCK_NEVER;

	if (ends)
		left = clock_left(self->deadline);
	return block_until(self, by, ends ? &left : NULL);
}

int wait_block(struct wait *self)
{
	return wait_block_by(self, by_ppoll);
}

void wait_relax(const struct wait *self)
{
	if (self->policy == DAT_EV_WAIT_YIELD)
		sched_yield();
	else
		cpu_relax();
}

/*
 * A thread learns that a handler ran only from a system call that it interrupts, so signals are
 * blocked and delivered only in ppoll, which reports them. Signals that an instruction of the
 * thread raises are not blocked, because the kernel would end the process.
 */
static void signals_hold(struct wait *self)
{
	static const int own[] = { SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS, SIGABRT };
	sigset_t held;
	unsigned i;

	sigfillset(&held);
	for (i = 0; i < sizeof(own) / sizeof(own[0]); i++)
		sigdelset(&held, own[i]);
	self->signals_held = !pthread_sigmask(SIG_BLOCK, &held, &self->signal_mask);
}

bool wait_break_is_due(const struct wait *self)
{
	return clock_now() >= self->next_break;
}

/*
 * A signal that came before the first break counts as one before the wait, like one that comes just
 * before a thread blocks: short waits make no system call.
 */
int wait_break(struct wait *self, uint64_t nanoseconds)
{
	struct timespec timeout = { .tv_nsec = (long)nanoseconds };
	int error;

	if (!self->signals_held)
		signals_hold(self);
	error = block_until(self, by_no_descriptor, &timeout);
	self->next_break = clock_now() + BREAK_INTERVAL;
	return error;
}

/*
 * Polls for a bounded time before the thread first blocks, which pays off if a completion is due
 * soon and a processor is free; without bounds if the policy is not to block.
 */
static DAT_RETURN spin_locked(struct wait *self)
{
	DAT_RETURN status;
	uint64_t until;

	if (self->policy == DAT_EV_WAIT_BLOCK && !self->spin)
		return self->ops->arm_locked ? WAIT_ON : self->ops->poll_locked(self);
	until = clock_now() + self->spin;
	self->polls = true;
	do {
		status = self->ops->poll_locked(self);
		if (status == WAIT_ON && self->policy == DAT_EV_WAIT_BLOCK && clock_now() >= until)
			break;
		if (status == WAIT_ON)
			status = self->ops->pause_locked(self);
	} while (status == WAIT_ON);
	self->polls = false;
	return status;
}

DAT_RETURN wait_run_locked(struct wait *self)
{
	DAT_RETURN status = spin_locked(self);

	while (status == WAIT_ON) {
		if (self->ops->arm_locked)
			status = self->ops->arm_locked(self);
		if (status == WAIT_ON)
			status = self->ops->block_locked(self);
		if (status == WAIT_ON)
			status = self->ops->poll_locked(self);
	}
	return status;
}
