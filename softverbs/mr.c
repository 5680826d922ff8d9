/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* Memory regions: pages are checked, a key is published; it is withdrawn when nobody uses it. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "softverbs/os.h"
#include "softverbs/srq.h"
#include "util/log.h"

#undef ibv_reg_mr
#undef ibv_reg_mr_iova

#define ACCESS_REMOTE (IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC)
#define ACCESS_KNOWN                                                                           \
	(IBV_ACCESS_LOCAL_WRITE | ACCESS_REMOTE | IBV_ACCESS_MW_BIND | IBV_ACCESS_ZERO_BASED | \
	 IBV_ACCESS_HUGETLB)

/*
 * For kernels that cannot be asked (before 5.14): whether mappings with the right cover the whole
 * range.
 */
static int range_check_maps(uintptr_t begin, uintptr_t end, bool write)
{
	FILE *maps = fopen("/proc/self/maps", "re");
	uintptr_t from, to;
	char line[512], rights[5];

	if (!maps)
		return 0;
	while (begin < end && fgets(line, sizeof(line), maps)) {
		if (sscanf(line, "%" SCNxPTR "-%" SCNxPTR " %4s", &from, &to, rights) != 3 ||
		    to <= begin)
			continue;
		if (from > begin || rights[0] != 'r' || (write && rights[1] != 'w'))
			break;
		begin = to;
	}
	fclose(maps);
	return begin < end ? EFAULT : 0;
}

/* Pages must be there and allow what the region will: 0 or EFAULT. */
static int range_check(const void *addr, size_t length, bool write)
{
	uintptr_t begin = (uintptr_t)addr, end = begin + length;
	int error, tries = 3;

	if (end < begin || end > UINTPTR_MAX - os_page_size())
		return EFAULT;
	do
		error = os_populate(begin, end, write);
	while ((error == EAGAIN || error == EINTR) && --tries);
	if (error == ENOSYS)
		return range_check_maps(begin, end, write);
	return error ? EFAULT : 0;
}

static int mr_check(const void *addr, size_t length, unsigned access)
{
	if (access & ~(ACCESS_KNOWN | IBV_ACCESS_OPTIONAL_RANGE))
		return access & IBV_ACCESS_ON_DEMAND ? EOPNOTSUPP : EINVAL;
	if (access & (IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC) &&
	    !(access & IBV_ACCESS_LOCAL_WRITE))
		return EINVAL;
	if (!length)
		return EINVAL;
	return range_check(addr, length, access & IBV_ACCESS_LOCAL_WRITE);
}

static struct ibv_mr *mr_register(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova,
				  unsigned access)
{
	struct ro_region entry = {
		.type = REGION_MR,
		.access = (access & ACCESS_KNOWN) | REGION_LOCAL,
		.pd = pd->handle,
		.addr = (uintptr_t)addr,
		.length = length,
		.iova = iova,
	};
	struct sv_mr *mr;

	if (!context_is_ours(pd->context)) {
		errno = ENODEV;
		return NULL;
	}
	errno = mr_check(addr, length, access);
	if (errno)
		return NULL;
	mr = calloc(1, sizeof(*mr));
	if (mr)
		mr->ibv.lkey = region_reserve();
	if (!mr || !mr->ibv.lkey) {
		free(mr);
		errno = ENOMEM;
		return NULL;
	}
	region_publish(mr->ibv.lkey, &entry);
	mr->ibv.context = pd->context;
	mr->ibv.pd = pd;
	mr->ibv.addr = addr;
	mr->ibv.length = length;
	mr->ibv.rkey = mr->ibv.lkey;
	mr->ibv.handle = mr->ibv.lkey >> 16;
	atomic_fetch_add_explicit(&pd_of(pd)->users, 1, memory_order_relaxed);
	return &mr->ibv;
}

struct ibv_mr *ibv_reg_mr(struct ibv_pd *pd, void *addr, size_t length, int access)
{
	return mr_register(pd, addr, length, (uintptr_t)addr, (unsigned)access);
}

struct ibv_mr *ibv_reg_mr_iova(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova,
			       int access)
{
	return mr_register(pd, addr, length, iova, (unsigned)access);
}

struct ibv_mr *ibv_reg_mr_iova2(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova,
				unsigned int access)
{
	return mr_register(pd, addr, length, iova, access);
}

struct ibv_mr *ibv_reg_dmabuf_mr(struct ibv_pd *pd, uint64_t offset, size_t length, uint64_t iova,
				 int fd, int access)
{
	(void)pd;
	(void)offset;
	(void)length;
	(void)iova;
	(void)fd;
	(void)access;
	errno = EOPNOTSUPP;
	return NULL;
}

/* What the region shall be, checked: 0 or errno. */
static int rereg_check(const struct ibv_mr *mr, int flags, const struct ibv_pd *pd,
		       struct ro_region *entry, unsigned access)
{
	unsigned now = entry->access & ACCESS_KNOWN;

	if (flags & IBV_REREG_MR_CHANGE_PD) {
		if (!pd || pd->context != mr->context)
			return EINVAL;
		entry->pd = pd->handle;
	}
	if (flags & IBV_REREG_MR_CHANGE_ACCESS) {
		entry->access = (access & ACCESS_KNOWN) | REGION_LOCAL;
		now = access;
	}
	if (!(flags & (IBV_REREG_MR_CHANGE_ACCESS | IBV_REREG_MR_CHANGE_TRANSLATION)))
		return 0;
	return mr_check((void *)(uintptr_t)entry->addr, entry->length, now);
}

static void rereg_move(struct sv_mr *mr, const struct ro_region *entry, struct ibv_pd *pd)
{
	region_withdraw(mr->ibv.lkey);
	region_publish(mr->ibv.lkey, entry);
	mr->ibv.addr = (void *)(uintptr_t)entry->addr;
	mr->ibv.length = entry->length;
	if (!pd)
		return;
	atomic_fetch_add_explicit(&pd_of(pd)->users, 1, memory_order_relaxed);
	/* release: see ibv_dealloc_pd */
	atomic_fetch_sub_explicit(&pd_of(mr->ibv.pd)->users, 1, memory_order_release);
	mr->ibv.pd = pd;
}

/*
 * Receives that were posted with the key. The table lock, before a queue's own, keeps queues from
 * being destroyed meanwhile.
 */
static void receives_look_again(uint32_t lkey)
{
	struct area *area = area_own();

	if (!atomic_load_explicit(&area->ro->region[lkey >> 16].received, memory_order_relaxed))
		return;
	pthread_mutex_lock(&area->table_lock);
	for (uint32_t i = 0; i < SV_QPS; i++)
		if (area->qp[i] && !area->qp[i]->srq)
			wq_look_again(&area->qp[i]->rq, lkey);
	for (uint32_t i = 0; i < SV_SRQS; i++)
		if (area->srq[i])
			wq_look_again(&area->srq[i]->wq, lkey);
	pthread_mutex_unlock(&area->table_lock);
}

/* The keys stay. Whatever is refused, the region is what it was, and valid. */
int ibv_rereg_mr(struct ibv_mr *ibv, int flags, struct ibv_pd *pd, void *addr, size_t length,
		 int access)
{
	struct ro_region entry;
	struct sv_mr *mr = mr_of(ibv);
	int err;

	if (!context_is_ours(ibv->context)) {
		errno = ENODEV;
		return IBV_REREG_MR_ERR_CMD;
	}
	if (!flags || flags & ~IBV_REREG_MR_FLAGS_SUPPORTED ||
	    (flags & IBV_REREG_MR_CHANGE_TRANSLATION && (!addr || !length))) {
		errno = EINVAL;
		return IBV_REREG_MR_ERR_INPUT;
	}
	entry = area_own()->ro->region[ibv->lkey >> 16];
	if (flags & IBV_REREG_MR_CHANGE_TRANSLATION) {
		entry.addr = entry.iova = (uintptr_t)addr;
		entry.length = length;
	}
	err = rereg_check(ibv, flags, pd, &entry, (unsigned)access);
	/* acquire: what the last window did with it is done */
	if (!err && atomic_load_explicit(&mr->windows, memory_order_acquire))
		err = EBUSY;
	if (err) {
		errno = err;
		return err == EINVAL ? IBV_REREG_MR_ERR_INPUT : IBV_REREG_MR_ERR_CMD;
	}
	rereg_move(mr, &entry, flags & IBV_REREG_MR_CHANGE_PD ? pd : NULL);
	receives_look_again(ibv->lkey);
	return 0;
}

int ibv_dereg_mr(struct ibv_mr *ibv)
{
	struct sv_mr *mr = mr_of(ibv);

	if (!context_is_ours(ibv->context))
		return ENODEV;
	/* acquire: what the last window did with it is done */
	if (atomic_load_explicit(&mr->windows, memory_order_acquire))
		return EBUSY;
	region_withdraw(ibv->lkey);
	receives_look_again(ibv->lkey);
	region_release(ibv->lkey);
	/* release: see ibv_dealloc_pd */
	atomic_fetch_sub_explicit(&pd_of(ibv->pd)->users, 1, memory_order_release);
	free(mr);
	return 0;
}
