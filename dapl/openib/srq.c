/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* Shared receive queues. */
#include <errno.h>
#include <stdlib.h>
#include "dapl/openib/openib.h"

DAT_RETURN ib_srq_create(struct ib_pd *pd, uint32_t *max_wr, uint32_t *max_sge, void *owner,
			 struct ib_srq **srq)
{
	struct ib_srq *new = calloc(1, sizeof(*new));
	struct ibv_srq_init_attr init = {
		.srq_context = new,
		.attr = { .max_wr = *max_wr, .max_sge = *max_sge },
	};

	if (!new)
		return DAT_ERROR(DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_MEMORY);
	new->owner = owner;
	new->srq = ibv_create_srq(pd->pd, &init);
	if (!new->srq) {
		ib_error(errno, "ibv_create_srq", pd->device->attr.device_name);
		free(new);
		return DAT_ERROR(DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_SRQ);
	}
	*max_wr = wr_granted(init.attr.max_wr);
	*max_sge = sge_granted(init.attr.max_sge);
	*srq = new;
	return DAT_SUCCESS;
}

DAT_RETURN ib_srq_resize(struct ib_srq *srq, uint32_t *max_wr)
{
	struct ibv_srq_attr attr = { .max_wr = *max_wr };
	int error = ibv_modify_srq(srq->srq, &attr, IBV_SRQ_MAX_WR);

	if (error) {
		ib_error(error, "ibv_modify_srq to resize", "SRQ");
		return DAT_ERROR(DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_SRQ);
	}
	/* The resize has succeeded even if the query fails; the size is then at least the requested one. */
	error = ibv_query_srq(srq->srq, &attr);
	if (error)
		ib_error(error, "ibv_query_srq", "SRQ");
	else
		*max_wr = wr_granted(attr.max_wr);
	return DAT_SUCCESS;
}

DAT_RETURN ib_srq_limit(struct ib_srq *srq, uint32_t limit)
{
	struct ibv_srq_attr attr = { .srq_limit = limit };
	int error = ibv_modify_srq(srq->srq, &attr, IBV_SRQ_LIMIT);
	DAT_RETURN status = ib_error(error, "ibv_modify_srq to set the limit", "SRQ");

	if (error == ENOSYS || error == EOPNOTSUPP)
		return DAT_ERROR(DAT_MODEL_NOT_SUPPORTED, 0);
	return status;
}

DAT_RETURN ib_srq_destroy(struct ib_srq *srq)
{
	int error;

	if (!srq)
		return DAT_SUCCESS;
	error = ibv_destroy_srq(srq->srq);
	if (error)
		return ib_error(error, "ibv_destroy_srq", "SRQ");
	free(srq);
	return DAT_SUCCESS;
}
