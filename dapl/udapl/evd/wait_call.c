/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* dat_evd_wait: takes a completion that is there, or is there soon, as a dequeue does; else the thread waits (wait.c). */
#include "dapl/udapl/evd/evd_take.h"
#include "dapl/udapl/base/provider.h"
#include "util/cancel.h"

#define SOON_POLLS 64 /* polls of the CQ alone before a thread that may poll becomes the waiter */

/*
 * The consumer's cancel type, while the thread is in dat_evd_wait with deferred cancellation. It is not a local
 * variable: taking the address of one would add a stack canary to the fast path.
 */
static _Thread_local int cancel_type __attribute__((tls_model("initial-exec")));

/*
 * Enters a path with cancellation points from one without. Returns the argument for cancel_restore. May release and
 * reacquire the lock.
 */
static int not_cancelled_locked(struct dapl_evd *evd)
{
	if (cancel_type != PTHREAD_CANCEL_DEFERRED) {
		lock_release(&evd->lock);
		cancel_settle();
		lock_acquire(&evd->lock);
	}
	return cancel_off();
}

/* The call has taken an event, and others are pending. Releases the lock. */
static __attribute__((noinline)) DAT_RETURN leave_with_more(struct dapl_evd *evd, DAT_COUNT *more)
{
	int before = not_cancelled_locked(evd);

	evd_drain_locked(evd);
	*more = evd_count_locked(evd);
	evd_unlock(evd);
	cancel_restore(before);
	cancel_type_restore(cancel_type);
	return DAT_SUCCESS;
}

/* The call has taken a completion from the CQ. Releases the lock. */
static inline __attribute__((always_inline)) DAT_RETURN leave_with_one(struct dapl_evd *evd,
								       DAT_COUNT *more)
{
	if (__builtin_expect(!ib_cq_was_last(evd->cq), 0))
		return leave_with_more(evd, more);
	*more = 0;
	lock_release(&evd->lock);
	cancel_type_restore(cancel_type);
	return DAT_SUCCESS;
}

/*
 * A thread that may poll does so for about a microsecond before it becomes the waiter: an answer under way comes as cheaply
 * as by a dequeue.
 */
static bool take_soon_locked(struct dapl_evd *evd, DAT_EVENT *event)
{
	if (!evd->spin && evd->policy == DAT_EV_WAIT_BLOCK)
		return false;
	for (unsigned i = 0; i < SOON_POLLS && !evd->state && ib_cq_store_is_empty(evd->cq); i++) {
		if (evd_take_fast_locked(evd, event))
			return true;
		lock_cede(&evd->lock);
	}
	return false;
}

/*
 * The slow path, without a completion at hand. The caller holds the lock and has deferred cancellation; this function
 * releases the one and restores the other.
 */
static __attribute__((noinline)) DAT_RETURN wait_on(struct dapl_evd *evd, DAT_TIMEOUT timeout,
						    DAT_COUNT threshold, DAT_EVENT *event,
						    DAT_COUNT *more)
{
	DAT_RETURN status;
	int before;

	if (threshold == 1 && timeout && take_soon_locked(evd, event))
		return leave_with_one(evd, more);
	before = not_cancelled_locked(evd);
	status = evd_wait_locked(evd, before, timeout, threshold, event, more);
	cancel_restore(before);
	cancel_type_restore(cancel_type);
	return status;
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

	/* Rule C19: the thread may be cancelled asynchronously. The path to a completion has no cancellation point. */
	pthread_setcanceltype(PTHREAD_CANCEL_DEFERRED, &cancel_type);
	lock_acquire(&evd->lock);
	evd_tally_locked(evd, DCNT_EVD_WAIT);
	/* A single completion is passed directly to the caller; the ones behind it are counted for *more. */
	if (__builtin_expect(!(evd->state), 1) && threshold == 1 && ib_cq_store_is_empty(evd->cq) &&
	    evd_take_fast_locked(evd, event))
		return leave_with_one(evd, more);
	return wait_on(evd, timeout, threshold, event, more);
}
