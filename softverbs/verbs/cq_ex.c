/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* Poll of an extended CQ: one completion at a time, read in place. */
#include <errno.h>
#include <stdlib.h>
#include "softverbs/object/cq.h"

#define WC_FLAGS                                                                \
	(IBV_WC_EX_WITH_BYTE_LEN | IBV_WC_EX_WITH_IMM | IBV_WC_EX_WITH_QP_NUM | \
	 IBV_WC_EX_WITH_SRC_QP | IBV_WC_EX_WITH_SLID | IBV_WC_EX_WITH_SL |      \
	 IBV_WC_EX_WITH_DLID_PATH_BITS)
#define CQ_FLAGS (IBV_CREATE_CQ_ATTR_SINGLE_THREADED | IBV_CREATE_CQ_ATTR_IGNORE_OVERRUN)

struct ex_poll {
	pthread_mutex_t lock; /* held from a start_poll that found a completion to end_poll */
	struct ibv_wc wc;
};

static struct sv_cq *cq_ex_of(struct ibv_cq_ex *ex)
{
	return container_of(sv_cq, ex, ex);
}

static const struct ibv_wc *wc_of(struct ibv_cq_ex *ex)
{
	return &cq_ex_of(ex)->ex_poll->wc;
}

static int cq_ex_next(struct ibv_cq_ex *ex)
{
	struct ex_poll *poll = cq_ex_of(ex)->ex_poll;
	int n = sv_cq_poll(ibv_cq_ex_to_cq(ex), 1, &poll->wc);

	if (n != 1)
		return n ? -n : ENOENT;
	ex->wr_id = poll->wc.wr_id;
	ex->status = poll->wc.status;
	return 0;
}

static int cq_ex_start(struct ibv_cq_ex *ex, struct ibv_poll_cq_attr *attr)
{
	struct ex_poll *poll = cq_ex_of(ex)->ex_poll;
	int err;

	if (attr->comp_mask)
		return EINVAL;
	pthread_mutex_lock(&poll->lock);
	err = cq_ex_next(ex);
	if (err)
		pthread_mutex_unlock(&poll->lock);
	return err;
}

static void ex_end(struct ibv_cq_ex *ex)
{
	pthread_mutex_unlock(&cq_ex_of(ex)->ex_poll->lock);
}

static enum ibv_wc_opcode ex_opcode(struct ibv_cq_ex *ex)
{
	return wc_of(ex)->opcode;
}

static uint32_t ex_vendor_err(struct ibv_cq_ex *ex)
{
	return wc_of(ex)->vendor_err;
}

static uint32_t ex_byte_len(struct ibv_cq_ex *ex)
{
	return wc_of(ex)->byte_len;
}

static __be32 ex_imm_data(struct ibv_cq_ex *ex)
{
	return wc_of(ex)->imm_data;
}

static uint32_t ex_qp_num(struct ibv_cq_ex *ex)
{
	return wc_of(ex)->qp_num;
}

static uint32_t ex_src_qp(struct ibv_cq_ex *ex)
{
	return wc_of(ex)->src_qp;
}

static unsigned int ex_wc_flags(struct ibv_cq_ex *ex)
{
	return wc_of(ex)->wc_flags;
}

static uint32_t ex_slid(struct ibv_cq_ex *ex)
{
	return wc_of(ex)->slid;
}

static uint8_t ex_sl(struct ibv_cq_ex *ex)
{
	return wc_of(ex)->sl;
}

static uint8_t ex_dlid_path_bits(struct ibv_cq_ex *ex)
{
	return wc_of(ex)->dlid_path_bits;
}

static void cq_ex_fill(struct ibv_cq_ex *ex)
{
	ex->start_poll = cq_ex_start;
	ex->next_poll = cq_ex_next;
	ex->end_poll = ex_end;
	ex->read_opcode = ex_opcode;
	ex->read_vendor_err = ex_vendor_err;
	ex->read_byte_len = ex_byte_len;
	ex->read_imm_data = ex_imm_data;
	ex->read_qp_num = ex_qp_num;
	ex->read_src_qp = ex_src_qp;
	ex->read_wc_flags = ex_wc_flags;
	ex->read_slid = ex_slid;
	ex->read_sl = ex_sl;
	ex->read_dlid_path_bits = ex_dlid_path_bits;
}

struct ibv_cq_ex *sv_cq_create_ex(struct ibv_context *context, struct ibv_cq_init_attr_ex *attr)
{
	struct ex_poll *poll;
	struct sv_cq *cq;

	if (attr->comp_mask & ~(uint32_t)IBV_CQ_INIT_ATTR_MASK_FLAGS ||
	    attr->wc_flags & ~(uint64_t)WC_FLAGS ||
	    (attr->comp_mask & IBV_CQ_INIT_ATTR_MASK_FLAGS && attr->flags & ~(uint32_t)CQ_FLAGS)) {
		errno = EOPNOTSUPP;
		return NULL;
	}
	poll = calloc(1, sizeof(*poll));
	cq = poll ? sv_cq_make(context, attr->cqe, attr->cq_context, attr->channel,
			       attr->comp_vector)
		  : NULL;
	if (!cq) {
		free(poll);
		return NULL;
	}
	pthread_mutex_init(&poll->lock, NULL);
	cq->ex_poll = poll;
	cq_ex_fill(&cq->ex);
	return &cq->ex;
}

void sv_cq_close_ex(struct sv_cq *cq)
{
	if (!cq->ex_poll)
		return;
	pthread_mutex_destroy(&cq->ex_poll->lock);
	free(cq->ex_poll);
}
