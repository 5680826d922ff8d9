/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* A descriptor that wakes a waiter. */
#include <errno.h>
#include <sched.h>
#include <stdint.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "util/wakefd.h"

/*
 * Called by syscall(2): read(2) and write(2) are cancellation points, and the caller may hold a
 * lock.
 */
static long token_move(long call, int fd)
{
	uint64_t token = 1;
	long n;

	do
		n = syscall(call, fd, &token, sizeof(token));
	while (n < 0 && errno == EINTR);
	return n;
}

static void token_put(int fd)
{
	token_move(SYS_write, fd);
}

static bool token_take(int fd)
{
	return token_move(SYS_read, fd) > 0;
}

/* Returns -1 if there is none. */
static int fd_of(unsigned state)
{
	return (int)(state >> WAKEFD_FD_SHIFT) - 1;
}

/*
 * Either the thread that sets RAISED in a word with a descriptor writes the token, or the one that
 * adds the descriptor to a word with RAISED. Only the thread that reads the token unsets RAISED.
 */

int wakefd_get(struct wakefd *wake)
{
	unsigned state = atomic_load(&wake->state);
	int fd;

	if (fd_of(state) >= 0)
		return fd_of(state);
	fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (fd < 0)
		return -1;
	/*
	 * Counted as in raise_with before other threads see the descriptor, so that wakefd_close
	 * waits.
	 */
	atomic_fetch_add(&wake->writers, 1);
	while (fd_of(state) < 0 &&
	       !atomic_compare_exchange_weak(&wake->state, &state,
					     state | ((unsigned)fd + 1) << WAKEFD_FD_SHIFT))
		;
	if (fd_of(state) >= 0) { /* another thread has created one */
		close(fd);
		fd = fd_of(state);
	} else if (state & WAKEFD_RAISED) {
		token_put(fd);
	}
	atomic_fetch_sub(&wake->writers, 1);
	return fd;
}

static void raise_with(struct wakefd *wake, unsigned signal)
{
	unsigned before = atomic_fetch_or(&wake->state, WAKEFD_RAISED | signal);
	const struct wakefd_listener *listener;
	int fd, saved;

	if (before & WAKEFD_RAISED || fd_of(before) < 0)
		return;
	/* Sequentially consistent: wakefd_close sees this writer, or this writer sees no descriptor. */
	atomic_fetch_add(&wake->writers, 1);
	fd = fd_of(atomic_load(&wake->state));
	saved = errno;
	if (fd >= 0)
		token_put(fd);
	/* Sequentially consistent: wakefd_listen finds the flag, or this thread the listener. */
	listener = atomic_load(&wake->listener);
	if (listener)
		listener->call(listener->arg);
	errno = saved;
	atomic_fetch_sub(&wake->writers, 1);
}

void wakefd_raise(struct wakefd *wake)
{
	raise_with(wake, 0);
}

void wakefd_signal(struct wakefd *wake)
{
	raise_with(wake, WAKEFD_SIGNAL);
}

void wakefd_clear(struct wakefd *wake)
{
	unsigned state = atomic_load(&wake->state);

	while (state & WAKEFD_RAISED && fd_of(state) < 0)
		if (atomic_compare_exchange_weak(&wake->state, &state, state & ~WAKEFD_RAISED))
			return;
	/*
	 * The token first, then RAISED: a thread that raises in between writes nothing, which is right
	 * because the caller checks its condition afterwards.
	 */
	if (state & WAKEFD_RAISED && token_take(fd_of(state)))
		atomic_fetch_and(&wake->state, ~WAKEFD_RAISED);
}

bool wakefd_listen(struct wakefd *wake, const struct wakefd_listener *listener)
{
	atomic_store(&wake->listener, listener);
	if (!wakefd_is_raised(wake))
		return true;
	wakefd_unlisten(wake);
	return false;
}

void wakefd_unlisten(struct wakefd *wake)
{
	atomic_store(&wake->listener, NULL);
	while (atomic_load(&wake->writers))
		sched_yield();
}

void wakefd_close(struct wakefd *wake)
{
	int fd = fd_of(atomic_fetch_and(&wake->state, WAKEFD_SIGNAL));

	while (atomic_load(&wake->writers))
		sched_yield();
	if (fd >= 0)
		close(fd);
}
