/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* The other side of a connection: a child process with an adapter of its own, which listens or connects. */
#ifndef OTHER_SIDE_H
#define OTHER_SIDE_H

#include <string.h>
#include "test/unit/process.h"
#include "test/unit/two_ends.h"

/* Where a process listens. An address is of IPv4, or has the size of one of IPv6. */
struct place {
	unsigned char address[sizeof(struct sockaddr_in6)];
	DAT_CONN_QUAL qual;
};

static struct process peer;

static inline void place_send(int fd)
{
	struct place place = { .qual = env.qual };

	memcpy(place.address, env.address,
	       env.address->sa_family == AF_INET ? sizeof(struct sockaddr_in)
						 : sizeof(place.address));
	CU_ASSERT_EQUAL_FATAL(write(fd, &place, sizeof(place)), (ssize_t)sizeof(place));
}

static inline struct place place_receive(int fd)
{
	struct place place;

	CU_ASSERT_EQUAL_FATAL(read(fd, &place, sizeof(place)), (ssize_t)sizeof(place));
	return place;
}

static inline int peer_run(int fd, void *arg)
{
	void (**act)(int fd) = arg;

	alarm(UNIT_PATIENCE / 500);
	setup();
	(*act)(fd);
	return 1;
}

/* Starts the process before any adapter is open; it runs `act`, which does not return. */
static inline void peer_start(void (*act)(int fd))
{
	CU_ASSERT_TRUE_FATAL(process_start(&peer, peer_run, &act));
}

static inline void connect_to(const struct place *place)
{
	MUST(dat_ep_connect(a.ep, (DAT_IA_ADDRESS_PTR)(uintptr_t)place->address, place->qual,
			    PATIENCE, 0, NULL, DAT_QOS_BEST_EFFORT, DAT_CONNECT_DEFAULT_FLAG));
}

#endif
