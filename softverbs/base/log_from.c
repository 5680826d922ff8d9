/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* Counts the log lines that each source has caused. */
#include <pthread.h>
#include <string.h>
#include "util/cancel.h"
#include "softverbs/base/log_from.h"
#include "util/log_limit.h"

#define SOURCES 32u /* sources in the table; the oldest entry is replaced */

static struct {
	uint64_t source;
	struct log_limit limit;
} table[SOURCES]; /* guarded by `lock` */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* innermost */

/* Returns the entry of the source, or else the oldest, to be replaced. */
static unsigned entry_find_locked(uint64_t source)
{
	unsigned oldest = 0, i;

	for (i = 0; i < SOURCES; i++) {
		if (table[i].limit.since && table[i].source == source)
			return i;
		if (table[i].limit.since < table[oldest].limit.since)
			oldest = i;
	}
	table[oldest].source = source;
	table[oldest].limit = (struct log_limit){ 0 };
	return oldest;
}

static void omitted_write(uint64_t source, unsigned count)
{
	log_write("softverbs: %s %u: %u more such lines were left out",
		  source >> 32 ? "user" : "process", (unsigned)source, count);
}

void sv_log_from_fork_child(void)
{
	pthread_mutex_init(&lock, NULL);
	memset(table, 0, sizeof(table));
}

bool sv_log_admits(uint64_t source)
{
	unsigned omitted;
	int cancel = cancel_off();
	bool admits;

	pthread_mutex_lock(&lock);
	admits = log_limit_admits(&table[entry_find_locked(source)].limit, &omitted);
	pthread_mutex_unlock(&lock);
	cancel_restore(cancel);
	if (omitted)
		omitted_write(source, omitted);
	return admits;
}
