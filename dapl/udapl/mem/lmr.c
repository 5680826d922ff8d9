/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* Local memory regions: the checks of a registration, its outputs, its destruction. */
#include <stdlib.h>
#include <string.h>
#include <dat2/dat_ib_extensions.h>
#include "dapl/udapl/base/upward.h"
#include "dapl/udapl/mem/mem.h"
#include "dapl/udapl/base/provider.h"

#define PRIVILEGES_REMOTE                                                                     \
	((unsigned)DAT_MEM_PRIV_REMOTE_READ_FLAG | (unsigned)DAT_MEM_PRIV_REMOTE_WRITE_FLAG | \
	 (unsigned)DAT_IB_MEM_PRIV_REMOTE_ATOMIC)
#define PRIVILEGES_KNOWN ((unsigned)DAT_MEM_PRIV_ALL_FLAG | (unsigned)DAT_IB_MEM_PRIV_REMOTE_ATOMIC)

/*
 * Destroys an LMR, which may be half-built. The device refuses while a window is bound; the LMR is
 * then unchanged.
 */
static DAT_RETURN lmr_destroy(struct dapl_lmr *lmr)
{
	DAT_RETURN status = ib_mr_destroy(lmr->mr);

	if (status != DAT_SUCCESS)
		return status;
	obj_release(&lmr->pz->obj);
	obj_free(&lmr->obj, OBJ_LMR);
	return DAT_SUCCESS;
}

static DAT_RETURN check_rights(const struct ib_attr *attr, DAT_MEM_TYPE type,
			       DAT_MEM_PRIV_FLAGS privileges, DAT_VA_TYPE va_type)
{
	if ((unsigned)type > DAT_MEM_TYPE_SHARED_VIRTUAL)
		return DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
	if ((unsigned)privileges & ~PRIVILEGES_KNOWN)
		return DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG6);
	if ((unsigned)privileges & DAT_IB_MEM_PRIV_REMOTE_ATOMIC && !attr->atomics)
		return DAT_ERROR(DAT_MODEL_NOT_SUPPORTED, 0);
	if ((unsigned)va_type > DAT_VA_TYPE_ZB)
		return DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG7);
	if (va_type == DAT_VA_TYPE_ZB && !attr->zero_based)
		return DAT_ERROR(DAT_MODEL_NOT_SUPPORTED, 0);
	return DAT_SUCCESS;
}

static DAT_RETURN check_length(const struct ib_attr *attr, uintptr_t address, DAT_VLEN length)
{
	if (!length || length > attr->max_mr_size)
		return DAT_ERROR(DAT_LENGTH_ERROR, 0);
	if (address + length - 1 < address)
		return DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG4);
	return DAT_SUCCESS;
}

/*
 * Checks the range of a region. A region over another LMR has the whole range of that, whatever the
 * given length.
 */
static DAT_RETURN find_range(const struct ib_attr *attr, DAT_MEM_TYPE type,
			     const DAT_REGION_DESCRIPTION *region, DAT_VLEN *length, void **address)
{
	bool shared = type == DAT_MEM_TYPE_SHARED_VIRTUAL;
	const struct dapl_lmr *other;
	DAT_RETURN status;

	if (type == DAT_MEM_TYPE_LMR) {
		other = lmr_from(region->for_lmr_handle);
		if (!other)
			return DAT_ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_LMR);
		*address = (void *)(uintptr_t)other->param.registered_address;
		*length = other->param.length;
		return DAT_SUCCESS;
	}
	*address = shared ? region->for_shared_memory.virtual_address : region->for_va;
	status = check_length(attr, (uintptr_t)*address, *length);
	if (status == DAT_SUCCESS && shared && !region->for_shared_memory.shared_memory_id)
		status = DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG3);
	return status;
}

static DAT_RETURN lmr_build(struct dapl_lmr *lmr, void *address, DAT_MEM_PRIV_FLAGS privileges)
{
	DAT_LMR_PARAM *param = &lmr->param;
	uint32_t lkey, rkey;
	DAT_RETURN status;

	status = ib_mr_create(lmr->pz->pd, address, param->length, privileges,
			      param->va_type == DAT_VA_TYPE_ZB, &lmr->mr, &lkey, &rkey);
	if (status != DAT_SUCCESS)
		return status;
	param->lmr_context = lkey;
	/* Without a remote privilege a peer has no use for a key. */
	param->rmr_context = (unsigned)privileges & PRIVILEGES_REMOTE ? rkey : 0;
	param->registered_size = param->length;
	param->registered_address = (DAT_VADDR)(uintptr_t)address;
	if (param->mem_type == DAT_MEM_TYPE_SHARED_VIRTUAL) {
		memcpy(lmr->cookie, param->region_desc.for_shared_memory.shared_memory_id,
		       sizeof(lmr->cookie));
		param->region_desc.for_shared_memory.shared_memory_id = &lmr->cookie;
	}
	return DAT_SUCCESS;
}

DAT_RETURN dapl_lmr_create(DAT_IA_HANDLE ia_handle, DAT_MEM_TYPE type,
			   DAT_REGION_DESCRIPTION region, DAT_VLEN length, DAT_PZ_HANDLE pz_handle,
			   DAT_MEM_PRIV_FLAGS privileges, DAT_VA_TYPE va_type,
			   DAT_LMR_HANDLE *lmr_handle, DAT_LMR_CONTEXT *lmr_context,
			   DAT_RMR_CONTEXT *rmr_context, DAT_VLEN *registered_size,
			   DAT_VADDR *registered_address)
{
	struct dapl_ia *ia = ia_from(ia_handle);
	struct dapl_pz *pz = pz_from(pz_handle);
	struct dapl_lmr *lmr;
	void *address = NULL;
	DAT_RETURN status;

	if (!ia)
		return DAT_ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_IA);
	if (!pz || pz->obj.ia != ia)
		return DAT_ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_PZ);
	if (!lmr_handle)
		return DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG8);
	status = check_rights(ia->attr, type, privileges, va_type);
	if (status == DAT_SUCCESS)
		status = find_range(ia->attr, type, &region, &length, &address);
	if (status != DAT_SUCCESS)
		return status;

	if (!obj_hold(&pz->obj))
		return DAT_ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_PZ);
	lmr = obj_new(ia, OBJ_LMR);
	if (!lmr) {
		obj_release(&pz->obj);
		return DAT_ERROR(DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_MEMORY);
	}
	lmr->pz = pz;
	lmr->param = (DAT_LMR_PARAM){ .mem_type = type,
				      .region_desc = region,
				      .length = length,
				      .pz_handle = pz,
				      .mem_priv = privileges,
				      .va_type = va_type };
	status = lmr_build(lmr, address, privileges);
	if (status != DAT_SUCCESS) {
		lmr_destroy(lmr);
		return status;
	}
	if (va_type == DAT_VA_TYPE_ZB)
		upward.ep_inline_end(ia);
	obj_publish(&lmr->obj, OBJ_LMR);
	*lmr_handle = lmr;
	if (lmr_context)
		*lmr_context = lmr->param.lmr_context;
	if (rmr_context)
		*rmr_context = lmr->param.rmr_context;
	if (registered_size)
		*registered_size = lmr->param.registered_size;
	if (registered_address)
		*registered_address = lmr->param.registered_address;
	return DAT_SUCCESS;
}

DAT_RETURN dapl_lmr_query(DAT_LMR_HANDLE handle, DAT_LMR_PARAM_MASK mask, DAT_LMR_PARAM *param)
{
	struct dapl_lmr *lmr = lmr_from(handle);

	if (!lmr)
		return DAT_ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_LMR);
	if (!param)
		return DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG3);
	if ((unsigned)mask & ~(unsigned)DAT_LMR_FIELD_ALL)
		return DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);

	*param = lmr->param;
	param->ia_handle = ia_handle(lmr->obj.ia);
	return DAT_SUCCESS;
}

DAT_RETURN dapl_lmr_free(DAT_LMR_HANDLE handle)
{
	struct dapl_lmr *lmr = lmr_from(handle);

	if (!lmr)
		return DAT_ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_LMR);
	if (!obj_retire(&lmr->obj)) {
		/* Retired binds do not need the LMR any more, but may not have released it yet. */
		upward.ep_flights_land(lmr->obj.ia, false);
		if (!obj_retire(&lmr->obj))
			return DAT_ERROR(DAT_INVALID_STATE, DAT_INVALID_STATE_LMR_IN_USE);
	}

	if (lmr_destroy(lmr) == DAT_SUCCESS)
		return DAT_SUCCESS;
	/* A window that its EP cannot unbind any more may still refer to the LMR. */
	if (rmr_renew_all(lmr->obj.ia) && lmr_destroy(lmr) == DAT_SUCCESS)
		return DAT_SUCCESS;
	obj_unretire(&lmr->obj);
	return DAT_ERROR(DAT_INVALID_STATE, DAT_INVALID_STATE_LMR_IN_USE);
}

void lmr_abandon(struct dapl_lmr *lmr)
{
	if (lmr_destroy(lmr) == DAT_SUCCESS)
		return;
	obj_release(&lmr->pz->obj);
	obj_free(&lmr->obj, OBJ_LMR);
}

/*
 * Memory is coherent here, so a sync only has to order the processor's own accesses. A locked
 * instruction does what a fence would, and sanitizers know it.
 */
static DAT_RETURN lmr_sync(DAT_IA_HANDLE handle, const DAT_LMR_TRIPLET *segments, DAT_VLEN count)
{
	atomic_int order = 0;

	if (!ia_from(handle))
		return DAT_ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_IA);
	if (count && !segments)
		return DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
	atomic_fetch_add(&order, 1);
	return DAT_SUCCESS;
}

DAT_RETURN dapl_lmr_sync_rdma_read(DAT_IA_HANDLE ia, const DAT_LMR_TRIPLET *segments,
				   DAT_VLEN count)
{
	return lmr_sync(ia, segments, count);
}

DAT_RETURN dapl_lmr_sync_rdma_write(DAT_IA_HANDLE ia, const DAT_LMR_TRIPLET *segments,
				    DAT_VLEN count)
{
	return lmr_sync(ia, segments, count);
}
