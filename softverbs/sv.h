/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* The data path's objects around their public structs, and what other rooms may ask of them. */
#ifndef SV_SV_H
#define SV_SV_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>
#include "softverbs/api.h"
#include "softverbs/async.h"
#include "softverbs/context.h"
#include "softverbs/token.h"
#include "softverbs/device.h"
#include "softverbs/peer.h"
#include "util/lock.h"

#define SV_LINE 64

#define container(type, member, public) \
	((struct type *)(void *)((char *)(public) - offsetof(struct type, member)))

#define likely(x)   __builtin_expect(!!(x), 1)
#define unlikely(x) __builtin_expect(!!(x), 0)

/*
 * Has the line of `p` come as to somebody who writes to it: no other processor keeps a copy. The
 * builtin says so only to compilers told of the instruction, which is as old as x86-64; a processor
 * without it passes over it.
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
	struct ibv_pd ibv; /* handle: the number that regions and QPs are compared by; unique in the
			      process, not 0 */
	/* MRs, QPs, SRQs, windows, address handles: must be 0 for ibv_dealloc_pd */
	atomic_uint users;
};

struct sv_mr {
	struct ibv_mr ibv;   /* lkey and rkey are equal */
	atomic_uint windows; /* bound to it */
};

struct sv_channel {
	struct ibv_comp_channel ibv;
	uint32_t id; /* index:16 | generation:16, never 0; how peers ask for the descriptor */
	struct sv_tokens tokens;
	atomic_bool owed;     /* there may be fewer tokens than events: readers leave one */
	pthread_mutex_t lock; /* guards cqs; taken before a CQ's */
	TAILQ_HEAD(, sv_cq) cqs;
};

struct sv_cq;  /* cq.h */
struct sv_qp;  /* qp.h */
struct sv_srq; /* srq.h */

static inline struct sv_pd *pd_of(struct ibv_pd *ibv)
{
	return container(sv_pd, ibv, ibv);
}

static inline struct sv_mr *mr_of(struct ibv_mr *ibv)
{
	return container(sv_mr, ibv, ibv);
}

static inline struct sv_channel *channel_of(struct ibv_comp_channel *ibv)
{
	return container(sv_channel, ibv, ibv);
}

/*
 * area.c: a word that is 1 in the process that made the runtime and 0 in its forked children. Each
 * object keeps the pointer, so that the fast path of an inherited object costs no call.
 */
const uint32_t *area_alive(void);

/* For context.c: the slots of context.ops and of struct verbs_context that the data path fills. */
int qp_post_send(struct ibv_qp *ibv, struct ibv_send_wr *wr, struct ibv_send_wr **bad);
int qp_post_recv(struct ibv_qp *ibv, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad);
int srq_post_recv(struct ibv_srq *ibv, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad);
int cq_poll(struct ibv_cq *ibv, int count, struct ibv_wc *wc);
int cq_arm(struct ibv_cq *ibv, int solicited_only);
struct ibv_mw *mw_alloc(struct ibv_pd *ibv, enum ibv_mw_type type);
int mw_dealloc(struct ibv_mw *ibv);
int mw_bind(struct ibv_qp *ibv, struct ibv_mw *mw, struct ibv_mw_bind *bind);
struct ibv_cq_ex *cq_create_ex(struct ibv_context *context, struct ibv_cq_init_attr_ex *attr);
struct ibv_qp *qp_create_ex(struct ibv_context *context, struct ibv_qp_init_attr_ex *attr);

/* For qp_modify.c: the real state, which an error changes at any moment. */
enum ibv_qp_state qp_state(struct ibv_qp *ibv);
/*
 * Carries out a modification that qp_rules_check allowed: keeps the attributes of the mask, enters
 * the state. Fails with EINVAL when the state is no longer `from`; the caller checks again. Sets
 * ibv->state. 0 or errno.
 */
int qp_enter_state(struct ibv_qp *ibv, enum ibv_qp_state from, enum ibv_qp_state to,
		   const struct ibv_qp_attr *attr, int mask);
/* All attributes as they are now, state and capabilities included. */
void qp_attributes(struct ibv_qp *ibv, struct ibv_qp_attr *attr, struct ibv_qp_init_attr *init);

#endif
