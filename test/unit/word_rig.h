/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* Writes into a rig (direct_rig.h) that end with a word which this process polls: rule C1. */
#ifndef WORD_RIG_H
#define WORD_RIG_H

#include "test/unit/direct_rig.h"
#include "test/unit/word_watch.h"

#define WORD_PAGE 4096u

/* Where a range in memory begins that lies `ahead` bytes before `at`, in the address within a page. */
static inline uint32_t behind(const uint8_t *memory, const uint8_t *at, uint32_t ahead)
{
	return (uint32_t)((uintptr_t)at - (uintptr_t)memory - ahead) % WORD_PAGE;
}

/* Writes that end with the word, from one piece or with the word's halves in two. */
static inline void flip_word(struct rig *rig, uint32_t word, uint32_t length, bool halves,
			     uint32_t ahead, uint32_t count)
{
	uint32_t first = behind(rig->node.memory, rig->memory + word + 4 - length, ahead);
	struct word_watch watch;

	word_watch_begin(&watch, rig->memory + word);
	for (uint32_t i = 0; i < count; i++) {
		uint32_t from = first + i % 2 * 2 * WORD_PAGE;
		struct ibv_sge sge[] = {
			node_sge(&rig->node, from, halves ? length - 2 : length),
			node_sge(&rig->node, from, 2),
		};

		if (rig_do(rig, IBV_WR_RDMA_WRITE, sge, halves ? 2 : 1, word + 4 - length)) {
			CU_FAIL("a write of a word");
			break;
		}
	}
	word_watch_end(&watch);
}

/*
 * Processors whose moves of strings are fast copy byte by byte to a target that lies a few bytes ahead of the source; they compare
 * no more of the addresses than the place in a page.
 */
static inline void flip_words(struct rig *rig, uint32_t count)
{
	static const uint32_t aheads[] = { 0, 4, 8, 12, WORD_PAGE / 2 };

	memset(rig->node.memory, 0, 2 * WORD_PAGE);
	memset(rig->node.memory + 2 * WORD_PAGE, 0xff, 2 * WORD_PAGE);
	for (uint32_t word = WORD_PAGE; word < WORD_PAGE + 128; word += 4) {
		for (size_t i = 0; i < sizeof(aheads) / sizeof(aheads[0]); i++) {
			memset(rig->memory + word - 8, 0xff, 12);
			flip_word(rig, word, 4, false, aheads[i], count);
			flip_word(rig, word, 8, false, aheads[i], count);
			flip_word(rig, word, 12, word % 16 >= 8, aheads[i], count);
		}
	}
}

#endif
