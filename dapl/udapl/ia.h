/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* The interface adapter: an open device with its objects and its async EVD. */
#ifndef DAPL_IA_H
#define DAPL_IA_H

#include <stdatomic.h>
#include <pthread.h>
#include <string.h>
#include "dapl/openib/ib.h"
#include "dapl/udapl/counters.h"
#include "dapl/udapl/obj.h"
#include "util/settings.h"

struct dapl_ep;
struct dapl_evd;
struct dapl_srq;
struct qp_table;

struct dapl_ia {
	struct obj obj;
	char name[DAT_NAME_MAX_LENGTH];
	struct ib_device *device; /* shared by all IAs on it */
	const struct ib_attr *attr;
	/* a copy for consumers, who may write a port into it */
	struct sockaddr_storage address;
	DAT_BOOLEAN thread_safe; /* as the registry lists the name */

	pthread_mutex_t lock; /* objects; the first, then SP, EP, SRQ, EVD */
	TAILQ_HEAD(, obj) objects[OBJ_KINDS];
	struct dapl_evd *async_evd; /* NULL: another instance has it; ia_all_lock */
	bool owns_async_evd;
	pthread_mutex_t no_cq_lock; /* innermost */
	struct ib_cq *no_cq;	    /* for the EP side without an EVD; on first need */
	struct qp_table *qp_table;  /* EP by QP number; read without a lock */
	TAILQ_ENTRY(dapl_ia) all;   /* ia_all */
	/* it has, or had, regions addressed from zero: see ep_inline_end; written with `lock` held */
	atomic_bool zero_based;
	/* the device owes us what it should say (ep_notice.c) */
	atomic_bool last_wqe_silent;
	struct ia_counters counters;
	/* what the kernel counted at a start; ext_ib_kernel.c */
	struct kernel_sample *kernel;
	struct ia_strings *strings; /* what dat_ia_query points at */
};

/*
 * Every open IA, oldest first, and what crosses from one to another: who has whose async EVD, and
 * the notices that wait for room in one (async.c). Order: after all locks but those of EVDs.
 */
TAILQ_HEAD(ia_list, dapl_ia);
extern struct ia_list ia_all;
extern pthread_mutex_t ia_all_lock;

/* Of either family, and no longer than it is. */
static inline void address_copy(struct sockaddr_storage *to, const struct sockaddr *from)
{
	memcpy(to, from,
	       from->sa_family == AF_INET6 ? sizeof(struct sockaddr_in6)
					   : sizeof(struct sockaddr_in));
}

static inline struct dapl_ia *ia_from(DAT_IA_HANDLE handle)
{
	return obj_from(handle, OBJ_IA);
}

static inline void ia_count(struct dapl_ia *ia, DAT_IA_COUNTERS which)
{
	counter_add(&ia->counters.value[which], 1);
}

/* The handle the consumer knows this IA by: libdat's index. */
DAT_IA_HANDLE ia_handle(struct dapl_ia *ia);
long ia_setting(const struct dapl_ia *ia, enum setting which); /* not for the data path */
DAT_RETURN ia_no_cq(struct dapl_ia *ia, struct ib_cq **cq);

/* The named attributes of an IA (ia_query.c), made at open, constant after it. */
DAT_RETURN ia_strings_create(struct dapl_ia *ia);
void ia_strings_destroy(struct dapl_ia *ia);

/* EP by QP number, for SRQ completions and async events. Set and clear under the EP's lock. */
DAT_RETURN qp_table_set(struct dapl_ia *ia, uint32_t qp_num, struct dapl_ep *ep);
void qp_table_clear(struct dapl_ia *ia, uint32_t qp_num);
struct dapl_ep *qp_table_find(const struct dapl_ia *ia, uint32_t qp_num);
DAT_RETURN qp_table_create(struct dapl_ia *ia);
void qp_table_destroy(struct dapl_ia *ia);

/* Async errors (async.c). Post to the IA's async EVD; full EVDs as the overflow rules have it. */
void async_post_ep_broken(struct dapl_ep *ep);
void async_post_evd_overflow(struct dapl_evd *evd);
void async_post_srq_low(struct dapl_srq *srq);
/* The last-WQE notice of an SRQ EP: kept in the EP and delivered when the async EVD has room. */
void async_post_last_wqe(struct dapl_ep *ep);
void async_cancel_last_wqe(struct dapl_ep *ep); /* if it still waits for room: reset, free */
void async_room(struct dapl_evd *evd); /* an async EVD that refused an event has room again */
void async_upcall(struct ib_device *device, enum ib_async_kind kind, void *owner);

#endif
