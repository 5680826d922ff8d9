/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* Maps a file that a peer offers. The peer is not trusted: the kernel is asked what the file is. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/shm.h>
#include <sys/stat.h>
#include <unistd.h>
#include "softverbs/base/foreign.h"
#include "softverbs/base/os.h"
#include "softverbs/object/mapping.h"
#include "softverbs/rc/direct_map.h"

#define END_MAX	      (1ull << 46) /* bytes */
#define MEMFD_END_MAX (1ull << 62)

static uint64_t page_round(uint64_t size)
{
	return (size + sv_os_page_size() - 1) & ~(uint64_t)(sv_os_page_size() - 1);
}

/* A child has no use for the pages, and a core file would hold a peer's memory. */
static void advise(const struct direct_map *map)
{
	madvise(map->base, map->end - map->begin, MADV_DONTFORK);
	madvise(map->base, map->end - map->begin, MADV_DONTDUMP);
}

/* ---- segments ---- */

static bool is_same_namespace(const uint64_t ipc[2])
{
	struct stat st;

	return !stat("/proc/self/ns/ipc", &st) && st.st_dev == ipc[0] && st.st_ino == ipc[1];
}

/* The segment is one of this user, so that a peer cannot name one that only this process may use. */
static int segment_attach(struct direct_map *map, const struct share_text *text)
{
	struct shmid_ds segment;
	int id = (int)text->shmid;
	struct mapping found;
	void *base;

	/* Where all memory is locked, an attached segment would become present as a whole. */
	if (!is_same_namespace(text->ipc) || sv_mapping_is_locked())
		return EXDEV;
	if (shmctl(id, IPC_STAT, &segment))
		return errno;
	if (segment.shm_perm.uid != geteuid() || segment.shm_segsz > END_MAX)
		return EACCES;
	base = shmat(id, NULL, map->writable ? 0 : SHM_RDONLY);
	if (base == (void *)-1)
		return errno;
	/* huge pages may be unavailable at the first access */
	if (!sv_mapping_find((uintptr_t)base, segment.shm_segsz, &found) || !found.is_segment) {
		shmdt(base);
		return EPROTO;
	}
	map->base = base;
	map->begin = 0;
	map->end = page_round(segment.shm_segsz);
	map->is_segment = true;
	return 0;
}

/* ---- memfds ---- */

/* Mappings begin and end at a multiple of this, so that regions beside each other share one. */
#define CHUNK (1ull << 20)

/* The part of the file that the region lies in; false if there is none. */
static bool range_set(struct direct_map *map, const struct share_text *text, int fd)
{
	struct stat st;

	if (text->begin >= text->end || text->end > MEMFD_END_MAX || fstat(fd, &st) ||
	    (uint64_t)st.st_size < text->end)
		return false;
	map->begin = text->begin & ~(CHUNK - 1);
	map->end = (text->end + CHUNK - 1) & ~(CHUNK - 1);
	if (map->end > (uint64_t)st.st_size)
		map->end = page_round((uint64_t)st.st_size);
	return true;
}

/* Without access at first, so that a process that locks its memory does not fill the file's holes. */
static int memfd_attach(struct direct_map *map, const struct share_text *text, int fd)
{
	uint64_t size;
	void *base;

	if (!sv_foreign_is_whole(fd, 1) || !range_set(map, text, fd))
		return EPROTO;
	size = map->end - map->begin;
	base = mmap(NULL, size, PROT_NONE, MAP_SHARED | MAP_NORESERVE, fd, (off_t)map->begin);
	if (base == MAP_FAILED)
		return errno;
	munlock(base, size);
	map->writable = map->writable && !mprotect(base, size, PROT_READ | PROT_WRITE);
	if (!map->writable && mprotect(base, size, PROT_READ)) {
		int error = errno;

		munmap(base, size);
		return error;
	}
	map->base = base;
	return 0;
}

/* ---- files that may shrink ---- */

/* Beyond the limit of a file's size, a write would raise SIGXFSZ. */
static uint64_t size_limit(void)
{
	struct rlimit limit;

	return getrlimit(RLIMIT_FSIZE, &limit) || limit.rlim_cur > END_MAX ? END_MAX
									   : limit.rlim_cur;
}

/* Half of the descriptors that the process may have are the program's. */
static int descriptor_keep(int fd)
{
	int kept = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	struct rlimit limit;

	if (kept < 0 || getrlimit(RLIMIT_NOFILE, &limit) || (rlim_t)kept < limit.rlim_cur / 2)
		return kept;
	sv_os_close(kept);
	errno = EMFILE;
	return -1;
}

static int file_keep(struct direct_map *map, int fd)
{
	int flags = sv_foreign_is_file(fd, 1) ? fcntl(fd, F_GETFL) : -1;

	if (flags < 0)
		return EPROTO;
	map->file_fd = descriptor_keep(fd);
	if (map->file_fd < 0)
		return errno;
	map->writable = map->writable && (flags & O_ACCMODE) == O_RDWR && !(flags & O_APPEND);
	map->begin = 0;
	map->end = size_limit();
	return 0;
}

/* ---- any ---- */

struct direct_map *sv_direct_map(const struct share_text *text, int fd)
{
	struct direct_map *map = calloc(1, sizeof(*map));
	int error;

	if (!map)
		return NULL;
	map->file = text->file;
	map->writable = text->writes;
	map->is_pool = text->kind == SHARE_POOL;
	map->file_fd = -1;
	error = text->kind == SHARE_SYSV		    ? segment_attach(map, text)
		: text->kind == SHARE_MEMFD || map->is_pool ? memfd_attach(map, text, fd)
		: text->kind == SHARE_FILE		    ? file_keep(map, fd)
							    : EPROTO;
	if (error) {
		free(map);
		errno = error;
		return NULL;
	}
	if (map->base)
		advise(map);
	return map;
}

void sv_direct_unmap(struct direct_map *map)
{
	if (map->file_fd >= 0)
		sv_os_close(map->file_fd);
	else if (map->is_segment)
		shmdt(map->base);
	else
		munmap(map->base, map->end - map->begin);
	free(map);
}
