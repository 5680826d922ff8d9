/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* Processes of other hosts: the calls of the runtime and of links into softverbs/fabric. */
#ifndef SV_LINK_FAR_H
#define SV_LINK_FAR_H

#include <stddef.h>
#include "softverbs/link/peer.h"

/* SOFTVERBS_FABRIC is set, and the key could be read. */
SV_SHARED bool sv_fabric_is_on(void);

/* In the thread that opens the fabric: libfabric looks for devices, and must not find this one. */
bool sv_fabric_is_opening(void);

/* Called with the engine running, and after it was halted. Opens nothing unless SOFTVERBS_FABRIC is set; what
 * stands in the way is logged, and the device works without the fabric. */
void sv_fabric_start(void);
void sv_fabric_stop(void);

/* Engine: another process of this host accepted a connection that is for this one. Takes ownership of `fd`. */
void sv_fabric_handed(int fd, const void *payload, size_t size);

/* As sv_peer_send, for a peer of another host. */
int sv_fabric_send(struct sv_peer *peer, enum sv_msg type, const void *payload, size_t size);
/* The last reference is released. */
void sv_fabric_peer_free(struct sv_peer *peer);

/* Around fork, in the thread that forks, inside the links lock. */
void sv_fabric_fork_prepare(void);
void sv_fabric_fork_parent(void);
void sv_fabric_fork_child(void);

#endif
