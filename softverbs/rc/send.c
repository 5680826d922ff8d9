/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/*
 * Two-sided messages: the sender takes a posted receive and fills its receive slot, which
 * completes the message.
 */
#include "softverbs/rc/bounce.h"
#include "softverbs/rc/copy.h"
#include "softverbs/rc/direct.h"
#include "softverbs/rc/mw.h"
#include "softverbs/object/region.h"
#include "softverbs/rc/request.h"
#include "softverbs/rc/send.h"
#include "softverbs/object/srq.h"

struct message {
	enum rx_slot_op op;
	uint32_t imm;
	uint32_t byte_len; /* as the receiver's completion reports it */
	uint32_t length;   /* bytes of payload */
	unsigned iov_count;
	struct iovec iov[SV_MAX_SGE];
};

bool sv_send_resolve(const struct sv_qp *qp, const struct ibv_send_wr *wr, unsigned need,
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

static void send_gather(uint8_t *to, const struct message *message)
{
	for (unsigned i = 0; i < message->iov_count; i++) {
		copy_small(to, message->iov[i].iov_base, message->iov[i].iov_len);
		to += message->iov[i].iov_len;
	}
}

static void land_gather(struct sv_remote_rq *remote, uint32_t slot, const struct message *message)
{
	uint8_t whole[SV_INLINE];

	send_gather(whole, message);
	rx_slot_fill(remote, slot, whole, message->length);
}

/* Allocates contiguous bytes in the peer's eager ring; NULL if there is no room now. */
static uint8_t *eager_reserve(struct sv_remote_rq *remote, uint32_t length, uint32_t *at)
{
	uint32_t mask = remote->eager_size - 1, room = (length + SV_LINE - 1) & ~(SV_LINE - 1u),
		 pos = remote->eager_prod;

	if ((pos & mask) + room > remote->eager_size)
		pos += remote->eager_size - (pos & mask);
	if (pos + room - remote->eager_cons > remote->eager_size) {
		/* acquire: the receiver has read the bytes; pairs with land_eager_done */
		uint32_t cons = atomic_load_explicit(&remote->rx->eager_cons, memory_order_acquire);

		if (remote->eager_prod - cons > remote->eager_size ||
		    pos + room - cons > remote->eager_size)
			return NULL;
		remote->eager_cons = cons;
	}
	remote->eager_prod = pos + room;
	atomic_store_explicit(&remote->by_peers->eager_prod, remote->eager_prod,
			      memory_order_relaxed);
	*at = pos;
	return remote->eager + (pos & mask);
}

static int message_refuse(struct sv_remote_rq *remote, uint32_t slot, enum ibv_wc_status theirs,
			  enum ibv_wc_status ours)
{
	message_publish(remote, slot, rx_slot_what(RX_ERROR, RX_DIRECT, 0), theirs);
	sv_remote_rq_report(remote,
			    FAULT_REFUSED); /* the peer's QP fails, even if no thread polls */
	return ours;
}

/* Keeps the receive for this message while the epoch is left between chunks. */
static void receive_keep(struct sv_qp *qp, uint32_t slot, uint64_t entry)
{
	qp->bounce.taken = true;
	qp->bounce.slot = slot;
	qp->bounce.entry = entry;
}

static int message_copied(struct sv_remote_rq *remote, uint32_t slot, enum copy_result result)
{
	switch (result) {
	case COPY_DONE: return IBV_WC_SUCCESS;
	case COPY_GONE: return EXEC_WAIT(SQ_SILENT);
	case COPY_HERE:
		return remote->arrival ? message_refuse(remote, slot, IBV_WC_LOC_PROT_ERR,
							IBV_WC_LOC_PROT_ERR)
				       : IBV_WC_LOC_PROT_ERR;
	default:
		sv_remote_rq_report(remote, FAULT_FATAL);
		return message_refuse(remote, slot, IBV_WC_LOC_PROT_ERR, IBV_WC_REM_OP_ERR);
	}
}

/* Stores into the receive's memory where it is mapped here. COPY_THERE: some of it is not, and is copied in another way. */
static enum copy_result message_store(struct sv_qp *qp, const struct message *message,
				      uint32_t done, const struct iovec *there,
				      const uint32_t *keys, unsigned count)
{
	const struct sv_remote_rq *remote = &qp->remote_rq;
	enum copy_result result = COPY_DONE;
	struct direct_place place;

	for (unsigned i = 0; i < count && result == COPY_DONE; i++) {
		if (!direct_find(remote, keys[i], (uintptr_t)there[i].iov_base, there[i].iov_len,
				 true, &place) ||
		    !place.at)
			return COPY_THERE;
		result = sv_direct_out(&qp->mapped, message->iov, message->iov_count, done, &place,
				       there[i].iov_len);
		done += (uint32_t)there[i].iov_len;
	}
	return result;
}

/*
 * Copies the next chunk directly into the posted buffer. Leaves the epoch between chunks, so that
 * an owner can withdraw the memory.
 */
static int message_copy(struct sv_qp *qp, const struct message *message, uint32_t slot,
			uint64_t entry)
{
	uint32_t done = sq_moved(qp), rest = message->length - done,
		 part = rest < COPY_PIECE ? rest : COPY_PIECE;
	struct sv_remote_rq *remote = &qp->remote_rq;
	struct iovec there[SV_MAX_SGE * 2 + 1];
	uint32_t keys[SV_MAX_SGE * 2 + 1];
	enum copy_result result;
	int count, status;

	receive_keep(qp, slot, entry);
	count = sv_region_ranges(remote->peer->by_owner->region,
				 &remote->sge[(uint64_t)slot * remote->max_sge], remote->max_sge,
				 remote->recv_pd, done, part, there, keys);
	if (count < 0)
		return message_refuse(remote, slot, IBV_WC_LOC_PROT_ERR, IBV_WC_REM_OP_ERR);
	result = message_store(qp, message, done, there, keys, (unsigned)count);
	if (result == COPY_THERE)
		result = sv_copy_out(remote->peer, message->iov, message->iov_count, done, there,
				     (unsigned)count, part);
	status = message_copied(remote, slot, result);
	return status == IBV_WC_SUCCESS ? sq_move(qp, part, message->length) : status;
}

/* Copies by requests to the peer. Called again until the copy is done. */
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

	/* A receiver that polls soon frees room in the eager ring. */
	if (op.length <= qp->remote_rq.eager_limit && !qp->remote_rq.arrival && !qp->sq.engines &&
	    !bounce_is_active(qp))
		return EXEC_WAIT(SQ_REMOTE);
	receive_keep(qp, slot, entry);
	status = sv_bounce_move(qp, &op);
	return status > 0 ? message_refuse(&qp->remote_rq, slot, IBV_WC_LOC_PROT_ERR,
					   (enum ibv_wc_status)status)
			  : status;
}

/* Whether a message fits into the valid first part of a receive that is marked as bad. */
static bool receive_holds(const struct sv_remote_rq *remote, uint32_t slot, uint32_t length)
{
	struct iovec there[SV_MAX_SGE * 2];

	return sv_region_ranges(remote->peer->by_owner->region,
				&remote->sge[(uint64_t)slot * remote->max_sge], remote->max_sge,
				remote->recv_pd, 0, length, there, NULL) >= 0;
}

/*
 * Between epoch_enter and epoch_leave, with a receive taken: writes payload, then header, then
 * number.
 */
static inline int message_deliver(struct sv_qp *qp, const struct message *message, uint32_t slot,
				  uint64_t entry)
{
	struct sv_remote_rq *remote = &qp->remote_rq;
	enum rx_slot_where where = RX_INLINE;
	uint32_t length = message->length, at;
	uint8_t *eager;

	if (unlikely(post_is_bad(entry)) && !receive_holds(remote, slot, length))
		return message_refuse(remote, slot, IBV_WC_LOC_PROT_ERR, IBV_WC_REM_OP_ERR);
	if (unlikely(length > (uint32_t)entry))
		return message_refuse(remote, slot, IBV_WC_LOC_LEN_ERR, IBV_WC_REM_INV_REQ_ERR);
	if (length <= SV_INLINE) {
		land_gather(remote, slot, message);
	} else if (length <= remote->eager_limit && !qp->bounce.active &&
		   (eager = eager_reserve(remote, length, &at))) {
		where = RX_EAGER;
		send_gather(eager, message);
		atomic_store_explicit(&remote->rx_slot[slot].eager, at, memory_order_relaxed);
	} else {
		int status = likely(remote->copy != SV_COPY_BOUNCE)
				     ? message_copy(qp, message, slot, entry)
				     : message_bounce(qp, message, slot, entry);

		if (unlikely(status != IBV_WC_SUCCESS))
			return status;
		where = RX_DIRECT;
	}
	message_publish(remote, slot, rx_slot_what(message->op, where, message->imm),
			message->byte_len);
	return IBV_WC_SUCCESS;
}

static inline bool send_receive_claim(struct sv_remote_rq *remote, uint32_t *slot, uint64_t *entry)
{
	if (likely(!remote->arrival))
		return receive_next(remote, slot, entry);
	if (!sv_srq_claim(remote, entry))
		return false;
	*slot = post_slot(*entry) & remote->mask;
	return true;
}

static inline int message_send_locked(struct sv_qp *qp, const struct message *message,
				      bool solicited)
{
	struct sv_remote_rq *remote = &qp->remote_rq;
	uint32_t slot, seq;
	uint64_t entry;
	int status;

	status = remote_rq_enter_locked(qp);
	if (unlikely(status))
		return status;
	if (unlikely(message->op == RX_SEND_INV) && !sv_mw_may_invalidate(remote, message->imm)) {
		sv_remote_rq_report(remote, FAULT_ACCESS);
		epoch_leave(remote);
		return IBV_WC_REM_ACCESS_ERR;
	}
	if (unlikely(bounce_is_active(qp) || bounce_holds(qp))) {
		slot = qp->bounce
			       .slot; /* taken when the copy began; its memory may be withdrawn by now */
		entry = qp->bounce.entry | (uint64_t)POST_BAD << 32;
	} else if (unlikely(!send_receive_claim(remote, &slot, &entry))) {
		epoch_leave(remote);
		return EXEC_WAIT(SQ_RNR);
	} else if (unlikely(remote->arrival)) {
		qp->sq.moved = 0; /* the copy begins again, in another receive */
	}
	seq = remote->seq;
	status = message_deliver(qp, message, slot, entry);
	if (unlikely(message->op == RX_SEND_INV) && remote->seq != seq && !status)
		sv_mw_invalidate_remote(remote, message->imm);
	epoch_leave(remote);
	if (likely(remote->seq != seq)) {
		qp->sq.notified++;
		qp->sq.notified_solicited |= solicited || status;
	}
	return status;
}

int sv_send_execute_locked(struct sv_qp *qp, const struct ibv_send_wr *wr, uint32_t length)
{
	struct message message;

	if (unlikely(!sv_send_resolve(qp, wr, REGION_LOCAL, message.iov)))
		return IBV_WC_LOC_PROT_ERR;
	message.op = send_op(wr->opcode);
	message.imm = wr->imm_data; /* or the key: both are in the same union */
	message.length = message.byte_len = length;
	message.iov_count = (unsigned)wr->num_sge;
	return message_send_locked(qp, &message, wr->send_flags & IBV_SEND_SOLICITED);
}

int sv_send_immediate_locked(struct sv_qp *qp, const struct ibv_send_wr *wr, uint32_t length)
{
	struct message message;

	message.op = RX_WRITE_IMM;
	message.imm = wr->imm_data;
	message.length = 0;
	message.byte_len = length;
	message.iov_count = 0;
	return message_send_locked(qp, &message, wr->send_flags & IBV_SEND_SOLICITED);
}
