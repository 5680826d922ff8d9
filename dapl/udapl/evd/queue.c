/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* The queue of an EVD: events enter it from the CQ and from software, and leave it in DAT's order. */
#include "dapl/udapl/evd/evd_take.h"
#include "dapl/udapl/base/provider.h"

DAT_COUNT evd_count_locked(const struct dapl_evd *evd)
{
	return (DAT_COUNT)(evd->tail - evd->head);
}

/* ---- from the CQ ---- */

/* The slow path: for a failed CQ, or an EVD whose completions may be held back for a connection event. */
static __attribute__((noinline)) const struct ib_completion *next_slow(struct dapl_evd *evd)
{
	const struct ib_completion *completion;

	if (evd->state & EVD_HOLDING) {
		evd_set_locked(evd, EVD_HOLDING, dto_is_early(evd, &evd->held));
		return evd->state & EVD_HOLDING ? NULL : &evd->held;
	}
	completion = evd->state & EVD_BROKEN ? NULL : evd_cq_next_locked(evd);
	if (!completion) {
		if (!(evd->state & EVD_BROKEN) && ib_cq_failed(evd->cq)) {
			evd->state |= EVD_BROKEN;
			evd->due |= EVD_DUE_BROKEN;
		}
		return NULL;
	}
	if (evd->state & EVD_MERGED && dto_is_early(evd, completion)) {
		evd->held = *completion;
		evd->state |= EVD_HOLDING;
		return NULL;
	}
	return completion;
}

/* Returns the next completion that may be delivered now, or NULL. */
static inline const struct ib_completion *next_locked(struct dapl_evd *evd)
{
	const struct ib_completion *completion = NULL;

	if (__builtin_expect(!(evd->state & (EVD_BROKEN | EVD_MERGED)), 1))
		completion = evd_cq_next_locked(evd);
	if (__builtin_expect(completion != NULL, 1))
		return completion;
	return evd->state & (EVD_BROKEN | EVD_MERGED) || ib_cq_failed(evd->cq) ? next_slow(evd)
									       : NULL;
}

static inline bool has_room_locked(const struct dapl_evd *evd)
{
	return evd->tail - evd->head - evd->software < evd->completions_max;
}

static void drain_locked(struct dapl_evd *evd)
{
	const struct ib_completion *completion;
	struct evd_entry *entry;
	unsigned made;

	for (;;) {
		if (!has_room_locked(evd)) {
			/* The completion that the waiter waits for may still be in the CQ. */
			evd->notes |= EVD_MAY_RETURN | EVD_PENDING;
			return;
		}
		completion = next_locked(evd);
		if (!completion)
			return;
		entry = &evd->ring[evd->tail & evd->ring_mask];
		made = dto_complete(evd, completion, &entry->event);
		entry->software = false;
		entry->srq_id = made & DTO_SLOT ? completion->wr_id : 0;
		evd->tail += made & DTO_EVENT;
		evd->state |= made & DTO_EVENT ? EVD_QUEUED : 0;
		evd->notes |= made & DTO_NOTIFY ? EVD_MAY_RETURN | EVD_PENDING : 0;
		if (made == DTO_SLOT)
			dto_pool_return(entry->srq_id, false);
		else if (entry->srq_id)
			dto_pool_ready(entry->srq_id);
	}
}

void evd_drain_locked(struct dapl_evd *evd)
{
	if (evd->cq)
		drain_locked(evd);
}

bool evd_drain(struct dapl_evd *evd)
{
	bool wake, empty;

	lock_acquire(&evd->lock);
	evd_drain_locked(evd);
	empty = has_room_locked(evd) && !(evd->state & EVD_HOLDING);
	wake = evd_wakes_locked(evd);
	evd_unlock(evd);
	if (wake)
		wakefd_raise(&evd->wake);
	return empty;
}

/* Puts the oldest outstanding slot of the ring into the drained CQ, if the queue takes its event. */
static bool flush_oldest_locked(struct dapl_evd *evd, struct dto_ring *ring, uint32_t qp_num)
{
	uint32_t oldest = atomic_load_explicit(&ring->retired, memory_order_relaxed);

	if (!dto_ring_outstanding(ring) || !has_room_locked(evd) ||
	    evd->state & (EVD_HOLDING | EVD_BROKEN))
		return false;
	ib_cq_put_flushed(evd->cq, ring->base | (oldest & ring->mask), qp_num);
	return true;
}

void evd_flush(struct dapl_evd *evd, struct dto_ring *ring, uint32_t qp_num)
{
	bool wake;

	if (!evd)
		return;
	lock_acquire(&evd->lock);
	do
		drain_locked(evd);
	while (flush_oldest_locked(evd, ring, qp_num));
	wake = evd_wakes_locked(evd);
	evd_unlock(evd);
	if (wake)
		wakefd_raise(&evd->wake);
}

/* ---- software-side events ---- */

/* After ESTABLISHED or a terminal event, completions of the EP may enter the queue. */
static void evd_queue_announce_locked(struct dapl_evd *evd, const DAT_EVENT *event)
{
	struct dto_end *end = dto_end_of(event->event_data.connect_event_data.ep_handle);

	/* release: pairs with dto_is_early, the event is in the queue */
	atomic_store_explicit(&end->unannounced, false, memory_order_release);
	if (evd->state & EVD_HOLDING)
		evd_drain_locked(evd);
}

static bool is_connection_event(const DAT_EVENT *event)
{
	return event->event_number >= DAT_CONNECTION_EVENT_ESTABLISHED &&
	       event->event_number <= DAT_CONNECTION_EVENT_UNREACHABLE;
}

static void push_locked(struct dapl_evd *evd, const DAT_EVENT *event)
{
	struct evd_entry *entry = &evd->ring[evd->tail++ & evd->ring_mask];

	entry->event = *event;
	entry->event.evd_handle = evd;
	entry->srq_id = 0;
	entry->software = true;
	evd->state |= EVD_QUEUED;
	evd->software++;
	evd->notes |= EVD_MAY_RETURN;
	if (evd->cno && evd->enabled && !(evd->state & EVD_WAITED))
		evd->due |= EVD_DUE_TRIGGER;
}

/*
 * Lists (`waits`) the EP whose terminal event found no room, or unlists it. Does nothing for NULL.
 */
static void ending_list_locked(struct dapl_evd *evd, struct evd_room_waiter *waiter, bool waits)
{
	if (!waiter || waiter->waits == waits)
		return;
	waiter->waits = waits;
	if (waits)
		TAILQ_INSERT_TAIL(&evd->endings, waiter, entry);
	else
		TAILQ_REMOVE(&evd->endings, waiter, entry);
}

/* An async EVD has one entry more than its length, for the event of its own overflow. */
static void overflow_locked(struct dapl_evd *evd)
{
	DAT_EVENT event = { .event_number = DAT_ASYNC_ERROR_EVD_OVERFLOW };

	if (evd->overflowed)
		return;
	evd->overflowed = true;
	if (!(evd->flags & DAT_EVD_ASYNC_FLAG)) {
		evd->due |= EVD_DUE_OVERFLOW;
		return;
	}
	event.event_data.asynch_error_event_data.dat_handle = evd;
	event.event_data.asynch_error_event_data.reason = DAT_EVD_OVERFLOW_ERROR;
	push_locked(evd, &event);
}

static bool evd_queue_post(struct dapl_evd *evd, const DAT_EVENT *event, bool reports,
			   struct evd_room_waiter *ending)
{
	bool room, wake;

	lock_acquire(&evd->lock);
	if (evd->state & EVD_DYING) { /* the consumer has freed it: drop the event */
		ending_list_locked(evd, ending, false);
		lock_release(&evd->lock);
		return true;
	}
	evd_drain_locked(evd);
	room = evd->software < (uint32_t)evd->qlen;
	ending_list_locked(evd, ending, !room);
	if (room)
		push_locked(evd, event);
	else if (reports)
		overflow_locked(evd);
	if (room && is_connection_event(event)) {
		evd_tally_locked(evd, DCNT_EVD_CONN_CALLBACK);
		evd_queue_announce_locked(evd, event);
	}
	evd->room_wanted |= !room;
	wake = evd_wakes_locked(evd);
	evd_unlock(evd);
	if (wake)
		wakefd_raise(&evd->wake);
	return room;
}

bool evd_post(struct dapl_evd *evd, const DAT_EVENT *event)
{
	return evd_queue_post(evd, event, false, NULL);
}

bool evd_post_or_overflow(struct dapl_evd *evd, const DAT_EVENT *event)
{
	return evd_queue_post(evd, event, true, NULL);
}

bool evd_post_ending(struct dapl_evd *evd, const DAT_EVENT *event, struct evd_room_waiter *waiter)
{
	return evd_queue_post(evd, event, true, waiter);
}

/* ---- to the consumer ---- */

static void pop_locked(struct dapl_evd *evd, DAT_EVENT *event)
{
	struct evd_entry *entry = &evd->ring[evd->head++ & evd->ring_mask];

	*event = entry->event;
	if (entry->srq_id)
		dto_pool_return(entry->srq_id, true);
	evd->software -= entry->software;
	/* An empty ring restarts at entry 0, which is in the cache. */
	if (evd->head == evd->tail) {
		evd->state &= ~EVD_QUEUED;
		evd->head = evd->tail = 0;
		if (evd->state & EVD_READY)
			evd->due |= EVD_DUE_UNREADY;
	}
	if (evd->software < (uint32_t)evd->qlen) {
		evd->overflowed = false;
		if (evd->room_wanted) {
			evd->room_wanted = false;
			evd->due |= EVD_DUE_ROOM;
		}
	}
}

bool evd_take_slow_locked(struct dapl_evd *evd, unsigned made, DAT_EVENT *event)
{
	if (made & DTO_SLOT)
		dto_pool_return(ib_cq_last(evd->cq)->wr_id, false);
	return made & DTO_EVENT || evd_take_locked(evd, event);
}

bool evd_take_locked(struct dapl_evd *evd, DAT_EVENT *event)
{
	const struct ib_completion *completion;
	unsigned made = 0;

	if (evd->head != evd->tail) {
		pop_locked(evd, event);
		return true;
	}
	while (evd->cq && !(made & DTO_EVENT) && (completion = next_locked(evd))) {
		made = dto_complete(evd, completion, event);
		if (made & DTO_SLOT)
			dto_pool_return(completion->wr_id, false);
	}
	return made & DTO_EVENT;
}

static DAT_RETURN dequeue_locked(struct dapl_evd *evd, DAT_EVENT *event)
{
	if (evd->state & EVD_WAITED)
		return DAT_ERROR(DAT_INVALID_STATE, DAT_INVALID_STATE_EVD_WAITER);
	if (evd_take_locked(evd, event))
		return DAT_SUCCESS;
	if (!(evd->state & EVD_BROKEN))
		return DAT_QUEUE_EMPTY; /* no failure: without a class */
	if (evd->due & EVD_DUE_BROKEN)
		return DAT_ERROR(DAT_INTERNAL_ERROR, 0);
	return DAT_ERROR(DAT_INVALID_STATE, 0);
}

DAT_RETURN evd_dequeue_slow_locked(struct dapl_evd *evd, DAT_EVENT *event)
{
	DAT_RETURN status = dequeue_locked(evd, event);

	if (status == DAT_QUEUE_EMPTY &&
	    evd_read_cm_locked(evd, evd->counters.value[DCNT_EVD_DEQUEUE_NOT_FOUND]))
		status = dequeue_locked(evd, event);
	return status;
}

/* The slow path, without a completion at hand. The caller holds the lock; dequeue_slow releases it. */
static __attribute__((noinline)) DAT_RETURN dequeue_slow(struct dapl_evd *evd, DAT_EVENT *event)
{
	DAT_RETURN status = evd_dequeue_slow_locked(evd, event);

	evd_tally_locked(evd, status == DAT_SUCCESS ? DCNT_EVD_DEQUEUE_FOUND
						    : DCNT_EVD_DEQUEUE_NOT_FOUND);
	evd_unlock(evd);
	return status;
}

DAT_RETURN dapl_evd_dequeue(DAT_EVD_HANDLE handle, DAT_EVENT *event)
{
	struct dapl_evd *evd = handle;

	if (__builtin_expect(!obj_is(handle, OBJ_EVD), 0))
		return DAT_ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EVD_REQUEST);
	if (__builtin_expect(!event, 0))
		return DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);

	lock_acquire(&evd->lock);
	if (__builtin_expect(evd->state, 0))
		return dequeue_slow(evd, event);
	if (__builtin_expect(evd_take_fast_locked(evd, event), 1)) {
		evd_tally_locked(evd, DCNT_EVD_DEQUEUE_FOUND);
		lock_release(&evd->lock);
		return DAT_SUCCESS;
	}
	if (__builtin_expect(ib_cq_failed(evd->cq), 0))
		return dequeue_slow(evd, event);
	evd_tally_locked(evd, DCNT_EVD_DEQUEUE_NOT_FOUND);
	lock_release(&evd->lock);
	return DAT_QUEUE_EMPTY; /* no failure: without a class */
}

void evd_discard_locked(struct dapl_evd *evd)
{
	DAT_EVENT event;

	while (evd_take_locked(evd, &event))
		;
	if (evd->state & EVD_HOLDING && dto_id_side(evd->held.wr_id) == DTO_SRQ)
		dto_pool_return(evd->held.wr_id, false);
	evd->state &= ~EVD_HOLDING;
}
