/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* A descriptor to wake a sleeper with. */
#include <errno.h>
#include <stdint.h>
#include <sys/eventfd.h>
#include <unistd.h>
#include "util/wakefd.h"

/* An eventfd that holds 1 cannot block a second write for long, and cannot lose one. */
static void put_token(int fd)
{
	uint64_t one = 1;
	ssize_t n;

	do
		n = write(fd, &one, sizeof(one));
	while (n < 0 && errno == EINTR);
}

static void take_token(int fd)
{
	uint64_t count;
	ssize_t n;

	do
		n = read(fd, &count, sizeof(count));
	while (n < 0 && errno == EINTR);
}

int wakefd_get(struct wakefd *wake)
{
	int have = atomic_load(&wake->fd), fd;

	if (have)
		return have - 1;
	fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (fd < 0)
		return -1;
	if (!atomic_compare_exchange_strong(&wake->fd, &have, fd + 1)) {
		close(fd);		/* another thread was first */
		return have - 1;
	}
	/*
	 * A raise between "nobody asked" and now saw no descriptor and wrote no token. Sequential consistency of both
	 * words: either it sees the descriptor, or this sees it raised; both together only write twice.
	 */
	if (atomic_load(&wake->raised))
		put_token(fd);
	return fd;
}

void wakefd_raise(struct wakefd *wake)
{
	int have;

	if (atomic_exchange(&wake->raised, true))
		return;
	have = atomic_load(&wake->fd);
	if (have)
		put_token(have - 1);
}

void wakefd_clear(struct wakefd *wake)
{
	int have = atomic_load(&wake->fd);

	/*
	 * Token first, then the flag: a raise in between finds the flag still set and writes nothing, which is right only
	 * because whoever clears looks at its condition again afterwards.
	 */
	if (have)
		take_token(have - 1);
	atomic_store(&wake->raised, false);
}

void wakefd_close(struct wakefd *wake)
{
	int have = atomic_exchange(&wake->fd, 0);

	if (have)
		close(have - 1);
	atomic_store(&wake->raised, false);
}
