/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* Reading and printing counters. */
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>
#include "dapl/udapl/ep/ep.h"
#include "dapl/udapl/ext/ext.h"
#include "util/cancel.h"

static const char *const ia_names[] = {
	"DCNT_IA_PZ_CREATE",
	"DCNT_IA_PZ_FREE",
	"DCNT_IA_LMR_CREATE",
	"DCNT_IA_LMR_FREE",
	"DCNT_IA_RMR_CREATE",
	"DCNT_IA_RMR_FREE",
	"DCNT_IA_PSP_CREATE",
	"DCNT_IA_PSP_CREATE_ANY",
	"DCNT_IA_PSP_FREE",
	"DCNT_IA_RSP_CREATE",
	"DCNT_IA_RSP_FREE",
	"DCNT_IA_EVD_CREATE",
	"DCNT_IA_EVD_FREE",
	"DCNT_IA_EP_CREATE",
	"DCNT_IA_EP_FREE",
	"DCNT_IA_SRQ_CREATE",
	"DCNT_IA_SRQ_FREE",
	"DCNT_IA_SP_CR",
	"DCNT_IA_SP_CR_ACCEPTED",
	"DCNT_IA_SP_CR_REJECTED",
	"DCNT_IA_MEM_ALLOC",
	"DCNT_IA_MEM_ALLOC_DATA",
	"DCNT_IA_MEM_FREE",
	"DCNT_IA_ASYNC_ERROR",
	"DCNT_IA_ASYNC_QP_ERROR",
	"DCNT_IA_ASYNC_CQ_ERROR",
	"DCNT_IA_CM_LISTEN",
	"DCNT_IA_CM_REQ_TX",
	"DCNT_IA_CM_REQ_RX",
	"DCNT_IA_CM_REP_TX",
	"DCNT_IA_CM_REP_RX",
	"DCNT_IA_CM_RTU_TX",
	"DCNT_IA_CM_RTU_RX",
	"DCNT_IA_CM_USER_REJ_TX",
	"DCNT_IA_CM_USER_REJ_RX",
	"DCNT_IA_CM_ACTIVE_EST",
	"DCNT_IA_CM_PASSIVE_EST",
	"DCNT_IA_CM_AH_REQ_TX",
	"DCNT_IA_CM_AH_REQ_RX",
	"DCNT_IA_CM_AH_RESOLVED",
	"DCNT_IA_CM_DREQ_TX",
	"DCNT_IA_CM_DREQ_RX",
	"DCNT_IA_CM_DREP_TX",
	"DCNT_IA_CM_DREP_RX",
	"DCNT_IA_CM_MRA_TX",
	"DCNT_IA_CM_MRA_RX",
	"DCNT_IA_CM_REQ_FULLQ_POLL",
	"DCNT_IA_CM_ERR",
	"DCNT_IA_CM_ERR_REQ_FULLQ",
	"DCNT_IA_CM_ERR_REQ_DUP",
	"DCNT_IA_CM_ERR_REQ_RETRY",
	"DCNT_IA_CM_ERR_REP_DUP",
	"DCNT_IA_CM_ERR_REP_RETRY",
	"DCNT_IA_CM_ERR_RTU_DUP",
	"DCNT_IA_CM_ERR_RTU_RETRY",
	"DCNT_IA_CM_ERR_REFUSED",
	"DCNT_IA_CM_ERR_RESET",
	"DCNT_IA_CM_ERR_TIMEOUT",
	"DCNT_IA_CM_ERR_REJ_TX",
	"DCNT_IA_CM_ERR_REJ_RX",
	"DCNT_IA_CM_ERR_DREQ_DUP",
	"DCNT_IA_CM_ERR_DREQ_RETRY",
	"DCNT_IA_CM_ERR_DREP_DUP",
	"DCNT_IA_CM_ERR_DREP_RETRY",
	"DCNT_IA_CM_ERR_MRA_DUP",
	"DCNT_IA_CM_ERR_MRA_RETRY",
	"DCNT_IA_CM_ERR_UNEXPECTED",
	"DCNT_IA_LNK_ERR_RCV",
	"DCNT_IA_LNK_ERR_RCV_REM_PHYS",
	"DCNT_IA_LNK_ERR_RCV_CONSTRAINT",
	"DCNT_IA_LNK_ERR_XMT_DISCARDS",
	"DCNT_IA_LNK_ERR_XMT_CONTRAINT",
	"DCNT_IA_LNK_ERR_INTEGRITY",
	"DCNT_IA_LNK_ERR_EXC_BUF_OVERRUN",
	"DCNT_IA_LNK_WARN_RCV_SW_RELAY",
	"DCNT_IA_LNK_WARN_XMT_WAIT",
	"DCNT_IA_DIAG_ERR_RQ_RAE",
	"DCNT_IA_DIAG_ERR_RQ_OOS",
	"DCNT_IA_DIAG_ERR_RQ_RIRE",
	"DCNT_IA_DIAG_ERR_RQ_UDSDPRD",
	"DCNT_IA_DIAG_ERR_SQ_RAE",
	"DCNT_IA_DIAG_ERR_SQ_OOS",
	"DCNT_IA_DIAG_ERR_SQ_RIRE",
	"DCNT_IA_DIAG_ERR_SQ_RREE",
	"DCNT_IA_DIAG_ERR_SQ_TREE",
};

static const char *const ep_names[] = {
	"DCNT_EP_CONNECT",	   "DCNT_EP_DISCONNECT",     "DCNT_EP_POST_SEND",
	"DCNT_EP_POST_SEND_DATA",  "DCNT_EP_POST_SEND_UD",   "DCNT_EP_POST_SEND_UD_DATA",
	"DCNT_EP_POST_RECV",	   "DCNT_EP_POST_RECV_DATA", "DCNT_EP_POST_WRITE",
	"DCNT_EP_POST_WRITE_DATA", "DCNT_EP_POST_WRITE_IMM", "DCNT_EP_POST_WRITE_IMM_DATA",
	"DCNT_EP_POST_READ",	   "DCNT_EP_POST_READ_DATA", "DCNT_EP_POST_CMP_SWAP",
	"DCNT_EP_POST_FETCH_ADD",  "DCNT_EP_RECV",	     "DCNT_EP_RECV_DATA",
	"DCNT_EP_RECV_UD",	   "DCNT_EP_RECV_UD_DATA",   "DCNT_EP_RECV_IMM",
	"DCNT_EP_RECV_IMM_DATA",   "DCNT_EP_RECV_RDMA_IMM",  "DCNT_EP_RECV_RDMA_IMM_DATA",
};

static const char *const evd_names[] = {
	"DCNT_EVD_WAIT",	 "DCNT_EVD_WAIT_BLOCKED",	"DCNT_EVD_WAIT_NOTIFY",
	"DCNT_EVD_DEQUEUE",	 "DCNT_EVD_DEQUEUE_FOUND",	"DCNT_EVD_DEQUEUE_NOT_FOUND",
	"DCNT_EVD_DEQUEUE_POLL", "DCNT_EVD_DEQUEUE_POLL_FOUND", "DCNT_EVD_CONN_CALLBACK",
	"DCNT_EVD_DTO_CALLBACK",
};

_Static_assert(sizeof(ia_names) / sizeof(ia_names[0]) == DCNT_IA_ALL_COUNTERS, "of an IA");
_Static_assert(sizeof(ep_names) / sizeof(ep_names[0]) == DCNT_EP_ALL_COUNTERS, "of an EP");
_Static_assert(sizeof(evd_names) / sizeof(evd_names[0]) == DCNT_EVD_ALL_COUNTERS, "of an EVD");

struct view {
	struct obj *obj;
	uint64_t (*value)(struct obj *obj, int counter);
	uint64_t *base;
	const char *const *names;
	int count; /* 0 for an object without counters */
};

/*
 * Guards the base values of the counters, which only readers use. Acquired before the locks of the
 * counters.
 */
static pthread_mutex_t base_lock = PTHREAD_MUTEX_INITIALIZER;

void ext_counters_fork_child(void)
{
	base_lock = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
}

static uint64_t ia_value(struct obj *obj, int counter)
{
	struct dapl_ia *ia = (struct dapl_ia *)obj;

	return atomic_load_explicit(&ia->counters.value[counter], memory_order_relaxed);
}

static uint64_t read_under(struct lock *lock, const uint64_t *value)
{
	uint64_t now;

	lock_acquire(lock);
	now = *value;
	lock_release(lock);
	return now;
}

/* The lock that guards the counted action guards the counter. */
static uint64_t ep_value(struct obj *obj, int counter)
{
	struct dapl_ep *ep = (struct dapl_ep *)obj;
	const uint64_t *value = &ep->end.counters.value[ep_counter_at((unsigned)counter)];
	uint64_t now;

	if (!ep_lock(ep))
		return 0;
	if (counter == DCNT_EP_POST_RECV || counter == DCNT_EP_POST_RECV_DATA)
		now = read_under(&ep->end.recv_lock, value);
	else if (counter >= DCNT_EP_POST_SEND && counter < DCNT_EP_RECV)
		now = read_under(&ep->end.post_lock, value);
	else if (counter >= DCNT_EP_RECV && ep->recv_evd)
		now = read_under(&ep->recv_evd->lock, value);
	else
		now = *value;
	ep_unlock(ep);
	return now;
}

static uint64_t evd_value(struct obj *obj, int counter)
{
	struct dapl_evd *evd = (struct dapl_evd *)obj;
	uint64_t *value = evd->counters.value, now;

	lock_acquire(&evd->lock);
	now = value[counter];
	if (counter == DCNT_EVD_DEQUEUE)
		now = value[DCNT_EVD_DEQUEUE_FOUND] + value[DCNT_EVD_DEQUEUE_NOT_FOUND];
	else if (counter == DCNT_EVD_DEQUEUE_POLL)
		now += value[DCNT_EVD_DEQUEUE_POLL_FOUND];
	lock_release(&evd->lock);
	return now;
}

static struct view view_of(DAT_HANDLE handle)
{
	struct dapl_evd *evd = evd_from(handle);
	struct dapl_ep *ep = ep_from(handle);
	struct dapl_ia *ia = ia_from(handle);

	if (ia)
		return (struct view){ &ia->obj, ia_value, ia->counters.base, ia_names,
				      DCNT_IA_ALL_COUNTERS };
	if (ep)
		return (struct view){ &ep->obj, ep_value, ep->end.counters.base, ep_names,
				      DCNT_EP_ALL_COUNTERS };
	if (evd)
		return (struct view){ &evd->obj, evd_value, evd->counters.base, evd_names,
				      DCNT_EVD_ALL_COUNTERS };
	return (struct view){ .count = 0 };
}

/* Finds the object and the counter of a call, or returns E(INVALID_HANDLE) or ARG2. */
static DAT_RETURN check(DAT_HANDLE handle, int counter, struct view *view)
{
	*view = view_of(handle);
	if (!view->count)
		return DAT_ERROR(DAT_INVALID_HANDLE, 0);
	if (counter < 0 || counter > view->count)
		return DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
	return DAT_SUCCESS;
}

static uint64_t read_one(const struct view *view, int counter, int reset)
{
	uint64_t value, base;

	pthread_mutex_lock(&base_lock);
	value = view->value(view->obj, counter);
	base = view->base[counter];
	if (reset)
		view->base[counter] = value;
	pthread_mutex_unlock(&base_lock);
	return value - base;
}

DAT_RETURN ext_query_counters(DAT_HANDLE handle, va_list args)
{
	CANCEL_OFF_HERE;
	int counter = va_arg(args, int);
	DAT_UINT64 *out = va_arg(args, DAT_UINT64 *);
	int reset = va_arg(args, int), i;
	struct view view;
	DAT_RETURN status = check(handle, counter, &view);

	if (status != DAT_SUCCESS)
		return status;
	if (!out)
		return DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG3);
	for (i = 0; i < view.count; i++)
		if (i == counter || counter == view.count)
			out[i] = read_one(&view, i, reset);
	return DAT_SUCCESS;
}

DAT_RETURN ext_print_counters(DAT_HANDLE handle, va_list args)
{
	CANCEL_OFF_HERE;
	int counter = va_arg(args, int), reset = va_arg(args, int), i;
	char host[256] = "";
	struct view view;
	DAT_RETURN status = check(handle, counter, &view);

	if (status != DAT_SUCCESS)
		return status;
	if (gethostname(host, sizeof(host) - 1))
		host[0] = 0;
	for (i = 0; i < view.count; i++)
		if (i == counter || counter == view.count)
			printf(" %s:0x%x: %s = %" PRIu64 " \n", host, (unsigned)getpid(),
			       view.names[i], read_one(&view, i, reset));
	return DAT_SUCCESS;
}
