/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* A link: one SEQPACKET connection with a process, from connect to close. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "softverbs/base/kernel.h"
#include "softverbs/link/cm_calls.h"
#include "softverbs/link/link_reader.h"
#include "softverbs/link/name.h"
#include "softverbs/link/runtime.h"
#include "util/clock.h"
#include "util/log.h"

#define GREETING_TIME (3 * NSEC_PER_SEC)  /* limit until a link is ready */
#define RETRY_TIME    (2 * NSEC_PER_MSEC) /* pause between two attempts to connect */

static LIST_HEAD(, sv_link) links = LIST_HEAD_INITIALIZER(links); /* guarded by the links lock */

static void link_ready(struct engine_fd *handler, uint32_t events);
static void link_expire(struct sv_timer *timer);

static struct sv_link *link_new_locked(enum link_state state, const struct ucred *cred)
{
	struct sv_link *link = calloc(1, sizeof(*link));

	if (!link)
		return NULL;
	link->handler.fd = link->death.fd = -1;
	link->state = state;
	if (cred)
		link->cred = *cred;
	link->deadline = clock_now() + GREETING_TIME;
	STAILQ_INIT(&link->out);
	LIST_INSERT_HEAD(&links, link, entry);
	return link;
}

/* Runs after the descriptor was removed from the engine and the link from the list. */
static void link_free(struct engine_job *job)
{
	struct sv_link *link =
		(struct sv_link *)(void *)((char *)job - offsetof(struct sv_link, job));

	sv_links_reading_lock(); /* a reader may have just handled it */
	sv_links_reading_unlock();
	sv_link_forget_messages(link);
	free(link);
}

/* ---- events ---- */

/* The caller holds the lock of readers. Returns true if a doorbell was among the messages. */
static bool link_serve(struct sv_link *link, bool all)
{
	bool rung = false;

	if (!link->ended && !sv_link_read(link, all, &rung) && !all)
		return rung;
	if (link->state != LINK_DOWN)
		sv_link_down(link, link->error ? link->error : ECONNRESET);
	return rung;
}

static void link_ready(struct engine_fd *handler, uint32_t events)
{
	struct sv_link *link =
		(struct sv_link *)(void *)((char *)handler - offsetof(struct sv_link, handler));
	bool down, rung;

	sv_links_reading_lock();
	sv_links_lock(); /* waits until the thread that opened the link has released the lock */
	down = link->state == LINK_DOWN;
	sv_links_unlock();
	if (!down && events & EPOLLOUT)
		sv_link_flush(link);
	rung = !down && link_serve(link, false);
	sv_links_reading_unlock();
	if (rung)
		sv_runtime_client()->doorbell();
}

/* ---- end of the peer process ---- */

/* Handles the messages that the peer sent before it ended, then closes the link. */
static void link_died(struct engine_fd *handler, uint32_t events)
{
	struct sv_link *link =
		(struct sv_link *)(void *)((char *)handler - offsetof(struct sv_link, death));
	bool rung;

	(void)events;
	sv_links_reading_lock();
	rung = link_serve(link, true);
	sv_links_reading_unlock();
	if (rung)
		sv_runtime_client()->doorbell();
}

/* Waits for the end of the peer process: a forked child of it may keep the socket open and delay the end of
 * the stream. */
int sv_link_death_add(struct sv_link *link)
{
	socklen_t size = sizeof(int);
	int fd;

	if (getsockopt(link->handler.fd, SOL_SOCKET, SO_PEERPIDFD, &fd, &size))
		fd = (int)syscall(SYS_pidfd_open, link->cred.pid, 0);
	else
		fcntl(fd, F_SETFD, FD_CLOEXEC);
	if (fd >= 0)
		return sv_engine_fd_add(&link->death, fd, EPOLLIN, link_died);
	if (errno == ESRCH)
		return ECONNRESET;
	log_at(LOG_NOTE, "softverbs: pidfd of process %d: %s; only its socket shows its end",
	       (int)link->cred.pid, strerror(errno));
	return 0;
}

bool sv_link_hung_up(const struct sv_link *link)
{
	struct pollfd poll_fd = { .fd = link->handler.fd };

	return poll(&poll_fd, 1, 0) == 1 && poll_fd.revents & POLLHUP;
}

static struct sv_peer *link_close(struct sv_link *link, bool *waited)
{
	struct sv_peer *peer;

	sv_links_lock();
	link->state = LINK_DOWN;
	*waited = sv_peers_leave_locked(link);
	peer = link->peer;
	link->peer = NULL;
	LIST_REMOVE(link, entry);
	/* the peer's doorbell is a copy of the descriptor, and remains open while the peer is in use */
	sv_link_reader_remove_locked(link);
	if (link->handler.fd >= 0)
		shutdown(link->handler.fd, SHUT_RDWR);
	sv_engine_fd_remove(&link->handler);
	sv_engine_fd_remove(&link->death);
	sv_links_unlock();
	sv_engine_timer_cancel(&link->timer);
	sv_engine_defer(&link->job, link_free);
	return peer;
}

void sv_link_down(struct sv_link *link, int error)
{
	struct sv_peer *peer;
	bool waited;

	log_at(LOG_TRACE, "softverbs: link to slot %u, process %d: down in state %d", link->slot,
	       (int)link->cred.pid, link->state);
	peer = link_close(link, &waited);
	if (peer) {
		sv_runtime_client()->peer_gone(peer);
		sv_cm_peer_gone(peer);
		sv_peer_put(peer);
	} else if (waited) {
		log_at(LOG_NOTE, "softverbs: slot %u: no link: %s", link->slot, strerror(error));
		sv_runtime_client()->peer_unreachable(link->slot);
		sv_cm_peer_unreachable(link->slot, error);
	}
}

void sv_links_close(void)
{
	struct sv_link *link;
	struct sv_peer *peer;
	bool waited;

	while ((link = LIST_FIRST(&links))) {
		peer = link_close(link, &waited);
		if (peer)
			sv_peer_put(peer);
	}
}

void sv_links_share_locked(void)
{
	struct sv_link *link;

	LIST_FOREACH(link, &links, entry)
		if (link->state == LINK_READY)
			sv_link_reader_add_locked(link);
}

/* Frees what the links allocated; the engine has closed the copies of the sockets. */
void sv_links_fork_child(void)
{
	struct sv_link *link;

	while ((link = LIST_FIRST(&links))) {
		LIST_REMOVE(link, entry);
		sv_link_forget_messages(link);
		free(link);
	}
}

/* ---- connect ---- */

/* Makes one attempt. Returns 0 if connected with the hello sent, EAGAIN if the listener's queue is full, or
 * the errno that ends the link. */
static int link_connect_locked(struct sv_link *link)
{
	char name[16];
	int fd, error;

	snprintf(name, sizeof(name), "s%u", link->slot);
	fd = sv_name_connect(name, &link->cred);
	if (fd < 0)
		return errno;
	link->state = LINK_GREETED;
	error = sv_engine_fd_add(&link->handler, fd, EPOLLIN, link_ready);
	return error ? error : sv_handshake_send_locked(link);
}

struct sv_link *sv_link_open_locked(uint16_t slot)
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
		sv_engine_fd_remove(&link->handler);
		sv_engine_defer(&link->job, link_free);
		errno = error;
		return NULL;
	}
	sv_engine_timer_arm(&link->timer, error ? clock_now() + RETRY_TIME : link->deadline,
			    link_expire);
	return link;
}

/* Whether this process, not the peer, is late. The peer may hold a link for ready that is given up here. */
static bool is_unread(const struct sv_link *link)
{
	char byte;

	return link->handler.fd >= 0 &&
	       recv(link->handler.fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) == 1;
}

static void link_expire(struct sv_timer *timer)
{
	struct sv_link *link =
		(struct sv_link *)(void *)((char *)timer - offsetof(struct sv_link, timer));
	int error = ETIMEDOUT;

	sv_links_reading_lock();
	sv_links_lock();
	if (is_unread(link)) {
		link->deadline = clock_now() + NSEC_PER_SEC;
		error = 0;
	} else if (link->state == LINK_WAITING && clock_now() < link->deadline) {
		error = link_connect_locked(link);
	}
	if (!error || error == EAGAIN)
		sv_engine_timer_arm(timer, error ? clock_now() + RETRY_TIME : link->deadline,
				    link_expire);
	sv_links_unlock();
	if (error && error != EAGAIN)
		sv_link_down(link, error);
	sv_links_reading_unlock();
}

void sv_link_accept(int fd, const struct ucred *cred)
{
	struct sv_link *link;
	int error;

	sv_links_lock();
	link = link_new_locked(LINK_ACCEPTED, cred);
	if (link) {
		error = sv_engine_fd_add(&link->handler, fd, EPOLLIN, link_ready);
		sv_engine_timer_arm(&link->timer, link->deadline, link_expire);
	}
	sv_links_unlock();
	if (!link) {
		log_at(LOG_ERROR, "softverbs: link of process %d: out of memory", (int)cred->pid);
		close(fd);
	} else if (error) {
		sv_link_down(link, error);
	}
}
