/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* dat_rsp_*: each call goes to the provider of its handle. */
#include "dat/common/handle.h"

DAT_RETURN dat_rsp_create(DAT_IA_HANDLE ia_handle, DAT_CONN_QUAL conn_qual, DAT_EP_HANDLE ep,
			  DAT_EVD_HANDLE evd, DAT_RSP_HANDLE *rsp)
{
	CANCEL_OFF_HERE;
	struct ia_slot *ia = ia_acquire(ia_handle);
	DAT_RETURN ret;

	if (!ia)
		return bad_handle(DAT_INVALID_HANDLE_IA);
	ret = PROVIDER_ANSWER(ia->provider, rsp_create_func, ia->object, conn_qual, ep, evd, rsp);
	ia_release(ia);
	return ret;
}

DAT_RETURN dat_rsp_query(DAT_RSP_HANDLE rsp, DAT_RSP_PARAM_MASK mask, DAT_RSP_PARAM *param)
{
	CANCEL_OFF_HERE;
	const DAT_PROVIDER *provider = provider_of(rsp);

	if (!provider)
		return bad_handle(DAT_INVALID_HANDLE_RSP);
	return PROVIDER_ANSWER(provider, rsp_query_func, rsp, mask, param);
}

DAT_RETURN dat_rsp_free(DAT_RSP_HANDLE rsp)
{
	CANCEL_OFF_HERE;
	const DAT_PROVIDER *provider = provider_of(rsp);

	if (!provider)
		return bad_handle(DAT_INVALID_HANDLE_RSP);
	return PROVIDER_ANSWER(provider, rsp_free_func, rsp);
}
