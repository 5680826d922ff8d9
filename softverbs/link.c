/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* A link: one SEQPACKET connection with a process, from its beginning to its end. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "softverbs/name.h"
#include "softverbs/runtime.h"
#include "util/clock.h"
#include "util/log.h"

#ifndef SO_PEERPIDFD
#define SO_PEERPIDFD 77 /* Linux 6.5 */
#endif

#define GREETING_TIME (3 * NSEC_PER_SEC)  /* a link that is not ready by then is given up */
#define RETRY_TIME    (2 * NSEC_PER_MSEC) /* between two tries to connect */

static LIST_HEAD(, sv_link) links = LIST_HEAD_INITIALIZER(links); /* links lock */

static void link_ready(struct engine_watch *watch, uint32_t events);
static void link_late(struct sv_timer *timer);

static struct sv_link *link_new_locked(enum link_state state, const struct ucred *cred)
{
	struct sv_link *link = calloc(1, sizeof(*link));

	if (!link)
		return NULL;
	link->watch.fd = link->death.fd = -1;
	link->state = state;
	if (cred)
		link->cred = *cred;
	link->deadline = clock_now() + GREETING_TIME;
	STAILQ_INIT(&link->out);
	LIST_INSERT_HEAD(&links, link, entry);
	return link;
}

/* Once the watch is out of the engine and nobody finds the link any more. */
static void link_free(struct engine_job *job)
{
	struct sv_link *link =
		(struct sv_link *)(void *)((char *)job - offsetof(struct sv_link, job));

	link_forget_messages(link);
	free(link);
}

/* ---- events ---- */

static void link_ready(struct engine_watch *watch, uint32_t events)
{
	struct sv_link *link =
		(struct sv_link *)(void *)((char *)watch - offsetof(struct sv_link, watch));
	bool down;

	links_lock(); /* whoever opened it has let go of it */
	down = link->state == LINK_DOWN;
	links_unlock();
	if (down)
		return;
	if (events & EPOLLOUT)
		link_flush(link);
	if (link_drain(link, false) && link->state != LINK_DOWN)
		link_down(link, link->error ? link->error : ECONNRESET);
}

/* ---- death ---- */

/* What it said before it died still counts. */
static void link_died(struct engine_watch *watch, uint32_t events)
{
	struct sv_link *link =
		(struct sv_link *)(void *)((char *)watch - offsetof(struct sv_link, death));

	(void)events;
	link_drain(link, true);
	if (link->state != LINK_DOWN)
		link_down(link, ECONNRESET);
}

/*
 * A forked child of the peer may keep the socket open, so the end of the stream alone may come
 * late.
 */
int link_watch_death(struct sv_link *link)
{
	socklen_t size = sizeof(int);
	int fd;

	if (getsockopt(link->watch.fd, SOL_SOCKET, SO_PEERPIDFD, &fd, &size))
		fd = (int)syscall(SYS_pidfd_open, link->cred.pid, 0);
	else
		fcntl(fd, F_SETFD, FD_CLOEXEC);
	if (fd >= 0)
		return engine_watch(&link->death, fd, EPOLLIN, link_died);
	if (errno == ESRCH)
		return ECONNRESET;
	log_at(LOG_NOTE, "softverbs: pidfd of process %d: %s; its end shows on the socket alone",
	       (int)link->cred.pid, strerror(errno));
	return 0;
}

bool link_hung_up(const struct sv_link *link)
{
	struct pollfd poll_fd = { .fd = link->watch.fd };

	return poll(&poll_fd, 1, 0) == 1 && poll_fd.revents & POLLHUP;
}

static struct sv_peer *link_close(struct sv_link *link, bool *waited)
{
	struct sv_peer *peer;

	links_lock();
	link->state = LINK_DOWN;
	*waited = slot_leave_locked(link);
	peer = link->peer;
	link->peer = NULL;
	LIST_REMOVE(link, entry);
	/* the peer's doorbell is a copy of the descriptor, and stays as long as the peer is used */
	if (link->watch.fd >= 0)
		shutdown(link->watch.fd, SHUT_RDWR);
	engine_unwatch(&link->watch);
	engine_unwatch(&link->death);
	links_unlock();
	engine_timer_cancel(&link->timer);
	engine_defer(&link->job, link_free);
	return peer;
}

void link_down(struct sv_link *link, int error)
{
	struct sv_peer *peer;
	bool waited;

	log_at(LOG_TRACE, "softverbs: link to slot %u, process %d: down in state %d", link->slot,
	       (int)link->cred.pid, link->state);
	peer = link_close(link, &waited);
	if (peer) {
		data_peer_gone(peer);
		cm_peer_gone(peer);
		peer_put(peer);
	} else if (waited) {
		log_at(LOG_NOTE, "softverbs: slot %u: no link: %s", link->slot, strerror(error));
		data_slot_unreachable(link->slot);
		cm_slot_unreachable(link->slot, error);
	}
}

void links_close(void)
{
	struct sv_link *link;
	struct sv_peer *peer;
	bool waited;

	while ((link = LIST_FIRST(&links))) {
		peer = link_close(link, &waited);
		if (peer)
			peer_put(peer);
	}
}

/* The engine has closed the copies of the sockets; what the links allocated is returned. */
void links_fork_child(void)
{
	struct sv_link *link;

	while ((link = LIST_FIRST(&links))) {
		LIST_REMOVE(link, entry);
		link_free(&link->job);
	}
}

/* ---- beginning ---- */

/*
 * One attempt: 0 when connected and greeted, EAGAIN when there is no room yet, or the errno that
 * ends it.
 */
static int link_connect_locked(struct sv_link *link)
{
	char name[16];
	int fd, error;

	snprintf(name, sizeof(name), "s%u", link->slot);
	fd = name_connect(name, &link->cred);
	if (fd < 0)
		return errno;
	link->state = LINK_GREETED;
	error = engine_watch(&link->watch, fd, EPOLLIN, link_ready);
	return error ? error : hello_send_locked(link);
}

struct sv_link *link_open_locked(uint16_t slot)
{
	struct sv_link *link = link_new_locked(LINK_WAITING, NULL);
	int error;

	if (!link) {
		errno = ENOMEM;
		return NULL;
	}
	link->slot = slot;
	error = link_connect_locked(link);
	if (error && error != EAGAIN) {
		link->state = LINK_DOWN;
		LIST_REMOVE(link, entry);
		engine_unwatch(&link->watch);
		engine_defer(&link->job, link_free);
		errno = error;
		return NULL;
	}
	engine_timer_arm(&link->timer, error ? clock_now() + RETRY_TIME : link->deadline,
			 link_late);
	return link;
}

static void link_late(struct sv_timer *timer)
{
	struct sv_link *link =
		(struct sv_link *)(void *)((char *)timer - offsetof(struct sv_link, timer));
	int error = ETIMEDOUT;

	links_lock();
	if (link->state == LINK_WAITING && clock_now() < link->deadline)
		error = link_connect_locked(link);
	if (!error || error == EAGAIN)
		engine_timer_arm(timer, error ? clock_now() + RETRY_TIME : link->deadline,
				 link_late);
	links_unlock();
	if (error && error != EAGAIN)
		link_down(link, error);
}

void link_accept(int fd, const struct ucred *cred)
{
	struct sv_link *link;
	int error;

	links_lock();
	link = link_new_locked(LINK_ACCEPTED, cred);
	if (link) {
		error = engine_watch(&link->watch, fd, EPOLLIN, link_ready);
		engine_timer_arm(&link->timer, link->deadline, link_late);
	}
	links_unlock();
	if (!link) {
		log_at(LOG_ERROR, "softverbs: link of process %d: out of memory", (int)cred->pid);
		close(fd);
	} else if (error) {
		link_down(link, error);
	}
}
