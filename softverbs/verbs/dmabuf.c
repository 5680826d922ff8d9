/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/*
 * Regions of a descriptor: the device has no memory of other devices, and takes memfds and files of a tmpfs. It maps the
 * range itself.
 */
#include <errno.h>
#include <sys/mman.h>
#include "softverbs/base/foreign.h"
#include "softverbs/base/os.h"
#include "softverbs/object/object.h"

static struct ibv_mr *fail(int error)
{
	errno = error;
	return NULL;
}

struct ibv_mr *ibv_reg_dmabuf_mr(struct ibv_pd *pd, uint64_t offset, size_t length, uint64_t iova,
				 int fd, int access)
{
	uint64_t begin = offset & ~(uint64_t)(sv_os_page_size() - 1), end = offset + length;
	int rights = PROT_READ | (access & IBV_ACCESS_LOCAL_WRITE ? PROT_WRITE : 0);
	struct ibv_mr *mr;
	uint8_t *map;

	if (!context_is_ours(pd->context))
		return fail(ENODEV);
	if (!length || end < offset)
		return fail(EINVAL);
	if (!sv_foreign_is_file(fd, end))
		return fail(EOPNOTSUPP);
	map = mmap(NULL, end - begin, rights, MAP_SHARED, fd, (off_t)begin);
	if (map == MAP_FAILED)
		return NULL;
	mr = ibv_reg_mr_iova2(pd, map + (offset - begin), length, iova, (unsigned)access);
	if (!mr) {
		int error = errno;

		munmap(map, end - begin);
		return fail(error);
	}
	mr->addr = (void *)(uintptr_t)offset;
	mr_of(mr)->map = map;
	mr_of(mr)->map_size = end - begin;
	return mr;
}
