/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* Atomic operations: read, compute, write by the initiator, one at a time for each stripe. */
#include "softverbs/bounce.h"
#include "softverbs/memory.h"
#include "softverbs/rdma.h"
#include "softverbs/stripe.h"

static uint64_t atomic_result(bool add, const uint64_t args[2], uint64_t old)
{
	if (add)
		return old + args[0];
	return old == args[0] ? args[1] : old;
}

/* In this process also against the program's own atomic instructions. */
uint64_t atomic_own(uint64_t va, bool add, const uint64_t args[2])
{
	_Atomic(uint64_t) *word = (_Atomic(uint64_t) *)(uintptr_t)va;
	struct rw_stripe *stripe = stripe_take(peer_self(), va, SV_QPS - 1);
	uint64_t old;

	old = atomic_load(word);
	while (!atomic_compare_exchange_weak(word, &old, atomic_result(add, args, old)))
		;
	stripe_give(stripe, SV_QPS - 1);
	return old;
}

static enum copy_result atomic_peer(const struct sv_peer *peer, bool add, const uint64_t args[2],
				    uint64_t va, uint64_t *old)
{
	struct iovec there = { (void *)(uintptr_t)va, sizeof(*old) }, here = { old, sizeof(*old) };
	enum copy_result result = copy_in(peer, &here, 1, 0, &there, 1, sizeof(*old));
	uint64_t new;

	if (result != COPY_DONE)
		return result;
	new = atomic_result(add, args, *old);
	if (new == *old)
		return COPY_DONE;
	here.iov_base = &new;
	return copy_out(peer, &here, 1, 0, &there, 1, sizeof(new));
}

/* Inside the window. */
static enum ibv_wc_status atomic_check(struct sv_tx *tx, const struct ibv_send_wr *wr, uint64_t *va)
{
	if (!(atomic_load_explicit(&tx->ro->access, memory_order_relaxed) &
	      IBV_ACCESS_REMOTE_ATOMIC) ||
	    !atomic_load_explicit(&tx->ro->max_dest_rd, memory_order_relaxed) ||
	    wr->wr.atomic.remote_addr % 8) {
		tx_report(tx, FAULT_REQUEST);
		return IBV_WC_REM_INV_REQ_ERR;
	}
	if (!rdma_allows(tx, wr->wr.atomic.rkey, wr->wr.atomic.remote_addr, sizeof(uint64_t),
			 IBV_ACCESS_REMOTE_ATOMIC, va) ||
	    *va % 8) {
		tx_report(tx, FAULT_ACCESS);
		return IBV_WC_REM_ACCESS_ERR;
	}
	return IBV_WC_SUCCESS;
}

static int atomic_bounce(struct sv_qp *qp, const struct ibv_send_wr *wr, bool add,
			 const uint64_t args[2], uint64_t *old)
{
	struct bounce_op op = {
		.kind = add ? BOUNCE_FETCH_ADD : BOUNCE_CMP_SWP,
		.key = wr->wr.atomic.rkey,
		.addr = wr->wr.atomic.remote_addr,
		.length = sizeof(*old),
		.args = { args[0], args[1] },
	};
	int status = bounce_move(qp, &op);

	*old = qp->bounce.old;
	return status;
}

static int atomic_do(struct sv_qp *qp, const struct ibv_send_wr *wr, uint64_t *old)
{
	uint64_t va = 0;
	uint64_t args[2] = { wr->wr.atomic.compare_add, wr->wr.atomic.swap };
	bool add = wr->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD;
	struct sv_tx *tx = &qp->tx;
	struct rw_stripe *stripe;
	int status;

	if (tx->copy == SV_COPY_BOUNCE)
		return atomic_bounce(qp, wr, add, args, old);
	status = atomic_check(tx, wr, &va);
	if (status != IBV_WC_SUCCESS)
		return status;
	if (tx->copy == SV_COPY_SELF) {
		struct iovec word = { (void *)(uintptr_t)va, sizeof(*old) };

		if (!memory_is_there(&word, 1, true))
			return rdma_copied(tx, COPY_THERE);
		*old = atomic_own(va, add, args);
		return IBV_WC_SUCCESS;
	}
	stripe = stripe_take(tx->peer, va, qp->index);
	status = rdma_copied(tx, atomic_peer(tx->peer, add, args, va, old));
	stripe_give(stripe, qp->index);
	return status;
}

int atomic_execute_locked(struct sv_qp *qp, const struct ibv_send_wr *wr, uint32_t length)
{
	struct iovec iov[SV_MAX_SGE];
	uint8_t *from;
	uint64_t old;
	int status;

	if (length != sizeof(old))
		return IBV_WC_LOC_LEN_ERR;
	if (!send_resolve(qp, wr, IBV_ACCESS_LOCAL_WRITE, iov))
		return IBV_WC_LOC_PROT_ERR;
	if (!qp->attr.max_rd_atomic)
		return IBV_WC_LOC_QP_OP_ERR;
	status = tx_enter_locked(qp);
	if (status)
		return status;
	status = atomic_do(qp, wr, &old);
	window_leave(&qp->tx);
	if (status != IBV_WC_SUCCESS)
		return status;
	from = (uint8_t *)&old;
	for (int i = 0; i < wr->num_sge; i++) {
		memcpy(iov[i].iov_base, from, iov[i].iov_len);
		from += iov[i].iov_len;
	}
	return IBV_WC_SUCCESS;
}
