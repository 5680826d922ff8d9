/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* Memory regions: registration checks the pages and publishes a key; deregistration withdraws it once it is
 * out of use. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include "softverbs/rc/arrival.h"
#include "softverbs/rc/mw.h"
#include "softverbs/base/os.h"
#include "softverbs/object/srq.h"
#include "softverbs/rc/rc.h"
#include "softverbs/ud/ud.h"
#include "softverbs/verbs/swap.h"
#include "util/cancel.h"
#include "util/log.h"

#undef ibv_reg_mr
#undef ibv_reg_mr_iova

#define ACCESS_REMOTE (IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC)
#define ACCESS_KNOWN                                                                           \
	(IBV_ACCESS_LOCAL_WRITE | ACCESS_REMOTE | IBV_ACCESS_MW_BIND | IBV_ACCESS_ZERO_BASED | \
	 IBV_ACCESS_HUGETLB)

/* For kernels without the populate call (before 5.14): checks that mappings with the right cover the whole
 * range. */
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

/* Checks that the pages are present and allow the region's access: 0 or EFAULT. */
static int range_check(const void *addr, size_t length, bool write)
{
	uintptr_t begin = (uintptr_t)addr, end = begin + length;
	int error, tries = 3;

	if (end < begin || end > UINTPTR_MAX - sv_os_page_size())
		return EFAULT;
	do
		error = sv_os_populate(begin, end, write);
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
	CANCEL_OFF_HERE;
	struct region_entry entry = {
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
		mr->ibv.lkey = sv_region_reserve();
	if (!mr || !mr->ibv.lkey) {
		free(mr);
		errno = ENOMEM;
		return NULL;
	}
	atomic_init(&entry.file, sv_file_of_new(access));
	sv_region_publish(mr->ibv.lkey, &entry);
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

/* Checks the requested change and applies it to `entry`: 0 or errno. */
static int rereg_check(const struct ibv_mr *mr, int flags, const struct ibv_pd *pd,
		       struct region_entry *entry, unsigned access)
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

/* ---- posted receives that use a region ---- */

static bool is_received(uint32_t lkey)
{
	return atomic_load_explicit(&sv_area_own()->by_owner->region[lkey >> 16].received,
				    memory_order_relaxed);
}

/* The table lock, acquired before a queue's own, keeps queues from being destroyed during the loop. */
static void receives_recheck(const struct wq_change *change)
{
	struct area *area = sv_area_own();

	pthread_mutex_lock(&area->table_lock);
	for (uint32_t i = 0; i < SV_QPS; i++)
		if (area->qp[i] && !area->qp[i]->srq)
			sv_wq_recheck(&area->qp[i]->rq, change);
	for (uint32_t i = 0; i < SV_SRQS; i++)
		if (area->srq[i])
			sv_wq_recheck(&area->srq[i]->wq, change);
	pthread_mutex_unlock(&area->table_lock);
}

/* Replaces the region by `next`, or withdraws it if that is NULL. A message whose send has completed, or will
 * complete, is in its receive by the return, polled or not; a later message fails at both ends. */
static void region_leave(uint32_t lkey, uint32_t pd, const struct region_entry *next)
{
	const struct wq_change change = { .lkey = lkey, .ahead = true, .next = next };

	if (!is_received(lkey)) {
		sv_region_withdraw(lkey);
		sv_sq_quiesce();
		return;
	}
	if (sv_ud_ring_is_filled())
		sv_ud_ring_read(NULL, 0);
	sv_region_retire(lkey);
	receives_recheck(&change);
	sv_region_quiesce(lkey);
	sv_sq_quiesce();
	sv_arrivals_land(pd);
	sv_region_forget(lkey);
}

/* The key is withdrawn, and the entry not used again yet. */
static void file_leave(uint32_t lkey)
{
	const struct region_entry *region = &sv_area_own()->by_owner->region[lkey >> 16];
	bool in_pool = sv_file_is_pool(region);

	sv_file_release(lkey);
	if (in_pool)
		sv_swap_back(region->addr, region->length);
}

static void rereg_move(struct sv_mr *mr, struct region_entry *entry, struct ibv_pd *pd)
{
	region_leave(mr->ibv.lkey, mr->ibv.pd->handle, entry);
	file_leave(mr->ibv.lkey);
	atomic_init(&entry->file, sv_file_of_new(entry->access));
	sv_region_publish(mr->ibv.lkey, entry);
	if (is_received(mr->ibv.lkey))
		receives_recheck(&(struct wq_change){ .lkey = mr->ibv.lkey });
	if (!mr->map)
		mr->ibv.addr = (void *)(uintptr_t)entry->addr;
	mr->ibv.length = entry->length;
	if (!pd)
		return;
	atomic_fetch_add_explicit(&pd_of(pd)->users, 1, memory_order_relaxed);
	/* release: see ibv_dealloc_pd */
	atomic_fetch_sub_explicit(&pd_of(mr->ibv.pd)->users, 1, memory_order_release);
	mr->ibv.pd = pd;
}

/* The keys do not change. On error the region is unchanged and valid. */
int ibv_rereg_mr(struct ibv_mr *ibv, int flags, struct ibv_pd *pd, void *addr, size_t length,
		 int access)
{
	CANCEL_OFF_HERE;
	struct region_entry entry;
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
	if (flags & IBV_REREG_MR_CHANGE_TRANSLATION && mr->map) {
		errno = EOPNOTSUPP;
		return IBV_REREG_MR_ERR_INPUT;
	}
	entry = sv_area_own()->by_owner->region[ibv->lkey >> 16];
	if (flags & IBV_REREG_MR_CHANGE_TRANSLATION) {
		entry.addr = entry.iova = (uintptr_t)addr;
		entry.length = length;
	}
	err = rereg_check(ibv, flags, pd, &entry, (unsigned)access);
	if (!err && !sv_mw_region_close(ibv->lkey))
		err = EBUSY;
	if (err) {
		errno = err;
		return err == EINVAL ? IBV_REREG_MR_ERR_INPUT : IBV_REREG_MR_ERR_CMD;
	}
	rereg_move(mr, &entry, flags & IBV_REREG_MR_CHANGE_PD ? pd : NULL);
	return 0;
}

int ibv_dereg_mr(struct ibv_mr *ibv)
{
	CANCEL_OFF_HERE;
	struct sv_mr *mr = mr_of(ibv);

	if (!context_is_ours(ibv->context))
		return ENODEV;
	if (!sv_mw_region_close(ibv->lkey))
		return EBUSY;
	region_leave(ibv->lkey, ibv->pd->handle, NULL);
	file_leave(ibv->lkey);
	sv_region_release(ibv->lkey);
	if (mr->map)
		munmap(mr->map, mr->map_size);
	/* release: see ibv_dealloc_pd */
	atomic_fetch_sub_explicit(&pd_of(ibv->pd)->users, 1, memory_order_release);
	free(mr);
	return 0;
}
