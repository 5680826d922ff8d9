/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* dat_srq_*: each call goes to the provider of its handle. */
#include "dat/common/handle.h"

DAT_RETURN dat_srq_create(DAT_IA_HANDLE ia_handle, DAT_PZ_HANDLE pz, DAT_SRQ_ATTR *attr,
			  DAT_SRQ_HANDLE *srq)
{
	CANCEL_OFF_HERE;
	struct ia_slot *ia = ia_acquire(ia_handle);
	DAT_RETURN ret;

	if (!ia)
		return bad_handle(DAT_INVALID_HANDLE_IA);
	ret = PROVIDER_ANSWER(ia->provider, srq_create_func, ia->object, pz, attr, srq);
	ia_release(ia);
	return ret;
}

DAT_RETURN dat_srq_query(DAT_SRQ_HANDLE srq, DAT_SRQ_PARAM_MASK mask, DAT_SRQ_PARAM *param)
{
	CANCEL_OFF_HERE;
	const DAT_PROVIDER *provider = provider_of(srq);

	if (!provider)
		return bad_handle(DAT_INVALID_HANDLE_SRQ);
	return PROVIDER_ANSWER(provider, srq_query_func, srq, mask, param);
}

DAT_RETURN dat_srq_post_recv(DAT_SRQ_HANDLE srq, DAT_COUNT segments, DAT_LMR_TRIPLET *iov,
			     DAT_DTO_COOKIE cookie)
{
	const DAT_PROVIDER *provider = provider_of(srq);

	if (!provider)
		return bad_handle(DAT_INVALID_HANDLE_SRQ);
	return provider->srq_post_recv_func(srq, segments, iov, cookie);
}

DAT_RETURN dat_srq_resize(DAT_SRQ_HANDLE srq, DAT_COUNT max_recv)
{
	CANCEL_OFF_HERE;
	const DAT_PROVIDER *provider = provider_of(srq);

	if (!provider)
		return bad_handle(DAT_INVALID_HANDLE_SRQ);
	return PROVIDER_ANSWER(provider, srq_resize_func, srq, max_recv);
}

DAT_RETURN dat_srq_set_lw(DAT_SRQ_HANDLE srq, DAT_COUNT low)
{
	CANCEL_OFF_HERE;
	const DAT_PROVIDER *provider = provider_of(srq);

	if (!provider)
		return bad_handle(DAT_INVALID_HANDLE_SRQ);
	return PROVIDER_ANSWER(provider, srq_set_lw_func, srq, low);
}

DAT_RETURN dat_srq_free(DAT_SRQ_HANDLE srq)
{
	CANCEL_OFF_HERE;
	const DAT_PROVIDER *provider = provider_of(srq);

	if (!provider)
		return bad_handle(DAT_INVALID_HANDLE_SRQ);
	return PROVIDER_ANSWER(provider, srq_free_func, srq);
}
