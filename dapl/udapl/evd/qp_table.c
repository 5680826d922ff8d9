/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* Finds the EP of a QP number: a tree over the 24 bits of the number, read without a lock. */
#include <stdlib.h>
#include "dapl/udapl/evd/evd.h"

#define BITS   8
#define FANOUT (1u << BITS)

/*
 * Nodes are created on demand and stay until the IA is closed, so that a reader never finds a freed
 * one.
 */
struct leaf {
	_Atomic(struct obj *) eps[FANOUT];
};

struct branch {
	_Atomic(struct leaf *) leaves[FANOUT];
};

struct qp_table {
	_Atomic(struct branch *) branches[FANOUT];
	pthread_mutex_t lock; /* held by writers; no other lock is acquired inside it */
};

static unsigned part_of(uint32_t qp_num, unsigned level)
{
	return qp_num >> level * BITS & (FANOUT - 1);
}

/*
 * Returns the entry of the number, or NULL if no number of its node was ever set. acquire: a node
 * is seen zeroed.
 */
static _Atomic(struct obj *) *place(struct qp_table *table, uint32_t qp_num)
{
	struct branch *branch =
		atomic_load_explicit(&table->branches[part_of(qp_num, 2)], memory_order_acquire);
	struct leaf *leaf = branch ? atomic_load_explicit(&branch->leaves[part_of(qp_num, 1)],
							  memory_order_acquire)
				   : NULL;

	return leaf ? &leaf->eps[part_of(qp_num, 0)] : NULL;
}

static _Atomic(struct obj *) *place_make_locked(struct qp_table *table, uint32_t qp_num)
{
	_Atomic(struct branch *) *branch = &table->branches[part_of(qp_num, 2)];
	_Atomic(struct leaf *) *leaf;

	if (!atomic_load(branch))
		atomic_store(branch, calloc(1, sizeof(struct branch)));
	if (!atomic_load(branch))
		return NULL;
	leaf = &atomic_load(branch)->leaves[part_of(qp_num, 1)];
	if (!atomic_load(leaf))
		atomic_store(leaf, calloc(1, sizeof(struct leaf)));
	return place(table, qp_num);
}

DAT_RETURN qp_table_set(struct dapl_ia *ia, uint32_t qp_num, struct obj *ep)
{
	_Atomic(struct obj *) *found;

	pthread_mutex_lock(&ia->qp_table->lock);
	found = place_make_locked(ia->qp_table, qp_num);
	if (found)
		atomic_store(found, ep);
	pthread_mutex_unlock(&ia->qp_table->lock);
	return found ? DAT_SUCCESS : DAT_ERROR(DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_MEMORY);
}

void qp_table_clear(struct dapl_ia *ia, uint32_t qp_num)
{
	_Atomic(struct obj *) *found = place(ia->qp_table, qp_num);

	if (found)
		atomic_store(found, NULL);
}

struct obj *qp_table_find(const struct dapl_ia *ia, uint32_t qp_num)
{
	_Atomic(struct obj *) *found = place(ia->qp_table, qp_num);

	/* acquire: the EP was built before it was entered */
	return found ? atomic_load_explicit(found, memory_order_acquire) : NULL;
}

DAT_RETURN qp_table_create(struct dapl_ia *ia)
{
	ia->qp_table = calloc(1, sizeof(*ia->qp_table));
	if (!ia->qp_table)
		return DAT_ERROR(DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_MEMORY);
	pthread_mutex_init(&ia->qp_table->lock, NULL);
	return DAT_SUCCESS;
}

void qp_table_destroy(struct dapl_ia *ia)
{
	struct branch *branch;
	unsigned i, j;

	if (!ia->qp_table)
		return;
	for (i = 0; i < FANOUT; i++) {
		branch = atomic_load(&ia->qp_table->branches[i]);
		for (j = 0; branch && j < FANOUT; j++)
			free(atomic_load(&branch->leaves[j]));
		free(branch);
	}
	pthread_mutex_destroy(&ia->qp_table->lock);
	free(ia->qp_table);
	ia->qp_table = NULL;
}
