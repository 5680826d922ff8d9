/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/*
 * While threads poll, they read what other hosts sent, and the engine pauses: each message would wake it, on a processor
 * that a poll needs. It reads again when a thread asks for an event, or a moment after the last poll. If something has waited
 * for that moment, as a write does for a thread that polls memory, it does not pause again soon.
 */
#ifndef SV_FABRIC_PAUSE_H
#define SV_FABRIC_PAUSE_H

#include "softverbs/link/engine.h"

/*
 * `handler`: of the descriptor on which the engine waits. `read`: what it calls, in its thread, after a pause; true if there was
 * something.
 */
void sv_fabric_pause_open(struct engine_fd *handler, bool (*read)(void));
void sv_fabric_pause_close(void);
void sv_fabric_pause_fork_child(void);

/* A poll of a CQ that is not armed has read. */
void sv_fabric_pause_polled(void);
/* Engine: the descriptor is ready. True if that is left to threads that poll. */
bool sv_fabric_pause_begin(void);
/* A CQ was armed: its thread may block, and hears of a message from the engine. */
void sv_fabric_pause_end(void);

#endif
