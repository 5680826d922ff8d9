/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* An event dispatcher and its CNO: attaching, and what makes a trigger. */
#include "dapl/udapl/cno.h"
#include "dapl/udapl/evd.h"
#include "dapl/udapl/provider.h"

/*
 * Held by whoever attaches or detaches an EVD or ends its CQ, so that a CQ is watched exactly while
 * its EVD has a CNO. Before all locks of CNOs; no upcall takes it.
 */
static pthread_mutex_t attaching = PTHREAD_MUTEX_INITIALIZER;

/* The CNO of the EVD, which stays its CNO as long as the lock is held; NULL: none. */
static struct dapl_cno *cno_lock_of(struct dapl_evd *evd)
{
	struct dapl_cno *cno;
	bool still;

	lock_take(&evd->lock);
	cno = evd->cno;
	lock_give(&evd->lock);
	if (!cno)
		return NULL;
	pthread_mutex_lock(&cno->lock);
	lock_take(&evd->lock);
	still = evd->cno == cno;
	lock_give(&evd->lock);
	if (still)
		return cno;
	/* Another one since, which was told of all that is pending when it was attached. */
	pthread_mutex_unlock(&cno->lock);
	return NULL;
}

/* ---- triggers ---- */

static bool may_trigger_locked(const struct dapl_evd *evd)
{
	return evd->cno && evd->enabled && !evd->waiter && !evd->dying;
}

void evd_arm_locked(struct dapl_evd *evd)
{
	/* A failure was logged; what is pending is still counted, and the next call arms again. */
	if (evd->cq && !evd->broken && may_trigger_locked(evd))
		ib_cq_arm(evd->cq, evd->class == EVD_SOLICITED);
}

void evd_look_locked(struct dapl_evd *evd, DAT_COUNT known)
{
	if (!may_trigger_locked(evd))
		return;
	evd_arm_locked(evd);
	evd_drain_locked(evd);
	evd->news = false;
	if (evd_count_locked(evd) > known)
		evd->due |= EVD_DUE_TRIGGER;
}

static void look(struct dapl_evd *evd)
{
	lock_take(&evd->lock);
	evd_look_locked(evd, 0);
	evd_unlock(evd);
}

/*
 * Re-arm, then trigger: what completes while the consumer empties the EVD fires again. Of those
 * that are here only one that notifies makes a trigger; on an EVD of class SOLICITED the device
 * has chosen.
 */
void evd_completion_upcall(void *owner)
{
	struct dapl_evd *evd = owner;
	bool wake;

	lock_take(&evd->lock);
	wake = evd->waiter;
	if (wake) {
		evd->armed = false;
		evd->may_return |= evd->class == EVD_SOLICITED;
	} else if (may_trigger_locked(evd)) {
		evd_arm_locked(evd);
		evd_drain_locked(evd);
		if (evd->queued && (evd->news || evd->class == EVD_SOLICITED))
			evd->due |= EVD_DUE_TRIGGER;
		evd->news = false;
	}
	evd_unlock(evd);
	if (wake)
		wakefd_raise(&evd->wake);
}

void evd_trigger(struct dapl_evd *evd)
{
	struct dapl_cno *cno = cno_lock_of(evd);
	bool triggers, was;

	if (!cno)
		return;
	lock_take(&evd->lock);
	was = evd->ready;
	/* Nobody needs to know of what somebody has taken meanwhile. */
	triggers = evd->enabled && !evd->dying && (evd->queued || evd->broken);
	evd->ready |= triggers;
	lock_give(&evd->lock);
	if (triggers) {
		if (!was)
			TAILQ_INSERT_TAIL(&cno->ready, evd, ready_link);
		cno_show_locked(cno);
		cno_agent_trigger_locked(cno, evd);
	}
	pthread_mutex_unlock(&cno->lock);
}

void evd_unready(struct dapl_evd *evd)
{
	struct dapl_cno *cno = cno_lock_of(evd);
	bool drop;

	if (!cno)
		return;
	lock_take(&evd->lock);
	drop = evd->ready && !evd->queued && !evd->broken;
	if (drop)
		evd->ready = false;
	lock_give(&evd->lock);
	if (drop) {
		TAILQ_REMOVE(&cno->ready, evd, ready_link);
		if (TAILQ_EMPTY(&cno->ready))
			cno->missed = false;
		cno_show_locked(cno);
	}
	pthread_mutex_unlock(&cno->lock);
}

/* ---- attaching ---- */

/* The caller's reference goes over to the EVD. false: the CNO is ending. */
static bool attach(struct dapl_evd *evd, struct dapl_cno *cno)
{
	bool alive;

	pthread_mutex_lock(&cno->lock);
	alive = !cno->dying;
	if (alive) {
		TAILQ_INSERT_TAIL(&cno->evds, evd, cno_link);
		lock_take(&evd->lock);
		evd->cno = cno;
		lock_give(&evd->lock);
	}
	pthread_mutex_unlock(&cno->lock);
	return alive;
}

static void detach(struct dapl_evd *evd, bool freed)
{
	struct dapl_cno *cno = evd->cno;
	bool was_ready;

	pthread_mutex_lock(&cno->lock);
	lock_take(&evd->lock);
	was_ready = evd->ready;
	evd->ready = false;
	evd->cno = NULL;
	lock_give(&evd->lock);
	TAILQ_REMOVE(&cno->evds, evd, cno_link);
	if (was_ready)
		TAILQ_REMOVE(&cno->ready, evd, ready_link);
	cno_agent_forget_locked(cno, evd);
	if (freed && TAILQ_EMPTY(&cno->evds))
		cno_dismiss_locked(cno);
	else
		cno_show_locked(cno);
	pthread_mutex_unlock(&cno->lock);
	obj_release(&cno->obj);
}

/* The new one is held before the old one is left; `attaching` is held. */
static DAT_RETURN change(struct dapl_evd *evd, struct dapl_cno *cno)
{
	struct dapl_cno *old = evd->cno;
	DAT_RETURN status = DAT_SUCCESS;

	if (old == cno)
		return DAT_SUCCESS;
	if (cno && !obj_hold(&cno->obj))
		return DAT_ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_CNO);
	if (cno && !old && evd->cq)
		status = ib_cq_watch(evd->cq);
	if (status != DAT_SUCCESS) {
		obj_release(&cno->obj);
		return status;
	}
	if (old)
		detach(evd, false);
	if (cno && !attach(evd, cno)) {
		obj_release(&cno->obj);
		status = DAT_ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_CNO);
	}
	if (!evd->cno && evd->cq)
		ib_cq_unwatch(evd->cq);
	return status;
}

DAT_RETURN evd_set_cno(struct dapl_evd *evd, struct dapl_cno *cno)
{
	DAT_RETURN status;

	pthread_mutex_lock(&attaching);
	status = change(evd, cno);
	pthread_mutex_unlock(&attaching);
	if (status == DAT_SUCCESS)
		look(evd);
	return status;
}

void evd_leave_cno(struct dapl_evd *evd)
{
	pthread_mutex_lock(&attaching);
	if (evd->cno)
		detach(evd, true);
	pthread_mutex_unlock(&attaching);
}

void evd_pause_cno(struct dapl_evd *evd)
{
	pthread_mutex_lock(&attaching);
	if (evd->cq)
		ib_cq_unwatch(evd->cq);
	pthread_mutex_unlock(&attaching);
}

void evd_resume_cno(struct dapl_evd *evd)
{
	pthread_mutex_lock(&attaching);
	if (evd->cno && evd->cq)
		ib_cq_watch(evd->cq);
	pthread_mutex_unlock(&attaching);
	look(evd);
}

/* ---- calls ---- */

DAT_RETURN dapl_evd_modify_cno(DAT_EVD_HANDLE handle, DAT_CNO_HANDLE cno_handle)
{
	struct dapl_evd *evd = evd_from(handle);
	struct dapl_cno *cno = cno_from(cno_handle);

	if (!evd)
		return DAT_ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EVD_REQUEST);
	if (cno_handle && !cno)
		return DAT_ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_CNO);

	return evd_set_cno(evd, cno);
}

DAT_RETURN dapl_evd_enable(DAT_EVD_HANDLE handle)
{
	struct dapl_evd *evd = evd_from(handle);

	if (!evd)
		return DAT_ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EVD_REQUEST);
	lock_take(&evd->lock);
	evd->enabled = true;
	evd_look_locked(evd, 0);
	evd_unlock(evd);
	return DAT_SUCCESS;
}

DAT_RETURN dapl_evd_disable(DAT_EVD_HANDLE handle)
{
	struct dapl_evd *evd = evd_from(handle);

	if (!evd)
		return DAT_ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EVD_REQUEST);
	lock_take(&evd->lock);
	evd->enabled = false;
	lock_give(&evd->lock);
	return DAT_SUCCESS;
}
