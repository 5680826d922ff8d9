/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* Datagrams on their way to another process: written into a ring that it reads. */
#include <sched.h>
#include <string.h>
#include "softverbs/tx.h"
#include "softverbs/ud.h"
#include "util/clock.h"
#include "util/log.h"

#define RING_MOST  (1u << 20)
#define RING_LEAST (64u << 10) /* when the area fills up */
/*
 * As links with flow control do: a sender that is faster waits a little. First for a poll, then for the
 * engine over there; a process that stands still is not waited for twice.
 */
#define WAIT_POLL   (500 * NSEC_PER_USEC)
#define WAIT_ENGINE (20 * NSEC_PER_MSEC)

static struct ro_outbox *box_of(const struct sv_peer *peer)
{
	return &area_own()->ro->outbox[peer->slot];
}

/* How far it has read; the inbox may still be that of another process which had our slot. */
static uint32_t taken_by(const struct sv_peer *peer)
{
	/* acquire: the bytes were read before they are written again */
	uint64_t taken =
		atomic_load_explicit(&peer->ro->inbox[runtime_slot()].taken, memory_order_acquire);

	return taken >> 32 == mail_tag(peer_self()->nonce) ? (uint32_t)taken : 0;
}

static bool ring_open_locked(struct sv_peer *peer)
{
	struct sv_outbox *out = &peer->outbox;
	struct ro_outbox *box = box_of(peer);
	uint64_t offset;

	out->size = heap_use(HEAP_RO) < 50 ? RING_MOST : RING_LEAST;
	out->ring = heap_take(HEAP_RO, out->size, &offset);
	if (!out->ring) {
		log_at(LOG_WARN, "softverbs: no memory for datagrams to process %d: they are lost",
		       (int)peer->pid);
		return false;
	}
	out->written = out->taken = taken_by(peer);
	atomic_store_explicit(&box->ring, offset, memory_order_relaxed);
	atomic_store_explicit(&box->size, out->size, memory_order_relaxed);
	return true;
}

/* Up to the end of the ring when the datagram does not fit before it. */
static uint32_t skip_before(const struct sv_outbox *out, uint32_t need)
{
	uint32_t at = out->written & (out->size - 1);

	return at + need > out->size ? out->size - at : 0;
}

static bool has_room(struct sv_peer *peer, uint32_t need)
{
	struct sv_outbox *out = &peer->outbox;

	if (out->written + need - out->taken <= out->size)
		return true;
	need += out->written;
	if (taken_by(peer) != out->taken)
		out->stuck = false;
	out->taken = taken_by(peer);
	return need - out->taken <= out->size;
}

static bool wait_for_room(struct sv_peer *peer, uint32_t need)
{
	uint64_t begin = clock_now(), waited = 0;
	bool asked = false;

	while (!has_room(peer, need)) {
		if (peer->outbox.stuck || waited > WAIT_ENGINE) {
			peer->outbox.stuck = true;
			return false;
		}
		if (waited > WAIT_POLL && !asked) {
			asked = true;
			/* release: the ring as it is now */
			atomic_store_explicit(&peer->rw->mail.urgent, 1, memory_order_release);
			peer_ring(peer);
		}
		sched_yield();
		waited = clock_now() - begin;
	}
	return true;
}

static void record_write(struct sv_outbox *out, const struct mail_record *head,
			 const struct iovec *iov, unsigned count)
{
	uint8_t *at = out->ring + (out->written & (out->size - 1));

	memcpy(at, head, sizeof(*head));
	at += sizeof(*head);
	for (unsigned i = 0; i < count; i++) {
		if (iov[i].iov_len)
			memcpy(at, iov[i].iov_base, iov[i].iov_len);
		at += iov[i].iov_len;
	}
}

static bool post_locked(struct sv_peer *peer, const struct mail_record *head,
			const struct iovec *iov, unsigned count)
{
	static const struct mail_record skip = { .kind = MAIL_SKIP };
	uint32_t need = (uint32_t)sizeof(*head) + ((head->length + SV_LINE - 1) & ~(SV_LINE - 1u)),
		 before;
	struct sv_outbox *out = &peer->outbox;

	if (!out->ring && !ring_open_locked(peer))
		return false;
	before = skip_before(out, need);
	if (!wait_for_room(peer, before + need))
		return false;
	if (before) {
		record_write(out, &skip, NULL, 0);
		out->written += before;
	}
	record_write(out, head, iov, count);
	out->written += need;
	/* release: pairs with the reader's acquire */
	atomic_store_explicit(&box_of(peer)->written,
			      (uint64_t)mail_tag(peer->nonce) << 32 | out->written,
			      memory_order_release);
	return true;
}

/* After a fence: the reader takes the bits away, then looks into the ring. */
static void bits_set(struct sv_peer *peer)
{
	uint32_t slot = runtime_slot();
	struct rw_mail *mail = &peer->rw->mail;
	uint64_t bit = 1ull << slot % 64, word = 1ull << slot / 64;

	if (!(atomic_load_explicit(&mail->word[slot / 64], memory_order_relaxed) & bit))
		atomic_fetch_or_explicit(&mail->word[slot / 64], bit, memory_order_release);
	if (!(atomic_load_explicit(&mail->summary, memory_order_relaxed) & word))
		atomic_fetch_or_explicit(&mail->summary, word, memory_order_release);
}

/* The CQ of the receiving queue pair; SV_CQS: nobody receives there. */
static uint32_t cq_of_receiver(const struct sv_peer *peer, uint32_t qpn)
{
	const struct ro_qp *ro = &peer->ro->qp[qp_index_of(qpn)];
	uint32_t cq;

	/* acquire: the rest was written before; a connected QP has a peer */
	if (!atomic_load_explicit(&ro->epoch, memory_order_acquire) ||
	    atomic_load_explicit(&ro->peer, memory_order_relaxed))
		return SV_CQS;
	cq = ro->cq;
	return cq < SV_CQS ? cq : SV_CQS;
}

void mail_post(struct sv_peer *peer, const struct mail_record *head, const struct iovec *iov,
	       unsigned count, bool solicited)
{
	uint32_t cq = cq_of_receiver(peer, head->dest);
	bool posted;

	if (cq == SV_CQS)
		return;
	lock_acquire(&peer->outbox.lock);
	posted = post_locked(peer, head, iov, count);
	lock_release(&peer->outbox.lock);
	if (!posted)
		return;
	fence_full();
	bits_set(peer);
	if (atomic_load_explicit(&peer->rw->cq[cq].mode, memory_order_relaxed) & CQ_MANY)
		tx_mark(peer, cq, qp_index_of(head->dest));
	/* whoever arms polls after that, and finds the bits */
	cq_fire(&peer->rw->cq[cq], peer, cq, solicited);
}
