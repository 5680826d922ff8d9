/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* dat_csp_*: each call goes to the provider of its handle. */
#include "dat/common/handle.h"

DAT_RETURN dat_csp_create(DAT_IA_HANDLE ia_handle, DAT_COMM *comm, DAT_IA_ADDRESS_PTR address,
			  DAT_EVD_HANDLE evd, DAT_CSP_HANDLE *csp)
{
	CANCEL_OFF_HERE;
	struct ia_slot *ia = ia_acquire(ia_handle);
	DAT_RETURN ret = DAT_ERROR(DAT_NOT_IMPLEMENTED, DAT_NO_SUBTYPE);

	if (!ia)
		return bad_handle(DAT_INVALID_HANDLE_IA);
	if (ia->provider->csp_create_func)
		ret = PROVIDER_ANSWER(ia->provider, csp_create_func, ia->object, comm, address, evd,
				      csp);
	ia_release(ia);
	return ret;
}

DAT_RETURN dat_csp_query(DAT_CSP_HANDLE csp, DAT_CSP_PARAM_MASK mask, DAT_CSP_PARAM *param)
{
	CANCEL_OFF_HERE;
	const DAT_PROVIDER *provider = provider_of(csp);

	if (!provider)
		return bad_handle(DAT_INVALID_HANDLE_CSP);
	if (!provider->csp_query_func)
		return DAT_ERROR(DAT_NOT_IMPLEMENTED, DAT_NO_SUBTYPE);
	return PROVIDER_ANSWER(provider, csp_query_func, csp, mask, param);
}

DAT_RETURN dat_csp_free(DAT_CSP_HANDLE csp)
{
	CANCEL_OFF_HERE;
	const DAT_PROVIDER *provider = provider_of(csp);

	if (!provider)
		return bad_handle(DAT_INVALID_HANDLE_CSP);
	if (!provider->csp_free_func)
		return DAT_ERROR(DAT_NOT_IMPLEMENTED, DAT_NO_SUBTYPE);
	return PROVIDER_ANSWER(provider, csp_free_func, csp);
}
