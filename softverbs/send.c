/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* Two-sided messages: the sender takes a posted receive, fills its landing, has delivered. */
#include "softverbs/bounce.h"
#include "softverbs/copy.h"
#include "softverbs/mw.h"
#include "softverbs/region.h"
#include "softverbs/send.h"
#include "softverbs/srq.h"

struct message {
	enum landing_op op;
	uint32_t imm;
	uint32_t byte_len; /* what the receiver is told */
	uint32_t length;   /* payload */
	unsigned iov_count;
	struct iovec iov[SV_MAX_SGE];
};

bool send_resolve(const struct sv_qp *qp, const struct ibv_send_wr *wr, unsigned need,
		  struct iovec *iov)
{
	for (int i = 0; i < wr->num_sge; i++) {
		const struct ibv_sge *sge = &wr->sg_list[i];
		uint64_t va = sge->addr;

		if (!(wr->send_flags & IBV_SEND_INLINE) && sge->length &&
		    !region_allows(qp->regions, sge->lkey, qp->pd, sge->addr, sge->length, need,
				   &va))
			return false;
		iov[i].iov_base = (void *)(uintptr_t)va;
		iov[i].iov_len = sge->length;
	}
	return true;
}

static void gather(uint8_t *to, const struct message *message)
{
	for (unsigned i = 0; i < message->iov_count; i++) {
		copy_small(to, message->iov[i].iov_base, message->iov[i].iov_len);
		to += message->iov[i].iov_len;
	}
}

static void land_gather(struct sv_tx *tx, uint32_t slot, const struct message *message)
{
	uint8_t whole[SV_INLINE];

	gather(whole, message);
	land_put(tx, slot, whole, message->length);
}

/* Contiguous room in the peer's eager ring; NULL when there is none now. */
static uint8_t *eager_reserve(struct sv_tx *tx, uint32_t length, uint32_t *at)
{
	uint32_t mask = tx->eager_size - 1, room = (length + SV_LINE - 1) & ~(SV_LINE - 1u),
		 pos = tx->eager_prod;

	if ((pos & mask) + room > tx->eager_size)
		pos += tx->eager_size - (pos & mask);
	if (pos + room - tx->eager_cons > tx->eager_size) {
		/* acquire: the receiver has read what it gives back */
		uint32_t cons = atomic_load_explicit(&tx->rx->eager_cons, memory_order_acquire);

		if (tx->eager_prod - cons > tx->eager_size || pos + room - cons > tx->eager_size)
			return NULL;
		tx->eager_cons = cons;
	}
	tx->eager_prod = pos + room;
	atomic_store_explicit(&tx->rw->eager_prod, tx->eager_prod, memory_order_relaxed);
	*at = pos;
	return tx->eager + (pos & mask);
}

static int message_refuse(struct sv_tx *tx, uint32_t slot, enum ibv_wc_status theirs,
			  enum ibv_wc_status ours)
{
	message_publish(tx, slot, landing_what(LAND_ERROR, LAND_DIRECT, 0), theirs);
	tx_report(tx, FAULT_REFUSED); /* its QP fails, whether it polls or not */
	return ours;
}

/*
 * Straight into the posted buffer, piece by piece. Between pieces the window closes for a moment,
 * for whoever wants to withdraw what is used here; not while a slot of an SRQ is held, which could
 * not be given back.
 */
static int message_copy(struct sv_tx *tx, const struct message *message, uint32_t slot)
{
	struct iovec there[SV_MAX_SGE * 2 + 1];
	uint32_t part;

	for (uint32_t done = 0; done < message->length; done += part) {
		int count;

		part = message->length - done < COPY_PIECE ? message->length - done : COPY_PIECE;
		if (done && !tx->arrival) {
			window_leave(tx);
			window_enter(tx);
			if (!window_is_open(tx))
				return EXEC_WAIT(SQ_SILENT);
		}
		count = region_ranges(tx->peer->ro->region, &tx->sge[(uint64_t)slot * tx->max_sge],
				      tx->max_sge, tx->recv_pd, done, part, there);
		if (count < 0)
			return message_refuse(tx, slot, IBV_WC_LOC_PROT_ERR, IBV_WC_REM_OP_ERR);
		switch (copy_out(tx->peer, message->iov, message->iov_count, done, there,
				 (unsigned)count, part)) {
		case COPY_DONE: break;
		case COPY_GONE: return EXEC_WAIT(SQ_SILENT);
		case COPY_HERE:
			if (tx->arrival)
				return message_refuse(tx, slot, IBV_WC_LOC_PROT_ERR,
						      IBV_WC_LOC_PROT_ERR);
			return IBV_WC_LOC_PROT_ERR;
		default:
			tx_report(tx, FAULT_FATAL);
			return message_refuse(tx, slot, IBV_WC_LOC_PROT_ERR, IBV_WC_REM_OP_ERR);
		}
	}
	return IBV_WC_SUCCESS;
}

/* By the peer's engine, in its time: comes back here until it is done. */
static int message_bounce(struct sv_qp *qp, const struct message *message, uint32_t slot,
			  uint64_t entry)
{
	struct bounce_op op = {
		.kind = BOUNCE_RECV,
		.key = slot,
		.length = message->length,
		.iov = message->iov,
		.iov_count = message->iov_count,
	};
	int status;

	/* a receiver that polls makes room soon */
	if (op.length <= qp->tx.eager_limit && !qp->tx.arrival && !qp->sq.engines &&
	    !bounce_is_active(qp))
		return EXEC_WAIT(SQ_REMOTE);
	qp->bounce.taken = true;
	qp->bounce.slot = slot;
	qp->bounce.entry = entry;
	status = bounce_move(qp, &op);
	return status > 0 ? message_refuse(&qp->tx, slot, IBV_WC_LOC_PROT_ERR,
					   (enum ibv_wc_status)status)
			  : status;
}

/* Of a receive that is marked as bad: whether the message fits in front of what is. */
static bool receive_holds(const struct sv_tx *tx, uint32_t slot, uint32_t length)
{
	struct iovec there[SV_MAX_SGE * 2];

	return region_ranges(tx->peer->ro->region, &tx->sge[(uint64_t)slot * tx->max_sge],
			     tx->max_sge, tx->recv_pd, 0, length, there) >= 0;
}

/* Inside the window, with a receive taken: payload, then header, then number. */
static inline int message_deliver(struct sv_qp *qp, const struct message *message, uint32_t slot,
				  uint64_t entry)
{
	struct sv_tx *tx = &qp->tx;
	enum landing_where where = LAND_INLINE;
	uint32_t length = message->length, at;
	uint8_t *eager;

	if (unlikely(post_is_bad(entry)) && !receive_holds(tx, slot, length))
		return message_refuse(tx, slot, IBV_WC_LOC_PROT_ERR, IBV_WC_REM_OP_ERR);
	if (unlikely(length > (uint32_t)entry))
		return message_refuse(tx, slot, IBV_WC_LOC_LEN_ERR, IBV_WC_REM_INV_REQ_ERR);
	if (length <= SV_INLINE) {
		land_gather(tx, slot, message);
	} else if (length <= tx->eager_limit && !qp->bounce.active &&
		   (eager = eager_reserve(tx, length, &at))) {
		where = LAND_EAGER;
		gather(eager, message);
		atomic_store_explicit(&tx->landing[slot].eager, at, memory_order_relaxed);
	} else {
		int status = likely(tx->copy != SV_COPY_BOUNCE)
				     ? message_copy(tx, message, slot)
				     : message_bounce(qp, message, slot, entry);

		if (unlikely(status != IBV_WC_SUCCESS))
			return status;
		where = LAND_DIRECT;
	}
	message_publish(tx, slot, landing_what(message->op, where, message->imm),
			message->byte_len);
	return IBV_WC_SUCCESS;
}

static inline bool receive_take(struct sv_tx *tx, uint32_t *slot, uint64_t *entry)
{
	if (likely(!tx->arrival))
		return receive_next(tx, slot, entry);
	if (!srq_claim(tx, entry))
		return false;
	*slot = post_slot(*entry) & tx->mask;
	return true;
}

static inline int message_send_locked(struct sv_qp *qp, const struct message *message,
				      bool solicited)
{
	struct sv_tx *tx = &qp->tx;
	uint32_t slot, seq;
	uint64_t entry;
	int status;

	status = tx_enter_locked(qp);
	if (unlikely(status))
		return status;
	if (unlikely(message->op == LAND_SEND_INV) && !mw_may_invalidate(tx, message->imm)) {
		tx_report(tx, FAULT_ACCESS);
		window_leave(tx);
		return IBV_WC_REM_ACCESS_ERR;
	}
	if (unlikely(bounce_is_active(qp) || bounce_holds(qp))) {
		slot = qp->bounce.slot; /* taken when it began */
		entry = qp->bounce.entry;
	} else if (unlikely(!receive_take(tx, &slot, &entry))) {
		window_leave(tx);
		return EXEC_WAIT(SQ_RNR);
	}
	seq = tx->seq;
	status = message_deliver(qp, message, slot, entry);
	if (unlikely(message->op == LAND_SEND_INV) && tx->seq != seq && !status)
		mw_invalidate_remote(tx, message->imm);
	window_leave(tx);
	if (likely(tx->seq != seq)) {
		qp->sq.told++;
		qp->sq.told_solicited |= solicited || status;
	}
	return status;
}

int send_execute_locked(struct sv_qp *qp, const struct ibv_send_wr *wr, uint32_t length)
{
	struct message message;

	if (unlikely(!send_resolve(qp, wr, REGION_LOCAL, message.iov)))
		return IBV_WC_LOC_PROT_ERR;
	message.op = send_op(wr->opcode);
	message.imm = wr->imm_data; /* or the key: they share the place */
	message.length = message.byte_len = length;
	message.iov_count = (unsigned)wr->num_sge;
	return message_send_locked(qp, &message, wr->send_flags & IBV_SEND_SOLICITED);
}

int send_immediate_locked(struct sv_qp *qp, const struct ibv_send_wr *wr, uint32_t length)
{
	struct message message;

	message.op = LAND_WRITE_IMM;
	message.imm = wr->imm_data;
	message.length = 0;
	message.byte_len = length;
	message.iov_count = 0;
	return message_send_locked(qp, &message, wr->send_flags & IBV_SEND_SOLICITED);
}
