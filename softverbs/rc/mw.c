/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/*
 * Memory windows: allocates, binds, invalidates (locally or by a peer's message), and deallocates
 * them.
 */
#include <errno.h>
#include <stdlib.h>
#include "softverbs/rc/mw.h"
#include "softverbs/object/region.h"
#include "softverbs/rc/rdma.h"

#define WINDOW_ACCESS                                                                  \
	(IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC | \
	 IBV_ACCESS_ZERO_BASED)

struct sv_mw {
	struct ibv_mw ibv;
	uint32_t lkey; /* of the region that it is bound to, or 0; the area's mw_lock */
	uint32_t key;  /* that it is bound with; mw_lock */
};

static struct sv_mw *mw_of(struct ibv_mw *ibv)
{
	return container_of(sv_mw, ibv, ibv);
}

struct ibv_mw *sv_mw_alloc(struct ibv_pd *ibv, enum ibv_mw_type type)
{
	struct sv_mw *mw;

	if (!context_is_ours(ibv->context)) {
		errno = ENODEV;
		return NULL;
	}
	if (type != IBV_MW_TYPE_1 && type != IBV_MW_TYPE_2) {
		errno = EINVAL;
		return NULL;
	}
	mw = calloc(1, sizeof(*mw));
	if (mw)
		mw->ibv.rkey = sv_region_reserve();
	if (!mw || !mw->ibv.rkey) {
		free(mw);
		errno = ENOMEM;
		return NULL;
	}
	mw->ibv.context = ibv->context;
	mw->ibv.pd = ibv;
	mw->ibv.handle = mw->ibv.rkey >> 16;
	mw->ibv.type = type;
	pthread_mutex_lock(&sv_area_own()->mw_lock);
	sv_area_own()->mw[mw->ibv.handle] = mw;
	pthread_mutex_unlock(&sv_area_own()->mw_lock);
	atomic_fetch_add_explicit(&pd_of(ibv)->users, 1, memory_order_relaxed);
	return &mw->ibv;
}

static void mw_unbind_locked(struct sv_mw *mw)
{
	if (!mw->lkey)
		return;
	sv_area_own()->windows[mw->lkey >> 16]--;
	mw->lkey = 0;
	mw->key = 0;
}

int sv_mw_dealloc(struct ibv_mw *ibv)
{
	struct sv_mw *mw = mw_of(ibv);
	struct area *area = sv_area_own();

	if (!context_is_ours(ibv->context))
		return ENODEV;
	pthread_mutex_lock(&area->mw_lock);
	if (mw->lkey)
		sv_region_withdraw(mw->key);
	mw_unbind_locked(mw);
	area->mw[ibv->handle] = NULL;
	pthread_mutex_unlock(&area->mw_lock);
	sv_region_release(ibv->handle << 16);
	/* release: see ibv_dealloc_pd */
	atomic_fetch_sub_explicit(&pd_of(ibv->pd)->users, 1, memory_order_release);
	free(mw);
	return 0;
}

/* The caller has the key at once; the key becomes valid when the work request is executed. */
int sv_mw_bind(struct ibv_qp *ibv, struct ibv_mw *mw, struct ibv_mw_bind *bind)
{
	struct ibv_send_wr wr = {
		.wr_id = bind->wr_id, .opcode = IBV_WR_BIND_MW, .send_flags = bind->send_flags,
		.bind_mw = { .mw = mw,
			     .rkey = ibv_inc_rkey(mw->rkey),
			     .bind_info = bind->bind_info },
	}, *bad;
	int err;

	if (mw->pd != ibv->pd)
		return EPERM;
	err = sv_qp_post_send(ibv, &wr, &bad);
	if (!err)
		mw->rkey = wr.bind_mw.rkey;
	return err;
}

bool sv_mw_region_close(uint32_t lkey)
{
	struct area *area = sv_area_own();
	bool unbound;

	pthread_mutex_lock(&area->mw_lock);
	unbound = !area->windows[lkey >> 16];
	/* messages that have arrived find the key until it is withdrawn */
	if (unbound)
		sv_region_retire(lkey);
	pthread_mutex_unlock(&area->mw_lock);
	return unbound;
}

/* ---- by work requests ---- */

/*
 * Whether the key is one of the window: same number and generation. The lowest 8 bits belong to
 * the consumer.
 */
static bool key_is_of(uint32_t key, const struct ibv_mw *mw)
{
	return !((key ^ mw->rkey) >> 8);
}

/*
 * Stores the window's key, whose upper bits name the window, and the region's key in the request.
 * Both objects may be destroyed, and their memory reused, before the request is executed.
 */
void sv_mw_hold_bind(struct ibv_send_wr *held)
{
	const struct ibv_mr *mr = held->bind_mw.bind_info.mr;
	const struct ibv_mw *mw = held->bind_mw.mw;

	if (!mw || !key_is_of(held->bind_mw.rkey, mw))
		held->bind_mw.rkey = 0; /* no window: the bind fails */
	held->wr.rdma.rkey = mr ? mr->lkey : 0;
	held->bind_mw.mw = NULL;
	held->bind_mw.bind_info.mr = NULL;
}

static bool bind_is_allowed(const struct sv_qp *qp, uint32_t lkey,
			    const struct ibv_mw_bind_info *info, uint64_t *va)
{
	unsigned access = info->mw_access_flags & ~(unsigned)IBV_ACCESS_OPTIONAL_RANGE,
		 need = IBV_ACCESS_MW_BIND;

	if (access & ~(unsigned)(WINDOW_ACCESS | IBV_ACCESS_LOCAL_WRITE))
		return false; /* LOCAL_WRITE, which some programs add, is a right of the region */
	if (access & (IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC))
		need |= IBV_ACCESS_LOCAL_WRITE;
	return region_allows(qp->regions, lkey, qp->pd, info->addr, info->length, need, va);
}

/* A window lies in the file of its region, if that is known yet. */
static void file_copy(struct region_entry *window, const struct region_entry *region)
{
	/* acquire: pairs with find_locked */
	uint32_t file = atomic_load_explicit(&region->file, memory_order_acquire);
	uint64_t at = atomic_load_explicit(&region->at, memory_order_relaxed);

	atomic_store_explicit(&window->at, at + (window->addr - region->addr),
			      memory_order_relaxed);
	/* release: pairs with sv_direct_find */
	atomic_store_explicit(&window->file, file, memory_order_release);
}

static int mw_bind_locked(struct sv_qp *qp, struct sv_mw *mw, uint32_t key, uint32_t lkey,
			  const struct ibv_mw_bind_info *info)
{
	const struct region_entry *region = &qp->regions[lkey >> 16];
	bool type2 = mw->ibv.type == IBV_MW_TYPE_2;
	struct region_entry entry = {
		.type = type2 ? REGION_MW2 : REGION_MW1,
		.pd = qp->pd,
		.qpn = type2 ? qp->ibv.qp_num : 0,
		.access = info->mw_access_flags & WINDOW_ACCESS & ~(unsigned)IBV_ACCESS_ZERO_BASED,
		.length = info->length,
		.iova = info->mw_access_flags & IBV_ACCESS_ZERO_BASED ? 0 : info->addr,
	};

	if (info->length && !bind_is_allowed(qp, lkey, info, &entry.addr))
		return IBV_WC_MW_BIND_ERR;
	file_copy(&entry, region);
	if (type2 && (mw->lkey || !info->length))
		return IBV_WC_MW_BIND_ERR;
	if (mw->lkey)
		sv_region_withdraw(mw->key);
	mw_unbind_locked(mw);
	if (!info->length)
		return IBV_WC_SUCCESS;
	mw->lkey = lkey;
	mw->key = key;
	sv_area_own()->windows[lkey >> 16]++;
	atomic_store_explicit(&sv_area_own()->by_peers->invalidated[key >> 16], 0,
			      memory_order_relaxed);
	sv_region_publish(key, &entry);
	if (type2)
		mw->ibv.rkey = key;
	return IBV_WC_SUCCESS;
}

int sv_mw_execute_bind(struct sv_qp *qp, const struct ibv_send_wr *held)
{
	uint32_t key = held->bind_mw.rkey, lkey = held->wr.rdma.rkey;
	int status = IBV_WC_MW_BIND_ERR;
	struct sv_mw *mw;

	pthread_mutex_lock(&sv_area_own()->mw_lock);
	mw = sv_area_own()->mw[key >> 16];
	if (mw && key_is_of(key, &mw->ibv) && mw->ibv.pd == qp->ibv.pd)
		status = mw_bind_locked(qp, mw, key, lkey, &held->bind_mw.bind_info);
	pthread_mutex_unlock(&sv_area_own()->mw_lock);
	return status;
}

/* The type 2 window of this QP that is bound with the key; NULL if there is none. */
static struct sv_mw *mw_find_locked(const struct sv_qp *qp, uint32_t key)
{
	struct sv_mw *mw = sv_area_own()->mw[key >> 16];

	return mw && mw->lkey && mw->key == key && mw->ibv.type == IBV_MW_TYPE_2 &&
			       qp->regions[key >> 16].qpn == qp->ibv.qp_num
		       ? mw
		       : NULL;
}

int sv_mw_execute_invalidate(struct sv_qp *qp, uint32_t key)
{
	struct sv_mw *mw;

	pthread_mutex_lock(&sv_area_own()->mw_lock);
	mw = mw_find_locked(qp, key);
	if (mw) {
		sv_region_withdraw(key);
		mw_unbind_locked(mw);
	}
	pthread_mutex_unlock(&sv_area_own()->mw_lock);
	return mw ? IBV_WC_SUCCESS : IBV_WC_MW_BIND_ERR;
}

/* ---- what lies under a key ---- */

/* The key of the region under a window; a region's own; 0 if the key is none any more. */
static uint32_t region_under_locked(uint32_t key)
{
	const struct sv_mw *mw = sv_area_own()->mw[key >> 16];

	return !mw ? key : mw->lkey && mw->key == key ? mw->lkey : 0;
}

uint32_t sv_mw_region_under(uint32_t key)
{
	uint32_t lkey;

	pthread_mutex_lock(&sv_area_own()->mw_lock);
	lkey = region_under_locked(key);
	pthread_mutex_unlock(&sv_area_own()->mw_lock);
	return lkey;
}

void sv_mw_file_answer(struct sv_peer *peer, uint32_t key)
{
	struct area *area = sv_area_own();
	uint32_t lkey = sv_mw_region_under(key);

	sv_file_find(lkey); /* reads /proc: not with the lock, for which binds wait */
	pthread_mutex_lock(&area->mw_lock);
	lkey = region_under_locked(key);
	if (lkey && lkey != key)
		file_copy(&area->by_owner->region[key >> 16], &area->by_owner->region[lkey >> 16]);
	sv_file_answer(peer, key, sv_file_find(lkey));
	pthread_mutex_unlock(&area->mw_lock);
}

/* ---- by a peer's message ---- */

bool sv_mw_may_invalidate(const struct sv_remote_rq *remote, uint32_t key)
{
	uint64_t va;

	return remote->peer->by_owner->region[key >> 16].type == REGION_MW2 &&
	       rdma_allows(remote, key, remote->peer->by_owner->region[key >> 16].iova, 0, 0, &va);
}

void sv_mw_invalidate_remote(struct sv_remote_rq *remote, uint32_t key)
{
	atomic_store_explicit(&remote->peer->by_peers->invalidated[key >> 16], key,
			      memory_order_relaxed);
}

/* Needs no quiesce: the only initiator that may use the window has invalidated it itself. */
bool sv_mw_invalidated(struct sv_qp *qp, uint32_t key)
{
	struct sv_mw *mw;

	pthread_mutex_lock(&sv_area_own()->mw_lock);
	mw = mw_find_locked(qp, key);
	if (mw) {
		atomic_store_explicit(&sv_area_own()->by_owner->region[key >> 16].key, 0,
				      memory_order_relaxed);
		mw_unbind_locked(mw);
	}
	pthread_mutex_unlock(&sv_area_own()->mw_lock);
	return mw;
}
