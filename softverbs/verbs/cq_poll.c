/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* Poll of a CQ: merges the completions of its QPs. */
#include <errno.h>
#include <sched.h>
#include "softverbs/link/transport.h"
#include "softverbs/rc/bounce.h"
#include "softverbs/rc/rc.h"
#include "softverbs/verbs/cq_poll.h"
#include "softverbs/verbs/swap.h"
#include "util/cancel.h"

#define POLLED \
	65536u /* polls without an arming, after which the next one may take some microseconds */

static int sends_poll_locked(struct sv_qp *qp, uint32_t ready, int count, struct ibv_wc *wc)
{
	uint32_t polled = atomic_load_explicit(&qp->sq_polled, memory_order_relaxed);
	int n = 0;

	while (polled != ready && n < count) {
		const struct sv_done *done = &qp->sq.done[polled++ & qp->sq.mask];
		struct ibv_wc *out = &wc[n];

		if (!done->emit)
			continue;
		n++;
		out->wr_id = done->wr_id;
		out->status = done->status;
		out->opcode = done->opcode;
		out->vendor_err = 0;
		out->byte_len = done->byte_len;
		out->imm_data = 0;
		out->qp_num = qp->ibv.qp_num;
		out->src_qp = 0;
		out->wc_flags = 0;
		out->pkey_index = 0;
		out->slid = 0;
		out->sl = 0;
		out->dlid_path_bits = 0;
	}
	/* release: an entry is read before it is written again */
	atomic_store_explicit(&qp->sq_polled, polled, memory_order_release);
	return n;
}

/*
 * Sends have filled a poll. If they always do, no message would ever be returned; but one must not overtake a send that
 * completed before it came, as its answer would. So the messages that are there wait for the sends up to here, and no more.
 */
static __attribute__((noinline)) void messages_pass_over_locked(struct sv_qp *qp, uint32_t most)
{
	uint32_t found = sv_rx_count_locked(qp, most < UINT16_MAX ? most : UINT16_MAX);

	if (!found && sv_rx_has_locked(qp))
		found = 1; /* a datagram that was not read yet */
	qp->rx.passed_over = (uint16_t)found;
	/* acquire: as below. Loaded after the messages. */
	qp->rx.sends_before = atomic_load_explicit(&qp->sq_ready, memory_order_acquire);
}

static inline __attribute__((always_inline)) int member_poll_in_order_locked(
	const struct cq_member *member, int count, struct ibv_wc *wc)
{
	struct sv_qp *qp = member->qp;
	int n = 0;

	if (member->roles & CQ_SENDS) {
		/* acquire: pairs with sv_sq_complete_locked */
		uint32_t ready = atomic_load_explicit(&qp->sq_ready, memory_order_acquire);

		if (ready != atomic_load_explicit(&qp->sq_polled, memory_order_relaxed)) {
			n = sends_poll_locked(qp, ready, count, wc);
			if (n == count && member->roles & CQ_RECVS && !rx_is_idle_locked(qp))
				messages_pass_over_locked(qp, (uint32_t)count);
		}
	}
	if (member->roles & CQ_RECVS && n < count)
		n += sv_rx_poll_locked(qp, count - n, wc + n);
	return n;
}

/* Returns the messages that were passed over, after the sends before them. */
static __attribute__((noinline)) int member_poll_passed_over_locked(const struct cq_member *member,
								    int count, struct ibv_wc *wc)
{
	struct sv_qp *qp = member->qp;
	int messages, n = sends_poll_locked(qp, qp->rx.sends_before, count, wc);

	messages = count - n < qp->rx.passed_over ? count - n : qp->rx.passed_over;
	n += sv_rx_poll_locked(qp, messages, wc + n);
	if (n == count) {
		qp->rx.passed_over -= (uint16_t)messages;
		return n;
	}
	qp->rx.passed_over = 0;
	return n + member_poll_in_order_locked(member, count - n, wc + n);
}

static inline __attribute__((always_inline)) int member_poll_locked(const struct cq_member *member,
								    int count, struct ibv_wc *wc)
{
	if (unlikely(member->qp->rx.passed_over))
		return member_poll_passed_over_locked(member, count, wc);
	return member_poll_in_order_locked(member, count, wc);
}

int sv_cq_member_poll_uncounted_locked(const struct cq_member *member, int count, struct ibv_wc *wc)
{
	return member_poll_locked(member, count, wc);
}

/* ---- poll ---- */

/*
 * Executes sends that wait, in the polling thread, before the engine does. If the poller becomes the executor of a QP, returns
 * that QP: a long copy is made without the lock of the CQ. Sends may wait for receives of the same SRQ, so the QPs
 * take turns.
 */
static struct sv_qp *progress_locked(struct sv_cq *cq)
{
	uint32_t first = cq->waiting_turn;
	struct sv_qp *claimed = NULL;

	for (uint32_t i = 0; i < cq->count; i++) {
		uint32_t at = (first + i) % cq->count;
		struct sv_qp *qp = cq->hot[at].qp;

		if (!(cq->hot[at].roles & CQ_SENDS) || !lock_try(&qp->sq.lock))
			continue;
		if (qp->sq.waiting && !qp->sq.executing) {
			uint32_t exec = qp->sq.exec;

			sv_sq_run_locked(qp, 0);
			if (qp->sq.exec != exec)
				cq->waiting_turn = at + 1;
			sv_sq_notify_locked(qp);
			if (!claimed && sv_sq_claim_locked(qp))
				claimed = qp;
		}
		lock_release(&qp->sq.lock);
	}
	return claimed;
}

/* Executes the sends of `qp` without the lock of the CQ. The QP cannot be destroyed while the poller is its
 * executor. */
static void copy_unlocked(struct sv_cq *cq, struct sv_qp *qp)
{
	int cancel = cancel_off();

	lock_release(&cq->lock);
	sv_sq_run_claimed(qp);
	lock_acquire(&cq->lock);
	cancel_restore(cancel);
}

/* Makes copies for peers, in the polling thread. */
static void serve_locked(struct sv_cq *cq)
{
	for (uint32_t i = 0; i < cq->count; i++)
		if (cq->hot[i].roles & CQ_RECVS)
			sv_serve_some(cq->hot[i].qp);
}

/* Reads what peers on other hosts sent. If nothing is there, or another thread reads, that may be the engine: it must
 * not be kept from running. */
static void far_unlocked(struct sv_cq *cq)
{
	bool armed =
		arm_is_for_program(atomic_load_explicit(&cq->by_peers->arm, memory_order_relaxed));

	lock_release(&cq->lock);
	if (!sv_transport()->progress(armed))
		sched_yield();
	lock_acquire(&cq->lock);
}

/* Not inlined: the fast path would save registers for it. */
static __attribute__((noinline)) void poll_work_locked(struct sv_cq *cq)
{
	struct sv_qp *claimed;

	if (cq->slow & CQ_STILL)
		return;
	serve_locked(cq);
	claimed = progress_locked(cq);
	if (claimed)
		copy_unlocked(cq, claimed);
	else if (atomic_load_explicit(&cq->far, memory_order_relaxed))
		far_unlocked(cq);
}

static void count_taken_locked(struct sv_cq *cq, int count, const struct ibv_wc *wc)
{
	uint32_t recvs = 0;

	for (int i = 0; i < count; i++)
		recvs += wc[i].opcode >= IBV_WC_RECV;
	atomic_fetch_add_explicit(&cq->by_owner->taken, recvs, memory_order_relaxed);
	atomic_fetch_sub_explicit(&cq->by_owner->sends, (uint32_t)count - recvs,
				  memory_order_relaxed);
}

static inline int merge_hot_locked(struct sv_cq *cq, int count, struct ibv_wc *wc)
{
	uint32_t turn = cq->turn;
	int n = 0;

	for (uint32_t i = 0; i < cq->count && n < count; i++) {
		const struct cq_member *member = &cq->hot[turn];

		if (++turn >= cq->count)
			turn = 0;
		n += member_poll_locked(member, count - n, wc + n);
	}
	cq->turn = turn;
	return n;
}

static int merge_locked(struct sv_cq *cq, int count, struct ibv_wc *wc)
{
	uint32_t mode = atomic_load_explicit(&cq->by_peers->mode, memory_order_relaxed);
	int n;

	/* a peer may write `mode` */
	if (unlikely(mode) && cq->many.ready)
		n = sv_cq_merge_many_locked(cq, count, wc);
	else
		n = merge_hot_locked(cq, count, wc);
	if (unlikely(mode & CQ_TIGHT) && n)
		count_taken_locked(cq, n, wc);
	return n;
}

int sv_cq_member_poll_locked(struct sv_cq *cq, const struct cq_member *member, int count,
			     struct ibv_wc *wc)
{
	uint32_t mode = atomic_load_explicit(&cq->by_peers->mode, memory_order_relaxed);
	int n = member_poll_locked(member, count, wc);

	if (mode & CQ_TIGHT && n)
		count_taken_locked(cq, n, wc);
	return n;
}

/* An overrun CQ returns the completions it had room for, and then fails. */
static int merge_broken_locked(struct sv_cq *cq, int count, struct ibv_wc *wc)
{
	int n;

	if (!cq->left)
		return -EIO;
	n = merge_locked(cq, (uint32_t)count < cq->left ? count : (int)cq->left, wc);
	cq->left -= (uint32_t)n;
	return n;
}

static void swap_unlocked(struct sv_cq *cq)
{
	cq->slow &= ~(uint32_t)CQ_SWAP;
	lock_release(&cq->lock);
	sv_swap_turn();
	lock_acquire(&cq->lock);
}

/* Completions of destroyed QPs are older than all others. */
static __attribute__((noinline)) int poll_slow_locked(struct sv_cq *cq, int count,
						      struct ibv_wc *wc)
{
	int kept, n;

	if (cq->slow & CQ_SWAP)
		swap_unlocked(cq);
	kept = cq->slow & CQ_KEEPS ? sv_cq_kept_take_locked(cq, count, wc) : 0;
	if (kept == count)
		return kept;
	if (cq->slow & CQ_STILL) {
		cq->slow |= CQ_MISSED;
		return kept;
	}
	n = cq->slow & CQ_BROKEN ? merge_broken_locked(cq, count - kept, wc + kept)
				 : merge_locked(cq, count - kept, wc + kept);
	return n < 0 && kept ? kept : n + kept;
}

static __attribute__((noinline, cold)) void polled_locked(struct sv_cq *cq)
{
	/* If the CQ is still armed, a thread may block after these polls, or the engine rests. */
	if (atomic_load_explicit(&cq->by_peers->arm, memory_order_relaxed) & ARM_TYPE)
		atomic_store_explicit(&cq->polls, 0, memory_order_relaxed);
	else if (sv_area_own()->expedited)
		atomic_store_explicit(&cq->by_peers->polled, 1, memory_order_relaxed);
}

static inline bool count_poll_locked(struct sv_cq *cq)
{
	uint32_t polls = atomic_load_explicit(&cq->polls, memory_order_relaxed) + 1;

	atomic_store_explicit(&cq->polls, polls, memory_order_relaxed);
	return polls == POLLED;
}

int sv_cq_poll(struct ibv_cq *ibv, int count, struct ibv_wc *wc)
{
	struct sv_cq *cq = cq_of(ibv);
	int n;

	if (unlikely(!*cq->alive))
		return -ENODEV;
	lock_acquire(&cq->lock);
	if (unlikely(count_poll_locked(cq)))
		polled_locked(cq);
	if (likely(!cq->slow))
		n = merge_locked(cq, count, wc);
	else
		n = poll_slow_locked(cq, count, wc);
	if (unlikely(!n && (atomic_load_explicit(&cq->waiting, memory_order_relaxed) |
			    atomic_load_explicit(&cq->served, memory_order_relaxed)))) {
		poll_work_locked(cq);
		if (!cq->slow)
			n = merge_locked(cq, count, wc);
	}
	lock_release(&cq->lock);
	return n;
}

uint64_t sv_cq_member_count_locked(const struct cq_member *member)
{
	const struct sv_qp *qp = member->qp;
	uint64_t count = 0;

	if (!qp)
		return 0;
	if (member->roles & CQ_SENDS) {
		uint32_t ready = atomic_load_explicit(&qp->sq_ready, memory_order_acquire);

		for (uint32_t i = atomic_load_explicit(&qp->sq_polled, memory_order_relaxed);
		     i != ready; i++)
			count += qp->sq.done[i & qp->sq.mask].emit;
	}
	if (member->roles & CQ_RECVS)
		count += sv_rx_count_locked(qp, UINT32_MAX);
	return count;
}

uint64_t sv_cq_count_locked(struct sv_cq *cq)
{
	uint64_t count = cq->kept.count - cq->kept.next;

	if (!cq->many.ready) {
		for (uint32_t i = 0; i < cq->count; i++)
			count += sv_cq_member_count_locked(&cq->hot[i]);
		return count;
	}
	for (uint32_t i = 0; i < SV_QPS; i++)
		count += sv_cq_member_count_locked(&cq->many.members[i]);
	return count;
}
