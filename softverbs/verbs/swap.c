/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* Which regions are swapped, and when. */
#include <semaphore.h>
#include <signal.h>
#include "softverbs/link/engine.h"
#include "softverbs/link/peer.h"
#include "softverbs/object/area.h"
#include "softverbs/object/pool.h"
#include "softverbs/rc/mw.h"
#include "softverbs/verbs/still.h"
#include "softverbs/verbs/swap.h"
#include "util/cancel.h"
#include "util/clock.h"
#include "util/log.h"

#define REGION_MOST (16ull << 20) /* bytes: longer ones cost too much to copy */
/* To stop what uses the device. Each takes a millisecond at most, and the pause before the next is twice the last one. */
#define TRIES	     14u
#define BACK_TRIES   8u
#define DEFERRED_MAX 64u /* ranges that come back later, at most */
#define FIRST_PAUSE  (100 * NSEC_PER_USEC)

/* A thread that waits for the engine. */
struct call {
	struct engine_job job;
	void (*run)(struct call *call);
	struct pool_range range;
	uintptr_t stack; /* an address in that of the thread */
	bool ended;	 /* of back_run: there is nothing left to do */
	bool last;	 /* of back_run: the last try */
	sem_t done;
};

/* What could not come back from the pool: it does when the device is still for the next time. */
static struct { /* engine only */
	struct pool_range range[DEFERRED_MAX];
	unsigned count;
} deferred;

/* ---- the thread that waits ---- */

static void call_run(struct engine_job *job)
{
	struct call *call = container_of(call, job, job);

	call->run(call);
	sem_post(&call->done);
}

/* Signals are held back, since their handlers might store where memory moves. */
static void engine_call(struct call *call)
{
	sigset_t all, before;
	CANCEL_OFF_HERE;

	call->stack = (uintptr_t)&all;
	sem_init(&call->done, 0, 0);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	sv_engine_defer(&call->job, call_run);
	while (sem_wait(&call->done))
		;
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	sem_destroy(&call->done);
}

/* ---- what no region needs any more ---- */

static uint32_t regions_end(struct area *area)
{
	uint32_t end;

	pthread_mutex_lock(&area->regions.lock);
	end = area->regions.fresh;
	pthread_mutex_unlock(&area->regions.lock);
	return end;
}

static bool is_pooled(const struct region_entry *region)
{
	return atomic_load_explicit(&region->key, memory_order_relaxed) &&
	       region->type == REGION_MR && sv_file_is_pool(region);
}

/* The first part of [begin, end) that no region in the pool needs any more; an empty one at `end` if there is none. */
static struct pool_range part_unused(uint64_t begin, uint64_t end)
{
	const struct region_entry *region = sv_area_own()->by_owner->region;
	uint32_t last = regions_end(sv_area_own());
	struct pool_range part = { begin, end };

	for (uint32_t i = 1; i < last && part.begin < end; i++) {
		struct pool_range pages = pool_pages(region[i].addr, region[i].length);

		if (!is_pooled(&region[i]) || pages.end <= part.begin || pages.begin >= part.end)
			continue;
		if (pages.begin > part.begin) {
			part.end = pages.begin;
			continue;
		}
		part = (struct pool_range){ pages.end, end };
		i = 0; /* again, from the first */
	}
	return part.begin < end ? part : (struct pool_range){ end, end };
}

static void range_return(const struct pool_range *range)
{
	for (uint64_t at = range->begin; at < range->end;) {
		struct pool_range part = part_unused(at, range->end);

		if (part.begin < part.end)
			sv_pool_return(&part);
		at = part.end;
	}
}

/* With stillness. */
static void deferred_return(void)
{
	while (deferred.count)
		range_return(&deferred.range[--deferred.count]);
}

static void deferred_add(const struct pool_range *range)
{
	if (deferred.count < DEFERRED_MAX)
		deferred.range[deferred.count++] = *range;
}

/* ---- in ---- */

static void polls_mark(bool on)
{
	atomic_store_explicit(&sv_area_own()->files.due, on, memory_order_relaxed);
	sv_cqs_slow(CQ_SWAP, on);
}

bool sv_swap_ask(struct sv_peer *peer, uint32_t key)
{
	struct area *area = sv_area_own();
	struct sv_files *files = &area->files;
	uint32_t lkey = sv_mw_region_under(key);

	if (!files->swaps || !lkey || files->asks == SHARE_ASKS || sv_file_find(lkey) ||
	    area->by_owner->region[lkey >> 16].length > REGION_MOST)
		return false;
	files->ask[files->asks].peer = peer->slot;
	files->ask[files->asks++].key = key;
	if (!deadline_is_set(&files->again.due))
		polls_mark(true);
	return true;
}

static void region_note(uint32_t lkey, const char *what)
{
	const struct region_entry *region = &sv_area_own()->by_owner->region[lkey >> 16];

	log_at(LOG_NOTE, "softverbs: key 0x%x: memory at %p, %llu bytes: %s", lkey,
	       (void *)(uintptr_t)region->addr, (unsigned long long)region->length, what);
}

/* False also for a region that is gone, or in a file by now. */
static bool region_may_move(uint32_t lkey, uintptr_t stack, struct pool_parts *parts)
{
	const struct region_entry *region = &sv_area_own()->by_owner->region[lkey >> 16];
	struct pool_range range;
	const char *why;

	/* acquire: pairs with sv_region_publish */
	if (!lkey || atomic_load_explicit(&region->key, memory_order_acquire) != lkey ||
	    sv_file_find(lkey))
		return false;
	range = pool_pages(region->addr, region->length);
	why = range.begin == range.end ? "it has no whole page"
				       : sv_pool_refusal(&range, stack, parts);
	if (why)
		region_note(lkey, why);
	return !why;
}

/* With stillness, no region is withdrawn: that waits for `serve_lock`. */
static void region_swap(uint32_t lkey, uintptr_t stack)
{
	struct pool_parts parts;
	int error;

	if (!region_may_move(lkey, stack, &parts))
		return;
	error = sv_pool_move(&parts);
	region_note(lkey, error ? strerror(error) : "peers can map it now");
	if (!error)
		sv_file_find_again(lkey);
}

static void asks_answer(struct sv_files *files)
{
	for (uint32_t i = 0; i < files->asks; i++) {
		struct sv_peer *peer = sv_peer_linked(files->ask[i].peer);

		if (!peer)
			continue;
		sv_mw_file_answer(peer, files->ask[i].key);
		sv_peer_put(peer);
	}
	files->asks = files->tries = 0;
}

static void again_fire(struct sv_timer *timer)
{
	(void)timer;
	polls_mark(true);
}

/*
 * Finds the regions, and whether one of them may move. Not with stillness: a thread that holds the lock of memory windows may
 * wait for its end.
 */
static bool asks_find_regions(struct sv_files *files, uintptr_t stack)
{
	struct pool_parts parts;
	bool any = false;

	for (uint32_t i = 0; i < files->asks; i++) {
		uint32_t lkey = sv_mw_region_under(files->ask[i].key);

		files->ask[i].lkey = region_may_move(lkey, stack, &parts) ? lkey : 0;
		any |= files->ask[i].lkey;
	}
	return any;
}

static void swap_run(struct call *call)
{
	struct sv_files *files = &sv_area_own()->files;

	polls_mark(false);
	if (!asks_find_regions(files, call->stack)) {
		asks_answer(files);
	} else if (sv_still_begin()) {
		for (uint32_t i = 0; i < files->asks; i++)
			region_swap(files->ask[i].lkey, call->stack);
		deferred_return();
		sv_still_end();
		asks_answer(files);
	} else if (files->tries < TRIES) {
		sv_engine_timer_arm(&files->again, clock_now() + (FIRST_PAUSE << files->tries++),
				    again_fire);
	} else {
		asks_answer(files);
	}
}

void sv_swap_turn(void)
{
	struct call call = { .run = swap_run };

	if (atomic_exchange_explicit(&sv_area_own()->files.due, false, memory_order_relaxed))
		engine_call(&call);
}

/* ---- back ---- */

static void back_run(struct call *call)
{
	call->ended = sv_still_begin();
	if (!call->ended) {
		if (call->last)
			deferred_add(&call->range);
		return;
	}
	range_return(&call->range);
	deferred_return();
	sv_still_end();
}

/* If the device does not become still, the memory stays in the pool for now; the program can use it as before. */
void sv_swap_back(uint64_t addr, uint64_t length)
{
	struct call call = { .run = back_run, .range = pool_pages(addr, length) };

	for (unsigned tries = 0; !call.ended && tries < BACK_TRIES; tries++) {
		struct timespec pause = { .tv_nsec = (long)(FIRST_PAUSE << tries) };

		call.last = tries == BACK_TRIES - 1;
		engine_call(&call);
		if (!call.ended)
			nanosleep(&pause, NULL);
	}
}
