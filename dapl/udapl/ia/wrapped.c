/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/*
 * The calls of the data path in wrappers. Cancellation is deferred until a call has returned, so that a thread whose cancel
 * type is asynchronous leaves no lock held; and each that is refused is logged: call, object, reason, argument.
 */
#include "dapl/udapl/ia/wrapped.h"
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

/* The body of a wrapper. The arguments stand in the order of the call of the API, the object first. */
#define WRAP(call, ...)                                                     \
	CANCEL_DEFER_HERE;                                                  \
	return traced("dat_" #call, #__VA_ARGS__, FIRST_OF(__VA_ARGS__, 0), \
		      dapl_##call(__VA_ARGS__))
#define FIRST_OF(first, ...) first

static DAT_RETURN wrapped_evd_wait(DAT_EVD_HANDLE evd, DAT_TIMEOUT timeout, DAT_COUNT threshold,
				   DAT_EVENT *event, DAT_COUNT *more)
{
	WRAP(evd_wait, evd, timeout, threshold, event, more);
}

static DAT_RETURN wrapped_evd_dequeue(DAT_EVD_HANDLE evd, DAT_EVENT *event)
{
	WRAP(evd_dequeue, evd, event);
}

static DAT_RETURN wrapped_cno_wait(DAT_CNO_HANDLE cno, DAT_TIMEOUT timeout, DAT_EVD_HANDLE *evd)
{
	WRAP(cno_wait, cno, timeout, evd);
}

static DAT_RETURN wrapped_cno_trigger(DAT_CNO_HANDLE cno, DAT_EVD_HANDLE *evd)
{
	WRAP(cno_trigger, cno, evd);
}

static DAT_RETURN wrapped_srq_post_recv(DAT_SRQ_HANDLE srq, DAT_COUNT segments,
					DAT_LMR_TRIPLET *iov, DAT_DTO_COOKIE cookie)
{
	WRAP(srq_post_recv, srq, segments, iov, cookie);
}

static DAT_RETURN wrapped_ep_post_send(DAT_EP_HANDLE ep, DAT_COUNT segments, DAT_LMR_TRIPLET *iov,
				       DAT_DTO_COOKIE cookie, DAT_COMPLETION_FLAGS flags)
{
	WRAP(ep_post_send, ep, segments, iov, cookie, flags);
}

static DAT_RETURN wrapped_ep_post_recv(DAT_EP_HANDLE ep, DAT_COUNT segments, DAT_LMR_TRIPLET *iov,
				       DAT_DTO_COOKIE cookie, DAT_COMPLETION_FLAGS flags)
{
	WRAP(ep_post_recv, ep, segments, iov, cookie, flags);
}

static DAT_RETURN wrapped_ep_post_rdma_read(DAT_EP_HANDLE ep, DAT_COUNT segments,
					    DAT_LMR_TRIPLET *iov, DAT_DTO_COOKIE cookie,
					    const DAT_RMR_TRIPLET *remote,
					    DAT_COMPLETION_FLAGS flags)
{
	WRAP(ep_post_rdma_read, ep, segments, iov, cookie, remote, flags);
}

static DAT_RETURN wrapped_ep_post_rdma_write(DAT_EP_HANDLE ep, DAT_COUNT segments,
					     DAT_LMR_TRIPLET *iov, DAT_DTO_COOKIE cookie,
					     const DAT_RMR_TRIPLET *remote,
					     DAT_COMPLETION_FLAGS flags)
{
	WRAP(ep_post_rdma_write, ep, segments, iov, cookie, remote, flags);
}

static DAT_RETURN wrapped_ep_post_send_with_invalidate(DAT_EP_HANDLE ep, DAT_COUNT segments,
						       DAT_LMR_TRIPLET *iov, DAT_DTO_COOKIE cookie,
						       DAT_COMPLETION_FLAGS flags,
						       DAT_BOOLEAN invalidate,
						       DAT_RMR_CONTEXT context)
{
	WRAP(ep_post_send_with_invalidate, ep, segments, iov, cookie, flags, invalidate, context);
}

static DAT_RETURN wrapped_rmr_bind(DAT_RMR_HANDLE rmr, DAT_LMR_HANDLE lmr,
				   const DAT_LMR_TRIPLET *triplet, DAT_MEM_PRIV_FLAGS privileges,
				   DAT_VA_TYPE va_type, DAT_EP_HANDLE ep, DAT_RMR_COOKIE cookie,
				   DAT_COMPLETION_FLAGS flags, DAT_RMR_CONTEXT *context)
{
	WRAP(rmr_bind, rmr, lmr, triplet, privileges, va_type, ep, cookie, flags, context);
}

static DAT_RETURN wrapped_ep_post_rdma_read_to_rmr(DAT_EP_HANDLE ep, const DAT_RMR_TRIPLET *local,
						   DAT_DTO_COOKIE cookie,
						   const DAT_RMR_TRIPLET *remote,
						   DAT_COMPLETION_FLAGS flags)
{
	WRAP(ep_post_rdma_read_to_rmr, ep, local, cookie, remote, flags);
}

/* The arguments have names only in the headers. */
static DAT_RETURN wrapped_operation(DAT_HANDLE handle, DAT_EXTENDED_OP op, va_list args)
{
	CANCEL_DEFER_HERE;
	return traced(ext_op_name(op), "", handle, dapl_extensions(handle, op, args));
}

/* The two that signal are async-signal-safe, which neither a log nor a change of the cancel type is. They hold no lock. */
static DAT_RETURN wrapped_extensions(DAT_HANDLE handle, DAT_EXTENDED_OP op, va_list args)
{
	if (op == DAT_EVD_SIGNAL_OP || op == DAT_CNO_SIGNAL_OP)
		return dapl_extensions(handle, op, args);
	return wrapped_operation(handle, op, args);
}

void wrapped_put(DAT_PROVIDER *table)
{
	table->evd_wait_func = wrapped_evd_wait;
	table->evd_dequeue_func = wrapped_evd_dequeue;
	table->cno_wait_func = wrapped_cno_wait;
	table->cno_trigger_func = wrapped_cno_trigger;
	table->srq_post_recv_func = wrapped_srq_post_recv;
	table->ep_post_send_func = wrapped_ep_post_send;
	table->ep_post_recv_func = wrapped_ep_post_recv;
	table->ep_post_rdma_read_func = wrapped_ep_post_rdma_read;
	table->ep_post_rdma_write_func = wrapped_ep_post_rdma_write;
	table->ep_post_send_with_invalidate_func = wrapped_ep_post_send_with_invalidate;
	table->ep_post_rdma_read_to_rmr_func = wrapped_ep_post_rdma_read_to_rmr;
	table->rmr_bind_func = wrapped_rmr_bind;
	table->handle_extendedop_func = wrapped_extensions;
}
