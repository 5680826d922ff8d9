/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* Open and close of the device, and the table of its functions. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "softverbs/object/context.h"
#include "softverbs/object/device.h"
#include "softverbs/link/peer.h"
#include "softverbs/object/object.h"
#include "softverbs/verbs/context.h"
#include "util/cancel.h"
#include "util/log.h"

/* No-op: all memory is present, so there is nothing to prefetch. */
static int mr_advise(struct ibv_pd *pd, enum ibv_advise_mr_advice advice, uint32_t flags,
		     struct ibv_sge *sges, uint32_t count)
{
	(void)pd;
	(void)advice;
	(void)flags;
	(void)sges;
	(void)count;
	return 0;
}

/* For the inline functions of the header, a slot that is NULL means "not supported". */
static void context_fill(struct verbs_context *verbs, struct ibv_device *device)
{
	verbs->query_port = sv_device_query_port;
	verbs->advise_mr = mr_advise;
	verbs->create_cq_ex = sv_cq_create_ex;
	verbs->query_device_ex = sv_device_query_ex;
	verbs->create_qp_ex = sv_qp_create_ex;
	verbs->sz = sizeof(*verbs);

	verbs->context.device = device;
	verbs->context.ops.alloc_mw = sv_mw_alloc;
	verbs->context.ops.bind_mw = sv_mw_bind;
	verbs->context.ops.dealloc_mw = sv_mw_dealloc;
	verbs->context.ops.poll_cq = sv_cq_poll;
	verbs->context.ops.req_notify_cq = sv_cq_arm;
	verbs->context.ops.post_srq_recv = sv_srq_post_recv;
	verbs->context.ops.post_send = sv_qp_post_send;
	verbs->context.ops.post_recv = sv_qp_post_recv;
	verbs->context.cmd_fd = -1;
	verbs->context.async_fd = -1;
	verbs->context.num_comp_vectors = SV_COMP_VECTORS;
	verbs->context.abi_compat = __VERBS_ABI_IS_EXTENDED;
	pthread_mutex_init(&verbs->context.mutex, NULL);
}

static void context_free(struct sv_context *context)
{
	sv_async_close(context);
	pthread_mutex_destroy(&context->verbs.context.mutex);
	free(context);
}

struct ibv_context *sv_context_open(struct ibv_device *device, const struct sv_link_client *client)
{
	CANCEL_OFF_HERE;
	struct sv_context *context = calloc(1, sizeof(*context));
	int error;

	if (!context) {
		errno = ENOMEM;
		return NULL;
	}
	context_fill(&context->verbs, device);
	error = sv_async_open(context);
	if (!error)
		error = sv_runtime_hold(client);
	if (error) {
		log_at(LOG_ERROR, "%s: open: %s", device->name, strerror(error));
		context_free(context);
		errno = error;
		return NULL;
	}
	context->alive = sv_area_alive();
	return &context->verbs.context;
}

int ibv_close_device(struct ibv_context *ibv)
{
	CANCEL_OFF_HERE;
	struct sv_context *context = context_of(ibv);

	if (!context_is_ours(ibv)) {
		errno = ENODEV;
		return -1;
	}
	/* Returns success though objects are left: with a kernel device, the kernel frees them, and programs
	 * rely on that. acquire: the last user's accesses to the context precede its release. */
	if (atomic_load_explicit(&context->users, memory_order_acquire)) {
		log_at(LOG_WARN, "%s: closed with objects, which stay until the program ends",
		       ibv->device->name);
		return 0;
	}
	context_free(context);
	sv_runtime_release();
	return 0;
}
