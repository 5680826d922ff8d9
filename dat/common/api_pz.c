/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* dat_pz_*: each call goes to the provider of its handle. */
#include "dat/common/handle.h"

DAT_RETURN dat_pz_create(DAT_IA_HANDLE ia_handle, DAT_PZ_HANDLE *pz)
{
	CANCEL_OFF_HERE;
	struct ia_slot *ia = ia_acquire(ia_handle);
	DAT_RETURN ret;

	if (!ia)
		return bad_handle(DAT_INVALID_HANDLE_IA);
	ret = PROVIDER_ANSWER(ia->provider, pz_create_func, ia->object, pz);
	ia_release(ia);
	return ret;
}

DAT_RETURN dat_pz_query(DAT_PZ_HANDLE pz, DAT_PZ_PARAM_MASK mask, DAT_PZ_PARAM *param)
{
	CANCEL_OFF_HERE;
	const DAT_PROVIDER *provider = provider_of(pz);

	if (!provider)
		return bad_handle(DAT_INVALID_HANDLE_PZ);
	return PROVIDER_ANSWER(provider, pz_query_func, pz, mask, param);
}

DAT_RETURN dat_pz_free(DAT_PZ_HANDLE pz)
{
	CANCEL_OFF_HERE;
	const DAT_PROVIDER *provider = provider_of(pz);

	if (!provider)
		return bad_handle(DAT_INVALID_HANDLE_PZ);
	return PROVIDER_ANSWER(provider, pz_free_func, pz);
}
