/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* Identifiers by number, as messages name them. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "softverbs/cm/cm.h"

#define INDEX_BITS 20
#define INDEX_MASK ((1u << INDEX_BITS) - 1)

/* number = generation:12 | index:20. A freed index is reused after all indexes that were free before it. */
struct number {
	struct cm_id *id;
	uint32_t next_free;
};

static struct { /* the cm lock */
	struct number *table;
	uint32_t size, first_free, last_free; /* index 0 is unused and ends the free list */
	uint32_t generation;
} numbers;

static void number_release_locked(uint32_t index)
{
	numbers.table[index].id = NULL;
	numbers.table[index].next_free = 0;
	if (numbers.first_free)
		numbers.table[numbers.last_free].next_free = index;
	else
		numbers.first_free = index;
	numbers.last_free = index;
}

static int numbers_grow_locked(void)
{
	uint32_t size = numbers.size ? numbers.size * 2 : 64,
		 index = numbers.size ? numbers.size : 1;
	struct number *table;

	if (size > INDEX_MASK + 1)
		return ENOMEM;
	table = realloc(numbers.table, size * sizeof(*table));
	if (!table)
		return ENOMEM;
	memset(table + numbers.size, 0, (size - numbers.size) * sizeof(*table));
	numbers.table = table;
	numbers.size = size;
	for (; index < size; index++)
		number_release_locked(index);
	return 0;
}

int sv_cm_id_number_locked(struct cm_id *id)
{
	int error = numbers.first_free ? 0 : numbers_grow_locked();
	uint32_t index;

	if (error)
		return error;
	index = numbers.first_free;
	numbers.first_free = numbers.table[index].next_free;
	numbers.table[index].id = id;
	id->number = ++numbers.generation << INDEX_BITS | index;
	return 0;
}

void sv_cm_id_unnumber_locked(struct cm_id *id)
{
	if (id->number)
		number_release_locked(id->number & INDEX_MASK);
	id->number = 0;
}

struct cm_id *sv_cm_id_by_number_locked(uint32_t number)
{
	uint32_t index = number & INDEX_MASK;
	struct cm_id *id = index < numbers.size ? numbers.table[index].id : NULL;

	return id && id->number == number ? id : NULL;
}

struct cm_id *sv_cm_id_next_locked(uint32_t *cursor)
{
	while (*cursor < numbers.size) {
		struct cm_id *id = numbers.table[(*cursor)++].id;

		if (id)
			return id;
	}
	return NULL;
}

/* The next identifier's generation differs from the last one's, so that late messages find none. */
void sv_cm_numbers_end_locked(void)
{
	free(numbers.table);
	numbers.table = NULL;
	numbers.size = numbers.first_free = 0;
}

void sv_cm_numbers_fork_child_locked(void)
{
	sv_cm_numbers_end_locked();
	numbers.last_free = numbers.generation = 0;
}
