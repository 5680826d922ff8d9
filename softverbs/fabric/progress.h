/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/*
 * Reading what other hosts sent: by the threads that poll, one at a time, else by the engine (pause.h). The source is the
 * endpoint, or with `link` the links that are ready.
 */
#ifndef SV_FABRIC_PROGRESS_H
#define SV_FABRIC_PROGRESS_H

#include <stdbool.h>

struct fabric_source {
	/* readable when there is something to read; -1: no such descriptor */
	int fd;
	/* Reads some and says how much; one thread at a time. */
	unsigned (*read)(void);
	/* After `read`; `polled`: by a thread that goes on to poll. */
	void (*read_over)(bool polled);
	/* Whether the descriptor may be waited for; as `read`. NULL: always. */
	bool (*may_wait)(void);
	/* Whether it is read again soon in any case. NULL: never. */
	bool (*is_paced)(void);
};

/*
 * The engine runs. 0 or errno; the caller closes in either case. `source` stays until the close, when the engine is halted.
 */
int sv_fabric_progress_open(const struct fabric_source *source);
void sv_fabric_progress_close(void);
void sv_fabric_progress_fork_child(void);

/* Engine: whether a descriptor wakes it. One that is readable for nothing does not. */
bool sv_fabric_progress_is_woken(void);

/* The engine reads soon, or now. */
void sv_fabric_progress_soon(void);
void sv_fabric_progress_now(void);

/*
 * Guards what reads. The engine may wait for it, other threads only try; it is acquired before all other locks.
 */
void sv_fabric_reading_lock(void);
void sv_fabric_reading_unlock(void);

#endif
