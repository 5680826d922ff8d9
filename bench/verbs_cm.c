/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/*
 * Connections through librdmacm: side 0 takes each step for a whole burst, then the events of all of it.
 *   conn   from rdma_connect until established; addresses are resolved and QPs of side 0 created before
 */
#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>
#include "bench/verbs.h"

#define TIMEOUT 2000 /* ms */

static const struct rdma_conn_param param = { .responder_resources = 4,
					      .initiator_depth = 4,
					      .retry_count = 7,
					      .rnr_retry_count = 7,
					      .private_data_len = sizeof(uint32_t) };

static void qp_make(struct end *end, struct rdma_cm_id *id)
{
	struct ibv_qp_init_attr init = {
		.cap = { .max_send_wr = end->sends,
			 .max_recv_wr = end->recvs,
			 .max_send_sge = 1,
			 .max_recv_sge = 1 },
		.qp_type = IBV_QPT_RC,
	};

	if (!end->pd)
		end_open(end, id->verbs);
	init.send_cq = init.recv_cq = end->cq;
	must(!rdma_create_qp(id, end->pd, &init), "rdma_create_qp");
	end->inline_size = init.cap.max_inline_data;
}

/* The private data contains the number of the connection. */
static void request_accept(struct end *end, struct rdma_cm_id *id, uint32_t i)
{
	struct rdma_conn_param accept = param;

	accept.private_data_len = 0;
	must(i < options.count, "a connection request");
	end->ids[i] = id;
	qp_make(end, id);
	must(!rdma_accept(id, &accept), "rdma_accept");
}

static void id_end(struct rdma_cm_id *id)
{
	rdma_destroy_qp(id);
	must(!rdma_destroy_id(id), "rdma_destroy_id");
}

static void cm_event(struct end *end)
{
	struct rdma_cm_event *event;
	enum rdma_cm_event_type type;
	struct rdma_cm_id *id;
	uint32_t i = 0;

	must(!rdma_get_cm_event(end->events, &event), "rdma_get_cm_event");
	type = event->event;
	id = event->id;
	if (type == RDMA_CM_EVENT_CONNECT_REQUEST)
		memcpy(&i, event->param.conn.private_data, sizeof(i));
	must(!rdma_ack_cm_event(event), "rdma_ack_cm_event");
	switch (type) {
	case RDMA_CM_EVENT_ADDR_RESOLVED:
		must(!rdma_resolve_route(id, TIMEOUT), "rdma_resolve_route");
		break;
	case RDMA_CM_EVENT_ROUTE_RESOLVED: end->resolved++; break;
	case RDMA_CM_EVENT_CONNECT_REQUEST: request_accept(end, id, i); break;
	case RDMA_CM_EVENT_ESTABLISHED: end->established++; break;
	case RDMA_CM_EVENT_DISCONNECTED:
		end->ended++;
		if (side)
			id_end(id);
		break;
	case RDMA_CM_EVENT_TIMEWAIT_EXIT: break;
	default: fail(rdma_event_str(type));
	}
}

static void cm_until(struct end *end, const unsigned *count, unsigned wanted)
{
	while (*count < wanted)
		cm_event(end);
}

void cm_open(struct end *end)
{
	_Atomic(uint16_t) *port = shared;
	struct rdma_cm_id *listener;

	end->address = (struct sockaddr_in){ .sin_family = AF_INET };
	must(inet_pton(AF_INET, options.address ? options.address : "127.0.0.1",
		       &end->address.sin_addr) == 1,
	     "-a is no IPv4 address");
	end->events = rdma_create_event_channel();
	end->ids = calloc(options.count, sizeof(struct rdma_cm_id *));
	end->qps = calloc(options.count, sizeof(struct ibv_qp *));
	must(end->events && end->ids && end->qps, "rdma_create_event_channel");
	if (side) {
		must(!rdma_create_id(end->events, &listener, NULL, RDMA_PS_TCP) &&
			     !rdma_bind_addr(listener, (struct sockaddr *)&end->address) &&
			     !rdma_listen(listener, 128),
		     "rdma_listen");
		atomic_store(port, rdma_get_src_port(listener));
	}
	meet();
	end->address.sin_port = atomic_load(port);
}

static void burst_resolve(struct end *end, struct rdma_cm_id **ids, unsigned n)
{
	unsigned before = end->resolved;

	for (unsigned i = 0; i < n; i++)
		must(!rdma_create_id(end->events, &ids[i], NULL, RDMA_PS_TCP) &&
			     !rdma_resolve_addr(ids[i], NULL, (struct sockaddr *)&end->address,
						TIMEOUT),
		     "rdma_resolve_addr");
	cm_until(end, &end->resolved, before + n);
	for (unsigned i = 0; i < n; i++)
		qp_make(end, ids[i]);
}

static void burst_connect(struct end *end, struct rdma_cm_id **ids, unsigned n)
{
	struct rdma_conn_param p = param;
	unsigned before = end->established;
	uint32_t number;

	p.private_data = &number;
	for (unsigned i = 0; i < n; i++) {
		number = (uint32_t)(ids - end->ids) + i;
		must(!rdma_connect(ids[i], &p), "rdma_connect");
	}
	cm_until(end, &end->established, before + n);
}

static void burst_end(struct end *end, struct rdma_cm_id **ids, unsigned n)
{
	unsigned before = end->ended;

	for (unsigned i = 0; i < n; i++)
		must(!rdma_disconnect(ids[i]), "rdma_disconnect");
	cm_until(end, &end->ended, before + n);
	for (unsigned i = 0; i < n; i++)
		id_end(ids[i]);
}

void cm_connect(struct end *end)
{
	for (unsigned i = 0, n; !side && i < options.count; i += n) {
		n = options.count - i < options.burst ? options.count - i : options.burst;
		burst_resolve(end, end->ids + i, n);
		burst_connect(end, end->ids + i, n);
	}
	if (side)
		cm_until(end, &end->established, options.count);
	for (unsigned i = 0; i < options.count; i++)
		end->qps[i] = end->ids[i]->qp;
	meet();
}

void cm_measure(struct end *end)
{
	unsigned bursts = batch_of(64) / options.burst + 1;

	if (side)
		cm_until(end, &end->ended, bursts * options.burst * options.batches);
	for (unsigned batch = 0; !side && batch < options.batches; batch++) {
		uint64_t spent = 0;

		for (unsigned i = 0; i < bursts; i++) {
			burst_resolve(end, end->ids, options.burst);
			spent -= now_ns();
			burst_connect(end, end->ids, options.burst);
			spent += now_ns();
			burst_end(end, end->ids, options.burst);
		}
		figure(1e9 * bursts * options.burst / (double)spent);
	}
}
