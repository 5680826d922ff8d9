/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* Arms and signals a CNO. Arm reports pending events (a level); a trigger reports new ones (an edge). */
#include "dapl/udapl/evd/evd.h"
#include "dapl/udapl/cno/cno.h"
#include "util/cancel.h"

bool cno_take_signal_locked(struct dapl_cno *cno)
{
	if (!wakefd_take_signal(&cno->wake))
		return false;
	cno->state &= ~CNO_MISSED_SIGNAL;
	return true;
}

static DAT_RETURN arm_member_locked(struct dapl_evd *evd, bool solicited)
{
	DAT_RETURN status = DAT_SUCCESS;

	if (evd->cq)
		status = evd_arm_cq_locked(evd, solicited);
	evd->notes &= ~EVD_PENDING;
	return evd->state & (EVD_QUEUED | EVD_BROKEN) ? DAT_EV_BUSY : status;
}

/* Puts the EVD on the ready list if it has events. Skips an EVD that is disabled or has a waiter. */
static DAT_RETURN arm_member(struct dapl_cno *cno, struct dapl_evd *evd, bool solicited)
{
	DAT_RETURN status = DAT_SUCCESS;
	bool was, is;

	lock_acquire(&evd->lock);
	was = evd->state & EVD_READY;
	if (evd_may_trigger_locked(evd))
		status = arm_member_locked(evd, solicited);
	is = status == DAT_EV_BUSY;
	evd_set_locked(evd, EVD_READY, is);
	lock_release(&evd->lock);
	if (is && !was)
		TAILQ_INSERT_TAIL(&cno->ready, evd, ready_link);
	else if (!is && was)
		TAILQ_REMOVE(&cno->ready, evd, ready_link);
	return status;
}

static DAT_RETURN arm_all_locked(struct dapl_cno *cno, bool solicited)
{
	DAT_RETURN status = DAT_SUCCESS, one;
	struct dapl_evd *evd;

	/* The consumer may use edge-triggered polls: after this, each CQ that is armed makes a new edge. */
	cno_serve_all_locked(cno);
	TAILQ_FOREACH(evd, &cno->evds, cno_link) {
		one = arm_member(cno, evd, solicited);
		if (one != DAT_SUCCESS && status != DAT_EV_BUSY)
			status = one;
	}
	if (cno_take_signal_locked(cno))
		status = DAT_EV_BUSY;
	return status;
}

void cno_widen_locked(struct dapl_cno *cno)
{
	struct dapl_evd *evd;

	if (!(cno->state & CNO_NARROW))
		return;
	cno->state &= ~CNO_NARROW;
	TAILQ_FOREACH(evd, &cno->evds, cno_link)
		arm_member(cno, evd, false);
}

DAT_RETURN cno_arm(struct dapl_cno *cno, bool solicited)
{
	CANCEL_OFF_HERE;
	DAT_RETURN status;

	pthread_mutex_lock(&cno->lock);
	if (cno->state & CNO_DYING) {
		status = DAT_ERROR(DAT_INVALID_STATE, DAT_INVALID_STATE_CNO_DEAD);
	} else if (cno->waiters) {
		status = DAT_ERROR(DAT_INVALID_STATE, DAT_INVALID_STATE_CNO_IN_USE);
	} else {
		cno->state &= ~CNO_CHANGED;
		cno_set_locked(cno, CNO_NARROW, solicited);
		status = arm_all_locked(cno, solicited);
		cno_set_locked(cno, CNO_ARMED, status == DAT_SUCCESS);
		if (status == DAT_SUCCESS)
			cno->state &= ~CNO_MISSED;
		cno_show_locked(cno);
	}
	pthread_mutex_unlock(&cno->lock);
	return status;
}

DAT_RETURN ext_cno_arm(DAT_HANDLE handle, va_list args)
{
	DAT_UINT32 flags = va_arg(args, DAT_UINT32);

	if (flags & ~DAT_EV_ARM_SOLICITED)
		return DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG3);
	return cno_arm(handle, flags & DAT_EV_ARM_SOLICITED);
}

/* Async-signal-safe: acquires no lock, allocates no memory, and preserves errno. */
DAT_RETURN ext_cno_signal(DAT_HANDLE handle, va_list args)
{
	struct dapl_cno *cno = handle;

	(void)args;
	wakefd_signal(&cno->wake);
	if (atomic_load(&cno->serviced))
		ib_alarm_raise(cno->obj.ia->device, &cno->alarm);
	return DAT_SUCCESS;
}
