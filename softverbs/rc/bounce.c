/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/*
 * The initiator's side of copies that the owner of the target memory makes. Several requests are
 * under way at once.
 */
#include <string.h>
#include "softverbs/rc/bounce.h"
#include "softverbs/rc/copy.h"
#include "softverbs/rc/remote_rq.h"

#define POLLS \
	200u /* polls, for about the time of a part (microseconds), before engines are needed */
#define ATOMIC_POLLS 20u /* polls: an owner that polls has answered by then */

static struct bounce_by_peers *bounce_memory(const struct sv_remote_rq *remote)
{
	/* acquire: the owner cleared the memory before; pairs with serve_open_locked */
	uint64_t offset = atomic_load_explicit(&remote->by_owner->bounce, memory_order_acquire);

	return offset ? sv_area_at(remote->peer, HEAP_BY_PEERS, offset,
				   sizeof(struct bounce_by_peers))
		      : NULL;
}

static void bounce_ring(const struct sv_remote_rq *remote)
{
	if (sv_attention_set(remote->peer->by_peers->attention.bounce, remote->qp_index))
		sv_peer_ring(remote->peer);
}

/* Rings the owner's doorbell for a published request, unless its engine polls. */
static void bounce_wake(const struct sv_remote_rq *remote, const struct bounce_by_peers *memory)
{
	fence_full(); /* pairs with serve_end: the owner clears `awake`, then loads requests */
	if (!atomic_load_explicit(&memory->awake, memory_order_relaxed))
		bounce_ring(remote);
}

/* Copies `length` bytes between the list, from byte `skip` on, and `data`. */
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

static bool bounce_reap(struct sv_bounce *b, struct bounce_by_peers *memory,
			const struct bounce_op *op)
{
	uint32_t number = b->answered + 1, part = number % BOUNCE_PARTS,
		 length = part_length(op, b->back);
	struct bounce_answer *answer = &memory->answer[part];
	int status;

	/* acquire: the data and the status come before the number; pairs with serve_one_locked */
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

/* The owner may still work on a part for an abandoned request. */
static bool part_is_free(struct bounce_by_peers *memory, uint32_t part)
{
	return atomic_load_explicit(&memory->answer[part].number, memory_order_acquire) ==
	       atomic_load_explicit(&memory->ask[part].number, memory_order_relaxed);
}

static bool bounce_issue(struct sv_bounce *b, struct bounce_by_peers *memory,
			 const struct bounce_op *op)
{
	uint32_t number = b->asked + 1, part = number % BOUNCE_PARTS,
		 length = part_length(op, b->sent);
	struct bounce_ask *ask = &memory->ask[part];

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
	/* release: the request and its data before the number; pairs with serve_one_locked */
	atomic_store_explicit(&ask->number, number, memory_order_release);
	b->sent += length;
	b->asked = number;
	return true;
}

/*
 * Whether a request continues that was made in an earlier epoch of the same connection, before
 * the owner's SRQ was resized. The memory for copies stayed, and the owner answers each request
 * once, so an atomic operation is not requested again.
 */
static bool bounce_goes_on(struct sv_qp *qp, const struct bounce_by_peers *memory,
			   const struct bounce_op *op)
{
	struct sv_bounce *b = &qp->bounce;

	if (!b->active || !is_atomic(op->kind) || b->asked == b->answered ||
	    atomic_load_explicit(&memory->ask[b->asked % BOUNCE_PARTS].number,
				 memory_order_relaxed) != b->asked)
		return false;
	b->epoch = qp->remote_rq.epoch;
	return true;
}

/* Continues the request numbers found in the memory: an earlier connection may have used it. */
static void bounce_begin(struct sv_qp *qp, struct bounce_by_peers *memory)
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
	b->epoch = qp->remote_rq.epoch;
	b->asked = b->answered = last;
	b->sent = b->back = 0;
	b->status = IBV_WC_SUCCESS;
}

static bool bounce_is_done(const struct sv_bounce *b, const struct bounce_op *op)
{
	return b->answered == b->asked && (b->back == op->length || b->status != IBV_WC_SUCCESS);
}

/* Reports the fault of a failed copy to the owner, as an initiator that detects it itself does. */
static int bounce_report(struct sv_qp *qp, const struct bounce_op *op)
{
	switch (qp->bounce.status) {
	case IBV_WC_SUCCESS: return IBV_WC_SUCCESS;
	case IBV_WC_REM_ACCESS_ERR:
		sv_remote_rq_report(&qp->remote_rq, FAULT_ACCESS);
		return IBV_WC_REM_ACCESS_ERR;
	case IBV_WC_REM_INV_REQ_ERR:
		sv_remote_rq_report(&qp->remote_rq, FAULT_REQUEST);
		return IBV_WC_REM_INV_REQ_ERR;
	default:
		if (op->kind != BOUNCE_RECV || qp->bounce.status != IBV_WC_REM_OP_ERR)
			sv_remote_rq_report(&qp->remote_rq, FAULT_FATAL);
		return IBV_WC_REM_OP_ERR;
	}
}

int sv_bounce_move(struct sv_qp *qp, const struct bounce_op *op)
{
	struct bounce_by_peers *memory = bounce_memory(&qp->remote_rq);
	struct sv_bounce *b = &qp->bounce;
	uint32_t first;

	if (!memory) {
		bounce_ring(&qp->remote_rq);
		return EXEC_WAIT(SQ_REMOTE);
	}
	if (!bounce_is_active(qp) && !bounce_goes_on(qp, memory, op))
		bounce_begin(qp, memory);
	first = b->back;
	for (uint32_t polls = 0; polls < POLLS; polls++) {
		bool moved = bounce_reap(b, memory, op);

		moved |= bounce_issue(b, memory, op);
		if (bounce_is_done(b, op)) {
			b->active = false;
			return bounce_report(qp, op);
		}
		if (!moved) {
			cpu_relax();
			if (polls == ATOMIC_POLLS && is_atomic(op->kind))
				bounce_wake(&qp->remote_rq, memory);
			continue;
		}
		polls = 0;
		qp->sq.wait = SQ_GOES; /* the next wait has its full length again */
		if (b->back - first >= COPY_PIECE)
			return EXEC_WAIT(SQ_COPYING);
	}
	if (qp->sq.engines)
		bounce_wake(&qp->remote_rq, memory);
	return EXEC_WAIT(SQ_REMOTE);
}
