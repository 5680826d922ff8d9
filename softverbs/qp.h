/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* Queue pairs: the send queue, the view of the peer's receive side, the own receive side. */
#ifndef SV_QP_H
#define SV_QP_H

#include <sys/uio.h>
#include "softverbs/cq.h"
#include "softverbs/wq.h"

struct sv_done { /* a finished send, until polled */
	uint64_t wr_id;
	uint32_t byte_len;
	uint8_t opcode, status;
	uint8_t emit; /* makes a completion */
	uint8_t unused;
};

/* Why the oldest send cannot go on. */
enum sq_wait {
	SQ_GOES,
	SQ_RNR,	    /* no receive is posted there */
	SQ_SILENT,  /* no such QP, not ready, process gone: as a network without an answer */
	SQ_LINKING, /* the link to its process is being made */
	SQ_DRAIN,   /* state SQD */
	SQ_REMOTE,  /* the peer copies, in its polls or its engine */
};

enum sv_service {
	SERVICE_RC,
	SERVICE_UC,
	SERVICE_UD,
};

struct sv_sq {
	struct lock lock; /* guards all but `polled`, and struct sv_tx */
	uint32_t mask;
	uint32_t opcodes; /* a bit for each that the service has */
	uint8_t service;  /* enum sv_service */
	bool plain;	  /* SERVICE_RC */
	uint32_t head;	  /* next to post */
	uint32_t exec;	  /* next to execute; what is in between waits */
	uint32_t polled_seen;
	uint32_t max_sge, max_inline;
	bool sig_all;
	bool told_solicited;
	uint32_t told;	/* messages placed since the last sq_tell_locked */
	uint32_t fresh; /* completions kept since then */
	bool failed;	/* with an error among them */
	bool waiting;	/* counted as such: sq_set_waiting */
	uint8_t wait;	/* enum sq_wait, of exec */
	uint8_t tries;	/* left, of that wait */
	bool gone;	/* the peer's process died during it */
	bool engines;	/* nobody polls, so it seems: the engines have to go on with exec */
	struct sv_done *done;
	/* copies of what waits; by slot, as are their SGEs and inline data */
	struct ibv_send_wr *held;
	struct ibv_sge *held_sge;
	uint8_t *held_inline;
	bool written;		   /* the data of exec, a write with immediate, is there already */
	uint64_t period, deadline; /* of the wait: of one try; of the next step */
	uint64_t timer_at;
	struct sv_timer timer;
	struct sv_timer take_timer; /* the engine did not get the lock */
};

/* Where the connected peer's receives are; everything checked when bound. */
struct sv_tx {
	uint32_t epoch;	    /* of the peer's ro_qp when bound; 0: not bound */
	uint32_t busy, seq; /* copies of what is in rw */
	bool expedited;	    /* both processes: window_enter needs no fence */
	/* UC: what the responder cannot do is lost without a word */
	bool unreliable;
	bool notify;  /* its CQ may be armed or count: look after each message */
	uint8_t copy; /* enum sv_copy */
	uint32_t mask, shift, post_mask, post_shift;
	const struct ro_qp *ro;
	struct rw_qp *rw;
	const _Atomic(uint64_t) *post;
	struct landing *landing;
	_Atomic(uint32_t) *arrival; /* NULL: no SRQ */
	struct rw_cq *cq;
	struct sv_peer *peer;
	uint8_t *eager;
	uint32_t eager_size, eager_prod, eager_cons;
	uint32_t eager_limit; /* longest message that goes through the ring */
	const struct ro_rx *rx;
	struct rw_srq *srq;
	const struct ro_srq *ro_srq;
	const struct ibv_sge *sge;
	uint32_t max_sge, srq_index, cq_index, qp_index, pd, recv_pd;
};

struct sv_bounce { /* a copy that the peer's engine makes; SQ lock */
	bool active;
	uint32_t epoch;		  /* it belongs to this one */
	uint32_t asked, answered; /* request numbers */
	uint32_t sent, back;	  /* bytes */
	int status;
	bool taken;    /* the message being sent took a receive, begun to be copied or not */
	uint32_t slot; /* which one */
	uint64_t entry;
	uint64_t old; /* of an atomic operation */
};

struct sv_serve { /* the same from the other side */
	pthread_mutex_t lock;
	struct rw_bounce *memory;
	uint32_t number; /* of the last request answered */
};

struct sv_rx { /* guarded by the receive CQ's lock */
	/* next message to hand out; of an own queue also the entries given back */
	_Atomic(uint32_t) head;
	uint32_t mask, shift;
	uint32_t eager_cons;
	bool tails;		    /* the last message had one */
	uint32_t sent, in_a_row;    /* sq_ready as seen last, and messages since then */
	struct landing *landing;    /* by slot */
	_Atomic(uint32_t) *arrival; /* lap:16 | slot:16 in order of arrival; NULL: no SRQ */
	/* no further message can come: what is posted completes with an error */
	_Atomic(bool) flush;
	bool datagrams; /* messages come otherwise: see ud.h */
	uint8_t *eager;
	uint32_t eager_size;
};

struct sv_qp {
	union {
		struct ibv_qp ibv;
		struct ibv_qp_ex ex;
	};
	/* what polls look at */
	_Alignas(SV_LINE) _Atomic(uint32_t)
		sq_ready;	     /* one past the newest send that polls may hand out */
	_Atomic(uint32_t) sq_polled; /* one past the last handed out; the send CQ's lock */
	struct sv_rx rx;
	_Alignas(SV_LINE) _Atomic(int)
		state; /* enum ibv_qp_state; ERR is entered under no lock but sq.lock */
	const uint32_t *alive;
	bool expedited; /* of the area: who looks for a waiter needs no fence */
	uint32_t pd;
	const struct ro_region *regions; /* of this process */
	struct sv_cq *send_cq, *recv_cq;
	struct sv_srq *srq;
	struct rw_qp *rw; /* own line: what the initiator tells */
	struct sv_sq sq;
	_Alignas(SV_LINE) struct sv_tx tx;
	_Alignas(SV_LINE) struct sv_wq rq;
	struct sv_bounce bounce;
	struct sv_serve serve;
	/* seldom touched */
	_Alignas(SV_LINE) pthread_mutex_t
		modify;	    /* state changes, one at a time; taken before all other locks */
	uint32_t index, id; /* id: index + 1; 0 while half open */
	uint32_t epoch;	    /* the last published one */
	struct ro_qp *ro;
	struct ibv_qp_attr attr; /* modify */
	struct ibv_qp_init_attr init;
	_Atomic(uint32_t) dest; /* QPN of the peer, from RTR on; 0: none */
	_Atomic(struct sv_peer *)
		peer;  /* dest's process, with a reference; set by modify, a poster or the engine */
	unsigned pins; /* area table lock */
	_Atomic(bool) unsettled;  /* in ERR, its receives are not yet flushed; the engine should */
	uint64_t settle_deadline; /* modify */
	struct sv_timer settle_timer;
	bool in_srq; /* listed there */
	bool lost;   /* a stopped process may still write into its rings */
	uint64_t arrival_offset;
	TAILQ_ENTRY(sv_qp) srq_entry; /* the SRQ's lock */
	struct sv_ud *ud;	      /* NULL: not a datagram QP */
	struct ex_send *ex_send;
};

static inline struct sv_qp *qp_of(struct ibv_qp *ibv)
{
	return container(sv_qp, ibv, ibv);
}

static inline uint32_t qp_slot_of(uint32_t qpn)
{
	return qpn >> 12;
}

static inline uint32_t qp_index_of(uint32_t qpn)
{
	return qpn & (SV_QPS - 1);
}

/* qp.c */
struct sv_qp *qp_make(struct ibv_pd *pd, struct ibv_qp_init_attr *init); /* NULL with errno */
/* A QP of this process with a pin, so that it cannot be destroyed; NULL if there is none. */
struct sv_qp *qp_pin(uint32_t index);
void qp_unpin(struct sv_qp *qp);

/* qp_fail.c */
/* A work request failed, SQ lock held: the QP, or of an unreliable one the send queue alone. */
void sq_fail_locked(struct sv_qp *qp);
/*
 * The QP is in ERR from now on, no new message comes in. Any lock may be held; the engine does the
 * rest. False: was there.
 */
bool qp_fail(struct sv_qp *qp);
/* The rest: waits for the initiator, flushes. Engine, with a pin. */
void qp_settle(struct sv_qp *qp);
/* The same for ibv_modify_qp, modify held: returns when done. */
void qp_settle_now_locked(struct sv_qp *qp);
/* Unpublished, nobody uses its receive side: false when a stopped process still may. */
bool qp_quiesce(struct sv_qp *qp);

/* qp_state.c */
/*
 * Everything posted or finished is forgotten, the peer is let go. Unpublished and quiesced before;
 * modify held.
 */
void qp_clear_locked(struct sv_qp *qp);
/* Unpublished for a moment and quiesced: messages go where its rings are now; modify held. */
void qp_publish_again_locked(struct sv_qp *qp);
/* State RESET from any other. */
void qp_reset_locked(struct sv_qp *qp);

/* tx.c, SQ lock held: 0 or the enum sq_wait that stands against it. */
int tx_bind_locked(struct sv_qp *qp);
void tx_unbind_locked(struct sv_qp *qp);

/* send.c and rdma.c: what executing a work request says beyond enum ibv_wc_status (0 and above). */
#define EXEC_WAIT(why) (-(int)(why))

int send_execute_locked(struct sv_qp *qp, const struct ibv_send_wr *wr, uint32_t length);
int rdma_execute_locked(struct sv_qp *qp, const struct ibv_send_wr *wr, uint32_t length);
int atomic_execute_locked(struct sv_qp *qp, const struct ibv_send_wr *wr, uint32_t length);
/* The message that follows the data of a write with immediate. */
int send_immediate_locked(struct sv_qp *qp, const struct ibv_send_wr *wr, uint32_t length);
/* The SGEs as addresses of this process, all of them giving `need`. */
bool send_resolve(const struct sv_qp *qp, const struct ibv_send_wr *wr, unsigned need,
		  struct iovec *iov);

/* unreliable.c */
int unreliable_execute_locked(struct sv_qp *qp, const struct ibv_send_wr *wr, uint32_t length);

/* qp_ex.c */
void qp_close_ex(struct sv_qp *qp); /* accepts one without */

/* post.c */
/* All of them or none: 0 or errno. */
int qp_post_batch(struct sv_qp *qp, const struct ibv_send_wr *wr, uint32_t count);
/* Keeps the completion of sq.exec and steps on. */
void sq_complete_locked(struct sv_qp *qp, const struct ibv_send_wr *wr, enum ibv_wc_status status);
int sq_execute_locked(struct sv_qp *qp, const struct ibv_send_wr *wr);
/* The same by a connected QP, which reports what the responder says. */
int sq_execute_connected_locked(struct sv_qp *qp, const struct ibv_send_wr *wr, uint32_t length);
/* The opcodes that a service has, a bit each. */
uint32_t service_opcodes(enum sv_service service);
/* The events of what was placed and completed: at the peer's CQ and at the own. */
void sq_tell_locked(struct sv_qp *qp);

/* pending.c */
/* Keeps a copy of a work request that cannot be executed now, as number sq.head. */
void sq_hold_locked(struct sv_qp *qp, const struct ibv_send_wr *wr);
/*
 * The oldest cannot go on because of `why`: 0 to try once more, EXEC_WAIT(why) to wait, or the
 * status to fail with.
 */
int sq_wait_locked(struct sv_qp *qp, enum sq_wait why);
/* Executes what waits as far as possible. */
void sq_run_locked(struct sv_qp *qp);
/* The queue's state is ERR: everything left completes with a flush. */
void sq_flush_locked(struct sv_qp *qp);
void sq_drop_locked(struct sv_qp *qp); /* forgets it */
void sq_run(struct sv_qp *qp);	       /* takes the lock; then the events */
void sq_unreachable(struct sv_qp *qp); /* engine: no link could be made to the peer's process */

/* recv.c */
/* Rings its process if it waits for this QP. */
void qp_wake_initiator(struct sv_qp *qp);
/* Completions of the receive side into wc; the receive CQ's lock held. */
int rx_poll_locked(struct sv_qp *qp, int count, struct ibv_wc *wc);
bool rx_has_locked(const struct sv_qp *qp);
uint64_t rx_count_locked(const struct sv_qp *qp);
/* No message comes any more: what is posted completes with an error. */
int rx_flush_locked(struct sv_qp *qp, int count, struct ibv_wc *wc);

#endif
