/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/*
 * Events from the engine to the data path: peers that link or end, and doorbells. With open.c this is the hall of the house,
 * which alone knows every room. Another transport is added here: sv_data_client.
 */
#include <stdlib.h>
#include <string.h>
#include "softverbs/attend.h"
#include "softverbs/base/foreign.h"
#include "softverbs/base/turn.h"
#include "softverbs/fabric/transport.h"
#include "softverbs/rc/bounce.h"
#include "softverbs/rc/direct.h"
#include "softverbs/rc/mw.h"
#include "softverbs/object/channel.h"
#include "softverbs/object/pool.h"
#include "softverbs/object/srq.h"
#include "softverbs/rc/rc.h"
#include "softverbs/rc/remote_rq.h"
#include "softverbs/ud/ud.h"
#include "softverbs/verbs/swap.h"
#include "softverbs/verbs/unpolled.h"
#include "util/log.h"

/* Calls `handle` with each QP of this process, pinned. */
static void qps_each(void (*handle)(struct sv_qp *qp, void *arg), void *arg)
{
	struct area *area = sv_area_own();
	uint32_t last;

	pthread_mutex_lock(&area->qps.lock);
	last = area->qps.fresh - 1; /* identifiers begin with 1 */
	pthread_mutex_unlock(&area->qps.lock);
	for (uint32_t index = 0; index < last; index++) {
		struct sv_qp *qp = sv_qp_pin(index);

		if (!qp)
			continue;
		handle(qp, arg);
		sv_qp_unpin(qp);
	}
}

static void bits_each(uint64_t bits, unsigned word, void (*handle)(uint32_t index))
{
	for (; bits; bits &= bits - 1)
		handle(word * 64 + (unsigned)__builtin_ctzll(bits));
}

/* Clears the bits, and calls `handle` with the index of each that was set. */
static void attention_each(_Atomic(uint64_t) *words, unsigned count, void (*handle)(uint32_t index))
{
	for (unsigned w = 0; w < count; w++)
		/* acquire: pairs with sv_attention_set */
		if (atomic_load_explicit(&words[w], memory_order_relaxed))
			bits_each(atomic_exchange_explicit(&words[w], 0, memory_order_acquire), w,
				  handle);
}

/* ---- doorbell ---- */

static void fault_raise(struct sv_qp *qp, uint32_t fault)
{
	static const enum ibv_event_type events[] = {
		[FAULT_ACCESS] = IBV_EVENT_QP_ACCESS_ERR,
		[FAULT_REQUEST] = IBV_EVENT_QP_REQ_ERR,
		[FAULT_FATAL] = IBV_EVENT_QP_FATAL,
	};

	if (fault == FAULT_NONE || fault > FAULT_REFUSED)
		return;
	if (fault != FAULT_REFUSED)
		sv_async_post_qp(&qp->ibv, events[fault]);
	sv_qp_fail(qp);
}

static void qp_attend(uint32_t index)
{
	struct sv_qp *qp = sv_qp_pin(index);

	if (!qp)
		return;
	/* acquire: pairs with sv_remote_rq_report */
	fault_raise(qp, atomic_exchange_explicit(&qp->by_peers->fault, FAULT_NONE,
						 memory_order_acquire));
	if (atomic_load_explicit(&qp->unsettled, memory_order_relaxed))
		sv_qp_settle(qp);
	sv_qp_unpin(qp);
}

/* Tries its sends. They may wait for receives of an SRQ, as those of others do: if one completes, the others are next. */
static void qp_run(uint32_t index)
{
	struct sv_qp *qp = sv_qp_pin(index);

	if (!qp)
		return;
	if (sv_sq_run(qp))
		sv_area_own()->waiting_next = (index + 1) % SV_QPS;
	sv_qp_unpin(qp);
}

static void waiting_run(struct area *area)
{
	const uint32_t words = SV_WORDS(SV_QPS), next = area->waiting_next;

	for (uint32_t n = 0; n <= words; n++) { /* the first word has two passes */
		uint32_t w = (next / 64 + n) % words;

		bits_each(atomic_load_explicit(&area->waiting[w], memory_order_relaxed) &
				  turn_bits(w, next, n == words),
			  w, qp_run);
	}
}

static void cq_handle(uint32_t index, void (*handle)(struct sv_cq *cq))
{
	struct area *area = sv_area_own();
	struct sv_cq *cq;

	pthread_mutex_lock(&area->table_lock);
	cq = area->cq[index];
	if (cq)
		cq->pins++;
	pthread_mutex_unlock(&area->table_lock);
	if (!cq)
		return;
	handle(cq);
	sv_area_unpin(&cq->pins);
}

static void cq_ring(uint32_t index)
{
	cq_handle(index, sv_cq_attend);
	cq_handle(index, sv_unpolled_attend);
}

static void srq_ring(uint32_t index)
{
	struct area *area = sv_area_own();
	struct sv_srq *srq;

	pthread_mutex_lock(&area->table_lock);
	srq = area->srq[index];
	if (srq)
		srq->pins++;
	pthread_mutex_unlock(&area->table_lock);
	if (!srq)
		return;
	sv_srq_attend(srq);
	sv_area_unpin(&srq->pins);
}

static void data_doorbell(void)
{
	struct area *area = sv_area_own();

	sv_ud_ring_attend();
	attention_each(area->by_peers->attention.qp, SV_WORDS(SV_QPS), qp_attend);
	attention_each(area->by_peers->attention.cq, SV_WORDS(SV_CQS), cq_ring);
	attention_each(area->by_peers->attention.srq, SV_WORDS(SV_SRQS), srq_ring);
	attention_each(area->by_peers->attention.bounce, SV_WORDS(SV_QPS), sv_serve_begin);
	waiting_run(area);
	sv_serve_turn();
}

/* ---- processes ---- */

/* QPs of the peer may wait for this process, and QPs of this process for the peer. */
static void qp_peer_ready(struct sv_qp *qp, void *arg)
{
	const struct sv_peer *peer = arg;
	uint32_t dest = atomic_load_explicit(&qp->dest, memory_order_relaxed);

	if (qp->ud) {
		sv_sq_run(qp);
		return;
	}
	if (!dest || qp_peer_id_of(dest) != peer->slot || !sv_qp_peer(qp))
		return;
	sv_qp_wake_initiator(qp);
	sv_sq_run(qp);
}

static void data_peer_ready(struct sv_peer *peer)
{
	sv_ud_ring_peer_ready(peer);
	qps_each(qp_peer_ready, peer);
}

static void qp_unreachable(struct sv_qp *qp, void *arg)
{
	uint32_t dest = atomic_load_explicit(&qp->dest, memory_order_relaxed);

	if (qp->ud ? sv_ud_waits_for(qp, *(const uint16_t *)arg)
		   : dest && qp_peer_id_of(dest) == *(const uint16_t *)arg)
		sv_sq_unreachable(qp);
}

static void data_peer_unreachable(uint16_t slot)
{
	qps_each(qp_unreachable, &slot);
}

static void qp_peer_gone(struct sv_qp *qp, void *arg)
{
	if (qp->ud) {
		sv_ud_peer_gone(qp, arg);
		return;
	}
	if (atomic_load_explicit(&qp->peer, memory_order_acquire) != arg)
		return;
	sv_sq_peer_gone(qp);
	sv_rx_notify(qp);
	if (qp->srq)
		sv_srq_recover(qp->srq);
	cq_handle(qp->recv_cq->index, sv_cq_peer_gone);
	cq_handle(qp->recv_cq->index, sv_unpolled_peer_gone);
}

static void data_peer_gone(struct sv_peer *peer)
{
	sv_ud_ring_peer_gone(peer);
	qps_each(qp_peer_gone, peer);
	data_doorbell(); /* the peer may have asked for attention and ended before it rang */
}

static void data_peer_free(struct sv_peer *peer)
{
	sv_ud_ring_peer_free(peer);
	sv_channel_forget_peer(peer);
	sv_direct_forget(peer);
}

static void share_message(struct sv_peer *peer, const struct share_text *text, int fd)
{
	if (text->verb != SHARE_ASK)
		sv_direct_message(peer, text, fd);
	else if (!sv_swap_ask(peer, text->key))
		sv_mw_file_answer(peer, text->key);
	sv_foreign_close(&fd, 1);
}

/* The size tells the two kinds of messages apart. */
static void data_message(struct sv_peer *peer, const void *payload, size_t size, int fd)
{
	struct share_text text;

	if (size != sizeof(text)) {
		sv_channel_message(peer, payload, size, fd);
		return;
	}
	memcpy(&text, payload, sizeof(text));
	share_message(peer, &text, fd);
}

static void data_fork_child(void)
{
	sv_pool_fork_child();
	sv_gid_fork_child();
	sv_srq_shape_fork_child();
}

const struct sv_link_client sv_data_client = {
	.area_open = sv_area_open,
	.area_close = sv_area_close,
	.area_offer = sv_area_offer,
	.area_map = sv_area_map,
	.area_unmap = sv_area_unmap,
	.peer_ready = data_peer_ready,
	.peer_unreachable = data_peer_unreachable,
	.peer_gone = data_peer_gone,
	.peer_free = data_peer_free,
	.doorbell = data_doorbell,
	.message = data_message,
	.fork_prepare = sv_pool_fork_prepare,
	.fork_parent = sv_pool_fork_parent,
	.fork_child = data_fork_child,
	.transport = &sv_fabric_transport,
};
