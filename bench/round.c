/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/*
 * One round on the drop-in: a receive and a send are posted and three polls find both completions, then nothing. The two
 * QPs are of this process. For callgrind, which counts the instructions inside round(): see `make bench-round`.
 *
 *     round ROUNDS [srq]
 */
#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SIZE 8

static void must(bool good, const char *what)
{
	if (good)
		return;
	perror(what);
	exit(1);
}

struct bench {
	struct ibv_context *context;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_srq *srq; /* NULL: the receives are the QP's own */
	struct ibv_qp *from, *to;
	struct ibv_mr *mr;
	union ibv_gid gid;
	uint8_t memory[2 * SIZE];
};

static struct ibv_qp *qp_make(struct bench *bench, struct ibv_srq *srq)
{
	struct ibv_qp_init_attr init = { .send_cq = bench->cq,
					 .recv_cq = bench->cq,
					 .srq = srq,
					 .cap = { 16, 16, 1, 1, SIZE },
					 .qp_type = IBV_QPT_RC };
	struct ibv_qp *qp = ibv_create_qp(bench->pd, &init);

	must(qp, "ibv_create_qp");
	return qp;
}

static void qp_connect(const struct bench *bench, struct ibv_qp *qp, uint32_t peer)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT, .port_num = 1 };

	must(!ibv_modify_qp(qp, &attr,
			    IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS),
	     "INIT");
	attr = (struct ibv_qp_attr){
		.qp_state = IBV_QPS_RTR,
		.path_mtu = IBV_MTU_1024,
		.dest_qp_num = peer,
		.ah_attr = { .is_global = 1,
			     .grh = { .dgid = bench->gid, .hop_limit = 1 },
			     .port_num = 1 },
	};
	must(!ibv_modify_qp(qp, &attr,
			    IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
				    IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
				    IBV_QP_MIN_RNR_TIMER),
	     "RTR");
	attr = (struct ibv_qp_attr){
		.qp_state = IBV_QPS_RTS, .timeout = 14, .retry_cnt = 7, .rnr_retry = 7
	};
	must(!ibv_modify_qp(qp, &attr,
			    IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
				    IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC),
	     "RTS");
}

static void bench_open(struct bench *bench, bool srq)
{
	struct ibv_srq_init_attr init = { .attr = { .max_wr = 16, .max_sge = 1 } };
	struct ibv_device **devices = ibv_get_device_list(NULL);

	must(devices && *devices, "ibv_get_device_list");
	bench->context = ibv_open_device(*devices);
	must(bench->context, "ibv_open_device");
	ibv_free_device_list(devices);
	must(!ibv_query_gid(bench->context, 1, 0, &bench->gid), "ibv_query_gid");
	bench->pd = ibv_alloc_pd(bench->context);
	must(bench->pd, "ibv_alloc_pd");
	bench->cq = ibv_create_cq(bench->context, 64, NULL, NULL, 0);
	must(bench->cq, "ibv_create_cq");
	bench->srq = srq ? ibv_create_srq(bench->pd, &init) : NULL;
	must(bench->srq || !srq, "ibv_create_srq");
	bench->mr =
		ibv_reg_mr(bench->pd, bench->memory, sizeof(bench->memory), IBV_ACCESS_LOCAL_WRITE);
	must(bench->mr, "ibv_reg_mr");
	bench->from = qp_make(bench, NULL);
	bench->to = qp_make(bench, bench->srq);
	qp_connect(bench, bench->from, bench->to->qp_num);
	qp_connect(bench, bench->to, bench->from->qp_num);
}

static void bench_close(struct bench *bench)
{
	must(!ibv_destroy_qp(bench->from) && !ibv_destroy_qp(bench->to), "ibv_destroy_qp");
	must(!bench->srq || !ibv_destroy_srq(bench->srq), "ibv_destroy_srq");
	must(!ibv_dereg_mr(bench->mr) && !ibv_destroy_cq(bench->cq) && !ibv_dealloc_pd(bench->pd) &&
		     !ibv_close_device(bench->context),
	     "close");
}

/* Returns the completions that three polls found. */
static __attribute__((noinline)) int round_once(struct bench *bench)
{
	struct ibv_sge to = { (uintptr_t)bench->memory, SIZE, bench->mr->lkey };
	struct ibv_sge from = { (uintptr_t)bench->memory + SIZE, SIZE, bench->mr->lkey };
	struct ibv_recv_wr recv = { .sg_list = &to, .num_sge = 1 }, *bad_recv;
	struct ibv_send_wr send = { .sg_list = &from,
				    .num_sge = 1,
				    .opcode = IBV_WR_SEND,
				    .send_flags = IBV_SEND_SIGNALED | IBV_SEND_INLINE },
			   *bad_send;
	struct ibv_wc wc;
	int found = 0;

	if (bench->srq ? ibv_post_srq_recv(bench->srq, &recv, &bad_recv)
		       : ibv_post_recv(bench->to, &recv, &bad_recv))
		return -1;
	if (ibv_post_send(bench->from, &send, &bad_send))
		return -1;
	for (int i = 0; i < 3; i++)
		if (ibv_poll_cq(bench->cq, 1, &wc) == 1 && wc.status == IBV_WC_SUCCESS)
			found++;
	return found;
}

int main(int argc, char **argv)
{
	long rounds = argc > 1 ? strtol(argv[1], NULL, 10) : 1;
	struct bench bench = { 0 };

	bench_open(&bench, argc > 2 && !strcmp(argv[2], "srq"));
	while (rounds-- > 0)
		must(round_once(&bench) == 2, "a round");
	bench_close(&bench);
	return 0;
}
