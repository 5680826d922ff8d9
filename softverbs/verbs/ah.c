/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* Address handles: the destination of a datagram, by GID, or by LID if the port presents itself as
 * InfiniBand. */
#include <errno.h>
#include <stdlib.h>
#include "softverbs/link/name.h"
#include "softverbs/base/settings.h"
#include "softverbs/link/transport.h"
#include "softverbs/ud/ud.h"

/* Without a GRH, the LID is the destination: the port of this host. */
static bool route_complete(struct ibv_ah_attr *attr)
{
	uint16_t lid = sv_lid();
	uint32_t interface;

	if (lid && !attr->dlid) /* reserved, also beside a GRH */
		return false;
	if (attr->is_global)
		return true;
	if (!lid)
		return false;
	attr->grh = (struct ibv_global_route){ .hop_limit = 1 };
	return attr->dlid != lid || sv_gid_at(0, &attr->grh.dgid, &interface);
}

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
	ah->attr = *attr;
	if (attr->port_num != SV_PORT || !route_complete(&ah->attr) ||
	    !sv_gid_at(ah->attr.grh.sgid_index, &ah->source, &interface)) {
		free(ah);
		errno = EINVAL;
		return NULL;
	}
	ah->ibv.context = pd->context;
	ah->ibv.pd = pd;
	/* whether the destination exists is seen in use */
	ah->is_here = (attr->is_global || attr->dlid == sv_lid()) &&
		      (sv_name_is_in_folder() || sv_gid_index(&ah->attr.grh.dgid) >= 0);
	ah->is_far = !ah->is_here && sv_transport()->reaches(&ah->attr.grh.dgid, &ah->host);
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
