/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* Limits the log lines that another process can cause: a few from each source per interval, then one line
 * with the number of lines that were dropped. */
#ifndef SV_BASE_LOG_FROM_H
#define SV_BASE_LOG_FROM_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include "softverbs/base/shared.h"
#include "util/log.h"

/* Sources: a process of this user, and all processes of another one. */
static inline uint64_t sv_source_process(pid_t pid)
{
	return (uint32_t)pid;
}

static inline uint64_t sv_source_user(uid_t uid)
{
	return 1ull << 32 | uid;
}

/* Counts a line of `source`. Returns true if the line may be written. */
SV_SHARED bool sv_log_admits(uint64_t source);
void sv_log_from_fork_child(void); /* the child counts anew */

#define sv_log_from(source, bit, ...)                     \
	do {                                              \
		if (log_on(bit) && sv_log_admits(source)) \
			log_write(__VA_ARGS__);           \
	} while (0)

#endif
