/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/*
 * Connections through rdma_cm, -o of them under way at a time.
 *   conn   from rdma_connect until established; addresses resolved and QPs of this side made before
 *   life   everything, from rdma_create_id to rdma_destroy_id
 */
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <rdma/rdma_cma.h>
#include "bench/verbs.h"

#define BATCH	64u
#define TIMEOUT 2000

struct cm {
	struct rdma_event_channel *events;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct rdma_cm_id **ids;
	struct sockaddr_in address;
};

static const struct rdma_conn_param param = {
	.responder_resources = 1, .initiator_depth = 1, .retry_count = 7, .rnr_retry_count = 7
};

static void make_qp(struct cm *cm, struct rdma_cm_id *id)
{
	struct ibv_qp_init_attr init = {
		.cap = { .max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1 },
		.qp_type = IBV_QPT_RC,
	};

	if (!cm->pd) {
		cm->pd = ibv_alloc_pd(id->verbs);
		cm->cq = ibv_create_cq(id->verbs, 1024, NULL, NULL, 0);
		must(cm->pd && cm->cq, "ibv_create_cq");
	}
	init.send_cq = init.recv_cq = cm->cq;
	must(!rdma_create_qp(id, cm->pd, &init), "rdma_create_qp");
}

static void end_id(struct rdma_cm_id *id)
{
	rdma_destroy_qp(id);
	must(!rdma_destroy_id(id), "rdma_destroy_id");
}

/* ---- side 1 ---- */

static void serve(struct cm *cm, unsigned connections)
{
	struct rdma_conn_param accept = param;

	while (connections) {
		struct rdma_cm_event *event;
		struct rdma_cm_id *id;
		enum rdma_cm_event_type type;

		must(!rdma_get_cm_event(cm->events, &event), "rdma_get_cm_event");
		id = event->id;
		type = event->event;
		rdma_ack_cm_event(event);
		if (type == RDMA_CM_EVENT_CONNECT_REQUEST) {
			make_qp(cm, id);
			must(!rdma_accept(id, &accept), "rdma_accept");
		} else if (type == RDMA_CM_EVENT_DISCONNECTED) {
			end_id(id);
			connections--;
		}
	}
}

/* ---- side 0: each step for all of a burst, then the events of all of it ---- */

static void await(struct cm *cm, enum rdma_cm_event_type type, unsigned count)
{
	while (count) {
		struct rdma_cm_event *event;

		must(!rdma_get_cm_event(cm->events, &event), "rdma_get_cm_event");
		if (event->event == type)
			count--;
		else
			must(event->event == RDMA_CM_EVENT_TIMEWAIT_EXIT ||
				     event->event == RDMA_CM_EVENT_DISCONNECTED,
			     rdma_event_str(event->event));
		rdma_ack_cm_event(event);
	}
}

static void resolve(struct cm *cm)
{
	for (unsigned i = 0; i < options.outstanding; i++) {
		must(!rdma_create_id(cm->events, &cm->ids[i], NULL, RDMA_PS_TCP), "rdma_create_id");
		must(!rdma_resolve_addr(cm->ids[i], NULL, (struct sockaddr *)&cm->address, TIMEOUT),
		     "rdma_resolve_addr");
	}
	await(cm, RDMA_CM_EVENT_ADDR_RESOLVED, options.outstanding);
	for (unsigned i = 0; i < options.outstanding; i++)
		must(!rdma_resolve_route(cm->ids[i], TIMEOUT), "rdma_resolve_route");
	await(cm, RDMA_CM_EVENT_ROUTE_RESOLVED, options.outstanding);
	for (unsigned i = 0; i < options.outstanding; i++)
		make_qp(cm, cm->ids[i]);
}

static void connect_all(struct cm *cm)
{
	struct rdma_conn_param p = param;

	for (unsigned i = 0; i < options.outstanding; i++)
		must(!rdma_connect(cm->ids[i], &p), "rdma_connect");
	await(cm, RDMA_CM_EVENT_ESTABLISHED, options.outstanding);
}

static void end_all(struct cm *cm)
{
	for (unsigned i = 0; i < options.outstanding; i++)
		must(!rdma_disconnect(cm->ids[i]), "rdma_disconnect");
	await(cm, RDMA_CM_EVENT_DISCONNECTED, options.outstanding);
	for (unsigned i = 0; i < options.outstanding; i++)
		end_id(cm->ids[i]);
}

static void batch(struct cm *cm, bool life)
{
	uint64_t begin, spent = 0;

	for (unsigned n = 0; n < BATCH; n += options.outstanding) {
		begin = now_ns();
		resolve(cm);
		if (!life)
			begin = now_ns();
		connect_all(cm);
		if (!life)
			spent += now_ns() - begin;
		end_all(cm);
		if (life)
			spent += now_ns() - begin;
	}
	figure(BATCH * 1e9 / (double)spent);
}

bool verbs_cm(struct end *end)
{
	bool life = !strcmp(options.test, "life");
	_Atomic(uint16_t) *port = shared;
	struct rdma_cm_id *listener;
	struct cm cm = { .address = { .sin_family = AF_INET,
				      .sin_addr = { htonl(INADDR_LOOPBACK) } } };

	(void)end;
	if (!life && strcmp(options.test, "conn"))
		return false;
	must(BATCH % options.outstanding == 0, "-o does not divide the batch");
	cm.events = rdma_create_event_channel();
	cm.ids = calloc(options.outstanding, sizeof(struct rdma_cm_id *));
	must(cm.events && cm.ids, "rdma_create_event_channel");
	if (side) {
		must(!rdma_create_id(cm.events, &listener, NULL, RDMA_PS_TCP) &&
			     !rdma_bind_addr(listener, (struct sockaddr *)&cm.address) &&
			     !rdma_listen(listener, 128),
		     "rdma_listen");
		atomic_store(port, rdma_get_src_port(listener));
	}
	meet();
	cm.address.sin_port = atomic_load(port);
	if (side)
		serve(&cm, BATCH * options.batches);
	else
		for (unsigned i = 0; i < options.batches; i++)
			batch(&cm, life);
	return true;
}
