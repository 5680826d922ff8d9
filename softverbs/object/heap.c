/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* Allocates memory and object numbers in this process's areas. Peers cannot see the bookkeeping. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include "softverbs/base/os.h"
#include "softverbs/object/area.h"
#include "util/log.h"

struct heap_free {
	struct heap_free *next;
	uint64_t offset;
};

#define CLASS_MIN  6u	      /* log2 of a cache line */
#define SHORT_MOST 4096u      /* bytes: what is cut from a block with other short ones */
#define SHORTS	   (1u << 16) /* bytes of such a block */

static unsigned size_class(uint64_t size)
{
	return size <= 1u << CLASS_MIN ? CLASS_MIN : 64 - (unsigned)__builtin_clzll(size - 1);
}

static struct heap_free *free_pop(struct heap *heap, unsigned class)
{
	struct heap_free *entry = heap->free[class];

	if (entry)
		heap->free[class] = entry->next;
	return entry;
}

/* No page can be missing later, when the access to it would raise SIGBUS. */
static int pages_allocate(struct heap *heap, uint64_t end)
{
	int error;

	if (heap->fd < 0 || end <= heap->allocated)
		return 0;
	error = sv_os_allocate(heap->fd, heap->allocated, end);
	if (error)
		log_at(LOG_WARN, "softverbs: %llu bytes of shared memory: %s",
		       (unsigned long long)(end - heap->allocated), strerror(error));
	else
		heap->allocated = end;
	return error;
}

int sv_heap_reach(struct heap *heap, uint64_t end)
{
	uint64_t to = (end + AREA_STEP - 1) / AREA_STEP * AREA_STEP;
	int error = pages_allocate(heap, end);

	if (error || end <= heap->opened)
		return error;
	if (mprotect(heap->base + heap->opened, to - heap->opened, PROT_READ | PROT_WRITE))
		return errno;
	heap->opened = to;
	return 0;
}

/* Sets `*at` to the offset of bytes that were never used. */
static bool bytes_new(struct heap *heap, uint64_t size, uint64_t *at)
{
	if (size > heap->size - heap->next || sv_heap_reach(heap, heap->next + size))
		return false;
	*at = heap->next;
	heap->next += size;
	return true;
}

/* The same for a short block. Near the heap's end there may be room for the block alone. */
static bool short_new(struct heap *heap, uint64_t size, uint64_t *at)
{
	if (size > heap->shorts_end - heap->shorts) {
		if (!bytes_new(heap, SHORTS, at))
			return bytes_new(heap, size, at);
		heap->shorts = *at;
		heap->shorts_end = *at + SHORTS;
	}
	*at = heap->shorts;
	heap->shorts += size;
	return true;
}

/*
 * Allocates a block that was never used, together with its list entry, so that sv_heap_free
 * cannot fail.
 */
static struct heap_free *block_new(struct heap *heap, unsigned class)
{
	struct heap_free *entry = malloc(sizeof(*entry));
	uint64_t size = 1ull << class;

	if (entry && !(size <= SHORT_MOST ? short_new : bytes_new)(heap, size, &entry->offset)) {
		free(entry);
		entry = NULL;
	}
	return entry;
}

/* Allocates a block. Sets `*fresh` if it was never used before, and so is zero. */
static void *block_acquire(struct heap *heap, uint64_t size, uint64_t *offset, bool *fresh)
{
	unsigned class = size_class(size);
	struct heap_free *entry = NULL;
	uint64_t at = 0;

	pthread_mutex_lock(&heap->lock);
	if (class < HEAP_CLASSES)
		entry = free_pop(heap, class);
	*fresh = !entry;
	if (!entry && class < HEAP_CLASSES)
		entry = block_new(heap, class);
	if (entry) {
		at = entry->offset;
		entry->next = heap->taken;
		heap->taken = entry;
	}
	pthread_mutex_unlock(&heap->lock);
	if (!entry) {
		log_at(LOG_WARN,
		       "softverbs: no memory for queues: %llu more bytes, where %llu of %llu are "
		       "in use",
		       (unsigned long long)size, (unsigned long long)heap->next,
		       (unsigned long long)heap->size);
		errno = ENOMEM;
		return NULL;
	}
	if (offset)
		*offset = at;
	return heap->base + at;
}

void *sv_heap_alloc(enum area_heap which, uint64_t size, uint64_t *offset)
{
	bool fresh;

	return block_acquire(&sv_area_own()->heap[which], size, offset, &fresh);
}

void *sv_heap_alloc_zero(enum area_heap which, uint64_t size, uint64_t *offset)
{
	bool fresh;
	void *block = block_acquire(&sv_area_own()->heap[which], size, offset, &fresh);

	if (block && !fresh)
		memset(block, 0, size);
	return block;
}

void sv_heap_free(enum area_heap which, void *block, uint64_t size)
{
	struct heap *heap = &sv_area_own()->heap[which];
	unsigned class = size_class(size);
	struct heap_free *entry;

	if (!block)
		return;
	pthread_mutex_lock(&heap->lock);
	entry = heap->taken;
	heap->taken = entry->next;
	entry->offset = (uint64_t)((uint8_t *)block - heap->base);
	entry->next = heap->free[class];
	heap->free[class] = entry;
	pthread_mutex_unlock(&heap->lock);
}

unsigned sv_heap_use(enum area_heap which)
{
	struct heap *heap = &sv_area_own()->heap[which];
	unsigned percent;

	pthread_mutex_lock(&heap->lock);
	percent = (unsigned)(heap->next * 100 / heap->size);
	pthread_mutex_unlock(&heap->lock);
	return percent;
}

void sv_heap_close(struct heap *heap)
{
	struct heap_free *entry;

	for (unsigned class = 0; class < HEAP_CLASSES; class ++)
		while ((entry = free_pop(heap, class)))
			free(entry);
	while ((entry = heap->taken)) {
		heap->taken = entry->next;
		free(entry);
	}
}

int sv_ids_open(struct ids *ids, uint32_t first, uint32_t limit)
{
	uint32_t size = 1u << size_class(limit);

	pthread_mutex_init(&ids->lock, NULL);
	ids->ring = calloc(size, sizeof(*ids->ring));
	ids->fresh = first;
	ids->limit = limit;
	ids->mask = size - 1;
	return ids->ring ? 0 : ENOMEM;
}

void sv_ids_close(struct ids *ids)
{
	free(ids->ring);
}

uint32_t sv_ids_alloc(struct ids *ids)
{
	uint32_t id = 0;

	pthread_mutex_lock(&ids->lock);
	if (ids->fresh < ids->limit)
		id = ids->fresh++;
	else if (ids->head != ids->tail)
		id = ids->ring[ids->head++ & ids->mask];
	pthread_mutex_unlock(&ids->lock);
	return id;
}

void sv_ids_free(struct ids *ids, uint32_t id)
{
	pthread_mutex_lock(&ids->lock);
	ids->ring[ids->tail++ & ids->mask] = id;
	pthread_mutex_unlock(&ids->lock);
}

bool sv_attention_set(_Atomic(uint64_t) *words, uint32_t index)
{
	/* release: what the bit announces was written before */
	return !(atomic_fetch_or_explicit(&words[index / 64], 1ull << index % 64,
					  memory_order_release) >>
			 index % 64 &
		 1);
}
