/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* dat_ep_* but the posts: attributes and parameters are packed anew. */
#include "dat/one/one.h"

DAT_RETURN dat_ep_create(DAT_IA_HANDLE ia, DAT_PZ_HANDLE pz, DAT_EVD_HANDLE recv_evd,
			 DAT_EVD_HANDLE request_evd, DAT_EVD_HANDLE connect_evd,
			 const DAT_EP_ATTR *attr, DAT_EP_HANDLE *ep)
{
	struct two_ep_attr two_attr;

	if (attr)
		one_ep_attr_to_two(&two_attr, attr);
	return one_status(two.ep_create(ia, pz, recv_evd, request_evd, connect_evd,
					attr ? &two_attr : NULL, ep));
}

DAT_RETURN dat_ep_create_with_srq(DAT_IA_HANDLE ia, DAT_PZ_HANDLE pz, DAT_EVD_HANDLE recv_evd,
				  DAT_EVD_HANDLE request_evd, DAT_EVD_HANDLE connect_evd,
				  DAT_SRQ_HANDLE srq, const DAT_EP_ATTR *attr, DAT_EP_HANDLE *ep)
{
	struct two_ep_attr two_attr;

	if (attr)
		one_ep_attr_to_two(&two_attr, attr);
	return one_status(two.ep_create_with_srq(ia, pz, recv_evd, request_evd, connect_evd, srq,
						 attr ? &two_attr : NULL, ep));
}

DAT_RETURN dat_ep_query(DAT_EP_HANDLE ep, DAT_EP_PARAM_MASK mask, DAT_EP_PARAM *param)
{
	DAT_UINT64 two_mask = one_ep_mask(mask);
	struct two_ep_param two_param = { .ia_handle = DAT_HANDLE_NULL };
	DAT_RETURN ret = one_status(two.ep_query(ep, two_mask, param ? &two_param : NULL));

	if (ret != DAT_SUCCESS)
		return ret;
	if (two_mask == ONE_MASK_UNKNOWN)
		return ONE_BAD_ARG(2);
	if (param)
		one_ep_param(param, &two_param);
	return DAT_SUCCESS;
}

DAT_RETURN dat_ep_modify(DAT_EP_HANDLE ep, DAT_EP_PARAM_MASK mask, const DAT_EP_PARAM *param)
{
	DAT_UINT64 two_mask = one_ep_mask(mask);
	struct two_ep_param two_param;
	DAT_RETURN ret;

	if (param)
		one_ep_param_to_two(&two_param, param);
	ret = one_status(two.ep_modify(ep, two_mask, param ? &two_param : NULL));
	if (ret == DAT_SUCCESS && two_mask == ONE_MASK_UNKNOWN)
		return ONE_BAD_ARG(2);
	return ret;
}

DAT_RETURN dat_ep_connect(DAT_EP_HANDLE ep, DAT_IA_ADDRESS_PTR address, DAT_CONN_QUAL qualifier,
			  DAT_TIMEOUT timeout, DAT_COUNT size, const DAT_PVOID data, DAT_QOS qos,
			  DAT_CONNECT_FLAGS flags)
{
	return one_status(two.ep_connect(ep, address, qualifier, timeout, size, data, qos, flags));
}

DAT_RETURN dat_ep_dup_connect(DAT_EP_HANDLE ep, DAT_EP_HANDLE other, DAT_TIMEOUT timeout,
			      DAT_COUNT size, const DAT_PVOID data, DAT_QOS qos)
{
	return one_status(two.ep_dup_connect(ep, other, timeout, size, data, qos));
}

DAT_RETURN dat_ep_disconnect(DAT_EP_HANDLE ep, DAT_CLOSE_FLAGS flags)
{
	return one_status(two.ep_disconnect(ep, flags));
}

DAT_RETURN dat_ep_get_status(DAT_EP_HANDLE ep, DAT_EP_STATE *state, DAT_BOOLEAN *recv_idle,
			     DAT_BOOLEAN *request_idle)
{
	return one_status(two.ep_get_status(ep, state, recv_idle, request_idle));
}

DAT_RETURN dat_ep_recv_query(DAT_EP_HANDLE ep, DAT_COUNT *allocated, DAT_COUNT *span)
{
	return one_status(two.ep_recv_query(ep, allocated, span));
}

DAT_RETURN dat_ep_set_watermark(DAT_EP_HANDLE ep, DAT_COUNT soft, DAT_COUNT hard)
{
	return one_status(two.ep_set_watermark(ep, soft, hard));
}

DAT_RETURN dat_ep_reset(DAT_EP_HANDLE ep)
{
	return one_status(two.ep_reset(ep));
}

DAT_RETURN dat_ep_free(DAT_EP_HANDLE ep)
{
	return one_status(two.ep_free(ep));
}
