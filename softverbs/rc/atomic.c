/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/*
 * Atomic operations, all of them atomic instructions of a processor. An initiator that has mapped the memory (direct.h)
 * executes its own; otherwise the process that owns the memory does: its own in the post, its peers' in its polls or its
 * engine, on request (bounce.c, serve.c). So they are atomic with respect to the owner's own instructions too, and no
 * initiator holds anything that another one waits for, wherever it stops or dies.
 */
#include "softverbs/rc/bounce.h"
#include "softverbs/rc/direct.h"
#include "softverbs/rc/memory.h"
#include "softverbs/rc/rdma.h"
#include "softverbs/rc/request.h"

/*
 * Not instrumented: the consumer orders its own accesses to the word by messages of its peer, which
 * the thread sanitizer cannot see.
 */
__attribute__((no_sanitize("thread"))) uint64_t sv_atomic_local(uint64_t va, bool add,
								const uint64_t args[2])
{
	_Atomic(uint64_t) *word = (_Atomic(uint64_t) *)(uintptr_t)va;
	uint64_t old = args[0];

	if (add)
		return atomic_fetch_add(word, args[0]);
	atomic_compare_exchange_strong(word, &old, args[1]);
	return old;
}

/* Between epoch_enter and epoch_leave. */
static enum ibv_wc_status atomic_check(struct sv_remote_rq *remote, const struct ibv_send_wr *wr,
				       uint64_t *va)
{
	if (!(atomic_load_explicit(&remote->by_owner->access, memory_order_relaxed) &
	      IBV_ACCESS_REMOTE_ATOMIC) ||
	    !atomic_load_explicit(&remote->by_owner->max_dest_rd, memory_order_relaxed) ||
	    wr->wr.atomic.remote_addr % 8) {
		sv_remote_rq_report(remote, FAULT_REQUEST);
		return IBV_WC_REM_INV_REQ_ERR;
	}
	if (!rdma_allows(remote, wr->wr.atomic.rkey, wr->wr.atomic.remote_addr, sizeof(uint64_t),
			 IBV_ACCESS_REMOTE_ATOMIC, va) ||
	    *va % 8) {
		sv_remote_rq_report(remote, FAULT_ACCESS);
		return IBV_WC_REM_ACCESS_ERR;
	}
	return IBV_WC_SUCCESS;
}

static int atomic_here(struct sv_remote_rq *remote, uint64_t va, bool add, const uint64_t args[2],
		       uint64_t *old)
{
	struct iovec word = { .iov_len = sizeof(*old) };

	word.iov_base = (void *)(uintptr_t)va;
	if (!sv_memory_is_there(&word, 1, true))
		return sv_rdma_copied(remote, COPY_THERE);
	*old = sv_atomic_local(va, add, args);
	return IBV_WC_SUCCESS;
}

static int atomic_there(struct sv_qp *qp, const struct ibv_send_wr *wr, bool add,
			const uint64_t args[2], uint64_t *old)
{
	struct bounce_op op = {
		.kind = add ? BOUNCE_FETCH_ADD : BOUNCE_CMP_SWP,
		.key = wr->wr.atomic.rkey,
		.addr = wr->wr.atomic.remote_addr,
		.length = sizeof(*old),
		.args = { args[0], args[1] },
	};
	int status = sv_bounce_move(qp, &op);

	*old = qp->bounce.old;
	return status;
}

/* Between epoch_enter and epoch_leave. */
static int atomic_do(struct sv_qp *qp, const struct ibv_send_wr *wr, uint64_t *old)
{
	uint64_t args[2] = { wr->wr.atomic.compare_add, wr->wr.atomic.swap }, va = 0;
	bool add = wr->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD;
	struct sv_remote_rq *remote = &qp->remote_rq;
	struct direct_place place;
	int status;

	/* one that was requested, maybe in an earlier epoch, is not executed again */
	if (qp->bounce.active)
		return atomic_there(qp, wr, add, args, old);
	status = atomic_check(remote, wr, &va);
	if (status != IBV_WC_SUCCESS)
		return status;
	if (remote->copy == SV_COPY_SELF)
		return atomic_here(remote, va, add, args, old);
	if (!direct_find(remote, wr->wr.atomic.rkey, va, sizeof(*old), true, &place) || !place.at)
		return atomic_there(qp, wr, add, args, old);
	*old = sv_atomic_local((uintptr_t)place.at, add, args);
	return IBV_WC_SUCCESS;
}

int sv_atomic_execute_locked(struct sv_qp *qp, const struct ibv_send_wr *wr, uint32_t length)
{
	struct iovec iov[SV_MAX_SGE];
	uint8_t *from;
	uint64_t old;
	int status;

	if (length != sizeof(old))
		return IBV_WC_LOC_LEN_ERR;
	if (!sv_send_resolve(qp, wr, IBV_ACCESS_LOCAL_WRITE, iov))
		return IBV_WC_LOC_PROT_ERR;
	if (!qp->attr.max_rd_atomic)
		return IBV_WC_LOC_QP_OP_ERR;
	status = remote_rq_enter_locked(qp);
	if (status)
		return status;
	status = atomic_do(qp, wr, &old);
	epoch_leave(&qp->remote_rq);
	if (status != IBV_WC_SUCCESS)
		return status;
	from = (uint8_t *)&old;
	for (int i = 0; i < wr->num_sge; i++) {
		memcpy(iov[i].iov_base, from, iov[i].iov_len);
		from += iov[i].iov_len;
	}
	return IBV_WC_SUCCESS;
}
