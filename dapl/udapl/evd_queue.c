/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* The queue of an EVD: how events enter it, in which order, and how they leave. */
#include "dapl/udapl/evd_take.h"
#include "dapl/udapl/provider.h"

DAT_COUNT evd_count_locked(const struct dapl_evd *evd)
{
	return (DAT_COUNT)(evd->tail - evd->head);
}

/* ---- from the CQ ---- */

/* With a failed CQ, or one whose completions may have to wait for the event of their connection. */
static __attribute__((noinline)) const struct ib_completion *next_special(struct dapl_evd *evd)
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

/* The next completion that may be delivered now; NULL: none. */
static inline const struct ib_completion *next_locked(struct dapl_evd *evd)
{
	const struct ib_completion *completion = NULL;

	if (__builtin_expect(!(evd->state & (EVD_BROKEN | EVD_MERGED)), 1))
		completion = evd_cq_next_locked(evd);
	if (__builtin_expect(completion != NULL, 1))
		return completion;
	return evd->state & (EVD_BROKEN | EVD_MERGED) || ib_cq_failed(evd->cq) ? next_special(evd)
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
			/* What the CQ still holds may be what the waiter waits for. */
			evd->may_return = evd->news = true;
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
		evd->may_return |= !!(made & DTO_NOTIFY);
		evd->news |= !!(made & DTO_NOTIFY);
		if (made == DTO_SLOT)
			srq_slot_return(entry->srq_id, false);
		else if (entry->srq_id)
			srq_slot_ready(entry->srq_id);
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

/* ---- software-side events ---- */

/* ESTABLISHED or an ending: completions of the EP may now follow. */
static void announce_locked(struct dapl_evd *evd, const DAT_EVENT *event)
{
	struct dapl_ep *ep = event->event_data.connect_event_data.ep_handle;

	/* release: pairs with dto_is_early, the event is in the queue */
	atomic_store_explicit(&ep->unannounced, false, memory_order_release);
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
	evd->may_return = true;
	if (evd->cno && evd->enabled && !(evd->state & EVD_WAITED))
		evd->due |= EVD_DUE_TRIGGER;
}

bool evd_post(struct dapl_evd *evd, const DAT_EVENT *event)
{
	bool room, wake;

	lock_acquire(&evd->lock);
	if (evd->state & EVD_DYING) { /* nobody is left to tell */
		lock_release(&evd->lock);
		return true;
	}
	evd_drain_locked(evd);
	room = evd->software < (uint32_t)evd->qlen;
	if (room)
		push_locked(evd, event);
	if (room && is_connection_event(event)) {
		evd_tally_locked(evd, DCNT_EVD_CONN_CALLBACK);
		announce_locked(evd, event);
	}
	evd->room_wanted |= !room;
	wake = evd_wakes_locked(evd);
	evd_unlock(evd);
	if (wake)
		wakefd_raise(&evd->wake);
	return room;
}

/* An async EVD keeps one slot more than its length, for the news of its own overflow. */
static void push_overflow_locked(struct dapl_evd *evd)
{
	DAT_EVENT event = { .event_number = DAT_ASYNC_ERROR_EVD_OVERFLOW };

	event.event_data.asynch_error_event_data.dat_handle = evd;
	event.event_data.asynch_error_event_data.reason = DAT_EVD_OVERFLOW_ERROR;
	push_locked(evd, &event);
}

bool evd_post_or_overflow(struct dapl_evd *evd, const DAT_EVENT *event)
{
	bool own = evd->flags & DAT_EVD_ASYNC_FLAG, first;

	if (evd_post(evd, event))
		return true;
	lock_acquire(&evd->lock);
	first = !evd->overflowed && !(evd->state & EVD_DYING);
	evd->overflowed = true;
	if (first && own)
		push_overflow_locked(evd);
	evd_unlock(evd);
	if (first && own)
		wakefd_raise(&evd->wake);
	else if (first)
		async_post_evd_overflow(evd);
	return false;
}

/* ---- to the consumer ---- */

static void pop_locked(struct dapl_evd *evd, DAT_EVENT *event)
{
	struct evd_entry *entry = &evd->ring[evd->head++ & evd->ring_mask];

	*event = entry->event;
	if (entry->srq_id)
		srq_slot_return(entry->srq_id, true);
	evd->software -= entry->software;
	/* An empty ring begins anew, in memory that is in the cache. */
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

bool evd_take_uncommon_locked(struct dapl_evd *evd, unsigned made, DAT_EVENT *event)
{
	if (made & DTO_SLOT)
		srq_slot_return(ib_cq_last(evd->cq)->wr_id, false);
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
			srq_slot_return(completion->wr_id, false);
	}
	return made & DTO_EVENT;
}

DAT_RETURN evd_dequeue_special_locked(struct dapl_evd *evd, DAT_EVENT *event)
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

/* With anything but a completion at hand. Caller holds the lock, which is given back. */
static __attribute__((noinline)) DAT_RETURN dequeue_special(struct dapl_evd *evd, DAT_EVENT *event)
{
	DAT_RETURN status = evd_dequeue_special_locked(evd, event);

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
		return dequeue_special(evd, event);
	if (__builtin_expect(evd_take_plain_locked(evd, event), 1)) {
		evd_tally_locked(evd, DCNT_EVD_DEQUEUE_FOUND);
		lock_release(&evd->lock);
		return DAT_SUCCESS;
	}
	if (__builtin_expect(ib_cq_failed(evd->cq), 0))
		return dequeue_special(evd, event);
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
		srq_slot_return(evd->held.wr_id, false);
	evd->state &= ~EVD_HOLDING;
}

/* ---- what is due once no lock is held ---- */

void evd_settle(struct dapl_evd *evd, unsigned due)
{
	if (due & EVD_DUE_BROKEN)
		async_post_evd_overflow(evd);
	if (due & (EVD_DUE_TRIGGER | EVD_DUE_BROKEN))
		evd_trigger(evd);
	if (due & EVD_DUE_UNREADY)
		evd_unready(evd);
	if (due & EVD_DUE_ROOM && evd->flags & DAT_EVD_ASYNC_FLAG)
		async_room(evd);
	if (due & EVD_DUE_ROOM && evd->flags & DAT_EVD_CONNECTION_FLAG)
		ep_room(evd);
}

void evd_broken(struct dapl_evd *evd)
{
	bool first;

	lock_acquire(&evd->lock);
	first = !(evd->state & EVD_BROKEN);
	evd->state |= EVD_BROKEN;
	if (first)
		evd->due |= EVD_DUE_BROKEN;
	evd_unlock(evd);
	wakefd_raise(&evd->wake);
}
