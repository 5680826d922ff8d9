/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* The transfers: the initiator posts on all EPs and reaps its completions; the other side reaps its receives. */

#include "transaction.h"

#define NONE UINT32_MAX

/* The EP is in the upper half, the OP in the lower one. */
static uint64_t cookie_of(uint32_t ep, uint32_t op)
{
	return (uint64_t)(ep + 1) << 32 | op;
}

static bool op_recv_post(struct trans_thread *th, uint32_t i)
{
	const struct op *op = &th->test->t->ops[i];

	for (uint32_t e = 0; e < th->test->t->eps; e++)
		if (!link_recv(&th->eps[e].link, (DAT_COUNT)op->segments, th->eps[e].buffers[i].iov,
			       cookie_of(e, i)))
			return false;
	return true;
}

/* Each message of the peer in an iteration has one receive, in the same order. */
bool trans_recvs_post(struct trans_thread *th)
{
	const struct transaction *t = th->test->t;

	for (uint32_t i = 0; i < t->op_count; i++)
		if (t->ops[i].transfer == TRANSFER_SEND && !op_is_ours(th, &t->ops[i]) &&
		    !op_recv_post(th, i))
			return false;
	return true;
}

static bool op_post_on(struct trans_ep *ep, const struct op *op, uint32_t i, uint64_t cookie)
{
	struct trans_buffer *b = &ep->buffers[i];
	DAT_COUNT segments = (DAT_COUNT)op->segments;
	DAT_DTO_COOKIE c = { .as_64 = cookie };

	switch (op->transfer) {
	case TRANSFER_READ:
		return dat_ok(dat_ep_post_rdma_read(ep->link.ep, segments, b->iov, c, &b->peer,
						    DAT_COMPLETION_DEFAULT_FLAG),
			      "dat_ep_post_rdma_read");
	case TRANSFER_WRITE:
		return dat_ok(dat_ep_post_rdma_write(ep->link.ep, segments, b->iov, c, &b->peer,
						     DAT_COMPLETION_DEFAULT_FLAG),
			      "dat_ep_post_rdma_write");
	default: return link_send(&ep->link, segments, b->iov, cookie);
	}
}

static bool op_reap(struct trans_thread *th, uint32_t i)
{
	static const char *const names[] = { "RDMA read", "RDMA write", "send" };
	const struct op *op = &th->test->t->ops[i];

	for (uint32_t e = 0; e < th->test->t->eps; e++)
		if (!link_sent(&th->eps[e].link, op_bytes(op), cookie_of(e, i),
			       names[op->transfer]))
			return false;
	return true;
}

/*
 * A send of the client with -f stays unreaped until the server's answer is there, or the completion
 * of another request of this side, because completions come in order.
 */
static bool late_reap(struct trans_thread *th, uint32_t *late)
{
	uint32_t i = *late;

	*late = NONE;
	return i == NONE || op_reap(th, i);
}

static bool op_begin(struct trans_thread *th, uint32_t i, uint32_t *late)
{
	const struct op *op = &th->test->t->ops[i];

	for (uint32_t e = 0; e < th->test->t->eps; e++)
		if (!op_post_on(&th->eps[e], op, i, cookie_of(e, i)))
			return false;
	if (!late_reap(th, late))
		return false;
	if (op->reap_late && !op->by_server) {
		*late = i;
		return true;
	}
	return op_reap(th, i);
}

static bool op_receive(struct trans_thread *th, uint32_t i, uint32_t *late)
{
	const struct op *op = &th->test->t->ops[i];

	for (uint32_t e = 0; e < th->test->t->eps; e++)
		if (!link_received(&th->eps[e].link, op_bytes(op), cookie_of(e, i), "receive"))
			return false;
	return !op->reap_late || late_reap(th, late);
}

static bool iteration_run(struct trans_thread *th, uint32_t iteration)
{
	const struct transaction *t = th->test->t;
	bool last = iteration == t->iterations - 1;
	uint32_t late = NONE;

	/* This receive lies behind those of this iteration, and no more of those will be used. */
	if (last && !trans_final_recv_post(th))
		return false;
	for (uint32_t i = 0; i < t->op_count; i++) {
		const struct op *op = &t->ops[i];

		if (op_is_ours(th, op)) {
			if (!op_begin(th, i, &late))
				return false;
		} else if (op->transfer == TRANSFER_SEND) {
			if (!op_receive(th, i, &late) || !trans_check_iteration(th, i, iteration) ||
			    (!last && !op_recv_post(th, i)))
				return false;
		}
	}
	return late_reap(th, &late);
}

bool trans_data_run(struct trans_thread *th)
{
	for (uint32_t i = 0; i < th->test->t->iterations; i++)
		if (!iteration_run(th, i))
			return false;
	return true;
}
