/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/*
 * The product through libibverbs and librdmacm.
 *   lat SIZE            half round trip in ns, polling         wake SIZE   the same, sleeping on the completion channel
 *   rate SIZE           messages one way, 10^6 a second        bw SIZE     the same, signaled each, MB/s
 *   write SIZE, read SIZE   RDMA, MB/s
 *   many SIZE -n COUNT  one round trip on each of COUNT connections in turn: half of one, ns
 *   conn, life -o COUNT connections a second through rdma_cm, so many under way at a time
 */
#include <poll.h>
#include "bench/verbs.h"

struct found {
	unsigned sends, recvs;
};

static inline void end_recv(struct end *end, unsigned count)
{
	struct ibv_sge sge = { (uintptr_t)end->to, (uint32_t)options.size, end->to_mr->lkey };
	struct ibv_recv_wr wr = { .wr_id = 1, .sg_list = &sge, .num_sge = 1 }, *bad;

	while (count--)
		must(!ibv_post_recv(end->qp, &wr, &bad), "ibv_post_recv");
}

static inline void end_post(struct end *end, enum ibv_wr_opcode opcode, unsigned flags)
{
	struct ibv_send_wr *bad;

	end->wr.opcode = opcode;
	end->wr.send_flags = flags;
	must(!ibv_post_send(end->qp, &end->wr, &bad), "ibv_post_send");
}

static inline void end_send(struct end *end, bool signaled)
{
	end_post(end, IBV_WR_SEND, end->inline_flag | (signaled ? IBV_SEND_SIGNALED : 0));
}

static inline void end_rdma(struct end *end, bool read, bool signaled)
{
	end_post(end, read ? IBV_WR_RDMA_READ : IBV_WR_RDMA_WRITE,
		 signaled ? IBV_SEND_SIGNALED : 0);
}

static inline void end_poll(struct end *end, struct found *found)
{
	struct ibv_wc wc[VERBS_POLL];
	int n = ibv_poll_cq(end->cq, VERBS_POLL, wc);

	must(n >= 0, "ibv_poll_cq");
	for (int i = 0; i < n; i++) {
		must(wc[i].status == IBV_WC_SUCCESS, ibv_wc_status_str(wc[i].status));
		if (wc[i].opcode & IBV_WC_RECV)
			found->recvs++;
		else
			found->sends++;
	}
}

/* The way of the manual page: poll, arm, poll again, sleep. */
static inline void end_wait(struct end *end, struct found *found)
{
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
	must(!ibv_get_cq_event(end->channel, &cq, &context), "ibv_get_cq_event");
	ibv_ack_cq_events(cq, 1);
	end_poll(end, found);
}

#include "bench/traffic.h"

static void connect_one(struct end *end)
{
	struct verbs_name *names = shared;

	end->qp = verbs_qp(end, VERBS_RECVS, VERBS_SENDS);
	verbs_name(end, end->qp, &names[side]);
	meet();
	verbs_connect(end->qp, &names[!side]);
	end->there = names[!side].addr;
	end->there_key = names[!side].key;
	end->from_sge = (struct ibv_sge){ (uintptr_t)end->from, (uint32_t)options.size,
					  end->from_mr->lkey };
	end->wr = (struct ibv_send_wr){
		.wr_id = 2,
		.sg_list = &end->from_sge,
		.num_sge = 1,
		.wr.rdma = { end->there, end->there_key },
	};
	meet();
}

int main(int argc, char **argv)
{
	struct end end = { 0 };

	measure_begin(argc, argv, 2 * 8192 * sizeof(struct verbs_name));
	if (!strcmp(options.test, "many") || !strcmp(options.test, "conn") ||
	    !strcmp(options.test, "life")) {
		must(verbs_many(&end) || verbs_cm(&end), "the test");
		measure_end();
	}
	must(options.size != 0, "no such size");
	verbs_open(&end, VERBS_RECVS + VERBS_SENDS);
	connect_one(&end);
	if (!traffic_run(&end))
		fail("no such test");
	measure_end();
}
