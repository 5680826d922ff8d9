/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* dat_lmr_*: each call goes to the provider of its handle. */
#include "dat/common/handle.h"

DAT_RETURN dat_lmr_create(DAT_IA_HANDLE ia_handle, DAT_MEM_TYPE type, DAT_REGION_DESCRIPTION region,
			  DAT_VLEN length, DAT_PZ_HANDLE pz, DAT_MEM_PRIV_FLAGS privileges,
			  DAT_VA_TYPE va_type, DAT_LMR_HANDLE *lmr, DAT_LMR_CONTEXT *lmr_context,
			  DAT_RMR_CONTEXT *rmr_context, DAT_VLEN *reg_length,
			  DAT_VADDR *reg_address)
{
	CANCEL_OFF_HERE;
	struct ia_slot *ia = ia_acquire(ia_handle);
	DAT_RETURN ret;

	if (!ia)
		return bad_handle(DAT_INVALID_HANDLE_IA);
	ret = PROVIDER_ANSWER(ia->provider, lmr_create_func, ia->object, type, region, length, pz,
			      privileges, va_type, lmr, lmr_context, rmr_context, reg_length,
			      reg_address);
	ia_release(ia);
	return ret;
}

DAT_RETURN dat_lmr_query(DAT_LMR_HANDLE lmr, DAT_LMR_PARAM_MASK mask, DAT_LMR_PARAM *param)
{
	CANCEL_OFF_HERE;
	const DAT_PROVIDER *provider = provider_of(lmr);

	if (!provider)
		return bad_handle(DAT_INVALID_HANDLE_LMR);
	return PROVIDER_ANSWER(provider, lmr_query_func, lmr, mask, param);
}

DAT_RETURN dat_lmr_free(DAT_LMR_HANDLE lmr)
{
	CANCEL_OFF_HERE;
	const DAT_PROVIDER *provider = provider_of(lmr);

	if (!provider)
		return bad_handle(DAT_INVALID_HANDLE_LMR);
	return PROVIDER_ANSWER(provider, lmr_free_func, lmr);
}

DAT_RETURN dat_lmr_sync_rdma_read(DAT_IA_HANDLE ia_handle, const DAT_LMR_TRIPLET *iov,
				  DAT_VLEN segments)
{
	CANCEL_OFF_HERE;
	struct ia_slot *ia = ia_acquire(ia_handle);
	DAT_RETURN ret;

	if (!ia)
		return bad_handle(DAT_INVALID_HANDLE_IA);
	ret = PROVIDER_ANSWER(ia->provider, lmr_sync_rdma_read_func, ia->object, iov, segments);
	ia_release(ia);
	return ret;
}

DAT_RETURN dat_lmr_sync_rdma_write(DAT_IA_HANDLE ia_handle, const DAT_LMR_TRIPLET *iov,
				   DAT_VLEN segments)
{
	CANCEL_OFF_HERE;
	struct ia_slot *ia = ia_acquire(ia_handle);
	DAT_RETURN ret;

	if (!ia)
		return bad_handle(DAT_INVALID_HANDLE_IA);
	ret = PROVIDER_ANSWER(ia->provider, lmr_sync_rdma_write_func, ia->object, iov, segments);
	ia_release(ia);
	return ret;
}
