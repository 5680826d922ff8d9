/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* An end of an RC connection through plain verbs; the sides name themselves to each other in shared memory. */
#include <string.h>
#include "bench/verbs.h"

#define PORT 1

static struct ibv_context *device_open(void)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_context *context;

	must(list && list[0], "ibv_get_device_list");
	context = ibv_open_device(list[0]);
	must(context != NULL, "ibv_open_device");
	ibv_free_device_list(list);
	return context;
}

void verbs_open(struct end *end, unsigned cqe)
{
	const int access =
		IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ;
	size_t size = options.size ? options.size : 1;

	end->context = device_open();
	end->pd = ibv_alloc_pd(end->context);
	must(end->pd != NULL, "ibv_alloc_pd");
	end->channel = ibv_create_comp_channel(end->context);
	must(end->channel != NULL, "ibv_create_comp_channel");
	end->cq = ibv_create_cq(end->context, (int)cqe, NULL, end->channel, 0);
	must(end->cq != NULL, "ibv_create_cq");
	end->from = buffer(size);
	end->to = buffer(size);
	end->from_mr = ibv_reg_mr(end->pd, end->from, size, access);
	end->to_mr = ibv_reg_mr(end->pd, end->to, size, access);
	must(end->from_mr && end->to_mr, "ibv_reg_mr");
}

struct ibv_qp *verbs_qp(struct end *end, unsigned recvs, unsigned sends)
{
	struct ibv_qp_init_attr init = {
		.send_cq = end->cq,
		.recv_cq = end->cq,
		.cap = { .max_send_wr = sends,
			 .max_recv_wr = recvs,
			 .max_send_sge = 1,
			 .max_recv_sge = 1 },
		.qp_type = IBV_QPT_RC,
	};
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_INIT,
		.port_num = PORT,
		.qp_access_flags = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ,
	};
	struct ibv_qp *qp = ibv_create_qp(end->pd, &init);

	must(qp != NULL, "ibv_create_qp");
	must(!ibv_modify_qp(qp, &attr,
			    IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS),
	     "INIT");
	end->inline_flag = options.size <= init.cap.max_inline_data ? IBV_SEND_INLINE : 0;
	return qp;
}

/* The address that a connection manager would take: the first of IPv4, if there is one. */
static int name_gid(const struct end *end, const struct ibv_port_attr *port, union ibv_gid *gid)
{
	static const uint8_t ipv4[12] = { [10] = 0xff, [11] = 0xff };
	int i;

	for (i = 0; i < port->gid_tbl_len; i++)
		if (!ibv_query_gid(end->context, PORT, i, gid) &&
		    !memcmp(gid->raw, ipv4, sizeof(ipv4)))
			return i;
	must(!ibv_query_gid(end->context, PORT, 0, gid), "ibv_query_gid");
	return 0;
}

void verbs_name(const struct end *end, const struct ibv_qp *qp, struct verbs_name *name)
{
	struct ibv_port_attr port;

	must(!ibv_query_port(end->context, PORT, &port), "ibv_query_port");
	name->gid_index = name_gid(end, &port, &name->gid);
	name->mtu = port.active_mtu;
	name->lid = port.lid;
	name->qpn = qp->qp_num;
	name->key = end->from_mr->rkey;
	name->addr = (uintptr_t)end->from;
}

void verbs_connect(struct ibv_qp *qp, const struct verbs_name *to)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_RTR,
		.path_mtu = to->mtu,
		.dest_qp_num = to->qpn,
		.max_dest_rd_atomic = 4,
		.min_rnr_timer = 12,
		.ah_attr = { .is_global = 1,
			     .dlid = to->lid,
			     .port_num = PORT,
			     .grh = { .dgid = to->gid,
				      .sgid_index = (uint8_t)to->gid_index,
				      .hop_limit = 64 } },
	};

	must(!ibv_modify_qp(qp, &attr,
			    IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
				    IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
				    IBV_QP_MIN_RNR_TIMER),
	     "RTR");
	attr = (struct ibv_qp_attr){ .qp_state = IBV_QPS_RTS,
				     .timeout = 14,
				     .retry_cnt = 7,
				     .rnr_retry = 7,
				     .max_rd_atomic = 4 };
	must(!ibv_modify_qp(qp, &attr,
			    IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
				    IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC),
	     "RTS");
}
