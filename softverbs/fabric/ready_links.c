/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* The links that are ready, read by threads that poll. */
#include <errno.h>
#include <sys/epoll.h>
#include <unistd.h>
#include "softverbs/fabric/progress.h"
#include "softverbs/fabric/ready_links.h"

#define BATCH 16

static struct {
	void (*read)(struct fabric_link *link);
	struct fabric_source source; /* its descriptor: an epoll of the sockets; -1: not open */
} ready = { .source.fd = -1 };

bool sv_fabric_ready_links_is_open(void)
{
	return ready.source.fd >= 0;
}

uint32_t sv_fabric_link_events_locked(const struct fabric_link *link)
{
	return (link->in_ready ? 0 : EPOLLIN) | (STAILQ_EMPTY(&link->out) ? 0 : EPOLLOUT);
}

static void set_locked(struct fabric_link *link, bool in)
{
	link->in_ready = in;
	sv_engine_fd_modify(&link->handler, sv_fabric_link_events_locked(link));
}

/* Without room in the kernel the engine goes on to read it. */
void sv_fabric_ready_links_add(struct fabric_link *link)
{
	struct epoll_event event = { .events = EPOLLIN, .data.ptr = link };

	sv_fabric_lock();
	if (!epoll_ctl(ready.source.fd, EPOLL_CTL_ADD, link->handler.fd, &event))
		set_locked(link, true);
	sv_fabric_unlock();
}

void sv_fabric_ready_links_remove(struct fabric_link *link)
{
	sv_fabric_lock();
	if (link->in_ready) {
		epoll_ctl(ready.source.fd, EPOLL_CTL_DEL, link->handler.fd, NULL);
		set_locked(link, false);
	}
	sv_fabric_unlock();
}

void sv_fabric_ready_links_leave(struct fabric_link *link)
{
	bool in;

	if (!sv_fabric_ready_links_is_open())
		return;
	sv_fabric_lock();
	in = link->in_ready;
	sv_fabric_unlock();
	if (!in)
		return;
	sv_fabric_reading_lock();
	sv_fabric_ready_links_remove(link);
	sv_fabric_reading_unlock();
}

/* ---- the source ---- */

static unsigned ready_read(void)
{
	struct epoll_event events[BATCH];
	int count = epoll_wait(ready.source.fd, events, BATCH, 0);

	for (int i = 0; i < count; i++)
		ready.read(events[i].data.ptr);
	return count > 0 ? (unsigned)count : 0;
}

int sv_fabric_ready_links_open(void (*read)(struct fabric_link *link),
			       void (*read_over)(bool polled))
{
	int fd = epoll_create1(EPOLL_CLOEXEC), error;

	if (fd < 0)
		return errno;
	ready.read = read;
	ready.source =
		(struct fabric_source){ .fd = fd, .read = ready_read, .read_over = read_over };
	error = sv_fabric_progress_open(&ready.source);
	if (error)
		sv_fabric_ready_links_close();
	return error;
}

void sv_fabric_ready_links_close(void)
{
	if (ready.source.fd < 0)
		return;
	sv_fabric_progress_close();
	close(ready.source.fd);
	ready.source.fd = -1;
}

void sv_fabric_ready_links_fork_child(void)
{
	if (ready.source.fd >= 0)
		close(ready.source.fd);
	ready.source.fd = -1;
}
