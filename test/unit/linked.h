/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/*
 * Helpers for tests of the process runtime: linking, and a process that holds a slot.
 */
#ifndef LINKED_H
#define LINKED_H

#include <stdlib.h>
#include "softverbs/attend.h"
#include "softverbs/link/peer.h"
#include "test/unit/process.h"
#include "test/unit/unit.h"

struct wanted {
	uint16_t slot;
	struct sv_peer *peer;
	int error;
};

static inline bool linked(void *arg)
{
	struct wanted *wanted = arg;

	if (!wanted->peer)
		wanted->peer = sv_peer_get(wanted->slot);
	wanted->error = wanted->peer ? 0 : errno;
	return wanted->peer || wanted->error != EAGAIN;
}

static inline struct sv_peer *link_to(uint64_t slot)
{
	struct wanted wanted = { .slot = (uint16_t)slot };

	unit_wait_for(linked, &wanted, UNIT_PATIENCE);
	return wanted.peer;
}

static inline bool is_dead(void *arg)
{
	return atomic_load(&((struct sv_peer *)arg)->dead);
}

static inline bool fds_are(void *arg)
{
	return unit_entries("/proc/self/fd") == *(unsigned *)arg;
}

/* Holds a slot until a number arrives. */
static inline int reside(int fd, void *arg)
{
	uint64_t value = 0;

	if (arg)
		setenv("SOFTVERBS_COPY", arg, 1);
	if (sv_runtime_hold(&sv_data_client))
		return 1;
	process_say(fd, sv_runtime_peer_id());
	process_hear(fd, &value);
	sv_runtime_release();
	return 0;
}

#endif
