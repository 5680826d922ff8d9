/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* Registration by a structure, which replaces the functions that each take some of its fields; and buffers that the
 * device allocates, which are ordinary memory. */
#include <errno.h>
#include <stdlib.h>
#include "softverbs/base/os.h"
#include "softverbs/object/object.h"

/* struct ibv_mr_init_attr of rdma-core 65, which older headers lack or end before its last field. A program that was built
 * with those does not name the field in the mask. */
struct mr_init_attr {
	size_t length;
	int access;
	uint64_t mask;
	uint64_t iova;
	void *addr;
	int fd;
	uint64_t offset;
	struct ibv_dmah *dmah;
	struct ibv_buf *buf;
};

#if VERBS_HAVE_MR_INIT_ATTR
_Static_assert(sizeof(struct mr_init_attr) == sizeof(struct ibv_mr_init_attr) &&
		       offsetof(struct mr_init_attr, fd) == offsetof(struct ibv_mr_init_attr, fd),
	       "the layout of rdma-core");
#endif

enum {
	MASK_IOVA = 1 << 0,
	MASK_ADDR = 1 << 1,
	MASK_FD = 1 << 2,
	MASK_OFFSET = 1 << 3,
	MASK_DMAH = 1 << 4,
	MASK_BUF = 1 << 5,
	MASK_ALL = (1 << 6) - 1,
};

struct ibv_buf {
	struct ibv_pd *pd;
	uint8_t *addr;
	size_t size;
};

static bool buf_contains(const struct ibv_buf *buf, const struct ibv_pd *pd, const void *addr,
			 size_t length)
{
	uintptr_t offset = (uintptr_t)addr - (uintptr_t)buf->addr;

	return buf->pd == pd && offset <= buf->size && length <= buf->size - offset;
}

static int attr_check(const struct ibv_pd *pd, const struct mr_init_attr *attr)
{
	uint64_t mask = attr->mask;

	if (mask & MASK_DMAH || mask & ~(uint64_t)MASK_ALL)
		return EOPNOTSUPP;
	if (!(mask & MASK_ADDR) == !(mask & MASK_FD)) /* one of them is where the memory is */
		return EINVAL;
	if (mask & MASK_FD ? ~mask & (MASK_OFFSET | MASK_IOVA) : mask & MASK_OFFSET)
		return EINVAL;
	if (mask & MASK_BUF &&
	    (mask & MASK_FD || !buf_contains(attr->buf, pd, attr->addr, attr->length)))
		return EINVAL;
	return 0;
}

struct ibv_mr *ibv_reg_mr_ex(struct ibv_pd *pd, struct ibv_mr_init_attr *public)
{
	const struct mr_init_attr *attr = (const void *)public;
	uint64_t iova;

	errno = attr_check(pd, attr);
	if (errno)
		return NULL;
	if (attr->mask & MASK_FD)
		return ibv_reg_dmabuf_mr(pd, attr->offset, attr->length, attr->iova, attr->fd,
					 attr->access);
	iova = attr->mask & MASK_IOVA ? attr->iova : (uintptr_t)attr->addr;
	return ibv_reg_mr_iova2(pd, attr->addr, attr->length, iova, (unsigned)attr->access);
}

void *ibv_alloc_buf(struct ibv_pd *pd, size_t size, struct ibv_buf **to)
{
	struct ibv_buf *buf = calloc(1, sizeof(*buf));
	void *addr;

	if (!buf || !size || posix_memalign(&addr, sv_os_page_size(), size)) {
		free(buf);
		errno = size ? ENOMEM : EINVAL;
		return NULL;
	}
	*buf = (struct ibv_buf){ pd, addr, size };
	*to = buf;
	return addr;
}

void ibv_free_buf(struct ibv_buf *buf)
{
	free(buf->addr);
	free(buf);
}

struct ibv_mr *ibv_reg_buf_mr(struct ibv_pd *pd, struct ibv_buf *buf, void *addr, size_t length,
			      int access)
{
	struct mr_init_attr attr = {
		.length = length,
		.access = access,
		.mask = MASK_ADDR | MASK_BUF,
		.addr = addr,
		.buf = buf,
	};

	return ibv_reg_mr_ex(pd, (struct ibv_mr_init_attr *)(void *)&attr);
}

/* The memory has no descriptor. */
int ibv_export_buf_dmabuf_fd(struct ibv_buf *buf)
{
	(void)buf;
	errno = ENODATA;
	return -1;
}
