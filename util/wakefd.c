/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* A descriptor to wake a sleeper with. */
#include <errno.h>
#include <sched.h>
#include <stdint.h>
#include <sys/eventfd.h>
#include <unistd.h>
#include "util/wakefd.h"

static void put_token(int fd)
{
	uint64_t one = 1;
	ssize_t n;

	do
		n = write(fd, &one, sizeof(one));
	while (n < 0 && errno == EINTR);
}

static bool take_token(int fd)
{
	uint64_t count;
	ssize_t n;

	do
		n = read(fd, &count, sizeof(count));
	while (n < 0 && errno == EINTR);
	return n > 0;
}

/*
 * Whoever finds RAISED unset sets it and then writes the token; whoever takes the token unsets it.
 * In between, however long the writer is kept from it, the token is on its way, and nobody else may
 * write or unset.
 */

int wakefd_get(struct wakefd *wake)
{
	int have = atomic_load(&wake->fd), fd;

	if (have)
		return have - 1;
	fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (fd < 0)
		return -1;
	/* As in wakefd_raise: before others see the descriptor, so that who closes it waits. */
	atomic_fetch_add(&wake->raising, 1);
	if (!atomic_compare_exchange_strong(&wake->fd, &have, fd + 1)) {
		close(fd); /* another thread was first */
		fd = have - 1;
	} else if (atomic_load(&wake->state) & WAKEFD_RAISED) {
		/* Who raised it saw no descriptor, or just yet saw one: then two tokens come, at two times. */
		atomic_fetch_or(&wake->state, WAKEFD_TWICE);
		put_token(fd);
	}
	atomic_fetch_sub(&wake->raising, 1);
	return fd;
}

static void raise_with(struct wakefd *wake, unsigned signal)
{
	int have, saved;

	if (atomic_fetch_or(&wake->state, WAKEFD_RAISED | signal) & WAKEFD_RAISED)
		return;
	/* Sequential consistency of both words: who sees the descriptor is seen by who closes it. */
	atomic_fetch_add(&wake->raising, 1);
	have = atomic_load(&wake->fd);
	saved = errno;
	if (have)
		put_token(have - 1);
	atomic_fetch_sub(&wake->raising, 1);
	errno = saved;
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
	int have;

	if (!wakefd_is_raised(wake))
		return;
	/*
	 * Token first, then RAISED: a raise in between writes nothing, which is right only because
	 * whoever clears looks again.
	 */
	have = atomic_load(&wake->fd);
	if (!have || take_token(have - 1))
		atomic_fetch_and(&wake->state, ~WAKEFD_RAISED);
}

void wakefd_close(struct wakefd *wake)
{
	int have = atomic_exchange(&wake->fd, 0);

	while (atomic_load(&wake->raising))
		sched_yield();
	if (have)
		close(have - 1);
	atomic_fetch_and(&wake->state, WAKEFD_SIGNAL);
}
