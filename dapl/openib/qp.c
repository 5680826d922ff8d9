/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* Queue pairs; created in INIT and moved to RTS by the connection (conn.c). */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include "dapl/openib/openib.h"

static struct ibv_qp *create(struct ib_pd *pd, struct ibv_qp_init_attr *init)
{
	struct ibv_qp *qp = ibv_create_qp(pd->pd, init);

	/* A device may grant its largest queue only without inline data, so retry without it. */
	if (!qp && init->cap.max_inline_data) {
		init->cap.max_inline_data = 0;
		qp = ibv_create_qp(pd->pd, init);
	}
	return qp;
}

static int qp_to_init(const struct ib_device *device, struct ibv_qp *qp)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_INIT,
		.port_num = device->attr.port,
	};

	/* The connection sets the access rights: nothing can arrive before RTR. */
	return ibv_modify_qp(qp, &attr,
			     IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
}

DAT_RETURN qp_create(struct ib_pd *pd, enum ibv_qp_type type, struct ib_cq *send_cq,
		     struct ib_cq *recv_cq, struct ib_srq *srq, struct ib_qp_caps *caps,
		     int (*start)(const struct ib_device *device, struct ibv_qp *qp), void *owner,
		     struct ib_qp **qp)
{
	struct ib_qp *new = calloc(1, sizeof(*new));
	struct ibv_qp_init_attr init = {
		.qp_context = new,
		.send_cq = send_cq->cq,
		.recv_cq = recv_cq->cq,
		.srq = srq ? srq->srq : NULL,
		.qp_type = type,
		/* Some devices refuse a queue of 0 entries; the caller never uses the extra entry. */
		.cap = { .max_send_wr = caps->send_wr ? caps->send_wr : 1,
			 .max_send_sge = caps->send_sge ? caps->send_sge : 1,
			 .max_inline_data = caps->inline_data,
			 .max_recv_wr = !srq && !caps->recv_wr ? 1 : caps->recv_wr,
			 .max_recv_sge = !srq && !caps->recv_sge ? 1 : caps->recv_sge },
	};
	int error;

	if (!new)
		return DAT_ERROR(DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_MEMORY);
	new->owner = owner;
	new->qp = create(pd, &init);
	if (!new->qp) {
		ib_error(errno, "ibv_create_qp", pd->device->attr.device_name);
		goto free_qp;
	}
	error = start(pd->device, new->qp);
	if (error) {
		ib_error(error, "ibv_modify_qp", pd->device->attr.device_name);
		goto destroy_qp;
	}
	*caps = (struct ib_qp_caps){ .send_wr = wr_granted(init.cap.max_send_wr),
				     .recv_wr = wr_granted(init.cap.max_recv_wr),
				     .send_sge = sge_granted(init.cap.max_send_sge),
				     .recv_sge = sge_granted(init.cap.max_recv_sge),
				     .inline_data = init.cap.max_inline_data };
	new->posts = (struct ib_qp_posts){ new->qp, new->qp->context->ops.post_send,
					   new->qp->context->ops.post_recv };
	*qp = new;
	return DAT_SUCCESS;

destroy_qp:
	ibv_destroy_qp(new->qp);
free_qp:
	free(new);
	return DAT_ERROR(DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_TEP);
}

DAT_RETURN ib_qp_create(struct ib_pd *pd, struct ib_cq *send_cq, struct ib_cq *recv_cq,
			struct ib_srq *srq, struct ib_qp_caps *caps, void *owner, struct ib_qp **qp)
{
	return qp_create(pd, IBV_QPT_RC, send_cq, recv_cq, srq, caps, qp_to_init, owner, qp);
}

void ib_qp_destroy(struct ib_qp *qp)
{
	int error;

	if (!qp)
		return;
	error = ibv_destroy_qp(qp->qp);
	if (error)
		ib_error(error, "ibv_destroy_qp", "QP");
	free(qp);
}

void ib_qp_error(struct ib_qp *qp)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_ERR };
	int error = ibv_modify_qp(qp->qp, &attr, IBV_QP_STATE);

	if (error)
		ib_error(error, "ibv_modify_qp to ERR", "QP");
}

/* False if the query fails, as on a removed device: the CM reports the end of its connections. */
bool ib_qp_is_broken(const struct ib_qp *qp)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	return !ibv_query_qp(qp->qp, &attr, IBV_QP_STATE, &init) && attr.qp_state == IBV_QPS_ERR;
}

uint32_t ib_qp_num(const struct ib_qp *qp)
{
	return qp->qp->qp_num;
}
