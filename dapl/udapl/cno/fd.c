/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* The descriptor of a CNO, and the descriptors behind it. */
#include <errno.h>
#include <sys/epoll.h>
#include "dapl/udapl/evd/evd.h"
#include "dapl/udapl/cno/cno.h"
#include "util/cancel.h"
#include "util/log.h"

#define SERVE_BATCH 16

bool cno_fd_add(struct dapl_cno *cno, struct dapl_evd *evd)
{
	struct epoll_event event = { .events = EPOLLIN, .data.ptr = evd };

	if (!epoll_ctl(cno->epoll, EPOLL_CTL_ADD, evd->channel, &event)) {
		atomic_fetch_add(&cno->channels, 1);
		return true;
	}
	log_at(LOG_ERROR, "cno %p: epoll_ctl: %m", (void *)cno);
	return false;
}

void cno_fd_remove_locked(struct dapl_cno *cno, struct dapl_evd *evd)
{
	if (evd->channel < 0)
		return;
	if (epoll_ctl(cno->epoll, EPOLL_CTL_DEL, evd->channel, NULL))
		log_at(LOG_ERROR, "cno %p: epoll_ctl: %m", (void *)cno);
	else
		atomic_fetch_sub(&cno->channels, 1);
}

void cno_changed_locked(struct dapl_cno *cno)
{
	cno->change_index++;
	if (cno->state & CNO_LISTED && cno->state & CNO_ARMED)
		cno->state |= CNO_CHANGED;
	cno_show_locked(cno);
}

/*
 * The EVD stays attached while the CNO's lock is held. Work that its failure makes due is left to the
 * next evd_unlock of the EVD: it may acquire the lock of the async EVD's CNO, which may be this lock.
 */
static void serve_one(struct dapl_cno *cno, struct dapl_evd *evd)
{
	bool fired, wake;

	if (!ib_cq_collect(evd->cq))
		return;
	lock_acquire(&evd->lock);
	fired = evd->cno == cno;
	fired &= evd_fired_locked(evd, &wake);
	lock_release(&evd->lock);
	if (wake)
		wakefd_raise(&evd->wake);
	if (fired)
		evd_trigger_locked(evd, cno);
}

/* Returns false if more descriptors may be readable. */
static bool serve_some(struct dapl_cno *cno)
{
	struct epoll_event ready[SERVE_BATCH];
	int n, i;

	n = epoll_wait(cno->epoll, ready, SERVE_BATCH, 0);
	if (n < 0 && errno != EINTR)
		log_at(LOG_ERROR, "cno %p: epoll_wait: %m", (void *)cno);
	for (i = 0; i < n; i++)
		if (ready[i].data.ptr)
			serve_one(cno, ready[i].data.ptr);
	return n < SERVE_BATCH;
}

void cno_serve_locked(struct dapl_cno *cno)
{
	if (!(cno->state & CNO_DYING))
		serve_some(cno);
}

/* epoll returns each descriptor once before it returns one again. */
void cno_serve_all_locked(struct dapl_cno *cno)
{
	unsigned count = atomic_load(&cno->channels), served;

	/* The descriptors are the channels and `wake`. */
	for (served = 0; count && served <= count && !serve_some(cno); served += SERVE_BATCH)
		;
}

DAT_RETURN ext_cno_get_fd(DAT_HANDLE handle, va_list args)
{
	CANCEL_OFF_HERE;
	struct dapl_cno *cno = handle;
	bool dying;
	DAT_FD *out = va_arg(args, DAT_FD *);

	if (!out)
		return DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG3);
	pthread_mutex_lock(&cno->lock);
	dying = cno->state & CNO_DYING;
	if (!dying)
		*out = cno->epoll;
	pthread_mutex_unlock(&cno->lock);
	return dying ? DAT_ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_CNO) : DAT_SUCCESS;
}

/* Returns -1 if the EVD has no descriptor. */
static int channel_of(struct dapl_evd *evd)
{
	int fd = -1;

	lock_acquire(&evd->lock);
	if (evd->cq && !(evd->state & EVD_DYING))
		fd = ib_cq_fd(evd->cq);
	lock_release(&evd->lock);
	return fd;
}

/* Returns the number of descriptors; writes as many as `room` allows. */
static DAT_COUNT cno_fd_list_locked(struct dapl_cno *cno, struct pollfd *fds, DAT_COUNT room)
{
	int fd = wakefd_get(&cno->wake);
	struct dapl_evd *evd;
	DAT_COUNT count = 0;

	if (count++ < room)
		fds[0] = (struct pollfd){ .fd = fd, .events = POLLIN };
	TAILQ_FOREACH(evd, &cno->evds, cno_link) {
		fd = channel_of(evd);
		if (fd >= 0 && count++ < room)
			fds[count - 1] = (struct pollfd){ .fd = fd, .events = POLLIN };
	}
	return count;
}

DAT_RETURN ext_cno_get_pollfds(DAT_HANDLE handle, va_list args)
{
	CANCEL_OFF_HERE;
	DAT_EV_POLLFDS *out = va_arg(args, DAT_EV_POLLFDS *);
	struct dapl_cno *cno = handle;
	DAT_COUNT needed;
	bool fits;

	if (!out || out->nfds < 0 || (out->nfds && !out->fds))
		return DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG3);
	pthread_mutex_lock(&cno->lock);
	needed = cno_fd_list_locked(cno, NULL, 0);
	fits = out->nfds >= needed;
	if (fits)
		cno_fd_list_locked(cno, out->fds, needed);
	if (fits)
		cno->state |= CNO_LISTED;
	out->change_index = cno->change_index;
	out->nfds = needed;
	pthread_mutex_unlock(&cno->lock);
	return fits ? DAT_SUCCESS : DAT_ERROR(DAT_LENGTH_ERROR, 0);
}
