/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* A descriptor that wakes a waiter: made on first use, raised and cleared any number of times. */
#ifndef UTIL_WAKEFD_H
#define UTIL_WAKEFD_H

#include <stdatomic.h>
#include <stdbool.h>

struct wakefd {
	atomic_uint state; /* the eventfd + 1, or 0 without one, above two flags */
#define WAKEFD_RAISED	1u
#define WAKEFD_SIGNAL	2u /* set by wakefd_signal, until wakefd_take_signal */
#define WAKEFD_FD_SHIFT 2
	atomic_uint writers; /* threads that may be writing to the descriptor */
};

/* The descriptor, readable exactly while raised; -1 with errno if none can be made. */
int wakefd_get(struct wakefd *wake);
/*
 * From any thread and from a signal handler, which finds errno as it was. No system call if it is
 * raised already or has no descriptor. No cancellation point, like all of these.
 */
void wakefd_raise(struct wakefd *wake);
/* The same, and leaves a signal; signals that were not taken yet count as one. */
void wakefd_signal(struct wakefd *wake);
/* No system call if not raised. Leaves the signal. The caller then checks its condition once more. */
void wakefd_clear(struct wakefd *wake);

static inline unsigned wakefd_flags(const struct wakefd *wake)
{
	return atomic_load(&wake->state) & (WAKEFD_RAISED | WAKEFD_SIGNAL);
}

static inline bool wakefd_is_raised(const struct wakefd *wake)
{
	return atomic_load(&wake->state) & WAKEFD_RAISED;
}

static inline bool wakefd_is_signalled(const struct wakefd *wake)
{
	return atomic_load(&wake->state) & WAKEFD_SIGNAL;
}

static inline bool wakefd_take_signal(struct wakefd *wake)
{
	return wakefd_is_signalled(wake) &&
	       atomic_fetch_and(&wake->state, ~WAKEFD_SIGNAL) & WAKEFD_SIGNAL;
}

void wakefd_close(struct wakefd *wake); /* waits for threads that are raising it */

#endif
