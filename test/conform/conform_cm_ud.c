/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* rdma_cm for datagrams: it resolves a port to a queue pair and does nothing else. */
#include <netinet/in.h>
#include "test/conform/con.h"

#define REQUEST_DATA 180
#define ANSWER_DATA  136

static bool udp_open(struct con *con)
{
	return con_open_in(con, 4, RDMA_PS_UDP);
}

static struct rdma_cm_event *asked(struct con *con, const void *data, uint8_t length)
{
	struct rdma_conn_param param = con_param(data, length);
	struct rdma_cm_event *event;

	if (!con_resolve(con, &con->active, ntohs(rdma_get_src_port(con->listener))) ||
	    !con_make_qp(con->active) || rdma_connect(con->active, &param))
		return NULL;
	event = con_wait(con->server, RDMA_CM_EVENT_CONNECT_REQUEST);
	if (event)
		con->passive = event->id;
	return event;
}

static void resolves(void)
{
	struct rdma_conn_param param = con_param("answer", 6);
	struct rdma_cm_event *event;
	struct ibv_ah *ah;
	struct con con;

	if (!udp_open(&con))
		return;
	event = asked(&con, "question", 8);
	CU_ASSERT_PTR_NOT_NULL_FATAL(event);
	CU_ASSERT_EQUAL(event->param.ud.private_data_len, REQUEST_DATA);
	CU_ASSERT_EQUAL(memcmp(event->param.ud.private_data, "question", 9), 0);
	CU_ASSERT_EQUAL(rdma_ack_cm_event(event), 0);
	CU_ASSERT_TRUE(con_make_qp(con.passive));
	CU_ASSERT_EQUAL(state_of(con.passive->qp), IBV_QPS_RTS);
	CU_ASSERT_EQUAL(rdma_accept(con.passive, &param), 0);
	event = con_wait(con.client, RDMA_CM_EVENT_ESTABLISHED);
	CU_ASSERT_PTR_NOT_NULL_FATAL(event);
	CU_ASSERT_EQUAL(event->status, 0);
	CU_ASSERT_EQUAL(event->param.ud.qp_num, con.passive->qp->qp_num);
	CU_ASSERT_EQUAL(event->param.ud.qkey, RDMA_UDP_QKEY);
	CU_ASSERT_EQUAL(event->param.ud.private_data_len, ANSWER_DATA);
	CU_ASSERT_EQUAL(memcmp(event->param.ud.private_data, "answer", 7), 0);
	ah = ibv_create_ah(con.active->pd, &event->param.ud.ah_attr);
	CU_ASSERT_PTR_NOT_NULL(ah);
	CU_ASSERT_EQUAL(rdma_ack_cm_event(event), 0);
	CU_ASSERT_TRUE(con_silent(con.server));
	CU_ASSERT_EQUAL(ibv_destroy_ah(ah), 0);
	con_close(&con);
}

/* A datagram arrives at the address that the event contains. */
static void resolved_is_reached(void)
{
	struct rdma_conn_param param = con_param(NULL, 0);
	struct ibv_send_wr wr = { .wr_id = 3, .opcode = IBV_WR_SEND }, *sbad;
	char header[GRH_SIZE];
	struct ibv_sge sge = { (uintptr_t)header, sizeof(header), 0 };
	struct ibv_recv_wr rwr = { .wr_id = 4, .sg_list = &sge, .num_sge = 1 }, *rbad;
	struct rdma_cm_event *event;
	struct ibv_mr *mr;
	struct con con;

	if (!udp_open(&con))
		return;
	event = asked(&con, NULL, 0);
	CU_ASSERT_PTR_NOT_NULL_FATAL(event);
	rdma_ack_cm_event(event);
	CU_ASSERT_TRUE_FATAL(con_make_qp(con.passive));
	mr = ibv_reg_mr(con.passive->pd, header, sizeof(header), IBV_ACCESS_LOCAL_WRITE);
	CU_ASSERT_PTR_NOT_NULL_FATAL(mr);
	sge.lkey = mr->lkey;
	CU_ASSERT_EQUAL(ibv_post_recv(con.passive->qp, &rwr, &rbad), 0);
	CU_ASSERT_EQUAL(rdma_accept(con.passive, &param), 0);
	event = con_wait(con.client, RDMA_CM_EVENT_ESTABLISHED);
	CU_ASSERT_PTR_NOT_NULL_FATAL(event);
	wr.wr.ud.ah = ibv_create_ah(con.active->pd, &event->param.ud.ah_attr);
	wr.wr.ud.remote_qpn = event->param.ud.qp_num;
	wr.wr.ud.remote_qkey = event->param.ud.qkey;
	rdma_ack_cm_event(event);
	CU_ASSERT_PTR_NOT_NULL_FATAL(wr.wr.ud.ah);
	CU_ASSERT_EQUAL(ibv_post_send(con.active->qp, &wr, &sbad), 0);
	CU_ASSERT_TRUE(completes(con.active->send_cq, 3, IBV_WC_SUCCESS, NULL));
	CU_ASSERT_TRUE(completes(con.passive->recv_cq, 4, IBV_WC_SUCCESS, NULL));
	CU_ASSERT_EQUAL(ibv_destroy_ah(wr.wr.ud.ah), 0);
	rdma_destroy_qp(con.passive);
	CU_ASSERT_EQUAL(ibv_dereg_mr(mr), 0);
	con_close(&con);
}

static void unreachable_is(struct con *con, int status, const char *text)
{
	struct rdma_cm_event *event = con_wait(con->client, RDMA_CM_EVENT_UNREACHABLE);

	CU_ASSERT_PTR_NOT_NULL_FATAL(event);
	CU_ASSERT_EQUAL(event->status, status);
	if (text)
		CU_ASSERT_EQUAL(memcmp(event->param.ud.private_data, text, strlen(text)), 0);
	CU_ASSERT_EQUAL(rdma_ack_cm_event(event), 0);
}

static void rejected(void)
{
	struct rdma_cm_event *event;
	struct con con;

	if (!udp_open(&con))
		return;
	event = asked(&con, NULL, 0);
	CU_ASSERT_PTR_NOT_NULL_FATAL(event);
	rdma_ack_cm_event(event);
	CU_ASSERT_EQUAL(rdma_reject(con.passive, "no", 2), 0);
	unreachable_is(&con, 2, "no");
	CU_ASSERT_EQUAL(state_of(con.active->qp), IBV_QPS_RTS);
	con_close(&con);
}

static void no_listener(void)
{
	struct rdma_conn_param param = con_param(NULL, 0);
	uint16_t port;
	struct con con;

	if (!udp_open(&con))
		return;
	port = ntohs(rdma_get_src_port(con.listener));
	CU_ASSERT_TRUE_FATAL(con_resolve(&con, &con.active, port));
	CU_ASSERT_TRUE(con_make_qp(con.active));
	con_destroy(&con.listener);
	CU_ASSERT_EQUAL(rdma_connect(con.active, &param), 0);
	unreachable_is(&con, 1, NULL);
	con_close(&con);
}

static void data_is_too_long(void)
{
	static const char data[255];
	struct rdma_conn_param param = con_param(data, REQUEST_DATA + 1);
	struct rdma_cm_event *event;
	struct con con;

	if (!udp_open(&con))
		return;
	CU_ASSERT_TRUE_FATAL(
		con_resolve(&con, &con.active, ntohs(rdma_get_src_port(con.listener))));
	CU_ASSERT_TRUE(con_make_qp(con.active));
	CU_ASSERT_TRUE(rdma_connect(con.active, &param) == -1 && errno == EINVAL);
	param = con_param(data, REQUEST_DATA);
	CU_ASSERT_EQUAL(rdma_connect(con.active, &param), 0);
	event = con_wait(con.server, RDMA_CM_EVENT_CONNECT_REQUEST);
	CU_ASSERT_PTR_NOT_NULL_FATAL(event);
	con.passive = event->id;
	rdma_ack_cm_event(event);
	CU_ASSERT_TRUE(con_make_qp(con.passive));
	param = con_param(data, ANSWER_DATA + 1);
	CU_ASSERT_TRUE(rdma_accept(con.passive, &param) == -1 && errno == EINVAL);
	con_close(&con);
}

static void nothing_to_disconnect(void)
{
	struct rdma_conn_param param = con_param(NULL, 0);
	struct rdma_cm_event *event;
	struct con con;

	if (device_is_rxe) {
		skip("rdma_disconnect succeeds on this device");
		return;
	}
	if (!udp_open(&con))
		return;
	event = asked(&con, NULL, 0);
	CU_ASSERT_PTR_NOT_NULL_FATAL(event);
	rdma_ack_cm_event(event);
	CU_ASSERT_TRUE(con_make_qp(con.passive));
	CU_ASSERT_EQUAL(rdma_accept(con.passive, &param), 0);
	CU_ASSERT_TRUE(con_comes(con.client, RDMA_CM_EVENT_ESTABLISHED));
	CU_ASSERT_TRUE(rdma_disconnect(con.active) == -1 && errno == EINVAL);
	CU_ASSERT_EQUAL(state_of(con.active->qp), IBV_QPS_RTS);
	con_destroy(&con.passive);
	CU_ASSERT_TRUE(con_silent(con.client));
	con_close(&con);
}

static void attributes_for_the_own_queue_pair(void)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT };
	int mask = 0;
	struct con con;

	if (!udp_open(&con))
		return;
	CU_ASSERT_TRUE_FATAL(
		con_resolve(&con, &con.active, ntohs(rdma_get_src_port(con.listener))));
	CU_ASSERT_EQUAL(rdma_init_qp_attr(con.active, &attr, &mask), 0);
	CU_ASSERT_TRUE(mask & IBV_QP_QKEY);
	CU_ASSERT_EQUAL(attr.qkey, RDMA_UDP_QKEY);
	CU_ASSERT_FALSE(mask & IBV_QP_ACCESS_FLAGS);
	con_close(&con);
}

static const struct unit_test tests[] = {
	{ "a port is resolved to queue pair, Q_Key and address", resolves },
	{ "what was resolved is reached", resolved_is_reached },
	{ "rejected: UNREACHABLE with status 2 and the data", rejected },
	{ "no listener: UNREACHABLE with status 1", no_listener },
	{ "private data: 180 bytes there, 136 back", data_is_too_long },
	{ "there is nothing to disconnect", nothing_to_disconnect },
	{ "attributes for a queue pair of the program", attributes_for_the_own_queue_pair },
};

CONFORM_MAIN("conform_cm_ud", tests)
