/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* Dequeues many events in one call, and counts pending events. */
#include "dapl/udapl/evd/evd_take.h"
#include "dapl/udapl/evd/evd.h"

/*
 * Converts a run of polled completions that are plain successes of `ring`, the EVD's cached ring. Work
 * that is the same for all of them is done once.
 */
static inline __attribute__((always_inline)) DAT_COUNT take_run_of(struct dapl_evd *evd,
								   struct dto_ring *ring,
								   enum dto_side side,
								   DAT_COUNT max, DAT_EVENT *events)
{
	struct ib_cq_store *store = ib_cq_store(evd->cq);
	uint32_t count = store->left < (uint32_t)max ? store->left : (uint32_t)max;
	const struct ib_completion *next = store->next, *end = next + count;
	const struct dto_slot *slot, *slots = ring->slots;
	uint64_t index, base = ring->base, bytes = 0;
	struct obj *ep = ring->ep;
	uint32_t mask = ring->mask, length;

	for (; next < end; next++) {
		index = next->wr_id ^ base;
		if (__builtin_expect(index > mask, 0))
			break;
		slot = &slots[index];
		if (!dto_is_fast(slot, next))
			break;
		length = side == DTO_RECV ? next->byte_len : dto_length_fast(slot, next);
		bytes += length;
		dto_fill(evd, ep, slot->cookie, DAT_DTO_SUCCESS, length,
			 side == DTO_RECV ? DAT_DTO_RECEIVE : slot->operation, 0, events++);
	}
	count = (uint32_t)(next - store->next);
	if (!count)
		return 0;
	store->next = next;
	store->left -= count;
	if (side == DTO_RECV)
		dto_count_received(ep, DCNT_EP_RECV, count, bytes);
	dto_retire(ring, (uint32_t)(next[-1].wr_id ^ base));
	return (DAT_COUNT)count;
}

static __attribute__((noinline)) DAT_COUNT take_run_locked(struct dapl_evd *evd, DAT_COUNT max,
							   DAT_EVENT *events)
{
	struct dto_ring *ring = evd->last_ring;

	/* acquire: pairs with the release of `posted` by the poster; the slots are as they were posted */
	atomic_load_explicit(&ring->posted, memory_order_acquire);
	if (dto_id_side(ring->base) == DTO_RECV)
		return take_run_of(evd, ring, DTO_RECV, max, events);
	return take_run_of(evd, ring, DTO_REQUEST, max, events);
}

/* The fast path, for as long as the EVD's `state` is 0. */
static DAT_COUNT take_fast_locked(struct dapl_evd *evd, DAT_COUNT max, DAT_EVENT *events)
{
	DAT_COUNT count = 0, run;

	while (count < max && !(evd->state)) {
		if (ib_cq_store_is_empty(evd->cq) && !evd_cq_fill_locked(evd))
			break;
		run = take_run_locked(evd, max - count, &events[count]);
		if (!run && !evd_take_fast_locked(evd, &events[count]))
			break;
		count += run ? run : 1;
	}
	return count;
}

/*
 * Takes the events that repeated dequeues would return, until one would return none. Returns their
 * number.
 */
static DAT_COUNT take_many_locked(struct dapl_evd *evd, DAT_COUNT max, DAT_EVENT *events)
{
	DAT_COUNT count = 0;

	for (;;) {
		count += take_fast_locked(evd, max - count, &events[count]);
		/* The ring may hold events, or the CQ may have failed. */
		if (count == max || !(evd->state || ib_cq_failed(evd->cq)) ||
		    !evd_take_locked(evd, &events[count]))
			return count;
		count++;
	}
}

static DAT_RETURN dequeue_many_locked(struct dapl_evd *evd, DAT_COUNT max, DAT_EVENT *events,
				      DAT_COUNT *count)
{
	if (!(evd->state & EVD_WAITED))
		*count = take_many_locked(evd, max, events);
	if (*count)
		return DAT_SUCCESS;
	/* Returns the status that says why there is no event. */
	if (evd->state)
		return evd_dequeue_slow_locked(evd, events);
	return DAT_QUEUE_EMPTY; /* no failure: without a class */
}

DAT_RETURN ext_evd_dequeue_n(DAT_HANDLE handle, va_list args)
{
	DAT_COUNT max = va_arg(args, DAT_COUNT);
	DAT_EVENT *events = va_arg(args, DAT_EVENT *);
	DAT_COUNT *n = va_arg(args, DAT_COUNT *), count = 0;
	struct dapl_evd *evd = handle;
	DAT_RETURN status;

	if (max < 1)
		return DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG3);
	if (!events)
		return DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG4);
	if (!n)
		return DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG5);

	lock_acquire(&evd->lock);
	status = dequeue_many_locked(evd, max, events, &count);
	/*
	 * The first event may have been held back until the last poll found it; `count` is still 0
	 * then.
	 */
	count += status == DAT_SUCCESS && !count;
	if (status == DAT_SUCCESS)
		evd->counters.value[DCNT_EVD_DEQUEUE_FOUND] += (uint64_t)count;
	else
		evd_tally_locked(evd, DCNT_EVD_DEQUEUE_NOT_FOUND);
	evd_unlock(evd);
	if (status == DAT_SUCCESS || status == DAT_QUEUE_EMPTY)
		*n = count;
	return status;
}

DAT_RETURN ext_evd_pending(DAT_HANDLE handle, va_list args)
{
	DAT_COUNT *n = va_arg(args, DAT_COUNT *), count;
	struct dapl_evd *evd = handle;

	if (!n)
		return DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG3);
	lock_acquire(&evd->lock);
	if (!(evd->state & EVD_WAITED))
		evd_drain_locked(evd);
	count = evd_count_locked(evd);
	if (count > evd->qlen)
		count = evd->qlen;
	evd_unlock(evd);
	*n = count;
	return DAT_SUCCESS;
}
