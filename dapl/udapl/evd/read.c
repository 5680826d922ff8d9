/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/*
 * A consumer that polls for connection events keeps a processor busy, and may keep the event thread from it: on a machine
 * whose processors are all busy, the event thread that an event wakes runs only at the end of another thread's time
 * slice, some milliseconds later, and a connection takes several events. So the thread that polls reads the CM's events
 * itself, as a waiter does (evd/block.c).
 */
#include "dapl/udapl/evd/evd.h"
#include "util/cancel.h"

/* Empty polls between two reads, each of which is a system call. Some microseconds for a thread that does nothing else. */
#define POLLS_PER_READ 256u

static bool read_is_due_locked(const struct dapl_evd *evd, uint64_t polls)
{
	return !(polls % POLLS_PER_READ) && evd_has_cm_alone(evd) && !(evd->state & EVD_READING);
}

/* Like a waiter, the reader keeps the EVD, and with it the device, from being freed until it has left (evd_end). */
bool evd_read_cm_locked(struct dapl_evd *evd, uint64_t polls)
{
	int cancel;
	bool reads;

	if (!read_is_due_locked(evd, polls))
		return false;
	evd->state |= EVD_READING;
	evd_unlock(evd);
	cancel = cancel_off();
	reads = ib_cm_poll(evd->obj.ia->device);
	cancel_restore(cancel);
	lock_acquire(&evd->lock);
	evd->state &= ~EVD_READING;
	if (evd->state & EVD_DYING)
		wakefd_raise(&evd->left);
	return reads;
}

void evd_share_cm(const struct dapl_evd *evd)
{
	if (evd->flags & EVD_CM_FLAGS)
		ib_cm_share(evd->obj.ia->device);
}
