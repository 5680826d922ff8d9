/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* Address handles: where a datagram goes to, by GID alone, as on Ethernet. */
#include <errno.h>
#include <stdlib.h>
#include "softverbs/name.h"
#include "softverbs/ud.h"

struct ibv_ah *ibv_create_ah(struct ibv_pd *pd, struct ibv_ah_attr *attr)
{
	struct sv_ah *ah;
	uint32_t interface;

	if (!context_is_ours(pd->context)) {
		errno = ENODEV;
		return NULL;
	}
	ah = calloc(1, sizeof(*ah));
	if (!ah)
		return NULL;
	if (!attr->is_global || attr->port_num != SV_PORT ||
	    !gid_at(attr->grh.sgid_index, &ah->source, &interface)) {
		free(ah);
		errno = EINVAL;
		return NULL;
	}
	ah->ibv.context = pd->context;
	ah->ibv.pd = pd;
	ah->attr = *attr;
	/* whether it exists shows in use, as anywhere: datagrams to other hosts are lost */
	ah->is_here = name_is_in_folder() || gid_index(&attr->grh.dgid) >= 0;
	atomic_fetch_add_explicit(&pd_of(pd)->users, 1, memory_order_relaxed);
	return &ah->ibv;
}

struct ibv_ah *ibv_create_ah_from_wc(struct ibv_pd *pd, struct ibv_wc *wc, struct ibv_grh *grh,
				     uint8_t port)
{
	struct ibv_ah_attr attr;

	if (ibv_init_ah_from_wc(pd->context, port, wc, grh, &attr))
		return NULL;
	return ibv_create_ah(pd, &attr);
}

int ibv_destroy_ah(struct ibv_ah *ibv)
{
	if (!context_is_ours(ibv->context))
		return ENODEV;
	/* release: see ibv_dealloc_pd */
	atomic_fetch_sub_explicit(&pd_of(ibv->pd)->users, 1, memory_order_release);
	free(ah_of(ibv));
	return 0;
}
