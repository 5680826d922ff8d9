/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/*
 * The runtime of a process: its slot, its areas, its doorbell and its engine; made by the first
 * holder, gone with the last.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/random.h>
#include <unistd.h>
#include "softverbs/cancel.h"
#include "softverbs/cm_fork.h"
#include "softverbs/identity.h"
#include "softverbs/log_from.h"
#include "softverbs/name.h"
#include "softverbs/runtime.h"
#include "softverbs/settings.h"
#include "util/log.h"

#define BACKLOG 256 /* connections of other processes that the engine has not accepted yet */
#define ACCEPTS 16  /* in a row */

/* outermost; the engine never takes it */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static struct { /* lock for changes; constant while held */
	unsigned users;
	bool open; /* some of the rest exists */
	struct sv_peer self;
	struct engine_watch doorbell; /* a copy of self.doorbell */
	struct engine_watch listener; /* the slot's name */
	/* given up for a moment to accept and refuse when there is no descriptor left */
	int spare;
	atomic_bool inherited;
} runtime = { .self.doorbell = -1, .doorbell.fd = -1, .listener.fd = -1, .spare = -1 };

bool runtime_inherited(void)
{
	/* set before any thread exists */
	return atomic_load_explicit(&runtime.inherited, memory_order_relaxed);
}

uint16_t runtime_slot(void)
{
	return runtime.self.slot;
}

struct sv_peer *peer_self(void)
{
	return &runtime.self;
}

/* ---- fork ---- */

static void fork_prepare(void)
{
	cm_device_fork_prepare();
	pthread_mutex_lock(&lock);
	cm_fork_prepare();
	links_lock();
	engine_fork_prepare();
}

static void fork_parent(void)
{
	engine_fork_parent();
	links_unlock();
	cm_fork_parent();
	pthread_mutex_unlock(&lock);
	cm_device_fork_end();
}

static void fork_child(void)
{
	name_fork_child();
	engine_fork_child();
	links_fork_child();
	slots_fork_child();
	links_unlock();
	cm_fork_child();
	if (runtime.open) {
		atomic_store(&runtime.inherited, true);
		area_unmap(&runtime.self);
		close_all(&runtime.self.doorbell, 1);
		close_all(&runtime.spare, 1);
		runtime.users = 0;
		runtime.open = false;
	}
	pthread_mutex_unlock(&lock);
	cm_device_fork_end();
}

static void fork_watch(void)
{
	int error = pthread_atfork(fork_prepare, fork_parent, fork_child);

	if (error)
		log_at(LOG_ERROR, "softverbs: pthread_atfork: %s; do not fork", strerror(error));
}

/* ---- engine callbacks ---- */

static void doorbell_ready(struct engine_watch *watch, uint32_t events)
{
	eventfd_t count;

	(void)events;
	eventfd_read(watch->fd, &count);
	data_doorbell();
}

/*
 * Without a descriptor the connection would stay in the queue and keep the engine busy; the other
 * side shall know.
 */
static void refuse_one(int listener)
{
	int fd;

	sv_log_from(sv_source_process(0), LOG_ERROR,
		    "softverbs: a connection is refused: too many open files");
	close_all(&runtime.spare, 1);
	fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
	close_all(&fd, 1);
	runtime.spare = open("/dev/null", O_RDONLY | O_CLOEXEC);
}

int runtime_accept(int listener)
{
	int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

	if (fd < 0 && (errno == EMFILE || errno == ENFILE))
		refuse_one(listener);
	return fd;
}

static void listener_ready(struct engine_watch *watch, uint32_t events)
{
	struct ucred cred;
	unsigned i;
	int fd, error;

	(void)events;
	for (i = 0; i < ACCEPTS; i++) {
		fd = runtime_accept(watch->fd);
		if (fd < 0)
			return;
		error = sv_identity_of_peer(fd, &cred);
		if (error) {
			sv_log_from(sv_source_user(cred.uid), LOG_WARN,
				    "softverbs: a link is refused: user %u, process %d: %s",
				    (unsigned)cred.uid, (int)cred.pid, strerror(error));
			close(fd);
			continue;
		}
		link_accept(fd, &cred);
	}
}

/* ---- open and close ---- */

/*
 * The first free slot from a place that depends on the process: a slot just given up is not taken
 * again at once. Nobody gets slot 0: QPNs 0 and 1 are special on every device.
 */
static int slot_claim(void)
{
	unsigned first = (unsigned)getpid() * 2654435761u >> 20, i;
	char name[16];
	int fd;

	for (i = 0; i < SV_SLOTS - 1; i++) {
		runtime.self.slot = (uint16_t)(1 + (first + i) % (SV_SLOTS - 1));
		snprintf(name, sizeof(name), "s%u", runtime.self.slot);
		fd = name_claim(name);
		if (fd >= 0 || errno != EADDRINUSE)
			return fd;
	}
	name_log_holder(name); /* one of them, but of whom */
	log_at(LOG_ERROR, "softverbs: all %u names of processes are taken", SV_SLOTS - 1);
	errno = EUSERS;
	return -1;
}

static int self_init(void)
{
	struct sv_peer *self = &runtime.self;

	memset(self, 0, sizeof(*self));
	self->pid = getpid();
	self->copy = SV_COPY_SELF;
	self->memory = -1;
	atomic_init(&self->refs, 1);
	self->doorbell = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (self->doorbell < 0)
		return errno;
	return getrandom(self->nonce, sizeof(self->nonce), 0) == sizeof(self->nonce) ? 0 : EIO;
}

static int engine_open(int slot_fd)
{
	int bell, error;

	if (slot_fd < 0)
		return errno;
	runtime.spare = open("/dev/null", O_RDONLY | O_CLOEXEC);
	error = runtime.spare < 0 || listen(slot_fd, BACKLOG) ? errno : engine_start();
	if (error) {
		name_give(slot_fd);
		close(slot_fd);
		return error;
	}
	error = engine_watch(&runtime.listener, slot_fd, EPOLLIN, listener_ready);
	if (error)
		return error;
	bell = fcntl(runtime.self.doorbell, F_DUPFD_CLOEXEC, 0);
	return bell < 0 ? errno : engine_watch(&runtime.doorbell, bell, EPOLLIN, doorbell_ready);
}

static void runtime_close(void)
{
	engine_halt();
	name_give(runtime.listener.fd);
	engine_unwatch(&runtime.listener);
	engine_unwatch(&runtime.doorbell);
	links_close();
	hello_end();
	engine_stop();
	if (runtime.self.ro)
		area_close(&runtime.self);
	close_all(&runtime.self.doorbell, 1);
	close_all(&runtime.spare, 1);
	name_close();
	runtime.open = false;
}

static int runtime_open(void)
{
	int error, slot_fd;

	runtime.open = true;
	log_more((unsigned)sv_setting(SV_SET_LOG));
	error = self_init();
	if (!error)
		error = name_open();
	if (error)
		return error;
	slot_fd = slot_claim();
	if (slot_fd < 0)
		return errno;
	error = area_open(&runtime.self);
	if (error) {
		name_give(slot_fd);
		close(slot_fd);
		return error;
	}
	return engine_open(slot_fd);
}

int runtime_hold(void)
{
	int error = 0, cancel;

	pthread_once(&once, fork_watch);
	cancel = cancel_off();
	pthread_mutex_lock(&lock);
	if (!runtime.users) {
		error = runtime_open();
		if (error) {
			runtime_close();
		} else {
			atomic_store(&runtime.inherited, false);
			log_at(LOG_TRACE, "softverbs: process %d lives in slot %u", (int)getpid(),
			       runtime.self.slot);
		}
	}
	if (!error)
		runtime.users++;
	pthread_mutex_unlock(&lock);
	cancel_restore(cancel);
	return error;
}

void runtime_release(void)
{
	int cancel = cancel_off();

	pthread_mutex_lock(&lock);
	if (!--runtime.users)
		runtime_close();
	pthread_mutex_unlock(&lock);
	cancel_restore(cancel);
}
