/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* The runtime of a process: its slot, its areas, its doorbell and its engine. The first holder makes it, the
 * last one destroys it. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/random.h>
#include <unistd.h>
#include "softverbs/base/identity.h"
#include "softverbs/base/log_from.h"
#include "softverbs/link/cm_calls.h"
#include "softverbs/link/link_reader.h"
#include "softverbs/link/transport.h"
#include "softverbs/link/name.h"
#include "softverbs/link/runtime.h"
#include "softverbs/base/settings.h"
#include "util/cancel.h"
#include "util/log.h"

#define BACKLOG 256 /* limit of connections that the engine has not accepted yet */
#define ACCEPTS 16  /* limit of accepts in a row */

/* outermost lock; the engine never acquires it */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static struct { /* changed under the lock; constant while held */
	unsigned users;
	bool open; /* some of the members below are initialised */
	struct sv_peer self;
	/* Constant from the first hold on; read without the lock, also before that. */
	_Atomic(const struct sv_link_client *) client;
	struct engine_fd doorbell; /* a copy of self.doorbell */
	struct engine_fd listener; /* the slot's name */
	/* A spare descriptor, closed for a moment to accept and refuse a connection when the process has none
	 * left. */
	int spare;
	atomic_bool inherited;
} runtime = { .self.doorbell = -1, .doorbell.fd = -1, .listener.fd = -1, .spare = -1 };

bool sv_runtime_inherited(void)
{
	/* set before any thread exists */
	return atomic_load_explicit(&runtime.inherited, memory_order_relaxed);
}

uint16_t sv_runtime_peer_id(void)
{
	return runtime.self.slot;
}

struct sv_peer *sv_peer_self(void)
{
	return &runtime.self;
}

/* ---- fork ---- */

static void runtime_fork_prepare(void)
{
	sv_cm_fork_begin();
	pthread_mutex_lock(&lock);
	sv_links_reading_lock();
	sv_cm_fork_prepare();
	if (sv_runtime_client())
		sv_runtime_client()->fork_prepare();
	sv_links_lock();
	sv_transport()->fork_prepare();
	sv_engine_fork_prepare();
}

static void fork_parent(void)
{
	sv_engine_fork_parent();
	sv_transport()->fork_parent();
	sv_links_unlock();
	if (sv_runtime_client())
		sv_runtime_client()->fork_parent();
	sv_cm_fork_parent();
	sv_links_reading_unlock();
	pthread_mutex_unlock(&lock);
	sv_cm_fork_end();
}

static void runtime_fork_child(void)
{
	if (sv_runtime_client())
		sv_runtime_client()->fork_child();
	sv_log_from_fork_child();
	sv_name_fork_child();
	sv_engine_fork_child();
	sv_transport()->fork_child();
	sv_link_reader_fork_child();
	sv_links_fork_child();
	sv_peers_fork_child();
	sv_links_unlock();
	sv_cm_fork_child();
	sv_links_reading_unlock();
	if (runtime.open) {
		atomic_store(&runtime.inherited, true);
		sv_runtime_client()->area_unmap(&runtime.self);
		sv_close_all(&runtime.self.doorbell, 1);
		sv_close_all(&runtime.spare, 1);
		runtime.users = 0;
		runtime.open = false;
	}
	pthread_mutex_unlock(&lock);
	sv_cm_fork_end();
}

static void fork_register(void)
{
	int error = pthread_atfork(runtime_fork_prepare, fork_parent, runtime_fork_child);

	if (error)
		log_at(LOG_ERROR, "softverbs: pthread_atfork: %s; do not fork", strerror(error));
}

/* ---- engine callbacks ---- */

static void doorbell_ready(struct engine_fd *handler, uint32_t events)
{
	eventfd_t count;

	(void)events;
	eventfd_read(handler->fd, &count);
	sv_runtime_client()->doorbell();
}

/* Refuses a connection when no descriptor is left: otherwise it would stay in the queue and keep the engine
 * busy, and the peer would not be notified. */
static void refuse_one(int listener)
{
	int fd;

	sv_log_from(sv_source_process(0), LOG_ERROR,
		    "softverbs: a connection is refused: too many open files");
	sv_close_all(&runtime.spare, 1);
	fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
	sv_close_all(&fd, 1);
	runtime.spare = open("/dev/null", O_RDONLY | O_CLOEXEC);
}

int sv_runtime_accept(int listener)
{
	int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

	if (fd < 0 && (errno == EMFILE || errno == ENFILE))
		refuse_one(listener);
	return fd;
}

static void runtime_listener_ready(struct engine_fd *handler, uint32_t events)
{
	struct ucred cred;
	unsigned i;
	int fd, error;

	(void)events;
	for (i = 0; i < ACCEPTS; i++) {
		fd = sv_runtime_accept(handler->fd);
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
		sv_link_accept(fd, &cred);
	}
}

/* ---- open and close ---- */

/* Claims the first free slot, from a start that depends on the process, so that a slot just released is not
 * claimed again at once. Slot 0 is unused: QPNs 0 and 1 are special on every device. */
static int slot_claim(void)
{
	unsigned first = (unsigned)getpid() * 2654435761u >> 20, i;
	char name[16];
	int fd;

	for (i = 0; i < SV_PEERS - 1; i++) {
		runtime.self.slot = (uint16_t)(1 + (first + i) % (SV_PEERS - 1));
		snprintf(name, sizeof(name), "s%u", runtime.self.slot);
		fd = sv_name_claim(name);
		if (fd >= 0 || errno != EADDRINUSE)
			return fd;
	}
	sv_name_log_holder(name); /* names the user of one of the slots */
	log_at(LOG_ERROR, "softverbs: all %u names of processes are taken", SV_PEERS - 1);
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
	error = runtime.spare < 0 || listen(slot_fd, BACKLOG) ? errno : sv_engine_start();
	if (error) {
		sv_name_release(slot_fd);
		close(slot_fd);
		return error;
	}
	error = sv_engine_fd_add(&runtime.listener, slot_fd, EPOLLIN, runtime_listener_ready);
	if (!error)
		error = sv_link_reader_open();
	if (error)
		return error;
	bell = fcntl(runtime.self.doorbell, F_DUPFD_CLOEXEC, 0);
	return bell < 0 ? errno
			: sv_engine_fd_add(&runtime.doorbell, bell, EPOLLIN, doorbell_ready);
}

const struct sv_link_client *sv_runtime_client(void)
{
	/* acquire: pairs with sv_runtime_hold */
	return atomic_load_explicit(&runtime.client, memory_order_acquire);
}

static void runtime_close(void)
{
	sv_transport()->leave();
	sv_engine_halt();
	sv_name_release(runtime.listener.fd);
	sv_engine_fd_remove(&runtime.listener);
	sv_engine_fd_remove(&runtime.doorbell);
	sv_transport()->stop();
	sv_link_reader_close();
	sv_links_close();
	sv_handshake_end();
	sv_engine_stop();
	if (runtime.self.by_owner)
		sv_runtime_client()->area_close(&runtime.self);
	sv_close_all(&runtime.self.doorbell, 1);
	sv_close_all(&runtime.spare, 1);
	sv_name_close();
	runtime.open = false;
}

static int runtime_open(void)
{
	int error, slot_fd;

	runtime.open = true;
	log_more((unsigned)sv_setting(SV_SET_LOG));
	error = self_init();
	if (!error)
		error = sv_name_open();
	if (error)
		return error;
	slot_fd = slot_claim();
	if (slot_fd < 0)
		return errno;
	error = sv_runtime_client()->area_open(&runtime.self);
	if (error) {
		sv_name_release(slot_fd);
		close(slot_fd);
		return error;
	}
	return engine_open(slot_fd);
}

int sv_runtime_hold(const struct sv_link_client *client)
{
	int error = 0, cancel;

	pthread_once(&once, fork_register);
	cancel = cancel_off();
	pthread_mutex_lock(&lock);
	if (!runtime.users) {
		/* release: its tables are seen with it */
		atomic_store_explicit(&runtime.client, client, memory_order_release);
		error = runtime_open();
		if (error) {
			runtime_close();
		} else {
			atomic_store(&runtime.inherited, false);
			sv_transport()->start();
			log_at(LOG_TRACE, "softverbs: process %d has slot %u", (int)getpid(),
			       runtime.self.slot);
		}
	}
	if (!error)
		runtime.users++;
	pthread_mutex_unlock(&lock);
	cancel_restore(cancel);
	return error;
}

void sv_runtime_release(void)
{
	int cancel = cancel_off();

	pthread_mutex_lock(&lock);
	if (!--runtime.users)
		runtime_close();
	pthread_mutex_unlock(&lock);
	cancel_restore(cancel);
}
