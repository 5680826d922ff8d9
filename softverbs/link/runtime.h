/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* What the files of the process runtime share: peers.c, link.c, link_io.c, handshake.c. */
#ifndef SV_LINK_RUNTIME_H
#define SV_LINK_RUNTIME_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>
#include <sys/socket.h>
#include "softverbs/base/shared.h"
#include "softverbs/link/engine.h"
#include "softverbs/link/client.h"
#include "softverbs/link/peer.h"

/* by_owner area, by_peers area, and the memory of a process that allows access to it */
#define SV_HANDSHAKE_FDS 3

enum link_state {
	LINK_WAITING,  /* begun here; the peer's listen queue is full, and the engine tries again */
	LINK_GREETED,  /* begun here; hello sent, the peer's hello not received */
	LINK_ACCEPTED, /* begun by the peer; its hello not received */
	/* begun by the peer; it crossed a link that is kept, and the peer will close it */
	LINK_PARKED,
	LINK_READY,
	LINK_DOWN,
};

struct link_message {
	STAILQ_ENTRY(link_message) entry;
	int fds[SV_HANDSHAKE_FDS]; /* duplicates, owned by the message */
	unsigned fd_count;
	size_t size;
	struct {
		uint32_t type; /* enum sv_msg */
		uint32_t size; /* of the payload */
		uint8_t payload[SV_MSG_MAX];
	} wire;
};

struct sv_link {
	struct engine_fd handler; /* the socket; only the engine closes it */
	struct engine_fd death;	  /* pidfd, if the kernel has them */
	struct engine_job job;
	struct sv_timer timer; /* limits the time until the link is ready */
	uint64_t deadline;
	/* the reason why the link is unusable, if known before its end */
	int error;
	enum link_state state; /* written by the engine under the links lock */
	uint16_t slot;	       /* not valid in LINK_ACCEPTED */
	struct ucred cred;
	struct sv_peer *peer;		 /* valid in LINK_READY; holds a reference */
	STAILQ_HEAD(, link_message) out; /* links lock: messages that did not fit into the socket */
	unsigned out_count, out_fds;
	bool ring_waits; /* links lock: ring the doorbell when the socket has room */
	bool in_reader;	 /* links lock: read by readers, not by link_ready (link_reader.c) */
	bool ended; /* links lock: a reader has read the end, and the engine has not closed it */
	LIST_ENTRY(sv_link) entry; /* links lock */
};

/* runtime.c, engine: accepts one connection, or refuses it if the process has no descriptor left; -1 if there
 * is none. */
SV_SHARED int sv_runtime_accept(int listener);

/* ---- link_io.c ------------------------------------------------------------------------------- */

int sv_link_send_locked(struct sv_link *link, enum sv_msg type, const void *payload, size_t size,
			const int *fds, unsigned fd_count);
/* engine: sends queued messages */
void sv_link_flush(struct sv_link *link);
/*
 * Dispatches some messages, or all of them; the caller holds the lock of link_reader.h. True if only the end of the stream is
 * left to read. Sets *rung if a doorbell was among them, which the caller answers without that lock.
 */
bool sv_link_read(struct sv_link *link, bool all, bool *rung);
void sv_link_forget_messages(struct sv_link *link);
/* rings the peer's doorbell as soon as the socket has room */
void sv_link_ring_locked(struct sv_link *link);
void sv_close_all(int *fds, unsigned count);

/* ---- link.c ---------------------------------------------------------------------------------- */

/* Opens a link to a slot: the hello is sent, or waits for room. NULL with errno. The caller holds the links
 * lock. */
struct sv_link *sv_link_open_locked(uint16_t slot);
void sv_link_accept(int fd, const struct ucred *cred); /* engine; takes ownership of `fd` */
/* Engine: closes the link, and notifies those that waited for it or used it. `error` is the reason for those
 * that waited. */
void sv_link_down(struct sv_link *link, int error);
bool sv_link_hung_up(const struct sv_link *link);
/* 0, or errno if the process has ended already */
int sv_link_death_add(struct sv_link *link);
void sv_links_share_locked(void); /* adds all links that are ready to the reader's */
void sv_links_close(void);	  /* the engine is halted; notifies no peer */
void sv_links_fork_child(void);

/* ---- peers.c --------------------------------------------------------------------------------- */

/* guards the slot table and the links; acquired before the engine's lock */
void sv_links_lock(void);
void sv_links_unlock(void);
/* Handles a hello; takes ownership of the descriptors. False if it is not acceptable and the link must be
 * closed. */
bool sv_peers_handshake(struct sv_link *link, const void *payload, size_t size, int *fds,
			unsigned fd_count);
/* Removes the link from its slot. True if callers of sv_peer_get wait for it. */
bool sv_peers_leave_locked(struct sv_link *link);
void sv_peers_fork_child(void);

/* ---- kept.c ---------------------------------------------------------------------------------- */

/* A message of this process to itself; 0 or errno. The caller holds the links lock. */
int sv_kept_add_self_locked(enum sv_msg type, const void *payload, size_t size, int fd);
/*
 * A message of the data path, which the engine alone handles: now, or, if the caller is a reader, as soon as it can. Takes
 * ownership of `fd`.
 */
void sv_kept_handle(struct sv_peer *peer, const void *payload, size_t size, int fd);
void sv_kept_fork_child(void);

/* ---- handshake.c --------------------------------------------------------------------------------- */

struct handshake {
	uint32_t magic, layout; /* the first members in every layout */
	uint64_t nonce[2];
	struct sv_area_offer offer;
	/* bit (1 << enum sv_copy): the ways in which the sender allows access to its memory */
	uint32_t modes;
	uint32_t slot;
};

int sv_handshake_send_locked(struct sv_link *link);
/* The layout of a hello, which may be another one than SV_LAYOUT; 0 if it is no hello. */
uint32_t sv_handshake_layout(const void *payload, size_t size);
bool sv_handshake_read(struct handshake *handshake, const void *payload, size_t size);
/* Makes the peer that sent the hello, with its areas mapped; NULL with errno. Takes ownership of the
 * descriptors. */
struct sv_peer *sv_handshake_peer(const struct handshake *handshake, const struct ucred *cred,
				  int *fds, unsigned fd_count);
void sv_handshake_end(void); /* revokes the access that sv_handshake_send_locked granted */

const struct sv_link_client *sv_runtime_client(void);

#endif
