/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/*
 * Swaps: private memory that a peer uses often moves into the pool (object/pool.h), so that the peer can map it; when it is
 * deregistered it becomes private again. The engine moves it while the program's thread waits in a poll or in a
 * deregistration, so that this thread stores nothing meanwhile.
 */
#ifndef SV_VERBS_SWAP_H
#define SV_VERBS_SWAP_H

#include <stdbool.h>
#include <stdint.h>

struct sv_peer;

/* Engine: a peer asks for the file of a key. True: it has the answer later, from a poll. */
bool sv_swap_ask(struct sv_peer *peer, uint32_t key);
/* A poll, before it looks for completions: lets the engine swap, and waits for it. The caller holds no lock of the device. */
void sv_swap_turn(void);
/* The region is deregistered and was in the pool. The caller holds no lock of the device, and cannot be cancelled. */
void sv_swap_back(uint64_t addr, uint64_t length);

#endif
