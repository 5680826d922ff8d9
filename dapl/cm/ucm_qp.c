/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* The UD CM: the QP that carries a channel's messages. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include "dapl/cm/ucm.h"
#include "util/log.h"

#define POLL_MOST 16

/* A datagram that is longer than its receive would end the QP. So all receives share a buffer for the excess, which is
 * never read. */
static int post_recv(struct ucm *ucm, unsigned slot)
{
	unsigned char *buffer = ucm->memory + (size_t)slot * UCM_RECV,
		      *excess = ucm->memory + (size_t)ucm->depth * (UCM_RECV + UCM_SEND);
	struct ibv_sge sge[] = {
		{ .addr = (uintptr_t)buffer, .length = UCM_RECV, .lkey = ucm->mr->lkey },
		{ .addr = (uintptr_t)excess, .length = UCM_EXCESS, .lkey = ucm->mr->lkey },
	};
	struct ibv_recv_wr wr = { .wr_id = slot, .sg_list = sge, .num_sge = 2 }, *bad;

	return ibv_post_recv(ucm->qp, &wr, &bad);
}

/* ---- send ---- */

static struct ibv_ah *ah_for(struct cm_channel *channel, uint16_t lid)
{
	struct ibv_ah_attr attr = { .dlid = lid,
				    .sl = (uint8_t)cm_setting(channel, SET_IB_SL),
				    .port_num = channel->port.num };
	struct ucm *ucm = channel->ucm;

	if (!lid || lid >= UCM_UNICAST)
		return NULL;
	if (!ucm->ahs[lid])
		ucm->ahs[lid] = ibv_create_ah(ucm->pd, &attr);
	if (!ucm->ahs[lid])
		log_at(LOG_WARN, "UD CM: ibv_create_ah for LID 0x%x: %m", lid);
	return ucm->ahs[lid];
}

static bool slot_free(struct ucm *ucm)
{
	struct ibv_wc wc[POLL_MOST];
	int n = 1;

	while (ucm->sending && (n = ibv_poll_cq(ucm->send_cq, POLL_MOST, wc)) > 0)
		ucm->sending -= (unsigned)n;
	return ucm->sending < ucm->depth;
}

void ucm_send(struct cm_channel *channel, uint16_t lid, uint32_t qpn, const void *bytes,
	      size_t size)
{
	struct ucm *ucm = channel->ucm;
	unsigned char *slot =
		ucm->memory + (size_t)ucm->depth * UCM_RECV + (size_t)ucm->next_send * UCM_SEND;
	struct ibv_sge sge = { .addr = (uintptr_t)slot,
			       .length = (uint32_t)size,
			       .lkey = ucm->mr->lkey };
	struct ibv_send_wr wr = { .sg_list = &sge,
				  .num_sge = 1,
				  .opcode = IBV_WR_SEND,
				  .send_flags = IBV_SEND_SIGNALED,
				  .wr.ud = { .ah = ah_for(channel, lid),
					     .remote_qpn = qpn,
					     .remote_qkey = CM_UD_QKEY } },
			   *bad;
	int error;

	if (!wr.wr.ud.ah)
		return;
	if (!slot_free(ucm)) {
		log_at(LOG_NOTE, "UD CM: no room for a message: it counts as lost");
		return;
	}
	memcpy(slot, bytes, size);
	error = ibv_post_send(ucm->qp, &wr, &bad);
	if (error) {
		log_at(LOG_WARN, "UD CM: ibv_post_send: %s", strerror(error));
		return;
	}
	ucm->sending++;
	ucm->next_send = (ucm->next_send + 1) % ucm->depth;
}

/* ---- receive ---- */

static void arrival(struct cm_channel *channel, const struct ibv_wc *wc)
{
	struct ucm *ucm = channel->ucm;
	const unsigned char *bytes = ucm->memory + (size_t)wc->wr_id * UCM_RECV;
	int error;

	if (wc->status == IBV_WC_WR_FLUSH_ERR)
		return;
	if (wc->status == IBV_WC_SUCCESS && wc->byte_len >= UCM_GRH && wc->byte_len <= UCM_RECV)
		ucm_receive(channel, bytes + UCM_GRH, wc->byte_len - UCM_GRH);
	error = post_recv(ucm, (unsigned)wc->wr_id);
	if (error)
		log_at(LOG_WARN, "UD CM: ibv_post_recv: %s", strerror(error));
}

static void arrived(struct cm_channel *channel, struct cm_source *source, uint32_t events)
{
	struct ucm *ucm = channel->ucm;
	struct ibv_wc wc[POLL_MOST];
	struct ibv_cq *cq;
	unsigned handled;
	void *context;
	int i, n;

	(void)source;
	(void)events;
	while (!ibv_get_cq_event(ucm->completions, &cq, &context))
		ibv_ack_cq_events(cq, 1);
	if (ibv_req_notify_cq(ucm->recv_cq, 0))
		log_at(LOG_WARN, "UD CM: ibv_req_notify_cq fails");
	/* Of a flood no more than the CQ can have held when it was armed: a later completion raises an event again. */
	for (handled = 0; handled < ucm->depth; handled += (unsigned)n) {
		n = ibv_poll_cq(ucm->recv_cq, POLL_MOST, wc);
		if (n <= 0)
			return;
		for (i = 0; i < n; i++)
			arrival(channel, &wc[i]);
	}
}

/* ---- open ---- */

static int to_rts(struct cm_channel *channel, struct ibv_qp *qp)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT,
				    .port_num = channel->port.num,
				    .qkey = CM_UD_QKEY };
	int error = ibv_modify_qp(qp, &attr,
				  IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY);

	attr.qp_state = IBV_QPS_RTR;
	if (!error)
		error = ibv_modify_qp(qp, &attr, IBV_QP_STATE);
	attr.qp_state = IBV_QPS_RTS;
	attr.sq_psn = 1;
	return error ? error : ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN);
}

static int memory_make(struct ucm *ucm)
{
	size_t size = (size_t)ucm->depth * (UCM_RECV + UCM_SEND) + UCM_EXCESS;

	ucm->memory = calloc(1, size);
	ucm->ahs = calloc(UCM_UNICAST, sizeof(*ucm->ahs));
	ucm->by_port = calloc(UCM_PORTS, sizeof(*ucm->by_port));
	if (!ucm->memory || !ucm->ahs || !ucm->by_port)
		return ENOMEM;
	ucm->mr = ibv_reg_mr(ucm->pd, ucm->memory, size, IBV_ACCESS_LOCAL_WRITE);
	return ucm->mr ? 0 : errno;
}

static int queues_make(struct cm_channel *channel)
{
	struct ucm *ucm = channel->ucm;
	struct ibv_context *verbs = channel->port.verbs;
	struct ibv_qp_init_attr init = { .qp_type = IBV_QPT_UD };
	int flags;

	ucm->completions = ibv_create_comp_channel(verbs);
	if (!ucm->completions)
		return errno;
	flags = fcntl(ucm->completions->fd, F_GETFL);
	if (flags < 0 || fcntl(ucm->completions->fd, F_SETFL, flags | O_NONBLOCK))
		return errno;
	ucm->recv_cq = ibv_create_cq(verbs, (int)ucm->depth, NULL, ucm->completions, 0);
	ucm->send_cq = ucm->recv_cq ? ibv_create_cq(verbs, (int)ucm->depth, NULL, NULL, 0) : NULL;
	if (!ucm->send_cq)
		return errno;
	init.send_cq = ucm->send_cq;
	init.recv_cq = ucm->recv_cq;
	init.cap.max_send_wr = init.cap.max_recv_wr = ucm->depth;
	init.cap.max_send_sge = 1;
	init.cap.max_recv_sge = 2;
	ucm->qp = ibv_create_qp(ucm->pd, &init);
	return ucm->qp ? to_rts(channel, ucm->qp) : errno;
}

static int start(struct cm_channel *channel)
{
	struct ucm *ucm = channel->ucm;
	unsigned i;
	int error = 0;

	for (i = 0; i < ucm->depth && !error; i++)
		error = post_recv(ucm, i);
	if (!error)
		error = ibv_req_notify_cq(ucm->recv_cq, 0);
	ucm->arrivals = (struct cm_source){ .fd = ucm->completions->fd, .ready = arrived };
	return error ? error : cm_source_add(channel, &ucm->arrivals, EPOLLIN);
}

/* Makes the address by which peers find the port's CM; consumers store as many bytes of it as of an IPv6
 * address. */
static void address_make(struct cm_channel *channel)
{
	struct cm_endpoint own = { .family = AF_INET6,
				   .lid = channel->port.lid,
				   .qpn = channel->ucm->qp->qp_num,
				   .qp_type = IBV_QPT_UD };

	memcpy(own.gid, channel->port.gid.raw, sizeof(own.gid));
	cm_endpoint_write(&own, (unsigned char *)&channel->address);
}

/* The default for large jobs may be more than a device offers. */
static unsigned depth_of(const struct cm_channel *channel)
{
	const struct cm_port *port = &channel->port;
	long wanted = cm_setting(channel, SET_UCM_QP_SIZE);
	int most = port->max_wr < port->max_cqe ? port->max_wr : port->max_cqe;

	return (unsigned)(wanted < most ? wanted : most);
}

int ucm_open(struct cm_channel *channel)
{
	const char *name = ibv_get_device_name(channel->port.verbs->device);
	struct ucm *ucm;
	int error;

	if (channel->port.ethernet || !channel->port.lid) {
		log_at(LOG_ERROR,
		       "%s: port %u has no LID: the UD CM needs an InfiniBand port that is up; "
		       "libdaploscm.so.2 does not",
		       name, channel->port.num);
		return ENXIO;
	}
	ucm = channel->ucm = calloc(1, sizeof(*ucm));
	if (!ucm)
		return ENOMEM;
	LIST_INIT(&ucm->conns);
	ucm->depth = depth_of(channel);
	ucm->pd = ibv_alloc_pd(channel->port.verbs);
	error = ucm->pd ? memory_make(ucm) : errno;
	if (!error)
		error = queues_make(channel);
	if (!error)
		error = start(channel);
	if (error)
		log_at(LOG_ERROR, "%s: the QP of the UD CM: %s", name, strerror(error));
	else
		address_make(channel);
	return error;
}

/* Accepts an incomplete UCM. The completion channel owns the source's descriptor. */
void ucm_close(struct cm_channel *channel)
{
	struct ucm *ucm = channel->ucm;
	unsigned i;

	if (!ucm)
		return;
	while (!LIST_EMPTY(&ucm->conns))
		ucm_conn_free(LIST_FIRST(&ucm->conns));
	if (ucm->arrivals.ready)
		cm_source_ignore(channel, &ucm->arrivals);
	if (ucm->qp)
		ibv_destroy_qp(ucm->qp);
	for (i = 0; ucm->ahs && i < UCM_UNICAST; i++)
		if (ucm->ahs[i])
			ibv_destroy_ah(ucm->ahs[i]);
	if (ucm->send_cq)
		ibv_destroy_cq(ucm->send_cq);
	if (ucm->recv_cq)
		ibv_destroy_cq(ucm->recv_cq);
	if (ucm->completions)
		ibv_destroy_comp_channel(ucm->completions);
	if (ucm->mr)
		ibv_dereg_mr(ucm->mr);
	if (ucm->pd)
		ibv_dealloc_pd(ucm->pd);
	free(ucm->by_id);
	free(ucm->by_port);
	free(ucm->ahs);
	free(ucm->memory);
	free(ucm);
	channel->ucm = NULL;
}
