/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* One side of connections through librdmacm, as any program sets them up. */
#ifndef BENCH_VERBS_H
#define BENCH_VERBS_H

#include <rdma/rdma_cma.h>
#include "bench/measure.h"

struct end {
	struct rdma_event_channel *events;
	struct rdma_cm_id **ids;
	struct ibv_qp **qps;
	struct sockaddr_in address;	       /* the address that side 1 listens on */
	unsigned resolved, established, ended; /* all connections, in order */

	struct ibv_pd *pd;
	struct ibv_comp_channel *channel;
	struct ibv_cq *cq;
	struct ibv_qp *qp; /* the connection in use */
	/* the second buffer is also target and source of the other side's RDMA */
	uint8_t *from, *to;
	struct ibv_mr *from_mr, *to_mr;
	uint32_t recvs, sends; /* the depth of a QP */
	uint32_t inline_size;
	/* filled once, as programs do that need speed */
	struct ibv_sge sge;
	struct ibv_send_wr wr;
};

/* Creates what connections share as soon as the device is known. */
void end_open(struct end *end, struct ibv_context *context);

/* Called on both sides; side 1 listens. */
void cm_open(struct end *end);
/*
 * Called on both sides when all of options.count are connected: ids[i] of one side with ids[i] of
 * the other.
 */
void cm_connect(struct end *end);
/* The test conn: connections a second, options.burst of them at a time. */
void cm_measure(struct end *end);

#endif
