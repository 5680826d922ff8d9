/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* The fast path of posts: posts the consumer's single segment. */
#include "dapl/udapl/post/post.h"
#include "dapl/udapl/base/provider.h"

/* ---- requests ---- */

/* The request's flags; 0: slow path. `length - 1` makes 0 the greatest length. */
ALWAYS_INLINE unsigned flags_fast(const struct dapl_ep *ep, unsigned op, uint32_t length)
{
	if (op != IB_OP_READ && length - 1 < EP_INLINE(ep))
		return IB_POST_SIGNALED | IB_POST_INLINE;
	return likely(length - 1 < ep->longest) ? IB_POST_SIGNALED : 0;
}

static __attribute__((noinline)) DAT_RETURN request_slow(struct dapl_ep *ep, unsigned op,
							 const DAT_LMR_TRIPLET *segment,
							 DAT_DTO_COOKIE cookie,
							 const DAT_RMR_TRIPLET *remote,
							 DAT_COMPLETION_FLAGS completion)
{
	if (op == IB_OP_SEND)
		return ep_post_send_slow(ep, 1, segment, cookie, completion);
	return ep_post_rdma_slow(ep, op, 1, segment, cookie, remote, completion);
}

ALWAYS_INLINE uint8_t operation_of(unsigned op)
{
	return op == IB_OP_SEND	   ? DAT_DTO_SEND
	       : op == IB_OP_WRITE ? DAT_DTO_RDMA_WRITE
				   : DAT_DTO_RDMA_READ;
}

/* `completion` is one of the two flags of the fast path; `flags` come from flags_fast. Releases the lock. */
ALWAYS_INLINE DAT_RETURN request_unlocks(struct dapl_ep *ep, unsigned op,
					 const DAT_LMR_TRIPLET *segment, DAT_DTO_COOKIE cookie,
					 const DAT_RMR_TRIPLET *remote,
					 DAT_COMPLETION_FLAGS completion, unsigned flags)
{
	uint32_t length = segment->segment_length, posted;
	struct dto_slot slot = { .cookie = cookie,
				 .operation = operation_of(op),
				 .flags = (uint8_t)completion,
				 .kind = completion ? DTO_SILENT : 0,
				 .length = length };
	struct ib_send_work work;
	DAT_RETURN status;

	posted = atomic_load_explicit(&ep->end.request.posted, memory_order_relaxed);
	if (unlikely(credits_exhausted(&ep->end.request, posted))) {
		lock_release(&ep->end.post_lock);
		return request_slow(ep, op, segment, cookie, remote, completion);
	}
	/* One by one: the struct has 128 bytes, of which a send needs only these. */
	work.segments = segment;
	work.count = 1;
	work.op = op;
	work.flags = flags;
	if (remote) {
		work.remote_address = remote->virtual_address;
		work.remote_key = remote->rmr_context;
	}
	status = request_post_locked(ep, posted, slot, &work, NULL);
	lock_release(&ep->end.post_lock);
	return status;
}

/* The fast path if the EP's lock is not biased to this thread. Not inlined, so that the other one needs few registers. */
static __attribute__((noinline)) DAT_RETURN request_unbiased(struct dapl_ep *ep, unsigned op,
							     const DAT_LMR_TRIPLET *segment,
							     DAT_DTO_COOKIE cookie,
							     const DAT_RMR_TRIPLET *remote,
							     DAT_COMPLETION_FLAGS completion)
{
	unsigned flags = flags_fast(ep, op, segment->segment_length);

	if (unlikely(!flags || !lock_try_unbiased(&ep->end.post_lock)))
		return request_slow(ep, op, segment, cookie, remote, completion);
	return request_unlocks(ep, op, segment, cookie, remote, completion, flags);
}

ALWAYS_INLINE DAT_RETURN request_fast(struct dapl_ep *ep, unsigned op,
				      const DAT_LMR_TRIPLET *segment, DAT_DTO_COOKIE cookie,
				      const DAT_RMR_TRIPLET *remote,
				      DAT_COMPLETION_FLAGS completion)
{
	unsigned flags = flags_fast(ep, op, segment->segment_length);

	if (!flags || unlikely(!lock_try_biased(&ep->end.post_lock)))
		return request_unbiased(ep, op, segment, cookie, remote, completion);
	return request_unlocks(ep, op, segment, cookie, remote, completion, flags);
}

/* A suppressed send; not inlined, to keep its branches out of the common case. */
static __attribute__((noinline)) DAT_RETURN send_silent(struct dapl_ep *ep,
							const DAT_LMR_TRIPLET *segment,
							DAT_DTO_COOKIE cookie)
{
	return request_fast(ep, IB_OP_SEND, segment, cookie, NULL, DAT_COMPLETION_SUPPRESS_FLAG);
}

static __attribute__((noinline)) DAT_RETURN write_silent(struct dapl_ep *ep,
							 const DAT_LMR_TRIPLET *segment,
							 DAT_DTO_COOKIE cookie,
							 const DAT_RMR_TRIPLET *remote)
{
	return request_fast(ep, IB_OP_WRITE, segment, cookie, remote, DAT_COMPLETION_SUPPRESS_FLAG);
}

DAT_RETURN dapl_ep_post_send(DAT_EP_HANDLE handle, DAT_COUNT count, DAT_LMR_TRIPLET *segments,
			     DAT_DTO_COOKIE cookie, DAT_COMPLETION_FLAGS flags)
{
	if (likely(obj_is(handle, OBJ_EP) && post_is_fast(count, segments, flags)))
		return request_fast(handle, IB_OP_SEND, segments, cookie, NULL,
				    DAT_COMPLETION_DEFAULT_FLAG);
	if (obj_is(handle, OBJ_EP) && post_is_fast_silent(count, segments, flags))
		return send_silent(handle, segments, cookie);
	return ep_post_send_slow(handle, count, segments, cookie, flags);
}

DAT_RETURN dapl_ep_post_rdma_read(DAT_EP_HANDLE handle, DAT_COUNT count, DAT_LMR_TRIPLET *segments,
				  DAT_DTO_COOKIE cookie, const DAT_RMR_TRIPLET *remote,
				  DAT_COMPLETION_FLAGS flags)
{
	if (likely(obj_is(handle, OBJ_EP) && post_is_fast(count, segments, flags) && remote))
		return request_fast(handle, IB_OP_READ, segments, cookie, remote,
				    DAT_COMPLETION_DEFAULT_FLAG);
	return ep_post_rdma_slow(handle, IB_OP_READ, count, segments, cookie, remote, flags);
}

DAT_RETURN dapl_ep_post_rdma_write(DAT_EP_HANDLE handle, DAT_COUNT count, DAT_LMR_TRIPLET *segments,
				   DAT_DTO_COOKIE cookie, const DAT_RMR_TRIPLET *remote,
				   DAT_COMPLETION_FLAGS flags)
{
	if (likely(obj_is(handle, OBJ_EP) && post_is_fast(count, segments, flags) && remote))
		return request_fast(handle, IB_OP_WRITE, segments, cookie, remote,
				    DAT_COMPLETION_DEFAULT_FLAG);
	if (obj_is(handle, OBJ_EP) && post_is_fast_silent(count, segments, flags) && remote)
		return write_silent(handle, segments, cookie, remote);
	return ep_post_rdma_slow(handle, IB_OP_WRITE, count, segments, cookie, remote, flags);
}

/* ---- receives ---- */

/* Posts `length` bytes, and releases the lock. */
ALWAYS_INLINE DAT_RETURN recv_unlocks(struct dapl_ep *ep, const DAT_LMR_TRIPLET *segment,
				      uint32_t length, DAT_DTO_COOKIE cookie)
{
	uint32_t posted = atomic_load_explicit(&ep->end.recv.posted, memory_order_relaxed);
	struct dto_slot slot = { .cookie = cookie, .operation = DAT_DTO_RECEIVE };
	struct ib_recv_work work;
	DAT_RETURN status;

	if (unlikely(credits_exhausted(&ep->end.recv, posted))) {
		lock_release(&ep->end.recv_lock);
		return ep_post_recv_slow(ep, 1, segment, cookie, DAT_COMPLETION_DEFAULT_FLAG);
	}
	work.segments = segment;
	work.count = 1;
	status = recv_post_locked(ep, posted, slot, &work, length);
	lock_release(&ep->end.recv_lock);
	return status;
}

/* As request_unbiased, for any post that is not on the fast path. */
static __attribute__((noinline)) DAT_RETURN recv_unbiased(DAT_EP_HANDLE handle, DAT_COUNT count,
							  DAT_LMR_TRIPLET *segments,
							  DAT_DTO_COOKIE cookie,
							  DAT_COMPLETION_FLAGS flags)
{
	struct dapl_ep *ep = handle;

	if (likely(obj_is(handle, OBJ_EP) && post_is_fast(count, segments, flags) &&
		   segments->segment_length && lock_try_unbiased(&ep->end.recv_lock)))
		return recv_unlocks(ep, segments, segments->segment_length, cookie);
	return ep_post_recv_slow(handle, count, segments, cookie, flags);
}

DAT_RETURN dapl_ep_post_recv(DAT_EP_HANDLE handle, DAT_COUNT count, DAT_LMR_TRIPLET *segments,
			     DAT_DTO_COOKIE cookie, DAT_COMPLETION_FLAGS flags)
{
	struct dapl_ep *ep = handle;
	uint32_t length;

	if (unlikely(!obj_is(handle, OBJ_EP) || !post_is_fast(count, segments, flags)))
		return recv_unbiased(handle, count, segments, cookie, flags);
	length = segments->segment_length;
	if (unlikely(!length || !lock_try_biased(&ep->end.recv_lock)))
		return recv_unbiased(handle, count, segments, cookie, flags);
	return recv_unlocks(ep, segments, length, cookie);
}
