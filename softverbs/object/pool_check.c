/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* Which memory may move into the pool. */
#include "softverbs/object/mapping.h"
#include "softverbs/object/pool.h"

struct check {
	const struct pool_range *range;
	struct pool_parts *parts;
	uint64_t next; /* the range is sound up to here */
	const char *why;
};

/* Memory in whose pages an adapter, or the kernel, may have an interest of its own. */
static bool is_device(const char *path)
{
	static const char zero[] = "/dev/zero", folder[] = "/dev/shm/";

	if (!strncmp(path, "/dev/", 5))
		return strncmp(path, zero, sizeof(zero) - 1) &&
		       strncmp(path, folder, sizeof(folder) - 1);
	return !strncmp(path, "/[aio]", 6) || !strncmp(path, "anon_inode:[io_uring]", 21);
}

/* Memory of malloc(3) and mmap(2). */
static bool is_private(const struct map_line *line)
{
	return line->accessible && !line->shared && !line->ino &&
	       (!line->path[0] || !strcmp(line->path, "[heap]") ||
		!strncmp(line->path, "[anon:", 6));
}

static bool is_pool(const struct map_line *line)
{
	return line->shared && sv_pool_is(line->dev, line->ino);
}

/* A part of the pool that mremap(2) moved elsewhere keeps the pages of these addresses. */
static bool is_elsewhere(const struct map_line *line, const struct pool_range *range)
{
	return line->begin != line->offset && line->offset < range->end &&
	       line->offset + (line->end - line->begin) > range->begin;
}

static const char *part_add(struct check *check, const struct map_line *line)
{
	struct pool_parts *parts = check->parts;
	uint64_t end = line->end < check->range->end ? line->end : check->range->end;

	if (line->begin > check->next)
		return "part of it is not mapped";
	if (is_private(line)) {
		if (parts->count == sizeof(parts->part) / sizeof(parts->part[0]))
			return "it has too many parts";
		parts->part[parts->count++] = (struct pool_range){ check->next, end };
	} else if (!is_pool(line) || line->begin != line->offset) {
		return "it is not all private memory for reading and writing";
	}
	check->next = end;
	return NULL;
}

static bool line_check(const struct map_line *line, void *arg)
{
	struct check *check = arg;

	if (is_device(line->path))
		check->why = "a device or asynchronous input and output is in use";
	else if (is_pool(line) && is_elsewhere(line, check->range))
		check->why = "the program has moved memory that was registered there";
	else if (line->end > check->next && line->begin < check->range->end)
		check->why = part_add(check, line);
	return !check->why;
}

const char *sv_pool_refusal(const struct pool_range *range, uintptr_t stack,
			    struct pool_parts *parts)
{
	struct check check = { .range = range, .parts = parts, .next = range->begin };

	parts->count = 0;
	if (stack >= range->begin && stack < range->end)
		return "it is a stack";
	if (sv_mapping_is_locked())
		return "memory is locked";
	if (sv_mapping_has_object("[io_uring]") || sv_mapping_has_object("[userfaultfd]"))
		return "io_uring or userfaultfd is in use";
	if (!sv_mapping_each(line_check, &check))
		return "the kernel does not show the mappings";
	return check.why ? check.why : check.next < range->end ? "part of it is not mapped" : NULL;
}
