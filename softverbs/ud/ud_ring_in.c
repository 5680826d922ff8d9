/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/*
 * Reads the datagrams that other processes wrote for this one, from their rings, in order. A poll
 * of a datagram QP or the engine does so. Another process may write any value there: each is read
 * once and checked.
 */
#include <string.h>
#include "softverbs/base/turn.h"
#include "softverbs/ud/ud.h"
#include "util/log.h"

struct reading {
	const struct sv_qp *qp; /* read until it has `want` completions; NULL: read all */
	uint32_t want;
};

bool sv_ud_ring_is_filled(void)
{
	struct area *area = sv_area_own();

	/*
	 * acquire, in this order: a reader sets `busy` before it clears the bits, until all
	 * datagrams are delivered
	 */
	return atomic_load_explicit(&area->by_peers->ud_ring.summary, memory_order_acquire) ||
	       atomic_load_explicit(&area->ud_ring.busy, memory_order_acquire);
}

static bool enough(const struct reading *reading)
{
	const struct sv_qp *qp = reading->qp;

	return qp && (int32_t)(atomic_load_explicit(&qp->ud->taken, memory_order_relaxed) -
			       atomic_load_explicit(&qp->rx.head, memory_order_relaxed)) >=
			     (int32_t)reading->want;
}

/* ---- one ring ---- */

struct ring {
	const uint8_t *base;
	uint32_t size, at, end; /* free-running */
};

/* False if there is nothing for this process, or the numbers are invalid. */
static bool ring_of(struct sv_peer *peer, struct ring *ring)
{
	const struct outbox_by_owner *box = &peer->by_owner->outbox[sv_runtime_peer_id()];
	/* acquire: pairs with ud_ring_out_post_locked */
	uint64_t written = atomic_load_explicit(&box->written, memory_order_acquire);
	uint64_t offset = atomic_load_explicit(&box->ring, memory_order_relaxed);

	if (written >> 32 != ud_ring_tag(sv_peer_self()->nonce))
		return false;
	ring->size = atomic_load_explicit(&box->size, memory_order_relaxed);
	ring->at = peer->inbox_taken;
	ring->end = (uint32_t)written;
	if (ring->size < 2 * sizeof(struct ud_ring_record) || ring->size & (ring->size - 1) ||
	    ring->end - ring->at > ring->size || (ring->end | ring->at) % SV_LINE)
		return false;
	ring->base = sv_area_at(peer, HEAP_BY_OWNER, offset, ring->size);
	return ring->base;
}

/* The size of the next record in bytes; 0 if the record is invalid. */
static uint32_t record_next(const struct ring *ring, struct ud_ring_record *head)
{
	uint32_t at = ring->at & (ring->size - 1), room = ring->size - at,
		 there = ring->end - ring->at, size;

	memcpy(head, ring->base + at, sizeof(*head));
	if (head->kind == UD_RING_SKIP)
		return room <= there ? room : 0;
	if (head->kind != UD_RING_DATAGRAM || head->length > DATAGRAM_MAX)
		return 0;
	size = (uint32_t)sizeof(*head) + ((head->length + SV_LINE - 1) & ~(SV_LINE - 1u));
	return size <= room && size <= there ? size : 0;
}

static void ring_nonsense(const struct sv_peer *peer)
{
	log_at(LOG_ERROR, "softverbs: process %d: malformed datagrams", (int)peer->pid);
}

/* Reads the peer's ring. True if datagrams are left in it. */
static bool peer_read_locked(struct sv_peer *peer, const struct reading *reading)
{
	struct ud_ring_record head;
	struct ring ring;

	if (!ring_of(peer, &ring))
		return false;
	while (ring.at != ring.end && !enough(reading)) {
		const uint8_t *data =
			ring.base + (ring.at & (ring.size - 1)) + sizeof(struct ud_ring_record);
		uint32_t size = record_next(&ring, &head);
		struct iovec iov = { (void *)(uintptr_t)data, head.length };

		if (!size) {
			ring_nonsense(peer);
			ring.at = ring.end;
			break;
		}
		if (head.kind == UD_RING_DATAGRAM)
			sv_ud_deliver_locked(&head, &iov, 1, !reading->qp, true);
		ring.at += size;
	}
	peer->inbox_taken = ring.at;
	/* release: the bytes were read before; pairs with taken_by */
	atomic_store_explicit(&sv_area_own()->by_owner->inbox[peer->slot].taken,
			      (uint64_t)ud_ring_tag(peer->nonce) << 32 | ring.at,
			      memory_order_release);
	return ring.at != ring.end;
}

/* ---- all rings ---- */

static void bits_put_back(uint32_t w, uint64_t bits)
{
	struct ud_ring_by_peers *by_peers = &sv_area_own()->by_peers->ud_ring;

	atomic_fetch_or_explicit(&by_peers->word[w], bits, memory_order_relaxed);
	atomic_fetch_or_explicit(&by_peers->summary, 1ull << w, memory_order_release);
}

/* Reads those rings of a word that are in `of`, until it is enough. */
static void word_read_locked(uint32_t w, uint64_t of, const struct reading *reading)
{
	struct area *area = sv_area_own();
	/*
	 * full order: the bits are cleared before the rings are read; pairs with fence_full
	 * before bits_set
	 */
	uint64_t bits = atomic_fetch_and(&area->by_peers->ud_ring.word[w], ~of) & of, left = 0;

	for (; bits && !enough(reading); bits &= bits - 1) {
		uint32_t slot = w * 64 + (uint32_t)__builtin_ctzll(bits);
		struct sv_peer *peer = area->ud_ring.from[slot];

		area->ud_ring.next = (slot + 1) % SV_PEERS;
		/*
		 * without a peer the link is being set up, and sv_ud_ring_peer_ready reads the
		 * ring
		 */
		if (peer && peer_read_locked(peer, reading))
			left |= bits & -bits;
	}
	if (bits | left)
		bits_put_back(w, bits | left);
}

static void read_locked(const struct reading *reading)
{
	struct area *area = sv_area_own();
	uint32_t next = area->ud_ring.next;
	uint64_t summary, words;

	if (enough(reading))
		return;
	pthread_rwlock_rdlock(&area->serve_lock); /* see sv_region_quiesce */
	atomic_store_explicit(&area->ud_ring.busy, true, memory_order_relaxed);
	summary = atomic_exchange(&area->by_peers->ud_ring.summary, 0);
	for (int pass = 0; pass < 2; pass++) {
		for (words = turn_words(summary, next, pass); words; words &= words - 1) {
			uint32_t w = (uint32_t)__builtin_ctzll(words);

			word_read_locked(w, turn_bits(w, next, pass), reading);
		}
	}
	/* release: the deliveries are visible; pairs with sv_ud_ring_is_filled */
	atomic_store_explicit(&area->ud_ring.busy, false, memory_order_release);
	pthread_rwlock_unlock(&area->serve_lock);
}

void sv_ud_ring_read(const struct sv_qp *qp, uint32_t want)
{
	const struct reading reading = { .qp = qp, .want = want };
	struct ud_ring *ud_ring = &sv_area_own()->ud_ring;

	lock_acquire(&ud_ring->lock);
	read_locked(&reading);
	lock_release(&ud_ring->lock);
}

void sv_ud_ring_attend(void)
{
	static const struct reading all = { 0 };
	struct area *area = sv_area_own();

	/* acquire: pairs with wait_for_room */
	if (!atomic_load_explicit(&area->by_peers->ud_ring.urgent, memory_order_relaxed) ||
	    !atomic_exchange_explicit(&area->by_peers->ud_ring.urgent, 0, memory_order_acquire))
		return;
	lock_acquire(&area->ud_ring.lock);
	read_locked(&all);
	lock_release(&area->ud_ring.lock);
}

/* ---- processes ---- */

static void peer_read_all_locked(struct sv_peer *peer)
{
	static const struct reading all = { 0 };

	pthread_rwlock_rdlock(&sv_area_own()->serve_lock);
	peer_read_locked(peer, &all);
	pthread_rwlock_unlock(&sv_area_own()->serve_lock);
}

/* The peer may have written before the link was ready. */
void sv_ud_ring_peer_ready(struct sv_peer *peer)
{
	struct area *area = sv_area_own();
	uint64_t taken = atomic_load_explicit(&area->by_owner->inbox[peer->slot].taken,
					      memory_order_relaxed);

	lock_acquire(&area->ud_ring.lock);
	peer->inbox_taken = taken >> 32 == ud_ring_tag(peer->nonce) ? (uint32_t)taken : 0;
	area->ud_ring.from[peer->slot] = peer;
	peer_read_all_locked(peer);
	lock_release(&area->ud_ring.lock);
}

void sv_ud_ring_peer_gone(struct sv_peer *peer)
{
	struct area *area = sv_area_own();

	lock_acquire(&area->ud_ring.lock);
	if (area->ud_ring.from[peer->slot] == peer) {
		peer_read_all_locked(peer);
		area->ud_ring.from[peer->slot] = NULL;
	}
	lock_release(&area->ud_ring.lock);
}

/* No other thread refers to the peer any more. */
void sv_ud_ring_peer_free(struct sv_peer *peer)
{
	struct area *area = sv_area_own();

	lock_acquire(&area->ud_ring.lock);
	if (area->ud_ring.from[peer->slot] == peer)
		area->ud_ring.from[peer->slot] = NULL;
	lock_release(&area->ud_ring.lock);
	sv_heap_free(HEAP_BY_OWNER, peer->outbox.ring, peer->outbox.size);
}
