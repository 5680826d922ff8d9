/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
#include <dlfcn.h>
#include <string.h>
#include "bench/layer_stub.h"

/* What is posted and not yet polled; one of each side is enough. */
static struct posted {
	struct ibv_qp *qp;
	uint64_t wr_id;
} sent, posted, received;

static struct ibv_context_ops device;
static bool on;
static struct ibv_qp *last_sender, *last_receiver;

static int stub_post_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
	if (!on) {
		last_sender = qp;
		return device.post_send(qp, wr, bad);
	}
	sent = (struct posted){ qp, wr->wr_id };
	received = posted;
	return 0;
}

static int stub_post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	if (!on) {
		last_receiver = qp;
		return device.post_recv(qp, wr, bad);
	}
	posted = (struct posted){ qp, wr->wr_id };
	return 0;
}

static int done(struct posted *work, enum ibv_wc_opcode opcode, struct ibv_wc *wc)
{
	wc->wr_id = work->wr_id;
	wc->status = IBV_WC_SUCCESS;
	wc->opcode = opcode;
	wc->byte_len = 8;
	wc->qp_num = work->qp->qp_num;
	wc->wc_flags = 0;
	work->qp = NULL;
	return 1;
}

static int stub_poll_cq(struct ibv_cq *cq, int count, struct ibv_wc *wc)
{
	if (!on)
		return device.poll_cq(cq, count, wc);
	if (received.qp && received.qp->recv_cq == cq)
		return done(&received, IBV_WC_RECV, wc);
	if (sent.qp && sent.qp->send_cq == cq)
		return done(&sent, IBV_WC_SEND, wc);
	return 0;
}

/* Whoever uses a device has a CQ made on it first. */
struct ibv_cq *ibv_create_cq(struct ibv_context *context, int cqe, void *cq_context,
			     struct ibv_comp_channel *channel, int comp_vector)
{
	struct ibv_cq *(*next)(struct ibv_context *, int, void *, struct ibv_comp_channel *, int);
	void *symbol = dlsym(RTLD_NEXT, "ibv_create_cq");

	memcpy(&next, &symbol, sizeof(next));
	if (context->ops.post_send != stub_post_send) {
		device = context->ops;
		context->ops.post_send = stub_post_send;
		context->ops.post_recv = stub_post_recv;
		context->ops.poll_cq = stub_poll_cq;
	}
	return next(context, cqe, cq_context, channel, comp_vector);
}

void layer_stub_on(bool value)
{
	on = value;
}

void layer_stub_message(void)
{
	struct ibv_sge sge = { .length = 8 };
	struct ibv_recv_wr recv = { .sg_list = &sge, .num_sge = 1 }, *bad_recv;
	struct ibv_send_wr send = { .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND },
			   *bad_send;
	struct ibv_wc wc;

	ibv_post_recv(last_receiver, &recv, &bad_recv);
	ibv_post_send(last_sender, &send, &bad_send);
	ibv_poll_cq(last_receiver->recv_cq, 1, &wc);
	ibv_poll_cq(last_sender->send_cq, 1, &wc);
}
