/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* Tests that run on the server while it accepts further clients. */

#ifndef TASK_H
#define TASK_H

#include <stdatomic.h>
#include <sys/queue.h>

#include "control.h"

struct task {
	TAILQ_ENTRY(task) entry;
	enum test_type type;
	struct place place;
	union {
		struct transaction transaction;
		struct performance performance;
	};
	struct gate ready;
	pthread_t thread;
	atomic_bool done;
};

TAILQ_HEAD(task_list, task);

/*
 * The list belongs to the thread that starts tasks and waits for them. A started task is its first
 * element.
 */
bool task_start(struct task_list *list, struct task *task);
void task_list_reap(struct task_list *list);
void task_list_wait(struct task_list *list, enum test_type type);

#endif
