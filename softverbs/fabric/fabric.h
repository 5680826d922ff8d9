/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* Processes of other hosts, as the connection manager and the data path find them. */
#ifndef SV_FABRIC_FABRIC_H
#define SV_FABRIC_FABRIC_H

#include <stdbool.h>
#include <stdint.h>
#include "softverbs/base/shared.h"
#include "softverbs/link/ip.h"
#include "softverbs/link/peer.h"

/*
 * The outcome of a search, in the engine, which holds no lock: a peer with a reference for the callee, or an
 * errno. ECONNREFUSED: no process has the fabric on there; ENOENT: none has that slot or port; EACCES: another
 * key; EPROTO: another version, or no process of this kind; EPROTONOSUPPORT: another SOFTVERBS_FABRIC; ETIMEDOUT; ENETUNREACH, EHOSTUNREACH; others.
 */
typedef void sv_fabric_found(uint32_t cookie, struct sv_peer *peer, int error);

/* SOFTVERBS_FABRIC is set, and the key could be read. */
SV_SHARED bool sv_fabric_is_on(void);
/* SOFTVERBS_FABRIC; NULL if it is off. */
SV_SHARED const char *sv_fabric_wish(void);

/* These begin a search. 0, or errno; then `found` is not called. */
SV_SHARED int sv_fabric_find_port(const struct sv_ip *host, uint32_t space, uint16_t port,
				  uint32_t cookie, sv_fabric_found *found);
/* Only whether the other host can be reached: `found` gets neither a peer nor an error. */
SV_SHARED int sv_fabric_check(const struct sv_ip *host, uint32_t cookie, sv_fabric_found *found);

#endif
