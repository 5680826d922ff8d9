/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* The engine, the one background thread of a process, as links and the connection manager use it. Timers are
 * declared in peer.h. */
#ifndef SV_LINK_ENGINE_H
#define SV_LINK_ENGINE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>
#include "softverbs/base/shared.h"
#include "softverbs/link/peer.h"

/* A descriptor that the engine polls. `ready` runs in the engine, which holds no lock of its own. After
 * sv_engine_fd_remove in another thread, one last call of `ready` may still run or be about to run. Therefore
 * the owner frees the structure through sv_engine_defer, and `ready` checks `fd` under the lock that the
 * owner holds for sv_engine_fd_remove. */
struct engine_fd {
	int fd; /* closed and -1 after sv_engine_fd_remove */
	bool listed;
	void (*ready)(struct engine_fd *handler, uint32_t events);
	LIST_ENTRY(engine_fd) entry;
};

/* `run` is called once in the engine, after all calls that the engine began before sv_engine_defer; or in the
 * thread that stops the engine. */
struct engine_job {
	void (*run)(struct engine_job *job);
	STAILQ_ENTRY(engine_job) entry;
};

int sv_engine_start(void); /* 0 or errno */
/* Ends the thread; not for the engine itself. Descriptors and jobs may still be added. */
void sv_engine_halt(void);
/* Halts the engine, runs the remaining jobs, closes its descriptors; accepts an engine that did not start. */
void sv_engine_stop(void);

/* `handler` owns `fd` from here on, even on error. 0 or errno. */
SV_SHARED int sv_engine_fd_add(struct engine_fd *handler, int fd, uint32_t events,
			       void (*ready)(struct engine_fd *handler, uint32_t events));
void sv_engine_fd_modify(struct engine_fd *handler, uint32_t events);
SV_SHARED void sv_engine_fd_remove(struct engine_fd *handler); /* no-op if not added */

SV_SHARED void sv_engine_defer(struct engine_job *job, void (*run)(struct engine_job *job));

/* Like sv_engine_timer_cancel, but does not wait for a running `fire`: for a caller that holds the lock that
 * `fire` acquires. */
SV_SHARED void sv_engine_timer_disarm(struct sv_timer *timer);

/* Called around fork, in the thread that forks. The child closes what it inherited and drops the engine. */
void sv_engine_fork_prepare(void);
void sv_engine_fork_parent(void);
void sv_engine_fork_child(void);

#endif
