/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* Tasks: work that objects leave to the event thread. */
#include <stddef.h>
#include "dapl/udapl/base/task.h"
#include "util/clock.h"

static void task_call(struct ib_timer *timer)
{
	struct task *task = (struct task *)((char *)timer - offsetof(struct task, timer));

	task->run(task, atomic_fetch_and(&task->mask, ~TASK_DUE));
}

void task_init(struct task *task, struct ib_device *device,
	       void (*run)(struct task *task, unsigned mask))
{
	task->device = device;
	task->run = run;
	task_reopen(task);
}

void task_reopen(struct task *task)
{
	task->deadline = CLOCK_NEVER;
	atomic_store(&task->mask, 0);
}

void task_post(struct task *task, unsigned what)
{
	unsigned before = atomic_fetch_or(&task->mask, what);

	if (what & ~before & TASK_DUE && !(before & TASK_CLOSED))
		ib_timer_arm(task->device, &task->timer, 0, task_call);
}

/*
 * A bit is set before its run is armed. So a run that this arming puts off is one whose bit the test of the
 * mask finds, and a run that is armed later is not put off.
 */
void task_at_locked(struct task *task, uint64_t deadline)
{
	unsigned mask;

	task->deadline = deadline;
	if (deadline == CLOCK_NEVER || atomic_load(&task->mask) & TASK_CLOSED)
		return;
	ib_timer_arm(task->device, &task->timer, deadline, task_call);
	mask = atomic_load(&task->mask);
	if (mask & TASK_DUE && !(mask & TASK_CLOSED))
		ib_timer_arm(task->device, &task->timer, 0, task_call);
}

void task_resume_locked(struct task *task)
{
	task_at_locked(task, task->deadline);
}

bool task_deadline_passed_locked(struct task *task)
{
	if (clock_now() < task->deadline)
		return false;
	task->deadline = CLOCK_NEVER;
	return true;
}

void task_close(struct task *task)
{
	atomic_fetch_or(&task->mask, TASK_CLOSED);
}

unsigned task_end(struct task *task)
{
	task_close(task);
	if (task->device)
		ib_timer_cancel(task->device, &task->timer);
	return atomic_fetch_and(&task->mask, ~TASK_DUE) & TASK_DUE;
}
