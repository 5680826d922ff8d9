/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* The shared receive queue: creation, posting, counts, and the EPs that draw from it. */
#include <stdlib.h>
#include "dapl/udapl/ep/srq.h"
#include "dapl/udapl/ep/ep.h"
#include "dapl/udapl/base/lock_rank.h"
#include "dapl/udapl/base/provider.h"

static DAT_SRQ_STATE state_set(struct dapl_srq *srq, DAT_SRQ_STATE state)
{
	DAT_SRQ_STATE before;

	lock_acquire(&srq->pool.lock);
	before = srq->state;
	srq->state = state;
	lock_release(&srq->pool.lock);
	return before;
}

/*
 * Accepts a half-built one. The device refuses while a QP is attached; the SRQ is then as before.
 */
static DAT_RETURN srq_destroy(struct dapl_srq *srq)
{
	struct dto_slot *slots = srq->pool.slots;
	uint32_t *free_slots = srq->pool.free_slots;
	/* Nothing is posted from here on. */
	DAT_SRQ_STATE before = state_set(srq, DAT_SRQ_STATE_SHUTDOWN);
	DAT_RETURN status = ib_srq_destroy(srq->srq);

	if (status != DAT_SUCCESS) {
		state_set(srq, before);
		return status;
	}
	/* Behind this lock no late event finds the SRQ any more (dto_pool_return). */
	lock_acquire(&srq->pool.lock);
	obj_next_generation(&srq->obj);
	srq->pool.slots = NULL;
	srq->pool.free_slots = NULL;
	lock_release(&srq->pool.lock);
	free(slots);
	free(free_slots);
	if (srq->pz)
		obj_release(&srq->pz->obj);
	obj_free(&srq->obj, OBJ_SRQ);
	return DAT_SUCCESS;
}

static DAT_RETURN srq_build(struct dapl_srq *srq, const DAT_SRQ_ATTR *attr)
{
	uint32_t max_wr = (uint32_t)attr->max_recv_dtos, max_sge = (uint32_t)attr->max_recv_iov;
	const struct ib_attr *device = srq->obj.ia->attr;
	DAT_RETURN status;

	status = ib_srq_create(srq->pz->pd, &max_wr, &max_sge, srq, &srq->srq);
	if (status != DAT_SUCCESS)
		return status;
	srq->attr = (DAT_SRQ_ATTR){ .max_recv_dtos = (DAT_COUNT)max_wr,
				    .max_recv_iov = (DAT_COUNT)max_sge,
				    .low_watermark = DAT_SRQ_LW_DEFAULT };
	/*
	 * For the largest queue of the device, so that a resize moves no slot; what is not used
	 * costs address space alone.
	 */
	srq->pool.slots_end = max_wr > device->max_srq_wr ? max_wr : device->max_srq_wr;
	srq->pool.slots = calloc(srq->pool.slots_end, sizeof(*srq->pool.slots));
	srq->pool.free_slots = calloc(srq->pool.slots_end, sizeof(*srq->pool.free_slots));
	if (!srq->pool.slots || !srq->pool.free_slots)
		return DAT_ERROR(DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_MEMORY);
	srq->state = DAT_SRQ_STATE_OPERATIONAL;
	return DAT_SUCCESS;
}

static bool srq_attr_valid(const struct ib_attr *device, const DAT_SRQ_ATTR *attr)
{
	return attr && attr->max_recv_dtos > 0 && attr->max_recv_iov > 0 &&
	       attr->low_watermark == DAT_SRQ_LW_DEFAULT &&
	       (!device->max_srq || ((uint32_t)attr->max_recv_dtos <= device->max_srq_wr &&
				     (uint32_t)attr->max_recv_iov <= device->max_srq_sge));
}

DAT_RETURN dapl_srq_create(DAT_IA_HANDLE ia_handle, DAT_PZ_HANDLE pz_handle, DAT_SRQ_ATTR *attr,
			   DAT_SRQ_HANDLE *srq_handle)
{
	struct dapl_ia *ia = ia_from(ia_handle);
	struct dapl_pz *pz = pz_from(pz_handle);
	struct dapl_srq *srq;
	DAT_RETURN status;

	if (!ia)
		return DAT_ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_IA);
	if (!pz || pz->obj.ia != ia)
		return DAT_ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_PZ);
	if (!srq_handle)
		return DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG4);
	if (!srq_attr_valid(ia->attr, attr))
		return DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG3);
	if (!ia->attr->max_srq)
		return DAT_ERROR(DAT_MODEL_NOT_SUPPORTED, 0);

	if (!obj_hold(&pz->obj))
		return DAT_ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_PZ);
	srq = obj_new(ia, OBJ_SRQ);
	if (!srq) {
		obj_release(&pz->obj);
		return DAT_ERROR(DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_MEMORY);
	}
	lock_init(&srq->pool.lock, RANK_SRQ);
	srq->pz = pz;
	status = srq_build(srq, attr);
	if (status != DAT_SUCCESS) {
		srq_destroy(srq);
		return status;
	}
	obj_publish(&srq->obj, OBJ_SRQ);
	*srq_handle = srq;
	return DAT_SUCCESS;
}

DAT_RETURN dapl_srq_free(DAT_SRQ_HANDLE handle)
{
	struct dapl_srq *srq = srq_from(handle);
	DAT_RETURN status;

	if (!srq)
		return DAT_ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_SRQ);
	if (!obj_retire(&srq->obj))
		return DAT_ERROR(DAT_INVALID_STATE, DAT_INVALID_STATE_SRQ_IN_USE);

	status = srq_destroy(srq);
	if (status == DAT_SUCCESS)
		return status;
	obj_unretire(&srq->obj);
	return DAT_ERROR(DAT_INVALID_STATE, DAT_INVALID_STATE_SRQ_IN_USE);
}

/* Abrupt close: the EPs are gone. */
void srq_abandon(struct dapl_srq *srq)
{
	if (srq_destroy(srq) != DAT_SUCCESS)
		obj_free(&srq->obj, OBJ_SRQ);
}

static DAT_RETURN srq_post_locked(struct dapl_srq *srq, const DAT_LMR_TRIPLET *segments,
				  unsigned count, DAT_DTO_COOKIE cookie)
{
	uint32_t slot;
	DAT_RETURN status;

	if (srq->state != DAT_SRQ_STATE_OPERATIONAL)
		return DAT_ERROR(DAT_INVALID_STATE, srq->state == DAT_SRQ_STATE_SHUTDOWN
							    ? DAT_INVALID_STATE_SRQ_SHUTDOWN
							    : DAT_INVALID_STATE_SRQ_ERROR);
	if (srq->pool.outstanding >= (uint32_t)srq->attr.max_recv_dtos)
		return DAT_ERROR(DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_MEMORY);
	/* The one given back last is in the cache. */
	slot = srq->pool.free_count ? srq->pool.free_slots[srq->pool.free_count - 1]
				    : srq->pool.fresh;
	srq->pool.slots[slot] = (struct dto_slot){ .cookie = cookie, .operation = DAT_DTO_RECEIVE };
	status = ib_post_srq_recv(srq->srq, dto_id(DTO_SRQ, &srq->obj, slot), segments, count);
	if (status != DAT_SUCCESS)
		return status;
	/* It cannot have come back yet: that takes the lock. */
	if (srq->pool.free_count)
		srq->pool.free_count--;
	else
		srq->pool.fresh++;
	srq->pool.outstanding++;
	return DAT_SUCCESS;
}

DAT_RETURN dapl_srq_post_recv(DAT_SRQ_HANDLE handle, DAT_COUNT count, DAT_LMR_TRIPLET *segments,
			      DAT_DTO_COOKIE cookie)
{
	struct dapl_srq *srq = srq_from(handle);
	struct dto_list list;
	DAT_RETURN status;

	if (!srq)
		return DAT_ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_SRQ);
	status = list_check((unsigned)count, segments, srq->attr.max_recv_iov);
	if (status != DAT_SUCCESS)
		return status;

	dto_list_init(&list, segments, (unsigned)count);
	lock_acquire(&srq->pool.lock);
	status = srq_post_locked(srq, list.segments, list.count, cookie);
	lock_release(&srq->pool.lock);
	return status;
}

void srq_collect(struct dapl_srq *srq)
{
	struct dapl_ia *ia = srq->obj.ia;
	struct obj *obj;

	pthread_mutex_lock(&ia->lock);
	TAILQ_FOREACH(obj, &ia->objects[OBJ_EP], link) {
		struct dapl_ep *ep = (struct dapl_ep *)obj;

		if (ep->srq == srq && ep->recv_evd)
			evd_drain(ep->recv_evd);
	}
	pthread_mutex_unlock(&ia->lock);
}

DAT_RETURN dapl_srq_query(DAT_SRQ_HANDLE handle, DAT_SRQ_PARAM_MASK mask, DAT_SRQ_PARAM *param)
{
	struct dapl_srq *srq = srq_from(handle);
	DAT_SRQ_PARAM now = { 0 };

	if (!srq)
		return DAT_ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_SRQ);
	if (!param)
		return DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG3);
	if (mask & ~DAT_SRQ_FIELD_ALL)
		return DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);

	srq_collect(srq);
	now.ia_handle = ia_handle(srq->obj.ia);
	now.pz_handle = srq->pz;
	lock_acquire(&srq->pool.lock);
	now.srq_state = srq->state;
	now.max_recv_dtos = srq->attr.max_recv_dtos;
	now.max_recv_iov = srq->attr.max_recv_iov;
	now.low_watermark = srq->attr.low_watermark;
	now.outstanding_dto_count = (DAT_COUNT)srq->pool.outstanding;
	now.available_dto_count = (DAT_COUNT)(srq->pool.outstanding - srq->pool.ready);
	lock_release(&srq->pool.lock);
	*param = now;
	return DAT_SUCCESS;
}

/* ---- EPs and the device ---- */

DAT_RETURN srq_attach(struct dapl_srq *srq)
{
	DAT_RETURN status = DAT_SUCCESS;

	if (!obj_hold(&srq->obj))
		return DAT_ERROR(DAT_INVALID_STATE, DAT_INVALID_STATE_SRQ_SHUTDOWN);
	lock_acquire(&srq->pool.lock);
	if (srq->state == DAT_SRQ_STATE_ERROR)
		status = DAT_ERROR(DAT_INVALID_STATE, DAT_INVALID_STATE_SRQ_ERROR);
	lock_release(&srq->pool.lock);
	if (status != DAT_SUCCESS)
		obj_release(&srq->obj);
	return status;
}

void srq_detach(struct dapl_srq *srq)
{
	obj_release(&srq->obj);
}

void srq_failed(struct dapl_srq *srq)
{
	state_set(srq, DAT_SRQ_STATE_ERROR);
}
