/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/*
 * Links that are ready are in an epoll of their own from the first reader on; it is open before, since a wait opens no
 * descriptor that stays. The engine waits for that epoll while there is no reader. While there is one it does not, so that a
 * message wakes one thread and not two.
 *
 * A reader may be delayed by a signal handler, and peers must not wait for that. So the engine checks every CHECK_AFTER whether the
 * reader has begun or read since. If not, the engine waits for the links, too, and checks no more: a reader that waits for long
 * costs two checks. The reader has the links to itself again once it was the first to read.
 *
 * A doorbell is a message, too, and the engine answers it. A thread that waits for connections beside others that move data
 * would be woken by each. So it stops reading at the first, and also where the engine was first.
 *
 * A server, or a client that makes many connections, reads again as soon as it has handled what it waited for. If a reader
 * says so when it ends, the engine leaves the links to it for STAY, unless a doorbell came not long ago.
 */
#include <errno.h>
#include <fcntl.h>
#include <sys/epoll.h>
#include <unistd.h>
#include "softverbs/link/link_reader.h"
#include "util/cancel.h"
#include "util/clock.h"

#define BATCH	    16
#define CHECK_AFTER (10 * NSEC_PER_MSEC)
#define STAY	    NSEC_PER_MSEC
#define QUIET	    (100 * NSEC_PER_MSEC) /* after a doorbell */

static pthread_mutex_t reading = PTHREAD_MUTEX_INITIALIZER;

static struct {			  /* guarded by the links lock */
	int epoll;		  /* of the sockets of ready links */
	bool shared;		  /* there was a reader: such links are in it */
	struct engine_fd handler; /* a copy of it */
	bool has_reader, engine_waits, has_read;
	uint64_t left, rung; /* when the last reader ended, when the last doorbell came */
	uint64_t checks_at;  /* CLOCK_NEVER: the timer does not run */
	struct sv_timer check;
} reader = { .epoll = -1, .handler.fd = -1, .checks_at = CLOCK_NEVER };

void sv_links_reading_lock(void)
{
	pthread_mutex_lock(&reading);
}

void sv_links_reading_unlock(void)
{
	pthread_mutex_unlock(&reading);
}

/* ---- links ---- */

void sv_link_interest_locked(struct sv_link *link)
{
	bool writes = !STAILQ_EMPTY(&link->out) || link->ring_waits || link->ended;

	sv_engine_fd_modify(&link->handler,
			    (link->in_reader ? 0 : EPOLLIN) | (writes ? EPOLLOUT : 0));
}

/* Without room in the kernel the engine goes on to read it. */
void sv_link_reader_add_locked(struct sv_link *link)
{
	struct epoll_event event = { .events = EPOLLIN, .data.ptr = link };

	if (!reader.shared || epoll_ctl(reader.epoll, EPOLL_CTL_ADD, link->handler.fd, &event))
		return;
	link->in_reader = true;
	sv_link_interest_locked(link);
}

void sv_link_reader_remove_locked(struct sv_link *link)
{
	if (link->in_reader)
		epoll_ctl(reader.epoll, EPOLL_CTL_DEL, link->handler.fd, NULL);
	link->in_reader = false;
}

/* ---- reading ---- */

static void link_end(struct sv_link *link)
{
	sv_links_lock();
	sv_link_reader_remove_locked(link);
	link->ended = true;
	sv_link_interest_locked(link); /* a socket that ends is writable */
	sv_links_unlock();
}

/*
 * Returns how many links had something to read. Sets *rung if a doorbell was among it. Leaves the end of a link to the engine.
 */
static int links_read(bool *rung)
{
	struct epoll_event events[BATCH];
	int count;

	sv_links_reading_lock();
	count = epoll_wait(reader.epoll, events, BATCH, 0);
	for (int i = 0; i < count; i++) {
		struct sv_link *link = events[i].data.ptr;

		if (sv_link_read(link, false, rung))
			link_end(link);
	}
	sv_links_reading_unlock();
	if (*rung) {
		sv_links_lock();
		reader.rung = clock_now();
		sv_links_unlock();
	}
	return count;
}

static void reader_links_ready(struct engine_fd *handler, uint32_t events)
{
	bool rung = false;

	(void)handler;
	(void)events;
	links_read(&rung);
	if (rung)
		sv_runtime_client()->doorbell();
}

/* ---- the reader ---- */

static void link_reader_check(struct sv_timer *timer);

static void check_arm_locked(uint64_t at)
{
	if (reader.checks_at <= at)
		return;
	reader.checks_at = at;
	sv_engine_timer_arm(&reader.check, at, link_reader_check);
}

static void engine_waits_locked(bool waits)
{
	if (reader.engine_waits != waits)
		sv_engine_fd_modify(&reader.handler, waits ? EPOLLIN : 0);
	reader.engine_waits = waits;
}

static void link_reader_check(struct sv_timer *timer)
{
	uint64_t now = clock_now();

	(void)timer;
	sv_links_lock();
	reader.checks_at = CLOCK_NEVER;
	if (reader.has_reader ? !reader.has_read : now >= reader.left + STAY)
		engine_waits_locked(true);
	else if (!reader.engine_waits)
		check_arm_locked(reader.has_reader ? now + CHECK_AFTER : reader.left + STAY);
	reader.has_read = false;
	sv_links_unlock();
}

int sv_link_reader_begin(void)
{
	int fd = -1;

	sv_links_lock();
	if (!reader.has_reader) {
		if (!reader.shared) {
			reader.shared = true;
			sv_links_share_locked();
		}
		fd = reader.epoll;
		reader.has_reader = true;
		reader.has_read = true; /* it has just come */
		engine_waits_locked(false);
		check_arm_locked(clock_now() + CHECK_AFTER);
	}
	sv_links_unlock();
	return fd;
}

bool sv_link_reader_read(void)
{
	int cancel = cancel_off();
	bool rung = false, goes_on = links_read(&rung) > 0 && !rung;

	if (rung)
		sv_peer_ring(sv_peer_self());
	if (goes_on) {
		sv_links_lock();
		reader.has_read = true;
		engine_waits_locked(false);
		check_arm_locked(clock_now() + CHECK_AFTER);
		sv_links_unlock();
	}
	cancel_restore(cancel);
	return goes_on;
}

void sv_link_reader_end(bool returns)
{
	uint64_t now = clock_now();

	sv_links_lock();
	reader.has_reader = false;
	reader.left = now;
	if (returns && !reader.engine_waits && now > reader.rung + QUIET)
		check_arm_locked(now + STAY);
	else
		engine_waits_locked(true);
	sv_links_unlock();
}

/* ---- open and close ---- */

int sv_link_reader_open(void)
{
	int fd;

	reader.engine_waits = true;
	reader.epoll = epoll_create1(EPOLL_CLOEXEC);
	fd = reader.epoll < 0 ? -1 : fcntl(reader.epoll, F_DUPFD_CLOEXEC, 0);
	return fd < 0 ? errno : sv_engine_fd_add(&reader.handler, fd, EPOLLIN, reader_links_ready);
}

void sv_link_reader_close(void)
{
	sv_engine_fd_remove(&reader.handler);
	sv_engine_timer_cancel(&reader.check);
	reader.checks_at = CLOCK_NEVER;
	reader.shared = false;
	if (reader.epoll >= 0)
		close(reader.epoll);
	reader.epoll = -1;
}

void sv_link_reader_fork_child(void)
{
	if (reader.epoll >= 0)
		close(reader.epoll);
	reader.epoll = -1;
	reader.has_reader = reader.shared = false;
	reader.check = (struct sv_timer){ .fire = NULL };
	reader.checks_at = CLOCK_NEVER;
}
