/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/*
 * The software device's connection manager within one process: connections from the request to the
 * time wait.
 */
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include "test/unit/cm.h"

/* ---- the steps of a connection ---- */

static void attributes_are(struct rdma_cm_id *id, uint32_t qpn, uint8_t dest_rd, uint8_t rd,
			   uint8_t retry, uint8_t rnr)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_RTR };
	int mask = 0;

	CU_ASSERT_EQUAL(rdma_init_qp_attr(id, &attr, &mask), 0);
	CU_ASSERT_EQUAL(mask, IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
				      IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
				      IBV_QP_MIN_RNR_TIMER | IBV_QP_ACCESS_FLAGS);
	CU_ASSERT_EQUAL(attr.qp_state, IBV_QPS_RTR);
	CU_ASSERT_EQUAL(attr.dest_qp_num, qpn);
	CU_ASSERT_EQUAL(attr.max_dest_rd_atomic, dest_rd);
	CU_ASSERT_EQUAL(attr.min_rnr_timer, 0);
	CU_ASSERT_EQUAL(attr.path_mtu, IBV_MTU_4096);
	CU_ASSERT_EQUAL(attr.qp_access_flags, 0xe);
	CU_ASSERT_EQUAL(attr.ah_attr.is_global, 1);
	CU_ASSERT_EQUAL(attr.ah_attr.port_num, 1);
	CU_ASSERT_EQUAL(attr.ah_attr.grh.dgid.raw[10], 0xff);
	CU_ASSERT_EQUAL(attr.ah_attr.grh.dgid.raw[12], 127);
	attr.qp_state = IBV_QPS_RTS;
	CU_ASSERT_EQUAL(rdma_init_qp_attr(id, &attr, &mask), 0);
	CU_ASSERT_EQUAL(mask, IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
				      IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC);
	CU_ASSERT_EQUAL(attr.timeout, 19);
	CU_ASSERT_EQUAL(attr.max_rd_atomic, rd);
	CU_ASSERT_EQUAL(attr.retry_cnt, retry);
	CU_ASSERT_EQUAL(attr.rnr_retry, rnr);
}

static void no_attributes(struct rdma_cm_id *id, enum ibv_qp_state state)
{
	struct ibv_qp_attr attr = { .qp_state = state };
	int mask;

	errno = 0;
	CU_ASSERT_EQUAL(rdma_init_qp_attr(id, &attr, &mask), -1);
	CU_ASSERT_EQUAL(errno, EINVAL);
}

static void init_attributes(struct rdma_cm_id *id)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT,
				    .pkey_index = 9,
				    .qp_access_flags = 9 };
	int mask = 0;

	CU_ASSERT_EQUAL(rdma_init_qp_attr(id, &attr, &mask), 0);
	CU_ASSERT_EQUAL(mask, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
	CU_ASSERT_EQUAL(attr.port_num, 1);
	CU_ASSERT_EQUAL(attr.pkey_index, 0);
	CU_ASSERT_EQUAL(attr.qp_access_flags, 0);
}

static void request_shows(struct pair *pair, struct seen *seen)
{
	const struct rdma_conn_param *conn = &seen->event.param.conn;

	CU_ASSERT_PTR_EQUAL(seen->event.listen_id, pair->listener);
	CU_ASSERT_EQUAL(conn->responder_resources, 5);
	CU_ASSERT_EQUAL(conn->initiator_depth, 3);
	CU_ASSERT_EQUAL(conn->retry_count, 6);
	CU_ASSERT_EQUAL(conn->rnr_retry_count, 2);
	CU_ASSERT_EQUAL(conn->flow_control, 1);
	CU_ASSERT_EQUAL(conn->srq, 1);
	CU_ASSERT_EQUAL(conn->qp_num, 0x111);
	CU_ASSERT_EQUAL(conn->private_data_len, 56);
	CU_ASSERT(!memcmp(seen->data, "hello", 5) && is_zero(seen->data + 5, 51));
	CU_ASSERT_PTR_EQUAL(pair->passive->channel, pair->far);
	CU_ASSERT_PTR_EQUAL(pair->passive->context, pair->listener->context);
	CU_ASSERT_PTR_NOT_NULL(pair->passive->verbs);
	CU_ASSERT_PTR_NOT_NULL(pair->passive->pd);
	CU_ASSERT_EQUAL(pair->passive->port_num, 1);
	CU_ASSERT_EQUAL(rdma_get_src_port(pair->passive), rdma_get_dst_port(pair->active));
	CU_ASSERT_EQUAL(rdma_get_dst_port(pair->passive), rdma_get_src_port(pair->active));
	CU_ASSERT_NOT_EQUAL(rdma_get_src_port(pair->active), 0);
	CU_ASSERT(!memcmp(rdma_get_local_addr(pair->passive), rdma_get_peer_addr(pair->active),
			  sizeof(struct sockaddr_in)));
	CU_ASSERT(!memcmp(rdma_get_peer_addr(pair->passive), rdma_get_local_addr(pair->active),
			  sizeof(struct sockaddr_in)));
}

static void response_shows(struct seen *seen)
{
	const struct rdma_conn_param *conn = &seen->event.param.conn;

	CU_ASSERT_EQUAL(conn->responder_resources, 1);
	CU_ASSERT_EQUAL(conn->initiator_depth, 2);
	CU_ASSERT_EQUAL(conn->rnr_retry_count, 4);
	CU_ASSERT_EQUAL(conn->qp_num, 0x222);
	CU_ASSERT_EQUAL(conn->private_data_len, 196);
	CU_ASSERT(!memcmp(seen->data, "welcome", 7) && is_zero(seen->data + 7, 189));
}

static void both_disconnect(struct pair *pair)
{
	struct seen seen;

	CU_ASSERT_EQUAL(rdma_disconnect(pair->active), 0);
	CU_ASSERT(cm_expect(pair->far, RDMA_CM_EVENT_DISCONNECTED, &seen));
	CU_ASSERT_PTR_EQUAL(seen.event.id, pair->passive);
	CU_ASSERT_EQUAL(seen.event.status, 0);
	CU_ASSERT_EQUAL(seen.event.param.conn.private_data_len, 0);
	CU_ASSERT_PTR_NULL(seen.event.param.conn.private_data);
	/* although the passive program has not disconnected */
	CU_ASSERT(cm_expect(pair->near, RDMA_CM_EVENT_DISCONNECTED, NULL));
	CU_ASSERT_EQUAL(rdma_disconnect(pair->active), 0);
	CU_ASSERT_EQUAL(rdma_disconnect(pair->passive), 0);
	CU_ASSERT(cm_expect(pair->near, RDMA_CM_EVENT_TIMEWAIT_EXIT, &seen));
	CU_ASSERT_PTR_EQUAL(seen.event.id, pair->active);
	CU_ASSERT(cm_expect(pair->far, RDMA_CM_EVENT_TIMEWAIT_EXIT, &seen));
	CU_ASSERT_PTR_EQUAL(seen.event.id, pair->passive);
	CU_ASSERT_EQUAL(rdma_disconnect(pair->passive), 0);
}

static void whole_course(void)
{
	struct rdma_conn_param request = { .private_data = "hello",
					   .private_data_len = 5,
					   .responder_resources = 3,
					   .initiator_depth = 5,
					   .flow_control = 1,
					   .retry_count = 6,
					   .rnr_retry_count = 2,
					   .srq = 1,
					   .qp_num = 0x111 };
	struct rdma_conn_param answer = { .private_data = "welcome",
					  .private_data_len = 7,
					  .responder_resources = 2,
					  .initiator_depth = 1,
					  .retry_count = 3,
					  .rnr_retry_count = 4,
					  .qp_num = 0x222 };
	struct pair pair;
	struct seen seen;
	int word;

	CU_ASSERT_FATAL(pair_listen(&pair));
	pair.listener->context = &word;
	CU_ASSERT_EQUAL(pair.active->route.num_paths, 1);
	CU_ASSERT_PTR_NOT_NULL(pair.active->route.path_rec);
	init_attributes(pair.active);
	no_attributes(pair.active, IBV_QPS_RTR);
	CU_ASSERT_EQUAL(rdma_disconnect(pair.active), -1);
	CU_ASSERT_EQUAL(errno, EINVAL);
	CU_ASSERT_EQUAL(rdma_connect(pair.active, &request), 0);
	CU_ASSERT_FATAL(cm_expect(pair.far, RDMA_CM_EVENT_CONNECT_REQUEST, &seen));
	pair.passive = seen.event.id;
	request_shows(&pair, &seen);
	attributes_are(pair.passive, 0x111, 5, 3, 6, 2);
	CU_ASSERT_EQUAL(rdma_accept(pair.passive, &answer), 0);
	CU_ASSERT_FATAL(cm_expect(pair.near, RDMA_CM_EVENT_CONNECT_RESPONSE, &seen));
	response_shows(&seen);
	attributes_are(pair.passive, 0x111, 2, 1, 6, 2);
	attributes_are(pair.active, 0x222, 1, 2, 6, 4);
	CU_ASSERT_FALSE(cm_ready(pair.far, 0));
	CU_ASSERT_EQUAL(rdma_establish(pair.active), 0);
	CU_ASSERT(cm_expect(pair.far, RDMA_CM_EVENT_ESTABLISHED, &seen));
	CU_ASSERT_PTR_EQUAL(seen.event.id, pair.passive);
	CU_ASSERT_PTR_NULL(seen.event.param.conn.private_data);
	CU_ASSERT_EQUAL(rdma_establish(pair.active), -1);
	CU_ASSERT_EQUAL(rdma_connect(pair.active, &request), -1);
	CU_ASSERT_EQUAL(rdma_accept(pair.passive, &answer), -1);
	both_disconnect(&pair);
	pair_free(&pair);
}

static void both_disconnect_at_once(void)
{
	struct pair pair;

	CU_ASSERT_FATAL(pair_connect(&pair));
	CU_ASSERT_EQUAL(rdma_disconnect(pair.active), 0);
	CU_ASSERT_EQUAL(rdma_disconnect(pair.passive), 0);
	CU_ASSERT(cm_expect(pair.near, RDMA_CM_EVENT_DISCONNECTED, NULL));
	CU_ASSERT(cm_expect(pair.far, RDMA_CM_EVENT_DISCONNECTED, NULL));
	CU_ASSERT(cm_expect(pair.near, RDMA_CM_EVENT_TIMEWAIT_EXIT, NULL));
	CU_ASSERT(cm_expect(pair.far, RDMA_CM_EVENT_TIMEWAIT_EXIT, NULL));
	pair_free(&pair);
}

static void destroying_disconnects(void)
{
	struct pair pair;

	CU_ASSERT_FATAL(pair_connect(&pair));
	CU_ASSERT_EQUAL(rdma_destroy_id(pair.passive), 0);
	pair.passive = NULL;
	CU_ASSERT(cm_expect(pair.near, RDMA_CM_EVENT_DISCONNECTED, NULL));
	CU_ASSERT_EQUAL(rdma_disconnect(pair.active), 0);
	CU_ASSERT(cm_expect(pair.near, RDMA_CM_EVENT_TIMEWAIT_EXIT, NULL));
	pair_free(&pair);
}

static void passive_may_be_told_by_notify(void)
{
	struct rdma_conn_param param = cm_param(1);
	struct pair pair;

	CU_ASSERT_FATAL(pair_request(&pair));
	CU_ASSERT_EQUAL(rdma_notify(pair.passive, IBV_EVENT_COMM_EST), -1);
	CU_ASSERT_EQUAL(rdma_accept(pair.passive, &param), 0);
	CU_ASSERT_EQUAL(rdma_notify(pair.passive, IBV_EVENT_QP_FATAL), -1);
	CU_ASSERT_EQUAL(rdma_notify(pair.passive, IBV_EVENT_COMM_EST), 0);
	CU_ASSERT(cm_expect(pair.far, RDMA_CM_EVENT_ESTABLISHED, NULL));
	CU_ASSERT(cm_expect(pair.near, RDMA_CM_EVENT_CONNECT_RESPONSE, NULL));
	CU_ASSERT_EQUAL(rdma_establish(pair.active), 0);
	pair_free(&pair);
}

/* ---- refusals ---- */

static void rejected_with(struct pair *pair, int status, const char *data)
{
	struct seen seen;
	size_t size = strlen(data);

	CU_ASSERT_FATAL(cm_expect(pair->near, RDMA_CM_EVENT_REJECTED, &seen));
	CU_ASSERT_PTR_EQUAL(seen.event.id, pair->active);
	CU_ASSERT_EQUAL(seen.event.status, status);
	CU_ASSERT_EQUAL(seen.event.param.conn.private_data_len, 148);
	CU_ASSERT(!memcmp(seen.data, data, size) && is_zero(seen.data + size, 148 - size));
}

static void rejected_by_the_program(void)
{
	uint8_t full[149] = { 0 };
	struct pair pair;

	CU_ASSERT_FATAL(pair_request(&pair));
	CU_ASSERT_EQUAL(rdma_reject(pair.passive, full, 149), -1);
	CU_ASSERT_EQUAL(errno, EINVAL);
	CU_ASSERT_EQUAL(rdma_reject(pair.passive, "no", 2), 0);
	rejected_with(&pair, 28, "no");
	CU_ASSERT_EQUAL(rdma_reject(pair.passive, NULL, 0), -1);
	CU_ASSERT_EQUAL(rdma_disconnect(pair.active), 0);
	no_attributes(pair.active, IBV_QPS_RTR);
	pair_free(&pair);
}

static void request_destroyed_unanswered(void)
{
	struct pair pair;

	CU_ASSERT_FATAL(pair_request(&pair));
	CU_ASSERT_EQUAL(rdma_destroy_id(pair.passive), 0);
	pair.passive = NULL;
	rejected_with(&pair, 28, "");
	pair_free(&pair);
}

static void answer_rejected_by_the_active_side(void)
{
	struct rdma_conn_param param = cm_param(1);
	struct seen seen;
	struct pair pair;

	CU_ASSERT_FATAL(pair_request(&pair));
	CU_ASSERT_EQUAL(rdma_accept(pair.passive, &param), 0);
	CU_ASSERT(cm_expect(pair.near, RDMA_CM_EVENT_CONNECT_RESPONSE, NULL));
	CU_ASSERT_EQUAL(rdma_reject(pair.active, "why", 3), 0);
	CU_ASSERT(cm_expect(pair.far, RDMA_CM_EVENT_REJECTED, &seen));
	CU_ASSERT_EQUAL(seen.event.status, 28);
	CU_ASSERT(!memcmp(seen.data, "why", 3));
	CU_ASSERT_EQUAL(rdma_establish(pair.active), -1);
	pair_free(&pair);
}

static void no_listener(void)
{
	struct rdma_conn_param param = cm_param(1);
	struct rdma_cm_id *bound;
	struct pair pair;

	CU_ASSERT_FATAL(pair_listen(&pair));
	bound = cm_bound(pair.far, 0);
	CU_ASSERT_EQUAL(rdma_destroy_id(pair.listener), 0);
	pair.listener = NULL;
	/* a listener existed when the address was resolved */
	CU_ASSERT_EQUAL(rdma_connect(pair.active, &param), 0);
	rejected_with(&pair, 8, "");
	CU_ASSERT_EQUAL(rdma_destroy_id(pair.active), 0);
	CU_ASSERT_PTR_NOT_NULL_FATAL(bound);
	/* a port that is bound without a listener */
	pair.active = cm_client(pair.near, ntohs(rdma_get_src_port(bound)));
	CU_ASSERT_EQUAL(rdma_connect(pair.active, &param), 0);
	rejected_with(&pair, 8, "");
	CU_ASSERT_EQUAL(rdma_destroy_id(bound), 0);
	pair_free(&pair);
}

static void private_data_too_long(void)
{
	struct rdma_conn_param param = cm_param(1);
	uint8_t full[256] = { 0 };
	struct pair pair;

	CU_ASSERT_FATAL(pair_listen(&pair));
	param.private_data = full;
	param.private_data_len = 57;
	CU_ASSERT_EQUAL(rdma_connect(pair.active, &param), -1);
	CU_ASSERT_EQUAL(errno, EINVAL);
	pair_free(&pair);
	CU_ASSERT_FATAL(pair_request(&pair));
	param.private_data_len = 197;
	errno = 0;
	CU_ASSERT_EQUAL(rdma_accept(pair.passive, &param), -1);
	CU_ASSERT_EQUAL(errno, EINVAL);
	rejected_with(&pair, 28, "");
	pair_free(&pair);
}

static void parameters_are_checked(void)
{
	struct rdma_conn_param param = cm_param(1);
	struct pair pair;
	struct seen seen;

	CU_ASSERT_FATAL(pair_listen(&pair));
	/* without parameters and queue pair */
	CU_ASSERT_EQUAL(rdma_connect(pair.active, NULL), -1);
	CU_ASSERT_EQUAL(errno, EINVAL);
	param.responder_resources = 17;
	CU_ASSERT_EQUAL(rdma_connect(pair.active, &param), -1);
	CU_ASSERT_EQUAL(errno, EINVAL);
	param.responder_resources = 4;
	param.initiator_depth = 17;
	CU_ASSERT_EQUAL(rdma_connect(pair.active, &param), -1);
	CU_ASSERT_EQUAL(errno, EINVAL);
	param.responder_resources = RDMA_MAX_RESP_RES;
	param.initiator_depth = RDMA_MAX_INIT_DEPTH;
	CU_ASSERT_EQUAL(rdma_connect(pair.active, &param), 0);
	CU_ASSERT_FATAL(cm_expect(pair.far, RDMA_CM_EVENT_CONNECT_REQUEST, &seen));
	pair.passive = seen.event.id;
	CU_ASSERT_EQUAL(seen.event.param.conn.responder_resources, 16);
	CU_ASSERT_EQUAL(seen.event.param.conn.initiator_depth, 16);
	param.responder_resources = 0;
	param.initiator_depth = 17;
	CU_ASSERT_EQUAL(rdma_accept(pair.passive, &param), -1);
	param.initiator_depth = 0;
	CU_ASSERT_EQUAL(rdma_accept(pair.passive, &param), 0);
	CU_ASSERT(cm_expect(pair.near, RDMA_CM_EVENT_CONNECT_RESPONSE, &seen));
	CU_ASSERT_EQUAL(seen.event.param.conn.responder_resources, 0);
	pair_free(&pair);
}

static bool is_withdrawn(void *arg)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT };
	int mask;

	return rdma_init_qp_attr(arg, &attr, &mask) == -1;
}

static void request_withdrawn(void)
{
	struct rdma_conn_param param = cm_param(1);
	struct pair pair;

	CU_ASSERT_FATAL(pair_request(&pair));
	CU_ASSERT_EQUAL(rdma_destroy_id(pair.active), 0);
	pair.active = NULL;
	CU_ASSERT(unit_wait_for(is_withdrawn, pair.passive, UNIT_PATIENCE));
	CU_ASSERT_FALSE(cm_ready(pair.far, 0));
	CU_ASSERT_EQUAL(rdma_accept(pair.passive, &param), -1);
	CU_ASSERT_EQUAL(errno, EINVAL);
	pair_free(&pair);
}

/* ---- the queue of a listener ---- */

#define CLIENTS 4

static struct rdma_cm_id *clients[CLIENTS];

static void clients_connect(struct pair *pair, int backlog)
{
	struct rdma_conn_param param = cm_param(1);
	unsigned i;

	CU_ASSERT_FATAL(pair_listen(pair));
	CU_ASSERT_EQUAL(rdma_destroy_id(pair->listener), 0);
	pair->listener = cm_listener(pair->far, backlog);
	CU_ASSERT_PTR_NOT_NULL_FATAL(pair->listener);
	for (i = 0; i < CLIENTS; i++) {
		clients[i] = cm_client(pair->near, ntohs(rdma_get_src_port(pair->listener)));
		CU_ASSERT_PTR_NOT_NULL_FATAL(clients[i]);
		param.qp_num = i;
		CU_ASSERT_EQUAL(rdma_connect(clients[i], &param), 0);
	}
}

static void clients_free(void)
{
	unsigned i;

	for (i = 0; i < CLIENTS; i++)
		CU_ASSERT_EQUAL(rdma_destroy_id(clients[i]), 0);
}

static void backlog_parks_requests(void)
{
	struct pair pair;
	struct seen seen;
	unsigned i;

	clients_connect(&pair, 1);
	for (i = 0; i < CLIENTS; i++) {
		CU_ASSERT_FATAL(cm_expect(pair.far, RDMA_CM_EVENT_CONNECT_REQUEST, &seen));
		CU_ASSERT_EQUAL(seen.event.param.conn.qp_num, i);
		CU_ASSERT_EQUAL(rdma_reject(seen.event.id, NULL, 0), 0);
		CU_ASSERT_EQUAL(rdma_destroy_id(seen.event.id), 0);
		CU_ASSERT(cm_expect(pair.near, RDMA_CM_EVENT_REJECTED, &seen));
		CU_ASSERT_PTR_EQUAL(seen.event.id, clients[i]);
	}
	CU_ASSERT_FALSE(cm_ready(pair.far, 0));
	clients_free();
	pair_free(&pair);
}

static void closing_listener_refuses_what_waits(void)
{
	struct rdma_cm_id *fetched;
	unsigned i, queued = 0, parked = 0;
	struct pair pair;
	struct seen seen;

	clients_connect(&pair, 2);
	CU_ASSERT_FATAL(cm_expect(pair.far, RDMA_CM_EVENT_CONNECT_REQUEST, &seen));
	fetched = seen.event.id;
	/* destroying a parked request leaves the others unchanged; it was the last one */
	CU_ASSERT_EQUAL(rdma_destroy_id(clients[CLIENTS - 1]), 0);
	CU_ASSERT_FATAL(cm_ready(pair.far, UNIT_PATIENCE));
	CU_ASSERT_EQUAL(rdma_destroy_id(pair.listener), 0);
	pair.listener = NULL;
	CU_ASSERT_FALSE(cm_ready(pair.far, 0)); /* no tokens are left */
	for (i = 0; i < CLIENTS - 2; i++) {
		CU_ASSERT_FATAL(cm_expect(pair.near, RDMA_CM_EVENT_REJECTED, &seen));
		queued += seen.event.status == 28;
		parked += seen.event.status == 8;
	}
	CU_ASSERT_EQUAL(queued + parked, 2);
	CU_ASSERT(queued >= 1);
	/* this request was reported, so it can still be answered */
	CU_ASSERT_EQUAL(rdma_reject(fetched, "x", 1), 0);
	CU_ASSERT(cm_expect(pair.near, RDMA_CM_EVENT_REJECTED, &seen));
	CU_ASSERT_PTR_EQUAL(seen.event.id, clients[0]);
	CU_ASSERT_EQUAL(seen.data[0], 'x');
	CU_ASSERT_EQUAL(rdma_destroy_id(fetched), 0);
	clients[CLIENTS - 1] = cm_new(pair.near);
	clients_free();
	pair_free(&pair);
}

#define MANY 150

static void many_connections(void)
{
	static struct rdma_cm_id *active[MANY], *passive[MANY];
	struct rdma_conn_param param = cm_param(1);
	unsigned i, threads, fds;
	struct pair pair;
	struct seen seen;

	CU_ASSERT_FATAL(pair_connect(&pair));
	fds = unit_entries("/proc/self/fd");
	threads = unit_entries("/proc/self/task");
	for (i = 0; i < MANY; i++) {
		active[i] = cm_client(pair.near, ntohs(rdma_get_src_port(pair.listener)));
		CU_ASSERT_FATAL(active[i] && !rdma_connect(active[i], &param));
	}
	for (i = 0; i < MANY; i++) {
		CU_ASSERT_FATAL(cm_expect(pair.far, RDMA_CM_EVENT_CONNECT_REQUEST, &seen));
		passive[i] = seen.event.id;
		CU_ASSERT_EQUAL(rdma_accept(passive[i], &param), 0);
	}
	for (i = 0; i < MANY; i++) {
		CU_ASSERT_FATAL(cm_expect(pair.near, RDMA_CM_EVENT_CONNECT_RESPONSE, &seen));
		CU_ASSERT_EQUAL(rdma_establish(seen.event.id), 0);
	}
	for (i = 0; i < MANY; i++)
		CU_ASSERT(cm_expect(pair.far, RDMA_CM_EVENT_ESTABLISHED, &seen));
	CU_ASSERT(unit_entries("/proc/self/fd") < fds + MANY / 8); /* one for a block of ports */
	CU_ASSERT_EQUAL(unit_entries("/proc/self/task"), threads);
	for (i = 0; i < MANY; i++)
		CU_ASSERT_EQUAL(rdma_destroy_id(active[i]), 0);
	for (i = 0; i < MANY; i++)
		CU_ASSERT(cm_expect(pair.far, RDMA_CM_EVENT_DISCONNECTED, &seen));
	for (i = 0; i < MANY; i++)
		CU_ASSERT_EQUAL(rdma_destroy_id(passive[i]), 0);
	pair_free(&pair);
}

static void leaves_nothing(void)
{
	struct pair pair;
	unsigned fds, threads;

	CU_ASSERT_FATAL(pair_connect(&pair));
	pair_free(&pair);
	fds = unit_entries("/proc/self/fd");
	threads = unit_entries("/proc/self/task");
	CU_ASSERT_FATAL(pair_connect(&pair));
	CU_ASSERT(unit_entries("/proc/self/fd") > fds);
	pair_free(&pair);
	CU_ASSERT_EQUAL(unit_entries("/proc/self/fd"), fds);
	CU_ASSERT_EQUAL(unit_entries("/proc/self/task"), threads);
}

static const struct unit_test tests[] = {
	{ "a connection passes its steps, parameters and private data", whole_course },
	{ "both sides can disconnect at once", both_disconnect_at_once },
	{ "destroying an identifier disconnects the peer", destroying_disconnects },
	{ "rdma_notify establishes the passive side", passive_may_be_told_by_notify },
	{ "a program's rejection reaches the peer with its data", rejected_by_the_program },
	{ "a request destroyed unanswered is rejected", request_destroyed_unanswered },
	{ "the active side can reject the reply", answer_rejected_by_the_active_side },
	{ "a connect to a port without a listener is rejected", no_listener },
	{ "private data that are too long are refused", private_data_too_long },
	{ "parameters are checked", parameters_are_checked },
	{ "a withdrawn request makes no event and cannot be accepted", request_withdrawn },
	{ "the backlog parks requests", backlog_parks_requests },
	{ "a closing listener rejects the waiting requests", closing_listener_refuses_what_waits },
	{ "many connections need few descriptors", many_connections },
	{ "nothing is left when the last identifier is destroyed", leaves_nothing },
};

UNIT_MAIN("softverbs_cm", tests)
