/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* Arming a CQ, and the one event that follows each arming. */
#include <errno.h>
#include "softverbs/channel.h"
#include "softverbs/qp.h"

/* ---- who completes ---- */

void cq_fire_armed(struct rw_cq *rw, struct sv_peer *owner, uint32_t index, bool solicited)
{
	uint32_t arm = atomic_load_explicit(&rw->arm, memory_order_relaxed), type;

	do {
		type = arm & ARM_TYPE;
		if (type != ARM_ANY && (type != ARM_SOLICITED || !solicited))
			return;
		/* release: the reader of the event finds the completion */
	} while (!atomic_compare_exchange_weak_explicit(&rw->arm, &arm, arm & ~(uint32_t)ARM_TYPE,
							memory_order_acq_rel,
							memory_order_relaxed));
	channel_wake(owner, index);
}

/* In this process, as tx_tell does it in others. */
static void cq_tell(struct sv_cq *cq, uint32_t qp_index, uint32_t recvs, uint32_t sends)
{
	uint32_t mode = atomic_load_explicit(&cq->rw->mode, memory_order_relaxed);
	uint64_t bit = 1ull << qp_index % 64;
	int64_t held;

	fence_full(); /* the poller clears the mark, then looks; we publish, then look at the mark
		       */
	if (mode & CQ_MANY && cq->many.ready && /* `mode` lies where peers write */
	    !(atomic_load_explicit(&cq->many.ready->word[qp_index / 64], memory_order_relaxed) &
	      bit)) {
		/* release: what there is to find was published before */
		atomic_fetch_or_explicit(&cq->many.ready->word[qp_index / 64], bit,
					 memory_order_release);
		atomic_fetch_or_explicit(&cq->many.ready->summary, 1ull << qp_index / 64,
					 memory_order_release);
	}
	if (!(mode & CQ_TIGHT))
		return;
	held = (int32_t)(atomic_fetch_add_explicit(&cq->rw->arrived, recvs, memory_order_relaxed) +
			 recvs - atomic_load_explicit(&cq->ro->taken, memory_order_relaxed));
	held += (int32_t)(atomic_fetch_add_explicit(&cq->ro->sends, sends, memory_order_relaxed) +
			  sends);
	if (held <= cq->ibv.cqe)
		return;
	atomic_store_explicit(&cq->rw->overflow, 1, memory_order_relaxed);
	attention_set(area_own()->rw->attention.cq, cq->index);
	peer_ring(peer_self());
}

void cq_tell_recv(struct sv_cq *cq, uint32_t qp_index)
{
	if (atomic_load_explicit(&cq->rw->mode, memory_order_relaxed))
		cq_tell(cq, qp_index, 1, 0);
}

void cq_tell_sends_slow(struct sv_cq *cq, uint32_t qp_index, uint32_t count)
{
	cq_tell(cq, qp_index, 0, count);
}

void cq_tell_flush(struct sv_cq *cq, uint32_t qp_index, uint32_t count)
{
	if (!count)
		return;
	cq_tell(cq, qp_index, count, 0);
	cq_fire(cq->rw, peer_self(), cq->index, true);
}

/* ---- who waits ---- */

/* The event of the last arming, once it happened. */
static void event_count_locked(struct sv_cq *cq)
{
	/* acquire: pairs with cq_fire_armed */
	uint32_t arm = atomic_load_explicit(&cq->rw->arm, memory_order_acquire);

	if (cq->arm_counted || !cq->arm_round || arm & ARM_TYPE)
		return;
	cq->arm_counted = true;
	cq->fired++;
}

int cq_arm(struct ibv_cq *ibv, int solicited_only)
{
	struct sv_cq *cq = cq_of(ibv);
	uint32_t want = solicited_only ? ARM_SOLICITED : ARM_ANY, arm;

	if (unlikely(!*cq->alive))
		return ENODEV;
	if (!ibv->channel)
		return 0;
	lock_acquire(&cq->lock);
	arm = atomic_load_explicit(&cq->rw->arm, memory_order_relaxed);
	while (arm & ARM_TYPE && (arm & ARM_TYPE) < want)
		if (atomic_compare_exchange_weak_explicit(&cq->rw->arm, &arm,
							  (arm & ~(uint32_t)ARM_TYPE) | want,
							  memory_order_relaxed,
							  memory_order_relaxed))
			arm |= ARM_TYPE;
	if (!(arm & ARM_TYPE)) {
		event_count_locked(cq);
		cq->arm_round = (cq->arm_round + 1) & (UINT32_MAX >> 2);
		cq->arm_round += !cq->arm_round;
		cq->arm_counted = false;
		atomic_store_explicit(&cq->rw->arm, cq->arm_round << 2 | want,
				      memory_order_relaxed);
	}
	lock_release(&cq->lock);
	fence_full(); /* whoever completes publishes, then looks at `arm`; the caller polls next */
	return 0;
}

bool cq_has_event(struct sv_cq *cq)
{
	bool has;

	lock_acquire(&cq->lock);
	event_count_locked(cq);
	has = cq->fired != cq->consumed;
	lock_release(&cq->lock);
	return has;
}

bool cq_take_event(struct sv_cq *cq)
{
	bool taken;

	lock_acquire(&cq->lock);
	event_count_locked(cq);
	taken = cq->fired != cq->consumed;
	cq->consumed += taken;
	lock_release(&cq->lock);
	return taken;
}

bool cq_take_repair(struct sv_cq *cq)
{
	bool taken;

	lock_acquire(&cq->lock);
	taken = cq->repair;
	cq->repair = false;
	cq->consumed += taken;
	cq->fired += taken;
	lock_release(&cq->lock);
	return taken;
}

/*
 * It may have disarmed the CQ and died before it wrote the token: write one; at worst there is one
 * too many.
 */
void cq_peer_gone(struct sv_cq *cq)
{
	bool due;

	if (!cq->ibv.channel)
		return;
	lock_acquire(&cq->lock);
	event_count_locked(cq);
	due = cq->fired != cq->consumed;
	cq->repair |= due;
	lock_release(&cq->lock);
	if (due)
		channel_wake(peer_self(), cq->index);
}
