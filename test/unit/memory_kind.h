/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* Memory of the kinds that a device tells apart. */
#ifndef MEMORY_KIND_H
#define MEMORY_KIND_H

#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#define PART 65536u

/* Makes memory of PART bytes, and what its region needs; `at` is NULL if that is not possible here. */
struct memory {
	uint8_t *at;
	int fd;
};

static inline struct memory by_memfd(int seals, int prot, int flags)
{
	struct memory m = { .fd = memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING) };
	void *at = MAP_FAILED;

	if (!ftruncate(m.fd, 4 * PART) && (!seals || !fcntl(m.fd, F_ADD_SEALS, seals)))
		at = mmap(NULL, PART, prot, flags, m.fd, PART);
	m.at = at == MAP_FAILED ? NULL : at;
	return m;
}

static inline struct memory sealed(void)
{
	return by_memfd(F_SEAL_SHRINK, PROT_READ | PROT_WRITE, MAP_SHARED);
}

static inline struct memory unsealed(void)
{
	return by_memfd(F_SEAL_GROW, PROT_READ | PROT_WRITE, MAP_SHARED);
}

/* A file as shm_open makes them; removed at once with `remove`. */
static inline struct memory by_folder(char *path, bool remove)
{
	struct memory m = { .fd = mkstemp(path) };
	void *at = MAP_FAILED;

	if (m.fd >= 0 && !ftruncate(m.fd, PART))
		at = mmap(NULL, PART, PROT_READ | PROT_WRITE, MAP_SHARED, m.fd, 0);
	if (m.fd >= 0 && remove)
		unlink(path);
	m.at = at == MAP_FAILED ? NULL : at;
	return m;
}

#define FOLDER_PATH "/dev/shm/softverbs-test-XXXXXX"

static inline struct memory file_of_a_folder(void)
{
	char path[] = FOLDER_PATH;

	return by_folder(path, true);
}

#endif
