/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* Sends datagrams to another process: writes them into a ring that the process reads. */
#include <sched.h>
#include <string.h>
#include "softverbs/rc/remote_rq.h"
#include "softverbs/ud/ud.h"
#include "util/clock.h"
#include "util/log.h"

#define RING_MOST  (1u << 20)
#define RING_LEAST (64u << 10) /* when the area is half full */
/*
 * As on a link with flow control, a sender that is too fast waits a little: first for a poll of
 * the reader, then for the reader's engine. The sender does not wait a second time for a process
 * that has stopped.
 */
#define WAIT_POLL   (500 * NSEC_PER_USEC)
#define WAIT_ENGINE (20 * NSEC_PER_MSEC)

static struct outbox_by_owner *box_of(const struct sv_peer *peer)
{
	return &sv_area_own()->by_owner->outbox[peer->slot];
}

/*
 * How far the peer has read. The inbox may still be that of an earlier process with this
 * process's number.
 */
static uint32_t read_by(const struct sv_peer *peer)
{
	/* acquire: the bytes were read before they are overwritten; pairs with peer_read_locked */
	uint64_t taken = atomic_load_explicit(&peer->by_owner->inbox[sv_runtime_peer_id()].taken,
					      memory_order_acquire);

	return taken >> 32 == ud_ring_tag(sv_peer_self()->nonce) ? (uint32_t)taken : 0;
}

static bool ring_open_locked(struct sv_peer *peer)
{
	struct sv_outbox *out = &peer->outbox;
	struct outbox_by_owner *box = box_of(peer);
	uint64_t offset;

	out->size = sv_heap_use(HEAP_BY_OWNER) < 50 ? RING_MOST : RING_LEAST;
	out->ring = sv_heap_alloc(HEAP_BY_OWNER, out->size, &offset);
	if (!out->ring) {
		log_at(LOG_WARN, "softverbs: no memory for datagrams to process %d: they are lost",
		       (int)peer->pid);
		return false;
	}
	out->written = out->taken = read_by(peer);
	atomic_store_explicit(&box->ring, offset, memory_order_relaxed);
	atomic_store_explicit(&box->size, out->size, memory_order_relaxed);
	return true;
}

/* The bytes to skip up to the end of the ring, if the datagram does not fit before it; else 0. */
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
	if (read_by(peer) != out->taken)
		out->stuck = false;
	out->taken = read_by(peer);
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
			/* release: the ring is written before; pairs with sv_ud_ring_attend */
			atomic_store_explicit(&peer->by_peers->ud_ring.urgent, 1,
					      memory_order_release);
			sv_peer_ring(peer);
		}
		sched_yield();
		waited = clock_now() - begin;
	}
	return true;
}

static void record_write(struct sv_outbox *out, const struct ud_ring_record *head,
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

static bool ud_ring_out_post_locked(struct sv_peer *peer, const struct ud_ring_record *head,
				    const struct iovec *iov, unsigned count)
{
	static const struct ud_ring_record skip = { .kind = UD_RING_SKIP };
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
	/* release: pairs with the acquire of ring_of */
	atomic_store_explicit(&box_of(peer)->written,
			      (uint64_t)ud_ring_tag(peer->nonce) << 32 | out->written,
			      memory_order_release);
	return true;
}

/*
 * Sets the bits of this process at the reader, after fence_full: the reader clears the bits, then
 * reads the ring.
 */
static void bits_set(struct sv_peer *peer)
{
	uint32_t slot = sv_runtime_peer_id();
	struct ud_ring_by_peers *ud_ring = &peer->by_peers->ud_ring;
	uint64_t bit = 1ull << slot % 64, word = 1ull << slot / 64;

	if (!(atomic_load_explicit(&ud_ring->word[slot / 64], memory_order_relaxed) & bit))
		atomic_fetch_or_explicit(&ud_ring->word[slot / 64], bit, memory_order_release);
	if (!(atomic_load_explicit(&ud_ring->summary, memory_order_relaxed) & word))
		atomic_fetch_or_explicit(&ud_ring->summary, word, memory_order_release);
}

/* The index of the receive CQ of the destination QP; SV_CQS if no such QP receives. */
static uint32_t cq_of_receiver(const struct sv_peer *peer, uint32_t qpn)
{
	const struct qp_by_owner *by_owner = &peer->by_owner->qp[qp_index_of(qpn)];
	uint32_t cq;

	/* acquire: the owner wrote the rest before; a connected QP has a peer */
	if (!atomic_load_explicit(&by_owner->epoch, memory_order_acquire) ||
	    atomic_load_explicit(&by_owner->peer, memory_order_relaxed))
		return SV_CQS;
	cq = by_owner->cq;
	return cq < SV_CQS ? cq : SV_CQS;
}

void sv_ud_ring_post(struct sv_peer *peer, const struct ud_ring_record *head,
		     const struct iovec *iov, unsigned count, bool solicited)
{
	uint32_t cq = cq_of_receiver(peer, head->dest);
	bool posted;

	if (cq == SV_CQS)
		return;
	lock_acquire(&peer->outbox.lock);
	posted = ud_ring_out_post_locked(peer, head, iov, count);
	lock_release(&peer->outbox.lock);
	if (!posted)
		return;
	fence_full();
	bits_set(peer);
	if (atomic_load_explicit(&peer->by_peers->cq[cq].mode, memory_order_relaxed) & CQ_MANY)
		sv_remote_rq_mark(peer, cq, qp_index_of(head->dest));
	/* a waiter arms, then polls, and finds the bits */
	cq_fire(&peer->by_peers->cq[cq], peer, cq, solicited);
}
