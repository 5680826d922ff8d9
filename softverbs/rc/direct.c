/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/*
 * The files of peers that are mapped here, by key. The engine maps and unmaps; executors find a mapping between two marks,
 * for which it waits (sv_sq_quiesce) before it unmaps.
 */
#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>
#include "softverbs/base/log_from.h"
#include "softverbs/object/area.h"
#include "softverbs/object/pool.h"
#include "softverbs/rc/direct.h"
#include "softverbs/rc/direct_map.h"
#include "softverbs/rc/rc.h"
#include "util/log.h"

/* Uses of a key before the owner is asked, whose engine needs some 20 microseconds. Tests are built with 1, too. */
#ifndef DIRECT_USES
#define DIRECT_USES 16u
#endif

/* By the index of a key. */
struct direct_key {
	_Atomic(struct direct_map *) map;
	_Atomic(uint32_t) asked; /* the key that was asked for last: once, whatever the answer */
	_Atomic(uint32_t) uses;
};

struct sv_direct {
	TAILQ_HEAD(, direct_map) maps;	   /* engine only */
	_Atomic(uint32_t) refused;	   /* the last file that could not be mapped */
	_Atomic(uint32_t) end;		   /* above the last index that was asked for */
	struct direct_key key[SV_REGIONS]; /* most pages of it are never touched */
};

unsigned sv_direct_limit = 1024;
static atomic_uint mappings;

/* ---- the executor ---- */

static struct sv_direct *direct_of(struct sv_peer *peer)
{
	struct sv_direct *direct = atomic_load_explicit(&peer->direct, memory_order_acquire),
			 *none = NULL;

	if (direct)
		return direct;
	direct = mmap(NULL, sizeof(*direct), PROT_READ | PROT_WRITE,
		      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (direct == MAP_FAILED)
		return NULL;
	TAILQ_INIT(&direct->maps);
	if (atomic_compare_exchange_strong(&peer->direct, &none, direct))
		return direct;
	munmap(direct, sizeof(*direct)); /* another thread was first */
	return none;
}

static void end_raise(struct sv_direct *direct, uint32_t index)
{
	uint32_t end = atomic_load_explicit(&direct->end, memory_order_relaxed);

	while (end <= index && !atomic_compare_exchange_weak(&direct->end, &end, index + 1))
		;
}

/* Counts a use of a key that is not mapped; asks for its file after some, once. */
static void use_count(struct sv_peer *peer, struct sv_direct *direct, uint32_t key, uint32_t file)
{
	struct direct_key *k = &direct->key[key >> 16];
	struct share_text ask = { .verb = SHARE_ASK, .key = key };

	if (atomic_load_explicit(&k->asked, memory_order_relaxed) == key ||
	    (file && file == atomic_load_explicit(&direct->refused, memory_order_relaxed)) ||
	    atomic_fetch_add_explicit(&k->uses, 1, memory_order_relaxed) + 1 < DIRECT_USES)
		return;
	atomic_store_explicit(&k->uses, 0, memory_order_relaxed);
	end_raise(direct, key >> 16);
	/* release: pairs with is_asked */
	atomic_store_explicit(&k->asked, key, memory_order_release);
	sv_peer_send(peer, SV_MSG_DATA, &ask, sizeof(ask), -1);
}

static bool map_covers(const struct direct_map *map, uint32_t file, uint64_t at, uint64_t end,
		       bool writes)
{
	return map && map->file == file && at >= map->begin && end <= map->end &&
	       (map->writable || !writes);
}

/* Whether the range, and not only the file, is what the owner sees: the edges of a swapped region are private. */
static bool map_has_pages(const struct direct_map *map, const struct region_entry *region,
			  uint64_t begin, uint64_t end)
{
	struct pool_range pages;

	if (likely(!map->is_pool))
		return true;
	pages = pool_pages(region->addr, region->length);
	return begin >= pages.begin && end <= pages.end;
}

/* What the region's entry says is the peer's word: the place lies in the mapping whatever it is. */
bool sv_direct_find(struct sv_peer *peer, const struct region_entry *region, uint32_t key,
		    uint64_t va, uint64_t length, bool writes, struct direct_place *place)
{
	struct sv_direct *direct = sv_area_own()->files.off ? NULL : direct_of(peer);
	/* acquire: pairs with find_locked */
	uint32_t file = atomic_load_explicit(&region->file, memory_order_acquire);
	uint64_t at = atomic_load_explicit(&region->at, memory_order_relaxed) + (va - region->addr),
		 end = at + length;
	const struct direct_map *map;

	if (!direct || end < at)
		return false;
	/* acquire: pairs with key_set */
	map = atomic_load_explicit(&direct->key[key >> 16].map, memory_order_acquire);
	if (!map_covers(map, file, at, end, writes)) {
		use_count(peer, direct, key, file);
		return false;
	}
	if (!map_has_pages(map, region, at, end))
		return false;
	place->at = map->base ? map->base + (at - map->begin) : NULL;
	place->file = map->file_fd;
	place->offset = at;
	return true;
}

/* ---- the engine ---- */

static void key_set(struct sv_direct *direct, uint32_t key, struct direct_map *map)
{
	/* release: the mapping is complete; pairs with sv_direct_find */
	atomic_store_explicit(&direct->key[key >> 16].map, map, memory_order_release);
}

static struct direct_map *map_known(struct sv_direct *direct, const struct share_text *text)
{
	struct direct_map *map;

	TAILQ_FOREACH(map, &direct->maps, entry)
		if (map_covers(map, text->file, text->begin, text->end, text->writes))
			break;
	return map;
}

static struct direct_map *map_new(struct sv_peer *peer, struct sv_direct *direct,
				  const struct share_text *text, int fd)
{
	struct direct_map *map;
	int error;

	if (atomic_load(&mappings) >= sv_direct_limit) { /* only this thread adds any */
		errno = EMFILE;
		return NULL;
	}
	map = sv_direct_map(text, fd);
	if (!map) {
		error = errno;
		sv_log_from(sv_source_process(peer->pid), LOG_NOTE,
			    "softverbs: process %d: memory of key 0x%x cannot be mapped: %s",
			    (int)peer->pid, text->key, strerror(error));
		errno = error;
		return NULL;
	}
	atomic_fetch_add(&mappings, 1);
	log_at(LOG_NOTE, "softverbs: process %d: key 0x%x: its memory is %s here", (int)peer->pid,
	       text->key, map->base ? "mapped" : "open");
	TAILQ_INSERT_TAIL(&direct->maps, map, entry);
	return map;
}

static void map_drop(struct sv_direct *direct, struct direct_map *map)
{
	TAILQ_REMOVE(&direct->maps, map, entry);
	sv_direct_unmap(map);
	atomic_fetch_sub(&mappings, 1);
}

static void keys_clear(struct sv_direct *direct, uint32_t file)
{
	uint32_t end = atomic_load(&direct->end);

	for (uint32_t i = 0; i < end; i++) {
		const struct direct_map *map =
			atomic_load_explicit(&direct->key[i].map, memory_order_relaxed);

		if (map && map->file == file)
			key_set(direct, i << 16, NULL);
	}
}

static void file_gone(struct sv_direct *direct, uint32_t file)
{
	struct direct_map *map, *next;

	keys_clear(direct, file);
	sv_sq_quiesce();
	for (map = TAILQ_FIRST(&direct->maps); map; map = next) {
		next = TAILQ_NEXT(map, entry);
		if (map->file == file)
			map_drop(direct, map);
	}
}

unsigned sv_direct_count(void)
{
	return atomic_load(&mappings);
}

/* A mapping is found again at its end by the keys that were asked for. */
static bool is_asked(struct sv_direct *direct, uint32_t key)
{
	/* acquire: `end` was raised before */
	return key &&
	       atomic_load_explicit(&direct->key[key >> 16].asked, memory_order_acquire) == key;
}

void sv_direct_message(struct sv_peer *peer, const struct share_text *text, int fd)
{
	struct sv_direct *direct = atomic_load_explicit(&peer->direct, memory_order_acquire);
	struct direct_map *map;

	if (!direct)
		return; /* nothing was asked for */
	if (text->verb == SHARE_GONE) {
		file_gone(direct, text->file);
	} else if (text->verb == SHARE_HERE && is_asked(direct, text->key)) {
		map = map_known(direct, text);
		if (!map)
			map = map_new(peer, direct, text, fd);
		if (map)
			key_set(direct, text->key, map);
		else if (errno != EMFILE) /* other parts of the file may find room later */
			atomic_store_explicit(&direct->refused, text->file, memory_order_relaxed);
	}
}

void sv_direct_forget(struct sv_peer *peer)
{
	struct sv_direct *direct = atomic_load_explicit(&peer->direct, memory_order_relaxed);
	struct direct_map *map;

	if (!direct)
		return;
	while ((map = TAILQ_FIRST(&direct->maps)))
		map_drop(direct, map);
	munmap(direct, sizeof(*direct));
	atomic_store_explicit(&peer->direct, NULL, memory_order_relaxed);
}
