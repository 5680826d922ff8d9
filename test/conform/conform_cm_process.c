/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* rdma_cm between two processes, which may be on two hosts (remote.h), and the death of one. */
#include <arpa/inet.h>
#include <stdlib.h>
#include <unistd.h>
#include "test/conform/con.h"
#include "test/conform/other.h"

/* ---- the other process: reports its progress, then waits to be killed ---- */

static void stay(void)
{
	other_report(1);
	for (;;)
		pause();
}

/* Connects to the port of that address and takes the events of a connection. */
static void act_connector(const char *host, uint16_t port)
{
	struct rdma_conn_param param = con_param(NULL, 0); /* retry_count is for both sides */
	union ibv_gid gid = { .raw = { 0 } };
	struct sockaddr_storage address;
	struct ibv_qp_init_attr init = {
		.qp_type = IBV_QPT_RC,
		.cap = { .max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1 },
	};
	struct rdma_event_channel *channel = rdma_create_event_channel();
	struct rdma_cm_id *id;

	inet_pton(AF_INET6, host, &gid);
	address = con_address_of(&gid, port);
	param.retry_count = 1;
	if (channel && !rdma_create_id(channel, &id, NULL, RDMA_PS_TCP) &&
	    !rdma_resolve_addr(id, NULL, (struct sockaddr *)&address, 2000) &&
	    con_comes(channel, RDMA_CM_EVENT_ADDR_RESOLVED) && !rdma_resolve_route(id, 2000) &&
	    con_comes(channel, RDMA_CM_EVENT_ROUTE_RESOLVED) && !rdma_create_qp(id, NULL, &init) &&
	    !rdma_connect(id, &param) && con_comes(channel, RDMA_CM_EVENT_ESTABLISHED))
		stay();
}

/* Listens, reports its port, reads a request, accepts it if `accepts`, and does nothing further. */
static void act_listener(bool accepts)
{
	struct sockaddr_storage address = con_address(0);
	struct rdma_event_channel *channel = rdma_create_event_channel();
	struct rdma_conn_param param = con_param(NULL, 0);
	struct rdma_cm_event *event;
	struct ibv_qp_init_attr init = {
		.qp_type = IBV_QPT_RC,
		.cap = { .max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1 },
	};
	struct rdma_cm_id *id;
	uint16_t port;

	if (!channel || rdma_create_id(channel, &id, NULL, RDMA_PS_TCP) ||
	    rdma_bind_addr(id, (struct sockaddr *)&address) || rdma_listen(id, 4))
		return;
	port = ntohs(rdma_get_src_port(id));
	other_report(port);
	event = con_wait(channel, RDMA_CM_EVENT_CONNECT_REQUEST);
	if (event && accepts &&
	    (rdma_create_qp(event->id, NULL, &init) || rdma_accept(event->id, &param) ||
	     !con_comes(channel, RDMA_CM_EVENT_ESTABLISHED))) /* it dies before it refuses */
		return;
	stay();
}

static void act(int argc, char **argv)
{
	if (argc < 5 || strcmp(argv[1], "--act"))
		return;
	if (conform_open()) {
		if (!strcmp(argv[2], "connect"))
			act_connector(argv[4], (uint16_t)atoi(argv[3]));
		else
			act_listener(!strcmp(argv[2], "accept"));
	}
	exit(2);
}

/* ---- this process ---- */

static void connector_dies(void)
{
	struct rdma_conn_param param = con_param(NULL, 0);
	struct ibv_send_wr wr = { .wr_id = 4, .opcode = IBV_WR_SEND }, *bad;
	struct other other;
	struct con con;

	if (!con_open(&con, 4))
		return;
	CU_ASSERT_TRUE_FATAL(
		other_start(&other, "connect", ntohs(rdma_get_src_port(con.listener))));
	if (con_request(&con)) {
		CU_ASSERT_EQUAL(rdma_accept(con.passive, &param), 0);
		CU_ASSERT_TRUE(con_comes(con.server, RDMA_CM_EVENT_ESTABLISHED));
		CU_ASSERT_EQUAL(other_reported(&other), 1);
		other_kill(&other);
		CU_ASSERT_TRUE(con_comes(con.server, RDMA_CM_EVENT_DISCONNECTED));
		CU_ASSERT_EQUAL(state_of(con.passive->qp), IBV_QPS_RTS);
		CU_ASSERT_EQUAL(ibv_post_send(con.passive->qp, &wr, &bad), 0);
		CU_ASSERT_TRUE(completes(con.passive->send_cq, 4, IBV_WC_RETRY_EXC_ERR, NULL));
		CU_ASSERT_EQUAL(rdma_disconnect(con.passive), 0);
	} else {
		other_kill(&other);
	}
	con_close(&con);
}

static void connector_with_an_open_request_dies(void)
{
	struct other other;
	struct con con;

	if (!con_open(&con, 4))
		return;
	CU_ASSERT_TRUE_FATAL(
		other_start(&other, "connect", ntohs(rdma_get_src_port(con.listener))));
	CU_ASSERT_TRUE(con_request(&con));
	other_kill(&other);
	/*
	 * no event is due for a connection that was not established; the listener takes the next
	 * request
	 */
	CU_ASSERT_TRUE(con_silent(con.server));
	if (con_connect(&con, NULL, 0)) {
		con_destroy(&con.passive);
		CU_ASSERT_TRUE(con_request(&con));
	}
	con_close(&con);
}

/* Resolves to the other process's port and connects; returns false if that fails. */
static bool connect_to(struct con *con, struct other *other, const char *role)
{
	struct rdma_conn_param param = con_param(NULL, 0);
	uint16_t port;

	if (!con_open(con, 4))
		return false;
	CU_ASSERT_TRUE_FATAL(other_start(other, role, 0));
	port = other_reported(other);
	CU_ASSERT_NOT_EQUAL_FATAL(port, 0);
	CU_ASSERT_TRUE_FATAL(con_resolve_at(con, &con->active, &other->gid, port) &&
			     con_make_qp(con->active));
	CU_ASSERT_EQUAL(rdma_connect(con->active, &param), 0);
	return true;
}

static void listener_dies_connected(void)
{
	struct other other;
	struct con con;

	if (!connect_to(&con, &other, "accept"))
		return;
	CU_ASSERT_TRUE(con_comes(con.client, RDMA_CM_EVENT_ESTABLISHED));
	CU_ASSERT_EQUAL(other_reported(&other), 1);
	other_kill(&other);
	CU_ASSERT_TRUE(con_comes(con.client, RDMA_CM_EVENT_DISCONNECTED));
	CU_ASSERT_EQUAL(state_of(con.active->qp), IBV_QPS_RTS);
	CU_ASSERT_EQUAL(rdma_disconnect(con.active), 0);
	CU_ASSERT_EQUAL(state_of(con.active->qp), IBV_QPS_ERR);
	con_close(&con);
}

static void listener_dies_asked(void)
{
	struct rdma_cm_event *event;
	struct other other;
	struct con con;

	if (!connect_to(&con, &other, "ignore"))
		return;
	CU_ASSERT_EQUAL(other_reported(&other), 1);
	other_kill(&other);
	event = con_wait(con.client, RDMA_CM_EVENT_REJECTED);
	CU_ASSERT_PTR_NOT_NULL(event);
	if (event) {
		CU_ASSERT_EQUAL(event->status, 28);
		CU_ASSERT_EQUAL(event->param.conn.private_data_len, 148);
		CU_ASSERT_EQUAL(rdma_ack_cm_event(event), 0);
		CU_ASSERT_EQUAL(state_of(con.active->qp), IBV_QPS_ERR);
	}
	con_close(&con);
}

static void port_of_a_dead_listener(void)
{
	struct rdma_conn_param param = con_param(NULL, 0);
	struct rdma_cm_event *event;
	struct other other;
	struct con con;
	uint16_t port;

	if (!con_open(&con, 4))
		return;
	CU_ASSERT_TRUE_FATAL(other_start(&other, "ignore", 0));
	port = other_reported(&other);
	other_kill(&other);
	CU_ASSERT_TRUE_FATAL(con_resolve_at(&con, &con.active, &other.gid, port) &&
			     con_make_qp(con.active));
	CU_ASSERT_EQUAL(rdma_connect(con.active, &param), 0);
	event = con_wait(con.client, RDMA_CM_EVENT_REJECTED);
	CU_ASSERT_PTR_NOT_NULL(event);
	CU_ASSERT_TRUE(event && event->status == 8 && !rdma_ack_cm_event(event));
	con_close(&con);
}

static const struct unit_test tests[] = {
	{ "the connected client is killed: DISCONNECTED, QP stays in RTS, sends end with 12",
	  connector_dies },
	{ "a client is killed while its request is open: the listener goes on",
	  connector_with_an_open_request_dies },
	{ "the connected server is killed: DISCONNECTED", listener_dies_connected },
	{ "the server is killed while the request is open: REJECTED 28", listener_dies_asked },
	{ "the port of a killed listener: REJECTED 8", port_of_a_dead_listener },
};

int main(int argc, char **argv)
{
	act(argc, argv);
	return conform_open() ? unit_main("conform_cm_process", tests, COUNT(tests), argc, argv)
			      : 77;
}
