/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* A descriptor to wake a sleeper with: made when first asked for, raised and cleared any number of times. */
#ifndef UTIL_WAKEFD_H
#define UTIL_WAKEFD_H

#include <stdatomic.h>
#include <stdbool.h>

struct wakefd {
	atomic_int fd;	   /* descriptor + 1; 0: none yet */
	atomic_uint state; /* 0: at rest */
#define WAKEFD_RAISED 1u
#define WAKEFD_TWICE  2u     /* raised before there was a descriptor: a token may come late */
#define WAKEFD_SIGNAL 4u     /* left by wakefd_signal, until somebody takes it */
	atomic_uint raising; /* threads that may write to the descriptor */
};

/* The descriptor, readable exactly while raised; -1 with errno when none can be made. */
int wakefd_get(struct wakefd *wake);
/*
 * From any thread, and from a signal handler, which finds errno as it was. No system call when
 * already raised or nobody asked for the descriptor.
 */
void wakefd_raise(struct wakefd *wake);
/* The same, and leaves a signal; those that nobody took yet count as one. */
void wakefd_signal(struct wakefd *wake);
/* No system call when not raised; leaves the signal. Whoever clears looks at its condition again afterwards. */
void wakefd_clear(struct wakefd *wake);
/* Or may be. */
static inline bool wakefd_is_raised(const struct wakefd *wake)
{
	return atomic_load(&wake->state) & (WAKEFD_RAISED | WAKEFD_TWICE);
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

void wakefd_close(struct wakefd *wake); /* waits for who is raising it just now */

#endif
