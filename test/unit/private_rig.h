/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* A rig (direct_rig.h) whose target swaps its private memory; the target says what it sees in it. */
#ifndef PRIVATE_RIG_H
#define PRIVATE_RIG_H

#include "softverbs/object/mapping.h"
#include "softverbs/object/pool.h"
#include "test/unit/direct_rig.h"

#define PAGE ((uint32_t)sv_os_page_size())

/* ---- the target's memory ---- */

struct kind {
	uint64_t at;
	bool found, pooled;
};

static inline bool kind_of_line(const struct map_line *line, void *arg)
{
	struct kind *kind = arg;

	if (kind->at >= line->end)
		return true;
	kind->found = kind->at >= line->begin;
	kind->pooled = pool_is_named(line->path);
	return false;
}

/* Whether the page at this offset is in the pool. */
static inline uint64_t is_pooled(struct rig *rig, uint64_t offset)
{
	struct kind kind = { .at = (uintptr_t)rig->memory + offset };

	return sv_mapping_each(kind_of_line, &kind) && kind.found && kind.pooled;
}

static inline uint64_t load(struct rig *rig, uint64_t offset)
{
	uint64_t value;

	memcpy(&value, rig->memory + offset, sizeof(value));
	return value;
}

/* The value that it stores is the offset's complement. */
static inline uint64_t store(struct rig *rig, uint64_t offset)
{
	uint64_t value = ~offset;

	memcpy(rig->memory + offset, &value, sizeof(value));
	return value;
}

static inline bool private_begin(struct rig *rig)
{
	*rig = (struct rig){ .fd = -1, .id = -1, .direct = "private", .polls = true };
	return rig_private(rig) && rig_open(rig);
}

/* 1 once the owner has tried to swap the region. */
static inline uint64_t is_tried(struct rig *rig, uint64_t unused)
{
	const struct area *area = sv_area_own();

	(void)unused;
	return area->by_owner->region[rig->mr->lkey >> 16].file == FILE_NONE && !area->files.asks;
}

static inline bool writes_and_is_tried(void *arg)
{
	struct rig *rig = arg;

	return rig_move(rig, IBV_WR_RDMA_WRITE, 0, 0, 64) || rig_call(rig, is_tried, 0);
}

/* Writes until the swap was refused, and a little more. */
static inline bool stays_private(struct rig *rig)
{
	if (!unit_wait_for(writes_and_is_tried, rig, UNIT_PATIENCE))
		return false;
	for (unsigned i = 0; i < 300; i++)
		if (rig_move(rig, IBV_WR_RDMA_WRITE, 0, 0, 64))
			return false;
	return !sv_direct_count();
}

#endif
