/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* Posting, the plain way: a slot for the completion, the consumer's segment handed on as it is. */
#include "dapl/udapl/ep_post.h"
#include "dapl/udapl/provider.h"

/* ---- how far it goes ---- */

static bool is_postable(struct dapl_ep *ep)
{
	/* acquire: the QP of that state is seen with it */
	DAT_EP_STATE state = atomic_load_explicit(&ep->state, memory_order_acquire);

	return ep->qp && EP_ATTR(ep, max_request_iov) > 0 && ep_takes_requests(ep, state);
}

static void bound_locked(struct dto_ring *ring, bool postable)
{
	ring->plain_depth = postable ? ring->depth : 0;
	ring->plain_until = atomic_load_explicit(&ring->posted, memory_order_relaxed);
}

void ep_requests_bound_locked(struct dapl_ep *ep)
{
	bound_locked(&ep->request, is_postable(ep));
}

/* In any state. With an SRQ the ring has no room. Those for datagrams are not plain. */
void ep_recvs_bound_locked(struct dapl_ep *ep)
{
	/* Once it has ended, each receive goes the long way: the device must be told of it. */
	bool ended =
		atomic_load_explicit(&ep->state, memory_order_relaxed) == DAT_EP_STATE_DISCONNECTED;

	bound_locked(&ep->recv,
		     ep->qp && EP_ATTR(ep, max_recv_iov) > 0 && !ended && !ep->datagrams);
}

/* ---- requests ---- */

/* The device refused it: as if it had not been posted. */
static __attribute__((noinline, cold)) DAT_RETURN request_undo_locked(
	struct dapl_ep *ep, unsigned op, const DAT_LMR_TRIPLET *segment, int error)
{
	struct dto_ring *ring = &ep->request;
	uint32_t posted = atomic_load_explicit(&ring->posted, memory_order_relaxed) - 1;

	atomic_store_explicit(&ring->posted, posted, memory_order_relaxed);
	ring->signalled = posted - ring->depth; /* the next one will be */
	request_count_locked(ep, op, 0 - (uint64_t)1, 0 - (uint64_t)segment->segment_length);
	return ib_post_refused(error);
}

/* Gives the lock back. `completion` is one of the two that go the plain way. */
PART DAT_RETURN request_plain_locked(struct dapl_ep *ep, uint32_t posted, unsigned op,
				     unsigned flags, const DAT_LMR_TRIPLET *segment,
				     uint32_t length, DAT_DTO_COOKIE cookie,
				     const DAT_RMR_TRIPLET *remote, DAT_COMPLETION_FLAGS completion)
{
	struct dto_ring *ring = &ep->request;
	uint32_t index = posted & ring->mask;
	struct ib_send_work work;
	int error;

	ring->slots[index] = (struct dto_slot){
		cookie, length, operation_of(op), (uint8_t)completion, completion ? DTO_SILENT : 0,
		0
	};
	if (request_is_silent(ring, posted, completion))
		flags &= ~(unsigned)IB_POST_SIGNALED;
	else
		ring->signalled = posted;
	/* release: whoever counts what is outstanding sees the slot */
	atomic_store_explicit(&ring->posted, posted + 1, memory_order_release);
	request_count_locked(ep, op, 1, length);
	work.wr_id = ring->base | index;
	work.next = NULL;
	work.segments = segment;
	work.count = 1;
	work.opcode = op >> IB_OP_SHIFT;
	work.flags = flags;
	if (remote) {
		work.remote_address = remote->virtual_address;
		work.remote_key = remote->rmr_context;
	}
	error = ib_post_send_work(&ep->posts, &work);
	if (unlikely(error))
		error = (int)request_undo_locked(ep, op, work.segments, error);
	lock_release(&ep->post_lock);
	return (DAT_RETURN)error;
}

/* With which flags it goes; 0: not the plain way. A length of 0 becomes the greatest. */
PART unsigned plain_flags(const struct dapl_ep *ep, unsigned op, uint32_t length)
{
	if (op != IB_OP_READ && length - 1 < EP_INLINE(ep))
		return IB_POST_SIGNALED | IB_POST_INLINE;
	return likely(length - 1 < ep->longest) ? IB_POST_SIGNALED : 0;
}

static __attribute__((noinline)) DAT_RETURN request_other(struct dapl_ep *ep, unsigned op,
							  const DAT_LMR_TRIPLET *segment,
							  DAT_DTO_COOKIE cookie,
							  const DAT_RMR_TRIPLET *remote,
							  DAT_COMPLETION_FLAGS completion)
{
	if (op == IB_OP_SEND)
		return ep_post_send_other(ep, 1, segment, cookie, completion);
	return ep_post_rdma_other(ep, op, 1, segment, cookie, remote, completion);
}

PART DAT_RETURN request_plain(struct dapl_ep *ep, unsigned op, const DAT_LMR_TRIPLET *segment,
			      DAT_DTO_COOKIE cookie, const DAT_RMR_TRIPLET *remote,
			      DAT_COMPLETION_FLAGS completion)
{
	uint32_t length = segment->segment_length, posted;
	unsigned flags = plain_flags(ep, op, length);

	if (unlikely(!flags || !lock_try(&ep->post_lock)))
		return request_other(ep, op, segment, cookie, remote, completion);
	posted = atomic_load_explicit(&ep->request.posted, memory_order_relaxed);
	if (unlikely(is_bound(&ep->request, posted))) {
		lock_release(&ep->post_lock);
		return request_other(ep, op, segment, cookie, remote, completion);
	}
	return request_plain_locked(ep, posted, op, flags, segment, length, cookie, remote,
				    completion);
}

/* Suppressed. Apart from the others, which would carry its decisions along. */
static __attribute__((noinline)) DAT_RETURN send_silent(struct dapl_ep *ep,
							const DAT_LMR_TRIPLET *segment,
							DAT_DTO_COOKIE cookie)
{
	return request_plain(ep, IB_OP_SEND, segment, cookie, NULL, DAT_COMPLETION_SUPPRESS_FLAG);
}

static __attribute__((noinline)) DAT_RETURN write_silent(struct dapl_ep *ep,
							 const DAT_LMR_TRIPLET *segment,
							 DAT_DTO_COOKIE cookie,
							 const DAT_RMR_TRIPLET *remote)
{
	return request_plain(ep, IB_OP_WRITE, segment, cookie, remote,
			     DAT_COMPLETION_SUPPRESS_FLAG);
}

DAT_RETURN dapl_ep_post_send(DAT_EP_HANDLE handle, DAT_COUNT count, DAT_LMR_TRIPLET *segments,
			     DAT_DTO_COOKIE cookie, DAT_COMPLETION_FLAGS flags)
{
	if (likely(obj_is(handle, OBJ_EP) && is_plain(count, segments, flags)))
		return request_plain(handle, IB_OP_SEND, segments, cookie, NULL,
				     DAT_COMPLETION_DEFAULT_FLAG);
	if (obj_is(handle, OBJ_EP) && is_plain_silent(count, segments, flags))
		return send_silent(handle, segments, cookie);
	return ep_post_send_other(handle, count, segments, cookie, flags);
}

DAT_RETURN dapl_ep_post_rdma_read(DAT_EP_HANDLE handle, DAT_COUNT count, DAT_LMR_TRIPLET *segments,
				  DAT_DTO_COOKIE cookie, const DAT_RMR_TRIPLET *remote,
				  DAT_COMPLETION_FLAGS flags)
{
	if (likely(obj_is(handle, OBJ_EP) && is_plain(count, segments, flags) && remote))
		return request_plain(handle, IB_OP_READ, segments, cookie, remote,
				     DAT_COMPLETION_DEFAULT_FLAG);
	return ep_post_rdma_other(handle, IB_OP_READ, count, segments, cookie, remote, flags);
}

DAT_RETURN dapl_ep_post_rdma_write(DAT_EP_HANDLE handle, DAT_COUNT count, DAT_LMR_TRIPLET *segments,
				   DAT_DTO_COOKIE cookie, const DAT_RMR_TRIPLET *remote,
				   DAT_COMPLETION_FLAGS flags)
{
	if (likely(obj_is(handle, OBJ_EP) && is_plain(count, segments, flags) && remote))
		return request_plain(handle, IB_OP_WRITE, segments, cookie, remote,
				     DAT_COMPLETION_DEFAULT_FLAG);
	if (obj_is(handle, OBJ_EP) && is_plain_silent(count, segments, flags) && remote)
		return write_silent(handle, segments, cookie, remote);
	return ep_post_rdma_other(handle, IB_OP_WRITE, count, segments, cookie, remote, flags);
}

/* ---- receives ---- */

static __attribute__((noinline, cold)) DAT_RETURN recv_undo_locked(struct dapl_ep *ep,
								   const DAT_LMR_TRIPLET *segment,
								   int error)
{
	struct dto_ring *ring = &ep->recv;
	uint32_t posted = atomic_load_explicit(&ring->posted, memory_order_relaxed) - 1;

	atomic_store_explicit(&ring->posted, posted, memory_order_relaxed);
	ep_count_locked(ep, DCNT_EP_POST_RECV, 0 - (uint64_t)1);
	ep_count_locked(ep, DCNT_EP_POST_RECV_DATA, 0 - (uint64_t)segment->segment_length);
	return ib_post_refused(error);
}

/* Gives the lock back. */
PART DAT_RETURN recv_plain_locked(struct dapl_ep *ep, uint32_t posted,
				  const DAT_LMR_TRIPLET *segment, uint32_t length,
				  DAT_DTO_COOKIE cookie)
{
	struct dto_ring *ring = &ep->recv;
	uint32_t index = posted & ring->mask;
	struct dto_slot *slot = &ring->slots[index];
	struct ib_recv_work work;
	int error;

	slot->cookie = cookie;
	slot->operation = DAT_DTO_RECEIVE;
	slot->flags = slot->special = slot->unused = 0;
	/* release: as in ep_post_other.c */
	atomic_store_explicit(&ring->posted, posted + 1, memory_order_release);
	ep_count_locked(ep, DCNT_EP_POST_RECV, 1);
	ep_count_locked(ep, DCNT_EP_POST_RECV_DATA, length);
	work.wr_id = ring->base | index;
	work.next = NULL;
	work.segments = segment;
	work.count = 1;
	error = ib_post_recv_work(&ep->posts, &work);
	if (unlikely(error))
		error = (int)recv_undo_locked(ep, work.segments, error);
	lock_release(&ep->recv_lock);
	return (DAT_RETURN)error;
}

PART DAT_RETURN recv_plain(struct dapl_ep *ep, const DAT_LMR_TRIPLET *segment,
			   DAT_DTO_COOKIE cookie)
{
	uint32_t length = segment->segment_length, posted;

	if (unlikely(!length || !lock_try(&ep->recv_lock)))
		return ep_post_recv_other(ep, 1, segment, cookie, DAT_COMPLETION_DEFAULT_FLAG);
	posted = atomic_load_explicit(&ep->recv.posted, memory_order_relaxed);
	if (unlikely(is_bound(&ep->recv, posted))) {
		lock_release(&ep->recv_lock);
		return ep_post_recv_other(ep, 1, segment, cookie, DAT_COMPLETION_DEFAULT_FLAG);
	}
	return recv_plain_locked(ep, posted, segment, length, cookie);
}

DAT_RETURN dapl_ep_post_recv(DAT_EP_HANDLE handle, DAT_COUNT count, DAT_LMR_TRIPLET *segments,
			     DAT_DTO_COOKIE cookie, DAT_COMPLETION_FLAGS flags)
{
	if (likely(obj_is(handle, OBJ_EP) && is_plain(count, segments, flags)))
		return recv_plain(handle, segments, cookie);
	return ep_post_recv_other(handle, count, segments, cookie, flags);
}
