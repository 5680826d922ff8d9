/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* The background thread: blocks in epoll, serves descriptors, timers and jobs. It has no periodic tick and
 * costs nothing when idle. */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <unistd.h>
#include "util/cancel.h"
#include "softverbs/link/engine.h"
#include "util/clock.h"
#include "util/log.h"

#define BATCH 32
#define FIRES 256 /* limit of timers in a row before descriptors are polled again */

static struct {
	pthread_mutex_t lock; /* guards all below; innermost of the locks of softverbs/link */
	pthread_cond_t fired; /* signalled when `firing` is reset */
	pthread_t thread;
	bool running, stop;
	int epoll;
	struct engine_fd clock, wake; /* timerfd, eventfd */
	uint64_t clock_set;	      /* when the timerfd expires; 0: not armed */
	struct sv_timer *firing;
	struct deadlines timers; /* each an sv_timer */
	STAILQ_HEAD(, engine_job) jobs;
	LIST_HEAD(, engine_fd) handlers;
} engine = {
	.lock = PTHREAD_MUTEX_INITIALIZER,
	.fired = PTHREAD_COND_INITIALIZER,
	.epoll = -1,
	.clock.fd = -1,
	.wake.fd = -1,
	.jobs = STAILQ_HEAD_INITIALIZER(engine.jobs),
	.handlers = LIST_HEAD_INITIALIZER(engine.handlers),
};

static _Thread_local bool in_engine;

bool sv_engine_is_self(void)
{
	return in_engine;
}

static void wake_locked(void)
{
	if (engine.running && !in_engine)
		eventfd_write(engine.wake.fd, 1);
}

/* ---- descriptors ---- */

int sv_engine_fd_add(struct engine_fd *handler, int fd, uint32_t events,
		     void (*ready)(struct engine_fd *handler, uint32_t events))
{
	struct epoll_event event = { .events = events, .data.ptr = handler };
	int error = 0;

	handler->ready = ready;
	handler->fd = fd;
	pthread_mutex_lock(&engine.lock);
	if (epoll_ctl(engine.epoll, EPOLL_CTL_ADD, fd, &event))
		error = errno;
	LIST_INSERT_HEAD(&engine.handlers, handler, entry);
	handler->listed = true;
	pthread_mutex_unlock(&engine.lock);
	if (error)
		log_at(LOG_ERROR, "softverbs: epoll_ctl: %s", strerror(error));
	return error;
}

void sv_engine_fd_modify(struct engine_fd *handler, uint32_t events)
{
	struct epoll_event event = { .events = events, .data.ptr = handler };

	pthread_mutex_lock(&engine.lock);
	if (handler->listed && epoll_ctl(engine.epoll, EPOLL_CTL_MOD, handler->fd, &event))
		log_at(LOG_ERROR, "softverbs: epoll_ctl: %s", strerror(errno));
	pthread_mutex_unlock(&engine.lock);
}

void sv_engine_fd_remove(struct engine_fd *handler)
{
	pthread_mutex_lock(&engine.lock);
	if (handler->listed) {
		/* Removed from the epoll first: it would remain there if a forked process has a copy of the
		 * descriptor. */
		epoll_ctl(engine.epoll, EPOLL_CTL_DEL, handler->fd, NULL);
		LIST_REMOVE(handler, entry);
		handler->listed = false;
		close(handler->fd);
		handler->fd = -1;
	}
	pthread_mutex_unlock(&engine.lock);
}

/* ---- jobs ---- */

void sv_engine_defer(struct engine_job *job, void (*run)(struct engine_job *job))
{
	job->run = run;
	pthread_mutex_lock(&engine.lock);
	STAILQ_INSERT_TAIL(&engine.jobs, job, entry);
	wake_locked();
	pthread_mutex_unlock(&engine.lock);
}

static void jobs_run(void)
{
	struct engine_job *job;

	for (;;) {
		pthread_mutex_lock(&engine.lock);
		job = STAILQ_FIRST(&engine.jobs);
		if (job)
			STAILQ_REMOVE_HEAD(&engine.jobs, entry);
		pthread_mutex_unlock(&engine.lock);
		if (!job)
			return;
		job->run(job);
	}
}

/* ---- timers ---- */

static void clock_set_locked(void)
{
	const struct deadline *first = engine.timers.first;
	struct itimerspec spec = { .it_value.tv_nsec = 0 };

	if (first) {
		spec.it_value.tv_sec = (time_t)(first->at / NSEC_PER_SEC);
		spec.it_value.tv_nsec = (long)(first->at % NSEC_PER_SEC);
		if (!first->at)
			spec.it_value.tv_nsec = 1; /* zero would disarm it */
	}
	engine.clock_set = first ? first->at : 0;
	timerfd_settime(engine.clock.fd, TFD_TIMER_ABSTIME, &spec, NULL);
}

void sv_engine_timer_arm(struct sv_timer *timer, uint64_t deadline,
			 void (*fire)(struct sv_timer *timer))
{
	pthread_mutex_lock(&engine.lock);
	timer->fire = fire;
	deadline_set(&engine.timers, &timer->due, deadline);
	/* if an earlier timer was disarmed, the clock is set again when it expires */
	if (!engine.clock_set || deadline < engine.clock_set)
		clock_set_locked();
	pthread_mutex_unlock(&engine.lock);
}

void sv_engine_timer_disarm(struct sv_timer *timer)
{
	pthread_mutex_lock(&engine.lock);
	deadline_clear(&engine.timers, &timer->due);
	pthread_mutex_unlock(&engine.lock);
}

void sv_engine_timer_cancel(struct sv_timer *timer)
{
	int cancel = cancel_off();

	pthread_mutex_lock(&engine.lock);
	while (engine.firing == timer && !in_engine) {
		deadline_clear(&engine.timers, &timer->due);
		pthread_cond_wait(&engine.fired, &engine.lock);
	}
	deadline_clear(&engine.timers, &timer->due); /* `fire` may have armed it again */
	pthread_mutex_unlock(&engine.lock);
	cancel_restore(cancel);
}

/* Fires the timers that were due at the start of the call; a timer that is armed again with a past deadline
 * waits for the next call. */
static void clock_ready(struct engine_fd *handler, uint32_t events)
{
	void (*fire)(struct sv_timer * timer);
	uint64_t now = clock_now(), count;
	struct sv_timer *timer;
	unsigned fires;

	(void)events;
	if (read(handler->fd, &count, sizeof(count)) < 0 && errno != EAGAIN)
		log_at(LOG_ERROR, "softverbs: timerfd: %s", strerror(errno));
	pthread_mutex_lock(&engine.lock);
	for (fires = 0; fires < FIRES; fires++) {
		timer = (struct sv_timer *)engine.timers.first;
		if (!timer || timer->due.at > now)
			break;
		deadline_clear(&engine.timers, &timer->due);
		engine.firing = timer;
		/* another thread may arm it with another `fire` once the lock is released */
		fire = timer->fire;
		pthread_mutex_unlock(&engine.lock);
		fire(timer);
		pthread_mutex_lock(&engine.lock);
		engine.firing = NULL;
		pthread_cond_broadcast(&engine.fired);
	}
	clock_set_locked();
	pthread_mutex_unlock(&engine.lock);
}

/* ---- the thread ---- */

static void wake_ready(struct engine_fd *handler, uint32_t events)
{
	eventfd_t count;

	(void)events;
	eventfd_read(handler->fd, &count);
}

static bool stopping(void)
{
	bool stop;

	pthread_mutex_lock(&engine.lock);
	stop = engine.stop;
	pthread_mutex_unlock(&engine.lock);
	return stop;
}

static bool handler_is_listed(const struct engine_fd *handler)
{
	bool listed;

	pthread_mutex_lock(&engine.lock);
	listed = handler->listed;
	pthread_mutex_unlock(&engine.lock);
	return listed;
}

/* The thread. The memory of an engine_fd is freed by a job, and jobs run between two batches: an event of
 * this batch may refer to one that is no longer listed, but never to freed memory. */
static void *engine_run(void *unused)
{
	struct epoll_event events[BATCH];
	struct engine_fd *handler;
	int i, count;

	(void)unused;
	in_engine = true;
	while (!stopping()) {
		count = epoll_wait(engine.epoll, events, BATCH, -1);
		if (count < 0 && errno != EINTR) {
			log_at(LOG_ERROR, "softverbs: epoll_wait: %s; the engine ends",
			       strerror(errno));
			break;
		}
		for (i = 0; i < count; i++) {
			handler = events[i].data.ptr;
			if (handler_is_listed(handler))
				handler->ready(handler, events[i].events);
		}
		jobs_run();
	}
	return NULL;
}

static int thread_start(void)
{
	sigset_t all, before;
	int error;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	error = pthread_create(&engine.thread, NULL, engine_run, NULL);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (!error)
		pthread_setname_np(engine.thread, "softverbs");
	return error;
}

static int handler_new(struct engine_fd *handler, int fd,
		       void (*ready)(struct engine_fd *, uint32_t))
{
	return fd < 0 ? errno : sv_engine_fd_add(handler, fd, EPOLLIN, ready);
}

int sv_engine_start(void)
{
	int error = 0;

	engine.stop = false;
	engine.clock_set = 0;
	engine.epoll = epoll_create1(EPOLL_CLOEXEC);
	if (engine.epoll < 0)
		error = errno;
	if (!error)
		error = handler_new(&engine.wake, eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK),
				    wake_ready);
	if (!error)
		error = handler_new(&engine.clock,
				    timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK),
				    clock_ready);
	if (!error)
		error = thread_start();
	if (error) {
		log_at(LOG_ERROR, "softverbs: engine: %s", strerror(error));
		sv_engine_stop();
		return error;
	}
	pthread_mutex_lock(&engine.lock);
	engine.running = true;
	pthread_mutex_unlock(&engine.lock);
	return 0;
}

void sv_engine_halt(void)
{
	bool running;

	pthread_mutex_lock(&engine.lock);
	engine.stop = true;
	wake_locked();
	running = engine.running;
	engine.running = false;
	pthread_mutex_unlock(&engine.lock);
	if (running)
		pthread_join(engine.thread, NULL);
}

void sv_engine_stop(void)
{
	sv_engine_halt();
	jobs_run();
	sv_engine_fd_remove(&engine.clock);
	sv_engine_fd_remove(&engine.wake);
	if (engine.epoll >= 0)
		close(engine.epoll);
	engine.epoll = -1;
}

/* ---- fork ---- */

void sv_engine_fork_prepare(void)
{
	pthread_mutex_lock(&engine.lock);
}

void sv_engine_fork_parent(void)
{
	pthread_mutex_unlock(&engine.lock);
}

/* Closes the copies of the parent's sockets, which would keep its names claimed and its links open after its
 * end. */
void sv_engine_fork_child(void)
{
	struct engine_fd *handler;

	LIST_FOREACH(handler, &engine.handlers, entry) {
		close(handler->fd);
		handler->fd = -1;
		handler->listed = false;
	}
	LIST_INIT(&engine.handlers);
	engine.timers.first = NULL;
	STAILQ_INIT(&engine.jobs);
	if (engine.epoll >= 0)
		close(engine.epoll);
	engine.epoll = -1;
	engine.running = false;
	engine.firing = NULL;
	pthread_cond_init(&engine.fired, NULL);
	pthread_mutex_unlock(&engine.lock);
}
