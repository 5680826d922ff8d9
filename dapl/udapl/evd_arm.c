/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/*
 * Arming an EVD: its CQ, its descriptor, and what is left of earlier armings. Whoever sleeps, on
 * whatever, looks, arms, looks again, and sleeps; the arming of all of them is here.
 */
#include <errno.h>
#include <sys/epoll.h>
#include <unistd.h>
#include "dapl/udapl/ext.h"
#include "dapl/udapl/evd.h"
#include "util/log.h"

/*
 * An event that came later than the look for it keeps the descriptor readable; the next completion
 * or, without one, every so many armings have it found.
 */
#define IDLE_ARMS 16

/* ---- the CQ ---- */

/*
 * Armed, and nothing completed since: it cannot have fired but for a completion that the next poll
 * finds.
 */
static bool is_armed_locked(const struct dapl_evd *evd, bool solicited)
{
	return evd->armed && evd->armed_narrow == solicited && ib_cq_is_untouched(evd->cq);
}

static DAT_RETURN arm_locked(struct dapl_evd *evd, bool solicited)
{
	DAT_RETURN status = ib_cq_arm(evd->cq, solicited);

	if (status != DAT_SUCCESS)
		return DAT_ERROR(DAT_INTERNAL_ERROR, 0);
	evd->late |= evd->armed;
	evd->armed = true;
	evd->armed_narrow = solicited;
	ib_cq_mark(evd->cq);
	return DAT_SUCCESS;
}

void evd_rearm_locked(struct dapl_evd *evd)
{
	/* A failure was logged; the next look arms again. */
	if (evd->armed)
		evd->armed = arm_locked(evd, evd->class == EVD_SOLICITED) == DAT_SUCCESS;
}

/* With an armed one, after a look at it, which is what says that it is armed still. */
static DAT_RETURN arm_looked_at_locked(struct dapl_evd *evd, bool solicited)
{
	DAT_RETURN status;

	solicited |= evd->class == EVD_SOLICITED;
	if (evd->broken || is_armed_locked(evd, solicited))
		return DAT_SUCCESS;
	status = arm_locked(evd, solicited);
	evd_drain_locked(evd);
	return status;
}

DAT_RETURN evd_arm_cq_locked(struct dapl_evd *evd, bool solicited)
{
	if (evd->armed)
		evd_drain_locked(evd);
	return arm_looked_at_locked(evd, solicited);
}

bool evd_may_have_fired_locked(struct dapl_evd *evd)
{
	if (evd->armed && !evd->waiter)
		evd_drain_locked(evd);
	return evd->cq && (evd->late || (evd->armed && (!ib_cq_is_untouched(evd->cq) ||
							++evd->idle_arms >= IDLE_ARMS)));
}

/* One event for an arming; more if one was late. */
static bool read_channel(struct dapl_evd *evd, bool late)
{
	bool fired = false, got;

	do {
		got = ib_cq_collect(evd->cq);
		fired |= got;
	} while (got && late);
	return fired;
}

static void collected_locked(struct dapl_evd *evd, bool fired)
{
	evd->idle_arms = 0;
	evd->late &= !fired;
	evd->armed &= !fired;
}

bool evd_collect(struct dapl_evd *evd)
{
	bool fired, late;

	lock_acquire(&evd->lock);
	late = evd->late;
	lock_release(&evd->lock);
	fired = read_channel(evd, late);
	lock_acquire(&evd->lock);
	collected_locked(evd, fired);
	lock_release(&evd->lock);
	return fired;
}

bool evd_fired_locked(struct dapl_evd *evd, bool *wake)
{
	bool told;

	evd->armed = false;
	*wake = evd->waiter || evd->watched;
	evd->watched = 0;
	if (evd->waiter)
		/* Which completion was the solicited one the device does not say. */
		evd->may_return |= evd->class == EVD_SOLICITED;
	if (evd->waiter || !evd_may_trigger_locked(evd))
		return false;
	/*
	 * Re-arm, then trigger: what completes while the consumer empties the EVD fires again. Of
	 * those that are here only one that notifies makes a trigger; on an EVD of class SOLICITED
	 * the device has chosen.
	 */
	evd_arm_locked(evd);
	told = evd->queued && (evd->news || evd->class == EVD_SOLICITED);
	evd->news = false;
	return told || evd->broken;
}

/* ---- the descriptor ---- */

static int fd_create(struct dapl_evd *evd)
{
	struct epoll_event event = { .events = EPOLLIN };
	int wake = wakefd_get(&evd->wake), fd;

	if (wake < 0)
		return -1;
	fd = epoll_create1(EPOLL_CLOEXEC);
	if (fd < 0)
		return -1;
	if (epoll_ctl(fd, EPOLL_CTL_ADD, wake, &event) ||
	    epoll_ctl(fd, EPOLL_CTL_ADD, ib_cq_fd(evd->cq), &event)) {
		close(fd);
		return -1;
	}
	return fd;
}

int evd_fd(struct dapl_evd *evd)
{
	int have = atomic_load(&evd->fd), fd;

	if (!evd->cq)
		return wakefd_get(&evd->wake);
	if (have)
		return have - 1;
	fd = fd_create(evd);
	if (fd < 0 || atomic_compare_exchange_strong(&evd->fd, &have, fd + 1))
		return fd;
	close(fd); /* another thread was first */
	return have - 1;
}

DAT_RETURN ext_evd_get_fd(DAT_HANDLE handle, va_list args)
{
	DAT_FD *out = va_arg(args, DAT_FD *);
	struct dapl_evd *evd = handle;
	int fd;

	if (!out)
		return DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG3);
	if (!obj_hold(&evd->obj))
		return DAT_ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EVD_REQUEST);
	fd = evd_fd(evd);
	obj_release(&evd->obj);
	if (fd < 0) {
		log_at(LOG_ERROR, "evd %p: its descriptor: %m", handle);
		return DAT_ERROR(DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_MEMORY);
	}
	*out = fd;
	return DAT_SUCCESS;
}

/* ---- the operation ---- */

static DAT_RETURN check_locked(const struct dapl_evd *evd, DAT_COUNT threshold)
{
	DAT_RETURN status;

	if (threshold < 1 || threshold > evd->qlen)
		return DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG4);
	status = evd_check_class_locked(evd, threshold);
	if (status != DAT_SUCCESS)
		return status;
	if (evd->dying)
		return DAT_ERROR(DAT_ABORT, 0);
	if (evd->unwaitable)
		return DAT_ERROR(DAT_INVALID_STATE, DAT_INVALID_STATE_EVD_UNWAITABLE);
	if (evd->waiter)
		return DAT_ERROR(DAT_INVALID_STATE, DAT_INVALID_STATE_EVD_WAITER);
	if (evd->broken && !evd->queued && !evd->holding)
		return DAT_ERROR(DAT_INVALID_STATE, 0);
	return DAT_SUCCESS;
}

/*
 * Nothing that is readable now may be so after the arming, unless it is new. The lock is given back,
 * and taken again.
 */
static void clear_locked(struct dapl_evd *evd, bool may_have_fired, bool *wake)
{
	bool late = evd->late, moderated = evd->moderated, fired;

	evd->moderated = false;
	evd_unlock(evd);
	if (moderated)
		ib_cq_moderate(evd->cq, 1);
	wakefd_clear(&evd->wake);
	fired = may_have_fired && read_channel(evd, late);
	lock_acquire(&evd->lock);
	evd->watched = 0;
	if (may_have_fired)
		collected_locked(evd, fired);
	/* What is read here its CNO will not see. */
	if (fired && evd_fired_locked(evd, wake))
		evd->due |= EVD_DUE_TRIGGER;
}

static DAT_RETURN arm_and_look_locked(struct dapl_evd *evd, bool solicited, DAT_COUNT threshold)
{
	DAT_RETURN status = DAT_SUCCESS;
	bool signalled;

	if (evd->cq)
		status = arm_looked_at_locked(evd, solicited);
	signalled = evd_take_signal(evd);
	if (signalled || evd_count_locked(evd) >= threshold || (evd->broken && evd->queued))
		return DAT_EV_BUSY;
	if (evd->broken)
		return DAT_ERROR(DAT_INVALID_STATE, 0);
	if (status != DAT_SUCCESS)
		return status;
	evd->watched = threshold;
	return DAT_SUCCESS;
}

static DAT_RETURN arm_held(struct dapl_evd *evd, bool solicited, DAT_COUNT threshold)
{
	bool may_have_fired, wake = false;
	DAT_RETURN status;

	lock_acquire(&evd->lock);
	status = check_locked(evd, threshold);
	may_have_fired = status == DAT_SUCCESS && evd_may_have_fired_locked(evd);
	if (status == DAT_SUCCESS &&
	    (may_have_fired || evd->moderated || wakefd_is_raised(&evd->wake))) {
		clear_locked(evd, may_have_fired, &wake);
		status = check_locked(evd, threshold);
		if (evd->armed && status == DAT_SUCCESS)
			evd_drain_locked(evd);
	}
	if (status == DAT_SUCCESS)
		status = arm_and_look_locked(evd, solicited, threshold);
	evd_unlock(evd);
	if (wake)
		wakefd_raise(&evd->wake);
	return status;
}

/* Held, since the channel is read without the EVD's lock. */
static __attribute__((noinline)) DAT_RETURN arm(struct dapl_evd *evd, bool solicited,
						DAT_COUNT threshold)
{
	DAT_RETURN status;

	if (!obj_hold(&evd->obj))
		return DAT_ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EVD_REQUEST);
	status = arm_held(evd, solicited, threshold);
	obj_release(&evd->obj);
	return status;
}

/*
 * The quiet way: nothing is pending, and nothing of an earlier arming is to be read. The CQ alone is
 * armed, and looked at; what was raised, or comes meanwhile, is for the long way. The callers hold
 * the lock, which is given back.
 */
static inline DAT_RETURN watch(struct dapl_evd *evd)
{
	bool solicited;
	int polled;

	polled = ib_cq_ask(evd->cq);
	if (__builtin_expect(!((unsigned)polled | atomic_load(&evd->wake.state)), 1)) {
		evd_tally_locked(evd, DCNT_EVD_DEQUEUE_POLL);
		evd->watched = 1;
		lock_release(&evd->lock);
		return DAT_SUCCESS;
	}
	evd_tally_locked(evd, polled > 0 ? DCNT_EVD_DEQUEUE_POLL_FOUND : DCNT_EVD_DEQUEUE_POLL);
	ib_cq_keep(evd->cq, polled);
	solicited = evd->armed_narrow;
	lock_release(&evd->lock);
	return arm(evd, solicited, 1);
}

static inline DAT_RETURN arm_and_watch(struct dapl_evd *evd, bool solicited)
{
	evd->armed_narrow = solicited;
	evd->armed = ib_cq_notify(evd->cq, solicited);
	if (__builtin_expect(evd->armed, 1))
		return watch(evd);
	solicited = evd->armed_narrow;
	lock_release(&evd->lock);
	return arm(evd, solicited, 1);
}

/* The common one, apart so that nothing has to be kept over calls before it. */
static __attribute__((noinline)) DAT_RETURN arm_for_all(struct dapl_evd *evd)
{
	return arm_and_watch(evd, false);
}

static __attribute__((noinline)) DAT_RETURN watch_again(struct dapl_evd *evd)
{
	return watch(evd);
}

static inline __attribute__((always_inline)) DAT_RETURN arm_either(struct dapl_evd *evd,
								   bool solicited,
								   DAT_COUNT threshold)
{
	if (__builtin_expect(threshold != 1 || !lock_try(&evd->lock), 0))
		return arm(evd, solicited, threshold);
	if (__builtin_expect(!(evd->special | evd->unsettled) && ib_cq_store_is_empty(evd->cq),
			     1)) {
		if (!evd->armed)
			return solicited ? arm_and_watch(evd, true) : arm_for_all(evd);
		if (is_armed_locked(evd, solicited) && ++evd->idle_arms < IDLE_ARMS)
			return watch_again(evd);
	}
	lock_release(&evd->lock);
	return arm(evd, solicited, threshold);
}

DAT_RETURN evd_arm(struct dapl_evd *evd, bool solicited, DAT_COUNT threshold)
{
	return arm_either(evd, solicited, threshold);
}

DAT_RETURN ext_evd_arm(DAT_HANDLE handle, va_list args)
{
	DAT_UINT32 flags = va_arg(args, DAT_UINT32);
	DAT_COUNT threshold = va_arg(args, DAT_COUNT);

	if (__builtin_expect(!(flags | (unsigned)(threshold - 1)), 1))
		return arm_either(handle, false, 1);
	if (flags & ~DAT_EV_ARM_SOLICITED)
		return DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG3);
	return evd_arm(handle, flags & DAT_EV_ARM_SOLICITED, threshold);
}
