/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* dat_ep_post_*: each call goes to the provider of its handle. */
#include "dat/common/handle.h"

DAT_RETURN dat_ep_post_send(DAT_EP_HANDLE ep, DAT_COUNT segments, DAT_LMR_TRIPLET *iov,
			    DAT_DTO_COOKIE cookie, DAT_COMPLETION_FLAGS flags)
{
	const DAT_PROVIDER *provider = provider_of(ep);

	if (!provider)
		return bad_handle(DAT_INVALID_HANDLE_EP);
	return provider->ep_post_send_func(ep, segments, iov, cookie, flags);
}

DAT_RETURN dat_ep_post_send_with_invalidate(DAT_EP_HANDLE ep, DAT_COUNT segments,
					    DAT_LMR_TRIPLET *iov, DAT_DTO_COOKIE cookie,
					    DAT_COMPLETION_FLAGS flags, DAT_BOOLEAN invalidate,
					    DAT_RMR_CONTEXT rmr_context)
{
	const DAT_PROVIDER *provider = provider_of(ep);

	if (!provider)
		return bad_handle(DAT_INVALID_HANDLE_EP);
	if (!provider->ep_post_send_with_invalidate_func)
		return DAT_ERROR(DAT_NOT_IMPLEMENTED, DAT_NO_SUBTYPE);
	return provider->ep_post_send_with_invalidate_func(ep, segments, iov, cookie, flags,
							   invalidate, rmr_context);
}

DAT_RETURN dat_ep_post_recv(DAT_EP_HANDLE ep, DAT_COUNT segments, DAT_LMR_TRIPLET *iov,
			    DAT_DTO_COOKIE cookie, DAT_COMPLETION_FLAGS flags)
{
	const DAT_PROVIDER *provider = provider_of(ep);

	if (!provider)
		return bad_handle(DAT_INVALID_HANDLE_EP);
	return provider->ep_post_recv_func(ep, segments, iov, cookie, flags);
}

DAT_RETURN dat_ep_post_rdma_read(DAT_EP_HANDLE ep, DAT_COUNT segments, DAT_LMR_TRIPLET *iov,
				 DAT_DTO_COOKIE cookie, const DAT_RMR_TRIPLET *remote,
				 DAT_COMPLETION_FLAGS flags)
{
	const DAT_PROVIDER *provider = provider_of(ep);

	if (!provider)
		return bad_handle(DAT_INVALID_HANDLE_EP);
	return provider->ep_post_rdma_read_func(ep, segments, iov, cookie, remote, flags);
}

DAT_RETURN dat_ep_post_rdma_read_to_rmr(DAT_EP_HANDLE ep, const DAT_RMR_TRIPLET *iov,
					DAT_DTO_COOKIE cookie, const DAT_RMR_TRIPLET *remote,
					DAT_COMPLETION_FLAGS flags)
{
	const DAT_PROVIDER *provider = provider_of(ep);

	if (!provider)
		return bad_handle(DAT_INVALID_HANDLE_EP);
	if (!provider->ep_post_rdma_read_to_rmr_func)
		return DAT_ERROR(DAT_NOT_IMPLEMENTED, DAT_NO_SUBTYPE);
	return provider->ep_post_rdma_read_to_rmr_func(ep, iov, cookie, remote, flags);
}

DAT_RETURN dat_ep_post_rdma_write(DAT_EP_HANDLE ep, DAT_COUNT segments, DAT_LMR_TRIPLET *iov,
				  DAT_DTO_COOKIE cookie, const DAT_RMR_TRIPLET *remote,
				  DAT_COMPLETION_FLAGS flags)
{
	const DAT_PROVIDER *provider = provider_of(ep);

	if (!provider)
		return bad_handle(DAT_INVALID_HANDLE_EP);
	return provider->ep_post_rdma_write_func(ep, segments, iov, cookie, remote, flags);
}
