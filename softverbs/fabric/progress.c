/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* Progress of what other hosts sent. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/epoll.h>
#include "softverbs/fabric/pause.h"
#include "softverbs/fabric/progress.h"
#include "softverbs/fabric/transport.h"
#include "util/cancel.h"
#include "util/clock.h"

#define ROUNDS 64u		     /* reads of the engine in a row */
#define PACE   (100 * NSEC_PER_USEC) /* between two reads where nothing wakes the engine */

static struct {
	const struct fabric_source *source; /* NULL: none; constant while threads use the device */
	pthread_mutex_t reading;
	struct engine_fd watch;
	struct sv_timer pace;
} progress = { .watch.fd = -1, .reading = PTHREAD_MUTEX_INITIALIZER };

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

/* True if there was something. */
static bool engine_read(void)
{
	bool all_read = false, any = false;
	unsigned count;

	pthread_mutex_lock(&progress.reading);
	for (unsigned i = 0; i < ROUNDS && !all_read; i++) {
		count = progress.source->read();
		all_read = !count && may_wait();
		any |= count;
	}
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

static void fd_ready(struct engine_fd *watch, uint32_t events)
{
	(void)watch;
	(void)events;
	if (!sv_fabric_pause_begin())
		engine_read();
}

/* ---- open and close ---- */

/* The engine closes what it watches, so it gets a descriptor of its own. */
static int watch_open(int source_fd)
{
	int fd = fcntl(source_fd, F_DUPFD_CLOEXEC, 0);

	if (fd < 0)
		return errno;
	sv_fabric_pause_open(&progress.watch, engine_read);
	return sv_engine_fd_add(&progress.watch, fd, EPOLLIN, fd_ready);
}

int sv_fabric_progress_open(const struct fabric_source *source)
{
	int error;

	progress.source = source;
	error = source->fd < 0 ? 0 : watch_open(source->fd);
	if (error)
		sv_fabric_progress_close();
	else
		sv_fabric_progress_now();
	return error;
}

void sv_fabric_progress_close(void)
{
	sv_engine_fd_remove(&progress.watch);
	sv_engine_timer_cancel(&progress.pace);
	sv_fabric_pause_close();
	progress.source = NULL;
}

void sv_fabric_progress_fork_child(void)
{
	progress.source = NULL;
	progress.pace = (struct sv_timer){ .armed = false };
	sv_fabric_pause_fork_child();
	pthread_mutex_init(&progress.reading, NULL);
}
