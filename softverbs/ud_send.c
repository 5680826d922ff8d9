/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* Sending a datagram: to which process, from which memory, and away it is. */
#include <errno.h>
#include <string.h>
#include "softverbs/tx.h"
#include "softverbs/ud.h"

#define QKEY_OF_QP (1u << 31) /* IBTA: such a remote_qkey means the sender's own */
#define QPN_LIMIT  (1u << 24)

bool ud_is_addressed(const struct sv_qp *qp, const struct ibv_send_wr *wr)
{
	return wr->wr.ud.ah && wr->wr.ud.ah->pd == qp->ibv.pd && wr->wr.ud.remote_qpn < QPN_LIMIT;
}

/*
 * The process of the QP number; NULL with *status otherwise. The last one is kept, for it is mostly the
 * next one too.
 */
static struct sv_peer *ud_peer_locked(struct sv_qp *qp, uint32_t qpn, int *status)
{
	struct sv_ud *ud = qp->ud;
	uint32_t slot = qp_slot_of(qpn);

	if (ud->peer && ud->peer->slot == slot &&
	    likely(!atomic_load_explicit(&ud->peer->dead, memory_order_relaxed)))
		return ud->peer;
	slot_peer_put(ud->peer);
	ud->peer = slot_peer(slot);
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
		      struct mail_record *head)
{
	const struct sv_ah *ah = ah_of(wr->wr.ud.ah);
	uint32_t qkey = wr->wr.ud.remote_qkey;

	*head = (struct mail_record){
		.kind = MAIL_DATAGRAM,
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

/* Longer than a packet: not sent, and that is no error (IBTA C10-93.1.1). */
int ud_send_locked(struct sv_qp *qp, const struct ibv_send_wr *wr, uint32_t length)
{
	struct mail *mail = &area_own()->mail;
	bool solicited = wr->send_flags & IBV_SEND_SOLICITED;
	struct iovec iov[SV_MAX_SGE];
	struct mail_record head;
	struct sv_peer *peer;
	int status;

	if (!send_resolve(qp, wr, REGION_LOCAL, iov))
		return IBV_WC_LOC_PROT_ERR;
	if (length > DATAGRAM_MAX || !ah_of(wr->wr.ud.ah)->is_here)
		return IBV_WC_SUCCESS;
	peer = ud_peer_locked(qp, wr->wr.ud.remote_qpn, &status);
	if (!peer)
		return status;
	head_fill(qp, wr, length, &head);
	if (peer != peer_self()) {
		mail_post(peer, &head, iov, (unsigned)wr->num_sge, solicited);
		return IBV_WC_SUCCESS;
	}
	lock_acquire(&mail->lock);
	ud_deliver_locked(&head, iov, (unsigned)wr->num_sge, true, solicited);
	lock_release(&mail->lock);
	return IBV_WC_SUCCESS;
}

bool ud_waits_for(const struct sv_qp *qp, uint16_t slot)
{
	return atomic_load_explicit(&qp->ud->wants, memory_order_relaxed) == slot + 1u;
}

void ud_peer_gone(struct sv_qp *qp, const struct sv_peer *peer)
{
	struct sv_peer *kept = NULL;

	lock_acquire(&qp->sq.lock);
	if (qp->ud->peer == peer) {
		kept = qp->ud->peer;
		qp->ud->peer = NULL;
	}
	lock_release(&qp->sq.lock);
	slot_peer_put(kept);
}
