/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* dat_rmr_*: each call goes to the provider of its handle. */
#include "dat/common/handle.h"

DAT_RETURN dat_rmr_create(DAT_PZ_HANDLE pz, DAT_RMR_HANDLE *rmr)
{
	CANCEL_OFF_HERE;
	const DAT_PROVIDER *provider = provider_of(pz);

	if (!provider)
		return bad_handle(DAT_INVALID_HANDLE_PZ);
	return PROVIDER_ANSWER(provider, rmr_create_func, pz, rmr);
}

DAT_RETURN dat_rmr_create_for_ep(DAT_PZ_HANDLE pz, DAT_RMR_HANDLE *rmr)
{
	CANCEL_OFF_HERE;
	const DAT_PROVIDER *provider = provider_of(pz);

	if (!provider)
		return bad_handle(DAT_INVALID_HANDLE_PZ);
	if (!provider->rmr_create_for_ep_func)
		return DAT_ERROR(DAT_NOT_IMPLEMENTED, DAT_NO_SUBTYPE);
	return PROVIDER_ANSWER(provider, rmr_create_for_ep_func, pz, rmr);
}

DAT_RETURN dat_rmr_query(DAT_RMR_HANDLE rmr, DAT_RMR_PARAM_MASK mask, DAT_RMR_PARAM *param)
{
	CANCEL_OFF_HERE;
	const DAT_PROVIDER *provider = provider_of(rmr);

	if (!provider)
		return bad_handle(DAT_INVALID_HANDLE_RMR);
	return PROVIDER_ANSWER(provider, rmr_query_func, rmr, mask, param);
}

DAT_RETURN dat_rmr_bind(DAT_RMR_HANDLE rmr, DAT_LMR_HANDLE lmr, const DAT_LMR_TRIPLET *triplet,
			DAT_MEM_PRIV_FLAGS privileges, DAT_VA_TYPE va_type, DAT_EP_HANDLE ep,
			DAT_RMR_COOKIE cookie, DAT_COMPLETION_FLAGS flags, DAT_RMR_CONTEXT *context)
{
	const DAT_PROVIDER *provider = provider_of(rmr);

	if (!provider)
		return bad_handle(DAT_INVALID_HANDLE_RMR);
	return PROVIDER_ANSWER(provider, rmr_bind_func, rmr, lmr, triplet, privileges, va_type, ep,
			       cookie, flags, context);
}

DAT_RETURN dat_rmr_free(DAT_RMR_HANDLE rmr)
{
	CANCEL_OFF_HERE;
	const DAT_PROVIDER *provider = provider_of(rmr);

	if (!provider)
		return bad_handle(DAT_INVALID_HANDLE_RMR);
	return PROVIDER_ANSWER(provider, rmr_free_func, rmr);
}
