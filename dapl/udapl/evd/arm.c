/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/*
 * Arms EVDs. Every waiter polls, arms, polls again and blocks; this file implements arm, for threads that
 * block inside DAT and for the descriptor of an EVD.
 *
 * A device first publishes a completion and then tests whether the CQ is armed. So an armed CQ may fire at any
 * time for a completion that was polled before the CQ was armed, and only an event in the channel shows it. A
 * level-triggered poll of the channel finds that event. A consumer with an edge-triggered poll may have had the
 * edge already, so its next arm arms the CQ in any case.
 */
#include <errno.h>
#include <sys/epoll.h>
#include <unistd.h>
#include "dapl/udapl/evd/evd.h"
#include "util/cancel.h"
#include "util/log.h"

/*
 * An armed CQ from which nothing was polled has hardly ever fired. To read its channel is a system call, so
 * it is read only at the second arm in a row of this kind, and then at every sixteenth.
 */
#define IDLE_ARMS_FIRST 2
#define IDLE_ARMS	16

/* ---- the CQ ---- */

static DAT_RETURN cq_arm_locked(struct dapl_evd *evd, bool solicited)
{
	if (ib_cq_arm(evd->cq, solicited) != DAT_SUCCESS)
		return DAT_ERROR(DAT_INTERNAL_ERROR, 0);
	evd->arming &= ~EVD_NARROW;
	evd->arming |= EVD_ARMED | (solicited ? EVD_NARROW : 0);
	ib_cq_mark(evd->cq);
	return DAT_SUCCESS;
}

/* A device may not count as solicited what it flushes: soft-RoCE of Linux 6.12 does not. */
static bool arms_narrow_locked(const struct dapl_evd *evd, bool solicited)
{
	return (solicited || evd->arming & EVD_SOLICITED) && !evd->flushes;
}

void evd_rearm_locked(struct dapl_evd *evd)
{
	/* A failure was logged; the next wait or arm call arms again. */
	if (evd->arming & EVD_ARMED &&
	    cq_arm_locked(evd, arms_narrow_locked(evd, false)) != DAT_SUCCESS)
		evd_disarmed_locked(evd);
}

void evd_flush_expect(struct dapl_evd *evd)
{
	lock_acquire(&evd->lock);
	evd->flushes++;
	if (evd->arming & EVD_NARROW)
		evd_rearm_locked(evd);
	lock_release(&evd->lock);
}

void evd_flush_over(struct dapl_evd *evd)
{
	lock_acquire(&evd->lock);
	evd->flushes--;
	lock_release(&evd->lock);
}

DAT_RETURN evd_arm_cq_locked(struct dapl_evd *evd, bool solicited)
{
	bool narrow = arms_narrow_locked(evd, solicited);
	uint32_t wanted = EVD_ARMED | (narrow ? EVD_NARROW : 0);
	DAT_RETURN status = DAT_SUCCESS;

	if (!(evd->state & EVD_BROKEN) && (evd->arming & (EVD_ARMED | EVD_NARROW)) != wanted)
		status = cq_arm_locked(evd, narrow);
	evd_drain_locked(evd);
	return status;
}

void evd_disarmed_locked(struct dapl_evd *evd)
{
	evd->arming &= ~(EVD_ARMED | EVD_NARROW);
	evd->idle_arms = IDLE_ARMS_FIRST;
}

void evd_arm_locked(struct dapl_evd *evd)
{
	/* A failure was logged; pending events are still counted, and the next call arms again. */
	if (evd->cq && evd_may_trigger_locked(evd))
		evd_arm_cq_locked(evd, false);
}

void evd_rearm_and_count_locked(struct dapl_evd *evd, DAT_COUNT known)
{
	if (!evd_may_trigger_locked(evd))
		return;
	evd_arm_locked(evd);
	evd->notes &= ~EVD_PENDING;
	if (evd_count_locked(evd) > known)
		evd->due |= EVD_DUE_TRIGGER;
}

bool evd_fired_locked(struct dapl_evd *evd, bool *wake)
{
	bool busy;

	evd_disarmed_locked(evd);
	*wake = evd->state & EVD_WAITED || evd->armed_threshold;
	evd->armed_threshold = 0;
	/* The device does not report which completion was solicited. */
	if (evd->state & EVD_WAITED && evd->arming & EVD_SOLICITED)
		evd->notes |= EVD_MAY_RETURN;
	if (!evd_may_trigger_locked(evd))
		return false;
	/*
	 * Re-arm, then trigger: a completion that arrives while the consumer drains the EVD fires
	 * again. Pending events trigger only if one of them notifies; on an EVD of class SOLICITED
	 * the device fired for a solicited one.
	 */
	evd_arm_locked(evd);
	busy = evd->state & EVD_QUEUED && (evd->notes & EVD_PENDING || evd->arming & EVD_SOLICITED);
	evd->notes &= ~EVD_PENDING;
	return busy || evd->state & EVD_BROKEN;
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
	close(fd); /* another thread created it first */
	return have - 1;
}

DAT_RETURN ext_evd_get_fd(DAT_HANDLE handle, va_list args)
{
	CANCEL_OFF_HERE;
	DAT_FD *out = va_arg(args, DAT_FD *);
	struct dapl_evd *evd = handle;
	int fd;

	if (!out)
		return DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG3);
	if (!obj_hold(&evd->obj))
		return DAT_ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EVD_REQUEST);
	evd_share_cm(evd);
	fd = evd_fd(evd);
	obj_release(&evd->obj);
	if (fd < 0) {
		log_at(LOG_ERROR, "evd %p: its descriptor: %m", handle);
		return DAT_ERROR(DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_MEMORY);
	}
	*out = fd;
	return DAT_SUCCESS;
}

/* ---- arming the descriptor ---- */

static DAT_RETURN evd_arm_check_locked(const struct dapl_evd *evd, DAT_COUNT threshold)
{
	DAT_RETURN status;

	if (threshold < 1 || threshold > evd->qlen)
		return DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG4);
	status = evd_check_class_locked(evd, threshold);
	if (status != DAT_SUCCESS)
		return status;
	if (evd->state & EVD_DYING)
		return DAT_ERROR(DAT_ABORT, 0);
	if (evd->state & EVD_UNWAITABLE)
		return DAT_ERROR(DAT_INVALID_STATE, DAT_INVALID_STATE_EVD_UNWAITABLE);
	if (evd->state & EVD_WAITED)
		return DAT_ERROR(DAT_INVALID_STATE, DAT_INVALID_STATE_EVD_WAITER);
	if (evd->state & EVD_BROKEN && !(evd->state & (EVD_QUEUED | EVD_HOLDING)))
		return DAT_ERROR(DAT_INVALID_STATE, 0);
	return DAT_SUCCESS;
}

/*
 * True if the channel may hold an event. It does if a completion was polled for which the CQ fired, and
 * hardly ever otherwise.
 */
static bool may_have_fired_locked(struct dapl_evd *evd)
{
	if (!(evd->arming & EVD_ARMED))
		return false;
	evd_drain_locked(evd);
	if (!ib_cq_is_untouched(evd->cq))
		return true;
	evd->idle_arms -= evd->idle_arms > 0;
	return !evd->idle_arms;
}

/* The CQ fires at most once for each arm. `all`: it may have been armed several times, so all events are read. */
static bool read_channel(struct dapl_evd *evd, bool all)
{
	bool fired = false, got;

	do {
		got = ib_cq_collect(evd->cq);
		fired |= got;
	} while (got && all);
	return fired;
}

/*
 * Clears the descriptors, so that they are readable after the arm only for a new event. Releases the lock
 * for a time.
 */
static void clear_locked(struct dapl_evd *evd, bool may_have_fired, bool *wake)
{
	bool moderated = evd->arming & EVD_MODERATED, fired = false;

	evd->arming &= ~EVD_MODERATED;
	evd_unlock(evd);
	if (moderated)
		ib_cq_moderate(evd->cq, 1);
	wakefd_clear(&evd->wake);
	if (may_have_fired)
		fired = read_channel(evd, !evd->idle_arms);
	lock_acquire(&evd->lock);
	evd->armed_threshold = 0;
	/* The CNO does not see an event that is read here, so it is triggered. */
	if (fired && evd_fired_locked(evd, wake))
		evd->due |= EVD_DUE_TRIGGER;
	else if (may_have_fired && !fired)
		evd->idle_arms = evd->idle_arms ? 1 : IDLE_ARMS; /* 1: the event is expected soon */
}

static DAT_RETURN arm_and_poll_locked(struct dapl_evd *evd, bool solicited, DAT_COUNT threshold)
{
	DAT_RETURN status = DAT_SUCCESS;
	bool signalled;

	if (evd->cq && !(evd->state & EVD_BROKEN))
		status = cq_arm_locked(evd, solicited || evd->arming & EVD_SOLICITED);
	evd_drain_locked(evd);
	signalled = evd_take_signal(evd);
	if (signalled || evd_count_locked(evd) >= threshold ||
	    (evd->state & EVD_BROKEN && evd->state & EVD_QUEUED))
		return DAT_EV_BUSY;
	if (evd->state & EVD_BROKEN)
		return DAT_ERROR(DAT_INVALID_STATE, 0);
	if (status == DAT_SUCCESS)
		evd->armed_threshold = threshold;
	return status;
}

static DAT_RETURN arm_held(struct dapl_evd *evd, bool solicited, DAT_COUNT threshold)
{
	bool may_have_fired, wake = false;
	DAT_RETURN status;

	lock_acquire(&evd->lock);
	status = evd_arm_check_locked(evd, threshold);
	may_have_fired = status == DAT_SUCCESS && may_have_fired_locked(evd);
	if (status == DAT_SUCCESS &&
	    (may_have_fired || evd->arming & EVD_MODERATED || wakefd_is_raised(&evd->wake))) {
		clear_locked(evd, may_have_fired, &wake);
		status = evd_arm_check_locked(evd, threshold);
	}
	if (status == DAT_SUCCESS)
		status = arm_and_poll_locked(evd, solicited, threshold);
	evd_unlock(evd);
	if (wake)
		wakefd_raise(&evd->wake);
	return status;
}

/* Holds the EVD, because the channel is read without its lock. */
static __attribute__((noinline)) DAT_RETURN arm_slow(struct dapl_evd *evd, bool solicited,
						     DAT_COUNT threshold)
{
	CANCEL_OFF_HERE;
	DAT_RETURN status;

	if (!obj_hold(&evd->obj))
		return DAT_ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EVD_REQUEST);
	status = arm_held(evd, solicited, threshold);
	obj_release(&evd->obj);
	return status;
}

/*
 * The fast path: nothing is pending, and no event of an earlier arm is unread, so only the CQ has to be armed. A
 * raised `wake` or a new completion is left to arm_slow. The caller holds the lock; arm_fast releases it.
 */
static inline __attribute__((always_inline)) DAT_RETURN arm_fast(struct dapl_evd *evd,
								 bool solicited)
{
	int polled;

	evd->arming = EVD_ARMED | (solicited ? EVD_NARROW : 0);
	if (__builtin_expect(ib_cq_notify(evd->cq, solicited), 1)) {
		polled = ib_cq_ask(evd->cq);
		if (__builtin_expect(!((unsigned)polled | wakefd_flags(&evd->wake)), 1)) {
			evd_tally_locked(evd, DCNT_EVD_DEQUEUE_POLL);
			evd->armed_threshold = 1;
			lock_release(&evd->lock);
			return DAT_SUCCESS;
		}
		evd_tally_locked(evd,
				 polled > 0 ? DCNT_EVD_DEQUEUE_POLL_FOUND : DCNT_EVD_DEQUEUE_POLL);
		ib_cq_keep(evd->cq, polled);
	} else {
		evd_disarmed_locked(evd);
	}
	lock_release(&evd->lock);
	return arm_slow(evd, solicited, 1);
}

static inline bool may_arm_fast_locked(struct dapl_evd *evd)
{
	if (evd->state)
		return false;
	if (evd->arming == EVD_ARMED)
		return ib_cq_is_untouched(evd->cq) && --evd->idle_arms;
	return !evd->arming && ib_cq_store_is_empty(evd->cq);
}

static inline __attribute__((always_inline)) DAT_RETURN arm(struct dapl_evd *evd, bool solicited,
							    DAT_COUNT threshold)
{
	if (__builtin_expect(threshold != 1 || !lock_try(&evd->lock), 0))
		return arm_slow(evd, solicited, threshold);
	if (__builtin_expect(may_arm_fast_locked(evd), 1))
		return arm_fast(evd, solicited);
	lock_release(&evd->lock);
	return arm_slow(evd, solicited, threshold);
}

DAT_RETURN evd_arm(struct dapl_evd *evd, bool solicited, DAT_COUNT threshold)
{
	return arm(evd, solicited, threshold);
}

DAT_RETURN ext_evd_arm(DAT_HANDLE handle, va_list args)
{
	DAT_UINT32 flags = va_arg(args, DAT_UINT32);
	DAT_COUNT threshold = va_arg(args, DAT_COUNT);

	if (__builtin_expect(!(flags | (unsigned)(threshold - 1)), 1))
		return arm(handle, false, 1);
	if (flags & ~DAT_EV_ARM_SOLICITED)
		return DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG3);
	return evd_arm(handle, flags & DAT_EV_ARM_SOLICITED, threshold);
}
