/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* Opening and closing the device; which call of the verbs API reaches which function of ours. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "softverbs/context.h"
#include "softverbs/device.h"
#include "softverbs/peer.h"
#include "softverbs/sv.h"
#include "util/log.h"

/* All memory is present always: prefetching it is done before it begins. */
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

/* A slot that stays NULL means "not supported" to the inline functions of the header. */
static void context_fill(struct verbs_context *verbs, struct ibv_device *device)
{
	verbs->query_port = device_query_port;
	verbs->advise_mr = mr_advise;
	verbs->create_cq_ex = cq_create_ex;
	verbs->query_device_ex = device_query_ex;
	verbs->create_qp_ex = qp_create_ex;
	verbs->sz = sizeof(*verbs);

	verbs->context.device = device;
	verbs->context.ops.alloc_mw = mw_alloc;
	verbs->context.ops.bind_mw = mw_bind;
	verbs->context.ops.dealloc_mw = mw_dealloc;
	verbs->context.ops.poll_cq = cq_poll;
	verbs->context.ops.req_notify_cq = cq_arm;
	verbs->context.ops.post_srq_recv = srq_post_recv;
	verbs->context.ops.post_send = qp_post_send;
	verbs->context.ops.post_recv = qp_post_recv;
	verbs->context.cmd_fd = -1;
	verbs->context.async_fd = -1;
	verbs->context.num_comp_vectors = SV_COMP_VECTORS;
	verbs->context.abi_compat = __VERBS_ABI_IS_EXTENDED;
	pthread_mutex_init(&verbs->context.mutex, NULL);
}

static void context_free(struct sv_context *context)
{
	async_close(context);
	pthread_mutex_destroy(&context->verbs.context.mutex);
	free(context);
}

struct ibv_context *ibv_open_device(struct ibv_device *device)
{
	struct sv_context *context = calloc(1, sizeof(*context));
	int error;

	if (!context) {
		errno = ENOMEM;
		return NULL;
	}
	context_fill(&context->verbs, device);
	error = async_open(context);
	if (!error)
		error = runtime_hold();
	if (error) {
		log_at(LOG_ERROR, "%s: open: %s", device->name, strerror(error));
		context_free(context);
		errno = error;
		return NULL;
	}
	context->alive = area_alive();
	return &context->verbs.context;
}

int ibv_close_device(struct ibv_context *ibv)
{
	struct sv_context *context = context_of(ibv);

	if (!context_is_ours(ibv)) {
		errno = ENODEV;
		return -1;
	}
	/*
	 * Programs that forget an object must not hear of it here, for the kernel frees what is left behind a closed
	 * device; acquire: what the last user did with the context is done before it is freed.
	 */
	if (atomic_load_explicit(&context->users, memory_order_acquire)) {
		log_at(LOG_WARN, "%s: close: objects are left, they stay until the program ends",
		       ibv->device->name);
		return 0;
	}
	context_free(context);
	runtime_release();
	return 0;
}
