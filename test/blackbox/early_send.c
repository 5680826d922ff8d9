/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/*
 * A client of the echo server whose messages arrive before the server's connection is established:
 * the client makes its QPs itself, so it decides when to call rdma_establish, and it may send
 * before that.
 *
 * usage: early-send PORT
 * Answers on another connection show which messages the server has received, because it takes
 * messages in the order of their arrival.
 */
#include <netinet/in.h>
#include <poll.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <rdma/rdma_cma.h>
#include "docs/examples/echo.h"

enum { PATIENCE = 30 /* seconds */, ANSWER = 0x100 /* of a wr_id */ };

struct end {
	struct rdma_cm_id *id;
	struct ibv_cq *cq;
	struct ibv_qp *qp;
	struct ibv_mr *mr;
	bool completed[2][ECHO_EACH]; /* sends, answers */
	char sent[ECHO_EACH][ECHO_MESSAGE], got[ECHO_EACH][ECHO_MESSAGE];
};

static struct rdma_event_channel *channel;

static void must(bool good, const char *what)
{
	if (good)
		return;
	perror(what);
	exit(EXIT_FAILURE);
}

static void await(enum rdma_cm_event_type type)
{
	struct pollfd poller = { .fd = channel->fd, .events = POLLIN };
	struct rdma_cm_event *event = NULL;
	bool right;

	must(poll(&poller, 1, 1000 * PATIENCE) == 1 && !rdma_get_cm_event(channel, &event),
	     rdma_event_str(type));
	right = event->event == type;
	if (!right)
		fprintf(stderr, "%s, expected: ", rdma_event_str(event->event));
	must(!rdma_ack_cm_event(event) && right, rdma_event_str(type));
}

static bool *completed(struct end *end, uint64_t wr_id)
{
	return &end->completed[wr_id >= ANSWER][wr_id % ANSWER];
}

/* An answer may come before the completion of a later send: each that comes is noted. */
static void await_completion(struct end *end, uint64_t wr_id)
{
	time_t deadline = time(NULL) + PATIENCE;
	struct ibv_wc wc;
	int n;

	while (!*completed(end, wr_id)) {
		n = ibv_poll_cq(end->cq, 1, &wc);
		must(n >= 0 && time(NULL) < deadline,
		     wr_id & ANSWER ? "no answer" : "no completion of a send");
		if (!n) {
			sched_yield();
			continue;
		}
		must(wc.status == IBV_WC_SUCCESS && wc.wr_id % ANSWER < ECHO_EACH &&
			     !*completed(end, wc.wr_id),
		     "another completion");
		*completed(end, wc.wr_id) = true;
	}
}

static void drive(struct end *end, enum ibv_qp_state state)
{
	struct ibv_qp_attr attr = { .qp_state = state };
	int mask;

	must(!rdma_init_qp_attr(end->id, &attr, &mask) && !ibv_modify_qp(end->qp, &attr, mask),
	     "ibv_modify_qp");
}

static void resolve(struct end *end, uint16_t port)
{
	struct sockaddr_in to = { .sin_family = AF_INET,
				  .sin_port = htons(port),
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };

	must(!rdma_create_id(channel, &end->id, end, RDMA_PS_TCP) &&
		     !rdma_resolve_addr(end->id, NULL, (struct sockaddr *)&to, 1000 * PATIENCE),
	     "rdma_resolve_addr");
	await(RDMA_CM_EVENT_ADDR_RESOLVED);
	must(!rdma_resolve_route(end->id, 1000 * PATIENCE), "rdma_resolve_route");
	await(RDMA_CM_EVENT_ROUTE_RESOLVED);
}

static void make_qp(struct end *end)
{
	struct ibv_qp_init_attr init = {
		.cap = { .max_send_wr = ECHO_EACH,
			 .max_recv_wr = ECHO_EACH,
			 .max_send_sge = 1,
			 .max_recv_sge = 1 },
		.qp_type = IBV_QPT_RC,
		.sq_sig_all = 1,
	};
	struct ibv_pd *pd = end->id->pd;

	end->cq = ibv_create_cq(end->id->verbs, 2 * ECHO_EACH, NULL, NULL, 0);
	must(pd && end->cq, "ibv_create_cq");
	end->mr = ibv_reg_mr(pd, end, sizeof(*end), IBV_ACCESS_LOCAL_WRITE);
	init.send_cq = init.recv_cq = end->cq;
	end->qp = ibv_create_qp(pd, &init);
	must(end->mr && end->qp, "ibv_create_qp");
	drive(end, IBV_QPS_INIT);
}

static void receive(struct end *end)
{
	for (int i = 0; i < ECHO_EACH; i++) {
		struct ibv_sge sge = { (uintptr_t)end->got[i], ECHO_MESSAGE, end->mr->lkey };
		struct ibv_recv_wr wr = { .wr_id = ANSWER + (uint64_t)i,
					  .sg_list = &sge,
					  .num_sge = 1 },
				   *bad;

		must(!ibv_post_recv(end->qp, &wr, &bad), "ibv_post_recv");
	}
}

/*
 * Connects up to the reply to the request: this side can send and receive, and the other one waits
 * for rdma_establish.
 */
static struct end *connected(uint16_t port)
{
	struct rdma_conn_param param = { .retry_count = 7, .rnr_retry_count = 7 };
	struct end *end = calloc(1, sizeof(*end));

	must(end, "calloc");
	resolve(end, port);
	make_qp(end);
	receive(end);
	param.qp_num = end->qp->qp_num;
	must(!rdma_connect(end->id, &param), "rdma_connect");
	await(RDMA_CM_EVENT_CONNECT_RESPONSE);
	drive(end, IBV_QPS_RTR);
	drive(end, IBV_QPS_RTS);
	return end;
}

static void establish(struct end *end)
{
	must(!rdma_establish(end->id), "rdma_establish");
}

/*
 * Sends as many messages as an endpoint may have posted; when this returns, the server's queue has
 * them.
 */
static void say(struct end *end, const char *words)
{
	for (int i = 0; i < ECHO_EACH; i++) {
		struct ibv_sge sge = { (uintptr_t)end->sent[i], ECHO_MESSAGE, end->mr->lkey };
		struct ibv_send_wr wr = { .wr_id = (uint64_t)i,
					  .sg_list = &sge,
					  .num_sge = 1,
					  .opcode = IBV_WR_SEND },
				   *bad;

		snprintf(end->sent[i], ECHO_MESSAGE, "%s %d", words, i);
		must(!ibv_post_send(end->qp, &wr, &bad), "ibv_post_send");
		await_completion(end, (uint64_t)i);
	}
}

static void hear(struct end *end)
{
	for (int i = 0; i < ECHO_EACH; i++) {
		await_completion(end, ANSWER + (uint64_t)i);
		must(!memcmp(end->got[i], end->sent[i], ECHO_MESSAGE), "another answer");
	}
}

static void leave(struct end *end)
{
	must(!ibv_destroy_qp(end->qp) && !ibv_destroy_cq(end->cq) && !ibv_dereg_mr(end->mr) &&
		     !rdma_destroy_id(end->id),
	     "the end");
	free(end);
}

int main(int argc, char **argv)
{
	uint16_t port = argc == 2 ? (uint16_t)strtoul(argv[1], NULL, 0) : 0;
	struct end *witness, *early, *gone;

	if (!port) {
		fprintf(stderr, "usage: early-send PORT\n");
		return 2;
	}
	channel = rdma_create_event_channel();
	must(channel, "rdma_create_event_channel");
	witness = connected(port);
	establish(witness);
	early = connected(port);
	gone = connected(port);
	say(early, "early");
	say(gone, "of no consequence");
	say(witness, "afterwards");
	hear(witness);
	establish(early);
	hear(early);
	leave(gone);
	leave(early);
	leave(witness);
	rdma_destroy_event_channel(channel);
	printf("%d early messages: answered in order\n", ECHO_EACH);
	return EXIT_SUCCESS;
}
