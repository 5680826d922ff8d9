/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* The interface adapter: open, the async EVD it comes with, close. */
#include <stdio.h>
#include "dapl/udapl/ep/ud.h"
#include "dapl/udapl/ext/ext.h"
#include "dapl/udapl/base/provider.h"
#include "dapl/udapl/cno/cno.h"
#include "dapl/udapl/cno/pset.h"
#include "dapl/udapl/sp/sp.h"
#include "util/clock.h"
#include "util/log.h"

/*
 * The CM asks three times, once every 6 s (its response timeout, 4.096 us * 2^20, and the path's
 * lifetime).
 */
#define FAREWELL_WAIT (20 * NSEC_PER_SEC)

static uint64_t opened; /* number of IAs that were ever opened; guarded by ia_all_lock */

static const struct ib_upcalls upcalls = {
	.request = sp_request_upcall,
	.conn = ep_conn_upcall,
	.resolved = ud_resolved_upcall,
	.async = async_upcall,
	.completion = evd_completion_upcall,
};

/* ---- open ---- */

/* Removes the IA from ia_all, and its async EVD from other IAs. */
static void async_leave(struct dapl_ia *ia)
{
	struct dapl_evd *evd = ia->async_evd;
	struct dapl_ia *other;

	pthread_mutex_lock(&ia_all_lock);
	TAILQ_REMOVE(&ia_all, ia, all);
	ia->async_evd = NULL;
	if (evd)
		evd_detach(evd, EVD_STREAM_OTHER, 0);
	/* Abrupt close: IAs that use an EVD of this IA as their async EVD have none from now on. */
	TAILQ_FOREACH(other, &ia_all, all) {
		if (other->async_evd && other->async_evd->obj.ia == ia) {
			evd_detach(other->async_evd, EVD_STREAM_OTHER, 0);
			other->async_evd = NULL;
		}
		/*
		 * Its notices may have waited for room in an EVD that is not its async EVD any
		 * more.
		 */
		task_post(&other->task, IA_DUE_NOTICES);
	}
	pthread_mutex_unlock(&ia_all_lock);
	if (evd && ia->owns_async_evd)
		evd_destroy(evd);
}

/* Destroys the IA, which may be half-built but holds no objects. */
static void ia_destroy(struct dapl_ia *ia)
{
	if (ia->no_cq && ib_cq_destroy(ia->no_cq) != DAT_SUCCESS)
		log_at(LOG_ERROR, "ia %s: the device refuses to destroy a CQ", ia->name);
	qp_table_destroy(ia);
	ia_strings_destroy(ia);
	ext_kernel_free(ia);
	task_end(&ia->task);
	ib_device_close(ia->device);
	pthread_mutex_destroy(&ia->notices_lock);
	pthread_mutex_destroy(&ia->no_cq_lock);
	pthread_mutex_destroy(&ia->lock);
	obj_free(&ia->obj, OBJ_IA);
}

static DAT_RETURN ia_create(const char *name, const char *params, const DAT_PROVIDER *provider,
			    struct dapl_ia **ia)
{
	struct dapl_ia *new = obj_new(NULL, OBJ_IA);
	DAT_RETURN status;
	int kind;

	if (!new)
		return DAT_ERROR(DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_MEMORY);
	new->obj.provider = provider;
	snprintf(new->name, sizeof(new->name), "%s", name);
	pthread_mutex_init(&new->lock, NULL);
	pthread_mutex_init(&new->no_cq_lock, NULL);
	pthread_mutex_init(&new->notices_lock, NULL);
	TAILQ_INIT(&new->notices);
	for (kind = 0; kind < OBJ_KINDS; kind++)
		TAILQ_INIT(&new->objects[kind]);
	status = ib_device_open(params, &upcalls, &new->device);
	if (status == DAT_SUCCESS) {
		new->attr = ib_device_attr(new->device);
		task_init(&new->task, new->device, ia_task_run);
		address_copy(&new->address, ib_device_address(new->device));
		status = ia_strings_create(new);
	}
	if (status == DAT_SUCCESS)
		status = qp_table_create(new);
	if (status != DAT_SUCCESS) {
		ia_destroy(new);
		return status;
	}
	*ia = new;
	return DAT_SUCCESS;
}

/* The consumer's choice of async EVD: a new one, that of another instance, or the given one. */
static DAT_RETURN async_join(struct dapl_ia *ia, DAT_COUNT qlen, DAT_EVD_HANDLE given)
{
	struct dapl_evd *evd;
	DAT_RETURN status;

	if (given == DAT_EVD_ASYNC_EXISTS)
		return DAT_SUCCESS;
	if (!given) {
		if (qlen <= 0)
			return DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
		if ((uint32_t)qlen > ia->attr->max_cqe)
			return DAT_ERROR(DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_TEVD);
		status = evd_create(ia, qlen, DAT_EVD_ASYNC_FLAG, &evd);
		if (status != DAT_SUCCESS)
			return status;
		ia->owns_async_evd = true;
	} else {
		evd = evd_from(given);
		if (!evd || !(evd->flags & DAT_EVD_ASYNC_FLAG) || evd->obj.ia->device != ia->device)
			return DAT_ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EVD_ASYNC);
	}
	if (!evd_attach(evd, EVD_STREAM_OTHER, 0))
		return DAT_ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EVD_ASYNC);
	ia->async_evd = evd;
	return DAT_SUCCESS;
}

DAT_RETURN dapl_ia_open(const DAT_NAME_PTR name, DAT_COUNT async_qlen, DAT_EVD_HANDLE *async_evd,
			DAT_IA_HANDLE *ia_out)
{
	const char *params = NULL;
	DAT_BOOLEAN thread_safe = DAT_FALSE;
	const DAT_PROVIDER *provider = name ? provider_find(name, &params, &thread_safe) : NULL;
	struct dapl_ia *ia;
	DAT_RETURN status;

	if (!provider)
		return DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG1);
	if (!ia_out)
		return DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG4);
	if (!async_evd)
		return DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG3);

	lock_bias_open();
	status = ia_create(name, params, provider, &ia);
	if (status != DAT_SUCCESS)
		return status;
	ia->thread_safe = thread_safe;
	status = async_join(ia, async_qlen, *async_evd);
	if (status != DAT_SUCCESS) {
		ia_destroy(ia);
		return status;
	}
	pthread_mutex_lock(&ia_all_lock);
	ia->number = ++opened;
	TAILQ_INSERT_TAIL(&ia_all, ia, all);
	pthread_mutex_unlock(&ia_all_lock);
	obj_publish(&ia->obj, OBJ_IA);
	log_at(LOG_NOTE, "ia %s: open on %s port %u", ia->name, ia->attr->device_name,
	       ia->attr->port);
	if (ia->owns_async_evd)
		*async_evd = ia->async_evd;
	*ia_out = ia;
	return DAT_SUCCESS;
}

/* ---- close ---- */

static bool is_in_use(struct dapl_ia *ia)
{
	struct dapl_evd *own = ia->owns_async_evd ? ia->async_evd : NULL;
	bool used = false;
	struct obj *obj;
	int kind;

	pthread_mutex_lock(&ia->lock);
	for (kind = 0; kind < OBJ_KINDS; kind++)
		TAILQ_FOREACH(obj, &ia->objects[kind], link)
			used |= obj != &own->obj;
	pthread_mutex_unlock(&ia->lock);
	if (!own || used)
		return used;
	/* The last reference is that of the IA itself. */
	if (atomic_load(&own->obj.users) > 1)
		return true;
	lock_acquire(&own->lock);
	used = own->state & EVD_WAITED;
	lock_release(&own->lock);
	return used;
}

static void *ia_first_of(struct dapl_ia *ia, enum obj_kind kind, const void *but)
{
	struct obj *obj;

	pthread_mutex_lock(&ia->lock);
	obj = TAILQ_FIRST(&ia->objects[kind]);
	if (obj && obj == but)
		obj = TAILQ_NEXT(obj, link);
	pthread_mutex_unlock(&ia->lock);
	return obj;
}

/*
 * Destroys each object before the ones it refers to; listeners first, because their requests create
 * endpoints.
 */
static void destroy_all(struct dapl_ia *ia)
{
	static const enum obj_kind listeners[] = { OBJ_PSP, OBJ_RSP, OBJ_CSP };
	struct dapl_evd *own = ia->owns_async_evd ? ia->async_evd : NULL;
	void *obj;
	size_t i;

	for (i = 0; i < sizeof(listeners) / sizeof(listeners[0]); i++)
		while ((obj = ia_first_of(ia, listeners[i], NULL)))
			sp_destroy(obj);
	while ((obj = ia_first_of(ia, OBJ_CR, NULL)))
		cr_destroy(obj);
	while ((obj = ia_first_of(ia, OBJ_EP, NULL))) {
		if (obj_retire_in_use(obj))
			obj_wait_unused(obj);
		ep_destroy(obj);
	}
	while ((obj = ia_first_of(ia, OBJ_RMR, NULL)))
		rmr_destroy(obj);
	while ((obj = ia_first_of(ia, OBJ_LMR, NULL)))
		lmr_abandon(obj);
	while ((obj = ia_first_of(ia, OBJ_SRQ, NULL)))
		srq_abandon(obj);
	while ((obj = ia_first_of(ia, OBJ_PZ, NULL)))
		pz_abandon(obj);
	while ((obj = ia_first_of(ia, OBJ_PSET, NULL)))
		pset_destroy(obj);
	while ((obj = ia_first_of(ia, OBJ_EVD, own)))
		evd_destroy(obj);
	while ((obj = ia_first_of(ia, OBJ_CNO, NULL)))
		cno_destroy(obj);
}

DAT_RETURN dapl_ia_close(DAT_IA_HANDLE handle, DAT_CLOSE_FLAGS flags)
{
	struct dapl_ia *ia = ia_from(handle);

	if (!ia)
		return DAT_ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_IA);
	if (flags != DAT_CLOSE_ABRUPT_FLAG && flags != DAT_CLOSE_GRACEFUL_FLAG)
		return DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
	if (cno_agent_is_of(ia) || (flags == DAT_CLOSE_GRACEFUL_FLAG && is_in_use(ia)))
		return DAT_ERROR(DAT_INVALID_STATE, DAT_INVALID_STATE_IA_IN_USE);

	destroy_all(ia);
	async_leave(ia);
	obj_hide(&ia->obj, OBJ_IA);
	if (flags == DAT_CLOSE_GRACEFUL_FLAG)
		ib_device_drain(ia->device, clock_now() + FAREWELL_WAIT);
	log_at(LOG_NOTE, "ia %s: closed", ia->name);
	ia_destroy(ia);
	return DAT_SUCCESS;
}
