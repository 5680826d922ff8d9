/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/*
 * Messages that were not polled yet: whether there are any, and copies of their payload when no thread polls, or when the
 * consumer deregisters their memory.
 */
#include "softverbs/rc/arrival.h"
#include "softverbs/rc/land.h"
#include "softverbs/rc/memory.h"
#include "softverbs/object/path.h"
#include "softverbs/object/srq.h"

/* The last bytes after the others: a program may wait for them. */
static bool last_copy(struct iovec at, const uint8_t *data)
{
	size_t unit = memory_polled(&at);
	struct iovec end = { (uint8_t *)at.iov_base + at.iov_len - unit, unit };

	at.iov_len -= unit;
	return (!at.iov_len || sv_memory_copy(&at, (uint8_t *)(uintptr_t)data, true)) &&
	       sv_memory_store(&end, (uint8_t *)(uintptr_t)data + at.iov_len);
}

/* Copies by the kernel: a consumer may have unmapped the memory before it deregisters it. */
static bool payload_copy(const struct sv_wq *wq, uint32_t slot, const uint8_t *data,
			 uint32_t length)
{
	const struct ibv_sge *sge = &wq->sge[(uint64_t)slot * wq->max_sge],
			     *end = sge + wq->max_sge;

	for (; length && sge < end; sge++) {
		struct iovec at = { .iov_len = sge->length < length ? sge->length : length };
		uint64_t va;

		if (!at.iov_len)
			continue;
		if (!region_accepts(wq->regions, sge->lkey, wq->pd, sge->addr, at.iov_len, &va))
			return false;
		at.iov_base = (void *)(uintptr_t)va;
		if (at.iov_len == length ? !last_copy(at, data)
					 : !sv_memory_copy(&at, (uint8_t *)(uintptr_t)data, true))
			return false;
		data += at.iov_len;
		length -= (uint32_t)at.iov_len;
	}
	return !length;
}

/*
 * Turns a message with payload into one whose sender has copied it directly, or whose sender
 * found the memory invalid. A malformed message is left to the poll, which reports it.
 */
static void arrival_land(struct sv_qp *qp, const struct sv_wq *wq, uint32_t slot)
{
	struct rx_slot *rx_slot = &wq->rx_slot[slot];
	uint64_t head = atomic_load_explicit(&rx_slot->head, memory_order_relaxed),
		 what = atomic_load_explicit(&rx_slot->what, memory_order_relaxed);
	uint32_t length = (uint32_t)(head >> 32), op = what & 0xff, where = what >> 8 & 0xff, at;
	uint8_t whole[SV_INLINE];
	const uint8_t *data;
	bool landed;

	if (op != RX_SEND && op != RX_SEND_IMM && op != RX_SEND_INV)
		return;
	if (where == RX_INLINE && length <= SV_INLINE) {
		land_copy(wq, slot, whole, length);
		landed = payload_copy(wq, slot, whole, length);
	} else if (where == RX_EAGER) {
		at = atomic_load_explicit(&rx_slot->eager, memory_order_relaxed);
		data = land_eager(&qp->rx, at, length);
		if (!data)
			return;
		landed = payload_copy(wq, slot, data, length);
		land_eager_done(qp, at, length);
	} else {
		return;
	}
	if (!landed) {
		atomic_store_explicit(&rx_slot->head,
				      (uint64_t)IBV_WC_LOC_PROT_ERR << 32 | (uint32_t)head,
				      memory_order_relaxed);
		op = RX_ERROR;
	}
	atomic_store_explicit(&rx_slot->what,
			      rx_slot_what((enum rx_slot_op)op, RX_DIRECT, (uint32_t)(what >> 32)),
			      memory_order_relaxed);
}

static bool arrival_find(const struct sv_rx *rx, uint32_t n, uint32_t *slot)
{
	uint32_t arrival;

	if (!rx->arrival) {
		*slot = n & rx->mask;
		/* acquire: pairs with message_publish */
		return (uint32_t)atomic_load_explicit(&rx->rx_slot[*slot].head,
						      memory_order_acquire) == n + 1;
	}
	arrival = atomic_load_explicit(&rx->arrival[n & rx->mask], memory_order_acquire);
	*slot = arrival & 0xffff;
	return arrival >> 16 == (ring_lap(n, rx->shift) & 0xffff) && *slot <= rx->mask;
}

uint32_t sv_arrivals_end_locked(const struct sv_qp *qp)
{
	uint32_t n = atomic_load_explicit(&qp->rx.head, memory_order_relaxed), end, slot;

	for (end = n + qp->rx.mask + 1; n != end && arrival_find(&qp->rx, n, &slot);)
		n++;
	return n;
}

static bool arrivals_wait(struct sv_qp *qp)
{
	uint32_t slot;
	bool wait;

	lock_acquire(&qp->recv_cq->lock);
	wait = qp->rx.datagrams
		       ? qp->ops->has_arrived(qp, 0)
		       : arrival_find(&qp->rx,
				      atomic_load_explicit(&qp->rx.head, memory_order_relaxed),
				      &slot);
	lock_release(&qp->recv_cq->lock);
	return wait;
}

bool sv_arrivals_wait(uint32_t qpn)
{
	struct sv_qp *qp = sv_qp_pin(qp_index_of(qpn));
	bool wait;

	if (!qp)
		return false;
	wait = qp->ibv.qp_num == qpn && arrivals_wait(qp);
	sv_qp_unpin(qp);
	return wait;
}

bool sv_answers_wait(uint32_t qpn)
{
	struct sv_qp *qp = sv_qp_pin(qp_index_of(qpn));
	bool wait;

	if (!qp)
		return false;
	lock_acquire(&qp->sq.lock);
	wait = qp->ibv.qp_num == qpn && path_is_begun_locked(qp);
	lock_release(&qp->sq.lock);
	sv_qp_unpin(qp);
	return wait;
}

/* Copies each message once, in order, because the bytes of the eager ring are returned in order. */
static uint32_t qp_land_locked(struct sv_qp *qp, const struct sv_wq *wq, uint32_t most)
{
	struct sv_rx *rx = &qp->rx;
	uint32_t head = atomic_load_explicit(&rx->head, memory_order_relaxed), end, slot, n;

	if ((int32_t)(rx->landed - head) < 0)
		rx->landed = head;
	end = head + rx->mask + 1;
	for (n = 0; n < most && rx->landed != end; n++, rx->landed++) {
		if (!arrival_find(rx, rx->landed, &slot))
			break;
		/* acquire: the SGEs, which another thread may have posted, are written */
		if (qp->srq)
			atomic_load_explicit(&qp->srq->by_owner->posted, memory_order_acquire);
		else
			wq_entry(wq, rx->landed);
		arrival_land(qp, wq, slot);
	}
	return n;
}

static uint32_t land_served_locked(struct sv_qp *qp, const struct sv_wq *wq, uint32_t most)
{
	struct area *area = sv_area_own();
	uint32_t n;

	pthread_rwlock_rdlock(&area->serve_lock); /* see sv_still_begin */
	n = qp_land_locked(qp, wq, most);
	pthread_rwlock_unlock(&area->serve_lock);
	return n;
}

uint32_t sv_arrivals_land_locked(struct sv_qp *qp, uint32_t most)
{
	if (qp->ud)
		return 0;
	return land_served_locked(qp, qp->srq ? &qp->srq->wq : &qp->rq, most);
}

void sv_arrivals_land(uint32_t pd)
{
	struct area *area = sv_area_own();
	uint32_t last;

	pthread_mutex_lock(&area->qps.lock);
	last = area->qps.fresh - 1; /* identifiers begin with 1, indices with 0 */
	pthread_mutex_unlock(&area->qps.lock);
	for (uint32_t index = 0; index < last; index++) {
		struct sv_qp *qp = sv_qp_pin(index);
		const struct sv_wq *wq;

		if (!qp)
			continue;
		wq = qp->srq ? &qp->srq->wq : &qp->rq;
		if (wq->pd == pd && !qp->ud) {
			lock_acquire(&qp->recv_cq->lock);
			land_served_locked(qp, wq, UINT32_MAX);
			lock_release(&qp->recv_cq->lock);
		}
		sv_qp_unpin(qp);
	}
}
