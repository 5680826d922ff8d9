/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* Memory windows: made, bound, taken back by either side, destroyed. */
#include <errno.h>
#include <stdlib.h>
#include "softverbs/mw.h"
#include "softverbs/region.h"
#include "softverbs/rdma.h"

#define WINDOW_ACCESS                                                                  \
	(IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC | \
	 IBV_ACCESS_ZERO_BASED)

struct sv_mw {
	struct ibv_mw ibv;
	struct sv_mr *mr; /* bound to; area's mw_lock */
	uint32_t key;	  /* bound with; the same lock */
};

static struct sv_mw *mw_of(struct ibv_mw *ibv)
{
	return container(sv_mw, ibv, ibv);
}

struct ibv_mw *mw_alloc(struct ibv_pd *ibv, enum ibv_mw_type type)
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
		mw->ibv.rkey = region_reserve();
	if (!mw || !mw->ibv.rkey) {
		free(mw);
		errno = ENOMEM;
		return NULL;
	}
	mw->ibv.context = ibv->context;
	mw->ibv.pd = ibv;
	mw->ibv.handle = mw->ibv.rkey >> 16;
	mw->ibv.type = type;
	pthread_mutex_lock(&area_own()->mw_lock);
	area_own()->mw[mw->ibv.handle] = mw;
	pthread_mutex_unlock(&area_own()->mw_lock);
	atomic_fetch_add_explicit(&pd_of(ibv)->users, 1, memory_order_relaxed);
	return &mw->ibv;
}

static void mw_unbind_locked(struct sv_mw *mw)
{
	if (!mw->mr)
		return;
	/* release: the MR is not looked at any more */
	atomic_fetch_sub_explicit(&mw->mr->windows, 1, memory_order_release);
	mw->mr = NULL;
	mw->key = 0;
}

int mw_dealloc(struct ibv_mw *ibv)
{
	struct sv_mw *mw = mw_of(ibv);
	struct area *area = area_own();

	if (!context_is_ours(ibv->context))
		return ENODEV;
	pthread_mutex_lock(&area->mw_lock);
	if (mw->mr)
		region_withdraw(mw->key);
	mw_unbind_locked(mw);
	area->mw[ibv->handle] = NULL;
	pthread_mutex_unlock(&area->mw_lock);
	region_release(ibv->handle << 16);
	/* release: see ibv_dealloc_pd */
	atomic_fetch_sub_explicit(&pd_of(ibv->pd)->users, 1, memory_order_release);
	free(mw);
	return 0;
}

/* The key is the caller's at once; it means something when the work request is executed. */
int mw_bind(struct ibv_qp *ibv, struct ibv_mw *mw, struct ibv_mw_bind *bind)
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
	err = qp_post_send(ibv, &wr, &bad);
	if (!err)
		mw->rkey = wr.bind_mw.rkey;
	return err;
}

/* ---- executed by the send queue ---- */

static bool bind_is_allowed(const struct sv_qp *qp, const struct sv_mw *mw, uint32_t key,
			    const struct ibv_mw_bind_info *info, uint64_t *va)
{
	unsigned access = info->mw_access_flags & ~(unsigned)IBV_ACCESS_OPTIONAL_RANGE,
		 need = IBV_ACCESS_MW_BIND;

	if (!info->mr || mw->ibv.pd != qp->ibv.pd || key >> 16 != mw->ibv.handle ||
	    access & ~(unsigned)(WINDOW_ACCESS | IBV_ACCESS_LOCAL_WRITE))
		return false; /* the local right, which programs add, is the region's */
	if (access & (IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC))
		need |= IBV_ACCESS_LOCAL_WRITE;
	return region_allows(qp->regions, info->mr->lkey, qp->pd, info->addr, info->length, need,
			     va);
}

static int bind_locked(struct sv_qp *qp, struct sv_mw *mw, uint32_t key,
		       const struct ibv_mw_bind_info *info)
{
	bool type2 = mw->ibv.type == IBV_MW_TYPE_2;
	struct ro_region entry = {
		.type = type2 ? REGION_MW2 : REGION_MW1,
		.pd = qp->pd,
		.qpn = type2 ? qp->ibv.qp_num : 0,
		.access = info->mw_access_flags & WINDOW_ACCESS & ~(unsigned)IBV_ACCESS_ZERO_BASED,
		.length = info->length,
		.iova = info->mw_access_flags & IBV_ACCESS_ZERO_BASED ? 0 : info->addr,
	};

	if (info->length && !bind_is_allowed(qp, mw, key, info, &entry.addr))
		return IBV_WC_MW_BIND_ERR;
	if (type2 && (mw->mr || !info->length))
		return IBV_WC_MW_BIND_ERR;
	if (mw->mr)
		region_withdraw(mw->key);
	mw_unbind_locked(mw);
	if (!info->length)
		return IBV_WC_SUCCESS;
	mw->mr = mr_of(info->mr);
	mw->key = key;
	atomic_fetch_add_explicit(&mw->mr->windows, 1, memory_order_relaxed);
	atomic_store_explicit(&area_own()->rw->invalidated[key >> 16], 0, memory_order_relaxed);
	region_publish(key, &entry);
	if (type2)
		mw->ibv.rkey = key;
	return IBV_WC_SUCCESS;
}

int mw_execute_bind(struct sv_qp *qp, const struct ibv_send_wr *wr)
{
	int status;

	pthread_mutex_lock(&area_own()->mw_lock);
	status = bind_locked(qp, mw_of(wr->bind_mw.mw), wr->bind_mw.rkey, &wr->bind_mw.bind_info);
	pthread_mutex_unlock(&area_own()->mw_lock);
	return status;
}

/* A bound window of type 2 of this QP; NULL if the key is none. */
static struct sv_mw *mw_find_locked(const struct sv_qp *qp, uint32_t key)
{
	struct sv_mw *mw = area_own()->mw[key >> 16];

	return mw && mw->mr && mw->key == key && mw->ibv.type == IBV_MW_TYPE_2 &&
			       qp->regions[key >> 16].qpn == qp->ibv.qp_num
		       ? mw
		       : NULL;
}

int mw_execute_invalidate(struct sv_qp *qp, uint32_t key)
{
	struct sv_mw *mw;

	pthread_mutex_lock(&area_own()->mw_lock);
	mw = mw_find_locked(qp, key);
	if (mw) {
		region_withdraw(key);
		mw_unbind_locked(mw);
	}
	pthread_mutex_unlock(&area_own()->mw_lock);
	return mw ? IBV_WC_SUCCESS : IBV_WC_MW_BIND_ERR;
}

/* ---- by the peer's message ---- */

bool mw_may_invalidate(const struct sv_tx *tx, uint32_t key)
{
	uint64_t va;

	return tx->peer->ro->region[key >> 16].type == REGION_MW2 &&
	       rdma_allows(tx, key, tx->peer->ro->region[key >> 16].iova, 0, 0, &va);
}

void mw_invalidate_remote(struct sv_tx *tx, uint32_t key)
{
	atomic_store_explicit(&tx->peer->rw->invalidated[key >> 16], key, memory_order_relaxed);
}

/* The only initiator that may use the window took it back itself: nobody has to be waited for. */
bool mw_invalidated(struct sv_qp *qp, uint32_t key)
{
	struct sv_mw *mw;

	pthread_mutex_lock(&area_own()->mw_lock);
	mw = mw_find_locked(qp, key);
	if (mw) {
		atomic_store_explicit(&area_own()->ro->region[key >> 16].key, 0,
				      memory_order_relaxed);
		mw_unbind_locked(mw);
	}
	pthread_mutex_unlock(&area_own()->mw_lock);
	return mw;
}
