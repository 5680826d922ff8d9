/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* Registered memory. */

#include <stdlib.h>
#include <string.h>

#include "tool.h"

enum { ALIGNMENT = 4096 };

bool region_create(struct region *r, DAT_IA_HANDLE ia, DAT_PZ_HANDLE pz, size_t size)
{
	DAT_REGION_DESCRIPTION where;
	DAT_VLEN length = 0;
	DAT_VADDR address = 0;

	memset(r, 0, sizeof(*r));
	r->size = size ? size : 1; /* an empty message has a buffer, too */
	r->base = aligned_alloc(ALIGNMENT, (r->size + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT);
	if (!r->base) {
		complain("Error: no memory for a buffer of %zu bytes", size);
		return false;
	}
	memset(r->base, 0, r->size);
	where.for_va = r->base;
	if (!dat_ok(dat_lmr_create(ia, DAT_MEM_TYPE_VIRTUAL, where, r->size, pz,
				   DAT_MEM_PRIV_ALL_FLAG, DAT_VA_TYPE_VA, &r->lmr, &r->lkey,
				   &r->rkey, &length, &address),
		    "dat_lmr_create")) {
		r->lmr = DAT_HANDLE_NULL;
		return false;
	}
	if (length < r->size || address > (uintptr_t)r->base) {
		complain("Error: dat_lmr_create registered less than the buffer");
		return false;
	}
	return true;
}

bool region_free(struct region *r)
{
	bool ok = !r->lmr || dat_ok(dat_lmr_free(r->lmr), "dat_lmr_free");

	free(r->base);
	memset(r, 0, sizeof(*r));
	return ok;
}

DAT_LMR_TRIPLET region_part(const struct region *r, size_t offset, uint32_t length)
{
	return (DAT_LMR_TRIPLET){
		.virtual_address = (uintptr_t)r->base + offset,
		.segment_length = length,
		.lmr_context = r->lkey,
	};
}
