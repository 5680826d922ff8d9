/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/*
 * What the tests of the process runtime share: counting descriptors, linking, a process that lives
 * in a slot.
 */
#ifndef LINKED_H
#define LINKED_H

#include <dirent.h>
#include <stdlib.h>
#include "softverbs/peer.h"
#include "test/unit/process.h"
#include "test/unit/unit.h"

static inline unsigned entries(const char *path)
{
	DIR *dir = opendir(path);
	unsigned count = 0;

	while (dir && readdir(dir))
		count++;
	if (dir)
		closedir(dir);
	return count;
}

struct wanted {
	uint16_t slot;
	struct sv_peer *peer;
	int error;
};

static inline bool linked(void *arg)
{
	struct wanted *wanted = arg;

	if (!wanted->peer)
		wanted->peer = peer_get(wanted->slot);
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
	return entries("/proc/self/fd") == *(unsigned *)arg;
}

/* Lives in a slot until it hears something. */
static inline int reside(int fd, void *arg)
{
	uint64_t value = 0;

	if (arg)
		setenv("SOFTVERBS_COPY", arg, 1);
	if (runtime_hold())
		return 1;
	process_say(fd, runtime_slot());
	process_hear(fd, &value);
	runtime_release();
	return 0;
}

#endif
