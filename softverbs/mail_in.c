/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/*
 * Datagrams that other processes wrote for this one: read from their rings in order, by whoever polls a
 * datagram queue pair. What stands there is another process's word: each value is read once and
 * checked.
 */
#include <string.h>
#include "softverbs/ud.h"
#include "util/log.h"

struct reading {
	const struct sv_qp *qp; /* until it has `want` completions; NULL: to the end */
	uint32_t want;
};

bool mail_is_there(void)
{
	struct area *area = area_own();

	/*
	 * acquire, in this order: whoever reads is busy before it takes the bits, and until all of it
	 * is delivered
	 */
	return atomic_load_explicit(&area->rw->mail.summary, memory_order_acquire) ||
	       atomic_load_explicit(&area->mail.busy, memory_order_acquire);
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

/* False: nothing for this process, or nonsense. */
static bool ring_of(const struct sv_peer *peer, struct ring *ring)
{
	const struct ro_outbox *box = &peer->ro->outbox[runtime_slot()];
	/* acquire: pairs with the writer's release */
	uint64_t written = atomic_load_explicit(&box->written, memory_order_acquire);
	uint64_t offset = atomic_load_explicit(&box->ring, memory_order_relaxed);

	if (written >> 32 != mail_tag(peer_self()->nonce))
		return false;
	ring->size = atomic_load_explicit(&box->size, memory_order_relaxed);
	ring->at = peer->inbox_taken;
	ring->end = (uint32_t)written;
	if (ring->size < 2 * sizeof(struct mail_record) || ring->size & (ring->size - 1) ||
	    offset % SV_LINE || offset > peer->ro_size || ring->size > peer->ro_size - offset ||
	    ring->end - ring->at > ring->size || (ring->end | ring->at) % SV_LINE)
		return false;
	ring->base = (const uint8_t *)peer->ro + offset;
	return true;
}

/* The bytes that the next record takes up; 0 when it cannot be right. */
static uint32_t record_next(const struct ring *ring, struct mail_record *head)
{
	uint32_t at = ring->at & (ring->size - 1), room = ring->size - at,
		 there = ring->end - ring->at, size;

	memcpy(head, ring->base + at, sizeof(*head));
	if (head->kind == MAIL_SKIP)
		return room <= there ? room : 0;
	if (head->kind != MAIL_DATAGRAM || head->length > DATAGRAM_MAX)
		return 0;
	size = (uint32_t)sizeof(*head) + ((head->length + SV_LINE - 1) & ~(SV_LINE - 1u));
	return size <= room && size <= there ? size : 0;
}

static void ring_nonsense(const struct sv_peer *peer)
{
	log_at(LOG_ERROR, "softverbs: process %d: its datagrams make no sense", (int)peer->pid);
}

/* True when something is left in the ring. */
static bool peer_read_locked(struct sv_peer *peer, const struct reading *reading)
{
	struct mail_record head;
	struct ring ring;

	if (!ring_of(peer, &ring))
		return false;
	while (ring.at != ring.end && !enough(reading)) {
		const uint8_t *data =
			ring.base + (ring.at & (ring.size - 1)) + sizeof(struct mail_record);
		uint32_t size = record_next(&ring, &head);
		struct iovec iov = { (void *)(uintptr_t)data, head.length };

		if (!size) {
			ring_nonsense(peer);
			ring.at = ring.end;
			break;
		}
		if (head.kind == MAIL_DATAGRAM)
			ud_deliver_locked(&head, &iov, 1, !reading->qp, true);
		ring.at += size;
	}
	peer->inbox_taken = ring.at;
	/* release: the bytes were read before the writer uses them again */
	atomic_store_explicit(&area_own()->ro->inbox[peer->slot].taken,
			      (uint64_t)mail_tag(peer->nonce) << 32 | ring.at,
			      memory_order_release);
	return ring.at != ring.end;
}

/* ---- all of them ---- */

static void bit_put_back(uint32_t slot)
{
	struct rw_mail *rw = &area_own()->rw->mail;

	atomic_fetch_or_explicit(&rw->word[slot / 64], 1ull << slot % 64, memory_order_relaxed);
	atomic_fetch_or_explicit(&rw->summary, 1ull << slot / 64, memory_order_release);
}

static void word_read_locked(uint32_t w, const struct reading *reading)
{
	struct area *area = area_own();
	/* full order: the bits are taken before the rings are looked into */
	uint64_t bits = atomic_exchange(&area->rw->mail.word[w], 0);

	for (; bits; bits &= bits - 1) {
		uint32_t slot = w * 64 + (uint32_t)__builtin_ctzll(bits);
		struct sv_peer *peer = area->mail.from[slot];

		/* without a peer the link is just being made: mail_peer_ready reads it */
		if (peer && peer_read_locked(peer, reading))
			bit_put_back(slot);
	}
}

static void read_locked(const struct reading *reading)
{
	struct area *area = area_own();
	uint64_t summary;

	if (enough(reading))
		return;
	pthread_rwlock_rdlock(&area->serve_lock); /* see region_withdraw */
	atomic_store_explicit(&area->mail.busy, true, memory_order_relaxed);
	summary = atomic_exchange(&area->rw->mail.summary, 0);
	for (; summary; summary &= summary - 1)
		word_read_locked((uint32_t)__builtin_ctzll(summary), reading);
	/* release: what was delivered is there */
	atomic_store_explicit(&area->mail.busy, false, memory_order_release);
	pthread_rwlock_unlock(&area->serve_lock);
}

void mail_read(const struct sv_qp *qp, uint32_t want)
{
	const struct reading reading = { .qp = qp, .want = want };
	struct mail *mail = &area_own()->mail;

	lock_acquire(&mail->lock);
	read_locked(&reading);
	lock_release(&mail->lock);
}

void mail_attend(void)
{
	static const struct reading all = { 0 };
	struct area *area = area_own();

	/* acquire: pairs with wait_for_room */
	if (!atomic_load_explicit(&area->rw->mail.urgent, memory_order_relaxed) ||
	    !atomic_exchange_explicit(&area->rw->mail.urgent, 0, memory_order_acquire))
		return;
	lock_acquire(&area->mail.lock);
	read_locked(&all);
	lock_release(&area->mail.lock);
}

/* ---- processes ---- */

static void peer_read_all_locked(struct sv_peer *peer)
{
	static const struct reading all = { 0 };

	pthread_rwlock_rdlock(&area_own()->serve_lock);
	peer_read_locked(peer, &all);
	pthread_rwlock_unlock(&area_own()->serve_lock);
}

/* It may have written before it was known here. */
void mail_peer_ready(struct sv_peer *peer)
{
	struct area *area = area_own();
	uint64_t taken =
		atomic_load_explicit(&area->ro->inbox[peer->slot].taken, memory_order_relaxed);

	lock_acquire(&area->mail.lock);
	peer->inbox_taken = taken >> 32 == mail_tag(peer->nonce) ? (uint32_t)taken : 0;
	area->mail.from[peer->slot] = peer;
	peer_read_all_locked(peer);
	lock_release(&area->mail.lock);
}

void mail_peer_gone(struct sv_peer *peer)
{
	struct area *area = area_own();

	lock_acquire(&area->mail.lock);
	if (area->mail.from[peer->slot] == peer) {
		peer_read_all_locked(peer);
		area->mail.from[peer->slot] = NULL;
	}
	lock_release(&area->mail.lock);
}

/* Nobody else knows it any more. */
void mail_peer_free(struct sv_peer *peer)
{
	struct area *area = area_own();

	lock_acquire(&area->mail.lock);
	if (area->mail.from[peer->slot] == peer)
		area->mail.from[peer->slot] = NULL;
	lock_release(&area->mail.lock);
	heap_give(HEAP_RO, peer->outbox.ring, peer->outbox.size);
}
