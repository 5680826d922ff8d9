/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* Arms a CQ, and sends the one event that follows each arming. */
#include <errno.h>
#include "softverbs/link/transport.h"
#include "softverbs/object/channel.h"
#include "softverbs/object/qp.h"

/* ---- completing threads ---- */

static void engine_ring(struct cq_by_peers *by_peers, struct sv_peer *owner, uint32_t index)
{
	/* release: the engine finds the message */
	if (atomic_exchange_explicit(&by_peers->engine_rests, 0, memory_order_acq_rel) &&
	    sv_attention_set(owner->by_peers->attention.cq, index))
		sv_peer_ring(owner);
}

void sv_cq_fire_armed(struct cq_by_peers *by_peers, struct sv_peer *owner, uint32_t index,
		      bool solicited)
{
	uint32_t arm = atomic_load_explicit(&by_peers->arm, memory_order_relaxed), type;

	do {
		type = arm & ARM_TYPE;
		if (type == ARM_NONE || (type == ARM_SOLICITED && !solicited))
			return;
		/*
		 * release: the reader of the event finds the completion; pairs with
		 * sv_cq_event_count_locked
		 */
	} while (!atomic_compare_exchange_weak_explicit(&by_peers->arm, &arm,
							arm & ~(uint32_t)ARM_TYPE,
							memory_order_acq_rel,
							memory_order_relaxed));
	if (arm & ARM_BLOCKED)
		sv_cq_block_wake(by_peers, arm);
	else if (type != ARM_ENGINE)
		sv_channel_wake(owner, index);
	if (atomic_load_explicit(&by_peers->engine_rests, memory_order_relaxed))
		engine_ring(by_peers, owner, index);
}

/*
 * Marks and counts completions of a CQ of this process; remote_rq_notify does so for a peer's CQ.
 */
static void cq_mark_and_count(struct sv_cq *cq, uint32_t qp_index, uint32_t recvs, uint32_t sends)
{
	uint32_t mode = atomic_load_explicit(&cq->by_peers->mode, memory_order_relaxed);
	uint64_t bit = 1ull << qp_index % 64;
	int64_t held;

	/*
	 * A poll clears the mark, then loads the completions. This thread has published, and now
	 * loads the mark.
	 */
	fence_full();
	if (mode & CQ_MANY && cq->many.ready && /* a peer may write `mode` */
	    !(atomic_load_explicit(&cq->many.ready->word[qp_index / 64], memory_order_relaxed) &
	      bit)) {
		/* release: the completions were published before the mark */
		atomic_fetch_or_explicit(&cq->many.ready->word[qp_index / 64], bit,
					 memory_order_release);
		atomic_fetch_or_explicit(&cq->many.ready->summary, 1ull << qp_index / 64,
					 memory_order_release);
	}
	if (!(mode & CQ_TIGHT))
		return;
	held = (int32_t)(atomic_fetch_add_explicit(&cq->by_peers->arrived, recvs,
						   memory_order_relaxed) +
			 recvs - atomic_load_explicit(&cq->by_owner->taken, memory_order_relaxed));
	held += (int32_t)(atomic_fetch_add_explicit(&cq->by_owner->sends, sends,
						    memory_order_relaxed) +
			  sends);
	if (held <= cq->ibv.cqe)
		return;
	atomic_store_explicit(&cq->by_peers->overflow, 1, memory_order_relaxed);
	sv_attention_set(sv_area_own()->by_peers->attention.cq, cq->index);
	sv_peer_ring(sv_peer_self());
}

void sv_cq_notify_recv(struct sv_cq *cq, uint32_t qp_index)
{
	if (atomic_load_explicit(&cq->by_peers->mode, memory_order_relaxed))
		cq_mark_and_count(cq, qp_index, 1, 0);
}

void sv_cq_notify_arrived(struct sv_cq *cq, uint32_t qp_index)
{
	cq_mark_and_count(cq, qp_index, 0, 0);
	cq_fire_message(cq->by_peers, sv_peer_self(), cq->index, true);
}

void sv_cq_notify_sends_slow(struct sv_cq *cq, uint32_t qp_index, uint32_t count)
{
	cq_mark_and_count(cq, qp_index, 0, count);
}

void sv_cq_notify_flush(struct sv_cq *cq, uint32_t qp_index, uint32_t count)
{
	if (!count)
		return;
	cq_mark_and_count(cq, qp_index, count, 0);
	cq_fire(cq->by_peers, sv_peer_self(), cq->index, true);
}

/* ---- waiters ---- */

uint32_t sv_cq_event_count_locked(struct sv_cq *cq)
{
	/* acquire: pairs with sv_cq_fire_armed */
	uint32_t arm = atomic_load_explicit(&cq->by_peers->arm, memory_order_acquire);

	if (cq->arm_counted || !cq->arm_round || arm & ARM_TYPE)
		return arm;
	cq->arm_counted = true;
	if (arm & ARM_BLOCKED)
		cq->unblocked = true;
	else
		cq->fired++;
	return arm;
}

int sv_cq_arm(struct ibv_cq *ibv, int solicited_only)
{
	struct sv_cq *cq = cq_of(ibv);
	uint32_t want = solicited_only ? ARM_SOLICITED : ARM_ANY, arm;
	bool polled;

	if (unlikely(!*cq->alive))
		return ENODEV;
	if (!ibv->channel)
		return 0;
	lock_acquire(&cq->lock);
	atomic_store_explicit(&cq->polls, 0, memory_order_relaxed);
	polled = atomic_load_explicit(&cq->by_peers->polled, memory_order_relaxed);
	if (polled)
		atomic_store_explicit(&cq->by_peers->polled, 0, memory_order_relaxed);
	arm = atomic_load_explicit(&cq->by_peers->arm, memory_order_relaxed);
	while (arm_is_for_program(arm) && (arm & ARM_TYPE) < want)
		if (atomic_compare_exchange_weak_explicit(&cq->by_peers->arm, &arm,
							  (arm & ~(uint32_t)ARM_TYPE) | want,
							  memory_order_relaxed,
							  memory_order_relaxed))
			arm |= ARM_TYPE;
	if (!arm_is_for_program(arm)) {
		arm = sv_cq_event_count_locked(cq);
		cq->arm_round = (cq->arm_round + 1) & (UINT32_MAX >> ARM_ROUND_SHIFT);
		cq->arm_round += !cq->arm_round;
		cq->arm_counted = false;
		/* What ended the sleep of a thread has woken it. */
		atomic_store_explicit(&cq->by_peers->arm,
				      cq->arm_round << ARM_ROUND_SHIFT | (arm & ARM_BLOCKED) | want,
				      memory_order_relaxed);
	}
	lock_release(&cq->lock);
	/*
	 * A completing thread publishes, then loads `polled` and `arm`. The caller stored both, and polls
	 * next.
	 */
	if (unlikely(polled))
		sv_area_barrier();
	else
		fence_full();
	if (unlikely(atomic_load_explicit(&cq->far, memory_order_relaxed)))
		sv_transport()->awaited();
	return 0;
}

bool sv_cq_has_event(struct sv_cq *cq)
{
	bool has;

	lock_acquire(&cq->lock);
	sv_cq_event_count_locked(cq);
	has = cq->fired != cq->consumed;
	lock_release(&cq->lock);
	return has;
}

bool sv_cq_event_consume(struct sv_cq *cq)
{
	bool taken;

	lock_acquire(&cq->lock);
	sv_cq_event_count_locked(cq);
	taken = cq->fired != cq->consumed;
	cq->consumed += taken;
	lock_release(&cq->lock);
	return taken;
}

void sv_cq_event_add_consumed(struct sv_cq *cq)
{
	lock_acquire(&cq->lock);
	cq->consumed++;
	cq->fired++;
	lock_release(&cq->lock);
}

/*
 * The peer may have disarmed the CQ and died before it wrote the token, or woke the thread. At worst the event is one too
 * many.
 */
void sv_cq_peer_gone(struct sv_cq *cq)
{
	uint32_t arm;
	bool due;

	if (!cq->ibv.channel)
		return;
	lock_acquire(&cq->lock);
	arm = sv_cq_event_count_locked(cq);
	due = cq->fired != cq->consumed;
	lock_release(&cq->lock);
	sv_cq_block_wake(cq->by_peers, arm);
	if (due)
		sv_channel_wake(sv_peer_self(), cq->index);
}
