/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/*
 * Proxy agents: called once for a trigger, in the event thread of the CNO's device, since those who
 * trigger may hold any lock.
 */
#include "dapl/udapl/cno.h"
#include "dapl/udapl/evd.h"
#include "dapl/udapl/provider.h"

static _Thread_local const struct dapl_cno *running;

bool cno_agent_is_here(const struct dapl_cno *cno)
{
	return running == cno;
}

bool cno_agent_is_of(const struct dapl_ia *ia)
{
	return running && running->obj.ia == ia;
}

static struct dapl_cno *cno_of_timer(struct ib_timer *timer)
{
	return (struct dapl_cno *)((char *)timer - offsetof(struct dapl_cno, timer));
}

/* A trigger that nobody took and no agent heard of. */
static void make_up_locked(struct dapl_cno *cno)
{
	if (cno->missed && !TAILQ_EMPTY(&cno->ready))
		cno_agent_call_locked(cno, TAILQ_FIRST(&cno->ready));
}

/* false: none is to be called. */
static bool run(struct dapl_cno *cno)
{
	const struct dapl_cno *outer = running;
	DAT_OS_WAIT_PROXY_AGENT agent;
	struct dapl_evd *evd;

	pthread_mutex_lock(&cno->lock);
	agent = cno->called;
	evd = cno->called_evd;
	cno->called = DAT_OS_WAIT_PROXY_AGENT_NULL;
	cno->called_evd = NULL;
	make_up_locked(cno);
	pthread_mutex_unlock(&cno->lock);
	if (!agent.proxy_agent_func)
		return false;
	running = cno;
	agent.proxy_agent_func(agent.instance_data, evd);
	running = outer;
	return true;
}

static void run_in_event_thread(struct ib_timer *timer)
{
	run(cno_of_timer(timer));
}

void cno_agent_call_locked(struct dapl_cno *cno, struct dapl_evd *evd)
{
	/* One that is to be called already goes first; make_up_locked sees to this one. */
	if (!cno->agent.proxy_agent_func || cno->called.proxy_agent_func)
		return;
	cno->called = cno->agent;
	cno->called_evd = evd;
	cno->agent = DAT_OS_WAIT_PROXY_AGENT_NULL;
	cno->missed = false;
	ib_timer_arm(cno->obj.ia->device, &cno->timer, 0, run_in_event_thread);
}

void cno_agent_trigger_locked(struct dapl_cno *cno, struct dapl_evd *evd)
{
	cno->missed = true;
	cno_agent_call_locked(cno, evd);
}

void cno_agent_forget_locked(struct dapl_cno *cno, const struct dapl_evd *evd)
{
	if (TAILQ_EMPTY(&cno->ready))
		cno->missed = false;
	if (!cno->called.proxy_agent_func || cno->called_evd != evd)
		return;
	cno->called_evd = TAILQ_FIRST(&cno->ready);
	if (cno->called_evd)
		return;
	if (!cno->agent.proxy_agent_func)
		cno->agent = cno->called;
	cno->called = DAT_OS_WAIT_PROXY_AGENT_NULL;
}

/* No handle leads to the CNO any more, so no agent can arm itself anew. */
void cno_agent_end(struct dapl_cno *cno, bool call)
{
	ib_timer_cancel(cno->obj.ia->device, &cno->timer);
	while (call && run(cno)) {
		pthread_mutex_lock(&cno->lock);
		cno_agent_call_locked(cno, NULL);
		pthread_mutex_unlock(&cno->lock);
		ib_timer_cancel(cno->obj.ia->device, &cno->timer);
	}
}

DAT_RETURN dapl_cno_modify_agent(DAT_CNO_HANDLE handle, DAT_OS_WAIT_PROXY_AGENT agent)
{
	struct dapl_cno *cno = cno_from(handle);

	if (!cno)
		return DAT_ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_CNO);
	if (cno->has_fd)
		return DAT_ERROR(DAT_INVALID_STATE, DAT_INVALID_STATE_CNO_IN_USE);

	pthread_mutex_lock(&cno->lock);
	cno->agent = agent;
	make_up_locked(cno);
	pthread_mutex_unlock(&cno->lock);
	return DAT_SUCCESS;
}
