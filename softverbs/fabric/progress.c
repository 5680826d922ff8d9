/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* Progress of what other hosts sent. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sys/epoll.h>
#include "softverbs/fabric/pause.h"
#include "softverbs/fabric/progress.h"
#include "softverbs/fabric/transport.h"
#include "util/cancel.h"
#include "util/clock.h"
#include "util/log.h"

#define ROUNDS 64u		     /* reads of the engine in a row */
#define PACE   (100 * NSEC_PER_USEC) /* between two reads where nothing wakes the engine */
/*
 * The descriptor was readable so often in a row, and for so long, when nothing had been read: it says nothing. That of
 * libfabric 1.17's provider `net` is so from the first message on, that of `tcp` for a while after the end of a peer. A
 * message of many pieces is read in fewer turns, and ofi_rxm polls a connection every 10 ms.
 */
#define VAIN_TURNS 1000u
#define VAIN_TIME  (200 * NSEC_PER_MSEC)

static struct {
	const struct fabric_source *source; /* NULL: none; constant while threads use the device */
	pthread_mutex_t reading;
	struct engine_fd handler;
	bool masked;   /* the descriptor is not waited for */
	unsigned vain; /* turns in a row, since then; the engine's */
	uint64_t vain_since;
	struct sv_timer pace;
} progress = { .handler.fd = -1, .reading = PTHREAD_MUTEX_INITIALIZER };

void sv_fabric_reading_lock(void)
{
	pthread_mutex_lock(&progress.reading);
}

void sv_fabric_reading_unlock(void)
{
	pthread_mutex_unlock(&progress.reading);
}

/* ---- a thread that polls ---- */

bool sv_far_progress(bool armed)
{
	int cancel;
	unsigned count;

	if (!progress.source)
		return false;
	cancel = cancel_off();
	count = 0;
	if (!pthread_mutex_trylock(&progress.reading)) {
		count = progress.source->read();
		progress.source->read_over(!armed);
		pthread_mutex_unlock(&progress.reading);
		if (!armed)
			sv_fabric_pause_polled();
	}
	cancel_restore(cancel);
	return count;
}

/* ---- the engine ---- */

static bool may_wait(void)
{
	return progress.source->fd < 0 || !progress.source->may_wait || progress.source->may_wait();
}

static bool is_readable(void)
{
	struct pollfd fd = { .fd = progress.handler.fd, .events = POLLIN };

	return poll(&fd, 1, 0) == 1;
}

static void mask(bool masked)
{
	progress.masked = masked;
	sv_engine_fd_modify(&progress.handler, masked ? 0 : EPOLLIN);
	log_at(LOG_NOTE, "softverbs: the provider's descriptor is %s",
	       masked ? "readable for nothing: the engine reads every 100 us" : "waited for again");
}

/* After a turn that has read nothing. */
static void vain_turn(void)
{
	if (!is_readable()) {
		progress.vain = 0;
		if (progress.masked)
			mask(false);
		return;
	}
	if (!progress.vain++)
		progress.vain_since = clock_now();
	if (!progress.masked && progress.vain >= VAIN_TURNS &&
	    clock_now() - progress.vain_since >= VAIN_TIME)
		mask(true);
}

bool sv_fabric_progress_is_woken(void)
{
	return progress.handler.fd >= 0 && !progress.masked;
}

/* True if there was something. */
static bool engine_read(void)
{
	bool all_read = false, any = false;
	unsigned count;

	pthread_mutex_lock(&progress.reading);
	for (unsigned i = 0; i < ROUNDS && !all_read; i++) {
		count = progress.source->read();
		progress.source->read_over(false);
		all_read = !count && may_wait();
		any |= count;
	}
	if (any || !all_read)
		progress.vain = 0;
	else
		vain_turn();
	pthread_mutex_unlock(&progress.reading);
	if (!all_read)
		sv_fabric_progress_now();
	else if (progress.source->is_paced && progress.source->is_paced())
		sv_fabric_progress_soon();
	return any;
}

static void pace_fire(struct sv_timer *timer)
{
	(void)timer;
	engine_read();
}

void sv_fabric_progress_soon(void)
{
	sv_engine_timer_arm(&progress.pace, clock_now() + PACE, pace_fire);
}

void sv_fabric_progress_now(void)
{
	sv_engine_timer_arm(&progress.pace, clock_now(), pace_fire);
}

static void fd_ready(struct engine_fd *handler, uint32_t events)
{
	(void)events;
	if (progress.masked) /* a pause has ended since */
		sv_engine_fd_modify(handler, 0);
	else if (!sv_fabric_pause_begin())
		engine_read();
}

/* ---- open and close ---- */

/* The engine closes the descriptors that it waits for, so it gets a descriptor of its own. */
static int handler_open(int source_fd)
{
	int fd = fcntl(source_fd, F_DUPFD_CLOEXEC, 0);

	if (fd < 0)
		return errno;
	sv_fabric_pause_open(&progress.handler, engine_read);
	return sv_engine_fd_add(&progress.handler, fd, EPOLLIN, fd_ready);
}

int sv_fabric_progress_open(const struct fabric_source *source)
{
	int error;

	progress.source = source;
	progress.vain = 0;
	progress.masked = false;
	error = source->fd < 0 ? 0 : handler_open(source->fd);
	if (!error)
		sv_fabric_progress_now();
	return error;
}

void sv_fabric_progress_close(void)
{
	sv_engine_fd_remove(&progress.handler);
	sv_engine_timer_cancel(&progress.pace);
	sv_fabric_pause_close();
	progress.source = NULL;
}

void sv_fabric_progress_fork_child(void)
{
	progress.source = NULL;
	progress.pace = (struct sv_timer){ .fire = NULL };
	sv_fabric_pause_fork_child();
	pthread_mutex_init(&progress.reading, NULL);
}
