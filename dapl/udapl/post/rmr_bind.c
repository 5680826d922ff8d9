/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* Binding an RMR: the checks, and the requests that bind or unbind its window. */
#include <dat2/dat_ib_extensions.h>
#include "dapl/udapl/post/post.h"
#include "dapl/udapl/base/provider.h"

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

static DAT_RETURN check_bind(const struct binding *next, const struct dapl_ep *ep)
{
	const struct dapl_rmr *rmr = next->rmr;
	const struct dapl_lmr *lmr = next->lmr;

	if (!lmr)
		return DAT_ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_LMR);
	if (next->triplet.lmr_context != lmr->param.lmr_context ||
	    !lies_within(lmr, &next->triplet))
		return DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG3);
	if (rmr->pz != ep->pz || lmr->pz != ep->pz)
		return DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG6);
	if ((unsigned)next->privileges & ~PRIVILEGES_KNOWN)
		return DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG4);
	/* Local read is granted to every LMR. */
	if ((unsigned)next->privileges & PRIVILEGES_WRITE &&
	    !(lmr->param.mem_priv & DAT_MEM_PRIV_LOCAL_WRITE_FLAG))
		return DAT_ERROR(DAT_PRIVILEGES_VIOLATION, DAT_PRIVILEGES_RDMA_WRITE);
	if ((unsigned)next->va_type > DAT_VA_TYPE_ZB)
		return DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG5);
	/* Windows of type 1 have their region's addresses (InfiniBand, memory windows). */
	if (next->va_type == DAT_VA_TYPE_ZB &&
	    !(rmr->param.rmr_scope == DAT_RMR_SCOPE_EP && rmr->obj.ia->attr->zero_based))
		return DAT_ERROR(DAT_MODEL_NOT_SUPPORTED, 0);
	return DAT_SUCCESS;
}

/* What the RMR is bound to now. A completion may end it at any time. */
struct bound {
	bool region;		 /* to an LMR */
	struct rmr_scope *scope; /* through the EP with this one, with the scope of an EP */
	DAT_RMR_CONTEXT key;
};

static struct bound bound_of(const struct dapl_rmr *rmr)
{
	struct bound bound;

	lock_acquire(&rmr_lock);
	bound = (struct bound){ rmr->lmr, rmr->scope, rmr->param.rmr_context };
	lock_release(&rmr_lock);
	return bound;
}

/* Posts one request: binds or unbinds by `bind`, or if that is NULL ends the RMR's key. */
static DAT_RETURN rmr_bind_post_locked(struct dapl_ep *ep, const struct binding *next,
				       uint8_t operation, const struct bound *now,
				       struct ib_bind *bind)
{
	unsigned op = bind ? IB_OP_BIND : now->region ? IB_OP_INV : IB_OP_WRITE;
	bool silent = operation == DTO_UNBIND || next->flags & DAT_COMPLETION_SUPPRESS_FLAG;
	struct ep_request request = {
		/* IB_OP_WRITE: there is nothing to end, and a write of nothing completes in its place */
		.work = { .op = op, .flags = ep_request_flags(op, next->flags), .word = now->key },
		/* Signalled in any case: the end of a flight has to be seen. */
		.slot = { .cookie = next->cookie,
			  .operation = operation,
			  .flags = (uint8_t)(next->flags & ~DAT_COMPLETION_SUPPRESS_FLAG),
			  .kind = silent ? DTO_SILENT : DTO_EXTENDED,
			  .length = next->rmr->obj.index },
	};
	uint32_t posted = atomic_load_explicit(&ep->end.request.posted, memory_order_relaxed);
	DAT_RETURN status = ep_request_post_locked(ep, &request, bind);

	if (status == DAT_SUCCESS)
		rmr_flight_begin_locked(&ep->end.flights, posted, next->rmr->window,
					bind ? next->lmr : NULL);
	return status;
}

/*
 * The device is called without rmr_lock, so the bind may fail before the binding is recorded: `binding` has its id by
 * then, and rmr_bind_failed clears it. The EP's end waits for the post lock, or the device flushes the bind.
 */
static DAT_RETURN bind_region_locked(struct dapl_ep *ep, const struct binding *next,
				     const struct bound *now, struct ib_bind *bind)
{
	const struct dto_ring *ring = &ep->end.request;
	uint32_t posted = atomic_load_explicit(&ring->posted, memory_order_relaxed);
	uint64_t id = ring->base | (posted & ring->mask);
	struct dapl_rmr *rmr = next->rmr;
	DAT_RETURN status;

	lock_acquire(&rmr_lock);
	rmr->binding = id;
	lock_release(&rmr_lock);
	status = rmr_bind_post_locked(ep, next, DAT_DTO_BIND_MW, now, bind);
	lock_acquire(&rmr_lock);
	if (status == DAT_SUCCESS && rmr->binding == id) {
		rmr_bind_locked(rmr, next->lmr, &ep->end.rmrs, id);
		rmr->param.lmr_triplet = next->triplet;
		rmr->param.mem_priv = next->privileges;
		rmr->param.va_type = next->va_type;
		rmr->param.rmr_context = bind->key;
	} else if (status != DAT_SUCCESS && rmr->scope) {
		rmr_unbind_locked(rmr); /* only the first of two requests was taken */
	}
	rmr->binding = 0;
	lock_release(&rmr_lock);
	return status;
}

static DAT_RETURN rmr_unbind_post_locked(struct dapl_ep *ep, const struct binding *next,
					 const struct bound *now, struct ib_bind *bind)
{
	bool type2 = next->rmr->param.rmr_scope == DAT_RMR_SCOPE_EP;
	DAT_RETURN status =
		rmr_bind_post_locked(ep, next, DAT_DTO_BIND_MW, now, type2 ? NULL : bind);

	if (status != DAT_SUCCESS)
		return status;
	lock_acquire(&rmr_lock);
	rmr_unbind_locked(next->rmr);
	lock_release(&rmr_lock);
	return DAT_SUCCESS;
}

/* A bound window of type 2 has to be unbound before it is bound (InfiniBand, memory windows). */
static DAT_RETURN request_bind_locked(struct dapl_ep *ep, const struct binding *next, uint32_t *key)
{
	const struct dapl_rmr *rmr = next->rmr;
	struct bound now = bound_of(rmr);
	struct ib_bind bind = { .mw = rmr->window->mw,
				.mr = next->lmr ? next->lmr->mr : NULL,
				.address = next->triplet.virtual_address,
				.length = next->triplet.segment_length,
				.privileges = (uint32_t)next->privileges,
				.zero_based = next->va_type == DAT_VA_TYPE_ZB };
	bool unbinds = next->lmr && now.scope;
	DAT_RETURN status = ep_request_room_locked(ep, unbinds ? 2 : 1);

	if (status != DAT_SUCCESS)
		return status;
	if (now.scope && now.scope != &ep->end.rmrs)
		return DAT_ERROR(DAT_INVALID_STATE, 0);
	if (!next->lmr)
		return rmr_unbind_post_locked(ep, next, &now, &bind);
	if (unbinds)
		status = rmr_bind_post_locked(ep, next, DTO_UNBIND, &now, NULL);
	if (status == DAT_SUCCESS)
		status = bind_region_locked(ep, next, &now, &bind);
	*key = bind.key;
	return status;
}

/* Acquires the post lock. Flights that have landed are still listed at times, those in flight find room. */
static void flights_make_room_and_lock(struct dapl_ep *ep)
{
	const struct rmr_flight_list *list = &ep->end.flights.list;

	ep_request_lock(ep, 2);
	while (list->flights && list->tail - list->head + 2 > list->mask + 1) {
		lock_release(&ep->end.post_lock);
		rmr_flights_land(&ep->end.flights);
		lock_acquire(&ep->end.post_lock);
	}
}

/* One bind of an RMR at a time, and none while it is freed. */
static DAT_RETURN bind_one(struct dapl_ep *ep, const struct binding *next, uint32_t *key)
{
	struct dapl_rmr *rmr = next->rmr;
	DAT_RETURN status = DAT_ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_RMR);

	if (next->lmr && !obj_hold(&next->lmr->obj))
		return DAT_ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_LMR);
	pthread_mutex_lock(&rmr->lock);
	if (rmr->window)
		status = rmr_renew(rmr);
	if (status == DAT_SUCCESS) {
		flights_make_room_and_lock(ep);
		status = request_bind_locked(ep, next, key);
		lock_release(&ep->end.post_lock);
		if (status != DAT_SUCCESS)
			status = request_refused(ep, status);
	}
	pthread_mutex_unlock(&rmr->lock);
	if (next->lmr)
		obj_release(&next->lmr->obj);
	return status;
}

DAT_RETURN dapl_rmr_bind(DAT_RMR_HANDLE rmr_handle, DAT_LMR_HANDLE lmr_handle,
			 const DAT_LMR_TRIPLET *triplet, DAT_MEM_PRIV_FLAGS privileges,
			 DAT_VA_TYPE va_type, DAT_EP_HANDLE ep_handle, DAT_RMR_COOKIE cookie,
			 DAT_COMPLETION_FLAGS flags, DAT_RMR_CONTEXT *context)
{
	struct dapl_ep *ep = ep_from(ep_handle);
	struct binding next = { .rmr = rmr_from(rmr_handle),
				.privileges = privileges,
				.va_type = va_type,
				.cookie = cookie,
				.flags = flags };
	uint32_t key = 0;
	DAT_RETURN status;

	if (!next.rmr)
		return DAT_ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_RMR);
	if (!ep || ep->end.datagrams)
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
		next.triplet = *triplet;
		next.lmr = lmr_from(lmr_handle);
		status = check_bind(&next, ep);
	} else if (next.rmr->pz != ep->pz) {
		status = DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG6);
	}
	if (status == DAT_SUCCESS)
		status = bind_one(ep, &next, &key);
	if (status == DAT_SUCCESS && context)
		*context = key;
	return status;
}
