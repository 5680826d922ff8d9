/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* The consumer notification object: creation, query, end. */
#include <errno.h>
#include <sched.h>
#include <string.h>
#include "dapl/udapl/cno.h"
#include "dapl/udapl/evd.h"
#include "dapl/udapl/provider.h"
#include "util/log.h"

void cno_show_locked(struct dapl_cno *cno)
{
	if (!TAILQ_EMPTY(&cno->ready) || cno->leaving || cno->dying)
		wakefd_raise(&cno->wake);
	else
		wakefd_clear(&cno->wake);
}

void cno_dismiss_locked(struct dapl_cno *cno)
{
	cno->round++;
	cno->leaving = cno->waiters;
	cno_show_locked(cno);
	cno_agent_call_locked(cno, NULL);
}

static struct dapl_cno *cno_create(struct dapl_ia *ia)
{
	struct dapl_cno *cno = obj_new(ia, OBJ_CNO);

	if (!cno)
		return NULL;
	TAILQ_INIT(&cno->evds);
	TAILQ_INIT(&cno->ready);
	return cno;
}

DAT_RETURN dapl_cno_create(DAT_IA_HANDLE ia_handle, DAT_OS_WAIT_PROXY_AGENT agent,
			   DAT_CNO_HANDLE *cno_handle)
{
	struct dapl_ia *ia = ia_from(ia_handle);
	struct dapl_cno *cno;

	if (!ia)
		return DAT_ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_IA);
	if (!cno_handle)
		return DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG3);

	cno = cno_create(ia);
	if (!cno)
		return DAT_ERROR(DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_MEMORY);
	cno->agent = agent;
	obj_publish(&cno->obj, OBJ_CNO);
	*cno_handle = cno;
	return DAT_SUCCESS;
}

DAT_RETURN dapl_cno_fd_create(DAT_IA_HANDLE ia_handle, DAT_FD *fd, DAT_CNO_HANDLE *cno_handle)
{
	struct dapl_ia *ia = ia_from(ia_handle);
	struct dapl_cno *cno;
	int made;

	if (!ia)
		return DAT_ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_IA);
	if (!fd)
		return DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
	if (!cno_handle)
		return DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG3);

	cno = cno_create(ia);
	if (!cno)
		return DAT_ERROR(DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_MEMORY);
	cno->has_fd = true;
	made = wakefd_get(&cno->wake);
	if (made < 0) {
		log_at(LOG_ERROR, "cno %p: eventfd: %s", (void *)cno, strerror(errno));
		obj_free(&cno->obj, OBJ_CNO);
		return DAT_ERROR(DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_MEMORY);
	}
	obj_publish(&cno->obj, OBJ_CNO);
	*fd = made;
	*cno_handle = cno;
	return DAT_SUCCESS;
}

DAT_RETURN dapl_cno_query(DAT_CNO_HANDLE handle, DAT_CNO_PARAM_MASK mask, DAT_CNO_PARAM *param)
{
	struct dapl_cno *cno = cno_from(handle);
	DAT_CNO_PARAM now = { .proxy_type = DAT_PROXY_TYPE_NONE };

	if (!cno)
		return DAT_ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_CNO);
	if ((unsigned)mask > DAT_CNO_FIELD_ALL)
		return DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
	if (!param)
		return DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG3);

	now.ia_handle = ia_handle(cno->obj.ia);
	pthread_mutex_lock(&cno->lock);
	if (cno->has_fd) {
		now.proxy_type = DAT_PROXY_TYPE_FD;
		now.proxy.fd = wakefd_get(&cno->wake);
	} else if (cno->agent.proxy_agent_func) {
		now.proxy_type = DAT_PROXY_TYPE_AGENT;
		now.proxy.agent = cno->agent;
	}
	pthread_mutex_unlock(&cno->lock);
	*param = now;
	return DAT_SUCCESS;
}

static void cno_release(struct dapl_cno *cno)
{
	wakefd_close(&cno->wake);
	obj_free(&cno->obj, OBJ_CNO);
}

DAT_RETURN dapl_cno_free(DAT_CNO_HANDLE handle)
{
	struct dapl_cno *cno = cno_from(handle);

	if (!cno)
		return DAT_ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_CNO);
	if (cno_agent_is_here(cno) || !obj_retire(&cno->obj))
		return DAT_ERROR(DAT_INVALID_STATE, DAT_INVALID_STATE_CNO_IN_USE);

	cno_agent_end(cno, false);
	cno_release(cno);
	return DAT_SUCCESS;
}

/* EVDs of other IAs may be attached; those of its own are gone. */
void cno_destroy(struct dapl_cno *cno)
{
	struct dapl_evd *evd;

	obj_hide(&cno->obj, OBJ_CNO);
	pthread_mutex_lock(&cno->lock);
	cno->dying = true;
	cno_dismiss_locked(cno);
	while ((evd = TAILQ_FIRST(&cno->evds))) {
		pthread_mutex_unlock(&cno->lock);
		evd_set_cno(evd, NULL);
		pthread_mutex_lock(&cno->lock);
	}
	pthread_mutex_unlock(&cno->lock);
	cno_agent_end(cno, true);
	/* Woken, and so out in a moment. */
	while (!obj_retire(&cno->obj))
		sched_yield();
	cno_release(cno);
}
