/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/*
 * Decides which thread reads the links that are ready: the engine, or in its place a reader, a thread that waits for what
 * the messages of the connection manager lead to. The engine would only wake that thread.
 */
#ifndef SV_LINK_READER_H
#define SV_LINK_READER_H

#include "softverbs/link/runtime.h"

/*
 * Held by the thread that reads links, while it handles what it has read. Acquired before the locks of the connection manager
 * and of the links. Only the engine makes links ready and closes those, with this lock held.
 */
void sv_links_reading_lock(void);
void sv_links_reading_unlock(void);

/* The link has become ready, or ends. The caller holds the links lock. */
void sv_link_reader_add_locked(struct sv_link *link);
void sv_link_reader_remove_locked(struct sv_link *link);
/* Sets the events that the engine waits for on the socket. The caller holds the links lock. */
void sv_link_interest_locked(struct sv_link *link);

int sv_link_reader_open(void);	 /* 0 or errno; sv_link_reader_close either way */
void sv_link_reader_close(void); /* the engine is halted */
void sv_link_reader_fork_child(void);

#endif
