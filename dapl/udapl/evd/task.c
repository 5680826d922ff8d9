/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* Work that a change of an EVD makes due: its CNO at once, the rest in the event thread. */
#include <stddef.h>
#include "dapl/udapl/base/upward.h"
#include "dapl/udapl/evd/evd.h"

/*
 * The task is posted under the lock, so that evd_end, after it has held the lock, knows that no other thread posts it.
 * Triggers are not left to the task: a waiter may block on the CNO, and the posting thread can wake it.
 */
void evd_unlock_slow(struct dapl_evd *evd)
{
	unsigned due = evd->due;

	evd->due = 0;
	if (due & EVD_DUE_LATER)
		task_post(&evd->task, due & EVD_DUE_LATER);
	lock_release(&evd->lock);
	if (LOCK_CHECKED && due & (EVD_DUE_TRIGGER | EVD_DUE_BROKEN | EVD_DUE_UNREADY))
		lock_check_none("the trigger of a CNO");
	if (due & (EVD_DUE_TRIGGER | EVD_DUE_BROKEN))
		upward.cno_trigger(evd);
	if (due & EVD_DUE_UNREADY)
		upward.cno_unready(evd);
}

void evd_endings_wake_locked(struct dapl_evd *evd)
{
	struct evd_room_waiter *waiter;

	TAILQ_FOREACH(waiter, &evd->endings, entry)
		task_post(waiter->task, waiter->due);
}

void evd_task_run(struct task *task, unsigned mask)
{
	struct dapl_evd *evd = (struct dapl_evd *)((char *)task - offsetof(struct dapl_evd, task));

	if (mask & EVD_DUE_BROKEN)
		async_post_evd_overflow(evd);
	if (mask & EVD_DUE_OVERFLOW)
		async_post_evd_overflow(evd);
	if (!(mask & EVD_DUE_ROOM))
		return;
	lock_acquire(&evd->lock);
	evd_endings_wake_locked(evd);
	lock_release(&evd->lock);
	if (evd->flags & DAT_EVD_ASYNC_FLAG)
		async_room(evd);
}

void evd_ending_cancel(struct dapl_evd *evd, struct evd_room_waiter *waiter)
{
	if (!evd)
		return;
	lock_acquire(&evd->lock);
	if (waiter->waits)
		TAILQ_REMOVE(&evd->endings, waiter, entry);
	waiter->waits = false;
	lock_release(&evd->lock);
}

void evd_broken(struct dapl_evd *evd)
{
	bool first;

	lock_acquire(&evd->lock);
	first = !(evd->state & EVD_BROKEN);
	evd->state |= EVD_BROKEN;
	if (first)
		evd->due |= EVD_DUE_BROKEN;
	evd_unlock(evd);
	wakefd_raise(&evd->wake);
}
