/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/*
 * The one background thread of a process: what links and the connection manager ask of it. Timers
 * are in peer.h.
 */
#ifndef SV_ENGINE_H
#define SV_ENGINE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>
#include "softverbs/peer.h"

/*
 * A descriptor that the engine looks at. `ready` runs in the engine with no lock of the engine
 * held. After engine_unwatch from another thread one last `ready` may be running or about to run,
 * so its memory goes through engine_defer, and `ready` looks at `fd` under the lock that its owner
 * holds for engine_unwatch.
 */
struct engine_watch {
	int fd; /* closed and -1 after engine_unwatch */
	bool listed;
	void (*ready)(struct engine_watch *watch, uint32_t events);
	LIST_ENTRY(engine_watch) entry;
};

/*
 * Runs once in the engine, after everything that it has begun before the call; in the stopping
 * thread if it stops first.
 */
struct engine_job {
	void (*run)(struct engine_job *job);
	STAILQ_ENTRY(engine_job) entry;
};

int engine_start(void); /* 0 or errno */
/* the thread ends; not from the engine; watches and jobs may still come */
void engine_halt(void);
/* halts, runs what is left of the jobs, closes; accepts one that did not start */
void engine_stop(void);

/* The watch owns the descriptor from here on, even when 0 is not returned but an errno. */
int engine_watch(struct engine_watch *watch, int fd, uint32_t events,
		 void (*ready)(struct engine_watch *watch, uint32_t events));
void engine_rewatch(struct engine_watch *watch, uint32_t events);
void engine_unwatch(struct engine_watch *watch); /* accepts one that is not watched */

void engine_defer(struct engine_job *job, void (*run)(struct engine_job *job));

/* Like engine_timer_cancel, but never waits: for a holder of the lock that `fire` takes. */
void engine_timer_disarm(struct sv_timer *timer);

/*
 * Around fork, in the thread that forks: the child closes what it inherited and forgets the engine.
 */
void engine_fork_prepare(void);
void engine_fork_parent(void);
void engine_fork_child(void);

#endif
