/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* Pseudo-random numbers from a seed, and their use to change shared memory. */
#ifndef MUTATE_H
#define MUTATE_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

struct noise {
	uint64_t state;
};

static inline struct noise noise_from(uint32_t seed)
{
	return (struct noise){ seed * 0x9e3779b97f4a7c15ull + 0x2545f4914f6cdd1dull };
}

static inline uint32_t noise_next(struct noise *noise)
{
	noise->state ^= noise->state << 13;
	noise->state ^= noise->state >> 7;
	noise->state ^= noise->state << 17;
	return (uint32_t)(noise->state >> 16);
}

static inline uint32_t noise_value(struct noise *noise, uint32_t now)
{
	static const uint32_t edges[] = {
		0,	  1,	      2,	  3,	      63,	  64,
		65,	  0xff,	      0x7fff,	  0x8000,     0xffff,	  0x10000,
		0xffffff, 0x7fffffff, 0x80000000, 0xfffffffe, 0xffffffff,
	};

	switch (noise_next(noise) % 6) {
	case 0: return now ^ 1u << noise_next(noise) % 32; /* one bit */
	case 1: return now + (noise_next(noise) % 9 - 4);  /* a neighbouring value */
	case 2: return edges[noise_next(noise) % (sizeof(edges) / sizeof(edges[0]))];
	case 3: return (now & 0xffff0000) | (noise_next(noise) & 0xffff);
	case 4: return (now & 0xffff) | noise_next(noise) << 16;
	default: return noise_next(noise);
	}
}

/* Changes one byte, one word, or all words. */
static inline void mutate(struct noise *noise, void *at, size_t size)
{
	_Atomic(uint32_t) *word = at;
	size_t words = size / 4, first = noise_next(noise) % words, count = 1;

	if (noise_next(noise) % 4 == 0) {
		atomic_store_explicit((_Atomic(uint8_t) *)at + noise_next(noise) % size,
				      (uint8_t)noise_next(noise), memory_order_relaxed);
		return;
	}
	if (noise_next(noise) % 4 == 0) {
		first = 0;
		count = words;
	}
	for (size_t i = first; i < first + count; i++)
		atomic_store_explicit(
			&word[i],
			noise_value(noise, atomic_load_explicit(&word[i], memory_order_relaxed)),
			memory_order_relaxed);
}

#endif
