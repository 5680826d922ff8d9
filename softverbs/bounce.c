/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* The initiator's side of copies that the target's owner makes: several under way. */
#include <string.h>
#include "softverbs/bounce.h"
#include "softverbs/tx.h"

#define LOOKS \
	200u /* a few microseconds of hope, the time of a part, before others are asked to go on */

static struct rw_bounce *bounce_memory(const struct sv_tx *tx)
{
	/* acquire: its memory was cleared before */
	uint64_t offset = atomic_load_explicit(&tx->ro->bounce, memory_order_acquire);

	if (!offset || offset % SV_LINE || offset > tx->peer->rw_size ||
	    sizeof(struct rw_bounce) > tx->peer->rw_size - offset)
		return NULL;
	return (struct rw_bounce *)(void *)((uint8_t *)tx->peer->rw + offset);
}

static void bounce_ring(const struct sv_tx *tx)
{
	if (attention_set(tx->peer->rw->attention.bounce, tx->qp_index))
		peer_ring(tx->peer);
}

/* Between `length` bytes from `skip` on of a list, and `data`. */
static void bounce_copy(const struct iovec *iov, unsigned count, uint64_t skip, uint8_t *data,
			uint32_t length, bool out)
{
	for (unsigned i = 0; i < count && length; i++) {
		size_t part;
		uint8_t *at;

		if (skip >= iov[i].iov_len) {
			skip -= iov[i].iov_len;
			continue;
		}
		part = iov[i].iov_len - skip < length ? iov[i].iov_len - skip : length;
		at = (uint8_t *)iov[i].iov_base + skip;
		memcpy(out ? data : at, out ? at : data, part);
		data += part;
		length -= (uint32_t)part;
		skip = 0;
	}
}

static bool is_outbound(enum bounce_kind kind)
{
	return kind == BOUNCE_WRITE || kind == BOUNCE_RECV;
}

static bool is_atomic(enum bounce_kind kind)
{
	return kind == BOUNCE_CMP_SWP || kind == BOUNCE_FETCH_ADD;
}

static uint32_t part_length(const struct bounce_op *op, uint32_t from)
{
	return op->length - from < BOUNCE_BYTES ? op->length - from : BOUNCE_BYTES;
}

static bool bounce_reap(struct sv_bounce *b, struct rw_bounce *memory, const struct bounce_op *op)
{
	uint32_t number = b->answered + 1, part = number % BOUNCE_PARTS,
		 length = part_length(op, b->back);
	struct rw_bounce_answer *answer = &memory->answer[part];
	int status;

	/* acquire: the data and the status were written before */
	if (b->answered == b->asked ||
	    atomic_load_explicit(&answer->number, memory_order_acquire) != number)
		return false;
	status = (int)atomic_load_explicit(&answer->status, memory_order_relaxed);
	if (status != IBV_WC_SUCCESS && b->status == IBV_WC_SUCCESS)
		b->status = status > 0 && status <= IBV_WC_GENERAL_ERR ? status : IBV_WC_REM_OP_ERR;
	else if (op->kind == BOUNCE_READ)
		bounce_copy(op->iov, op->iov_count, b->back, memory->data[part], length, false);
	b->old = atomic_load_explicit(&answer->old, memory_order_relaxed);
	b->back += length;
	b->answered = number;
	return true;
}

/* A part may still be in the hands of the owner from a request that nobody waits for any more. */
static bool part_is_free(struct rw_bounce *memory, uint32_t part)
{
	return atomic_load_explicit(&memory->answer[part].number, memory_order_acquire) ==
	       atomic_load_explicit(&memory->ask[part].number, memory_order_relaxed);
}

static bool bounce_issue(struct sv_bounce *b, struct rw_bounce *memory, const struct bounce_op *op)
{
	uint32_t number = b->asked + 1, part = number % BOUNCE_PARTS,
		 length = part_length(op, b->sent);
	struct rw_bounce_ask *ask = &memory->ask[part];

	if (b->sent == op->length || b->status != IBV_WC_SUCCESS ||
	    b->asked - b->answered == BOUNCE_PARTS || !part_is_free(memory, part))
		return false;
	if (is_outbound(op->kind))
		bounce_copy(op->iov, op->iov_count, b->sent, memory->data[part], length, true);
	atomic_store_explicit(&ask->kind, op->kind, memory_order_relaxed);
	atomic_store_explicit(&ask->key, op->key, memory_order_relaxed);
	atomic_store_explicit(&ask->length, length, memory_order_relaxed);
	atomic_store_explicit(&ask->addr, op->addr + (is_atomic(op->kind) ? 0 : b->sent),
			      memory_order_relaxed);
	atomic_store_explicit(&ask->args[0], op->args[0], memory_order_relaxed);
	atomic_store_explicit(&ask->args[1], op->args[1], memory_order_relaxed);
	/* release: the request and its data before the number */
	atomic_store_explicit(&ask->number, number, memory_order_release);
	b->sent += length;
	b->asked = number;
	return true;
}

/* Goes on from the numbers that are there: another connection's may have come before. */
static void bounce_begin(struct sv_qp *qp, struct rw_bounce *memory)
{
	struct sv_bounce *b = &qp->bounce;
	uint32_t last = atomic_load_explicit(&memory->ask[0].number, memory_order_relaxed);

	for (uint32_t i = 1; i < BOUNCE_PARTS; i++) {
		uint32_t number =
			atomic_load_explicit(&memory->ask[i].number, memory_order_relaxed);

		if ((int32_t)(number - last) > 0)
			last = number;
	}
	b->active = true;
	b->epoch = qp->tx.epoch;
	b->asked = b->answered = last;
	b->sent = b->back = 0;
	b->status = IBV_WC_SUCCESS;
}

static bool bounce_is_done(const struct sv_bounce *b, const struct bounce_op *op)
{
	return b->answered == b->asked && (b->back == op->length || b->status != IBV_WC_SUCCESS);
}

/*
 * The last step of a failed copy: the owner learns what was wrong, as from those who find out
 * themselves.
 */
static int bounce_report(struct sv_qp *qp, const struct bounce_op *op)
{
	switch (qp->bounce.status) {
	case IBV_WC_SUCCESS: return IBV_WC_SUCCESS;
	case IBV_WC_REM_ACCESS_ERR: tx_report(&qp->tx, FAULT_ACCESS); return IBV_WC_REM_ACCESS_ERR;
	case IBV_WC_REM_INV_REQ_ERR:
		tx_report(&qp->tx, FAULT_REQUEST);
		return IBV_WC_REM_INV_REQ_ERR;
	default:
		if (op->kind != BOUNCE_RECV || qp->bounce.status != IBV_WC_REM_OP_ERR)
			tx_report(&qp->tx, FAULT_FATAL);
		return IBV_WC_REM_OP_ERR;
	}
}

int bounce_move(struct sv_qp *qp, const struct bounce_op *op)
{
	struct rw_bounce *memory = bounce_memory(&qp->tx);
	struct sv_bounce *b = &qp->bounce;

	if (!memory) {
		bounce_ring(&qp->tx);
		return EXEC_WAIT(SQ_REMOTE);
	}
	if (!bounce_is_active(qp))
		bounce_begin(qp, memory);
	for (uint32_t looks = 0; looks < LOOKS; looks++) {
		bool moved = bounce_reap(b, memory, op);

		moved |= bounce_issue(b, memory, op);
		if (bounce_is_done(b, op)) {
			b->active = false;
			return bounce_report(qp, op);
		}
		if (!moved) {
			cpu_relax();
			continue;
		}
		looks = 0;
		qp->sq.wait = SQ_GOES; /* a new wait, with new patience */
	}
	fence_full(); /* the owner's engine says that it sleeps, then looks for requests */
	if (qp->sq.engines && !atomic_load_explicit(&memory->awake, memory_order_relaxed))
		bounce_ring(&qp->tx);
	return EXEC_WAIT(SQ_REMOTE);
}
