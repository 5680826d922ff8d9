/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* dat_ep_* but posting: each call goes to the provider of its handle. */
#include "dat/common/handle.h"

DAT_RETURN dat_ep_create(DAT_IA_HANDLE ia_handle, DAT_PZ_HANDLE pz, DAT_EVD_HANDLE recv_evd,
			 DAT_EVD_HANDLE request_evd, DAT_EVD_HANDLE connect_evd,
			 const DAT_EP_ATTR *attr, DAT_EP_HANDLE *ep)
{
	CANCEL_OFF_HERE;
	struct ia_slot *ia = ia_acquire(ia_handle);
	DAT_RETURN ret;

	if (!ia)
		return bad_handle(DAT_INVALID_HANDLE_IA);
	ret = PROVIDER_ANSWER(ia->provider, ep_create_func, ia->object, pz, recv_evd, request_evd,
			      connect_evd, attr, ep);
	ia_release(ia);
	return ret;
}

DAT_RETURN dat_ep_create_with_srq(DAT_IA_HANDLE ia_handle, DAT_PZ_HANDLE pz,
				  DAT_EVD_HANDLE recv_evd, DAT_EVD_HANDLE request_evd,
				  DAT_EVD_HANDLE connect_evd, DAT_SRQ_HANDLE srq,
				  const DAT_EP_ATTR *attr, DAT_EP_HANDLE *ep)
{
	CANCEL_OFF_HERE;
	struct ia_slot *ia = ia_acquire(ia_handle);
	DAT_RETURN ret;

	if (!ia)
		return bad_handle(DAT_INVALID_HANDLE_IA);
	ret = PROVIDER_ANSWER(ia->provider, ep_create_with_srq_func, ia->object, pz, recv_evd,
			      request_evd, connect_evd, srq, attr, ep);
	ia_release(ia);
	return ret;
}

DAT_RETURN dat_ep_query(DAT_EP_HANDLE ep, DAT_EP_PARAM_MASK mask, DAT_EP_PARAM *param)
{
	CANCEL_OFF_HERE;
	const DAT_PROVIDER *provider = provider_of(ep);

	if (!provider)
		return bad_handle(DAT_INVALID_HANDLE_EP);
	return PROVIDER_ANSWER(provider, ep_query_func, ep, mask, param);
}

DAT_RETURN dat_ep_modify(DAT_EP_HANDLE ep, DAT_EP_PARAM_MASK mask, const DAT_EP_PARAM *param)
{
	CANCEL_OFF_HERE;
	const DAT_PROVIDER *provider = provider_of(ep);

	if (!provider)
		return bad_handle(DAT_INVALID_HANDLE_EP);
	return PROVIDER_ANSWER(provider, ep_modify_func, ep, mask, param);
}

DAT_RETURN dat_ep_get_status(DAT_EP_HANDLE ep, DAT_EP_STATE *state, DAT_BOOLEAN *recv_idle,
			     DAT_BOOLEAN *request_idle)
{
	CANCEL_DEFER_HERE;
	const DAT_PROVIDER *provider = provider_of(ep);

	if (!provider)
		return bad_handle(DAT_INVALID_HANDLE_EP);
	return PROVIDER_ANSWER(provider, ep_get_status_func, ep, state, recv_idle, request_idle);
}

DAT_RETURN dat_ep_recv_query(DAT_EP_HANDLE ep, DAT_COUNT *allocated, DAT_COUNT *span)
{
	CANCEL_OFF_HERE;
	const DAT_PROVIDER *provider = provider_of(ep);

	if (!provider)
		return bad_handle(DAT_INVALID_HANDLE_EP);
	return PROVIDER_ANSWER(provider, ep_recv_query_func, ep, allocated, span);
}

DAT_RETURN dat_ep_set_watermark(DAT_EP_HANDLE ep, DAT_COUNT soft, DAT_COUNT hard)
{
	CANCEL_OFF_HERE;
	const DAT_PROVIDER *provider = provider_of(ep);

	if (!provider)
		return bad_handle(DAT_INVALID_HANDLE_EP);
	return PROVIDER_ANSWER(provider, ep_set_watermark_func, ep, soft, hard);
}

DAT_RETURN dat_ep_connect(DAT_EP_HANDLE ep, DAT_IA_ADDRESS_PTR address, DAT_CONN_QUAL conn_qual,
			  DAT_TIMEOUT timeout, DAT_COUNT size, const DAT_PVOID private_data,
			  DAT_QOS qos, DAT_CONNECT_FLAGS flags)
{
	CANCEL_OFF_HERE;
	const DAT_PROVIDER *provider = provider_of(ep);

	if (!provider)
		return bad_handle(DAT_INVALID_HANDLE_EP);
	return PROVIDER_ANSWER(provider, ep_connect_func, ep, address, conn_qual, timeout, size,
			       private_data, qos, flags);
}

DAT_RETURN dat_ep_dup_connect(DAT_EP_HANDLE ep, DAT_EP_HANDLE dup, DAT_TIMEOUT timeout,
			      DAT_COUNT size, const DAT_PVOID private_data, DAT_QOS qos)
{
	CANCEL_OFF_HERE;
	const DAT_PROVIDER *provider = provider_of(ep);

	if (!provider)
		return bad_handle(DAT_INVALID_HANDLE_EP);
	return PROVIDER_ANSWER(provider, ep_dup_connect_func, ep, dup, timeout, size, private_data,
			       qos);
}

DAT_RETURN dat_ep_common_connect(DAT_EP_HANDLE ep, DAT_IA_ADDRESS_PTR address, DAT_TIMEOUT timeout,
				 DAT_COUNT size, const DAT_PVOID private_data)
{
	CANCEL_OFF_HERE;
	const DAT_PROVIDER *provider = provider_of(ep);

	if (!provider)
		return bad_handle(DAT_INVALID_HANDLE_EP);
	if (!provider->ep_common_connect_func)
		return DAT_ERROR(DAT_NOT_IMPLEMENTED, DAT_NO_SUBTYPE);
	return PROVIDER_ANSWER(provider, ep_common_connect_func, ep, address, timeout, size,
			       private_data);
}

DAT_RETURN dat_ep_disconnect(DAT_EP_HANDLE ep, DAT_CLOSE_FLAGS flags)
{
	CANCEL_OFF_HERE;
	const DAT_PROVIDER *provider = provider_of(ep);

	if (!provider)
		return bad_handle(DAT_INVALID_HANDLE_EP);
	return PROVIDER_ANSWER(provider, ep_disconnect_func, ep, flags);
}

DAT_RETURN dat_ep_reset(DAT_EP_HANDLE ep)
{
	CANCEL_OFF_HERE;
	const DAT_PROVIDER *provider = provider_of(ep);

	if (!provider)
		return bad_handle(DAT_INVALID_HANDLE_EP);
	return PROVIDER_ANSWER(provider, ep_reset_func, ep);
}

DAT_RETURN dat_ep_free(DAT_EP_HANDLE ep)
{
	CANCEL_OFF_HERE;
	const DAT_PROVIDER *provider = provider_of(ep);

	if (!provider)
		return bad_handle(DAT_INVALID_HANDLE_EP);
	return PROVIDER_ANSWER(provider, ep_free_func, ep);
}
