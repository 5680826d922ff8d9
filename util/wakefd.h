/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* A descriptor to wake a sleeper with: made when first asked for, raised and cleared any number of times. */
#ifndef UTIL_WAKEFD_H
#define UTIL_WAKEFD_H

#include <stdatomic.h>
#include <stdbool.h>

struct wakefd {
	atomic_int fd;			/* descriptor + 1; 0: none yet */
	atomic_bool raised;
};

/* The descriptor, readable exactly while raised; -1 with errno when none can be made. */
int wakefd_get(struct wakefd *wake);
void wakefd_raise(struct wakefd *wake);	/* any thread; no system call when already raised or nobody asked for it */
void wakefd_clear(struct wakefd *wake);
void wakefd_close(struct wakefd *wake);

#endif
