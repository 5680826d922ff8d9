/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* The consumer notification object: creation, query, destruction. */
#include <sched.h>
#include <sys/epoll.h>
#include <unistd.h>
#include "dapl/udapl/cno/cno.h"
#include "dapl/udapl/evd/evd.h"
#include "dapl/udapl/base/provider.h"
#include "util/clock.h"
#include "util/log.h"

void cno_show_locked(struct dapl_cno *cno)
{
	if (!TAILQ_EMPTY(&cno->ready) || cno->leaving || cno->state & (CNO_DYING | CNO_CHANGED))
		wakefd_raise(&cno->wake);
	else
		wakefd_clear(&cno->wake);
	/* The descriptor is cleared first, because a signal takes no lock. */
	if (wakefd_is_signalled(&cno->wake))
		wakefd_raise(&cno->wake);
}

void cno_dismiss_locked(struct dapl_cno *cno)
{
	cno->round++;
	cno->leaving = cno->waiters;
	cno_show_locked(cno);
	cno_agent_call_locked(cno, NULL);
}

static void cno_release(struct dapl_cno *cno)
{
	if (cno->epoll >= 0)
		close(cno->epoll);
	wakefd_close(&cno->wake);
	obj_free(&cno->obj, OBJ_CNO);
}

/* Creates the objects of a CNO. Returns NULL without memory, or after an error was logged. */
static struct dapl_cno *cno_create(struct dapl_ia *ia)
{
	struct epoll_event event = { .events = EPOLLIN };
	struct dapl_cno *cno = obj_new(ia, OBJ_CNO);
	int wake;

	if (!cno)
		return NULL;
	TAILQ_INIT(&cno->evds);
	TAILQ_INIT(&cno->ready);
	cno->change_index = 1;
	cno->spin = (uint64_t)ia_setting(ia, SET_SPIN_US) * NSEC_PER_USEC;
	cno->policy = (DAT_EV_WAIT_POLICY)ia_setting(ia, SET_WAIT_POLICY);
	wake = wakefd_get(&cno->wake);
	cno->epoll = epoll_create1(EPOLL_CLOEXEC);
	if (wake >= 0 && cno->epoll >= 0 && !epoll_ctl(cno->epoll, EPOLL_CTL_ADD, wake, &event))
		return cno;
	log_at(LOG_ERROR, "cno %p: its descriptors: %m", (void *)cno);
	cno_release(cno);
	return NULL;
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
	if (agent.proxy_agent_func)
		evd_serve_agents(cno); /* no attached EVD can refuse yet */
	obj_publish(&cno->obj, OBJ_CNO);
	*cno_handle = cno;
	return DAT_SUCCESS;
}

DAT_RETURN dapl_cno_fd_create(DAT_IA_HANDLE ia_handle, DAT_FD *fd, DAT_CNO_HANDLE *cno_handle)
{
	struct dapl_ia *ia = ia_from(ia_handle);
	struct dapl_cno *cno;

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
	obj_publish(&cno->obj, OBJ_CNO);
	*fd = cno->epoll;
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
	if (cno->state & CNO_DYING) {
		pthread_mutex_unlock(&cno->lock);
		return DAT_ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_CNO);
	}
	if (cno->has_fd) {
		now.proxy_type = DAT_PROXY_TYPE_FD;
		now.proxy.fd = cno->epoll;
	} else if (cno->agent.proxy_agent_func) {
		now.proxy_type = DAT_PROXY_TYPE_AGENT;
		now.proxy.agent = cno->agent;
	}
	pthread_mutex_unlock(&cno->lock);
	*param = now;
	return DAT_SUCCESS;
}

DAT_RETURN dapl_cno_free(DAT_CNO_HANDLE handle)
{
	struct dapl_cno *cno = cno_from(handle);

	if (!cno)
		return DAT_ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_CNO);
	if (cno_agent_is_here(cno) || !obj_retire(&cno->obj))
		return DAT_ERROR(DAT_INVALID_STATE, DAT_INVALID_STATE_CNO_IN_USE);

	pthread_mutex_lock(&cno->lock);
	cno->state |= CNO_DYING;
	pthread_mutex_unlock(&cno->lock);
	cno_agent_end(cno, false);
	cno_release(cno);
	return DAT_SUCCESS;
}

/* Only EVDs of other IAs can still be attached; those of its own IA are destroyed. */
void cno_destroy(struct dapl_cno *cno)
{
	struct dapl_evd *evd;

	obj_hide(&cno->obj, OBJ_CNO);
	pthread_mutex_lock(&cno->lock);
	cno->state |= CNO_DYING;
	cno_dismiss_locked(cno);
	while ((evd = TAILQ_FIRST(&cno->evds))) {
		pthread_mutex_unlock(&cno->lock);
		evd_set_cno(evd, NULL);
		pthread_mutex_lock(&cno->lock);
	}
	pthread_mutex_unlock(&cno->lock);
	cno_agent_end(cno, true);
	/* The waiters have been woken and leave soon. */
	while (!obj_retire(&cno->obj))
		sched_yield();
	cno_release(cno);
}
