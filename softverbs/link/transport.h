/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/*
 * A way to processes of other hosts. Those of this host are reached by links and shared memory, which need no such struct.
 * The runtime's client names the transport (softverbs/attend.c), so that what is below uses it without knowing it.
 */
#ifndef SV_LINK_TRANSPORT_H
#define SV_LINK_TRANSPORT_H

#include <stdbool.h>
#include <stddef.h>
#include "softverbs/link/ip.h"
#include "softverbs/link/peer.h"

struct iovec;
struct sv_qp;
struct ud_ring_record;
union ibv_gid;

struct sv_transport {
	/* ---- of the runtime and of links ---- */

	/* What stands in the way is logged, and the device works without other hosts. The engine runs. */
	void (*start)(void);
	/* Waits, not for long, until peers have what was sent. The engine runs. */
	void (*leave)(void);
	/* After the engine was halted. */
	void (*stop)(void);
	/* Between start and stop, if nothing stood in the way and the settings ask for other hosts. */
	bool (*is_on)(void);
	/* In a thread that is in `start`: libraries that look for devices there must not find this one. */
	bool (*is_starting)(void);
	/* Engine: another process of this host accepted a connection that is for this one. Takes ownership of `fd`. */
	void (*handed)(int fd, const void *payload, size_t size);
	/* As sv_peer_send, for a peer of another host. */
	int (*send)(struct sv_peer *peer, enum sv_msg type, const void *payload, size_t size);
	/* The last reference is released. */
	void (*peer_free)(struct sv_peer *peer);
	/* Around fork, in the thread that forks, inside the links lock. */
	void (*fork_prepare)(void);
	void (*fork_parent)(void);
	void (*fork_child)(void);

	/* ---- of the data path ---- */

	/* Whether the address is one of another host, and the transport is on; stores it. */
	bool (*reaches)(const union ibv_gid *gid, struct sv_ip *host);
	/* A reliable QP enters RTR: sets qp->path (object/path.h) if the destination is on another host. `modify` is
	 * held. 0 or errno. */
	int (*path_open)(struct sv_qp *qp);
	/* Sends a datagram. It may be kept until there is a link, or be lost. IBV_WC_SUCCESS, or EXEC_WAIT(SQ_SENT). The SQ
	 * lock is held. */
	int (*datagram_send_locked)(struct sv_qp *qp, const struct sv_ip *host,
				    const struct ud_ring_record *head, const struct iovec *iov,
				    unsigned count, bool solicited);
	/* A datagram QP sends and receives no more. */
	void (*datagrams_end)(struct sv_qp *qp);
	/* A poll found nothing: reads what peers sent. False if nothing was there, or another thread reads. The caller
	 * holds no lock. `armed`: it may block next, when the CQ's event is to come from the engine. */
	bool (*progress)(bool armed);
	/* A CQ with QPs whose peers are on other hosts was armed. */
	void (*awaited)(void);
};

/* Before the runtime is first held: one that is off and does nothing. */
const struct sv_transport *sv_transport(void);

#endif
