/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* This process's own areas: memory in them, object numbers, the tables of objects by number. */
#ifndef SV_AREA_H
#define SV_AREA_H

#include <pthread.h>
#include "softverbs/shm.h"
#include "softverbs/sv.h"

enum area_heap {
	HEAP_RO,  /* in the area that peers only read */
	HEAP_RW,  /* in the area that peers write */
	HEAP_OWN, /* seen by no peer; untouched memory costs nothing */
	HEAPS
};

#define HEAP_CLASSES 40

struct heap { /* blocks of powers of two from 64 bytes; a block given back keeps its size */
	pthread_mutex_t lock;
	uint8_t *base;
	uint64_t next, size; /* never used from `next` on, and zero */
	struct heap_free *free[HEAP_CLASSES];
	struct heap_free *taken; /* an entry for each block in use, whichever */
};

struct ids { /* numbers first..limit-1; the one longest free comes first */
	pthread_mutex_t lock;
	uint32_t fresh, limit, mask; /* from `fresh` on never used */
	uint32_t head, tail;
	uint32_t *ring;
};

struct mail {		  /* datagrams that come from other processes, and who they are for */
	struct lock lock; /* guards all of it, and the receiving of each datagram QP; taken after an
			     SQ's or a CQ's lock */
	_Atomic(bool) busy;		/* somebody is reading rings */
	struct sv_peer *from[SV_SLOTS]; /* linked processes; no reference: see mail_peer_free */
	struct sv_qp *qp[SV_QPS];	/* datagram QPs that receive */
};

struct area {
	struct sv_ro *ro;
	struct sv_rw *rw;
	int ro_fd, rw_fd;
	uint32_t eager;	 /* longest message that goes through a ring where memory can be reached */
	bool expedited;	 /* membarrier reaches every process that asked for it, this one included */
	uint64_t holder; /* of stripes: this process, see stripe.c */
	uint32_t *alive;
	struct heap heap[HEAPS];
	struct ids regions, qps, cqs, srqs, channels;
	pthread_mutex_t table_lock; /* guards the tables and the pins of what is in them */
	pthread_cond_t unpinned;
	struct sv_qp *qp[SV_QPS];
	struct sv_cq *cq[SV_CQS];
	struct sv_srq *srq[SV_SRQS];
	pthread_mutex_t wake_lock; /* guards what follows and peers' channels; no other lock is
				      taken under it */
	struct sv_channel *channel[SV_CQS];
	struct sv_channel *cq_channel[SV_CQS]; /* by CQ index */
	pthread_rwlock_t serve_lock; /* read: copying for a peer. Written by who withdraws a key, to
					wait for those */
	/* guards all windows' bindings; taken after an SQ's or a CQ's lock */
	pthread_mutex_t mw_lock;
	struct sv_mw *mw[SV_REGIONS]; /* by number */
	struct mail mail;
	_Atomic(uint64_t) waiting[SV_WORDS(SV_QPS)]; /* QPs with sends that wait for something */
};

/* NULL while no runtime is held. */
struct area *area_own(void);
/* The pins of something in a table, one fewer; who destroys it waits for the last. */
void area_unpin(unsigned *pins);

/*
 * Memory of at least `size` bytes; NULL when the heap is exhausted. `offset`: where it begins in
 * the area, or NULL. What was never used before is not touched here, and costs nothing until it is
 * used.
 */
void *heap_take(enum area_heap heap, uint64_t size, uint64_t *offset);
void *heap_take_zero(enum area_heap heap, uint64_t size, uint64_t *offset);
void heap_give(enum area_heap heap, void *block, uint64_t size);
void heap_close(struct heap *heap);
/* How much of the heap was ever used, in percent. */
unsigned heap_use(enum area_heap heap);

int ids_open(struct ids *ids, uint32_t first, uint32_t limit);
void ids_close(struct ids *ids);
uint32_t ids_take(struct ids *ids); /* 0 when all are in use */
void ids_give(struct ids *ids, uint32_t id);

/*
 * The store before is seen by everyone before anyone's load after: between two sides that both call
 * it.
 */
static inline void fence_full(void)
{
#if defined(__SANITIZE_THREAD__)
	_Atomic(int) word =
		0; /* the thread sanitizer knows no fences; the hardware orders this the same */

	atomic_fetch_add(&word, 1);
#else
	atomic_thread_fence(memory_order_seq_cst);
#endif
}

/* For the side whose counterpart calls area_barrier between its own store and load. */
static inline void fence_light(bool expedited)
{
	if (likely(expedited))
		atomic_signal_fence(memory_order_seq_cst);
	else
		fence_full();
}

/* The stores before are seen before those after. */
static inline void fence_release(void)
{
#if !defined(__SANITIZE_THREAD__)
	atomic_thread_fence(memory_order_release);
#endif
}

/*
 * The other half for sides that do without a fence of their own: orders on behalf of every
 * registered process.
 */
void area_barrier(void);

/*
 * Asks an engine to look at the QP (CQ, SRQ). True: its doorbell has to be rung for that; false: it
 * was asked before.
 */
bool attention_set(_Atomic(uint64_t) *words, uint32_t index);

#endif
