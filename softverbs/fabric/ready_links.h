/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/*
 * The links that are ready, as a source of progress (progress.h), with SOFTVERBS_FABRIC=link: one descriptor for all their
 * sockets. A link is in it while its frames are requests, answers and datagrams. What else comes is for the engine, which
 * takes the link out and puts it in again.
 */
#ifndef SV_FABRIC_READY_LINKS_H
#define SV_FABRIC_READY_LINKS_H

#include "softverbs/fabric/link.h"

/* 0 or errno. `read` reads some frames of a link, as the `read` of a source. */
int sv_fabric_ready_links_open(void (*read)(struct fabric_link *link),
			       void (*read_over)(bool polled));
/* The engine is halted, and no other thread uses the device: the links are closed next. */
void sv_fabric_ready_links_close(void);
void sv_fabric_ready_links_fork_child(void);
bool sv_fabric_ready_links_is_open(void);

/* Inside the reading lock. */
void sv_fabric_ready_links_add(struct fabric_link *link);
/* No-op if it is out. The engine may free the link from then on. */
void sv_fabric_ready_links_remove(struct fabric_link *link);

/* Engine, outside of that lock: from then on no other thread reads the link. */
void sv_fabric_ready_links_leave(struct fabric_link *link);

/* For which events the engine waits at the socket of a link. */
uint32_t sv_fabric_link_events_locked(const struct fabric_link *link);

#endif
