/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* An event dispatcher and its CNO: attach, detach, and triggers. */
#include "dapl/udapl/cno/cno.h"
#include "dapl/udapl/evd/evd.h"
#include "dapl/udapl/base/provider.h"
#include "util/log.h"

/*
 * Held to attach or detach an EVD, to destroy its CQ, and to give a CNO its first agent. It keeps the
 * CNO's descriptor consistent with the channels of its EVDs, and the event thread with the channels of
 * CNOs with agents. Acquired before all locks of CNOs; no upcall acquires it.
 */
static pthread_mutex_t attaching = PTHREAD_MUTEX_INITIALIZER;

void evd_cno_fork_child(void)
{
	attaching = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
}

/*
 * Locks the CNO of the EVD; the EVD stays attached while the lock is held. Returns NULL if it has
 * none.
 */
static struct dapl_cno *cno_lock_of(struct dapl_evd *evd)
{
	struct dapl_cno *cno;
	bool still;

	lock_acquire(&evd->lock);
	cno = evd->cno;
	lock_release(&evd->lock);
	if (!cno)
		return NULL;
	pthread_mutex_lock(&cno->lock);
	lock_acquire(&evd->lock);
	still = evd->cno == cno;
	lock_release(&evd->lock);
	if (still)
		return cno;
	/*
	 * The EVD has another CNO now, which was triggered for all pending events when it was
	 * attached.
	 */
	pthread_mutex_unlock(&cno->lock);
	return NULL;
}

/* ---- triggers ---- */

static void rearm_and_count(struct dapl_evd *evd)
{
	lock_acquire(&evd->lock);
	evd_rearm_and_count_locked(evd, 0);
	evd_unlock(evd);
}

void evd_completion_upcall(void *owner)
{
	struct dapl_evd *evd = owner;
	bool wake;

	lock_acquire(&evd->lock);
	evd_tally_locked(evd, DCNT_EVD_DTO_CALLBACK);
	if (evd_fired_locked(evd, &wake))
		evd->due |= EVD_DUE_TRIGGER;
	evd_unlock(evd);
	if (wake)
		wakefd_raise(&evd->wake);
}

void evd_trigger_locked(struct dapl_evd *evd, struct dapl_cno *cno)
{
	bool triggers, was;

	lock_acquire(&evd->lock);
	was = evd->state & EVD_READY;
	/* No trigger is made for events that another thread has already taken. */
	triggers = evd->enabled && !(evd->state & EVD_DYING) &&
		   (evd->state & (EVD_QUEUED | EVD_BROKEN));
	if (triggers)
		evd->state |= EVD_READY;
	lock_release(&evd->lock);
	if (!triggers)
		return;
	if (!was)
		TAILQ_INSERT_TAIL(&cno->ready, evd, ready_link);
	cno_agent_trigger_locked(cno, evd);
}

void evd_trigger(struct dapl_evd *evd)
{
	struct dapl_cno *cno = cno_lock_of(evd);

	if (!cno)
		return;
	evd_trigger_locked(evd, cno);
	cno_show_locked(cno);
	pthread_mutex_unlock(&cno->lock);
}

void evd_unready(struct dapl_evd *evd)
{
	struct dapl_cno *cno = cno_lock_of(evd);
	bool drop;

	if (!cno)
		return;
	lock_acquire(&evd->lock);
	drop = evd->state & EVD_READY && !(evd->state & (EVD_QUEUED | EVD_BROKEN));
	if (drop)
		evd->state &= ~EVD_READY;
	lock_release(&evd->lock);
	if (drop) {
		TAILQ_REMOVE(&cno->ready, evd, ready_link);
		if (TAILQ_EMPTY(&cno->ready))
			cno->state &= ~CNO_MISSED;
		cno_show_locked(cno);
	}
	pthread_mutex_unlock(&cno->lock);
}

/* ---- attach and detach ---- */

/* The caller's reference on the CNO passes to the EVD. false: the CNO is being freed. */
static bool evd_cno_attach(struct dapl_evd *evd, struct dapl_cno *cno)
{
	bool alive;

	pthread_mutex_lock(&cno->lock);
	alive = !(cno->state & CNO_DYING);
	if (alive) {
		TAILQ_INSERT_TAIL(&cno->evds, evd, cno_link);
		lock_acquire(&evd->lock);
		evd->cno = cno;
		lock_release(&evd->lock);
		cno_changed_locked(cno);
	} else {
		cno_fd_remove_locked(cno, evd);
	}
	pthread_mutex_unlock(&cno->lock);
	return alive;
}

static void evd_cno_detach(struct dapl_evd *evd, bool freed)
{
	struct dapl_cno *cno = evd->cno;
	bool was_ready;

	pthread_mutex_lock(&cno->lock);
	cno_fd_remove_locked(cno, evd);
	lock_acquire(&evd->lock);
	was_ready = evd->state & EVD_READY;
	evd->state &= ~EVD_READY;
	evd->cno = NULL;
	lock_release(&evd->lock);
	if (cno->poll_next == evd)
		cno->poll_next = TAILQ_NEXT(evd, cno_link);
	TAILQ_REMOVE(&cno->evds, evd, cno_link);
	if (was_ready)
		TAILQ_REMOVE(&cno->ready, evd, ready_link);
	cno_agent_forget_locked(cno, evd);
	cno_changed_locked(cno);
	if (freed && TAILQ_EMPTY(&cno->evds))
		cno_dismiss_locked(cno);
	else
		cno_show_locked(cno);
	pthread_mutex_unlock(&cno->lock);
	obj_release(&cno->obj);
}

/* ---- the reader of the channel: event thread or CNO; `attaching` is held ---- */

static void thread_stops(struct dapl_evd *evd)
{
	if (evd->thread_reads)
		ib_cq_unregister(evd->cq);
	evd->thread_reads = false;
}

static DAT_RETURN thread_reads(struct dapl_evd *evd)
{
	DAT_RETURN status = DAT_SUCCESS;

	if (evd->channel >= 0 && !evd->thread_reads)
		status = ib_cq_register(evd->cq);
	if (status == DAT_SUCCESS)
		evd->thread_reads = evd->channel >= 0;
	return status;
}

static DAT_RETURN listen_to(struct dapl_evd *evd, struct dapl_cno *cno)
{
	DAT_RETURN status = DAT_SUCCESS;

	if (evd->channel < 0)
		return DAT_SUCCESS;
	if (!cno_fd_add(cno, evd))
		return DAT_ERROR(DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_MEMORY);
	if (atomic_load(&cno->serviced))
		status = thread_reads(evd);
	if (status != DAT_SUCCESS) {
		pthread_mutex_lock(&cno->lock);
		cno_fd_remove_locked(cno, evd);
		pthread_mutex_unlock(&cno->lock);
	}
	return status;
}

DAT_RETURN evd_serve_agents(struct dapl_cno *cno)
{
	DAT_RETURN status = DAT_SUCCESS;
	struct dapl_evd *evd;

	pthread_mutex_lock(&attaching);
	if (!atomic_load(&cno->serviced)) {
		TAILQ_FOREACH(evd, &cno->evds, cno_link)
			if (status == DAT_SUCCESS)
				status = thread_reads(evd);
		if (status == DAT_SUCCESS) {
			ib_alarm_add(cno->obj.ia->device, &cno->alarm, cno_agent_on_alarm);
			atomic_store(&cno->serviced, true);
		} else {
			TAILQ_FOREACH(evd, &cno->evds, cno_link)
				thread_stops(evd);
		}
	}
	pthread_mutex_unlock(&attaching);
	return status;
}

static bool is_dying(struct dapl_evd *evd)
{
	bool dying;

	lock_acquire(&evd->lock);
	dying = evd->state & EVD_DYING;
	lock_release(&evd->lock);
	return dying;
}

/*
 * Holds the new CNO before it detaches the old one; `attaching` is held. An EVD that is being freed
 * detaches itself from its CNO, and by then no thread reads its channel.
 */
static DAT_RETURN change(struct dapl_evd *evd, struct dapl_cno *cno)
{
	struct dapl_cno *old = evd->cno;
	DAT_RETURN status = DAT_SUCCESS;
	bool dying = is_dying(evd);

	if (cno && dying)
		return DAT_ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EVD_REQUEST);
	if (old == cno)
		return DAT_SUCCESS;
	if (cno && !obj_hold(&cno->obj))
		return DAT_ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_CNO);
	if (cno)
		status = listen_to(evd, cno);
	if (status != DAT_SUCCESS) {
		obj_release(&cno->obj);
		return status;
	}
	if (old)
		evd_cno_detach(evd, false);
	if (cno && !evd_cno_attach(evd, cno)) {
		obj_release(&cno->obj);
		status = DAT_ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_CNO);
	}
	if (!evd->cno || !atomic_load(&evd->cno->serviced))
		thread_stops(evd);
	return status;
}

DAT_RETURN evd_set_cno(struct dapl_evd *evd, struct dapl_cno *cno)
{
	DAT_RETURN status;

	if (cno)
		evd_share_cm(evd);
	pthread_mutex_lock(&attaching);
	status = change(evd, cno);
	pthread_mutex_unlock(&attaching);
	if (status == DAT_SUCCESS)
		rearm_and_count(evd);
	return status;
}

void evd_leave_cno(struct dapl_evd *evd)
{
	pthread_mutex_lock(&attaching);
	if (evd->cno)
		evd_cno_detach(evd, true);
	pthread_mutex_unlock(&attaching);
}

void evd_pause_cno(struct dapl_evd *evd)
{
	pthread_mutex_lock(&attaching);
	thread_stops(evd);
	if (evd->cno) {
		pthread_mutex_lock(&evd->cno->lock);
		cno_fd_remove_locked(evd->cno, evd);
		pthread_mutex_unlock(&evd->cno->lock);
	}
	evd->channel = -1;
	pthread_mutex_unlock(&attaching);
}

void evd_resume_cno(struct dapl_evd *evd)
{
	pthread_mutex_lock(&attaching);
	evd->channel = evd->cq ? ib_cq_fd(evd->cq) : -1;
	if (evd->cno && listen_to(evd, evd->cno) != DAT_SUCCESS)
		log_at(LOG_ERROR, "evd %p: completions cannot trigger its CNO", (void *)evd);
	pthread_mutex_unlock(&attaching);
	rearm_and_count(evd);
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
	lock_acquire(&evd->lock);
	evd->enabled = true;
	evd_rearm_and_count_locked(evd, 0);
	evd_unlock(evd);
	return DAT_SUCCESS;
}

DAT_RETURN dapl_evd_disable(DAT_EVD_HANDLE handle)
{
	struct dapl_evd *evd = evd_from(handle);

	if (!evd)
		return DAT_ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EVD_REQUEST);
	lock_acquire(&evd->lock);
	evd->enabled = false;
	lock_release(&evd->lock);
	return DAT_SUCCESS;
}
