/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/*
 * Queue pairs: the send queue, the view of the peer's receive queue, and this side's receive
 * queue.
 */
#ifndef SV_OBJECT_QP_H
#define SV_OBJECT_QP_H

#include <sys/uio.h>
#include "softverbs/base/mapped.h"
#include "softverbs/object/cq.h"
#include "softverbs/object/wq.h"

struct sv_done { /* a completed send, kept until it is polled */
	uint64_t wr_id;
	uint32_t byte_len;
	uint8_t opcode, status;
	uint8_t emit; /* signalled or failed: makes a completion */
	uint8_t unused;
};

/* Why the oldest send of a queue cannot proceed. */
enum sq_wait {
	SQ_GOES,
	SQ_RNR, /* the peer has no posted receive */
	/*
	 * No such QP, QP not ready, or process dead: to the initiator, a network without an
	 * answer.
	 */
	SQ_SILENT,
	SQ_LINKING, /* the link to the peer's process is being set up */
	SQ_DRAIN,   /* state SQD */
	SQ_REMOTE,  /* the peer copies, in its polls or in its engine */
	SQ_COPYING, /* not blocked: the next chunk of payload may be copied */
	SQ_SENT,    /* handed to a transport: its answer; of a datagram, room there */
};

enum sv_service {
	SERVICE_RC,
	SERVICE_UC,
	SERVICE_UD,
};

/*
 * The steps that differ for the unreliable services: ud/ has a table for UC and one for UD. RC
 * has none.
 */
struct sv_service_ops {
	/* As sv_sq_execute. */
	int (*execute)(struct sv_qp *qp, const struct ibv_send_wr *wr, uint32_t length);
	/* UD only, as all below: whether the work request names a valid destination. */
	bool (*is_addressed)(const struct sv_qp *qp, const struct ibv_send_wr *wr);
	/*
	 * Stores up to `count` completions in wc; returns their number. The lock of the receive
	 * CQ is held.
	 */
	int (*poll_locked)(struct sv_qp *qp, int count, struct ibv_wc *wc);
	/* Whether the datagram `n` places after the next one to poll has arrived. */
	bool (*has_arrived)(const struct sv_qp *qp, uint32_t n);
	/* Whether another process may have written datagrams that this process has not read. */
	bool (*is_filled)(void);
};

struct sv_sq {
	/*
	 * Guards this struct. While `executing` is set, only the executor accesses the state of
	 * the request in execution, with or without the lock: `exec`, `notified`, `fresh`, the
	 * wait, `written`, `moved`, struct sv_remote_rq and struct sv_bounce. `exec` differs from
	 * `head` then.
	 */
	struct lock lock;
	uint32_t mask;
	uint32_t opcodes; /* of the service, a bit each */
	uint8_t service;  /* enum sv_service */
	bool plain;	  /* SERVICE_RC */
	uint32_t head;	  /* number of the next request to post */
	uint32_t exec;	  /* next to execute; the requests from exec to head wait */
	uint32_t polled_seen;
	uint32_t max_sge, max_inline;
	bool sig_all;
	bool notified_solicited;
	uint32_t notified; /* messages placed since the last sv_sq_notify_locked */
	uint32_t fresh;	   /* completions stored since then */
	bool failed;	   /* one of those has an error */
	bool waiting;	   /* as set by sv_sq_set_waiting */
	uint8_t wait;	   /* enum sq_wait, of exec */
	uint8_t tries;	   /* that remain in this wait */
	bool gone;	   /* the peer's process died during the wait */
	bool engines;	   /* neither side seems to poll: the engines have to proceed */
	struct sv_done *done;
	/* Copies of the requests that wait, by slot; so are their SGEs and inline data. */
	struct ibv_send_wr *held;
	struct ibv_sge *held_sge;
	uint8_t *held_inline;
	bool written;		   /* exec is a write with immediate, and its data are placed */
	bool executing;		   /* a thread copies a chunk without the lock */
	bool again;		   /* exec has to be tried again after the chunk */
	bool peer_is_gone;	   /* the peer's process died during the chunk */
	bool draining;		   /* in SQD with a partly executed request: report its end */
	uint32_t moved;		   /* bytes of exec that are copied */
	uint32_t moved_epoch;	   /* epoch of the peer's queue in which they were copied */
	uint64_t period, deadline; /* ns: length of one try; time of the next step of the wait */
	uint64_t timer_at;
	struct sv_timer timer;
	struct sv_timer lock_timer; /* for the engine, when the lock was not free */
};

/* The mapped view of the connected peer's receive queue. All of it is checked when it is bound. */
struct sv_remote_rq {
	uint32_t epoch;	    /* of the peer's qp_by_owner when bound; 0: not bound */
	uint32_t busy, seq; /* copies of the words in by_peers */
	bool expedited; /* both processes registered for membarrier: epoch_enter needs no fence */
	/* UC: the responder drops a request that it refuses, and its QP goes on */
	bool unreliable;
	uint8_t copy; /* enum sv_copy */
	uint32_t mask, shift, post_mask, post_shift;
	const struct qp_by_owner *by_owner;
	struct qp_by_peers *by_peers;
	const _Atomic(uint64_t) *post;
	struct rx_slot *rx_slot;
	_Atomic(uint32_t) *arrival; /* NULL: no SRQ */
	struct cq_by_peers *cq;
	struct sv_peer *peer;
	uint8_t *eager;
	uint32_t eager_size, eager_prod, eager_cons;
	uint32_t eager_limit; /* bytes of the longest message that goes through the ring */
	uint32_t cq_index, qp_index;
	struct srq_by_peers *srq;
	/* Short messages do not need the rest. */
	const struct rx_by_owner *rx;
	const struct srq_by_owner *srq_by_owner;
	const struct ibv_sge *sge;
	uint32_t max_sge, srq_index, pd, recv_pd;
};

struct sv_bounce { /* a copy that the peer makes on request; SQ lock */
	bool active;
	uint32_t epoch;		  /* in which it began */
	uint32_t asked, answered; /* request numbers */
	uint32_t sent, back;	  /* bytes requested; bytes answered */
	int status;
	bool taken;    /* the message has taken a receive, whether the copy has begun or not */
	uint32_t slot; /* of that receive */
	uint64_t entry;
	uint64_t old; /* of an atomic operation */
};

struct sv_serve { /* copies that this process makes for its peer */
	pthread_mutex_t lock;
	struct bounce_by_peers *memory;
	uint32_t number; /* of the last request answered */
	bool answered;	 /* a request was answered in this turn of the engine */
	/* rc/serve_memory.c: the key of a region that the engine is to check; 0: none */
	uint32_t learn;
	struct mapped mapped; /* ranges of its regions */
};

struct sv_rx { /* guarded by the receive CQ's lock */
	/*
	 * The next message to return from a poll. Without an SQ, also the number of entries that
	 * may be posted again.
	 */
	_Atomic(uint32_t) head;
	uint32_t mask, shift;
	uint32_t eager_cons;
	uint32_t
		landed; /* messages before this one have their payload in place: sv_arrivals_land */
	bool tails;	/* the last message used rx_slot_ext */
	/* Messages that waited when sends had filled a poll, and sq_ready of that time: only these sends come before them. */
	uint16_t passed_over;
	uint32_t sent, in_a_row;    /* sq_ready as last seen; messages since it changed */
	struct rx_slot *rx_slot;    /* by slot */
	_Atomic(uint32_t) *arrival; /* lap:16 | slot:16 in order of arrival; NULL: no SRQ */
	/* no further message can arrive: posted receives are flushed */
	_Atomic(bool) flush;
	bool datagrams; /* UD: see ud.h */
	uint8_t *eager;
	uint32_t eager_size;
	uint32_t sends_before; /* see passed_over */
};

struct sv_qp {
	union {
		struct ibv_qp ibv;
		struct ibv_qp_ex ex;
	};
	/* The first lines are those that polls read. */
	/* One past the newest send that polls may return. */
	_Alignas(SV_LINE) _Atomic(uint32_t) sq_ready;
	_Atomic(uint32_t) sq_polled; /* one past the last returned; the send CQ's lock */
	struct sv_rx rx;
	/* enum ibv_qp_state. A thread may enter ERR without holding `modify`. */
	_Alignas(SV_LINE) _Atomic(int) state;
	const uint32_t *alive;
	bool expedited; /* of the area: the check for a waiter needs no fence */
	uint32_t pd;
	const struct region_entry *regions; /* of this process */
	struct sv_cq *send_cq, *recv_cq;
	struct sv_srq *srq;
	const struct sv_service_ops *ops; /* NULL: RC */
	struct qp_by_peers *by_peers;	  /* written by the initiator */
	struct sv_sq sq;
	_Alignas(SV_LINE) struct sv_remote_rq remote_rq;
	_Alignas(SV_LINE) struct sv_wq rq;
	struct sv_bounce bounce;
	struct sv_serve serve;
	struct mapped mapped; /* executor: ranges that its work requests name */
	/* The rest is off the fast path. */
	/* Serialises state changes. Acquired before all other locks. */
	_Alignas(SV_LINE) pthread_mutex_t modify;
	uint32_t index, id; /* id: index + 1; 0 until it is allocated */
	uint32_t epoch;	    /* the last published one */
	struct qp_by_owner *by_owner;
	struct ibv_qp_attr attr; /* modify */
	struct ibv_qp_init_attr init;
	_Atomic(uint32_t) dest; /* QPN of the peer, from RTR on; 0: none */
	/* The process of `dest`, held. Set with `modify` held, by a poster, or by the engine. */
	_Atomic(struct sv_peer *) peer;
	unsigned pins; /* area table lock */
	/* In ERR, with receives that are not flushed yet: the engine flushes them. */
	_Atomic(bool) unsettled;
	uint64_t settle_deadline; /* modify */
	struct sv_timer settle_timer;
	bool in_srq; /* in the SRQ's list */
	bool lost;   /* a stopped process may still write into its rings */
	uint64_t arrival_offset;
	TAILQ_ENTRY(sv_qp) srq_entry; /* the SRQ's lock */
	struct sv_ud *ud;	      /* NULL: not a datagram QP */
	/* NULL: the peer is on this host. Else see path.h. Written with `modify`, inside the SQ lock. */
	struct sv_path *path;
	struct ex_send *ex_send;
};

static inline struct sv_qp *qp_of(struct ibv_qp *ibv)
{
	return container_of(sv_qp, ibv, ibv);
}

static inline uint32_t qp_peer_id_of(uint32_t qpn)
{
	return qpn >> 12;
}

static inline uint32_t qp_index_of(uint32_t qpn)
{
	return qpn & (SV_QPS - 1);
}

/* Zeroed memory of a QP; NULL: there is none. */
struct sv_qp *sv_qp_memory_alloc(void);
void sv_qp_memory_free(struct sv_qp *qp);
void sv_qp_memory_close(struct sv_qp_memory *memory);

/* Pins a QP of this process, so that it cannot be destroyed; NULL if there is none. */
struct sv_qp *sv_qp_pin(uint32_t index);
void sv_qp_unpin(struct sv_qp *qp);
void sv_qp_list(struct sv_qp *qp);
/* After return, no thread finds or still uses the QP by its number. */
void sv_qp_unlist(struct sv_qp *qp);

/*
 * Puts the QP into ERR; no further message is accepted. The engine flushes its queues. Any lock
 * may be held. False: the QP was in ERR or RESET.
 */
bool sv_qp_fail(struct sv_qp *qp);
/* The same for a caller that flushes the queues itself: the engine does not wake up for that. */
bool sv_qp_enter_error(struct sv_qp *qp);

#endif
