/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* Layout of the two areas that a process shares: one that it writes, one that peers write. */
#ifndef SV_SHM_H
#define SV_SHM_H

#include <assert.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include "softverbs/api.h"
#include "softverbs/peer.h"

/*
 * Rules. Everything is addressed by offset from the area's start; integers are native-endian and
 * naturally aligned. What a peer may have written is loaded once into a local and checked before
 * use. No lock is shared: a process may die between any two of its stores.
 */
#define SV_MAGIC    0x736f66747665726bull
#define SV_QPS	    4096u
#define SV_CQS	    4096u
#define SV_SRQS	    1024u
#define SV_REGIONS  65536u
#define SV_LAND	    48u		   /* payload beside the header of a landing */
#define SV_INLINE   (SV_LAND + 64) /* and with its tail */
#define SV_WORDS(n) ((n) / 64)

/*
 * A receive queue entry as senders see it: lap:16 | bad:1 | slot:15 | length:32. The lap makes it
 * "posted".
 */
#define POST_BAD (1u << 15)

static inline uint64_t post_pack(uint32_t lap, uint32_t slot, uint32_t length)
{
	return (uint64_t)(lap & 0xffff) << 48 | (uint64_t)slot << 32 | length;
}

static inline bool post_is_lap(uint64_t entry, uint32_t lap)
{
	return entry >> 48 == (lap & 0xffff);
}

static inline uint32_t post_slot(uint64_t entry)
{
	return (uint32_t)(entry >> 32) & (POST_BAD - 1);
}

static inline bool post_is_bad(uint64_t entry)
{
	return entry >> 32 & POST_BAD;
}

/*
 * The lap of the nth entry of a ring of 1 << shift entries; fresh memory is lap 0 and matches none.
 */
static inline uint32_t ring_lap(uint32_t n, uint32_t shift)
{
	return (n >> shift) + 1;
}

/*
 * The post ring of a queue of 1 << shift entries. It is twice as long, so that a full queue's owner
 * does not write into the line that its senders read next.
 */
static inline uint32_t post_shift(uint32_t shift)
{
	return shift < 3 ? 4 : shift + 1;
}

enum region_type {
	REGION_MR = 1,
	REGION_MW1,
	REGION_MW2,
};

#define REGION_LOCAL (1u << 31) /* may be named in SGEs; windows may not */

struct ro_region { /* of key index:16 | generation:8 | consumer's own:8 */
	/* 0: none. What peers read is constant from its publication until quiesced */
	_Atomic(uint32_t) key;
	uint32_t type;
	uint32_t access; /* IBV_ACCESS_*, REGION_LOCAL */
	uint32_t pd;
	uint32_t qpn;	     /* REGION_MW2: the QP that bound it */
	uint32_t generation; /* of the number */
	uint64_t addr;	     /* in the owner's address space */
	uint64_t length;
	uint64_t iova;		    /* what keys' users call addr */
	_Atomic(uint32_t) received; /* the owner has posted a receive that names it */
	uint32_t unused[3];
};

struct ro_qp {
	_Atomic(uint32_t) epoch; /* not 0: messages may be placed; a new value each time */
	_Atomic(uint32_t) peer;	 /* QPN of the one allowed initiator */
	_Atomic(uint32_t) access;
	_Atomic(uint32_t) min_rnr;
	_Atomic(uint32_t) max_dest_rd;
	uint32_t pd; /* this and the rest: constant while epoch is */
	uint32_t cq;
	uint32_t srq;  /* index + 1; 0: a receive queue of its own */
	uint32_t size; /* of slots and of the arrival ring; power of 2. The post ring: post_shift */
	uint32_t max_sge;
	uint32_t eager_size;	   /* power of 2 or 0 */
	uint32_t recv_pd;	   /* of the receive buffers: the SRQ's, where there is one */
	uint64_t post, sge;	   /* offsets in the read-only area */
	uint64_t landing, arrival; /* offsets in the written area */
	uint64_t eager;
	/* offset of its struct rw_bounce; 0 until the initiator asks for one */
	_Atomic(uint64_t) bounce;
	uint64_t unused2[4];
};

struct ro_rx {
	_Atomic(uint32_t) eager_cons; /* bytes of the eager ring given back, free-running */
	uint32_t unused[15];
};

struct ro_cq {
	_Atomic(uint32_t) channel; /* id; 0: none */
	_Atomic(uint32_t) cqe;
	_Atomic(uint32_t) taken; /* receive completions handed out, kept while CQ_TIGHT */
	_Atomic(uint32_t) sends; /* send completions waiting, kept while CQ_TIGHT */
	_Atomic(uint64_t) ready; /* offset of its struct rw_ready, 0 before CQ_MANY */
	uint32_t unused[10];
};

struct ro_srq {
	_Atomic(uint32_t) limit;       /* armed: fires when fewer are left */
	_Atomic(uint32_t) limit_round; /* of the arming; see rw_srq */
	_Atomic(uint32_t) posted;
	_Atomic(uint32_t) moving; /* to larger rings: its QPs, unpublished, come back */
	uint32_t unused[12];
};

struct rw_qp {
	/* this line: the connected initiator's. Odd: it is reading or writing here */
	_Atomic(uint32_t) busy;
	_Atomic(uint32_t) seq;	      /* messages placed; written with an open window only */
	_Atomic(uint32_t) eager_prod; /* bytes of the eager ring used, free-running */
	_Atomic(uint32_t) intent;     /* claim + 1 that it is taking from the SRQ; 0: none */
	_Atomic(uint32_t) held;	      /* slot + 1 that it took and has not filled; 0: none */
	uint32_t unused[11];
	_Atomic(uint32_t) wait;	 /* WAIT_* the initiator wants a doorbell for */
	_Atomic(uint32_t) fault; /* enum qp_fault found by the initiator */
	uint32_t unused2[14];
};

enum rw_wait {
	WAIT_RECV = 1,	/* a receive is posted */
	WAIT_READY = 2, /* the QP takes messages */
	WAIT_COPY = 4,	/* the engine copied */
};

enum qp_fault {
	FAULT_NONE,
	FAULT_ACCESS,
	FAULT_REQUEST,
	FAULT_FATAL,
	FAULT_REFUSED, /* an error landed */
};

/*
 * arm: generation:30 | enum cq_armed. The owner stores a new generation; whoever has something to
 * tell takes the low bits away with one compare-and-swap, and so exactly one event follows each
 * arming.
 */
struct rw_cq {
	_Atomic(uint32_t) arm;
	_Atomic(uint32_t) mode; /* CQ_*, written by the owner */
	_Atomic(uint32_t) due;	/* channel tokens the owner's engine should write */
	_Atomic(uint32_t) overflow;
	_Atomic(uint32_t) arrived; /* receive completions that came, kept while CQ_TIGHT */
	uint32_t unused[11];
};

enum cq_armed {
	ARM_NONE,
	ARM_SOLICITED,
	ARM_ANY,
	ARM_TYPE = 3,
};

enum cq_mode {
	CQ_MANY = 1,  /* so many QPs that senders must mark theirs in rw_ready */
	CQ_TIGHT = 2, /* its QPs' queues could overrun it: senders count */
};

struct rw_ready {		   /* of one CQ: a bit for each QP index */
	_Atomic(uint64_t) summary; /* a bit for each word that got a new bit */
	uint64_t unused[7];
	_Atomic(uint64_t) word[SV_WORDS(SV_QPS)];
};

struct rw_srq {
	_Atomic(uint32_t) claim;       /* entries taken by senders */
	_Atomic(uint32_t) wait;	       /* somebody waits for a receive */
	_Atomic(uint32_t) limit_round; /* the round that fired */
	uint32_t unused[13];
};

struct rw_attention { /* what the owner's engine should look at when its doorbell rings */
	_Atomic(uint64_t) qp[SV_WORDS(SV_QPS)];
	_Atomic(uint64_t) cq[SV_WORDS(SV_CQS)];
	_Atomic(uint64_t) srq[SV_WORDS(SV_SRQS)];
	_Atomic(uint64_t) bounce[SV_WORDS(SV_QPS)]; /* QPs with something to copy */
};

enum landing_op {
	LAND_SEND = 1,
	LAND_SEND_IMM,
	LAND_SEND_INV, /* imm is the key */
	LAND_WRITE_IMM,
	LAND_ERROR, /* byte_len is the enum ibv_wc_status to complete with */
};

enum landing_where {
	LAND_INLINE,
	LAND_EAGER,
	LAND_DIRECT, /* already in the receive buffer, or no payload */
};

struct landing { /* one line: a message that fits costs one transfer between caches */
	/* byte_len:32 | message number + 1:32, with which the rest is there */
	_Atomic(uint64_t) head;
	_Atomic(uint64_t) what; /* immediate or key:32 | where:8 | op:8 */
	union {
		uint8_t data[SV_LAND];
		_Atomic(uint32_t) eager; /* free-running position in the eager ring */
	};
};

struct landing_tail { /* the rest of somewhat longer payload, also by slot */
	uint8_t data[SV_INLINE - SV_LAND];
};

/* The tails follow the landings of the queue. */
static inline struct landing_tail *landing_tail(const struct landing *landings, uint32_t mask,
						uint32_t slot)
{
	return (struct landing_tail *)(uintptr_t)(landings + mask + 1) + slot;
}

static inline uint64_t landings_size(uint64_t slots)
{
	return slots * (sizeof(struct landing) + sizeof(struct landing_tail));
}

static inline uint64_t landing_what(enum landing_op op, enum landing_where where, uint32_t imm)
{
	return (uint64_t)imm << 32 | (uint32_t)where << 8 | (uint32_t)op;
}

#define BOUNCE_PARTS 16u
#define BOUNCE_BYTES \
	(32u << 10) /* in hand at once: one side copies in while the other copies out */

enum bounce_kind {
	BOUNCE_WRITE = 1, /* to addr, with key */
	BOUNCE_READ,	  /* from addr, with key */
	BOUNCE_RECV,	  /* into the posted receive of slot `key`, from byte addr on */
	BOUNCE_CMP_SWP,	  /* at addr, with key; args: compare, swap */
	BOUNCE_FETCH_ADD, /* args: add */
};

struct rw_bounce_ask { /* written by the initiator */
	/* of the request, its part is number % BOUNCE_PARTS; the rest is there */
	_Atomic(uint32_t) number;
	_Atomic(uint32_t) kind;
	_Atomic(uint32_t) key;
	_Atomic(uint32_t) length;
	_Atomic(uint64_t) addr;
	_Atomic(uint64_t) args[2];
	uint64_t unused[3];
};

struct rw_bounce_answer { /* written by the owner */
	_Atomic(uint32_t) number;
	/* enum ibv_wc_status for the initiator; GENERAL_ERR: a page is not there */
	_Atomic(uint32_t) status;
	_Atomic(uint64_t) old; /* of an atomic operation */
	uint64_t unused[6];
};

struct rw_bounce { /* of one QP: memory goes through here where nobody may reach into a process */
	struct rw_bounce_ask ask[BOUNCE_PARTS];
	struct rw_bounce_answer answer[BOUNCE_PARTS];
	_Atomic(uint32_t) awake; /* the owner's engine will look again without a doorbell */
	uint32_t unused[15];
	uint8_t data[BOUNCE_PARTS][BOUNCE_BYTES];
};

/*
 * Datagrams for one other process: a ring in the read-only area of the sender, one for each slot that
 * it sends to. It has one writer, who may die or lag without harm to anybody else.
 */
struct ro_outbox {
	/* mail_tag of the reader:32 | bytes written:32, free-running */
	_Atomic(uint64_t) written;
	_Atomic(uint64_t) ring; /* its offset; this and the size: constant for one reader */
	_Atomic(uint32_t) size; /* power of 2 */
	uint32_t unused[11];
};

struct ro_inbox {		 /* of the datagrams that one other process sends here */
	_Atomic(uint64_t) taken; /* mail_tag of the writer:32 | bytes taken:32 */
	uint64_t unused[7];
};

/* Of a process's nonce: keeps apart those that live in one slot one after the other. */
static inline uint32_t mail_tag(const uint64_t *nonce)
{
	return (uint32_t)nonce[0] | 1;
}

struct mail_record {	/* a datagram in the ring, followed by its payload; each begins on a line */
	uint32_t kind;	/* MAIL_* */
	uint32_t flags; /* DATAGRAM_* */
	uint32_t dest, source; /* QP numbers */
	uint32_t qkey;
	uint32_t imm;
	uint32_t length; /* of the payload */
	uint32_t unused;
	uint8_t sgid[16], dgid[16];
};

enum mail_kind {
	MAIL_DATAGRAM = 1,
	MAIL_SKIP, /* nothing up to the end of the ring */
};

enum datagram_flag {
	DATAGRAM_IMM = 1,
};

#define DATAGRAM_MAX 4096u

struct rw_mail {		   /* of the owner: who has sent it something */
	_Atomic(uint64_t) summary; /* a bit for each word that got a new bit */
	/* a ring is full and nobody polls: the engine shall take it */
	_Atomic(uint32_t) urgent;
	uint32_t unused[13];
	_Atomic(uint64_t) word[SV_WORDS(SV_SLOTS)]; /* a bit for each slot */
	uint8_t unused2[4096 - 64 - SV_SLOTS / 8];
};

struct sv_ro {
	uint64_t magic;
	uint32_t layout;
	uint32_t expedited; /* the owner quiesces by membarrier: initiators that registered need no
			       fence */
	uint64_t ro_size, rw_size;
	uint64_t nonce[2];
	int64_t pid;
	uint8_t unused[4096 - 56];
	struct ro_region region[SV_REGIONS];
	struct ro_qp qp[SV_QPS];
	struct ro_rx rx[SV_QPS];
	struct ro_cq cq[SV_CQS];
	struct ro_srq srq[SV_SRQS];
	struct ro_outbox outbox[SV_SLOTS]; /* by the slot of who reads it */
	struct ro_inbox inbox[SV_SLOTS];   /* by the slot of who wrote it */
};

#define SV_STRIPES 64u

struct rw_stripe { /* one atomic operation at a time on the addresses that hash here */
	/*
	 * slot:12 | who in it:12 | pid name space:18 | pid:22; 0: free. Broken when the process is
	 * gone: by its owner, and by whoever can tell.
	 */
	_Atomic(uint64_t) holder;
	uint64_t unused[7];
};

struct sv_rw {
	struct rw_attention attention;
	uint8_t unused[4096 - sizeof(struct rw_attention)];
	struct rw_stripe stripe[SV_STRIPES];
	_Atomic(uint32_t) invalidated[SV_REGIONS]; /* by index: the window's key, taken back by the
						      peer it was for */
	struct rw_qp qp[SV_QPS];
	struct rw_cq cq[SV_CQS];
	struct rw_srq srq[SV_SRQS];
	struct rw_mail mail;
};

static_assert(sizeof(struct ro_region) == 64 && sizeof(struct ro_qp) == 128 &&
		      sizeof(struct ro_rx) == 64 && sizeof(struct ro_cq) == 64 &&
		      sizeof(struct ro_srq) == 64,
	      "layout of the read-only area");
static_assert(sizeof(struct rw_qp) == 128 && sizeof(struct rw_cq) == 64 &&
		      sizeof(struct rw_srq) == 64 && sizeof(struct landing) == 64,
	      "layout of the written area");
static_assert(sizeof(struct ro_outbox) == 64 && sizeof(struct ro_inbox) == 64 &&
		      sizeof(struct mail_record) == 64 && sizeof(struct rw_mail) == 4096,
	      "layout of datagrams");
static_assert(sizeof(struct sv_ro) % 4096 == 0 && sizeof(struct sv_rw) % 4096 == 0,
	      "heaps begin on a page");

#endif
