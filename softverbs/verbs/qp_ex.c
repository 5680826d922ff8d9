/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* Post through ibv_wr_*: a batch is recorded, then executed as a whole or not at all. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "softverbs/object/qp.h"
#include "softverbs/rc/rc.h"
#include "softverbs/verbs/qp.h"

#define OPS_UD (IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM)
#define OPS_UC                                                                     \
	(OPS_RC & ~(IBV_QP_EX_WITH_RDMA_READ | IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP | \
		    IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD))
#define OPS_RC                                                                                  \
	(IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM | IBV_QP_EX_WITH_SEND | \
	 IBV_QP_EX_WITH_SEND_WITH_IMM | IBV_QP_EX_WITH_RDMA_READ |                              \
	 IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP | IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD |              \
	 IBV_QP_EX_WITH_LOCAL_INV | IBV_QP_EX_WITH_BIND_MW | IBV_QP_EX_WITH_SEND_WITH_INV)

struct ex_send {
	pthread_mutex_t lock;	/* held from wr_start to wr_complete or wr_abort */
	uint32_t count;		/* requests in the batch; the last one is still being filled in */
	int err;		/* the first error of the batch */
	struct ibv_send_wr *wr; /* array with one entry per slot of the SQ */
	struct ibv_sge *sge;	/* max_sge for each */
	uint8_t *data;		/* max_inline for each */
};

static struct sv_qp *qp_ex_of(struct ibv_qp_ex *ex)
{
	return container_of(sv_qp, ex, ex);
}

static void qp_ex_start(struct ibv_qp_ex *ex)
{
	struct ex_send *send = qp_ex_of(ex)->ex_send;

	pthread_mutex_lock(&send->lock);
	send->count = 0;
	send->err = 0;
}

static int ex_complete(struct ibv_qp_ex *ex)
{
	struct sv_qp *qp = qp_ex_of(ex);
	struct ex_send *send = qp->ex_send;
	int err = send->err ? send->err : sv_qp_post_batch(qp, send->wr, send->count);

	pthread_mutex_unlock(&send->lock);
	return err;
}

static void ex_abort(struct ibv_qp_ex *ex)
{
	pthread_mutex_unlock(&qp_ex_of(ex)->ex_send->lock);
}

/* ---- operations ---- */

/* Returns the next work request; once the batch has failed, a place whose contents are ignored. */
static struct ibv_send_wr *qp_ex_next(struct ibv_qp_ex *ex, enum ibv_wr_opcode opcode)
{
	struct sv_qp *qp = qp_ex_of(ex);
	struct ex_send *send = qp->ex_send;
	struct ibv_send_wr *wr;

	if (send->count > qp->sq.mask) {
		send->err = send->err ? send->err : ENOMEM;
		send->count--;
	}
	wr = &send->wr[send->count];
	memset(wr, 0, sizeof(*wr));
	wr->wr_id = ex->wr_id;
	wr->opcode = opcode;
	wr->send_flags = ex->wr_flags & ~(unsigned)IBV_SEND_INLINE;
	wr->sg_list = &send->sge[(uint64_t)send->count * qp->sq.max_sge];
	send->count++;
	return wr;
}

static void ex_rdma(struct ibv_qp_ex *ex, enum ibv_wr_opcode opcode, uint32_t rkey, uint64_t addr,
		    __be32 imm)
{
	struct ibv_send_wr *wr = qp_ex_next(ex, opcode);

	wr->wr.rdma.remote_addr = addr;
	wr->wr.rdma.rkey = rkey;
	wr->imm_data = imm;
}

static void ex_atomic(struct ibv_qp_ex *ex, enum ibv_wr_opcode opcode, uint32_t rkey, uint64_t addr,
		      uint64_t compare_add, uint64_t swap)
{
	struct ibv_send_wr *wr = qp_ex_next(ex, opcode);

	wr->wr.atomic.remote_addr = addr;
	wr->wr.atomic.rkey = rkey;
	wr->wr.atomic.compare_add = compare_add;
	wr->wr.atomic.swap = swap;
}

static void ex_cmp_swp(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t addr, uint64_t compare,
		       uint64_t swap)
{
	ex_atomic(ex, IBV_WR_ATOMIC_CMP_AND_SWP, rkey, addr, compare, swap);
}

static void ex_fetch_add(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t addr, uint64_t add)
{
	ex_atomic(ex, IBV_WR_ATOMIC_FETCH_AND_ADD, rkey, addr, add, 0);
}

static void ex_bind_mw(struct ibv_qp_ex *ex, struct ibv_mw *mw, uint32_t rkey,
		       const struct ibv_mw_bind_info *info)
{
	struct ibv_send_wr *wr = qp_ex_next(ex, IBV_WR_BIND_MW);

	wr->bind_mw.mw = mw;
	wr->bind_mw.rkey = rkey;
	wr->bind_mw.bind_info = *info;
}

static void ex_local_inv(struct ibv_qp_ex *ex, uint32_t rkey)
{
	qp_ex_next(ex, IBV_WR_LOCAL_INV)->invalidate_rkey = rkey;
}

static void ex_read(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t addr)
{
	ex_rdma(ex, IBV_WR_RDMA_READ, rkey, addr, 0);
}

static void ex_write(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t addr)
{
	ex_rdma(ex, IBV_WR_RDMA_WRITE, rkey, addr, 0);
}

static void ex_write_imm(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t addr, __be32 imm)
{
	ex_rdma(ex, IBV_WR_RDMA_WRITE_WITH_IMM, rkey, addr, imm);
}

static void ex_plain_send(struct ibv_qp_ex *ex)
{
	qp_ex_next(ex, IBV_WR_SEND);
}

static void ex_send_imm(struct ibv_qp_ex *ex, __be32 imm)
{
	qp_ex_next(ex, IBV_WR_SEND_WITH_IMM)->imm_data = imm;
}

static void ex_send_inv(struct ibv_qp_ex *ex, uint32_t rkey)
{
	qp_ex_next(ex, IBV_WR_SEND_WITH_INV)->invalidate_rkey = rkey;
}

/* ---- data ---- */

/* The work request being filled in; if there is none, the batch fails and NULL is returned. */
static struct ibv_send_wr *ex_last(struct ex_send *send)
{
	if (send->count)
		return &send->wr[send->count - 1];
	send->err = send->err ? send->err : EINVAL;
	return NULL;
}

static void ex_ud_addr(struct ibv_qp_ex *ex, struct ibv_ah *ah, uint32_t qpn, uint32_t qkey)
{
	struct ibv_send_wr *wr = ex_last(qp_ex_of(ex)->ex_send);

	if (!wr)
		return;
	wr->wr.ud.ah = ah;
	wr->wr.ud.remote_qpn = qpn;
	wr->wr.ud.remote_qkey = qkey;
}

static void ex_sge_list(struct ibv_qp_ex *ex, size_t count, const struct ibv_sge *list)
{
	struct sv_qp *qp = qp_ex_of(ex);
	struct ibv_send_wr *wr = ex_last(qp->ex_send);

	if (!wr || count > qp->sq.max_sge) {
		qp->ex_send->err = qp->ex_send->err ? qp->ex_send->err : EINVAL;
		return;
	}
	wr->num_sge = (int)count;
	if (count)
		memcpy(wr->sg_list, list, count * sizeof(*list));
}

static void ex_sge(struct ibv_qp_ex *ex, uint32_t lkey, uint64_t addr, uint32_t length)
{
	struct ibv_sge sge = { .addr = addr, .length = length, .lkey = lkey };

	ex_sge_list(ex, 1, &sge);
}

static void ex_inline_list(struct ibv_qp_ex *ex, size_t count, const struct ibv_data_buf *list)
{
	struct sv_qp *qp = qp_ex_of(ex);
	struct ex_send *send = qp->ex_send;
	struct ibv_send_wr *wr = ex_last(send);
	size_t length = 0;
	uint8_t *data;

	if (!wr)
		return;
	data = &send->data[(uint64_t)(send->count - 1) * qp->sq.max_inline];
	for (size_t i = 0; i < count; i++) {
		if (list[i].length > qp->sq.max_inline - length) {
			send->err = send->err ? send->err : EINVAL;
			return;
		}
		memcpy(data + length, list[i].addr, list[i].length);
		length += list[i].length;
	}
	wr->send_flags |= IBV_SEND_INLINE;
	wr->num_sge = length ? 1 : 0;
	wr->sg_list[0] = (struct ibv_sge){ .addr = (uintptr_t)data, .length = (uint32_t)length };
}

static void ex_inline(struct ibv_qp_ex *ex, void *addr, size_t length)
{
	struct ibv_data_buf buffer = { .addr = addr, .length = length };

	ex_inline_list(ex, 1, &buffer);
}

/* ---- create ---- */

static void qp_ex_fill(struct ibv_qp_ex *ex)
{
	ex->wr_atomic_cmp_swp = ex_cmp_swp;
	ex->wr_atomic_fetch_add = ex_fetch_add;
	ex->wr_bind_mw = ex_bind_mw;
	ex->wr_local_inv = ex_local_inv;
	ex->wr_rdma_read = ex_read;
	ex->wr_rdma_write = ex_write;
	ex->wr_rdma_write_imm = ex_write_imm;
	ex->wr_send = ex_plain_send;
	ex->wr_send_imm = ex_send_imm;
	ex->wr_send_inv = ex_send_inv;
	ex->wr_set_inline_data = ex_inline;
	ex->wr_set_inline_data_list = ex_inline_list;
	ex->wr_set_sge = ex_sge;
	ex->wr_set_sge_list = ex_sge_list;
	ex->wr_set_ud_addr = ex_ud_addr;
	ex->wr_start = qp_ex_start;
	ex->wr_complete = ex_complete;
	ex->wr_abort = ex_abort;
}

void sv_qp_close_ex(struct sv_qp *qp)
{
	struct ex_send *send = qp->ex_send;
	uint64_t size = qp->sq.mask + 1;

	if (!send)
		return;
	sv_heap_free(HEAP_OWN, send->wr, size * sizeof(*send->wr));
	sv_heap_free(HEAP_OWN, send->sge, size * qp->sq.max_sge * sizeof(*send->sge));
	sv_heap_free(HEAP_OWN, send->data, size * qp->sq.max_inline);
	pthread_mutex_destroy(&send->lock);
	free(send);
	qp->ex_send = NULL;
}

static int qp_open_ex(struct sv_qp *qp)
{
	uint64_t size = qp->sq.mask + 1;
	struct ex_send *send = calloc(1, sizeof(*send));

	if (!send)
		return ENOMEM;
	pthread_mutex_init(&send->lock, NULL);
	qp->ex_send = send;
	send->wr = sv_heap_alloc(HEAP_OWN, size * sizeof(*send->wr), NULL);
	send->sge = sv_heap_alloc(HEAP_OWN, size * qp->sq.max_sge * sizeof(*send->sge), NULL);
	send->data = sv_heap_alloc(HEAP_OWN, size * qp->sq.max_inline, NULL);
	if (!send->wr || !send->sge || !send->data)
		return ENOMEM;
	qp_ex_fill(&qp->ex);
	return 0;
}

static uint64_t ops_of(enum ibv_qp_type type)
{
	return type == IBV_QPT_UD ? OPS_UD : type == IBV_QPT_UC ? OPS_UC : OPS_RC;
}

struct ibv_qp *sv_qp_create_ex(struct ibv_context *context, struct ibv_qp_init_attr_ex *attr)
{
	static const uint32_t known = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS |
				      IBV_QP_INIT_ATTR_CREATE_FLAGS;
	bool wanted = attr->comp_mask & IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
	struct ibv_qp_init_attr plain;
	struct sv_qp *qp;

	errno = !(attr->comp_mask & IBV_QP_INIT_ATTR_PD) || attr->pd->context != context ? EINVAL
		: attr->comp_mask & ~known ||
				(wanted && attr->send_ops_flags & ~ops_of(attr->qp_type)) ||
				(attr->comp_mask & IBV_QP_INIT_ATTR_CREATE_FLAGS &&
				 attr->create_flags)
			? EOPNOTSUPP
			: 0;
	if (errno)
		return NULL;
	memcpy(&plain, attr, sizeof(plain)); /* the extended structure begins with the plain one */
	qp = sv_qp_make(attr->pd, &plain);
	if (!qp)
		return NULL;
	if (wanted && qp_open_ex(qp)) {
		ibv_destroy_qp(&qp->ibv);
		errno = ENOMEM;
		return NULL;
	}
	attr->cap = plain.cap;
	return &qp->ibv;
}

struct ibv_qp_ex *ibv_qp_to_qp_ex(struct ibv_qp *ibv)
{
	struct sv_qp *qp = qp_of(ibv);

	return qp->ex_send ? &qp->ex : NULL;
}
