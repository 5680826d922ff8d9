/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* Limits the descriptors of a process. */
#ifndef FILES_H
#define FILES_H

#include <stdbool.h>
#include <stdio.h>
#include <sys/resource.h>
#include <unistd.h>

/* Lowers the limit so that `spare` descriptors can still be opened. */
static inline void limit_fds(int spare)
{
	struct rlimit limit;
	int first;

	getrlimit(RLIMIT_NOFILE, &limit);
	limit.rlim_cur = limit.rlim_max;
	setrlimit(RLIMIT_NOFILE, &limit);
	if (spare < 0)
		return;
	first = dup(0);
	close(first);
	limit.rlim_cur = (rlim_t)(first + spare);
	setrlimit(RLIMIT_NOFILE, &limit);
}

/* False under a memory checker, which emulates the limit instead of setting the kernel's. */
static inline bool limit_is_real(void)
{
	FILE *file = fopen("/proc/self/limits", "re");
	struct rlimit limit, less;
	unsigned long long seen = 0;
	char line[128];

	getrlimit(RLIMIT_NOFILE, &limit);
	less = limit;
	less.rlim_cur = limit.rlim_max - 1;
	setrlimit(RLIMIT_NOFILE, &less);
	while (file && fgets(line, sizeof(line), file))
		if (sscanf(line, "Max open files %llu", &seen) == 1)
			break;
	setrlimit(RLIMIT_NOFILE, &limit);
	if (file)
		fclose(file);
	return seen == less.rlim_cur;
}

#endif
