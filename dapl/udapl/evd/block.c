/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* Where the waiter of an EVD blocks, and what it reads then. */
#include <errno.h>
#include <string.h>
#include "dapl/udapl/base/provider.h"
#include "dapl/udapl/evd/waiter.h"
#include "util/log.h"

/* ---- CM events ---- */

/*
 * A waiter whose EVD takes only events of the CM reads the CM's events itself, which saves a wake-up of the
 * event thread. The caller holds no EVD lock.
 */
static void read_begin(struct waiter *self)
{
	struct ib_device *device = self->evd->obj.ia->device;

	if (!self->reads_cm || self->reads)
		return;
	self->wait.fds[1].fd = self->may_read ? ib_cm_acquire(device) : -1;
	self->reads = self->wait.fds[1].fd >= 0;
	self->wait.fds[2].fd = self->reads ? ib_cm_begin_progress() : -1;
	self->wait.count = self->reads ? 3 : 1;
	if (self->reads && self->awaits)
		ib_cm_unawait(device);
	else if (!self->reads && !self->awaits)
		ib_cm_await(device);
	self->awaits = !self->reads;
}

void evd_wait_read_end(struct waiter *self)
{
	struct ib_device *device = self->evd->obj.ia->device;

	if (self->reads)
		ib_cm_release(device);
	if (self->awaits)
		ib_cm_unawait(device);
	self->reads = self->awaits = false;
	self->wait.count = 1;
}

/*
 * While the event thread runs upcalls, which may take any time, the waiter does not read: the event
 * thread reads after them.
 */
static void read_events(struct waiter *self)
{
	struct dapl_evd *evd = self->evd;

	lock_acquire(&evd->lock);
	evd->notes |= EVD_AWAKE; /* an event posted to this EVD need not wake this thread */
	lock_release(&evd->lock);
	if (!ib_cm_read(evd->obj.ia->device)) {
		self->may_read = false;
		evd_wait_read_end(self);
	} else if (!ib_cm_progresses()) {
		self->wait.fds[2].fd = -1;
	}
}

/* ---- without the channel ---- */

/*
 * The CQ fires for this thread alone then. So it is not for EVDs whose channel another waiter may poll: a CNO, or the
 * consumer with the EVD's descriptor.
 */
static bool begins_on_cq_locked(const struct waiter *self)
{
	const struct dapl_evd *evd = self->evd;

	return evd->cq && !evd->cno && !atomic_load(&evd->fd) && !self->wait.signals_held &&
	       ib_cq_block_begin(evd->cq);
}

static void cq_interrupt(void *cq)
{
	ib_cq_block_interrupt(cq);
}

static int by_cq(struct wait *wait, const struct timespec *timeout)
{
	return ib_cq_block(evd_wait_waiter_of(wait)->evd->cq, timeout);
}

static int block_on_cq(struct waiter *self)
{
	struct dapl_evd *evd = self->evd;

	self->listener = (struct wakefd_listener){ cq_interrupt, evd->cq };
	if (wakefd_listen(&evd->wake, &self->listener))
		return wait_block_by(&self->wait, by_cq);
	return 0;
}

bool evd_wait_unblock(struct waiter *self)
{
	if (!self->on_cq)
		return false;
	self->on_cq = false;
	wakefd_unlisten(&self->evd->wake);
	return ib_cq_block_end(self->evd->cq);
}

/* ---- the block ---- */

DAT_RETURN evd_wait_interrupted_locked(const struct waiter *self)
{
	evd_drain_locked(self->evd);
	*self->more = evd_count_locked(self->evd);
	return DAT_INTERRUPTED_CALL; /* no failure: without a class */
}

/* Releases the lock with the decision to block. Returns how many completions are missing. */
static uint32_t block_begin(struct waiter *self)
{
	struct dapl_evd *evd = self->evd;
	DAT_COUNT missing = evd->need - evd_count_locked(evd);

	/*
	 * Cleared under the lock together with the decision to block: each event that arrives
	 * later sets it if it may end the wait.
	 */
	evd->notes &= (uint8_t) ~(EVD_MAY_RETURN | EVD_AWAKE);
	if (evd->cq && missing > 1)
		evd->arming |= EVD_MODERATED;
	else
		evd->arming &= ~EVD_MODERATED;
	evd_tally_locked(evd, DCNT_EVD_WAIT_BLOCKED);
	self->on_cq = begins_on_cq_locked(self);
	evd_unlock(evd);
	return missing > 1 ? (uint32_t)missing : 1;
}

/* Reads the readable descriptors. Returns true if the CQ had fired. */
static bool read_descriptors(struct waiter *self)
{
	const struct pollfd *fds = self->wait.fds;
	struct dapl_evd *evd = self->evd;
	bool fired = false;

	if (fds[1].revents & POLLIN && evd->cq)
		fired = ib_cq_collect(evd->cq);
	else if ((fds[1].revents | fds[2].revents) & POLLIN)
		read_events(self);
	if (fds[0].revents & POLLIN)
		wakefd_clear(&evd->wake);
	return fired;
}

/* Sets *fired if the CQ has fired, and its event was taken. Returns 0, or errno. */
static int block(struct waiter *self, bool *fired)
{
	struct pollfd *fds = self->wait.fds;
	int error;

	if (self->on_cq) {
		error = block_on_cq(self);
		*fired = evd_wait_unblock(self);
		wakefd_clear(&self->evd->wake);
		return error;
	}
	fds[0].revents = fds[1].revents = fds[2].revents = 0;
	error = wait_block(&self->wait);
	*fired = !error && read_descriptors(self);
	if ((fds[0].revents | fds[1].revents | fds[2].revents) & (POLLERR | POLLNVAL))
		error = EBADF;
	return error;
}

DAT_RETURN evd_wait_block_locked(struct wait *wait)
{
	struct waiter *self = evd_wait_waiter_of(wait);
	struct dapl_evd *evd = self->evd;
	uint32_t missing;
	bool fired;
	int error;

	missing = block_begin(self);
	if (evd->cq)
		ib_cq_moderate(evd->cq, missing);
	read_begin(self);
	error = block(self, &fired);
	if (error && error != EINTR)
		log_at(LOG_ERROR, "evd %p: a wait: %s", (void *)evd, strerror(error));
	lock_acquire(&evd->lock);
	if (fired) {
		evd_tally_locked(evd, DCNT_EVD_WAIT_NOTIFY);
		evd_disarmed_locked(evd);
		/* The device does not report which completion was solicited. */
		evd->notes |= evd->arming & EVD_SOLICITED ? EVD_MAY_RETURN : 0;
	}
	if (error && error != EINTR)
		return DAT_ERROR(DAT_INTERNAL_ERROR, 0);
	return error == EINTR ? evd_wait_interrupted_locked(self) : WAIT_ON;
}
