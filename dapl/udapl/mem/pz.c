/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* Protection zones. */
#include "dapl/udapl/mem/mem.h"
#include "dapl/udapl/base/provider.h"

/*
 * Destroys a PZ, which may be half-built. The device refuses while memory is registered in it; the
 * PZ is then unchanged.
 */
static DAT_RETURN pz_destroy(struct dapl_pz *pz)
{
	DAT_RETURN status = ib_pd_destroy(pz->pd);

	if (status == DAT_SUCCESS)
		obj_free(&pz->obj, OBJ_PZ);
	return status;
}

DAT_RETURN dapl_pz_create(DAT_IA_HANDLE ia_handle, DAT_PZ_HANDLE *pz_handle)
{
	struct dapl_ia *ia = ia_from(ia_handle);
	struct dapl_pz *pz;
	DAT_RETURN status;

	if (!ia)
		return DAT_ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_IA);
	if (!pz_handle)
		return DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);

	pz = obj_new(ia, OBJ_PZ);
	if (!pz)
		return DAT_ERROR(DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_MEMORY);
	status = ib_pd_create(ia->device, &pz->pd);
	if (status != DAT_SUCCESS) {
		pz_destroy(pz);
		return status;
	}
	obj_publish(&pz->obj, OBJ_PZ);
	*pz_handle = pz;
	return DAT_SUCCESS;
}

DAT_RETURN dapl_pz_query(DAT_PZ_HANDLE handle, DAT_PZ_PARAM_MASK mask, DAT_PZ_PARAM *param)
{
	struct dapl_pz *pz = pz_from(handle);

	if (!pz)
		return DAT_ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_PZ);
	if (!param)
		return DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG3);
	if ((unsigned)mask & ~(unsigned)DAT_PZ_FIELD_ALL)
		return DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);

	param->ia_handle = ia_handle(pz->obj.ia);
	return DAT_SUCCESS;
}

DAT_RETURN dapl_pz_free(DAT_PZ_HANDLE handle)
{
	struct dapl_pz *pz = pz_from(handle);

	if (!pz)
		return DAT_ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_PZ);
	if (!obj_retire(&pz->obj))
		return DAT_ERROR(DAT_INVALID_STATE, DAT_INVALID_STATE_PZ_IN_USE);

	if (pz_destroy(pz) == DAT_SUCCESS)
		return DAT_SUCCESS;
	obj_unretire(&pz->obj);
	return DAT_ERROR(DAT_INVALID_STATE, DAT_INVALID_STATE_PZ_IN_USE);
}

void pz_abandon(struct dapl_pz *pz)
{
	if (pz_destroy(pz) != DAT_SUCCESS)
		obj_free(&pz->obj, OBJ_PZ);
}
