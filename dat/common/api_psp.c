/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* dat_psp_*: each call goes to the provider of its handle. */
#include "dat/common/handle.h"

DAT_RETURN dat_psp_create(DAT_IA_HANDLE ia_handle, DAT_CONN_QUAL conn_qual, DAT_EVD_HANDLE evd,
			  DAT_PSP_FLAGS flags, DAT_PSP_HANDLE *psp)
{
	CANCEL_OFF_HERE;
	struct ia_slot *ia = ia_acquire(ia_handle);
	DAT_RETURN ret;

	if (!ia)
		return bad_handle(DAT_INVALID_HANDLE_IA);
	ret = PROVIDER_ANSWER(ia->provider, psp_create_func, ia->object, conn_qual, evd, flags,
			      psp);
	ia_release(ia);
	return ret;
}

DAT_RETURN dat_psp_create_any(DAT_IA_HANDLE ia_handle, DAT_CONN_QUAL *conn_qual, DAT_EVD_HANDLE evd,
			      DAT_PSP_FLAGS flags, DAT_PSP_HANDLE *psp)
{
	CANCEL_OFF_HERE;
	struct ia_slot *ia = ia_acquire(ia_handle);
	DAT_RETURN ret;

	if (!ia)
		return bad_handle(DAT_INVALID_HANDLE_IA);
	ret = PROVIDER_ANSWER(ia->provider, psp_create_any_func, ia->object, conn_qual, evd, flags,
			      psp);
	ia_release(ia);
	return ret;
}

DAT_RETURN dat_psp_query(DAT_PSP_HANDLE psp, DAT_PSP_PARAM_MASK mask, DAT_PSP_PARAM *param)
{
	CANCEL_OFF_HERE;
	const DAT_PROVIDER *provider = provider_of(psp);

	if (!provider)
		return bad_handle(DAT_INVALID_HANDLE_PSP);
	return PROVIDER_ANSWER(provider, psp_query_func, psp, mask, param);
}

DAT_RETURN dat_psp_free(DAT_PSP_HANDLE psp)
{
	CANCEL_OFF_HERE;
	const DAT_PROVIDER *provider = provider_of(psp);

	if (!provider)
		return bad_handle(DAT_INVALID_HANDLE_PSP);
	return PROVIDER_ANSWER(provider, psp_free_func, psp);
}
