/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* A thread that polls a word of four bytes, while writes make it all zeros or all ones in turn. */
#ifndef WORD_WATCH_H
#define WORD_WATCH_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include "test/unit/unit.h"

struct word_watch {
	const uint32_t *word;
	atomic_bool stop;
	unsigned torn; /* times that some of its bytes were new and some old */
	pthread_t thread;
};

static inline void *word_watch_run(void *arg)
{
	struct word_watch *watch = arg;

	while (!atomic_load(&watch->stop)) {
		uint32_t value = __atomic_load_n(watch->word, __ATOMIC_ACQUIRE);

		watch->torn += value != 0 && value != UINT32_MAX;
	}
	return NULL;
}

static inline void word_watch_begin(struct word_watch *watch, const void *word)
{
	*watch = (struct word_watch){ .word = word };
	CU_ASSERT_EQUAL_FATAL(pthread_create(&watch->thread, NULL, word_watch_run, watch), 0);
}

static inline void word_watch_end(struct word_watch *watch)
{
	atomic_store(&watch->stop, true);
	pthread_join(watch->thread, NULL);
	CU_ASSERT_EQUAL(watch->torn, 0);
}

#endif
