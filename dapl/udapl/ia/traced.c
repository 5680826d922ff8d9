/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* The calls of the data path with a line for each that is refused: call, object, reason, argument. */
#include "dapl/udapl/ia/traced.h"
#include <dat2/dat_event_extensions.h>
#include "dapl/udapl/ext/ext.h"
#include "dapl/udapl/base/names.h"
#include "util/cancel.h"
#include "util/log.h"

/* Some of the calls may be cancelled, the log may not. */
static void traced_refusal(const char *call, const char *arguments, const void *handle,
			   DAT_RETURN status)
{
	CANCEL_OFF_HERE;
	refusal_log(call, arguments, handle, status);
}

/* A queue that is empty and a wait that is over have no error class. */
static DAT_RETURN traced(const char *call, const char *arguments, const void *handle,
			 DAT_RETURN status)
{
	if (status & DAT_CLASS_ERROR && log_on(LOG_TRACE))
		traced_refusal(call, arguments, handle, status);
	return status;
}

/* The arguments stand in the order of the call of the API, the object first. */
#define TRACED(call, ...) \
	traced("dat_" #call, #__VA_ARGS__, FIRST_OF(__VA_ARGS__, 0), dapl_##call(__VA_ARGS__))
#define FIRST_OF(first, ...) first

static DAT_RETURN traced_evd_wait(DAT_EVD_HANDLE evd, DAT_TIMEOUT timeout, DAT_COUNT threshold,
				  DAT_EVENT *event, DAT_COUNT *more)
{
	return TRACED(evd_wait, evd, timeout, threshold, event, more);
}

static DAT_RETURN traced_evd_dequeue(DAT_EVD_HANDLE evd, DAT_EVENT *event)
{
	return TRACED(evd_dequeue, evd, event);
}

static DAT_RETURN traced_cno_wait(DAT_CNO_HANDLE cno, DAT_TIMEOUT timeout, DAT_EVD_HANDLE *evd)
{
	return TRACED(cno_wait, cno, timeout, evd);
}

static DAT_RETURN traced_cno_trigger(DAT_CNO_HANDLE cno, DAT_EVD_HANDLE *evd)
{
	return TRACED(cno_trigger, cno, evd);
}

static DAT_RETURN traced_srq_post_recv(DAT_SRQ_HANDLE srq, DAT_COUNT segments, DAT_LMR_TRIPLET *iov,
				       DAT_DTO_COOKIE cookie)
{
	return TRACED(srq_post_recv, srq, segments, iov, cookie);
}

static DAT_RETURN traced_ep_post_send(DAT_EP_HANDLE ep, DAT_COUNT segments, DAT_LMR_TRIPLET *iov,
				      DAT_DTO_COOKIE cookie, DAT_COMPLETION_FLAGS flags)
{
	return TRACED(ep_post_send, ep, segments, iov, cookie, flags);
}

static DAT_RETURN traced_ep_post_recv(DAT_EP_HANDLE ep, DAT_COUNT segments, DAT_LMR_TRIPLET *iov,
				      DAT_DTO_COOKIE cookie, DAT_COMPLETION_FLAGS flags)
{
	return TRACED(ep_post_recv, ep, segments, iov, cookie, flags);
}

static DAT_RETURN traced_ep_post_rdma_read(DAT_EP_HANDLE ep, DAT_COUNT segments,
					   DAT_LMR_TRIPLET *iov, DAT_DTO_COOKIE cookie,
					   const DAT_RMR_TRIPLET *remote,
					   DAT_COMPLETION_FLAGS flags)
{
	return TRACED(ep_post_rdma_read, ep, segments, iov, cookie, remote, flags);
}

static DAT_RETURN traced_ep_post_rdma_write(DAT_EP_HANDLE ep, DAT_COUNT segments,
					    DAT_LMR_TRIPLET *iov, DAT_DTO_COOKIE cookie,
					    const DAT_RMR_TRIPLET *remote,
					    DAT_COMPLETION_FLAGS flags)
{
	return TRACED(ep_post_rdma_write, ep, segments, iov, cookie, remote, flags);
}

static DAT_RETURN traced_ep_post_send_with_invalidate(DAT_EP_HANDLE ep, DAT_COUNT segments,
						      DAT_LMR_TRIPLET *iov, DAT_DTO_COOKIE cookie,
						      DAT_COMPLETION_FLAGS flags,
						      DAT_BOOLEAN invalidate,
						      DAT_RMR_CONTEXT context)
{
	return TRACED(ep_post_send_with_invalidate, ep, segments, iov, cookie, flags, invalidate,
		      context);
}

static DAT_RETURN traced_ep_post_rdma_read_to_rmr(DAT_EP_HANDLE ep, const DAT_RMR_TRIPLET *local,
						  DAT_DTO_COOKIE cookie,
						  const DAT_RMR_TRIPLET *remote,
						  DAT_COMPLETION_FLAGS flags)
{
	return TRACED(ep_post_rdma_read_to_rmr, ep, local, cookie, remote, flags);
}

/* The two that signal are async-signal-safe, which a log is not. Their arguments have names only in the headers. */
static DAT_RETURN traced_extensions(DAT_HANDLE handle, DAT_EXTENDED_OP op, va_list args)
{
	DAT_RETURN status = dapl_extensions(handle, op, args);

	if (op == DAT_EVD_SIGNAL_OP || op == DAT_CNO_SIGNAL_OP)
		return status;
	return traced(ext_op_name(op), "", handle, status);
}

void traced_put(DAT_PROVIDER *table)
{
	table->evd_wait_func = traced_evd_wait;
	table->evd_dequeue_func = traced_evd_dequeue;
	table->cno_wait_func = traced_cno_wait;
	table->cno_trigger_func = traced_cno_trigger;
	table->srq_post_recv_func = traced_srq_post_recv;
	table->ep_post_send_func = traced_ep_post_send;
	table->ep_post_recv_func = traced_ep_post_recv;
	table->ep_post_rdma_read_func = traced_ep_post_rdma_read;
	table->ep_post_rdma_write_func = traced_ep_post_rdma_write;
	table->ep_post_send_with_invalidate_func = traced_ep_post_send_with_invalidate;
	table->ep_post_rdma_read_to_rmr_func = traced_ep_post_rdma_read_to_rmr;
	table->handle_extendedop_func = traced_extensions;
}
