/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/*
 * Proxy agents. A trigger calls an armed agent once, in the event thread of the CNO's device, because
 * the thread that triggers may hold any lock.
 */
#include "dapl/udapl/cno/cno.h"
#include "dapl/udapl/evd/evd.h"
#include "dapl/udapl/base/provider.h"

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

/* Calls the agent for a trigger or signal that was neither consumed nor passed to an agent. */
static void make_up_locked(struct dapl_cno *cno)
{
	if (cno->state & CNO_MISSED && !TAILQ_EMPTY(&cno->ready))
		cno_agent_call_locked(cno, TAILQ_FIRST(&cno->ready));
	else if (cno->state & CNO_MISSED_SIGNAL)
		cno_agent_call_locked(cno, NULL);
}

/* Calls the agent if it is due. Returns false if it is not. */
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
	/*
	 * If another call is due already, it runs first, and make_up_locked makes this one
	 * afterwards.
	 */
	if (!cno->agent.proxy_agent_func || cno->called.proxy_agent_func)
		return;
	cno->called = cno->agent;
	cno->called_evd = evd;
	cno->agent = DAT_OS_WAIT_PROXY_AGENT_NULL;
	if (evd)
		cno->state &= ~CNO_MISSED;
	else
		cno->state &= ~CNO_MISSED_SIGNAL;
	ib_timer_arm(cno->obj.ia->device, &cno->timer, 0, run_in_event_thread);
}

/* The CNO was signalled: a signal is for the agent as well as for a waiter. */
void cno_agent_on_alarm(struct ib_alarm *alarm)
{
	struct dapl_cno *cno =
		(struct dapl_cno *)((char *)alarm - offsetof(struct dapl_cno, alarm));

	pthread_mutex_lock(&cno->lock);
	cno_set_locked(cno, CNO_MISSED_SIGNAL,
		       wakefd_is_signalled(&cno->wake) && !(cno->state & CNO_DYING));
	make_up_locked(cno);
	pthread_mutex_unlock(&cno->lock);
}

void cno_agent_trigger_locked(struct dapl_cno *cno, struct dapl_evd *evd)
{
	cno->state |= CNO_MISSED;
	cno_agent_call_locked(cno, evd);
}

void cno_agent_forget_locked(struct dapl_cno *cno, const struct dapl_evd *evd)
{
	if (TAILQ_EMPTY(&cno->ready))
		cno->state &= ~CNO_MISSED;
	if (!cno->called.proxy_agent_func || cno->called_evd != evd)
		return;
	cno->called_evd = TAILQ_FIRST(&cno->ready);
	if (cno->called_evd)
		return;
	if (!cno->agent.proxy_agent_func)
		cno->agent = cno->called;
	cno->called = DAT_OS_WAIT_PROXY_AGENT_NULL;
}

/* The handle is invalid by now, so no agent can arm itself again. */
void cno_agent_end(struct dapl_cno *cno, bool call)
{
	if (atomic_exchange(&cno->serviced, false))
		ib_alarm_remove(cno->obj.ia->device, &cno->alarm);
	ib_timer_cancel(cno->obj.ia->device, &cno->timer);
	while (call && run(cno)) {
		pthread_mutex_lock(&cno->lock);
		cno_agent_call_locked(cno, NULL);
		pthread_mutex_unlock(&cno->lock);
		ib_timer_cancel(cno->obj.ia->device, &cno->timer);
	}
}

/* Starts the service of the CNO for its first agent, which also gets earlier completions and signals. */
static DAT_RETURN cno_agent_serve(struct dapl_cno *cno)
{
	DAT_RETURN status;

	if (atomic_load(&cno->serviced))
		return DAT_SUCCESS;
	if (!obj_hold(&cno->obj))
		return DAT_ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_CNO);
	status = evd_serve_agents(cno);
	if (status == DAT_SUCCESS)
		ib_alarm_raise(cno->obj.ia->device, &cno->alarm);
	obj_release(&cno->obj);
	return status;
}

DAT_RETURN dapl_cno_modify_agent(DAT_CNO_HANDLE handle, DAT_OS_WAIT_PROXY_AGENT agent)
{
	struct dapl_cno *cno = cno_from(handle);
	DAT_RETURN status;
	bool dying;

	if (!cno)
		return DAT_ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_CNO);
	if (cno->has_fd)
		return DAT_ERROR(DAT_INVALID_STATE, DAT_INVALID_STATE_CNO_IN_USE);

	status = agent.proxy_agent_func ? cno_agent_serve(cno) : DAT_SUCCESS;
	if (status != DAT_SUCCESS)
		return status;
	pthread_mutex_lock(&cno->lock);
	dying = cno->state & CNO_DYING;
	if (!dying) {
		cno->agent = agent;
		make_up_locked(cno);
	}
	pthread_mutex_unlock(&cno->lock);
	return dying ? DAT_ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_CNO) : DAT_SUCCESS;
}
