/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/*
 * UC: messages to a QP that is not ready are lost, and their requests succeed; the next one arrives. For
 * blackbox/fabric-data.sh: `uc_lost send` and `uc_lost receive` read each other's output.
 */
#include <endian.h>
#include <infiniband/verbs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define LOST	 3
#define PATIENCE 30 /* seconds */
#define IMM	 42u

struct end {
	struct ibv_context *context;
	struct ibv_cq *cq;
	struct ibv_qp *qp;
	union ibv_gid gid;
};

static void need(int holds, const char *what)
{
	if (!holds) {
		perror(what);
		exit(1);
	}
}

static void end_open(struct end *end)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_qp_init_attr init = { .qp_type = IBV_QPT_UC,
					 .sq_sig_all = 1,
					 .cap = { .max_send_wr = 8, .max_recv_wr = 1 } };
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT, .port_num = 1 };
	struct ibv_pd *pd;

	need(list && list[0], "ibv_get_device_list");
	need(!!(end->context = ibv_open_device(list[0])), "ibv_open_device");
	need(!!(pd = ibv_alloc_pd(end->context)), "ibv_alloc_pd");
	need(!!(end->cq = ibv_create_cq(end->context, 8, NULL, NULL, 0)), "ibv_create_cq");
	init.send_cq = init.recv_cq = end->cq;
	need(!!(end->qp = ibv_create_qp(pd, &init)), "ibv_create_qp");
	need(!ibv_query_gid(end->context, 1, 1, &end->gid), "ibv_query_gid");
	need(!ibv_modify_qp(end->qp, &attr,
			    IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS),
	     "INIT");
	printf("%u %llx %llx\n", end->qp->qp_num, be64toh(end->gid.global.subnet_prefix) + 0ull,
	       be64toh(end->gid.global.interface_id) + 0ull);
	fflush(stdout);
}

/* The state is RTR, with the QP that the other program has printed. */
static void end_connect(struct end *end, unsigned dest, const union ibv_gid *gid)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_RTR,
		.path_mtu = IBV_MTU_1024,
		.dest_qp_num = dest,
		.ah_attr = { .is_global = 1,
			     .port_num = 1,
			     .grh = { .dgid = *gid, .sgid_index = 1, .hop_limit = 64 } }
	};

	need(!ibv_modify_qp(end->qp, &attr,
			    IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
				    IBV_QP_RQ_PSN),
	     "RTR");
}

static struct ibv_wc completion_get(struct end *end)
{
	time_t deadline = time(NULL) + PATIENCE;
	struct ibv_wc wc;
	int count;

	while (!(count = ibv_poll_cq(end->cq, 1, &wc)))
		need(time(NULL) < deadline, "no completion");
	need(count == 1 && wc.status == IBV_WC_SUCCESS, ibv_wc_status_str(wc.status));
	return wc;
}

static void send_one(struct end *end, uint32_t imm)
{
	struct ibv_send_wr wr = { .opcode = IBV_WR_SEND_WITH_IMM, .imm_data = htobe32(imm) }, *bad;

	need(!ibv_post_send(end->qp, &wr, &bad), "ibv_post_send");
}

static void word_wait(const char *word)
{
	char line[64] = "";

	need(fgets(line, sizeof(line), stdin) && !strcmp(line, word), word);
}

static void sender(struct end *end)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_RTS };

	need(!ibv_modify_qp(end->qp, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN), "RTS");
	for (uint32_t i = 0; i < LOST; i++)
		send_one(end, i);
	for (uint32_t i = 0; i < LOST; i++)
		completion_get(end);
	printf("lost\n");
	fflush(stdout);
	word_wait("ready\n");
	send_one(end, IMM);
	completion_get(end);
}

int main(int argc, char **argv)
{
	int sends = argc == 2 && !strcmp(argv[1], "send");
	unsigned long long prefix = 0, id = 0;
	struct ibv_recv_wr wr = { .num_sge = 0 }, *bad;
	union ibv_gid gid;
	struct end end;
	char line[128];
	unsigned dest = 0;

	end_open(&end);
	need(fgets(line, sizeof(line), stdin) &&
		     sscanf(line, "%u %llx %llx", &dest, &prefix, &id) == 3,
	     "the other program");
	gid.global.subnet_prefix = htobe64(prefix);
	gid.global.interface_id = htobe64(id);
	if (sends) {
		end_connect(&end, dest, &gid);
		sender(&end);
		return 0;
	}
	word_wait("lost\n");
	need(!ibv_post_recv(end.qp, &wr, &bad), "ibv_post_recv");
	end_connect(&end, dest, &gid);
	printf("ready\n");
	fflush(stdout);
	need(be32toh(completion_get(&end).imm_data) == IMM, "the message");
	return 0;
}
