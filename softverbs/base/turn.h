/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/*
 * The order in which a poll takes what is marked in a bitmap of 64 words and their summary: all from place `next` on, then
 * those before it. So what is marked again and again keeps nothing else waiting. In two passes:
 *
 *	for (int pass = 0; pass < 2; pass++)
 *		for (words = turn_words(summary, next, pass); words; words &= words - 1)
 *			take the bits turn_bits(word, next, pass) of the word
 */
#ifndef SV_BASE_TURN_H
#define SV_BASE_TURN_H

#include <stdint.h>

static inline uint64_t turn_words(uint64_t summary, uint32_t next, int pass)
{
	unsigned first = next / 64;

	return pass ? summary & ((2ull << first) - 1) : summary & ~0ull << first;
}

static inline uint64_t turn_bits(unsigned word, uint32_t next, int pass)
{
	uint64_t after = ~0ull << next % 64;

	if (word != next / 64)
		return ~0ull;
	return pass ? ~after : after;
}

#endif
