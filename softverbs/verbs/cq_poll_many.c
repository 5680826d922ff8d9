/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/*
 * Poll of a CQ with more QPs than each poll checks. The last ones that had a completion are hot, and are checked; of the others,
 * the senders mark those to which they send.
 */
#include "softverbs/base/turn.h"
#include "softverbs/rc/rc.h"
#include "softverbs/verbs/cq_poll.h"

/*
 * False if a poll of the member might find or do something. Where there are many, most are idle, and this costs less than the
 * three calls of such a poll.
 */
static inline bool member_is_idle_locked(const struct cq_member *member)
{
	const struct sv_qp *qp = member->qp;

	if (member->roles & CQ_SENDS &&
	    atomic_load_explicit(&qp->sq_ready, memory_order_relaxed) !=
		    atomic_load_explicit(&qp->sq_polled, memory_order_relaxed))
		return false;
	return !(member->roles & CQ_RECVS) || rx_is_idle_locked(qp);
}

static bool member_has_locked(const struct cq_member *member)
{
	const struct sv_qp *qp = member->qp;

	if (member->roles & CQ_SENDS &&
	    atomic_load_explicit(&qp->sq_ready, memory_order_acquire) !=
		    atomic_load_explicit(&qp->sq_polled, memory_order_relaxed))
		return true;
	return member->roles & CQ_RECVS && sv_rx_has_locked(qp);
}

static void many_mark(struct cq_many *many, uint32_t index)
{
	/* release: the completions were published before */
	atomic_fetch_or_explicit(&many->ready->word[index / 64], 1ull << index % 64,
				 memory_order_release);
	atomic_fetch_or_explicit(&many->ready->summary, 1ull << index / 64, memory_order_release);
}

/* Removes one QP from the hot set; senders must mark it from now on. */
static void many_evict_locked(struct sv_cq *cq, struct cq_member *place)
{
	uint32_t index = place->qp->index;

	cq->many.is_hot[index / 64] &= ~(1ull << index % 64);
	atomic_fetch_and_explicit(&cq->many.ready->word[index / 64], ~(1ull << index % 64),
				  memory_order_relaxed);
	fence_full(); /* pairs with a sender, which publishes and then checks the mark */
	if (member_has_locked(place))
		many_mark(&cq->many, index);
}

static void many_promote_locked(struct sv_cq *cq, const struct cq_member *member)
{
	uint32_t index = member->qp->index;
	struct cq_member *place;

	if (cq->count < CQ_HOT) {
		place = &cq->hot[cq->count++];
	} else {
		place = &cq->hot[cq->many.victim++ % CQ_HOT];
		many_evict_locked(cq, place);
	}
	*place = *member;
	cq->many.is_hot[index / 64] |= 1ull << index % 64;
}

/*
 * Begins to load what the program's next calls for this QP read, a receive and an answer: with so many QPs it is in no cache
 * that is near.
 */
static void member_fetch(const struct sv_qp *qp)
{
	__builtin_prefetch(&qp->state);
	__builtin_prefetch(&qp->by_peers, 1);
	__builtin_prefetch(&qp->sq.sig_all, 1);
	__builtin_prefetch(&qp->remote_rq, 1);
	__builtin_prefetch(&qp->remote_rq.arrival);
	__builtin_prefetch(&qp->rq, 1);
	__builtin_prefetch(&qp->rq.post, 1);
}

/* Polls those marked QPs of a word that are in `of`; if `wc` has no room for all, the rest stay marked. */
static int word_poll_locked(struct sv_cq *cq, unsigned word, uint64_t of, int count,
			    struct ibv_wc *wc)
{
	struct cq_many *many = &cq->many;
	/* acquire: pairs with the senders' marks */
	uint64_t marks = atomic_load_explicit(&many->ready->word[word], memory_order_acquire) &
			 ~many->is_hot[word] & of;
	int n = 0;

	for (; marks && n < count; marks &= marks - 1) {
		uint32_t index = word * 64 + (unsigned)__builtin_ctzll(marks);
		const struct cq_member *member = &many->members[index];

		if (!member->qp) {
			atomic_fetch_and_explicit(&many->ready->word[word], ~(marks & -marks),
						  memory_order_relaxed);
			continue;
		}
		many->next = (index + 1) % SV_QPS;
		member_fetch(member->qp);
		many_promote_locked(cq, member);
		n += sv_cq_member_poll_uncounted_locked(member, count - n, wc + n);
	}
	if (marks)
		atomic_fetch_or_explicit(&many->ready->summary, 1ull << word, memory_order_relaxed);
	return n;
}

static int marked_poll_locked(struct sv_cq *cq, int count, struct ibv_wc *wc)
{
	struct cq_many *many = &cq->many;
	uint32_t next = many->next;
	uint64_t summary, words;
	int n = 0;

	many->passed_over = 0;
	if (!atomic_load_explicit(&many->ready->summary, memory_order_relaxed))
		return 0;
	/* acquire: pairs with the senders' marks */
	summary = atomic_exchange_explicit(&many->ready->summary, 0, memory_order_acquire);
	for (int pass = 0; pass < 2; pass++) {
		for (words = turn_words(summary, next, pass); words; words &= words - 1) {
			unsigned word = (unsigned)__builtin_ctzll(words);

			n += word_poll_locked(cq, word, turn_bits(word, next, pass), count - n,
					      wc + n);
		}
	}
	return n;
}

static int hot_poll_locked(struct sv_cq *cq, int count, struct ibv_wc *wc)
{
	uint32_t turn = cq->turn;
	int n = 0;

	for (uint32_t i = 0; i < cq->count && n < count; i++) {
		const struct cq_member *member = &cq->hot[turn];

		if (++turn >= cq->count)
			turn = 0;
		if (!member_is_idle_locked(member))
			n += sv_cq_member_poll_uncounted_locked(member, count - n, wc + n);
	}
	cq->turn = turn;
	return n;
}

/* The hot QPs are first, unless their completions have filled as many polls as there are of them. */
int sv_cq_merge_many_locked(struct sv_cq *cq, int count, struct ibv_wc *wc)
{
	int n = 0;

	if (unlikely(cq->many.passed_over == CQ_HOT))
		n = marked_poll_locked(cq, count, wc);
	n += hot_poll_locked(cq, count - n, wc + n);
	if (n < count)
		return n + marked_poll_locked(cq, count - n, wc + n);
	cq->many.passed_over++;
	return n;
}
