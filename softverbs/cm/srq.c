/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* The shared receive queue of an identifier; multicast and ECE, which this device lacks. */
#include <errno.h>
#include <stddef.h>
#include <string.h>
#include "softverbs/cm/cm.h"
#include "util/log.h"

/* Makes the one SRQ of an identifier, in a PD of its device; queue pairs made on the identifier later use it. */
int rdma_create_srq_ex(struct rdma_cm_id *public, struct ibv_srq_init_attr_ex *attr)
{
	struct cm_id *id = cm_id_of(public);
	struct ibv_srq_init_attr plain = { .srq_context = attr->srq_context, .attr = attr->attr };
	struct ibv_pd *pd =
		attr->comp_mask & IBV_SRQ_INIT_ATTR_PD && attr->pd ? attr->pd : public->pd;

	if (!sv_cm_id_is_ours(id))
		return sv_cm_fail(ENODEV);
	if (public->srq || !id->has_device || !pd || pd->context != public->verbs)
		return sv_cm_fail(EINVAL);
	if (attr->comp_mask & IBV_SRQ_INIT_ATTR_TYPE && attr->srq_type != IBV_SRQT_BASIC)
		return sv_cm_fail(EOPNOTSUPP);
	public->srq = ibv_create_srq(pd, &plain);
	if (!public->srq)
		return -1;
	public->pd = pd;
	attr->attr = plain.attr;
	return 0;
}

int rdma_create_srq(struct rdma_cm_id *public, struct ibv_pd *pd, struct ibv_srq_init_attr *attr)
{
	struct ibv_srq_init_attr_ex full = {
		.srq_context = attr->srq_context,
		.attr = attr->attr,
		.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD,
		.srq_type = IBV_SRQT_BASIC,
		.pd = pd,
	};

	if (rdma_create_srq_ex(public, &full))
		return -1;
	attr->attr = full.attr;
	return 0;
}

void rdma_destroy_srq(struct rdma_cm_id *public)
{
	int error = public->srq ? ibv_destroy_srq(public->srq) : 0;

	if (error)
		log_at(LOG_ERROR, "rdma_cm: id %p: destroy SRQ: %s", (void *)public,
		       strerror(error));
	public->srq = NULL;
}

/* ---- unsupported ---- */

int rdma_join_multicast(struct rdma_cm_id *id, struct sockaddr *addr, void *context)
{
	(void)id;
	(void)addr;
	(void)context;
	return sv_cm_fail(EOPNOTSUPP);
}

int rdma_join_multicast_ex(struct rdma_cm_id *id, struct rdma_cm_join_mc_attr_ex *attr,
			   void *context)
{
	(void)id;
	(void)attr;
	(void)context;
	return sv_cm_fail(EOPNOTSUPP);
}

/* Fails: no group can have been joined. */
int rdma_leave_multicast(struct rdma_cm_id *id, struct sockaddr *addr)
{
	(void)id;
	(void)addr;
	return sv_cm_fail(EADDRNOTAVAIL);
}

int rdma_set_local_ece(struct rdma_cm_id *id, struct ibv_ece *ece)
{
	(void)id;
	(void)ece;
	return sv_cm_fail(EOPNOTSUPP);
}

int rdma_get_remote_ece(struct rdma_cm_id *id, struct ibv_ece *ece)
{
	(void)id;
	(void)ece;
	return sv_cm_fail(EOPNOTSUPP);
}
