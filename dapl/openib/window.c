/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* Memory windows: create, bind, invalidate, destroy. */
#include <errno.h>
#include <stdlib.h>
#include "dapl/openib/openib.h"
#include <dat2/dat_ib_extensions.h>

DAT_RETURN ib_mw_create(struct ib_pd *pd, bool type2, struct ib_mw **mw)
{
	struct ib_mw *new = calloc(1, sizeof(*new));

	if (!new)
		return DAT_ERROR(DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_MEMORY);
	new->mw = ibv_alloc_mw(pd->pd, type2 ? IBV_MW_TYPE_2 : IBV_MW_TYPE_1);
	if (!new->mw) {
		ib_error(errno, "ibv_alloc_mw", pd->device->attr.device_name);
		free(new);
		return DAT_ERROR(DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_MEMORY_REGION);
	}
	new->key = new->mw->rkey;
	*mw = new;
	return DAT_SUCCESS;
}

void ib_mw_destroy(struct ib_mw *mw)
{
	int error;

	if (!mw)
		return;
	error = ibv_dealloc_mw(mw->mw);
	if (error)
		ib_error(error, "ibv_dealloc_mw", "memory window");
	free(mw);
}

static unsigned window_access_flags(const struct ib_bind *bind)
{
	unsigned access = bind->zero_based ? IBV_ACCESS_ZERO_BASED : 0;

	if (bind->privileges & DAT_MEM_PRIV_REMOTE_READ_FLAG)
		access |= IBV_ACCESS_REMOTE_READ;
	if (bind->privileges & DAT_MEM_PRIV_REMOTE_WRITE_FLAG)
		access |= IBV_ACCESS_REMOTE_WRITE;
	if (bind->privileges & DAT_IB_MEM_PRIV_REMOTE_ATOMIC)
		access |= IBV_ACCESS_REMOTE_ATOMIC;
	return access;
}

int ib_post_bind(struct ib_qp *qp, const struct ib_send_work *work, struct ib_bind *bind)
{
	struct ibv_mw_bind_info info = { .mr = bind->mr ? bind->mr->mr : NULL,
					 .addr = bind->address,
					 .length = bind->length,
					 .mw_access_flags = window_access_flags(bind) };
	struct ibv_mw_bind type1 = { .wr_id = work->wr_id,
				     .send_flags = work->flags,
				     .bind_info = info };
	struct ibv_send_wr type2 = { .wr_id = work->wr_id,
				     .opcode = IBV_WR_BIND_MW,
				     .send_flags = work->flags,
				     .bind_mw = { .mw = bind->mw->mw, .bind_info = info } };
	struct ibv_send_wr *bad;
	int error;

	if (bind->mw->mw->type == IBV_MW_TYPE_1) {
		error = ibv_bind_mw(qp->qp, bind->mw->mw, &type1);
		bind->key = bind->mw->mw->rkey;
		return error;
	}
	bind->key = type2.bind_mw.rkey = ibv_inc_rkey(bind->mw->key);
	error = ibv_post_send(qp->qp, &type2, &bad);
	/* Keep the key for the next bind: some device libraries (librxe) do not update it. */
	if (!error)
		bind->mw->key = bind->mw->mw->rkey = bind->key;
	return error;
}
