/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* Binding an RMR: the checks, and the requests that bind or unbind its window. */
#include <dat2/dat_ib_extensions.h>
#include "dapl/udapl/ep_post.h"
#include "dapl/udapl/provider.h"

#define PRIVILEGES_WRITE \
	((unsigned)DAT_MEM_PRIV_REMOTE_WRITE_FLAG | (unsigned)DAT_IB_MEM_PRIV_REMOTE_ATOMIC)
#define PRIVILEGES_KNOWN ((unsigned)DAT_MEM_PRIV_ALL_FLAG | (unsigned)DAT_IB_MEM_PRIV_REMOTE_ATOMIC)

struct binding {
	struct dapl_rmr *rmr;
	struct dapl_lmr *lmr; /* NULL: unbind */
	DAT_LMR_TRIPLET triplet;
	DAT_MEM_PRIV_FLAGS privileges;
	DAT_VA_TYPE va_type;
	DAT_RMR_COOKIE cookie;
	DAT_COMPLETION_FLAGS flags;
};

static bool lies_within(const struct dapl_lmr *lmr, const DAT_LMR_TRIPLET *part)
{
	const DAT_LMR_PARAM *whole = &lmr->param;
	uint64_t start = whole->va_type == DAT_VA_TYPE_ZB ? 0 : whole->registered_address;
	uint64_t offset = part->virtual_address - start;

	return part->virtual_address >= start && offset <= whole->length &&
	       part->segment_length <= whole->length - offset;
}

static DAT_RETURN check_bind(const struct binding *new, const struct dapl_ep *ep)
{
	const struct dapl_rmr *rmr = new->rmr;
	const struct dapl_lmr *lmr = new->lmr;

	if (!lmr)
		return DAT_ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_LMR);
	if (new->triplet.lmr_context != lmr->param.lmr_context || !lies_within(lmr, &new->triplet))
		return DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG3);
	if (rmr->pz != ep->pz || lmr->pz != ep->pz)
		return DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG6);
	if ((unsigned)new->privileges & ~PRIVILEGES_KNOWN)
		return DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG4);
	/* Local read is granted to every LMR. */
	if ((unsigned)new->privileges & PRIVILEGES_WRITE &&
	    !(lmr->param.mem_priv & DAT_MEM_PRIV_LOCAL_WRITE_FLAG))
		return DAT_ERROR(DAT_PRIVILEGES_VIOLATION, DAT_PRIVILEGES_RDMA_WRITE);
	if ((unsigned)new->va_type > DAT_VA_TYPE_ZB)
		return DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG5);
	/* Windows of type 1 have their region's addresses (InfiniBand, memory windows). */
	if (new->va_type == DAT_VA_TYPE_ZB &&
	    !(rmr->param.rmr_scope == DAT_RMR_SCOPE_EP && rmr->obj.ia->attr->zero_based))
		return DAT_ERROR(DAT_MODEL_NOT_SUPPORTED, 0);
	return DAT_SUCCESS;
}

/* Posts one request: binds if `key` is not NULL, else ends the RMR's key. */
static DAT_RETURN post_locked(struct dapl_ep *ep, const struct binding *new, uint8_t operation,
			      uint32_t *key, uint64_t *id)
{
	static const DAT_RMR_TRIPLET nowhere;
	const struct dapl_rmr *rmr = new->rmr;
	struct dto_ring *ring = &ep->request;
	uint32_t posted = atomic_load_explicit(&ring->posted, memory_order_relaxed);
	struct dto_slot *slot = &ring->slots[posted & ring->mask];
	struct ib_bind bind = { .mw = rmr->mw,
				.mr = new->lmr ? new->lmr->mr : NULL,
				.address = new->triplet.virtual_address,
				.length = new->triplet.segment_length,
				.privileges = (uint32_t) new->privileges,
				.zero_based = new->va_type == DAT_VA_TYPE_ZB };
	unsigned flags = request_begin(ring, posted, IB_OP_BIND, operation, rmr->obj.index,
				       new->cookie, new->flags);
	DAT_RETURN status;

	slot->special |= operation == DTO_UNBIND ? DTO_SILENT : DTO_EXTENDED;
	*id = ring->base | (posted & ring->mask);
	if (key)
		status = ib_post_bind(ep->qp, flags, *id, &bind, key);
	else if (rmr->lmr)
		status = ib_post_invalidate(ep->qp, flags, *id, rmr->param.rmr_context);
	else /* nothing to end: a write of nothing completes in its place */
		status = ib_post_send(ep->qp, IB_OP_WRITE | flags, *id, NULL, 0, &nowhere);
	return request_end(ep, posted, status);
}

/* Caller holds rmr_lock too: a completion finds the RMR as the request has made it. */
static DAT_RETURN bind_locked(struct dapl_ep *ep, const struct binding *new, uint32_t *key)
{
	struct dapl_rmr *rmr = new->rmr;
	bool type2 = rmr->param.rmr_scope == DAT_RMR_SCOPE_EP;
	DAT_RETURN status = DAT_SUCCESS;
	uint64_t id;

	if (rmr->ep && rmr->ep != ep)
		return DAT_ERROR(DAT_INVALID_STATE, 0);
	/* A bound window of type 2 has to be unbound first (InfiniBand, memory windows). */
	if (new->lmr && rmr->ep)
		status = post_locked(ep, new, DTO_UNBIND, NULL, &id);
	if (status != DAT_SUCCESS)
		return status;
	status = post_locked(ep, new, DAT_DTO_BIND_MW, new->lmr || !type2 ? key : NULL, &id);
	/* Unbound as asked, or because only the first of two requests was taken. */
	if (status == DAT_SUCCESS ? !new->lmr : new->lmr && rmr->ep)
		rmr_unbind_locked(rmr);
	if (status != DAT_SUCCESS || !new->lmr)
		return status;
	rmr_bind_locked(rmr, new->lmr, ep, id);
	rmr->param.lmr_triplet = new->triplet;
	rmr->param.mem_priv = new->privileges;
	rmr->param.va_type = new->va_type;
	rmr->param.rmr_context = *key;
	return DAT_SUCCESS;
}

static DAT_RETURN request_bind(struct dapl_ep *ep, const struct binding *new, uint32_t *key)
{
	struct dapl_rmr *rmr = new->rmr;
	uint32_t posted = atomic_load_explicit(&ep->request.posted, memory_order_relaxed), wanted;
	DAT_RETURN status;

	lock_acquire(&rmr_lock);
	wanted = new->lmr && rmr->ep ? 2 : 1;
	lock_release(&rmr_lock);
	status = request_room_locked(ep, posted, wanted);
	if (status != DAT_SUCCESS)
		return status;
	lock_acquire(&rmr_lock);
	status = bind_locked(ep, new, key);
	lock_release(&rmr_lock);
	return status;
}

/* One bind of an RMR at a time, and none while it is freed. */
static DAT_RETURN bind_one(struct dapl_ep *ep, const struct binding *new, uint32_t *key)
{
	struct dapl_rmr *rmr = new->rmr;
	DAT_RETURN status = DAT_ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_RMR);

	if (new->lmr && !obj_hold(&new->lmr->obj))
		return DAT_ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_LMR);
	lock_acquire(&rmr->lock);
	if (rmr->mw)
		status = rmr_renew(rmr);
	if (status == DAT_SUCCESS) {
		lock_acquire(&ep->post_lock);
		status = request_bind(ep, new, key);
		lock_release(&ep->post_lock);
		if (status != DAT_SUCCESS)
			status = request_not_taken(ep, status);
	}
	lock_release(&rmr->lock);
	if (new->lmr && status != DAT_SUCCESS)
		obj_release(&new->lmr->obj);
	return status;
}

DAT_RETURN dapl_rmr_bind(DAT_RMR_HANDLE rmr_handle, DAT_LMR_HANDLE lmr_handle,
			 const DAT_LMR_TRIPLET *triplet, DAT_MEM_PRIV_FLAGS privileges,
			 DAT_VA_TYPE va_type, DAT_EP_HANDLE ep_handle, DAT_RMR_COOKIE cookie,
			 DAT_COMPLETION_FLAGS flags, DAT_RMR_CONTEXT *context)
{
	struct dapl_ep *ep = ep_from(ep_handle);
	struct binding new = { .rmr = rmr_from(rmr_handle),
			       .privileges = privileges,
			       .va_type = va_type,
			       .cookie = cookie,
			       .flags = flags };
	uint32_t key = 0;
	DAT_RETURN status;

	if (!new.rmr)
		return DAT_ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_RMR);
	if (!ep || ep->datagrams)
		return DAT_ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EP);
	if (!triplet)
		return DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG3);
	if (!flags_valid(flags, FLAGS_REQUEST, EP_ATTR(ep, request_completion_flags)))
		return DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG8);
	if (!context && triplet->segment_length)
		return DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG9);
	status = request_state(ep);
	if (status != DAT_SUCCESS)
		return status;
	if (triplet->segment_length) {
		new.triplet = *triplet;
		new.lmr = lmr_from(lmr_handle);
		status = check_bind(&new, ep);
	} else if (new.rmr->pz != ep->pz) {
		status = DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG6);
	}
	if (status == DAT_SUCCESS)
		status = bind_one(ep, &new, &key);
	if (status == DAT_SUCCESS && context)
		*context = new.lmr ? key : 0;
	return status;
}
