/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/*
 * Room `fabric`: processes of other hosts: links over TCP with proofs of a shared key, the way to the right process, requests
 * and datagrams. One transport (transport.h); payload may go through a provider of libfabric instead (plugin.h).
 *
 * A peer's requests are executed here by a proxy, a QP of this process that is connected as a local initiator is (proxy.c), so
 * that every rule of a local connection holds. Values from a link are checked before use; a stranger costs one connection and
 * one log line. This header is what the connection manager asks.
 * Locks: `far`, for proxies; the fabric's, for links and peers; `reading`, for the one thread that reads an endpoint.
 */
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
/* The linked process with that nonce, of which that is an address, with one more reference; NULL if there is none. */
SV_SHARED struct sv_peer *sv_fabric_peer_linked(const uint64_t nonce[2], const struct sv_ip *host);
/* Only whether the other host can be reached: `found` gets neither a peer nor an error. */
SV_SHARED int sv_fabric_check(const struct sv_ip *host, uint32_t cookie, sv_fabric_found *found);

#endif
