/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* Protection domains: a number by which regions, windows and queue pairs are compared. */
#include <errno.h>
#include <stdlib.h>
#include "softverbs/object/object.h"

static atomic_uint live; /* number of PDs of this process */
static atomic_uint last; /* the last number used; a number is reused after 2^32 others */

struct ibv_pd *ibv_alloc_pd(struct ibv_context *context)
{
	struct sv_pd *pd;

	if (!context_is_ours(context)) {
		errno = ENODEV;
		return NULL;
	}
	pd = calloc(1, sizeof(*pd));
	if (atomic_fetch_add_explicit(&live, 1, memory_order_relaxed) >= SV_MAX_PD || !pd) {
		atomic_fetch_sub_explicit(&live, 1, memory_order_relaxed);
		free(pd);
		errno = ENOMEM;
		return NULL;
	}
	do {
		pd->ibv.handle = atomic_fetch_add_explicit(&last, 1, memory_order_relaxed) + 1;
	} while (!pd->ibv.handle);
	pd->ibv.context = context;
	atomic_fetch_add_explicit(&context_of(context)->users, 1, memory_order_relaxed);
	return &pd->ibv;
}

int ibv_dealloc_pd(struct ibv_pd *ibv)
{
	struct sv_pd *pd = pd_of(ibv);

	if (!context_is_ours(ibv->context))
		return ENODEV;
	/* acquire: the last user's accesses precede the free */
	if (atomic_load_explicit(&pd->users, memory_order_acquire))
		return EBUSY;
	/* release: the same for the context, see ibv_close_device */
	atomic_fetch_sub_explicit(&context_of(ibv->context)->users, 1, memory_order_release);
	atomic_fetch_sub_explicit(&live, 1, memory_order_relaxed);
	free(pd);
	return 0;
}
