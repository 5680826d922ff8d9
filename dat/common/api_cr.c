/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* dat_cr_*: each call goes to the provider of its handle. */
#include "dat/common/handle.h"

DAT_RETURN dat_cr_query(DAT_CR_HANDLE cr, DAT_CR_PARAM_MASK mask, DAT_CR_PARAM *param)
{
	CANCEL_OFF_HERE;
	const DAT_PROVIDER *provider = provider_of(cr);

	if (!provider)
		return bad_handle(DAT_INVALID_HANDLE_CR);
	return PROVIDER_ANSWER(provider, cr_query_func, cr, mask, param);
}

DAT_RETURN dat_cr_accept(DAT_CR_HANDLE cr, DAT_EP_HANDLE ep, DAT_COUNT size,
			 const DAT_PVOID private_data)
{
	CANCEL_OFF_HERE;
	const DAT_PROVIDER *provider = provider_of(cr);

	if (!provider)
		return bad_handle(DAT_INVALID_HANDLE_CR);
	return PROVIDER_ANSWER(provider, cr_accept_func, cr, ep, size, private_data);
}

DAT_RETURN dat_cr_reject(DAT_CR_HANDLE cr, DAT_COUNT size, const DAT_PVOID private_data)
{
	CANCEL_OFF_HERE;
	const DAT_PROVIDER *provider = provider_of(cr);

	if (!provider)
		return bad_handle(DAT_INVALID_HANDLE_CR);
	return PROVIDER_ANSWER(provider, cr_reject_func, cr, size, private_data);
}

DAT_RETURN dat_cr_handoff(DAT_CR_HANDLE cr, DAT_CONN_QUAL conn_qual)
{
	CANCEL_OFF_HERE;
	const DAT_PROVIDER *provider = provider_of(cr);

	if (!provider)
		return bad_handle(DAT_INVALID_HANDLE_CR);
	return PROVIDER_ANSWER(provider, cr_handoff_func, cr, conn_qual);
}
