/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/*
 * Posts and syncs: repack segments on the stack. Lengths have 32 bits in DAT 2.0; longer segments are refused, as are
 * more than ONE_IOV_MAX of them. The fast path is a post of one segment, which needs no array; the *_list functions
 * handle all others, and errors.
 */
#include "dat/one/one.h"

#define unlikely(condition) __builtin_expect(!!(condition), 0)

/* Returns the number of the bad argument, or 0. Does not read a list that DAT 2.0 refuses itself. */
static unsigned iov_to_two(struct two_lmr_triplet to[ONE_IOV_MAX], const DAT_LMR_TRIPLET *from,
			   DAT_COUNT n)
{
	DAT_COUNT i;

	if (n > ONE_IOV_MAX)
		return 2;
	for (i = 0; from && i < n; i++)
		if (!one_lmr_triplet_to_two(&to[i], &from[i]))
			return 3;
	return 0;
}

/* False: the length does not fit. */
static inline bool rmr_triplet_to_two(struct two_rmr_triplet *to, const DAT_RMR_TRIPLET *from)
{
	to->virtual_address = from->target_address;
	to->segment_length = (DAT_UINT32)from->segment_length;
	to->rmr_context = from->rmr_context;
	return from->segment_length <= ONE_LENGTH_MAX;
}

/* ---- Messages ---- */

typedef DAT_RETURN message_function(DAT_EP_HANDLE ep, DAT_COUNT n, struct two_lmr_triplet *iov,
				    DAT_DTO_COOKIE cookie, DAT_COMPLETION_FLAGS flags);

static __attribute__((noinline)) DAT_RETURN message_list(message_function *post, DAT_EP_HANDLE ep,
							 DAT_COUNT n, const DAT_LMR_TRIPLET *iov,
							 DAT_DTO_COOKIE cookie,
							 DAT_COMPLETION_FLAGS flags)
{
	struct two_lmr_triplet two_iov[ONE_IOV_MAX];
	unsigned wrong = iov_to_two(two_iov, iov, n);

	if (wrong)
		return one_refuse(ep, DAT_HANDLE_TYPE_EP, wrong);
	return one_status(post(ep, n, iov ? two_iov : NULL, cookie, flags));
}

DAT_RETURN dat_ep_post_send(DAT_EP_HANDLE ep, DAT_COUNT n, DAT_LMR_TRIPLET *iov,
			    DAT_DTO_COOKIE cookie, DAT_COMPLETION_FLAGS flags)
{
	struct two_lmr_triplet segment;

	if (unlikely(n != 1 || !iov || !one_lmr_triplet_to_two(&segment, iov)))
		return message_list(two.ep_post_send, ep, n, iov, cookie, flags);
	return one_status(two.ep_post_send(ep, 1, &segment, cookie, flags));
}

DAT_RETURN dat_ep_post_recv(DAT_EP_HANDLE ep, DAT_COUNT n, DAT_LMR_TRIPLET *iov,
			    DAT_DTO_COOKIE cookie, DAT_COMPLETION_FLAGS flags)
{
	struct two_lmr_triplet segment;

	if (unlikely(n != 1 || !iov || !one_lmr_triplet_to_two(&segment, iov)))
		return message_list(two.ep_post_recv, ep, n, iov, cookie, flags);
	return one_status(two.ep_post_recv(ep, 1, &segment, cookie, flags));
}

static __attribute__((noinline)) DAT_RETURN srq_list(DAT_SRQ_HANDLE srq, DAT_COUNT n,
						     const DAT_LMR_TRIPLET *iov,
						     DAT_DTO_COOKIE cookie)
{
	struct two_lmr_triplet two_iov[ONE_IOV_MAX];
	unsigned wrong = iov_to_two(two_iov, iov, n);

	if (wrong)
		return one_refuse(srq, DAT_HANDLE_TYPE_SRQ, wrong);
	return one_status(two.srq_post_recv(srq, n, iov ? two_iov : NULL, cookie));
}

DAT_RETURN dat_srq_post_recv(DAT_SRQ_HANDLE srq, DAT_COUNT n, DAT_LMR_TRIPLET *iov,
			     DAT_DTO_COOKIE cookie)
{
	struct two_lmr_triplet segment;

	if (unlikely(n != 1 || !iov || !one_lmr_triplet_to_two(&segment, iov)))
		return srq_list(srq, n, iov, cookie);
	return one_status(two.srq_post_recv(srq, 1, &segment, cookie));
}

/* ---- RDMA ---- */

typedef DAT_RETURN rdma_function(DAT_EP_HANDLE ep, DAT_COUNT n, struct two_lmr_triplet *iov,
				 DAT_DTO_COOKIE cookie, const struct two_rmr_triplet *remote,
				 DAT_COMPLETION_FLAGS flags);

/*
 * Posts ignore the length of the peer's memory, so one that exceeds DAT 2.0's range is no error: it becomes the
 * maximum.
 */
static __attribute__((noinline)) DAT_RETURN rdma_list(rdma_function *post, DAT_EP_HANDLE ep,
						      DAT_COUNT n, const DAT_LMR_TRIPLET *iov,
						      DAT_DTO_COOKIE cookie,
						      const DAT_RMR_TRIPLET *remote,
						      DAT_COMPLETION_FLAGS flags)
{
	struct two_lmr_triplet two_iov[ONE_IOV_MAX];
	struct two_rmr_triplet two_remote;
	unsigned wrong = iov_to_two(two_iov, iov, n);

	if (wrong)
		return one_refuse(ep, DAT_HANDLE_TYPE_EP, wrong);
	if (remote && !rmr_triplet_to_two(&two_remote, remote))
		two_remote.segment_length = ONE_LENGTH_MAX;
	return one_status(
		post(ep, n, iov ? two_iov : NULL, cookie, remote ? &two_remote : NULL, flags));
}

DAT_RETURN dat_ep_post_rdma_read(DAT_EP_HANDLE ep, DAT_COUNT n, DAT_LMR_TRIPLET *iov,
				 DAT_DTO_COOKIE cookie, const DAT_RMR_TRIPLET *remote,
				 DAT_COMPLETION_FLAGS flags)
{
	struct two_lmr_triplet segment;
	struct two_rmr_triplet there;

	if (unlikely(n != 1 || !iov || !remote || !one_lmr_triplet_to_two(&segment, iov) ||
		     !rmr_triplet_to_two(&there, remote)))
		return rdma_list(two.ep_post_rdma_read, ep, n, iov, cookie, remote, flags);
	return one_status(two.ep_post_rdma_read(ep, 1, &segment, cookie, &there, flags));
}

DAT_RETURN dat_ep_post_rdma_write(DAT_EP_HANDLE ep, DAT_COUNT n, DAT_LMR_TRIPLET *iov,
				  DAT_DTO_COOKIE cookie, const DAT_RMR_TRIPLET *remote,
				  DAT_COMPLETION_FLAGS flags)
{
	struct two_lmr_triplet segment;
	struct two_rmr_triplet there;

	if (unlikely(n != 1 || !iov || !remote || !one_lmr_triplet_to_two(&segment, iov) ||
		     !rmr_triplet_to_two(&there, remote)))
		return rdma_list(two.ep_post_rdma_write, ep, n, iov, cookie, remote, flags);
	return one_status(two.ep_post_rdma_write(ep, 1, &segment, cookie, &there, flags));
}

/* ---- Syncs: any number of segments, repacked in groups after all have been checked ---- */

typedef DAT_RETURN sync_function(DAT_IA_HANDLE ia, const struct two_lmr_triplet *iov, DAT_VLEN n);

static DAT_RETURN sync_all(sync_function *sync, DAT_IA_HANDLE ia, const DAT_LMR_TRIPLET *from,
			   DAT_VLEN n)
{
	struct two_lmr_triplet to[ONE_IOV_MAX];
	DAT_RETURN ret;
	DAT_VLEN i, k;

	if (!from || !n)
		return one_status(sync(ia, from ? to : NULL, n));
	for (i = 0; i < n; i++)
		if (from[i].segment_length > ONE_LENGTH_MAX)
			return one_refuse(ia, DAT_HANDLE_TYPE_IA, 2);
	for (i = 0; i < n; i += k) {
		for (k = 0; k < ONE_IOV_MAX && i + k < n; k++)
			one_lmr_triplet_to_two(&to[k], &from[i + k]);
		ret = one_status(sync(ia, to, k));
		if (ret != DAT_SUCCESS)
			return ret;
	}
	return DAT_SUCCESS;
}

DAT_RETURN dat_lmr_sync_rdma_read(DAT_IA_HANDLE ia, const DAT_LMR_TRIPLET *segments, DAT_VLEN n)
{
	return sync_all(two.lmr_sync_rdma_read, ia, segments, n);
}

DAT_RETURN dat_lmr_sync_rdma_write(DAT_IA_HANDLE ia, const DAT_LMR_TRIPLET *segments, DAT_VLEN n)
{
	return sync_all(two.lmr_sync_rdma_write, ia, segments, n);
}
