/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* One thread of a transaction test: makes its endpoints, uses them, and frees everything. */

#include <stdlib.h>

#include "transaction.h"

enum { EVENTS_MIN = 8, SPARE = 3 };

static DAT_COUNT at_least(DAT_COUNT granted, uint32_t wanted)
{
	return granted >= (DAT_COUNT)wanted ? granted : (DAT_COUNT)wanted;
}

static bool ep_create(struct trans_thread *th, struct trans_ep *ep)
{
	const struct place *place = th->test->place;
	const struct transaction *t = th->test->t;
	DAT_EP_ATTR attr = place->attr;
	struct link_shape shape = {
		.recv_events = at_least(EVENTS_MIN, t->op_count + SPARE),
		.request_events = at_least(EVENTS_MIN, t->op_count + SPARE),
		.other_events = EVENTS_MIN,
		.passive = place->server,
		.poll = t->poll,
		.attr = &attr,
	};

	attr.max_recv_dtos = at_least(attr.max_recv_dtos, t->op_count + SPARE);
	attr.max_request_dtos = at_least(attr.max_request_dtos, t->op_count + SPARE);
	for (uint32_t i = 0; i < t->op_count; i++) {
		attr.max_recv_iov = at_least(attr.max_recv_iov, t->ops[i].segments);
		attr.max_request_iov = at_least(attr.max_request_iov, t->ops[i].segments);
		/* an iWARP device reads into one segment only */
		if (t->ops[i].transfer == TRANSFER_READ)
			attr.max_rdma_read_iov =
				at_least(attr.max_rdma_read_iov, t->ops[i].segments);
		attr.max_rdma_write_iov = at_least(attr.max_rdma_write_iov, t->ops[i].segments);
	}
	return link_create(&ep->link, place->ia, th->pz, &shape);
}

/* The segments of a buffer follow each other without gaps, as the peer's RDMA expects. */
static bool buffer_create(struct trans_thread *th, const struct op *op, struct trans_buffer *b)
{
	if (!region_create(&b->region, th->test->place->ia, th->pz, op_bytes(op)))
		return false;
	b->iov = calloc(op->segments, sizeof(*b->iov));
	if (!b->iov)
		return false;
	for (uint32_t s = 0; s < op->segments; s++)
		b->iov[s] = region_part(&b->region, (size_t)s * op->size, op->size);
	return true;
}

static bool buffers_create(struct trans_thread *th, struct trans_ep *ep)
{
	const struct transaction *t = th->test->t;

	ep->buffers = calloc(t->op_count, sizeof(*ep->buffers));
	if (!ep->buffers)
		return false;
	for (uint32_t i = 0; i < t->op_count; i++)
		if (!buffer_create(th, &t->ops[i], &ep->buffers[i]))
			return false;
	return true;
}

static bool thread_prepare(struct trans_thread *th)
{
	const struct place *place = th->test->place;
	const struct transaction *t = th->test->t;

	th->eps = calloc(t->eps, sizeof(*th->eps));
	if (!th->eps || !dat_ok(dat_pz_create(place->ia, &th->pz), "dat_pz_create"))
		return false;
	for (uint32_t e = 0; e < t->eps; e++) {
		struct trans_ep *ep = &th->eps[e];

		if (!ep_create(th, ep) || !trans_small_create(th, ep) || !buffers_create(th, ep))
			return false;
		if (place->server &&
		    !link_listen(&ep->link, place->port + th->index * t->eps + e, t->reserved))
			return false;
	}
	return true;
}

static bool thread_meet(struct trans_thread *th)
{
	const struct transaction *t = th->test->t;

	for (uint32_t e = 0; e < t->eps; e++)
		if (!trans_ep_meet(th, e))
			return false;
	if (t->validate)
		trans_fill(th, 0);
	return trans_recvs_post(th);
}

/*
 * Clients can connect only when each thread listens; the first thread notifies the server's main
 * loop.
 */
static bool server_run_thread(struct trans_thread *th)
{
	bool ready = gate_pass(&th->test->gate, thread_prepare(th));

	if (th->index == 0)
		ready = gate_pass(th->test->place->ready, ready);
	if (!ready || !thread_meet(th) || !trans_sync_send(th, false) ||
	    !trans_sync_await(th, false))
		return false;
	return trans_data_run(th) && trans_sync_send(th, true) && trans_sync_await(th, true);
}

/* The server begins when the client tells it that its last thread is ready. */
static bool client_run_thread(struct trans_thread *th)
{
	bool ready = thread_prepare(th) && thread_meet(th) && trans_sync_await(th, false);

	if (!gate_pass(&th->test->gate, ready))
		return false;
	th->begin = clock_ns();
	ready = trans_sync_send(th, false) && trans_data_run(th) && trans_sync_await(th, true) &&
		trans_sync_send(th, true);
	th->end = clock_ns();
	return ready;
}

static bool ep_destroy(struct trans_thread *th, struct trans_ep *ep)
{
	bool ok = true;

	for (uint32_t i = 0; ep->buffers && i < th->test->t->op_count; i++) {
		free(ep->buffers[i].iov);
		ok &= region_free(&ep->buffers[i].region);
	}
	free(ep->buffers);
	ok &= region_free(&ep->small);
	ok &= link_disconnect(&ep->link, DAT_CLOSE_ABRUPT_FLAG);
	ok &= link_free(&ep->link);
	return ok;
}

static bool thread_destroy(struct trans_thread *th)
{
	bool ok = true;

	for (uint32_t e = 0; th->eps && e < th->test->t->eps; e++)
		ok &= ep_destroy(th, &th->eps[e]);
	free(th->eps);
	ok &= !th->pz || dat_ok(dat_pz_free(th->pz), "dat_pz_free");
	return ok;
}

void *trans_thread_main(void *arg)
{
	struct trans_thread *th = arg;

	th->passed = th->test->place->server ? server_run_thread(th) : client_run_thread(th);
	th->passed &= thread_destroy(th);
	return NULL;
}
