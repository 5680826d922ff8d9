/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/*
 * Links that are ready are in an epoll of their own from the first reader on. The engine waits for that epoll while there is
 * no reader. While there is one it does not, so that a message wakes one thread and not two.
 *
 * A reader may be delayed by a signal handler, and peers must not wait for that. So the engine looks every LOOK whether the
 * reader has begun or read since. If not, the engine waits for the links, too, and looks no more, until the reader reads again:
 * a reader that waits for long costs two looks.
 */
#include <errno.h>
#include <fcntl.h>
#include <sys/epoll.h>
#include <unistd.h>
#include "softverbs/link/link_reader.h"
#include "util/cancel.h"
#include "util/clock.h"
#include "util/log.h"

#define BATCH 16
#define LOOK  (10 * NSEC_PER_MSEC)

static pthread_mutex_t reading = PTHREAD_MUTEX_INITIALIZER;

static struct {			/* guarded by the links lock */
	int epoll;		/* of the sockets of ready links; -1 before the first reader */
	struct engine_fd watch; /* a copy of it */
	bool has_reader, engine_waits, has_read;
	bool looks; /* the timer runs */
	struct sv_timer look;
} reader = { .epoll = -1, .watch.fd = -1 };

void sv_links_reading_lock(void)
{
	pthread_mutex_lock(&reading);
}

void sv_links_reading_unlock(void)
{
	pthread_mutex_unlock(&reading);
}

/* ---- links ---- */

void sv_link_watch_locked(struct sv_link *link)
{
	bool writes = !STAILQ_EMPTY(&link->out) || link->ring_waits || link->ended;

	sv_engine_fd_modify(&link->watch,
			    (link->in_reader ? 0 : EPOLLIN) | (writes ? EPOLLOUT : 0));
}

/* Without room in the kernel the engine goes on to read it. */
void sv_link_reader_add_locked(struct sv_link *link)
{
	struct epoll_event event = { .events = EPOLLIN, .data.ptr = link };

	if (reader.epoll < 0 || epoll_ctl(reader.epoll, EPOLL_CTL_ADD, link->watch.fd, &event))
		return;
	link->in_reader = true;
	sv_link_watch_locked(link);
}

void sv_link_reader_remove_locked(struct sv_link *link)
{
	if (link->in_reader)
		epoll_ctl(reader.epoll, EPOLL_CTL_DEL, link->watch.fd, NULL);
	link->in_reader = false;
}

/* ---- reading ---- */

static void link_end(struct sv_link *link)
{
	sv_links_lock();
	sv_link_reader_remove_locked(link);
	link->ended = true;
	sv_link_watch_locked(link); /* a socket that ends is writable */
	sv_links_unlock();
}

/* True if a doorbell was among the messages. Leaves the end of a link to the engine. */
static bool links_read(void)
{
	struct epoll_event events[BATCH];
	bool rung = false;
	int count;

	sv_links_reading_lock();
	count = epoll_wait(reader.epoll, events, BATCH, 0);
	for (int i = 0; i < count; i++) {
		struct sv_link *link = events[i].data.ptr;

		if (sv_link_read(link, false, &rung))
			link_end(link);
	}
	sv_links_reading_unlock();
	return rung;
}

static void reader_links_ready(struct engine_fd *watch, uint32_t events)
{
	(void)watch;
	(void)events;
	if (links_read())
		sv_runtime_client()->doorbell();
}

/* ---- the reader ---- */

static void reader_look(struct sv_timer *timer);

static void look_arm_locked(void)
{
	reader.looks = true;
	sv_engine_timer_arm(&reader.look, clock_now() + LOOK, reader_look);
}

static void engine_waits_locked(bool waits)
{
	if (reader.engine_waits != waits)
		sv_engine_fd_modify(&reader.watch, waits ? EPOLLIN : 0);
	reader.engine_waits = waits;
	if (!waits && !reader.looks)
		look_arm_locked();
}

static void reader_look(struct sv_timer *timer)
{
	(void)timer;
	sv_links_lock();
	reader.looks = false;
	if (reader.has_reader && !reader.has_read)
		engine_waits_locked(true);
	else if (reader.has_reader)
		look_arm_locked();
	reader.has_read = false;
	sv_links_unlock();
}

static int open_locked(void)
{
	int fd;

	if (reader.epoll >= 0)
		return 0;
	reader.epoll = epoll_create1(EPOLL_CLOEXEC);
	fd = reader.epoll < 0 ? -1 : fcntl(reader.epoll, F_DUPFD_CLOEXEC, 0);
	if (fd < 0 || sv_engine_fd_add(&reader.watch, fd, EPOLLIN, reader_links_ready)) {
		sv_link_reader_close();
		return -1;
	}
	reader.engine_waits = true;
	sv_links_share_locked();
	return 0;
}

int sv_link_reader_begin(void)
{
	int fd = -1;

	sv_links_lock();
	if (!reader.has_reader && !open_locked()) {
		fd = reader.epoll;
		reader.has_reader = true;
		reader.has_read = true; /* it has just come */
		engine_waits_locked(false);
	}
	sv_links_unlock();
	return fd;
}

void sv_link_reader_read(void)
{
	int cancel = cancel_off();
	bool reads;

	sv_links_lock();
	reads = reader.has_reader;
	if (reads)
		engine_waits_locked(false);
	reader.has_read = true;
	sv_links_unlock();
	if (reads && links_read())
		sv_peer_ring(sv_peer_self());
	cancel_restore(cancel);
}

void sv_link_reader_end(void)
{
	sv_links_lock();
	reader.has_reader = false;
	engine_waits_locked(true);
	sv_links_unlock();
}

/* ---- close ---- */

void sv_link_reader_close(void)
{
	sv_engine_fd_remove(&reader.watch);
	sv_engine_timer_cancel(&reader.look);
	reader.looks = false;
	if (reader.epoll >= 0)
		close(reader.epoll);
	reader.epoll = -1;
}

void sv_link_reader_fork_child(void)
{
	if (reader.epoll >= 0)
		close(reader.epoll);
	reader.epoll = -1;
	reader.has_reader = false;
	reader.look = (struct sv_timer){ .armed = false };
	reader.looks = false;
}
