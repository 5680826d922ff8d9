/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/*
 * Remote memory regions: created, queried, freed; and the ends of a binding that the consumer did
 * not ask for.
 */
#include "dapl/udapl/mem/mem.h"
#include "dapl/udapl/base/lock_rank.h"
#include "dapl/udapl/base/provider.h"
#include "dapl/udapl/base/upward.h"

struct lock rmr_lock = LOCK_INITIALIZER(RANK_RMR_BOUND);

void rmr_fork_child(void)
{
	rmr_lock = (struct lock)LOCK_INITIALIZER(RANK_RMR_BOUND);
}

void rmr_bind_locked(struct dapl_rmr *rmr, struct dapl_lmr *lmr, struct rmr_scope *scope,
		     uint64_t id)
{
	rmr_unbind_locked(rmr);
	obj_hold(&lmr->obj); /* the caller holds it: this cannot fail */
	rmr->lmr = lmr;
	rmr->bound_by = id;
	if (rmr->param.rmr_scope == DAT_RMR_SCOPE_EP) {
		rmr->scope = scope;
		LIST_INSERT_HEAD(scope, rmr, entry);
	}
}

void rmr_unbind_locked(struct dapl_rmr *rmr)
{
	rmr->bound_by = 0;
	rmr->param.rmr_context = 0;
	rmr->param.lmr_triplet = (DAT_LMR_TRIPLET){ 0 };
	rmr->param.mem_priv = DAT_MEM_PRIV_NONE_FLAG;
	if (rmr->lmr)
		obj_release(&rmr->lmr->obj);
	rmr->lmr = NULL;
	if (rmr->scope)
		LIST_REMOVE(rmr, entry);
	rmr->scope = NULL;
}

DAT_RETURN rmr_renew(struct dapl_rmr *rmr)
{
	struct rmr_window *new;
	DAT_RETURN status;

	if (!rmr->window || !atomic_load(&rmr->stale))
		return DAT_SUCCESS;
	status = rmr_window_create(rmr->pz, rmr->param.rmr_scope == DAT_RMR_SCOPE_EP, &new);
	if (status != DAT_SUCCESS)
		return status;
	rmr_window_release(rmr->window);
	rmr->window = new;
	atomic_store(&rmr->stale, false);
	return DAT_SUCCESS;
}

bool rmr_renew_all(struct dapl_ia *ia)
{
	struct dapl_rmr *rmr;
	bool any = false;
	struct obj *obj;

	pthread_mutex_lock(&ia->lock);
	TAILQ_FOREACH(obj, &ia->objects[OBJ_RMR], link) {
		rmr = (struct dapl_rmr *)obj;
		pthread_mutex_lock(&rmr->lock);
		any |= atomic_load(&rmr->stale) && rmr_renew(rmr) == DAT_SUCCESS;
		pthread_mutex_unlock(&rmr->lock);
	}
	pthread_mutex_unlock(&ia->lock);
	return any;
}

void rmr_bind_failed(uint32_t index, uint64_t id)
{
	struct dapl_rmr *rmr = obj_at(OBJ_RMR, index);

	lock_acquire(&rmr_lock);
	if (rmr->bound_by == id || rmr->binding == id) {
		if (rmr->binding == id)
			rmr->binding = 0;
		rmr_unbind_locked(rmr);
		/* Whether the former binding is still valid depends on how far the device came. */
		atomic_store(&rmr->stale, true);
	}
	lock_release(&rmr_lock);
}

void rmr_invalidated(struct rmr_scope *scope, uint32_t key)
{
	struct dapl_rmr *rmr;

	lock_acquire(&rmr_lock);
	LIST_FOREACH(rmr, scope, entry)
		if (rmr->param.rmr_context == key)
			break;
	if (rmr)
		rmr_unbind_locked(rmr);
	lock_release(&rmr_lock);
}

void rmr_ep_ended(struct rmr_scope *scope)
{
	struct dapl_rmr *rmr;

	lock_acquire(&rmr_lock);
	while ((rmr = LIST_FIRST(scope))) {
		rmr_unbind_locked(rmr);
		/* Only its QP could unbind the window, and that QP accepts no requests any more. */
		atomic_store(&rmr->stale, true);
	}
	lock_release(&rmr_lock);
}

/*
 * Destroys an RMR, which may be half-built. A thread that waits for its lock then finds no window. A bind in flight keeps
 * the window until its slot retires.
 */
void rmr_destroy(struct dapl_rmr *rmr)
{
	struct dapl_pz *pz = rmr->pz;
	struct rmr_window *window;

	obj_hide(&rmr->obj, OBJ_RMR);
	pthread_mutex_lock(&rmr->lock);
	lock_acquire(&rmr_lock);
	rmr_unbind_locked(rmr);
	lock_release(&rmr_lock);
	window = rmr->window;
	rmr->window = NULL;
	pthread_mutex_unlock(&rmr->lock);
	if (window && atomic_load(&window->holders) > 1)
		upward.ep_flights_land(rmr->obj.ia, false);
	if (!rmr_window_release(window))
		upward.ep_flights_land(rmr->obj.ia, true);
	obj_release(&pz->obj);
	obj_free(&rmr->obj, OBJ_RMR);
}

static DAT_RETURN create(DAT_PZ_HANDLE pz_handle, DAT_RMR_SCOPE scope, DAT_RMR_HANDLE *rmr_handle)
{
	struct dapl_pz *pz = pz_from(pz_handle);
	const struct ib_attr *attr;
	struct dapl_rmr *rmr;
	DAT_RETURN status;

	if (!pz)
		return DAT_ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_PZ);
	if (!rmr_handle)
		return DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
	attr = pz->obj.ia->attr;
	if (!(scope == DAT_RMR_SCOPE_EP ? attr->mw_type2 : attr->mw_type1))
		return DAT_ERROR(DAT_MODEL_NOT_SUPPORTED, 0);

	if (!obj_hold(&pz->obj))
		return DAT_ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_PZ);
	rmr = obj_new(pz->obj.ia, OBJ_RMR);
	if (!rmr) {
		obj_release(&pz->obj);
		return DAT_ERROR(DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_MEMORY);
	}
	rmr->pz = pz;
	rmr->param = (DAT_RMR_PARAM){ .pz_handle = pz, .rmr_scope = scope };
	status = rmr_window_create(pz, scope == DAT_RMR_SCOPE_EP, &rmr->window);
	if (status != DAT_SUCCESS) {
		rmr_destroy(rmr);
		return status;
	}
	obj_publish(&rmr->obj, OBJ_RMR);
	*rmr_handle = rmr;
	return DAT_SUCCESS;
}

DAT_RETURN dapl_rmr_create(DAT_PZ_HANDLE pz, DAT_RMR_HANDLE *rmr)
{
	return create(pz, DAT_RMR_SCOPE_PZ, rmr);
}

DAT_RETURN dapl_rmr_create_for_ep(DAT_PZ_HANDLE pz, DAT_RMR_HANDLE *rmr)
{
	return create(pz, DAT_RMR_SCOPE_EP, rmr);
}

DAT_RETURN dapl_rmr_query(DAT_RMR_HANDLE handle, DAT_RMR_PARAM_MASK mask, DAT_RMR_PARAM *param)
{
	struct dapl_rmr *rmr = rmr_from(handle);
	DAT_RMR_PARAM now;
	bool bound;

	if (!rmr)
		return DAT_ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_RMR);
	if (!param)
		return DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG3);
	lock_acquire(&rmr_lock);
	now = rmr->param;
	bound = rmr->lmr;
	lock_release(&rmr_lock);
	if ((unsigned)mask & ~(unsigned)DAT_RMR_FIELD_ALL ||
	    (mask & DAT_RMR_FIELD_LMR_TRIPLET && !bound))
		return DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);

	now.ia_handle = ia_handle(rmr->obj.ia);
	*param = now;
	return DAT_SUCCESS;
}

DAT_RETURN dapl_rmr_free(DAT_RMR_HANDLE handle)
{
	struct dapl_rmr *rmr = rmr_from(handle);

	/* obj_retire fails only if another thread is freeing the RMR. */
	if (!rmr || !obj_retire(&rmr->obj))
		return DAT_ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_RMR);
	rmr_destroy(rmr);
	return DAT_SUCCESS;
}
