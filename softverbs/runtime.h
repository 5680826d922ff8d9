/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* What the files of the process runtime share: slots.c, link.c, link_io.c, hello.c. */
#ifndef SV_RUNTIME_H
#define SV_RUNTIME_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>
#include <sys/socket.h>
#include "softverbs/engine.h"
#include "softverbs/peer.h"

/* read-only area, read-write area; the memory of a process that allows it */
#define SV_HELLO_FDS 3

enum link_state {
	LINK_WAITING,  /* ours; their queue of connections is full and is tried again */
	LINK_GREETED,  /* ours; our hello is sent, theirs is not here yet */
	LINK_ACCEPTED, /* theirs; their hello is not here yet */
	/* theirs; it crossed one that is kept, and waits to be closed by them */
	LINK_PARKED,
	LINK_READY,
	LINK_DOWN,
};

struct link_message {
	STAILQ_ENTRY(link_message) entry;
	int fds[SV_HELLO_FDS]; /* duplicates */
	unsigned fd_count;
	size_t size;
	struct {
		uint32_t type; /* enum sv_msg */
		uint32_t size; /* of the payload */
		uint8_t payload[SV_MSG_MAX];
	} wire;
};

struct sv_link {
	struct engine_watch watch; /* the socket; closed by the engine alone */
	struct engine_watch death; /* pidfd, where the kernel has them */
	struct engine_job job;
	struct sv_timer timer; /* of a link that is not ready */
	uint64_t deadline;
	/* why it cannot be used, when that is known before it ends */
	int error;
	enum link_state state; /* written by the engine under the links lock */
	uint16_t slot;	       /* not of LINK_ACCEPTED */
	struct ucred cred;
	struct sv_peer *peer;		 /* of LINK_READY; holds a reference */
	STAILQ_HEAD(, link_message) out; /* links lock: what the socket did not take */
	unsigned out_count, out_fds;
	bool ring_waits;	   /* links lock: the doorbell is rung when the socket takes it */
	bool rung;		   /* engine: among the messages that were just read */
	LIST_ENTRY(sv_link) entry; /* links lock */
};

/*
 * runtime.c, engine: accepts one connection, or refuses it when no descriptor is left; -1 when
 * there is none.
 */
int runtime_accept(int listener);

/* ---- link_io.c ------------------------------------------------------------------------------- */

int link_send_locked(struct sv_link *link, enum sv_msg type, const void *payload, size_t size,
		     const int *fds, unsigned fd_count);
/* engine: what the socket did not take before */
void link_flush(struct sv_link *link);
/*
 * Engine: dispatches some messages, or all that are there; true when nothing is left to read but
 * the end.
 */
bool link_drain(struct sv_link *link, bool all);
void link_forget_messages(struct sv_link *link);
/* rings the peer's doorbell as soon as the socket has room */
void link_ring_locked(struct sv_link *link);
void close_all(int *fds, unsigned count);

/* ---- link.c ---------------------------------------------------------------------------------- */

/*
 * A link of ours towards a slot, hello sent or waiting for room; NULL with errno. The links lock is
 * held.
 */
struct sv_link *link_open_locked(uint16_t slot);
void link_accept(int fd, const struct ucred *cred); /* engine; owns fd */
/* Engine: closes it, tells who waited for it or used it. `error`: why, for those who waited. */
void link_down(struct sv_link *link, int error);
bool link_hung_up(const struct sv_link *link);
/* 0, or errno when the process is gone already */
int link_watch_death(struct sv_link *link);
void links_close(void); /* the engine is halted; nobody is told */
void links_fork_child(void);

/* ---- slots.c --------------------------------------------------------------------------------- */

/* guards the slot table and the links; taken before the engine's lock */
void links_lock(void);
void links_unlock(void);
/*
 * A hello came over the link. Owns the descriptors. False: it is not acceptable, the link has to
 * go.
 */
bool slot_hello(struct sv_link *link, const void *payload, size_t size, int *fds,
		unsigned fd_count);
/* Takes the link out of its slot; true if callers of peer_get wait for it. */
bool slot_leave_locked(struct sv_link *link);
void slots_fork_child(void);

/* ---- hello.c --------------------------------------------------------------------------------- */

struct hello {
	uint32_t magic, layout;
	uint64_t nonce[2];
	struct sv_area_offer offer;
	/* bit (1 << enum sv_copy): ways in which the sender lets its memory be reached */
	uint32_t modes;
	uint32_t slot;
};

int hello_send_locked(struct sv_link *link);
bool hello_read(struct hello *hello, const void *payload, size_t size);
/* The process that said hello, its areas mapped; NULL with errno. Owns the descriptors. */
struct sv_peer *hello_peer(const struct hello *hello, const struct ucred *cred, int *fds,
			   unsigned fd_count);
void hello_end(void); /* takes back what hello_send_locked allowed others */

#endif
