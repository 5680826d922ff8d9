/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/*
 * Room `link`: which processes there are, and how this one talks to them: the runtime, the engine thread, links, names.
 *
 * This header is a process as the data path sees it: a peer whose shared areas are mapped here, or which a transport reaches.
 * A peer that is held stays mapped, also after its end (`dead`). engine.h has descriptors, timers and jobs of the one
 * background thread, client.h what the rooms above want to be told, transport.h the way to other hosts, name.h names of
 * processes and ports. Nothing here knows a QP.
 * Locks: the runtime's mutex, outermost, which the engine never acquires; that of the thread that reads links (link_reader.h);
 * the links lock, for the table of processes and what waits to be sent; the engine's, innermost.
 */
#ifndef SV_LINK_PEER_H
#define SV_LINK_PEER_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>
#include <sys/types.h>
#include "softverbs/base/shared.h"
#include "util/deadlines.h"
#include "util/lock.h"

/*
 * Version of the shared areas and of the messages on a link; processes with different versions cannot
 * reach each other.
 */
#define SV_LAYOUT 11
#define SV_PEERS  4096

struct area_by_owner; /* shm.h: written by the owner, read by peers */
struct area_by_peers; /* shm.h: written by peers */
struct sv_direct;     /* rc/direct.c */
struct sv_link_client;
struct sv_link; /* link.c: the socket to the process */

enum sv_copy {		       /* how this process copies to and from the peer's memory */
	       SV_COPY_SELF,   /* it is this process */
	       SV_COPY_PVM,    /* process_vm_readv and process_vm_writev */
	       SV_COPY_MEMFD,  /* its /proc/self/mem, through a descriptor that it passed */
	       SV_COPY_BOUNCE, /* the peer's engine copies, through shared memory */
};

struct sv_outbox {	  /* datagrams to a process; see shm.h */
	struct lock lock; /* guards all members */
	uint8_t *ring;	  /* NULL until the first datagram */
	uint32_t size, written, taken;
	bool stuck; /* the ring was full for long, and the peer has read nothing since */
};

struct sv_peer {
	/* The upper 12 bits of its QPNs. Members are constant once the peer is ready, unless noted. */
	uint16_t slot;
	pid_t pid;
	uint64_t nonce[2];
	enum sv_copy copy;
	const struct area_by_owner *by_owner;
	struct area_by_peers *by_peers;
	size_t by_owner_size, by_peers_size;
	/* bytes of each area, from its start, that are open for access (area.c); of this process: its heaps */
	_Atomic(uint64_t) opened[2];
	struct sv_link *link; /* NULL for this process itself, and on another host */
	/* of another host: its struct fabric_peer. Such a peer has no areas, only messages (far.h). */
	struct fabric_peer *far;
	/* Wakes the peer's engine: an eventfd for this process itself, else a copy of the link's socket. */
	int doorbell;
	/* Of its memory: SV_COPY_MEMFD; else opened when first needed (rc/peer_memory.c). Negative: none. */
	_Atomic(int) memory;
	/* What is mapped here of its memory (rc/direct.c); NULL before the first key that may be. */
	_Atomic(struct sv_direct *) direct;
	/* set once, by the engine; the mappings remain until the last reference is released */
	atomic_bool dead;
	atomic_int refs;
	struct sv_outbox outbox;
	/* bytes read from its datagrams to this process; guarded by the mail lock */
	uint32_t inbox_taken;
	/* owned by the data path (channel descriptors and so on); sv_link_client.peer_free frees it */
	void *data;
};

/* ---- runtime.c, link.c: called by the data path --------------------------------------------- */

/* A process has one runtime: areas, slot and engine. The first hold makes it, the last release destroys it. 0
 * or errno. In a forked child that inherits a runtime, every call on inherited objects returns ENODEV, and
 * the first hold makes a new runtime. */
int sv_runtime_hold(const struct sv_link_client *client);
void sv_runtime_release(void);
/* true in a forked child of the process that made the runtime */
bool sv_runtime_inherited(void);
SV_SHARED uint16_t sv_runtime_peer_id(void); /* valid while held */

/* Returns the linked process of a slot, with one more reference. Never blocks. NULL with errno: EAGAIN if a
 * link is being made, after which peer_ready or peer_unreachable of client.h is called; ECONNREFUSED if
 * no process has the slot; another errno if no link can be made (EMFILE, ...). */
SV_SHARED struct sv_peer *sv_peer_get(uint16_t slot);
SV_SHARED struct sv_peer *sv_peer_linked(uint16_t slot); /* makes no link; NULL if none */
SV_SHARED struct sv_peer *sv_peer_self(void);		 /* no reference taken */
SV_SHARED void sv_peer_hold(struct sv_peer *peer);	 /* the caller has a reference */
SV_SHARED void sv_peer_put(struct sv_peer *peer);
void sv_peer_ring(struct sv_peer *peer); /* wakes its engine, which calls sv_link_client.doorbell */

/* Sends a message over the link. Never blocks: the engine sends later what does not fit. `fd` may be -1. 0 or
 * errno. */
enum sv_msg {
	SV_MSG_HANDSHAKE = 1, /* of link.c */
	SV_MSG_CM,	      /* of the CM */
	SV_MSG_DATA,	      /* of the data path: channel descriptors and so on */
	SV_MSG_RING,	      /* the doorbell, without a payload */
	SV_MSG_FAR,	      /* a connection from another host, instead of a handshake */
};
#define SV_MSG_MAX 512
SV_SHARED int sv_peer_send(struct sv_peer *peer, enum sv_msg type, const void *payload, size_t size,
			   int fd);

/*
 * For a thread that waits for what the messages of the connection manager lead to (link_reader.c). Between begin and end it
 * may wait for the descriptor that begin returns, with others, and calls read when that is readable. -1: there is a reader
 * already. Where read returns false, the thread calls end. `returns`: it may soon begin anew, and what comes until then may
 * wait for it a millisecond.
 */
SV_SHARED int sv_link_reader_begin(void);
SV_SHARED bool sv_link_reader_read(void);
SV_SHARED void sv_link_reader_end(bool returns);

/* Timers of engine.c. `fire` runs in the engine thread, which holds no lock of its own. */
struct sv_timer {
	struct deadline due; /* first */
	void (*fire)(struct sv_timer *timer);
};
SV_SHARED void sv_engine_timer_arm(struct sv_timer *timer, uint64_t deadline,
				   void (*fire)(struct sv_timer *timer));
/* After return, `fire` neither runs nor will run; a call in the engine thread itself does not wait. */
SV_SHARED void sv_engine_timer_cancel(struct sv_timer *timer);
bool sv_engine_is_self(void);

#endif
