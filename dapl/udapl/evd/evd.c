/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* The event dispatcher: creation, query, free, and the calls that do not block. */
#include <poll.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <dat2/dat_ib_extensions.h>
#include "dapl/udapl/evd/dto.h"
#include "dapl/udapl/base/upward.h"
#include "dapl/udapl/evd/evd.h"
#include "dapl/udapl/base/lock_rank.h"
#include "dapl/udapl/base/provider.h"
#include "util/clock.h"
#include "util/log.h"
#include "util/settings.h"

#define FLAGS_WITH_CQ (DAT_EVD_DTO_FLAG | DAT_EVD_RMR_BIND_FLAG | DAT_IB_EVD_EXTENSION_FLAG)
#define FLAGS_KNOWN   (DAT_EVD_SOFTWARE_FLAG | DAT_EVD_DEFAULT_FLAG | DAT_IB_EVD_EXTENSION_FLAG)

/*
 * Consumers size EVDs tightly, and a CQ that overflows cannot be recovered, so each CQ has at least
 * this many entries.
 */
#define CQ_ENTRIES_LEAST 64

static DAT_RETURN evd_build(struct dapl_evd *evd)
{
	const struct ib_attr *attr = evd->obj.ia->attr;
	uint32_t entries = (uint32_t)evd->qlen, size = 1;
	DAT_RETURN status;

	if (!(evd->state & EVD_NO_CQ)) {
		if (entries < CQ_ENTRIES_LEAST)
			entries = CQ_ENTRIES_LEAST;
		if (entries > attr->max_cqe)
			entries = attr->max_cqe;
		status = ib_cq_create(evd->obj.ia->device, (int)entries, evd, &evd->cq);
		if (status != DAT_SUCCESS)
			return DAT_ERROR(DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_TEVD);
		evd->completions_max = (uint32_t)ib_cq_entries(evd->cq);
	}
	/* One more entry holds the overflow event of an async EVD. */
	while (size < (uint32_t)evd->qlen + evd->completions_max + 1)
		size <<= 1;
	evd->ring = calloc(size, sizeof(*evd->ring));
	if (!evd->ring)
		return DAT_ERROR(DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_MEMORY);
	evd->ring_mask = size - 1;
	return DAT_SUCCESS;
}

DAT_RETURN evd_create(struct dapl_ia *ia, DAT_COUNT qlen, DAT_EVD_FLAGS flags,
		      struct dapl_evd **evd)
{
	struct dapl_evd *new = obj_new(ia, OBJ_EVD);
	DAT_RETURN status;

	if (!new)
		return DAT_ERROR(DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_MEMORY);
	lock_init(&new->lock, RANK_EVD);
	new->qlen = qlen;
	new->flags = flags;
	new->enabled = true;
	new->spin = (uint64_t)ia_setting(ia, SET_SPIN_US) * NSEC_PER_USEC;
	new->policy = (DAT_EV_WAIT_POLICY)ia_setting(ia, SET_WAIT_POLICY);
	new->last_ring = &dto_no_ring;
	new->channel = -1;
	TAILQ_INIT(&new->endings);
	task_init(&new->task, ia->device, evd_task_run);
	evd_disarmed_locked(new);
	if (!(flags & (unsigned)FLAGS_WITH_CQ))
		new->state = EVD_NO_CQ;
	else if (flags & DAT_EVD_CONNECTION_FLAG)
		new->state = EVD_MERGED;
	status = evd_build(new);
	if (status != DAT_SUCCESS) {
		evd_destroy(new);
		return status;
	}
	new->channel = new->cq ? ib_cq_fd(new->cq) : -1;
	if (new->cq)
		evd_share_cm(new);
	obj_publish(&new->obj, OBJ_EVD);
	*evd = new;
	return DAT_SUCCESS;
}

static bool has_waiter(struct dapl_evd *evd)
{
	bool waiter;

	lock_acquire(&evd->lock);
	waiter = evd->state & (EVD_WAITED | EVD_READING);
	lock_release(&evd->lock);
	return waiter;
}

/* Waits until the waiter has left: it sees EVD_DYING, and raises `left` under the lock. */
static void wait_out(struct dapl_evd *evd)
{
	struct pollfd fd = { .fd = wakefd_get(&evd->left), .events = POLLIN };

	wakefd_raise(&evd->wake);
	while (has_waiter(evd)) {
		if (fd.fd >= 0)
			poll(&fd, 1, -1);
		else
			sched_yield();
	}
}

/* Ends an EVD, which may be half-built. If the device refuses to destroy the CQ, the EVD is unchanged. */
static DAT_RETURN evd_end(struct dapl_evd *evd)
{
	struct ib_cq *cq;
	unsigned due;
	int fd;

	lock_acquire(&evd->lock);
	evd->state |= EVD_DYING;
	evd_endings_wake_locked(evd);
	lock_release(&evd->lock);
	wait_out(evd);
	upward.cno_pause(evd);

	/* A thread that still uses the handle finds neither events nor a CQ to poll. */
	lock_acquire(&evd->lock);
	if (evd->ring)
		evd_discard_locked(evd);
	evd->due = 0;
	cq = evd->cq;
	evd->cq = NULL;
	lock_release(&evd->lock);
	if (ib_cq_destroy(cq) != DAT_SUCCESS) {
		lock_acquire(&evd->lock);
		evd->cq = cq;
		evd->state &= ~EVD_DYING;
		lock_release(&evd->lock);
		upward.cno_resume(evd);
		return DAT_ERROR(DAT_INTERNAL_ERROR, 0);
	}
	/* Work that is still due runs here, so that its async events are not lost. */
	due = task_end(&evd->task);
	if (due)
		evd_task_run(&evd->task, due);
	upward.cno_leave(evd);
	free(evd->ring);
	evd->ring = NULL;
	fd = atomic_exchange(&evd->fd, 0);
	if (fd)
		close(fd - 1);
	wakefd_close(&evd->wake);
	wakefd_close(&evd->left);
	return DAT_SUCCESS;
}

/*
 * Endpoints of another IA may still post their connection events to the EVD, and threads may be about to post: these
 * events are dropped. Poll sets may still poll it, and find nothing.
 */
static void evd_leave(struct dapl_evd *evd)
{
	bool referred;

	obj_hide(&evd->obj, OBJ_EVD);
	lock_acquire(&evd->lock);
	referred = evd_is_referred_locked(evd);
	evd->state |= EVD_DYING;
	evd->zombie = referred;
	lock_release(&evd->lock);
	if (!referred)
		obj_free(&evd->obj, OBJ_EVD);
}

void evd_destroy(struct dapl_evd *evd)
{
	if (evd_end(evd) != DAT_SUCCESS)
		log_at(LOG_ERROR, "evd %p: the device refuses to destroy its CQ", (void *)evd);
	evd_leave(evd);
}

DAT_RETURN dapl_evd_create(DAT_IA_HANDLE ia_handle, DAT_COUNT min_qlen, DAT_CNO_HANDLE cno_handle,
			   DAT_EVD_FLAGS flags, DAT_EVD_HANDLE *evd_handle)
{
	struct dapl_ia *ia = ia_from(ia_handle);
	struct dapl_cno *cno = obj_from(cno_handle, OBJ_CNO);
	struct dapl_evd *evd;
	DAT_RETURN status;

	if (!ia)
		return DAT_ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_IA);
	if (min_qlen <= 0)
		return DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
	if ((uint32_t)min_qlen > ia->attr->max_cqe)
		return DAT_ERROR(DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_TEVD);
	if (cno_handle && !cno)
		return DAT_ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_CNO);
	if (!flags || (unsigned)flags & ~(unsigned)FLAGS_KNOWN)
		return DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG4);
	if (!evd_handle)
		return DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG5);

	status = evd_create(ia, min_qlen, flags, &evd);
	if (status != DAT_SUCCESS)
		return status;
	status = upward.cno_set(evd, cno);
	if (status != DAT_SUCCESS) {
		evd_destroy(evd);
		return status;
	}
	*evd_handle = evd;
	return DAT_SUCCESS;
}

static DAT_EVD_STATE configuration_of(uint32_t arming)
{
	if (arming & EVD_UNSIGNALLED)
		return DAT_EVD_STATE_CONFIG_NOTIFY;
	return arming & EVD_SOLICITED ? DAT_EVD_STATE_CONFIG_SOLICITED
				      : DAT_EVD_STATE_CONFIG_THRESHOLD;
}

DAT_RETURN dapl_evd_query(DAT_EVD_HANDLE handle, DAT_EVD_PARAM_MASK mask, DAT_EVD_PARAM *param)
{
	struct dapl_evd *evd = evd_from(handle);
	DAT_EVD_PARAM now = { 0 };

	if (!evd)
		return DAT_ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EVD_REQUEST);
	if (mask & ~DAT_EVD_FIELD_ALL)
		return DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
	if (!param)
		return DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG3);

	now.ia_handle = ia_handle(evd->obj.ia);
	now.evd_flags = evd->flags;
	lock_acquire(&evd->lock);
	now.evd_qlen = evd->qlen;
	now.evd_state =
		(evd->enabled ? DAT_EVD_STATE_ENABLED : DAT_EVD_STATE_DISABLED) |
		(evd->state & EVD_UNWAITABLE ? DAT_EVD_STATE_UNWAITABLE : DAT_EVD_STATE_WAITABLE) |
		configuration_of(evd->arming);
	now.cno_handle = evd->cno;
	lock_release(&evd->lock);
	*param = now;
	return DAT_SUCCESS;
}

DAT_RETURN dapl_evd_free(DAT_EVD_HANDLE handle)
{
	struct dapl_evd *evd = evd_from(handle);
	DAT_RETURN status;

	if (!evd)
		return DAT_ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EVD_REQUEST);
	if (!obj_retire(&evd->obj))
		return DAT_ERROR(DAT_INVALID_STATE, DAT_INVALID_STATE_EVD_IN_USE);

	status = evd_end(evd);
	if (status != DAT_SUCCESS) {
		obj_unretire(&evd->obj);
		return status;
	}
	evd_leave(evd);
	return DAT_SUCCESS;
}

DAT_RETURN dapl_evd_post_se(DAT_EVD_HANDLE handle, const DAT_EVENT *event)
{
	struct dapl_evd *evd = evd_from(handle);
	DAT_EVENT copy = { .event_number = DAT_SOFTWARE_EVENT };

	if (!evd)
		return DAT_ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EVD_REQUEST);
	if (!(evd->flags & DAT_EVD_SOFTWARE_FLAG))
		return DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG1);
	if (!event || event->event_number != DAT_SOFTWARE_EVENT)
		return DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);

	copy.event_data.software_event_data = event->event_data.software_event_data;
	memcpy(copy.event_extension_data, event->event_extension_data,
	       sizeof(copy.event_extension_data));
	return evd_post(evd, &copy) ? DAT_SUCCESS : DAT_ERROR(DAT_QUEUE_FULL, 0);
}

static DAT_RETURN set_unwaitable(DAT_EVD_HANDLE handle, bool unwaitable)
{
	struct dapl_evd *evd = evd_from(handle);
	bool wake;

	if (!evd)
		return DAT_ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EVD_REQUEST);
	lock_acquire(&evd->lock);
	evd_set_locked(evd, EVD_UNWAITABLE, unwaitable);
	wake = unwaitable && (evd->state & EVD_WAITED || evd->armed_threshold);
	if (unwaitable)
		evd->armed_threshold = 0;
	lock_release(&evd->lock);
	if (wake)
		wakefd_raise(&evd->wake);
	return DAT_SUCCESS;
}

DAT_RETURN dapl_evd_set_unwaitable(DAT_EVD_HANDLE handle)
{
	return set_unwaitable(handle, true);
}

DAT_RETURN dapl_evd_clear_unwaitable(DAT_EVD_HANDLE handle)
{
	return set_unwaitable(handle, false);
}
