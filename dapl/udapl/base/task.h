/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* Work that an object leaves to the event thread of its device: one mask, one timer, one function. */
#ifndef DAPL_TASK_H
#define DAPL_TASK_H

#include <stdatomic.h>
#include <stdint.h>
#include "dapl/openib/ib.h"

/*
 * The low bits of the mask are work that is due; each run clears them all. The bits above record facts about the object
 * and stay set. TASK_CLOSED is one of them: the task does not run any more.
 */
#define TASK_DUE    0xffffu
#define TASK_FACT   0x10000u /* the first of the other bits */
#define TASK_CLOSED 0x80000000u

struct task {
	struct ib_device *device;
	/* In the event thread, with no lock held. `mask` is as it was before its due bits were taken. */
	void (*run)(struct task *task, unsigned mask);
	_Atomic unsigned mask;
	uint64_t deadline; /* guarded by the object's lock, see task_at_locked */
	struct ib_timer timer;
};

void task_init(struct task *task, struct ib_device *device,
	       void (*run)(struct task *task, unsigned mask));
/* After task_end: nothing is due, and nothing has happened. */
void task_reopen(struct task *task);
/*
 * Sets bits; with a due bit that was not set the task runs soon. From any thread, with any lock held except a
 * device's.
 */
void task_post(struct task *task, unsigned what);
/*
 * The task also runs at `deadline` (CLOCK_MONOTONIC ns; CLOCK_NEVER: not), which replaces the one before. It may run
 * earlier, so it asks task_deadline_passed_locked. A run that was posted takes the timer: each run ends with
 * task_resume_locked where a deadline may be left.
 */
void task_at_locked(struct task *task, uint64_t deadline);
void task_resume_locked(struct task *task);
/* true once for each deadline. */
bool task_deadline_passed_locked(struct task *task);
/*
 * After return it neither runs nor will, whatever is posted, except when it is called by the run itself. The caller
 * holds no lock. A thread that posts without a reference on the object does so under a lock that the caller takes and
 * releases between task_close and task_end. Returns what was due and did not run.
 */
void task_close(struct task *task);
unsigned task_end(struct task *task);

static inline unsigned task_mask(const struct task *task)
{
	/* acquire: what was done before a bit was set is seen */
	return atomic_load_explicit(&task->mask, memory_order_acquire);
}

#endif
