/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/*
 * A descriptor that wakes a waiter: created on first use, raised and cleared any number of times.
 */
#ifndef UTIL_WAKEFD_H
#define UTIL_WAKEFD_H

#include <stdatomic.h>
#include <stdbool.h>

/* Called by a raise, besides the write to the descriptor; async-signal-safe. */
struct wakefd_listener {
	void (*call)(void *arg);
	void *arg;
};

struct wakefd {
	atomic_uint state; /* the eventfd + 1, or 0 without one, above two flags */
#define WAKEFD_RAISED	1u
#define WAKEFD_SIGNAL	2u /* set by wakefd_signal, until wakefd_take_signal */
#define WAKEFD_FD_SHIFT 2
	atomic_uint writers; /* threads that may use the descriptor or call the listener */
	_Atomic(const struct wakefd_listener *) listener;
};

/*
 * Returns the descriptor, which is readable exactly while raised; -1 with errno if it cannot be
 * created.
 */
int wakefd_get(struct wakefd *wake);
/*
 * For any thread and signal handler; preserves errno. Makes no system call if `wake` is raised already or has no
 * descriptor. None of these functions is a cancellation point.
 */
void wakefd_raise(struct wakefd *wake);
/* Raises, and sets the signal; several signals before wakefd_take_signal count as one. */
void wakefd_signal(struct wakefd *wake);
/* Makes no system call if not raised. Keeps the signal. The caller must check its condition again afterwards. */
void wakefd_clear(struct wakefd *wake);

/*
 * For one thread that is about to sleep elsewhere than on the descriptor, which has been created. True: until wakefd_unlisten
 * a raise calls the listener. False: it is raised already, and the listener is not called.
 */
bool wakefd_listen(struct wakefd *wake, const struct wakefd_listener *listener);
void wakefd_unlisten(struct wakefd *wake); /* waits for threads that are raising it */

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
