/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* Links between hosts, from connect to close. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>
#include "softverbs/base/settings.h"
#include "softverbs/fabric/data.h"
#include "softverbs/fabric/endpoint.h"
#include "softverbs/fabric/link.h"
#include "softverbs/fabric/progress.h"
#include "softverbs/fabric/ready_links.h"
#include "softverbs/fabric/unproven.h"
#include "softverbs/link/cm_calls.h"
#include "util/clock.h"
#include "util/log.h"

/* For a step before the proofs, of a link that was begun there, and of one that was begun here. */
#define PASSIVE_TIME (2 * NSEC_PER_SEC)
#define ACTIVE_TIME  (4 * NSEC_PER_SEC)
#define ENDING_STEP  NSEC_PER_MSEC
#define ENDING_QUIET 10u   /* steps without a message before a peer is gone */
#define ENDING_STEPS 1000u /* of a peer that goes on to send */

static LIST_HEAD(, fabric_link) links = LIST_HEAD_INITIALIZER(links); /* fabric's lock */

static struct fabric_link *link_of(void *member, size_t offset)
{
	return (struct fabric_link *)(void *)((char *)member - offset);
}

static struct fabric_link *link_new(void)
{
	struct fabric_link *link = calloc(1, sizeof(*link));

	if (!link)
		return NULL;
	if (getrandom(&link->token, sizeof(link->token), 0) != sizeof(link->token)) {
		free(link);
		return NULL;
	}
	link->handler.fd = link->asked.fd = -1;
	link->in = link->first;
	link->in_size = sizeof(link->first);
	STAILQ_INIT(&link->out);
	return link;
}

static void link_free(struct engine_job *job)
{
	struct fabric_link *link = link_of(job, offsetof(struct fabric_link, job));

	sv_fabric_link_forget(link);
	if (link->in != link->first)
		free(link->in);
	free(link);
}

/* ---- end ---- */

/* Returns the peer that is to be reported as gone. */
static struct sv_peer *link_close(struct fabric_link *link)
{
	struct sv_peer *peer;

	if (!link->active && link->state < FABRIC_TARGET)
		sv_unproven_remove(link);
	sv_fabric_ready_links_leave(link);
	sv_fabric_lock();
	if (link->state == FABRIC_READY)
		LIST_REMOVE(link, token_entry);
	link->state = FABRIC_DOWN;
	peer = sv_fabric_peer_leave_locked(link);
	LIST_REMOVE(link, entry);
	sv_engine_fd_remove(&link->handler);
	sv_engine_fd_remove(&link->asked);
	sv_fabric_unlock();
	sv_engine_timer_cancel(&link->timer);
	sv_engine_defer(&link->job, link_free);
	return peer;
}

/* Closes the other link with that process, if there is one. */
static void twin_close(const struct sv_peer *peer)
{
	struct fabric_link *link;

	sv_fabric_lock();
	LIST_FOREACH(link, &links, entry)
		if (link->peer == peer->far)
			break;
	sv_fabric_unlock();
	if (link)
		link_close(link);
}

void sv_fabric_link_down(struct fabric_link *link, int error)
{
	struct sv_peer *peer;

	if (link->state == FABRIC_DOWN)
		return;
	if (link->error)
		error = link->error;
	log_at(LOG_TRACE, "softverbs: %s: link down in state %d: %s", link->name, link->state,
	       strerror(error));
	peer = link_close(link);
	if (link->found)
		link->found(link->cookie, NULL, error);
	if (peer) {
		twin_close(peer);
		sv_far_peer_gone(peer);
		sv_cm_peer_gone(peer);
		sv_peer_put(peer);
	}
}

static void link_end_step(struct sv_timer *timer)
{
	struct fabric_link *link = link_of(timer, offsetof(struct fabric_link, timer));
	uint32_t next = sv_fabric_endpoint_drain(link->peer);

	link->quiet = next == link->next ? link->quiet + 1 : 0;
	link->next = next;
	if (link->quiet == ENDING_QUIET || ++link->steps >= ENDING_STEPS)
		sv_fabric_link_down(link, 0);
	else
		sv_engine_timer_arm(&link->timer, clock_now() + ENDING_STEP, link_end_step);
}

/*
 * The socket has come to its end. The messages of an endpoint take another way, and a provider may need several reads for
 * one that has arrived: the process is gone when none has come for a while.
 */
static void link_end(struct fabric_link *link)
{
	if (!link->peer || !sv_fabric_endpoint_is_open()) {
		sv_fabric_link_down(link, 0);
		return;
	}
	sv_fabric_lock();
	sv_engine_fd_remove(&link->handler);
	sv_fabric_unlock();
	link->steps = 0;
	link_end_step(&link->timer);
}

void sv_fabric_links_close(void)
{
	struct fabric_link *link;
	struct sv_peer *peer;

	while ((link = LIST_FIRST(&links))) {
		peer = link_close(link);
		if (peer)
			sv_peer_put(peer);
	}
}

void sv_fabric_links_fork_child(void)
{
	struct fabric_link *link;

	while ((link = LIST_FIRST(&links))) {
		LIST_REMOVE(link, entry);
		link_free(&link->job);
	}
	sv_fabric_tokens_forget();
	sv_unproven_forget();
}

/* Whether this process, not the other side, is late. */
static bool is_unread(const struct fabric_link *link)
{
	return link->state != FABRIC_LOOKUP && /* where nothing is read */
	       sv_fabric_socket_is_unread(link->handler.fd);
}

static void link_expire(struct sv_timer *timer)
{
	struct fabric_link *link = link_of(timer, offsetof(struct fabric_link, timer));

	if (is_unread(link))
		sv_engine_timer_arm(timer, clock_now() + NSEC_PER_SEC, link_expire);
	else
		sv_fabric_link_down(link, ETIMEDOUT);
}

/*
 * The other side of a link that is proven may have taken this process as its peer already. If this side gave up then, the
 * other one would report a dead process to its QPs. So it has the time of a host that vanishes.
 */
static uint64_t step_time(const struct fabric_link *link)
{
	if (link->state >= FABRIC_TARGET)
		return sv_setting(SV_SET_FABRIC_TIMEOUT) * NSEC_PER_SEC;
	return link->active ? ACTIVE_TIME : PASSIVE_TIME;
}

void sv_fabric_link_step(struct fabric_link *link)
{
	uint64_t time = step_time(link);

	sv_engine_timer_arm(&link->timer, clock_now() + time, link_expire);
}

/* ---- events ---- */

static int link_connected(struct fabric_link *link)
{
	int error = sv_fabric_socket_error(link->handler.fd);

	if (error)
		return error;
	sv_fabric_lock();
	link->state = FABRIC_PRELUDE;
	sv_engine_fd_modify(&link->handler, EPOLLIN);
	sv_fabric_unlock();
	return sv_fabric_opening_begin(link);
}

/*
 * Requests of peers are read by one thread at a time. While a link carries messages of rdma_cm alone, which threads that poll
 * leave to the engine, it stays with it.
 */
static bool ready_read(struct fabric_link *link)
{
	bool sound;

	sv_fabric_reading_lock();
	sv_fabric_ready_links_remove(link);
	link->has_cm = link->has_data = false;
	sound = sv_fabric_link_read(link);
	sv_far_dues_send(false);
	if (sound && (link->has_data || !link->has_cm))
		sv_fabric_ready_links_add(link);
	sv_fabric_reading_unlock();
	return sound;
}

static void link_read_on(struct fabric_link *link)
{
	bool sound, opens;

	do {
		opens = link->state < FABRIC_READY;
		sound = opens || !sv_fabric_ready_links_is_open() ? sv_fabric_link_read(link)
								  : ready_read(link);
	} while (sound && opens && link->state == FABRIC_READY);
	if (!sound)
		link_end(link);
}

static void link_resume(struct sv_timer *timer)
{
	link_read_on(link_of(timer, offsetof(struct fabric_link, timer)));
}

/* Any thread that has the reading lock. What it does not read, the engine does. */
static void link_poll(struct fabric_link *link)
{
	if (sv_fabric_link_read(link))
		return;
	sv_engine_timer_arm(&link->timer, clock_now(), link_resume);
	sv_fabric_ready_links_remove(link);
}

int sv_fabric_links_open(void)
{
	return sv_fabric_ready_links_open(link_poll, sv_far_dues_send);
}

static void link_ready(struct engine_fd *handler, uint32_t events)
{
	struct fabric_link *link = link_of(handler, offsetof(struct fabric_link, handler));
	int error = 0;

	sv_fabric_lock(); /* waits until the thread that opened the link is done */
	error = link->state == FABRIC_DOWN;
	sv_fabric_unlock();
	if (error)
		return;
	if (link->state == FABRIC_CONNECTING)
		error = link_connected(link);
	else if (events & EPOLLOUT)
		error = sv_fabric_link_flush(link);
	if (error) {
		link->error = error;
		link_end(link);
	} else if (events & ~EPOLLOUT) {
		link_read_on(link);
	}
}

/* The link owns `fd` in any case. */
static int link_handler_add_locked(struct fabric_link *link, int fd, uint32_t events)
{
	int error;

	sv_ip_show(&link->host, link->name);
	LIST_INSERT_HEAD(&links, link, entry);
	sv_fabric_socket_set(fd);
	error = sv_engine_fd_add(&link->handler, fd, events, link_ready);
	sv_fabric_link_step(link);
	return error;
}

/* ---- begin ---- */

int sv_fabric_link_open(const struct sv_ip *host, const struct wire_target *target, uint32_t cookie,
			sv_fabric_found *found)
{
	struct fabric_link *link = link_new();
	int fd = -1, error;

	if (!link)
		return ENOMEM;
	link->active = true;
	link->host = *host;
	link->target = *target;
	link->cookie = cookie;
	error = sv_fabric_socket_connect(host, &fd);
	if (error) {
		free(link);
		return error;
	}
	sv_fabric_lock();
	link->found = found;
	link_handler_add_locked(link, fd, EPOLLOUT); /* after an error the timer ends it */
	sv_fabric_unlock();
	return 0;
}

static struct fabric_link *passive_new(int fd)
{
	struct sockaddr_storage address;
	socklen_t size = sizeof(address);
	struct fabric_link *link = NULL;
	uint16_t port;

	if (!getpeername(fd, (struct sockaddr *)&address, &size))
		link = link_new();
	if (!link || sv_ip_from_sockaddr(&link->host, &port, (struct sockaddr *)&address)) {
		free(link);
		close(fd);
		return NULL;
	}
	return link;
}

bool sv_fabric_link_has_room(void)
{
	struct fabric_link *silent;

	if (sv_unproven_has_room())
		return true;
	silent = sv_unproven_silent();
	if (silent)
		sv_fabric_link_down(silent, ETIMEDOUT);
	return silent;
}

void sv_fabric_link_accept(int fd)
{
	struct fabric_link *link = passive_new(fd);
	int error;

	if (!link)
		return;
	link->state = FABRIC_PRELUDE;
	sv_unproven_add(link);
	sv_fabric_lock();
	error = link_handler_add_locked(link, fd, EPOLLIN);
	sv_fabric_unlock();
	if (error)
		sv_fabric_link_down(link, error);
}

void sv_fabric_link_adopt(int fd, const struct wire_target *target)
{
	struct fabric_link *link = passive_new(fd);
	int error;

	if (!link)
		return;
	link->state = FABRIC_TARGET;
	link->target = *target;
	sv_fabric_lock();
	error = link_handler_add_locked(link, fd, EPOLLIN);
	sv_fabric_unlock();
	if (error)
		sv_fabric_link_down(link, error);
	else
		sv_fabric_target(link);
}
