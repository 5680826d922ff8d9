/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* The interface adapter: an open device with its objects and its async EVD. */
#ifndef DAPL_IA_H
#define DAPL_IA_H

#include <stdatomic.h>
#include <pthread.h>
#include <string.h>
#include "dapl/openib/ib.h"
#include "dapl/udapl/base/counters.h"
#include "dapl/udapl/base/obj.h"
#include "dapl/udapl/base/task.h"
#include "util/settings.h"

struct dapl_cno;
struct dapl_ep;
struct dapl_evd;
struct qp_table;

struct dapl_ia {
	struct obj obj;
	char name[DAT_NAME_MAX_LENGTH];
	struct ib_device *device; /* shared by all IAs on it */
	const struct ib_attr *attr;
	/* a copy for consumers, which may write a port into it */
	struct sockaddr_storage address;
	DAT_BOOLEAN thread_safe; /* the name in the registry's list */

	pthread_mutex_t lock; /* the objects; the first kind, then SP, EP, SRQ, EVD */
	TAILQ_HEAD(, obj) objects[OBJ_KINDS];
	struct dapl_evd *async_evd; /* NULL if another instance owns it; guarded by ia_all_lock */
	bool owns_async_evd;
	pthread_mutex_t no_cq_lock; /* innermost */
	/* CQ for a side of an EP without an EVD; created on first use */
	struct ib_cq *no_cq;
	struct qp_table *qp_table; /* EP by QP number; read without a lock */
	TAILQ_ENTRY(dapl_ia) all;  /* in ia_all */
	uint64_t number;	   /* grows along ia_all; constant */
	/* the IA has or had zero-based regions: see ep_inline_update; written with `lock` held */
	atomic_bool zero_based;
	struct task task; /* IA_DUE_*; its deadline is that of the first notice */
	/* Last-WQE notices that are not posted yet, in the order of the terminal events (ep/notice.c). */
	pthread_mutex_t notices_lock; /* after those of EPs, before those of EVDs */
	TAILQ_HEAD(, dapl_ep) notices;
	atomic_bool last_wqe_silent; /* the device did not report the last WQE of the QP before */
	struct ia_counters counters;
	/* the kernel's counters at a start; ext/kernel_counters.c */
	struct kernel_sample *kernel;
	struct ia_strings *strings; /* memory that dat_ia_query points to */
};

/*
 * Every open IA, oldest first. ia_all_lock guards the list and the async_evd of each IA. Order: after all locks but
 * those of EVDs and devices. No event is posted with it held.
 */
TAILQ_HEAD(ia_list, dapl_ia);
extern struct ia_list ia_all;
extern pthread_mutex_t ia_all_lock;

/* Copies an address of either family, and no more bytes than it has. */
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

/* The consumer's handle of this IA, which is libdat's index. */
DAT_IA_HANDLE ia_handle(struct dapl_ia *ia);
long ia_setting(const struct dapl_ia *ia, enum setting which); /* not used by the data path */
DAT_RETURN ia_no_cq(struct dapl_ia *ia, struct ib_cq **cq);

/* The named attributes of an IA (ia/query.c), made at open, constant after it. */
DAT_RETURN ia_strings_create(struct dapl_ia *ia);
void ia_strings_destroy(struct dapl_ia *ia);

/* EP by QP number, for SRQ completions and async events. Set and clear under the EP's lock. */
DAT_RETURN qp_table_set(struct dapl_ia *ia, uint32_t qp_num, struct obj *ep);
void qp_table_clear(struct dapl_ia *ia, uint32_t qp_num);
struct obj *qp_table_find(const struct dapl_ia *ia, uint32_t qp_num);
DAT_RETURN qp_table_create(struct dapl_ia *ia);
void qp_table_destroy(struct dapl_ia *ia);

#define IA_DUE_NOTICES \
	0x1u /* the first notice may have become ready, or another one is the first */
void ia_task_run(struct task *task, unsigned mask);

/*
 * Async errors (evd/async.c), posted to the IA's async EVD; a full one drops them, as the overflow rules have it. The caller
 * holds no lock of an EVD.
 */
void async_post_ep_broken(struct obj *ep);
void async_post_evd_overflow(struct dapl_evd *evd);
void async_post_srq(struct obj *srq, DAT_COUNT reason);
/*
 * Posts a last-WQE notice. Returns false if the async EVD is full; IA_DUE_NOTICES is posted when it
 * has room.
 */
bool async_post_last_wqe(struct obj *ep);
/* Called when an async EVD that refused an event has room again. */
void async_room(struct dapl_evd *evd);
/* Posts an event about the device to each async EVD of its IAs. */
void async_post_device(const struct ib_device *device, DAT_EVENT_NUMBER number, DAT_COUNT reason);
/* Called by the event thread for async events of the device (ia/async_upcall.c). */
void async_upcall(struct ib_device *device, enum ib_async_kind kind, void *owner);

#endif
