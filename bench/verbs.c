/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/*
 * The product through libibverbs and librdmacm: the tests of traffic.h and verbs_cm.c. wake and fd
 * block on the completion channel.
 */
#include <poll.h>
#include <string.h>
#include "bench/verbs.h"

#define POLL 16

/* Each side publishes this in `shared`. */
struct target {
	uint64_t addr;
	uint32_t key;
};

static inline void end_use(struct end *end, unsigned i)
{
	end->qp = end->qps[i];
}

static inline void end_recv(struct end *end, unsigned count)
{
	struct ibv_sge sge = { (uintptr_t)end->to, (uint32_t)options.size, end->to_mr->lkey };
	struct ibv_recv_wr wr = { .wr_id = 1, .sg_list = &sge, .num_sge = 1 }, *bad;

	while (count--)
		must(!ibv_post_recv(end->qp, &wr, &bad), "ibv_post_recv");
}

static inline void end_post(struct end *end, enum ibv_wr_opcode opcode, uint32_t size,
			    unsigned flags)
{
	struct ibv_send_wr *bad;

	end->wr.opcode = opcode;
	end->wr.send_flags = flags;
	end->sge.length = size;
	must(!ibv_post_send(end->qp, &end->wr, &bad), "ibv_post_send");
}

static inline void end_send(struct end *end, uint32_t size, bool signaled)
{
	end_post(end, IBV_WR_SEND, size,
		 (size <= end->inline_size ? IBV_SEND_INLINE : 0) |
			 (signaled ? IBV_SEND_SIGNALED : 0));
}

static inline void end_rdma(struct end *end, bool read)
{
	end_post(end, read ? IBV_WR_RDMA_READ : IBV_WR_RDMA_WRITE, (uint32_t)options.size,
		 IBV_SEND_SIGNALED);
}

static inline void end_add(struct end *end)
{
	struct ibv_send_wr wr = end->wr, *bad;

	end->sge.length = 8;
	wr.opcode = IBV_WR_ATOMIC_FETCH_AND_ADD;
	wr.send_flags = IBV_SEND_SIGNALED;
	wr.wr.atomic.remote_addr = end->wr.wr.rdma.remote_addr;
	wr.wr.atomic.compare_add = 1;
	wr.wr.atomic.rkey = end->wr.wr.rdma.rkey;
	must(!ibv_post_send(end->qp, &wr, &bad), "ibv_post_send");
}

static inline uint8_t *end_first(struct end *end)
{
	return end->from;
}

static inline uint8_t *end_second(struct end *end)
{
	return end->to;
}

static inline void end_poll(struct end *end, struct found *found)
{
	struct ibv_wc wc[POLL];
	int n = ibv_poll_cq(end->cq, POLL, wc);

	must(n >= 0, "ibv_poll_cq");
	for (int i = 0; i < n; i++) {
		if (__builtin_expect(wc[i].status != IBV_WC_SUCCESS, 0))
			fail(ibv_wc_status_str(wc[i].status));
		if (wc[i].opcode & IBV_WC_RECV)
			found->recvs++;
		else
			found->sends++;
	}
}

/* As in the manual page: poll, arm, re-poll, block. */
static inline void end_wait(struct end *end, bool by_fd, struct found *found)
{
	struct pollfd p = { .fd = end->channel->fd, .events = POLLIN };
	unsigned before = found->recvs;
	struct ibv_cq *cq;
	void *context;

	end_poll(end, found);
	if (found->recvs != before)
		return;
	must(!ibv_req_notify_cq(end->cq, 0), "ibv_req_notify_cq");
	end_poll(end, found);
	if (found->recvs != before)
		return;
	must(!by_fd || poll(&p, 1, -1) == 1, "poll");
	must(!ibv_get_cq_event(end->channel, &cq, &context), "ibv_get_cq_event");
	ibv_ack_cq_events(cq, 1);
	end_poll(end, found);
}

#include "bench/traffic.h"

static struct ibv_mr *mr_make(struct end *end, uint8_t **memory)
{
	const int access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
			   IBV_ACCESS_REMOTE_READ |
			   (strcmp(options.test, "add") ? 0 : IBV_ACCESS_REMOTE_ATOMIC);
	struct ibv_mr *mr;

	*memory = buffer();
	mr = ibv_reg_mr(end->pd, *memory, buffer_bytes(), access);
	must(mr != NULL, "ibv_reg_mr");
	return mr;
}

void end_open(struct end *end, struct ibv_context *context)
{
	unsigned cqe = (end->recvs + end->sends) * options.count;

	end->pd = ibv_alloc_pd(context);
	end->channel = ibv_create_comp_channel(context);
	must(end->pd && end->channel, "ibv_alloc_pd");
	end->cq = ibv_create_cq(context, cqe < 65536 ? (int)cqe : 65536, NULL, end->channel, 0);
	must(end->cq != NULL, "ibv_create_cq");
	end->from_mr = mr_make(end, &end->from);
	end->to_mr = mr_make(end, &end->to);
}

static void end_meet(struct end *end)
{
	struct target *targets = shared;

	targets[side] = (struct target){ (uintptr_t)end->to, end->to_mr->rkey };
	meet();
	end->sge = (struct ibv_sge){ .addr = (uintptr_t)end->from, .lkey = end->from_mr->lkey };
	end->wr = (struct ibv_send_wr){
		.wr_id = 2,
		.sg_list = &end->sge,
		.num_sge = 1,
		.wr.rdma = { targets[!side].addr, targets[!side].key },
	};
	end_use(end, 0);
}

int main(int argc, char **argv)
{
	struct end end = { 0 };
	bool conn, small;

	measure_begin(argc, argv, 2 * sizeof(struct target));
	conn = !strcmp(options.test, "conn");
	small = conn || options.count > 1;
	must(conn || options.size, "no such size");
	end.recvs = small ? RECVS_MANY : RECVS;
	end.sends = small ? RECVS_MANY : SENDS;
	if (conn)
		options.count = options.burst;
	cm_open(&end);
	if (conn) {
		cm_measure(&end);
	} else {
		cm_connect(&end);
		end_meet(&end);
		traffic_run(&end);
	}
	measure_end();
}
