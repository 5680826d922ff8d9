/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/*
 * The shared areas that this process owns: memory in them, object numbers, and the tables of
 * objects by number.
 */
#ifndef SV_OBJECT_AREA_H
#define SV_OBJECT_AREA_H

#include <pthread.h>
#include "softverbs/link/client.h"
#include "softverbs/object/shm.h"
#include "softverbs/object/object.h"
#include "softverbs/object/share.h"

enum area_heap {
	HEAP_BY_OWNER, /* in the area that peers only read */
	HEAP_BY_PEERS, /* in the area that peers write */
	HEAP_OWN,      /* private; pages that are never touched cost nothing */
	HEAPS
};

#define HEAP_CLASSES 40

/*
 * Blocks of powers of two, from 64 bytes on. A freed block keeps its size for the next
 * allocation. Short blocks lie side by side in longer ones, so that what a message touches of many queue pairs is in few
 * pages, whatever rings they have.
 */
struct heap {
	pthread_mutex_t lock;
	uint8_t *base;
	uint64_t next, size; /* bytes; those from `next` on were never allocated and are zero */
	uint64_t opened;     /* bytes that are accessible; the rest is only reserved */
	int fd; /* the heap's file, if a page may be missing when it is touched; else -1 */
	uint64_t allocated;	     /* bytes of that file that have pages */
	uint64_t shorts, shorts_end; /* what is left of the block from which short ones are cut */
	struct heap_free *free[HEAP_CLASSES];
	struct heap_free *taken; /* spare entries, one for each block in use */
};

/* Numbers first..limit-1. Of the free ones, the one that was freed first is allocated first. */
struct ids {
	pthread_mutex_t lock;
	uint32_t fresh, limit, mask; /* numbers from `fresh` on were never allocated */
	uint32_t head, tail;
	uint32_t *ring;
};

/* Reads the datagrams that other processes send to this one. */
struct ud_ring {
	/*
	 * Guards this struct and the receive side of each datagram QP. Acquired after the lock of
	 * an SQ or of a CQ.
	 */
	struct lock lock;
	_Atomic(bool) busy; /* a thread reads rings */
	uint32_t next;	    /* process number with which the next read begins: base/turn.h */
	/* Linked processes, by process number. They are not held: see sv_ud_ring_peer_free. */
	struct sv_peer *from[SV_PEERS];
	struct sv_qp *qp[SV_QPS]; /* datagram QPs in a state that receives, by index */
};

enum region_use {
	REGION_USES = 64,
	REGION_OWN,   /* private anonymous memory, when the engine checked */
	REGION_OTHER, /* memory that may be truncated, or is protected */
};

#define SV_QPS_A_CHUNK 64u
#define SV_QP_CHUNKS   (SV_QPS / SV_QPS_A_CHUNK)

struct sv_qp_memory { /* qp_memory.c */
	struct sv_qp *chunk[SV_QP_CHUNKS];
	struct sv_qp *free[SV_QPS];
	uint32_t frees;
	uint32_t used; /* places in chunks that were ever used */
};

struct area {
	struct area_by_owner *by_owner;
	struct area_by_peers *by_peers;
	int by_owner_fd, by_peers_fd;
	/*
	 * Bytes of the longest message that goes through the eager ring if the peer's memory is
	 * accessible.
	 */
	uint32_t eager;
	bool expedited; /* membarrier acts on every process that registered for it, this one too */
	uint32_t *alive;
	struct heap heap[HEAPS];
	struct ids regions, qps, cqs, srqs, channels;
	pthread_mutex_t
		table_lock; /* guards the tables, the pins of their objects, and qp_memory */
	pthread_cond_t unpinned;
	struct sv_qp_memory qp_memory;
	struct sv_qp *qp[SV_QPS];
	struct sv_cq *cq[SV_CQS];
	struct sv_srq *srq[SV_SRQS];
	/* Guards the two tables below and peers' channels. It is the innermost lock. */
	pthread_mutex_t wake_lock;
	struct sv_channel *channel[SV_CQS];
	struct sv_channel *cq_channel[SV_CQS]; /* by CQ index */
	struct {
		struct sv_qp *qp[SV_QPS]; /* pinned */
		uint32_t count;
	} serving; /* engine only; empty between its turns */
	/*
	 * Held for reading during a copy for a peer. The withdrawal of a key acquires it for
	 * writing, to wait for those copies.
	 */
	pthread_rwlock_t serve_lock;
	/*
	 * By region number: the copies for peers until the engine finds out what memory it is, REGION_USES at most; then
	 * REGION_OWN or REGION_OTHER. From publication on.
	 */
	_Atomic(uint8_t) use[SV_REGIONS];
	/*
	 * Guards the bindings of all memory windows. Acquired after the lock of an SQ or of a CQ.
	 */
	pthread_mutex_t mw_lock;
	struct sv_mw *mw[SV_REGIONS]; /* by number */
	uint32_t windows[SV_REGIONS]; /* by region number: memory windows bound to it */
	struct ud_ring ud_ring;
	struct sv_files files;
	_Atomic(uint64_t) waiting[SV_WORDS(SV_QPS)]; /* QPs with sends that wait, a bit each */
	uint32_t waiting_next; /* engine: the index that it tries first, see base/turn.h */
	/* By QP index. Odd: the executor uses memory, see sv_sq_quiesce. */
	_Atomic(uint32_t) executing[SV_QPS];
};

/* Returns NULL unless the process holds the runtime. */
struct area *sv_area_own(void);
/*
 * Releases one pin of an object in a table. The thread that destroys the object waits for the
 * last one. No lock is held.
 */
void sv_area_unpin(unsigned *pins);

/*
 * Allocates at least `size` bytes; NULL with errno ENOMEM when the heap is exhausted. Stores the
 * block's offset in the area in `*offset` unless that is NULL. A block that was never allocated
 * before is not touched here, so its pages cost nothing until they are used.
 */
void *sv_heap_alloc(enum area_heap heap, uint64_t size, uint64_t *offset);
void *sv_heap_alloc_zero(enum area_heap heap, uint64_t size, uint64_t *offset);
void sv_heap_free(enum area_heap heap, void *block, uint64_t size);
void sv_heap_close(struct heap *heap);
/*
 * Makes the first `end` bytes accessible, so that no access to them fails. 0 or errno. The caller holds the heap's lock, or no
 * other thread uses the heap yet.
 */
int sv_heap_reach(struct heap *heap, uint64_t end);

/* Bytes: an area becomes accessible in steps of this size. */
#define AREA_STEP (16u << 20)
/*
 * The address here of [offset, offset + size) in an area of the peer; `which` is HEAP_BY_OWNER or
 * HEAP_BY_PEERS. The numbers may be a peer's: NULL unless the offset is a multiple of SV_LINE and
 * the range lies inside the area.
 */
void *sv_area_at(struct sv_peer *peer, enum area_heap which, uint64_t offset, uint64_t size);
/* The share of the heap that was ever allocated, in percent. */
unsigned sv_heap_use(enum area_heap heap);

int sv_ids_open(struct ids *ids, uint32_t first, uint32_t limit);
void sv_ids_close(struct ids *ids);
uint32_t sv_ids_alloc(struct ids *ids); /* returns 0 when all are allocated */
void sv_ids_free(struct ids *ids, uint32_t id);

/*
 * Between a store and a load: if two threads each store, call this, and load what the other one
 * stores, at least one of them sees the other's store.
 */
static inline void fence_full(void)
{
#if defined(__SANITIZE_THREAD__)
	/* The thread sanitizer does not know fences. The processor orders this in the same way. */
	_Atomic(int) word = 0;

	atomic_fetch_add(&word, 1);
#else
	atomic_thread_fence(memory_order_seq_cst);
#endif
}

/*
 * For the frequent side of such a pair, whose counterpart calls sv_area_barrier between its own
 * store and load. `expedited`: membarrier acts on both processes, so no instruction is needed
 * here.
 */
static inline void fence_light(bool expedited)
{
	if (likely(expedited))
		atomic_signal_fence(memory_order_seq_cst);
	else
		fence_full();
}

/* Orders the stores before it before the stores after it. */
static inline void fence_release(void)
{
#if !defined(__SANITIZE_THREAD__)
	atomic_thread_fence(memory_order_release);
#endif
}

/* Orders the loads before it before the loads after it. */
static inline void fence_acquire(void)
{
#if !defined(__SANITIZE_THREAD__)
	atomic_thread_fence(memory_order_acquire);
#endif
}

/*
 * The counterpart of fence_light: a full fence on this processor, and by membarrier on every
 * thread of the processes that registered for it.
 */
void sv_area_barrier(void);

/*
 * Sets the bit of the QP (CQ, SRQ) in the attention words of an engine. True: the bit was clear,
 * and the caller rings the engine's doorbell. False: an earlier call set it.
 */
bool sv_attention_set(_Atomic(uint64_t) *words, uint32_t index);

/* For sv_link_client. */
int sv_area_open(struct sv_peer *self);
void sv_area_close(struct sv_peer *self);
void sv_area_offer(struct sv_area_offer *offer, int fds[2]);
int sv_area_map(struct sv_peer *peer, const struct sv_area_offer *offer, const int fds[2]);
void sv_area_unmap(struct sv_peer *peer);

#endif
