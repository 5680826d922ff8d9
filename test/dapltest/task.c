/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* Tests that run on the server, each in a thread. */

#include <stdlib.h>
#include <string.h>

#include "task.h"

static void *task_main(void *arg)
{
	struct task *task = arg;
	bool passed;

	if (task->type == TEST_TRANSACTION) {
		passed = transaction_run(&task->place, &task->transaction);
		say("Server: Transaction Test %s for this client", passed ? "Finished" : "FAILED");
	} else {
		passed = performance_run(&task->place, &task->performance);
		say("Server: %s performance test.  Detaching.", passed ? "Finished" : "FAILED");
	}
	/* release: the thread that reads `done` as set may join this thread and free the task */
	atomic_store_explicit(&task->done, true, memory_order_release);
	return NULL;
}

static void task_join(struct task_list *list, struct task *task)
{
	pthread_join(task->thread, NULL);
	gate_destroy(&task->ready);
	TAILQ_REMOVE(list, task, entry);
	free(task);
}

bool task_start(struct task_list *list, struct task *task)
{
	int err;

	gate_init(&task->ready, 2);
	task->place.ready = &task->ready;
	err = pthread_create(&task->thread, NULL, task_main, task);
	if (err) {
		complain("Error: pthread_create: %s", strerror(err));
		gate_destroy(&task->ready);
		free(task);
		return false;
	}
	TAILQ_INSERT_HEAD(list, task, entry);
	return gate_pass(&task->ready, true);
}

void task_list_reap(struct task_list *list)
{
	struct task *task = TAILQ_FIRST(list), *next;

	for (; task; task = next) {
		next = TAILQ_NEXT(task, entry);
		/* acquire: pairs with the end of task_main() */
		if (atomic_load_explicit(&task->done, memory_order_acquire))
			task_join(list, task);
	}
}

void task_list_wait(struct task_list *list, enum test_type type)
{
	struct task *task = TAILQ_FIRST(list), *next;

	for (; task; task = next) {
		next = TAILQ_NEXT(task, entry);
		if (task->type == type)
			task_join(list, task);
	}
}
