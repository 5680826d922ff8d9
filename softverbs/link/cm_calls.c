/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* Calls into the connection manager, if one is loaded. */
#include <stdatomic.h>
#include "softverbs/link/cm_calls.h"

/* Does nothing if no connection manager is loaded. */
#define CALL(which, ...)                                                       \
	do {                                                                   \
		/* acquire: pairs with sv_cm_calls_set */                      \
		const struct sv_cm_calls *calls =                              \
			atomic_load_explicit(&cm_calls, memory_order_acquire); \
                                                                               \
		if (calls)                                                     \
			calls->which(__VA_ARGS__);                             \
	} while (0)

static const struct sv_cm_calls *_Atomic cm_calls;

void sv_cm_calls_set(const struct sv_cm_calls *calls)
{
	/* release: a thread that sees the table sees what the library initialised before */
	atomic_store_explicit(&cm_calls, calls, memory_order_release);
}

void sv_cm_message(struct sv_peer *peer, const void *payload, size_t size)
{
	CALL(message, peer, payload, size);
}

bool sv_cm_far_message(struct sv_peer *peer, const uint8_t *bytes, size_t size)
{
	/* acquire: pairs with sv_cm_calls_set */
	const struct sv_cm_calls *calls = atomic_load_explicit(&cm_calls, memory_order_acquire);

	return !calls || calls->far_message(peer, bytes, size);
}

void sv_cm_peer_ready(struct sv_peer *peer)
{
	CALL(peer_ready, peer);
}

void sv_cm_peer_unreachable(uint16_t id, int error)
{
	CALL(peer_unreachable, id, error);
}

void sv_cm_peer_gone(struct sv_peer *peer)
{
	CALL(peer_gone, peer);
}

void sv_cm_fork_begin(void)
{
	CALL(fork_begin);
}

void sv_cm_fork_end(void)
{
	CALL(fork_end);
}

void sv_cm_fork_prepare(void)
{
	CALL(fork_prepare);
}

void sv_cm_fork_parent(void)
{
	CALL(fork_parent);
}

void sv_cm_fork_child(void)
{
	CALL(fork_child);
}
