/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* The calls of links and the runtime into the connection manager, which is a layer above them and may be
 * absent. */
#ifndef SV_LINK_CM_CALLS_H
#define SV_LINK_CM_CALLS_H

#include <stddef.h>
#include <stdint.h>
#include "softverbs/link/peer.h"

struct sv_cm_calls {
	/* In the engine thread, or in a reader of links (link_reader.h). */
	void (*message)(struct sv_peer *peer, const void *payload, size_t size);
	/*
	 * The same from another host, in the order of bytes of the wire; false if it is malformed. This and the next three run
	 * in the engine thread.
	 */
	bool (*far_message)(struct sv_peer *peer, const uint8_t *bytes, size_t size);
	void (*peer_ready)(struct sv_peer *peer);
	/* `error` is ECONNREFUSED if no process has that number, else the error of the link. */
	void (*peer_unreachable)(uint16_t id, int error);
	void (*peer_gone)(struct sv_peer *peer);

	/* In the thread that forks; they enclose the runtime's lock. */
	void (*fork_begin)(void);
	void (*fork_end)(void);
	/* In the thread that forks, between the runtime's lock and the links lock; the child drops what it
	 * inherited. */
	void (*fork_prepare)(void);
	void (*fork_parent)(void);
	void (*fork_child)(void);
};

/*
 * The connection manager calls this when it is loaded, before any thread of the device exists. In the
 * drop-in it is in another library, librdmacm.so.1, which a program of verbs alone does not load.
 */
__attribute__((visibility("default"))) void sv_cm_calls_set(const struct sv_cm_calls *calls);

/* Each of these does nothing if no connection manager is loaded. */
void sv_cm_message(struct sv_peer *peer, const void *payload, size_t size);
/* True if no connection manager is loaded. */
bool sv_cm_far_message(struct sv_peer *peer, const uint8_t *bytes, size_t size);
void sv_cm_peer_ready(struct sv_peer *peer);
void sv_cm_peer_unreachable(uint16_t id, int error);
void sv_cm_peer_gone(struct sv_peer *peer);
void sv_cm_fork_begin(void);
void sv_cm_fork_end(void);
void sv_cm_fork_prepare(void);
void sv_cm_fork_parent(void);
void sv_cm_fork_child(void);

#endif
