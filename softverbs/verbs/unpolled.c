/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/*
 * With regard to a CQ the engine either rests, and the sender of the next message rings it (cq_by_peers.engine_rests), or it
 * pauses, and senders do not ring.
 *
 *	when			the CQ was polled since last time	what it does
 *	it is rung		yes, and there are messages		copies them, rests
 *				yes, and there are none			pauses
 *				no					copies them, pauses
 *	a pause is over		yes					pauses for longer
 *				no					copies them, rests
 *
 * So a program that polls costs its peers no doorbells. One that waits on memory polls after each message, to take its
 * completion, and has the next message by a doorbell. One that calls nothing for long has its messages after pauses.
 */
#include "softverbs/link/peer.h"
#include "softverbs/object/qp.h"
#include "softverbs/rc/arrival.h"
#include "softverbs/verbs/unpolled.h"
#include "util/clock.h"

#define PAUSE_LEAST NSEC_PER_MSEC
#define PAUSE_MOST  (64 * NSEC_PER_MSEC)
#define AT_ONCE	    16u /* messages that are copied before another thread may have the CQ */

static uint32_t member_land_locked(const struct cq_member *member, uint32_t most)
{
	return member->roles & CQ_RECVS ? sv_arrivals_land_locked(member->qp, most) : 0;
}

/* Copies `most` messages at most; returns their number. Members that are neither hot nor marked have none. */
static uint32_t cq_land_locked(struct sv_cq *cq, uint32_t most)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < cq->count && n < most; i++)
		n += member_land_locked(&cq->hot[i], most - n);
	if (!cq->many.ready)
		return n;
	for (uint32_t w = 0; w < SV_WORDS(SV_QPS) && n < most; w++) {
		/* acquire: pairs with sv_remote_rq_mark */
		uint64_t bits =
			atomic_load_explicit(&cq->many.ready->word[w], memory_order_acquire);

		for (; bits && n < most; bits &= bits - 1)
			n += member_land_locked(
				&cq->many.members[w * 64 + (unsigned)__builtin_ctzll(bits)],
				most - n);
	}
	return n;
}

/* Copies what is there, and what comes meanwhile, until a thread polls. True: there was something. */
static bool cq_land(struct sv_cq *cq)
{
	uint32_t polls = atomic_load_explicit(&cq->polls, memory_order_relaxed), n;
	bool any = false, goes_on;

	lock_acquire(&cq->lock);
	do {
		n = cq->slow & CQ_STILL ? 0 : cq_land_locked(cq, AT_ONCE);
		any |= n;
		lock_release(&cq->lock);
		lock_acquire(&cq->lock);
		goes_on = n == AT_ONCE &&
			  polls == atomic_load_explicit(&cq->polls, memory_order_relaxed);
	} while (goes_on);
	lock_release(&cq->lock);
	return any;
}

/* Since the last call. No lock: the thread that polls would lose the bias of the lock. */
static bool was_polled(struct sv_cq *cq)
{
	struct cq_unpolled *unpolled = &cq->unpolled;
	uint32_t polls = atomic_load_explicit(&cq->polls, memory_order_relaxed);
	uint32_t round =
		atomic_load_explicit(&cq->by_peers->arm, memory_order_relaxed) >> ARM_ROUND_SHIFT;
	bool was = polls != unpolled->polls || round != unpolled->arm_round;

	unpolled->polls = polls;
	unpolled->arm_round = round;
	return was;
}

/*
 * A sender first publishes a message and disarms the CQ, then loads `engine_rests`; here the order is the reverse. False: a
 * thread is about to leave ibv_block.
 */
static bool rest_locked(struct sv_cq *cq)
{
	uint32_t arm;

	atomic_store_explicit(&cq->by_peers->polled, 0, memory_order_relaxed);
	atomic_store_explicit(&cq->by_peers->engine_rests, 1, memory_order_relaxed);
	do {
		arm = sv_cq_event_count_locked(cq);
		if (!(arm & ARM_TYPE) && arm & (ARM_BLOCKED | ARM_INTERRUPTED)) {
			atomic_store_explicit(&cq->by_peers->engine_rests, 0, memory_order_relaxed);
			return false;
		}
		/* acquire, release: what disarms the CQ after this finds `engine_rests` */
	} while (!atomic_compare_exchange_weak_explicit(&cq->by_peers->arm, &arm,
							arm & ARM_TYPE ? arm : arm | ARM_ENGINE,
							memory_order_acq_rel,
							memory_order_relaxed));
	cq->unpolled.rests = true;
	return true;
}

static void pause_over(struct sv_timer *timer);

/* CQs pause until multiples of the same time, so that the engine wakes up once for all. */
static void pause_begin(struct cq_unpolled *unpolled, uint64_t pause)
{
	unpolled->pause = pause;
	sv_engine_timer_arm(&unpolled->timer, (clock_now() / pause + 2) * pause, pause_over);
}

static bool rest(struct sv_cq *cq)
{
	bool rests;

	lock_acquire(&cq->lock);
	rests = !(cq->slow & CQ_STILL) && rest_locked(cq);
	lock_release(&cq->lock);
	if (!rests)
		return false;
	sv_area_barrier();
	cq_land(cq); /* messages whose senders did not see that the engine rests */
	return true;
}

static void rest_or_pause(struct sv_cq *cq, bool rests, uint64_t pause)
{
	if (rests && rest(cq))
		return;
	/* Where the program cannot arm the CQ, senders need not read `arm` meanwhile. */
	if (!cq->ibv.channel && sv_area_own()->expedited)
		atomic_store_explicit(&cq->by_peers->polled, 1, memory_order_relaxed);
	pause_begin(&cq->unpolled, pause);
}

static void pause_over(struct sv_timer *timer)
{
	struct sv_cq *cq = container_of(sv_cq, unpolled.timer, timer);
	uint64_t longer = cq->unpolled.pause * 2 < PAUSE_MOST ? cq->unpolled.pause * 2 : PAUSE_MOST;
	bool polled = was_polled(cq);

	if (!polled)
		cq_land(cq);
	rest_or_pause(cq, !polled, longer);
}

/* `unsure`: a doorbell may be missing. */
static void attend(struct sv_cq *cq, bool unsure)
{
	bool is_rung, polled, landed;

	lock_acquire(&cq->lock);
	is_rung = cq->unpolled.rests &&
		  (unsure ||
		   !atomic_load_explicit(&cq->by_peers->engine_rests, memory_order_acquire));
	cq->unpolled.rests &= !is_rung;
	lock_release(&cq->lock);
	if (!is_rung)
		return;
	polled = was_polled(cq);
	landed = cq_land(cq);
	rest_or_pause(cq, polled && landed, PAUSE_LEAST);
}

void sv_unpolled_attend(struct sv_cq *cq)
{
	attend(cq, false);
}

/* It may have ended between a message and its doorbell. */
void sv_unpolled_peer_gone(struct sv_cq *cq)
{
	attend(cq, true);
}

void sv_unpolled_init(struct sv_cq *cq)
{
	rest_locked(cq);
}

void sv_unpolled_end(struct sv_cq *cq)
{
	sv_engine_timer_cancel(&cq->unpolled.timer);
}
