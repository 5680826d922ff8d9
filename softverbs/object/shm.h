/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/*
 * The layout of the two areas that a process shares: only the process writes the one, and its
 * peers write the other.
 */
#ifndef SV_OBJECT_SHM_H
#define SV_OBJECT_SHM_H

#include <assert.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include "softverbs/base/api.h"
#include "softverbs/link/peer.h"

/*
 * Rules. Addresses are offsets from the start of the area. Integers are native-endian and
 * naturally aligned. A value that a peer may have written is loaded once into a local and checked
 * before use. No lock is shared: a process may die between any two of its stores.
 */
#define SV_MAGIC       0x736f66747665726bull
#define SV_QPS	       4096u
#define SV_CQS	       4096u
#define SV_SRQS	       1024u
#define SV_REGIONS     65536u
#define SV_SLOT_INLINE 48u		     /* payload beside the header of a receive slot */
#define SV_INLINE      (SV_SLOT_INLINE + 64) /* and with its rx_slot_ext */
#define SV_WORDS(n)    ((n) / 64)

/*
 * An entry of the post ring, which senders read: lap:16 | bad:1 | slot:15 | length:32. The entry
 * is posted if its lap is the current one. Bad: no sender can fill the receive.
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
 * The lap of entry n in a ring of 1 << shift entries. Laps begin with 1, so zeroed memory matches
 * none.
 */
static inline uint32_t ring_lap(uint32_t n, uint32_t shift)
{
	return (n >> shift) + 1;
}

/*
 * The shift of the post ring of a queue of 1 << shift entries. The ring is twice as long as the
 * queue, so that the owner of a full queue does not write into the line that its senders read
 * next.
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

#define REGION_LOCAL (1u << 31) /* SGEs may name the region; not set for memory windows */

struct region_entry { /* its key is index:16 | generation:8 | consumer's own:8 */
	/* 0: none. The fields that peers read are constant from publication until quiesce. */
	_Atomic(uint32_t) key;
	uint16_t type;
	uint16_t generation; /* of the index */
	uint32_t access;     /* IBV_ACCESS_*, REGION_LOCAL */
	uint32_t pd;
	uint32_t qpn;		/* REGION_MW2: the QP that bound it */
	_Atomic(uint32_t) file; /* share.h: that of `addr` */
	uint64_t addr;		/* in the owner's address space */
	uint64_t length;
	uint64_t iova;		    /* the address by which users of the key name addr */
	_Atomic(uint32_t) received; /* the owner has posted a receive that names the region */
	/*
	 * The key after its withdrawal, while the owner copies the payload of messages that have
	 * arrived.
	 */
	_Atomic(uint32_t) leaving;
	_Atomic(uint64_t) at; /* offset of `addr` in the file, stored before its number */
};

struct qp_by_owner {
	/* messages may be placed while it is not 0; new at each publication */
	_Atomic(uint32_t) epoch;
	_Atomic(uint32_t) peer; /* QPN of the only initiator that may place messages */
	_Atomic(uint32_t) access;
	_Atomic(uint32_t) min_rnr;
	_Atomic(uint32_t) max_dest_rd;
	uint32_t pd; /* constant while epoch is not 0, like the rest */
	uint32_t cq;
	uint32_t srq;  /* index + 1; 0: no SRQ */
	uint32_t size; /* number of slots and of entries of the arrival ring; a power of 2 */
	uint32_t max_sge;
	uint32_t eager_size;	   /* a power of 2, or 0 */
	uint32_t recv_pd;	   /* PD of the receive buffers: that of the SRQ, if there is one */
	uint64_t post, sge;	   /* offsets in the read-only area */
	uint64_t rx_slot, arrival; /* offsets in the written area */
	uint64_t eager;
	/*
	 * Offset of its struct bounce_by_peers in the written area; 0 until the initiator
	 * requests one.
	 */
	_Atomic(uint64_t) bounce;
	/*
	 * QPN of the peer's QP whose epoch the send queue may enter: from RTR until the queue has stopped in the error
	 * state or RESET; 0: none.
	 */
	_Atomic(uint32_t) initiates;
	uint32_t unused2[7];
};

struct rx_by_owner {
	_Atomic(uint32_t) eager_cons; /* bytes of the eager ring that were read, free-running */
	uint32_t unused[15];
};

struct cq_by_owner {
	_Atomic(uint32_t) channel; /* id; 0: none */
	_Atomic(uint32_t) cqe;
	_Atomic(uint32_t) taken; /* receive completions polled, counted while CQ_TIGHT */
	_Atomic(uint32_t) sends; /* send completions not polled, counted while CQ_TIGHT */
	_Atomic(uint64_t) ready; /* offset of its struct cq_ready_by_peers; 0 before CQ_MANY */
	uint32_t unused[10];
};

struct srq_by_owner {
	_Atomic(uint32_t) limit;       /* 0: not armed; the event follows when fewer are left */
	_Atomic(uint32_t) limit_round; /* generation of the arming; see srq_by_peers */
	_Atomic(uint32_t) posted;
	_Atomic(uint32_t) moving; /* a resize runs: its QPs are unpublished for a time */
	uint32_t unused[12];
};

struct qp_by_peers {
	/*
	 * The connected initiator writes this line. Odd: the initiator is reading or writing this
	 * process's memory.
	 */
	_Atomic(uint32_t) busy;
	_Atomic(uint32_t) seq; /* messages placed; written between epoch_enter and epoch_leave */
	_Atomic(uint32_t) eager_prod; /* bytes of the eager ring written, free-running */
	_Atomic(uint32_t)
		intent; /* slot + 1 that it has taken from the SRQ, or is about to claim; 0: none */
	_Atomic(uint32_t)
		held; /* slot + 1 that it has taken, and may have begun to fill; 0: none */
	uint32_t unused[11];
	_Atomic(uint32_t) wait;	 /* WAIT_*: the initiator requests a doorbell then */
	_Atomic(uint32_t) fault; /* enum qp_fault that the initiator found */
	uint32_t unused2[14];
};

enum initiator_wait {
	WAIT_RECV = 1,	/* a receive is posted */
	WAIT_READY = 2, /* the QP accepts messages */
	WAIT_COPY = 4,	/* the owner has answered a copy request */
};

enum qp_fault {
	FAULT_NONE,
	FAULT_ACCESS,
	FAULT_REQUEST,
	FAULT_FATAL,
	FAULT_REFUSED, /* a message was placed that completes with an error */
};

/*
 * arm: generation:28 | ARM_INTERRUPTED | ARM_BLOCKED | enum cq_armed. The owner stores a new generation. The thread that
 * completes work clears the type with one compare-and-swap, so exactly one event follows each arming: a token in the
 * channel or, with ARM_BLOCKED, a wake-up of the owner's thread that sleeps on this word.
 */
struct cq_by_peers {
	_Atomic(uint32_t) arm;
	_Atomic(uint32_t) mode; /* CQ_* bits, written by the owner */
	_Atomic(uint32_t) due;	/* channel tokens that the owner's engine has to write */
	_Atomic(uint32_t) overflow;
	_Atomic(uint32_t) arrived; /* receive completions, counted while CQ_TIGHT */
	/*
	 * 1: the owner has long polled the CQ and not armed it. Before it relies on `arm` it clears this and calls
	 * sv_area_barrier, so senders that registered for membarrier need not read `arm`.
	 */
	_Atomic(uint32_t) polled;
	/* 1: the owner's engine wants a doorbell after the next message (verbs/unpolled.h). A sender clears it, and rings. */
	_Atomic(uint32_t) engine_rests;
	uint32_t unused[9];
};

enum cq_armed {
	ARM_NONE,
	ARM_SOLICITED,
	ARM_ANY,
	ARM_ENGINE, /* the program has not armed it; only messages disarm it, for `engine_rests` */
	ARM_TYPE = 3,
	ARM_BLOCKED = 4,
	ARM_INTERRUPTED = 8, /* so that the word is not the one that the thread sleeps on */
	ARM_ROUND_SHIFT = 4,
};

enum cq_mode {
	CQ_MANY = 1,  /* has many QPs: senders mark theirs in cq_ready_by_peers */
	CQ_TIGHT = 2, /* the QPs' queues together could overrun it: senders count */
};

struct cq_ready_by_peers {	   /* of one CQ; a bit for each QP index */
	_Atomic(uint64_t) summary; /* a bit for each word in which a bit was set */
	uint64_t unused[7];
	_Atomic(uint64_t) word[SV_WORDS(SV_QPS)];
};

struct srq_by_peers {
	_Atomic(uint32_t) claim;       /* entries that senders have taken */
	_Atomic(uint32_t) wait;	       /* an initiator waits for a posted receive */
	_Atomic(uint32_t) limit_round; /* generation of the arming whose limit was reached */
	uint32_t unused[13];
};

struct attention_by_peers { /* what the owner's engine handles when its doorbell rings */
	_Atomic(uint64_t) qp[SV_WORDS(SV_QPS)];
	_Atomic(uint64_t) cq[SV_WORDS(SV_CQS)];
	_Atomic(uint64_t) srq[SV_WORDS(SV_SRQS)];
	_Atomic(uint64_t) bounce[SV_WORDS(SV_QPS)]; /* QPs with copy requests */
};

enum rx_slot_op {
	RX_SEND = 1,
	RX_SEND_IMM,
	RX_SEND_INV, /* imm is the key */
	RX_WRITE_IMM,
	RX_ERROR, /* byte_len is the enum ibv_wc_status to complete with */
};

enum rx_slot_where {
	RX_INLINE,
	RX_EAGER,
	RX_DIRECT, /* already in the receive buffer, or no payload */
};

struct rx_slot { /* one line, so a short message costs one transfer between caches */
	/*
	 * byte_len:32 | message number + 1:32. The number is stored last: with it the message is
	 * complete.
	 */
	_Atomic(uint64_t) head;
	_Atomic(uint64_t) what; /* immediate or key:32 | where:8 | op:8 */
	union {
		uint8_t data[SV_SLOT_INLINE];
		_Atomic(uint32_t) eager; /* free-running position in the eager ring */
	};
};

struct rx_slot_ext { /* the rest of a payload longer than SV_SLOT_INLINE, also by slot */
	uint8_t data[SV_INLINE - SV_SLOT_INLINE];
};

/* The rx_slot_ext of a queue follow its receive slots. */
static inline struct rx_slot_ext *rx_slot_ext(const struct rx_slot *rx_slots, uint32_t mask,
					      uint32_t slot)
{
	return (struct rx_slot_ext *)(uintptr_t)(rx_slots + mask + 1) + slot;
}

static inline uint64_t rx_slots_size(uint64_t slots)
{
	return slots * (sizeof(struct rx_slot) + sizeof(struct rx_slot_ext));
}

static inline uint64_t rx_slot_what(enum rx_slot_op op, enum rx_slot_where where, uint32_t imm)
{
	return (uint64_t)imm << 32 | (uint32_t)where << 8 | (uint32_t)op;
}

#define BOUNCE_PARTS 16u
#define BOUNCE_BYTES \
	(32u << 10) /* bytes of a part: one side copies in while the other side copies out */

enum bounce_kind {
	BOUNCE_WRITE = 1, /* to addr, with key */
	BOUNCE_READ,	  /* from addr, with key */
	BOUNCE_RECV,	  /* into the posted receive of slot `key`, from byte `addr` on */
	BOUNCE_CMP_SWP,	  /* at addr, with key; args: compare, swap */
	BOUNCE_FETCH_ADD, /* args: add */
};

struct bounce_ask { /* written by the initiator */
	/*
	 * Number of the request; its part is number % BOUNCE_PARTS. Stored last: with it the
	 * request is complete.
	 */
	_Atomic(uint32_t) number;
	_Atomic(uint32_t) kind;
	_Atomic(uint32_t) key;
	_Atomic(uint32_t) length;
	_Atomic(uint64_t) addr;
	_Atomic(uint64_t) args[2];
	uint64_t unused[3];
};

struct bounce_answer { /* written by the owner */
	_Atomic(uint32_t) number;
	/* enum ibv_wc_status for the initiator; GENERAL_ERR: a page is not mapped */
	_Atomic(uint32_t) status;
	_Atomic(uint64_t) old; /* of an atomic operation */
	uint64_t unused[6];
};

/* Of one QP: data are copied through here where processes cannot access each other's memory. */
struct bounce_by_peers {
	struct bounce_ask ask[BOUNCE_PARTS];
	struct bounce_answer answer[BOUNCE_PARTS];
	_Atomic(uint32_t) awake; /* the owner's engine polls for requests: no doorbell is needed */
	uint32_t unused[15];
	uint8_t data[BOUNCE_PARTS][BOUNCE_BYTES];
};

/*
 * Datagrams for one other process: a ring in the read-only area of the sender, one for each
 * process that it sends to. The ring has one writer, which may die or stall without harm to any
 * other process.
 */
struct outbox_by_owner {
	/* ud_ring_tag of the reader:32 | bytes written:32, free-running */
	_Atomic(uint64_t) written;
	_Atomic(uint64_t)
		ring; /* offset of the ring; offset and size are constant for one reader */
	_Atomic(uint32_t) size; /* power of 2 */
	uint32_t unused[11];
};

struct inbox_by_owner {		 /* for the datagrams that one other process sends here */
	_Atomic(uint64_t) taken; /* ud_ring_tag of the writer:32 | bytes read:32, free-running */
	uint64_t unused[7];
};

/*
 * Derived from a process's nonce: distinguishes processes that have the same process number one
 * after the other.
 */
static inline uint32_t ud_ring_tag(const uint64_t *nonce)
{
	return (uint32_t)nonce[0] | 1;
}

struct ud_ring_record { /* a datagram in the ring, followed by its payload; starts on a line */
	uint32_t kind;	/* enum ud_ring_kind */
	uint32_t flags; /* DATAGRAM_* */
	uint32_t dest, source; /* QP numbers */
	uint32_t qkey;
	uint32_t imm;
	uint32_t length; /* of the payload */
	uint32_t unused;
	uint8_t sgid[16], dgid[16];
};

enum ud_ring_kind {
	UD_RING_DATAGRAM = 1,
	UD_RING_SKIP, /* no datagram from here to the end of the ring */
};

enum datagram_flag {
	DATAGRAM_IMM = 1,
};

#define DATAGRAM_MAX 4096u

struct ud_ring_by_peers {	   /* of the owner: the processes that have sent it datagrams */
	_Atomic(uint64_t) summary; /* a bit for each word in which a bit was set */
	/* a ring is full and no thread polls: the engine has to read it */
	_Atomic(uint32_t) urgent;
	uint32_t unused[13];
	_Atomic(uint64_t) word[SV_WORDS(SV_PEERS)]; /* a bit for each process number */
	uint8_t unused2[4096 - 64 - SV_PEERS / 8];
};

struct area_by_owner {
	uint64_t magic;
	uint32_t layout;
	/* The owner quiesces by membarrier, so initiators that registered for it need no fence. */
	uint32_t expedited;
	uint64_t by_owner_size, by_peers_size;
	uint64_t nonce[2];
	int64_t pid;
	_Atomic(uint32_t) still; /* QPs are unpublished for a time (verbs/still.h) */
	uint8_t unused[4096 - 60];
	struct region_entry region[SV_REGIONS];
	struct qp_by_owner qp[SV_QPS];
	struct rx_by_owner rx[SV_QPS];
	struct cq_by_owner cq[SV_CQS];
	struct srq_by_owner srq[SV_SRQS];
	struct outbox_by_owner outbox[SV_PEERS]; /* by the reader's process number */
	struct inbox_by_owner inbox[SV_PEERS];	 /* by the writer's process number */
};

struct area_by_peers {
	struct attention_by_peers attention;
	uint8_t unused[4096 - sizeof(struct attention_by_peers)];
	/* By index: the key of a memory window that the peer it was bound for has invalidated. */
	_Atomic(uint32_t) invalidated[SV_REGIONS];
	struct qp_by_peers qp[SV_QPS];
	struct cq_by_peers cq[SV_CQS];
	struct srq_by_peers srq[SV_SRQS];
	struct ud_ring_by_peers ud_ring;
};

static_assert(sizeof(struct region_entry) == 64 && sizeof(struct qp_by_owner) == 128 &&
		      sizeof(struct rx_by_owner) == 64 && sizeof(struct cq_by_owner) == 64 &&
		      sizeof(struct srq_by_owner) == 64,
	      "layout of the read-only area");
static_assert(sizeof(struct qp_by_peers) == 128 && sizeof(struct cq_by_peers) == 64 &&
		      sizeof(struct srq_by_peers) == 64 && sizeof(struct rx_slot) == 64,
	      "layout of the written area");
static_assert(sizeof(struct outbox_by_owner) == 64 && sizeof(struct inbox_by_owner) == 64 &&
		      sizeof(struct ud_ring_record) == 64 &&
		      sizeof(struct ud_ring_by_peers) == 4096,
	      "layout of datagrams");
static_assert(sizeof(struct area_by_owner) % 4096 == 0 && sizeof(struct area_by_peers) % 4096 == 0,
	      "heaps begin on a page");

#endif
