/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* Posting work requests and judging completions. */
#include <stdio.h>
#include "test/conform/conform.h"

static struct ibv_sge sge_of(const struct side *side, uint32_t offset, uint32_t length)
{
	return (struct ibv_sge){ (uintptr_t)side->buffer + offset, length, side->mr->lkey };
}

int post_recv(struct side *side, uint64_t wr_id, uint32_t offset, uint32_t length)
{
	struct ibv_sge sge = sge_of(side, offset, length);
	struct ibv_recv_wr wr = { .wr_id = wr_id, .sg_list = &sge, .num_sge = length ? 1 : 0 },
			   *bad;

	return ibv_post_recv(side->qp, &wr, &bad);
}

int post_srq(struct side *side, uint64_t wr_id, uint32_t offset, uint32_t length)
{
	struct ibv_sge sge = sge_of(side, offset, length);
	struct ibv_recv_wr wr = { .wr_id = wr_id, .sg_list = &sge, .num_sge = length ? 1 : 0 },
			   *bad;

	return ibv_post_srq_recv(side->srq, &wr, &bad);
}

int post_send(struct side *side, uint64_t wr_id, uint32_t offset, uint32_t length, int flags)
{
	struct ibv_sge sge = sge_of(side, offset, length);
	struct ibv_send_wr wr = {
		.wr_id = wr_id,
		.sg_list = &sge,
		.num_sge = length ? 1 : 0,
		.opcode = IBV_WR_SEND,
		.send_flags = (unsigned)flags,
	}, *bad;

	if (side->ah) {
		wr.wr.ud.ah = side->ah;
		wr.wr.ud.remote_qpn = side->peer;
		wr.wr.ud.remote_qkey = QKEY;
	}
	return ibv_post_send(side->qp, &wr, &bad);
}

int post_rdma(struct side *side, enum ibv_wr_opcode opcode, uint64_t wr_id, uint32_t offset,
	      uint32_t length, const struct side *peer, uint32_t remote, int flags)
{
	struct ibv_sge sge = sge_of(side, offset, length);
	struct ibv_send_wr wr = {
		.wr_id = wr_id,
		.sg_list = &sge,
		.num_sge = length ? 1 : 0,
		.opcode = opcode,
		.send_flags = (unsigned)flags,
		.wr.rdma = { (uintptr_t)peer->buffer + remote, peer->mr->rkey },
	}, *bad;

	return ibv_post_send(side->qp, &wr, &bad);
}

int post_atomic(struct side *side, enum ibv_wr_opcode opcode, uint64_t wr_id, uint32_t offset,
		const struct side *peer, uint32_t remote, uint64_t compare_add, uint64_t swap)
{
	struct ibv_sge sge = sge_of(side, offset, 8);
	struct ibv_send_wr wr = {
		.wr_id = wr_id,
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = opcode,
		.send_flags = IBV_SEND_SIGNALED,
		.wr.atomic = {
			.remote_addr = (uintptr_t)peer->buffer + remote,
			.compare_add = compare_add,
			.swap = swap,
			.rkey = peer->mr->rkey,
		},
	}, *bad;

	return ibv_post_send(side->qp, &wr, &bad);
}

struct wanted {
	struct ibv_cq *cq;
	struct ibv_wc *wc;
	int polled;
};

static bool polled_one(void *arg)
{
	struct wanted *wanted = arg;

	wanted->polled = ibv_poll_cq(wanted->cq, 1, wanted->wc);
	return wanted->polled;
}

static bool poll_within(struct ibv_cq *cq, struct ibv_wc *wc, unsigned milliseconds)
{
	struct wanted wanted = { .cq = cq, .wc = wc };

	return unit_wait_for(polled_one, &wanted, milliseconds) && wanted.polled == 1;
}

bool poll_one(struct ibv_cq *cq, struct ibv_wc *wc)
{
	bool came = poll_within(cq, wc, PATIENCE);

	if (!came)
		fprintf(stderr, "no completion\n");
	return came;
}

static bool completes_as(struct ibv_cq *cq, uint64_t wr_id, enum ibv_wc_status status,
			 enum ibv_wc_status other, struct ibv_wc *wc)
{
	struct ibv_wc own;

	if (!wc)
		wc = &own;
	if (!poll_one(cq, wc)) {
		fprintf(stderr, "expected: %u of %#lx\n", status, (unsigned long)wr_id);
		return false;
	}
	if (wc->wr_id == wr_id && (wc->status == status || wc->status == other))
		return true;
	fprintf(stderr, "completion: %s (%u) of %#lx, expected: %s (%u) of %#lx\n",
		ibv_wc_status_str(wc->status), wc->status, (unsigned long)wc->wr_id,
		ibv_wc_status_str(status), status, (unsigned long)wr_id);
	return false;
}

bool completes(struct ibv_cq *cq, uint64_t wr_id, enum ibv_wc_status status, struct ibv_wc *wc)
{
	return completes_as(cq, wr_id, status, status, wc);
}

bool completes_or_rxe(struct ibv_cq *cq, uint64_t wr_id, enum ibv_wc_status status,
		      enum ibv_wc_status rxe)
{
	return completes_as(cq, wr_id, status, device_is_rxe ? rxe : status, NULL);
}

bool stays_empty(struct ibv_cq *cq)
{
	struct ibv_wc wc;

	if (!poll_within(cq, &wc, SILENCE))
		return true;
	fprintf(stderr, "unexpected completion: %s (%u) of %#lx\n", ibv_wc_status_str(wc.status),
		wc.status, (unsigned long)wc.wr_id);
	return false;
}
