/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* A process whose shared areas are mapped here: the seam between links (runtime, engine, CM) and the data path. */
#ifndef SV_PEER_H
#define SV_PEER_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>
#include <sys/types.h>
#include "util/lock.h"

#define SV_LAYOUT \
	4 /* of the shared areas and of the messages on a link; unequal means unreachable */
#define SV_SLOTS 4096

struct sv_ro;	/* shm.h: what the owner writes and peers only read */
struct sv_rw;	/* shm.h: what peers write */
struct sv_link; /* link.c: the socket to the process */

enum sv_copy {		       /* how this process moves bytes to and from the peer's memory */
	       SV_COPY_SELF,   /* it is this process */
	       SV_COPY_PVM,    /* process_vm_readv and process_vm_writev */
	       SV_COPY_MEMFD,  /* its /proc/self/mem, of which it passed a descriptor */
	       SV_COPY_BOUNCE, /* the peer's engine copies, through shared memory */
};

struct sv_outbox {	  /* datagrams to a process; see shm.h */
	struct lock lock; /* guards all of it */
	uint8_t *ring;	  /* NULL: none was sent yet */
	uint32_t size, written, taken;
	bool stuck; /* it was full for long, and nothing was taken since */
};

struct sv_peer {
	/* the upper 12 bits of its QPNs; all constant once the peer is ready */
	uint16_t slot;
	pid_t pid;
	uint64_t nonce[2];
	enum sv_copy copy;
	const struct sv_ro *ro;
	struct sv_rw *rw;
	size_t ro_size, rw_size;
	struct sv_link *link; /* NULL for this process itself */
	/* wakes its engine: of this process itself an eventfd, else a copy of the link's socket */
	int doorbell;
	int memory; /* SV_COPY_MEMFD; else -1 */
	/* set once, by the engine; the mappings stay until the last reference goes */
	atomic_bool dead;
	atomic_int refs;
	struct sv_outbox outbox;
	uint32_t inbox_taken; /* of its datagrams to this process; the mail lock */
	/* the data path's own (channel descriptors, ...), freed by data_peer_free */
	void *data;
};

/* ---- runtime.c, link.c: called by the data path --------------------------------------------- */

/*
 * One runtime a process: areas, slot, engine; made by the first holder, gone with the last. 0 or errno.
 * A forked child that inherits one gets ENODEV from every call on inherited objects and builds its own.
 */
int runtime_hold(void);
void runtime_release(void);
/* this is a forked child of the process that made the runtime */
bool runtime_inherited(void);
uint16_t runtime_slot(void); /* valid while held */

/*
 * The linked process of a slot with one more reference. NULL with errno: EAGAIN, a link is being made and
 * data_peer_ready or data_slot_unreachable will be called; ECONNREFUSED, nobody lives there; another one, why no link
 * can be begun (EMFILE, ...). Never blocks.
 */
struct sv_peer *peer_get(uint16_t slot);
struct sv_peer *peer_linked(uint16_t slot); /* only one that is linked already; NULL: none */
bool peer_is_there(uint16_t slot);	    /* linked, and its end of the link is open */
struct sv_peer *peer_self(void);	    /* no reference taken */
void peer_hold(struct sv_peer *peer);	    /* one more reference, for who has one */
void peer_put(struct sv_peer *peer);
void peer_ring(struct sv_peer *peer); /* wakes its engine: data_doorbell runs there */

/* Sends a message over the link; never blocks (the engine queues). fd -1: none. 0 or errno. */
enum sv_msg {
	SV_MSG_HELLO = 1, /* link.c's own */
	SV_MSG_CM,	  /* cm.c's */
	SV_MSG_DATA,	  /* the data path's: channel descriptors and so on */
	SV_MSG_RING,	  /* the doorbell, without a payload */
};
#define SV_MSG_MAX 512
int peer_send(struct sv_peer *peer, enum sv_msg type, const void *payload, size_t size, int fd);

/* Engine facilities (engine.c); callbacks run in the engine thread with no lock of the engine held. */
struct sv_timer {
	uint64_t deadline;
	void (*fire)(struct sv_timer *timer);
	bool armed;
	TAILQ_ENTRY(sv_timer) entry;
};
void engine_timer_arm(struct sv_timer *timer, uint64_t deadline,
		      void (*fire)(struct sv_timer *timer));
/* After return `fire` neither runs nor will; when called in the engine thread it does not wait. */
void engine_timer_cancel(struct sv_timer *timer);
bool engine_is_self(void);

/* ---- the data path: called by runtime.c, link.c and the engine ------------------------------- */

/* what a hello says of the areas behind the two descriptors */
struct sv_area_offer {
	uint64_t ro_size, rw_size;
};
/* area.c: makes this process's two memfds, seals and maps them; fills ro, rw and sizes of `self`. 0 or errno. */
int area_open(struct sv_peer *self);
void area_close(struct sv_peer *self);
/* Descriptors to send (read-only area, read-write area); they stay the area's own. */
void area_offer(struct sv_area_offer *offer, int fds[2]);
/* Checks seals, sizes and header of a peer's areas, then maps them; closes nothing. 0 or errno (EPROTO: not as announced). */
int area_map(struct sv_peer *peer, const struct sv_area_offer *offer, const int fds[2]);
void area_unmap(struct sv_peer *peer);

void data_peer_ready(struct sv_peer *peer); /* linked: sends waiting for this slot go on */
/* the link could not be made: retry rules of the QPs waiting apply */
void data_slot_unreachable(uint16_t slot);
/* dead is set: pending sends end after an ACK timeout, sleepers are woken once */
void data_peer_gone(struct sv_peer *peer);
void data_peer_free(struct sv_peer *peer); /* last reference gone, just before area_unmap */
/* somebody rang: look at waits, faults, limits, overflow */
void data_doorbell(void);
/* owns fd */
void data_message(struct sv_peer *peer, const void *payload, size_t size, int fd);

/* ---- cm.c: called by link.c in the engine thread --------------------------------------------- */

void cm_message(struct sv_peer *peer, const void *payload, size_t size);
/* around messages that came together: programs are told after the last */
void cm_batch_begin(void);
void cm_batch_end(void);
void cm_peer_ready(struct sv_peer *peer);
/* ECONNREFUSED: nobody lives there; else why the link failed */
void cm_slot_unreachable(uint16_t slot, int error);
void cm_peer_gone(struct sv_peer *peer);

#endif
