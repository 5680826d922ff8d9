/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* Sends a datagram: finds the destination's process, resolves the memory, passes it on. */
#include <errno.h>
#include <string.h>
#include "softverbs/link/transport.h"
#include "softverbs/rc/rc.h"
#include "softverbs/rc/remote_rq.h"
#include "softverbs/ud/ud.h"

#define QKEY_OF_QP (1u << 31) /* IBTA: such a remote_qkey means the sender's own */
#define QPN_LIMIT  (1u << 24)

bool sv_ud_is_addressed(const struct sv_qp *qp, const struct ibv_send_wr *wr)
{
	return wr->wr.ud.ah && wr->wr.ud.ah->pd == qp->ibv.pd && wr->wr.ud.remote_qpn < QPN_LIMIT;
}

/*
 * The process of the QP number; NULL with *status otherwise. Keeps the last process, which mostly
 * is the next one too.
 */
static struct sv_peer *ud_peer_locked(struct sv_qp *qp, uint32_t qpn, int *status)
{
	struct sv_ud *ud = qp->ud;
	uint32_t slot = qp_peer_id_of(qpn);

	if (ud->peer && ud->peer->slot == slot &&
	    likely(!atomic_load_explicit(&ud->peer->dead, memory_order_relaxed)))
		return ud->peer;
	sv_peer_by_id_put(ud->peer);
	ud->peer = sv_peer_by_id(slot);
	atomic_store_explicit(&ud->wants, 0, memory_order_relaxed);
	if (!ud->peer && errno == EAGAIN) {
		atomic_store_explicit(&ud->wants, slot + 1, memory_order_relaxed);
		*status = EXEC_WAIT(SQ_LINKING);
	} else {
		*status = EXEC_WAIT(SQ_SILENT);
	}
	return ud->peer;
}

static void head_fill(const struct sv_qp *qp, const struct ibv_send_wr *wr, uint32_t length,
		      struct ud_ring_record *head)
{
	const struct sv_ah *ah = ah_of(wr->wr.ud.ah);
	uint32_t qkey = wr->wr.ud.remote_qkey;

	*head = (struct ud_ring_record){
		.kind = UD_RING_DATAGRAM,
		.flags = wr->opcode == IBV_WR_SEND_WITH_IMM ? DATAGRAM_IMM : 0,
		.dest = wr->wr.ud.remote_qpn,
		.source = qp->ibv.qp_num,
		.qkey = qkey & QKEY_OF_QP
				? atomic_load_explicit(&qp->ud->qkey, memory_order_relaxed)
				: qkey,
		.imm = wr->opcode == IBV_WR_SEND_WITH_IMM ? wr->imm_data : 0,
		.length = length,
	};
	memcpy(head->sgid, &ah->source, sizeof(head->sgid));
	memcpy(head->dgid, &ah->attr.grh.dgid, sizeof(head->dgid));
}

/* To another host, or to an address of none that is known: then it is lost. */
static __attribute__((noinline)) int elsewhere_send_locked(struct sv_qp *qp,
							   const struct ibv_send_wr *wr,
							   const struct iovec *iov, uint32_t length)
{
	const struct sv_ah *ah = ah_of(wr->wr.ud.ah);
	struct ud_ring_record head;

	if (!ah->is_far)
		return IBV_WC_SUCCESS;
	head_fill(qp, wr, length, &head);
	return sv_transport()->datagram_send_locked(qp, &ah->host, &head, iov,
						    (unsigned)wr->num_sge,
						    wr->send_flags & IBV_SEND_SOLICITED);
}

/* A datagram longer than a packet is not sent, and the request succeeds (IBTA C10-93.1.1). */
int sv_ud_send_locked(struct sv_qp *qp, const struct ibv_send_wr *wr, uint32_t length)
{
	struct ud_ring *ud_ring = &sv_area_own()->ud_ring;
	bool solicited = wr->send_flags & IBV_SEND_SOLICITED;
	struct iovec iov[SV_MAX_SGE];
	struct ud_ring_record head;
	struct sv_peer *peer;
	int status;

	if (!sv_send_resolve(qp, wr, REGION_LOCAL, iov))
		return IBV_WC_LOC_PROT_ERR;
	if (length > DATAGRAM_MAX)
		return IBV_WC_SUCCESS;
	if (unlikely(!ah_of(wr->wr.ud.ah)->is_here))
		return elsewhere_send_locked(qp, wr, iov, length);
	peer = ud_peer_locked(qp, wr->wr.ud.remote_qpn, &status);
	if (!peer)
		return status;
	head_fill(qp, wr, length, &head);
	if (peer != sv_peer_self()) {
		sv_ud_ring_post(peer, &head, iov, (unsigned)wr->num_sge, solicited);
		return IBV_WC_SUCCESS;
	}
	lock_acquire(&ud_ring->lock);
	sv_ud_deliver_locked(&head, iov, (unsigned)wr->num_sge, true, solicited);
	lock_release(&ud_ring->lock);
	return IBV_WC_SUCCESS;
}

bool sv_ud_waits_for(const struct sv_qp *qp, uint16_t slot)
{
	return atomic_load_explicit(&qp->ud->wants, memory_order_relaxed) == slot + 1u;
}

void sv_ud_peer_gone(struct sv_qp *qp, const struct sv_peer *peer)
{
	struct sv_peer *kept = NULL;

	lock_acquire(&qp->sq.lock);
	if (qp->ud->peer == peer) {
		kept = qp->ud->peer;
		qp->ud->peer = NULL;
	}
	lock_release(&qp->sq.lock);
	sv_peer_by_id_put(kept);
}
