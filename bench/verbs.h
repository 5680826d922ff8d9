/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* The product through libibverbs: an end of a connection, as any program would set one up. */
#ifndef BENCH_VERBS_H
#define BENCH_VERBS_H

#include <infiniband/verbs.h>
#include "bench/measure.h"

#define VERBS_RECVS 1024u
#define VERBS_SENDS 128u
#define VERBS_POLL  16

struct end {
	struct ibv_context *context;
	struct ibv_pd *pd;
	struct ibv_comp_channel *channel;
	struct ibv_cq *cq;
	struct ibv_qp *qp;
	uint8_t *from, *to; /* the first is the other end's target or source, too */
	struct ibv_mr *from_mr, *to_mr;
	unsigned inline_flag; /* IBV_SEND_INLINE where messages are short enough */
	uint64_t there;	      /* the other's `from` */
	uint32_t there_key;
	/* with the request: filled once, as programs that are in a hurry do */
	struct ibv_sge from_sge;
	struct ibv_send_wr wr;
};

/* What the sides tell each other in `shared`, one each. */
struct verbs_name {
	uint32_t qpn, key;
	uint16_t lid;
	union ibv_gid gid;
	int gid_index; /* the same on both sides: one device */
	enum ibv_mtu mtu;
	uint64_t addr;
};

/* The device's context, a PD, a CQ with a channel, registered buffers of options.size bytes. */
void verbs_open(struct end *end, unsigned cqe);
struct ibv_qp *verbs_qp(struct end *end, unsigned recvs, unsigned sends);
/* From RESET to RTS. */
void verbs_connect(struct ibv_qp *qp, const struct verbs_name *to);
void verbs_name(const struct end *end, const struct ibv_qp *qp, struct verbs_name *name);

/* Tests of their own; false: there is no such test. */
bool verbs_many(struct end *end);
bool verbs_cm(struct end *end);

#endif
