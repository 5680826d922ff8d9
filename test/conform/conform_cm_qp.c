/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* rdma_cm and queue pairs: parameters, QPs of the id, QPs of the program, ids without a channel. */
#include <netdb.h>
#include <netinet/in.h>
#include <pthread.h>
#include "test/conform/con.h"

static struct ibv_qp_attr query(struct ibv_qp *qp)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr = { 0 };

	CU_ASSERT_EQUAL(ibv_query_qp(qp, &attr, (IBV_QP_DEST_QPN << 1) - 1, &init), 0);
	return attr;
}

static void parameters_are_mapped(void)
{
	struct rdma_conn_param connect = {
		.responder_resources = 5, .initiator_depth = 3,
		.retry_count = 4, .rnr_retry_count = 2,
	}, accept = {
		.responder_resources = 2, .initiator_depth = 1,
		.retry_count = 6, .rnr_retry_count = 5,
	};
	struct ibv_qp_attr active, passive;
	struct rdma_cm_event *event;
	struct con con;

	if (!con_open(&con, 4))
		return;
	CU_ASSERT_TRUE_FATAL(
		con_resolve(&con, &con.active, ntohs(rdma_get_src_port(con.listener))) &&
		con_make_qp(con.active) && !rdma_connect(con.active, &connect));
	event = con_wait(con.server, RDMA_CM_EVENT_CONNECT_REQUEST);
	CU_ASSERT_PTR_NOT_NULL_FATAL(event);
	CU_ASSERT_EQUAL(event->param.conn.responder_resources, 3);
	CU_ASSERT_EQUAL(event->param.conn.initiator_depth, 5);
	CU_ASSERT_EQUAL(event->param.conn.retry_count, 4);
	CU_ASSERT_EQUAL(event->param.conn.rnr_retry_count, 2);
	CU_ASSERT_EQUAL(event->param.conn.qp_num, con.active->qp->qp_num);
	con.passive = event->id;
	CU_ASSERT_EQUAL(rdma_ack_cm_event(event), 0);
	CU_ASSERT_TRUE_FATAL(con_make_qp(con.passive) && !rdma_accept(con.passive, &accept));
	event = con_wait(con.client, RDMA_CM_EVENT_ESTABLISHED);
	CU_ASSERT_PTR_NOT_NULL_FATAL(event);
	CU_ASSERT_EQUAL(event->param.conn.responder_resources, 1);
	CU_ASSERT_EQUAL(event->param.conn.initiator_depth, 2);
	CU_ASSERT_EQUAL(event->param.conn.rnr_retry_count, 5);
	CU_ASSERT_EQUAL(rdma_ack_cm_event(event), 0);
	CU_ASSERT_TRUE(con_comes(con.server, RDMA_CM_EVENT_ESTABLISHED));
	active = query(con.active->qp);
	passive = query(con.passive->qp);
	CU_ASSERT_TRUE(active.retry_cnt == 4 && passive.retry_cnt == 4);
	CU_ASSERT_EQUAL(active.rnr_retry, 5);
	CU_ASSERT_EQUAL(passive.rnr_retry, 2);
	CU_ASSERT_TRUE(passive.max_dest_rd_atomic == 2 && passive.max_rd_atomic == 1);
	CU_ASSERT_TRUE(active.max_dest_rd_atomic == 1 && active.max_rd_atomic == 2);
	CU_ASSERT_EQUAL(active.dest_qp_num, con.passive->qp->qp_num);
	CU_ASSERT_EQUAL(passive.dest_qp_num, con.active->qp->qp_num);
	CU_ASSERT_TRUE(passive.qp_access_flags & IBV_ACCESS_REMOTE_WRITE);
	con_close(&con);
}

static void defaults_without_parameters(void)
{
	struct ibv_qp_attr active;
	struct con con;

	if (!con_open(&con, 4))
		return;
	CU_ASSERT_TRUE_FATAL(
		con_resolve(&con, &con.active, ntohs(rdma_get_src_port(con.listener))) &&
		con_make_qp(con.active) && !rdma_connect(con.active, NULL) && con_request(&con) &&
		!rdma_accept(con.passive, NULL));
	CU_ASSERT_TRUE(con_comes(con.client, RDMA_CM_EVENT_ESTABLISHED));
	CU_ASSERT_TRUE(con_comes(con.server, RDMA_CM_EVENT_ESTABLISHED));
	active = query(con.active->qp);
	CU_ASSERT_EQUAL(active.retry_cnt, 7);
	CU_ASSERT_EQUAL(active.rnr_retry, 7);
	CU_ASSERT_TRUE(con_message(con.active, con.passive));
	con_close(&con);
}

static void parameters_are_limited(void)
{
	struct rdma_conn_param param = con_param(NULL, 0);
	struct con con;

	if (device_attr.max_qp_rd_atom >= 255 || !con_open(&con, 4))
		return;
	if (con_resolve(&con, &con.active, ntohs(rdma_get_src_port(con.listener))) &&
	    con_make_qp(con.active)) {
		param.responder_resources = (uint8_t)(device_attr.max_qp_rd_atom + 1);
		errno = 0;
		CU_ASSERT_EQUAL(rdma_connect(con.active, &param), -1);
		CU_ASSERT_EQUAL(errno, EINVAL);
		param = con_param(NULL, 0);
		param.initiator_depth = (uint8_t)(device_attr.max_qp_init_rd_atom + 1);
		errno = 0;
		CU_ASSERT_EQUAL(rdma_connect(con.active, &param), -1);
		CU_ASSERT_EQUAL(errno, EINVAL);
		param = con_param(NULL, 0);
		CU_ASSERT_EQUAL(rdma_connect(con.active, &param), 0);
	}
	con_close(&con);
}

static void id_makes_what_is_missing(void)
{
	struct ibv_qp_init_attr init = {
		.qp_type = IBV_QPT_RC,
		.cap = { .max_send_wr = 3, .max_recv_wr = 3, .max_send_sge = 1, .max_recv_sge = 1 },
	};
	struct con con;

	if (!con_open(&con, 4))
		return;
	if (con_resolve(&con, &con.active, ntohs(rdma_get_src_port(con.listener)))) {
		CU_ASSERT_EQUAL_FATAL(rdma_create_qp(con.active, NULL, &init), 0);
		CU_ASSERT_TRUE(con.active->send_cq && con.active->recv_cq);
		CU_ASSERT_TRUE(con.active->send_cq_channel && con.active->recv_cq_channel);
		CU_ASSERT_PTR_EQUAL(con.active->qp->pd, con.active->pd);
		CU_ASSERT_TRUE(init.cap.max_send_wr >= 3);
		CU_ASSERT_EQUAL(state_of(con.active->qp), IBV_QPS_INIT);
		errno = 0;
		CU_ASSERT_EQUAL(rdma_create_qp(con.active, NULL, &init), -1);
		CU_ASSERT_EQUAL(errno, EINVAL);
		rdma_destroy_qp(con.active);
		CU_ASSERT_PTR_NULL(con.active->qp);
		CU_ASSERT_TRUE(!con.active->send_cq && !con.active->recv_cq);
		CU_ASSERT_TRUE(!con.active->send_cq_channel && !con.active->recv_cq_channel);
	}
	con_close(&con);
}

/* Moves a QP as a program does that keeps QPs apart from ids. */
static bool drive(struct rdma_cm_id *id, struct ibv_qp *qp, enum ibv_qp_state state)
{
	struct ibv_qp_attr attr = { .qp_state = state };
	int mask;

	return !rdma_init_qp_attr(id, &attr, &mask) && mask & IBV_QP_STATE &&
	       !ibv_modify_qp(qp, &attr, mask);
}

static struct ibv_qp *own_qp(struct rdma_cm_id *id, struct ibv_cq *cq)
{
	struct ibv_qp_init_attr init = {
		.send_cq = cq,
		.recv_cq = cq,
		.qp_type = IBV_QPT_RC,
		.sq_sig_all = 1,
		.cap = { .max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1 },
	};
	struct ibv_qp *qp = ibv_create_qp(id->pd, &init);

	CU_ASSERT_TRUE(qp && drive(id, qp, IBV_QPS_INIT));
	return qp;
}

static void establish_with_own_qps(struct con *con)
{
	struct rdma_conn_param param = con_param(NULL, 0);
	struct ibv_recv_wr rwr = { .wr_id = 8 }, *rbad;
	struct ibv_send_wr swr = { .wr_id = 9, .opcode = IBV_WR_SEND }, *sbad;
	struct ibv_cq *acq = ibv_create_cq(con->active->verbs, 16, NULL, NULL, 0), *pcq;
	struct ibv_qp *active = own_qp(con->active, acq), *passive;
	struct rdma_cm_event *event;

	param.qp_num = active->qp_num;
	CU_ASSERT_EQUAL(rdma_connect(con->active, &param), 0);
	event = con_wait(con->server, RDMA_CM_EVENT_CONNECT_REQUEST);
	CU_ASSERT_PTR_NOT_NULL_FATAL(event);
	CU_ASSERT_EQUAL(event->param.conn.qp_num, active->qp_num);
	con->passive = event->id;
	CU_ASSERT_EQUAL(rdma_ack_cm_event(event), 0);
	pcq = ibv_create_cq(con->passive->verbs, 16, NULL, NULL, 0);
	passive = own_qp(con->passive, pcq);
	CU_ASSERT_TRUE(drive(con->passive, passive, IBV_QPS_RTR));
	CU_ASSERT_TRUE(drive(con->passive, passive, IBV_QPS_RTS));
	param.qp_num = passive->qp_num;
	CU_ASSERT_EQUAL(rdma_accept(con->passive, &param), 0);
	event = con_wait(con->client, RDMA_CM_EVENT_CONNECT_RESPONSE);
	CU_ASSERT_PTR_NOT_NULL_FATAL(event);
	CU_ASSERT_EQUAL(event->param.conn.qp_num, passive->qp_num);
	CU_ASSERT_EQUAL(event->param.conn.private_data_len, 196);
	CU_ASSERT_EQUAL(rdma_ack_cm_event(event), 0);
	CU_ASSERT_TRUE(con_silent(con->server));
	CU_ASSERT_TRUE(drive(con->active, active, IBV_QPS_RTR));
	CU_ASSERT_TRUE(drive(con->active, active, IBV_QPS_RTS));
	CU_ASSERT_EQUAL(rdma_establish(con->active), 0);
	CU_ASSERT_TRUE(con_comes(con->server, RDMA_CM_EVENT_ESTABLISHED));
	CU_ASSERT_EQUAL(ibv_post_recv(passive, &rwr, &rbad), 0);
	CU_ASSERT_EQUAL(ibv_post_send(active, &swr, &sbad), 0);
	CU_ASSERT_TRUE(completes(acq, 9, IBV_WC_SUCCESS, NULL));
	CU_ASSERT_TRUE(completes(pcq, 8, IBV_WC_SUCCESS, NULL));
	/* the ids do not have these QPs, so a disconnect leaves them alone */
	CU_ASSERT_EQUAL(rdma_disconnect(con->active), 0);
	CU_ASSERT_EQUAL(state_of(active), IBV_QPS_RTS);
	CU_ASSERT_TRUE(con_comes(con->server, RDMA_CM_EVENT_DISCONNECTED));
	CU_ASSERT_TRUE(!ibv_destroy_qp(active) && !ibv_destroy_cq(acq));
	CU_ASSERT_TRUE(!ibv_destroy_qp(passive) && !ibv_destroy_cq(pcq));
}

static void qps_of_the_program(void)
{
	struct con con;

	if (!con_open(&con, 4))
		return;
	if (con_resolve(&con, &con.active, ntohs(rdma_get_src_port(con.listener))))
		establish_with_own_qps(&con);
	con_close(&con);
}

static void attributes_by_state(void)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT };
	struct con con;
	int mask;

	if (!con_open(&con, 4))
		return;
	if (con_resolve(&con, &con.active, ntohs(rdma_get_src_port(con.listener)))) {
		CU_ASSERT_EQUAL(rdma_init_qp_attr(con.active, &attr, &mask), 0);
		CU_ASSERT_TRUE(mask & IBV_QP_PORT && mask & IBV_QP_PKEY_INDEX &&
			       mask & IBV_QP_ACCESS_FLAGS);
		CU_ASSERT_EQUAL(attr.port_num, 1);
	}
	con_close(&con);
}

/* ---- ids without a channel ---- */

static struct rdma_addrinfo *info_of(uint16_t port, int flags)
{
	struct sockaddr_storage address = con_address(port);
	socklen_t size = address.ss_family == AF_INET ? sizeof(struct sockaddr_in)
						      : sizeof(struct sockaddr_in6);
	struct rdma_addrinfo hints = { .ai_flags = flags, .ai_port_space = RDMA_PS_TCP },
			     *info = NULL;
	char host[64], service[8];

	CU_ASSERT_EQUAL(getnameinfo((struct sockaddr *)&address, size, host, sizeof(host), service,
				    sizeof(service), NI_NUMERICHOST | NI_NUMERICSERV),
			0);
	CU_ASSERT_EQUAL(rdma_getaddrinfo(host, port ? service : NULL, &hints, &info), 0);
	return info;
}

static struct ibv_qp_init_attr small_qp(void)
{
	return (struct ibv_qp_init_attr){
		.qp_type = IBV_QPT_RC,
		.sq_sig_all = 1,
		.cap = { .max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1 },
	};
}

static void *connect_and_leave(void *arg)
{
	struct rdma_addrinfo *info = info_of(*(uint16_t *)arg, 0);
	struct ibv_qp_init_attr init = small_qp();
	struct rdma_cm_id *id = NULL;

	CU_ASSERT_PTR_NOT_NULL_FATAL(info);
	CU_ASSERT_EQUAL_FATAL(rdma_create_ep(&id, info, NULL, &init), 0);
	rdma_freeaddrinfo(info);
	CU_ASSERT_EQUAL(rdma_connect(id, NULL), 0);
	CU_ASSERT_EQUAL(state_of(id->qp), IBV_QPS_RTS);
	CU_ASSERT_EQUAL(rdma_disconnect(id), 0);
	rdma_destroy_ep(id);
	return NULL;
}

static void endpoints(void)
{
	struct rdma_addrinfo *info = info_of(0, RAI_PASSIVE);
	struct ibv_qp_init_attr init = small_qp();
	struct rdma_cm_id *listener = NULL, *id = NULL;
	pthread_t thread;
	uint16_t port;

	CU_ASSERT_PTR_NOT_NULL_FATAL(info);
	CU_ASSERT_EQUAL_FATAL(rdma_create_ep(&listener, info, NULL, &init), 0);
	rdma_freeaddrinfo(info);
	CU_ASSERT_EQUAL(rdma_listen(listener, 4), 0);
	port = ntohs(rdma_get_src_port(listener));
	CU_ASSERT_EQUAL_FATAL(pthread_create(&thread, NULL, connect_and_leave, &port), 0);
	CU_ASSERT_EQUAL_FATAL(rdma_get_request(listener, &id), 0);
	CU_ASSERT_PTR_NOT_NULL(id->qp);
	CU_ASSERT_EQUAL(rdma_accept(id, NULL), 0);
	CU_ASSERT_EQUAL(state_of(id->qp), IBV_QPS_RTS);
	CU_ASSERT_EQUAL(rdma_disconnect(id), 0);
	CU_ASSERT_EQUAL(pthread_join(thread, NULL), 0);
	rdma_destroy_ep(id);
	rdma_destroy_ep(listener);
}

static void refusal_of_a_synchronous_connect(void)
{
	struct ibv_qp_init_attr init = small_qp();
	struct rdma_addrinfo *info;
	struct rdma_cm_id *id = NULL;
	struct con con;
	uint16_t port;

	if (!con_open(&con, 4))
		return;
	port = ntohs(rdma_get_src_port(con.listener));
	con_close(&con);
	info = info_of(port, 0);
	CU_ASSERT_EQUAL_FATAL(rdma_create_ep(&id, info, NULL, &init), 0);
	rdma_freeaddrinfo(info);
	errno = 0;
	CU_ASSERT_EQUAL(rdma_connect(id, NULL), -1);
	CU_ASSERT_EQUAL(errno, ECONNREFUSED);
	rdma_destroy_ep(id);
}

static const struct unit_test tests[] = {
	{ "parameters of connect and accept appear where they belong", parameters_are_mapped },
	{ "no parameters: retry 7, rnr 7, what the device can do", defaults_without_parameters },
	{ "depths above the device's: EINVAL", parameters_are_limited },
	{ "create_qp makes CQs and channels; a second QP: EINVAL", id_makes_what_is_missing },
	{ "QPs of the program: CONNECT_RESPONSE, init_qp_attr, establish", qps_of_the_program },
	{ "init_qp_attr knows INIT before connecting", attributes_by_state },
	{ "endpoints without a channel connect, accept, disconnect", endpoints },
	{ "refused connect without a channel: ECONNREFUSED", refusal_of_a_synchronous_connect },
};

CONFORM_MAIN("conform_cm_qp", tests)
