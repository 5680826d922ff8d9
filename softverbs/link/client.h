/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/*
 * The data path as the runtime and links see it: the memory that peers share, and what happens to peers. Given with each
 * hold of the runtime, always the same (softverbs/attend.c).
 */
#ifndef SV_LINK_CLIENT_H
#define SV_LINK_CLIENT_H

#include <stddef.h>
#include <stdint.h>

struct sv_peer;
struct sv_transport;

/* the sizes of the areas behind the two descriptors of a hello */
struct sv_area_offer {
	uint64_t by_owner_size, by_peers_size;
};

struct sv_link_client {
	/*
	 * Makes, seals and maps this process's two memfds; fills the area pointers and sizes of `self`. Returns 0 or
	 * errno.
	 */
	int (*area_open)(struct sv_peer *self);
	void (*area_close)(struct sv_peer *self);
	/* Stores the descriptors to send (by_owner, then by_peers); the area keeps them. */
	void (*area_offer)(struct sv_area_offer *offer, int fds[2]);
	/*
	 * Checks the seals, sizes and headers of a peer's areas and maps them; closes no descriptor. Returns 0 or errno:
	 * EPROTO if they differ from the offer.
	 */
	int (*area_map)(struct sv_peer *peer, const struct sv_area_offer *offer, const int fds[2]);
	void (*area_unmap)(struct sv_peer *peer);

	/* The link is made: resumes sends that wait for this peer. This and the next five run in the engine thread. */
	void (*peer_ready)(struct sv_peer *peer);
	/* No link can be made: the retry rules of the QPs that wait apply. */
	void (*peer_unreachable)(uint16_t slot);
	/* `dead` is set: pending sends end after an ACK timeout, and waiters are woken once. */
	void (*peer_gone)(struct sv_peer *peer);
	/* The last reference is released, in any thread; area_unmap follows. */
	void (*peer_free)(struct sv_peer *peer);
	/* A doorbell was rung: handles waits, faults, limits and overflows. */
	void (*doorbell)(void);
	/* Around fork, in the thread that forks, with the lock of the runtime held; in the child before all else. */
	void (*fork_prepare)(void);
	void (*fork_parent)(void);
	void (*fork_child)(void);
	/* Takes ownership of `fd`. */
	void (*message)(struct sv_peer *peer, const void *payload, size_t size, int fd);

	/* How processes of other hosts are reached. */
	const struct sv_transport *transport;
};

#endif
