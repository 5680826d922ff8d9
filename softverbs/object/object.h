/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/*
 * Room `object`: the objects of verbs, and the memory that they share with peers.
 *
 * shm.h is the layout of that memory, area.h what this process owns of it, region.h the keys. qp.h, cq.h, srq.h, wq.h and
 * channel.h are the objects; cq_event.c arms a CQ, and sends the one event that follows. A key that was withdrawn is not used any more once quiesce.h's calls have returned. path.h is what a transport puts at a QP.
 * Locks: a QP's `modify`, for its changes of state; the short locks in the order of base/lock_rank.h; the area's, for numbers and
 * tables.
 */
#ifndef SV_OBJECT_OBJECT_H
#define SV_OBJECT_OBJECT_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>
#include "softverbs/base/shared.h"
#include "softverbs/base/api.h"
#include "softverbs/object/async.h"
#include "softverbs/object/context.h"
#include "softverbs/object/token.h"
#include "softverbs/object/device.h"
#include "softverbs/link/peer.h"
#include "util/lock.h"

#define SV_LINE 64

#define container_of(type, member, public) \
	((struct type *)(void *)((char *)(public) - offsetof(struct type, member)))

#define likely(x)   __builtin_expect(!!(x), 1)
#define unlikely(x) __builtin_expect(!!(x), 0)

/*
 * Prefetches the line of `p` for writing: no other processor keeps a copy. The builtin emits
 * prefetchw only if the compiler's target has it, hence the assembler. Processors without the
 * instruction ignore it.
 */
static inline void fetch_to_write(const void *p)
{
#if defined(__x86_64__)
	__asm__ volatile("prefetchw %0" : : "m"(*(const char *)p));
#else
	__builtin_prefetch(p, 1);
#endif
}

struct sv_pd {
	/*
	 * The handle is the PD's number, unique in the process and not 0; regions and QPs compare
	 * it.
	 */
	struct ibv_pd ibv;
	/* MRs, QPs, SRQs, memory windows, address handles; must be 0 for ibv_dealloc_pd */
	atomic_uint users;
};

struct sv_mr {
	struct ibv_mr ibv; /* lkey and rkey are equal */
	void *map;	   /* of a region of a descriptor: what the device has mapped (dmabuf.c) */
	size_t map_size;
};

struct sv_channel {
	struct ibv_comp_channel ibv;
	uint32_t id; /* index:16 | generation:16, never 0; peers name the channel by it */
	struct sv_tokens tokens;
	atomic_bool owed;     /* there may be fewer tokens than events: each reader writes one */
	pthread_mutex_t lock; /* guards cqs; acquired before a CQ's lock */
	TAILQ_HEAD(, sv_cq) cqs;
};

struct sv_cq;  /* cq.h */
struct sv_qp;  /* qp.h */
struct sv_srq; /* srq.h */

static inline struct sv_pd *pd_of(struct ibv_pd *ibv)
{
	return container_of(sv_pd, ibv, ibv);
}

static inline struct sv_mr *mr_of(struct ibv_mr *ibv)
{
	return container_of(sv_mr, ibv, ibv);
}

static inline struct sv_channel *channel_of(struct ibv_comp_channel *ibv)
{
	return container_of(sv_channel, ibv, ibv);
}

/*
 * area.c: a word that is 1 in the process that opened the runtime and 0 in its forked children.
 * Each object keeps the pointer, so that the check for an inherited object costs the fast path no
 * call.
 */
SV_SHARED const uint32_t *sv_area_alive(void);

/*
 * For context.c: the entries of context.ops and of struct verbs_context that the data path
 * implements.
 */
int sv_qp_post_send(struct ibv_qp *ibv, struct ibv_send_wr *wr, struct ibv_send_wr **bad);
int sv_qp_post_recv(struct ibv_qp *ibv, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad);
int sv_srq_post_recv(struct ibv_srq *ibv, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad);
int sv_cq_poll(struct ibv_cq *ibv, int count, struct ibv_wc *wc);
int sv_cq_arm(struct ibv_cq *ibv, int solicited_only);
struct ibv_mw *sv_mw_alloc(struct ibv_pd *ibv, enum ibv_mw_type type);
int sv_mw_dealloc(struct ibv_mw *ibv);
int sv_mw_bind(struct ibv_qp *ibv, struct ibv_mw *mw, struct ibv_mw_bind *bind);
struct ibv_cq_ex *sv_cq_create_ex(struct ibv_context *context, struct ibv_cq_init_attr_ex *attr);
struct ibv_qp *sv_qp_create_ex(struct ibv_context *context, struct ibv_qp_init_attr_ex *attr);

/* For qp_modify.c: returns the present state, which an error may change at any time. */
enum ibv_qp_state sv_qp_state(struct ibv_qp *ibv);
/*
 * Carries out a modification that sv_qp_rules_check allowed: stores the attributes of the mask,
 * enters state `to`, sets ibv->state. 0 or errno. EINVAL if the state is no longer `from`; the
 * caller checks again.
 */
int sv_qp_enter_state(struct ibv_qp *ibv, enum ibv_qp_state from, enum ibv_qp_state to,
		      const struct ibv_qp_attr *attr, int mask);
/* Copies the current attributes, state and capabilities included. */
void sv_qp_attributes(struct ibv_qp *ibv, struct ibv_qp_attr *attr, struct ibv_qp_init_attr *init);

#endif
