/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/*
 * Many senders, one SRQ and one CQ; for blackbox/fabric-mix.sh.
 *
 *	mix server ADDRESS PORT CONNECTIONS	receives from all, checks the order and each byte
 *	mix client PORT ADDRESS...		sends to each address over CONNECTIONS_EACH connections in turn
 */
#include <rdma/rdma_cma.h>
#include <rdma/rdma_verbs.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CONNECTIONS_EACH 8
#define CONNECTIONS_MOST 64
#define MESSAGES	 300u
#define RECEIVES	 32
#define LONGEST		 9000u /* beyond what is copied into a ring at once */

struct message {
	uint32_t number, length; /* of all of it */
	uint8_t rest[LONGEST];
};

static struct message buffers[RECEIVES];

static void *must(void *result, const char *call)
{
	if (!result) {
		perror(call);
		exit(1);
	}
	return result;
}

static void must_be_0(int result, const char *call)
{
	must(result ? NULL : buffers, call);
}

static uint32_t length_of(uint32_t number)
{
	return number % 3 ? 8 + number % 50 : (uint32_t)sizeof(struct message) - number;
}

static struct rdma_addrinfo *resolve(char *address, char *port, int flags)
{
	struct rdma_addrinfo hints = { .ai_flags = flags, .ai_port_space = RDMA_PS_TCP }, *info;

	must_be_0(rdma_getaddrinfo(address, port, &hints, &info), "rdma_getaddrinfo");
	return info;
}

/* ---- the server ---- */

struct server {
	struct ibv_srq *srq;
	struct ibv_cq *cq;
	struct ibv_mr *mr;
	struct rdma_cm_id *id[CONNECTIONS_MOST];
	uint32_t next[CONNECTIONS_MOST]; /* the number of the message that comes next */
	int connections;
};

static void receive_post(struct server *server, uint64_t index)
{
	struct ibv_sge sge = { (uintptr_t)&buffers[index], sizeof(*buffers), server->mr->lkey };
	struct ibv_recv_wr wr = { .wr_id = index, .sg_list = &sge, .num_sge = 1 }, *bad;

	must_be_0(ibv_post_srq_recv(server->srq, &wr, &bad), "ibv_post_srq_recv");
}

static void server_open(struct server *server, struct ibv_context *context, struct ibv_pd *pd)
{
	struct ibv_srq_init_attr init = { .attr = { .max_wr = RECEIVES, .max_sge = 1 } };

	server->srq = must(ibv_create_srq(pd, &init), "ibv_create_srq");
	server->cq = must(ibv_create_cq(context, 256, NULL, NULL, 0), "ibv_create_cq");
	server->mr = must(ibv_reg_mr(pd, buffers, sizeof(buffers), IBV_ACCESS_LOCAL_WRITE),
			  "ibv_reg_mr");
	for (uint64_t i = 0; i < RECEIVES; i++)
		receive_post(server, i);
}

static void server_accept(struct server *server, struct rdma_cm_id *listener)
{
	struct rdma_conn_param param = { .rnr_retry_count = 7 };
	struct ibv_qp_init_attr init = { .qp_type = IBV_QPT_RC,
					 .cap = { .max_send_wr = 1, .max_send_sge = 1 } };
	struct rdma_cm_id *id;

	must_be_0(rdma_get_request(listener, &id), "rdma_get_request");
	if (!server->srq)
		server_open(server, id->verbs, id->pd);
	init.srq = server->srq;
	init.send_cq = init.recv_cq = server->cq;
	must_be_0(rdma_create_qp(id, id->pd, &init), "rdma_create_qp");
	server->id[server->connections++] = id;
	must_be_0(rdma_accept(id, &param), "rdma_accept");
}

static int connection_of(const struct server *server, uint32_t qp_num)
{
	int i = 0;

	while (i < server->connections && server->id[i]->qp->qp_num != qp_num)
		i++;
	return i;
}

static void server_check(struct server *server, const struct ibv_wc *wc)
{
	const struct message *message = &buffers[wc->wr_id];
	uint32_t size = wc->byte_len, number = message->number;
	int i = connection_of(server, wc->qp_num);
	bool right = wc->status == IBV_WC_SUCCESS && i < server->connections &&
		     number == server->next[i] && message->length == size &&
		     size == length_of(number);

	for (uint32_t at = 0; right && at < size - 8; at++)
		right = message->rest[at] == (uint8_t)(number + at);
	if (!right) {
		fprintf(stderr, "qp 0x%x: status %d, %u bytes, number %u instead of %u\n",
			wc->qp_num, wc->status, size, number,
			i < server->connections ? server->next[i] : 0);
		exit(1);
	}
	server->next[i]++;
}

static int serve(char *address, char *port, int connections)
{
	struct rdma_addrinfo *info = resolve(address, port, RAI_PASSIVE);
	struct server server = { .connections = 0 };
	uint32_t left = (uint32_t)connections * MESSAGES;
	struct rdma_cm_id *listener;
	struct ibv_wc wc;

	must_be_0(rdma_create_ep(&listener, info, NULL, NULL), "rdma_create_ep");
	must_be_0(rdma_listen(listener, CONNECTIONS_MOST), "rdma_listen");
	while (server.connections < connections)
		server_accept(&server, listener);
	while (left) {
		int count = ibv_poll_cq(server.cq, 1, &wc);

		must_be_0(count < 0, "ibv_poll_cq");
		if (!count)
			continue;
		server_check(&server, &wc);
		receive_post(&server, wc.wr_id);
		left--;
	}
	printf("%d connections, %u messages each\n", connections, MESSAGES);
	return 0;
}

/* ---- the client ---- */

static struct rdma_cm_id *connection_open(char *address, char *port)
{
	struct ibv_qp_init_attr init = {
		.qp_type = IBV_QPT_RC,
		.sq_sig_all = 1,
		.cap = { .max_send_wr = 4, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1 }
	};
	struct rdma_conn_param param = { .retry_count = 7, .rnr_retry_count = 7 };
	struct rdma_addrinfo *info = resolve(address, port, 0);
	struct rdma_cm_id *id;

	must_be_0(rdma_create_ep(&id, info, NULL, &init), "rdma_create_ep");
	must_be_0(rdma_connect(id, &param), "rdma_connect");
	rdma_freeaddrinfo(info);
	return id;
}

static int send_to(char *port, char **addresses, int count)
{
	struct rdma_cm_id *id[CONNECTIONS_MOST];
	struct ibv_mr *mr[CONNECTIONS_MOST];
	struct message *message = buffers;
	struct ibv_wc wc;

	count *= CONNECTIONS_EACH;
	for (int i = 0; i < count; i++) {
		id[i] = connection_open(addresses[i % (count / CONNECTIONS_EACH)], port);
		mr[i] = must(rdma_reg_msgs(id[i], message, sizeof(*message)), "rdma_reg_msgs");
	}
	for (uint32_t number = 0; number < MESSAGES; number++) {
		message->number = number;
		message->length = length_of(number);
		for (uint32_t at = 0; at < message->length - 8; at++)
			message->rest[at] = (uint8_t)(number + at);
		for (int i = 0; i < count; i++)
			must_be_0(rdma_post_send(id[i], NULL, message, message->length, mr[i], 0),
				  "rdma_post_send");
		for (int i = 0; i < count; i++)
			if (rdma_get_send_comp(id[i], &wc) != 1 || wc.status != IBV_WC_SUCCESS) {
				fprintf(stderr, "connection %d, message %u: status %d\n", i, number,
					wc.status);
				return 1;
			}
	}
	printf("%d connections\n", count);
	return 0;
}

int main(int argc, char **argv)
{
	if (argc == 5 && !strcmp(argv[1], "server") && atoi(argv[4]) <= CONNECTIONS_MOST)
		return serve(argv[2], argv[3], atoi(argv[4]));
	if (argc >= 4 && !strcmp(argv[1], "client") &&
	    (argc - 3) * CONNECTIONS_EACH <= CONNECTIONS_MOST)
		return send_to(argv[2], argv + 3, argc - 3);
	fprintf(stderr, "usage: see the source\n");
	return 2;
}
