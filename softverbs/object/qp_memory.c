/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/*
 * The memory of QPs: they lie side by side, and other objects of a connection elsewhere. A program with thousands of connections
 * then uses fewer pages than a processor's table of addresses has entries for.
 */
#include <stdlib.h>
#include <string.h>
#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/asan_interface.h>
#else
#define ASAN_POISON_MEMORY_REGION(at, size)
#define ASAN_UNPOISON_MEMORY_REGION(at, size)
#endif
#include "softverbs/object/qp.h"

static struct sv_qp *fresh_locked(struct sv_qp_memory *memory)
{
	uint32_t chunk = memory->used / SV_QPS_A_CHUNK, place = memory->used % SV_QPS_A_CHUNK;

	if (chunk == SV_QP_CHUNKS)
		return NULL;
	if (!place)
		memory->chunk[chunk] =
			aligned_alloc(SV_LINE, SV_QPS_A_CHUNK * sizeof(struct sv_qp));
	if (!memory->chunk[chunk])
		return NULL;
	memory->used++;
	return &memory->chunk[chunk][place];
}

struct sv_qp *sv_qp_memory_alloc(void)
{
	struct area *area = sv_area_own();
	struct sv_qp_memory *memory = &area->qp_memory;
	struct sv_qp *qp;

	pthread_mutex_lock(&area->table_lock);
	qp = memory->frees ? memory->free[--memory->frees] : fresh_locked(memory);
	pthread_mutex_unlock(&area->table_lock);
	if (!qp)
		return NULL;
	ASAN_UNPOISON_MEMORY_REGION(qp, sizeof(*qp));
	return memset(qp, 0, sizeof(*qp));
}

void sv_qp_memory_free(struct sv_qp *qp)
{
	struct area *area = sv_area_own();

	ASAN_POISON_MEMORY_REGION(qp, sizeof(*qp));
	pthread_mutex_lock(&area->table_lock);
	area->qp_memory.free[area->qp_memory.frees++] = qp;
	pthread_mutex_unlock(&area->table_lock);
}

void sv_qp_memory_close(struct sv_qp_memory *memory)
{
	for (uint32_t i = 0; i < SV_QP_CHUNKS; i++)
		free(memory->chunk[i]);
}
