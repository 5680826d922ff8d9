/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* Connecting through rdma_cm: sequences, private data, refusals. */
#include <fcntl.h>
#include <netinet/in.h>
#include <stdlib.h>
#include "test/conform/con.h"

/*
 * Private data of RDMA_PS_TCP: the most that may be passed, which is also what the other side sees.
 */
enum {
	REQUEST = 56,
	REPLY = 196,
	REFUSAL = 148,
	STATUS_CONSUMER = 28,
	STATUS_NO_LISTENER = 8,
};

static char pattern[256];

static void fill_pattern(void)
{
	int i;

	for (i = 0; i < 256; i++)
		pattern[i] = (char)(i + 1);
}

/* Returns true if the data are `given` bytes of the pattern and then zeros up to `seen`. */
static bool padded(const struct rdma_cm_event *event, unsigned given, unsigned seen)
{
	const char *data = event->param.conn.private_data;
	unsigned i;

	if (event->param.conn.private_data_len != seen || !data || memcmp(data, pattern, given))
		return false;
	for (i = given; i < seen; i++)
		if (data[i])
			return false;
	return true;
}

static void connection_carries_messages(void)
{
	struct con con;

	if (!con_establish(&con))
		return;
	CU_ASSERT_EQUAL(state_of(con.active->qp), IBV_QPS_RTS);
	CU_ASSERT_EQUAL(state_of(con.passive->qp), IBV_QPS_RTS);
	CU_ASSERT_TRUE(con_message(con.active, con.passive));
	CU_ASSERT_TRUE(con_message(con.passive, con.active));
	CU_ASSERT_TRUE(con_silent(con.client) && con_silent(con.server));
	con_close(&con);
}

static void request_inherits_from_the_listener(void)
{
	struct rdma_cm_event *event;
	struct con con;

	if (!con_open(&con, 4))
		return;
	if (con_connect(&con, NULL, 0) &&
	    (event = con_wait(con.server, RDMA_CM_EVENT_CONNECT_REQUEST))) {
		con.passive = event->id;
		CU_ASSERT_PTR_NOT_EQUAL(event->id, con.listener);
		CU_ASSERT_PTR_EQUAL(event->listen_id, con.listener);
		CU_ASSERT_PTR_EQUAL(event->id->context, &con);
		CU_ASSERT_PTR_EQUAL(event->id->channel, con.server);
		CU_ASSERT_PTR_NOT_NULL(event->id->verbs);
		CU_ASSERT_PTR_NOT_NULL(event->id->pd);
		CU_ASSERT_EQUAL(event->id->ps, RDMA_PS_TCP);
		CU_ASSERT_EQUAL(event->id->port_num, 1);
		CU_ASSERT_EQUAL(rdma_ack_cm_event(event), 0);
	}
	con_close(&con);
}

static void addresses_are_mirrored(void)
{
	struct con con;

	if (!con_establish(&con))
		return;
	CU_ASSERT_NOT_EQUAL(rdma_get_src_port(con.active), 0);
	CU_ASSERT_EQUAL(rdma_get_dst_port(con.active), rdma_get_src_port(con.listener));
	CU_ASSERT_EQUAL(rdma_get_src_port(con.passive), rdma_get_src_port(con.listener));
	CU_ASSERT_EQUAL(rdma_get_dst_port(con.passive), rdma_get_src_port(con.active));
	CU_ASSERT_EQUAL(memcmp(rdma_get_local_addr(con.active), rdma_get_peer_addr(con.passive),
			       sizeof(struct sockaddr_in)),
			0);
	CU_ASSERT_EQUAL(memcmp(rdma_get_peer_addr(con.active), rdma_get_local_addr(con.passive),
			       sizeof(struct sockaddr_in)),
			0);
	con_close(&con);
}

static void private_data_both_ways(unsigned request, unsigned reply)
{
	struct rdma_conn_param param;
	struct rdma_cm_event *event;
	struct con con;

	if (!con_open(&con, 4))
		return;
	CU_ASSERT_TRUE(con_connect(&con, pattern, (uint8_t)request));
	event = con_wait(con.server, RDMA_CM_EVENT_CONNECT_REQUEST);
	CU_ASSERT_PTR_NOT_NULL_FATAL(event);
	CU_ASSERT_TRUE(padded(event, request, REQUEST));
	con.passive = event->id;
	CU_ASSERT_EQUAL(rdma_ack_cm_event(event), 0);
	CU_ASSERT_TRUE(con_make_qp(con.passive));
	param = con_param(pattern, (uint8_t)reply);
	CU_ASSERT_EQUAL(rdma_accept(con.passive, &param), 0);
	event = con_wait(con.client, RDMA_CM_EVENT_ESTABLISHED);
	CU_ASSERT_PTR_NOT_NULL_FATAL(event);
	CU_ASSERT_TRUE(padded(event, reply, REPLY));
	CU_ASSERT_EQUAL(rdma_ack_cm_event(event), 0);
	event = con_wait(con.server, RDMA_CM_EVENT_ESTABLISHED);
	CU_ASSERT_PTR_NOT_NULL_FATAL(event);
	CU_ASSERT_EQUAL(event->param.conn.private_data_len, 0);
	CU_ASSERT_PTR_NULL(event->param.conn.private_data);
	CU_ASSERT_EQUAL(rdma_ack_cm_event(event), 0);
	con_close(&con);
}

static void private_data_is_padded(void)
{
	private_data_both_ways(0, 0);
	private_data_both_ways(1, 7);
	private_data_both_ways(REQUEST, REPLY);
}

static void long_request_data(void)
{
	struct rdma_conn_param param = con_param(pattern, REQUEST + 1);
	struct con con;

	if (!con_open(&con, 4))
		return;
	if (con_resolve(&con, &con.active, ntohs(rdma_get_src_port(con.listener))) &&
	    con_make_qp(con.active)) {
		errno = 0;
		CU_ASSERT_EQUAL(rdma_connect(con.active, &param), -1);
		CU_ASSERT_EQUAL(errno, EINVAL);
		CU_ASSERT_TRUE(con_silent(con.server));
	}
	con_close(&con);
}

/* The refusal of a request as the active side sees it. */
static void expect_refusal(struct con *con, int status, unsigned given)
{
	struct rdma_cm_event *event = con_wait(con->client, RDMA_CM_EVENT_REJECTED);

	CU_ASSERT_PTR_NOT_NULL(event);
	if (!event)
		return;
	CU_ASSERT_PTR_EQUAL(event->id, con->active);
	CU_ASSERT_EQUAL(event->status, status);
	CU_ASSERT_TRUE(padded(event, given, REFUSAL));
	CU_ASSERT_EQUAL(rdma_ack_cm_event(event), 0);
	CU_ASSERT_EQUAL(state_of(con->active->qp), IBV_QPS_ERR);
	CU_ASSERT_TRUE(con_silent(con->client));
}

static void long_reply_data(void)
{
	struct rdma_conn_param param = con_param(pattern, REPLY + 1);
	struct con con;

	if (!con_open(&con, 4))
		return;
	if (con_connect(&con, NULL, 0) && con_request(&con)) {
		errno = 0;
		CU_ASSERT_EQUAL(rdma_accept(con.passive, &param), -1);
		CU_ASSERT_EQUAL(errno, EINVAL);
		CU_ASSERT_EQUAL(state_of(con.passive->qp), IBV_QPS_ERR);
		expect_refusal(&con, STATUS_CONSUMER, 0);
	}
	con_close(&con);
}

static void long_refusal_data(void)
{
	struct con con;

	if (!con_open(&con, 4))
		return;
	if (con_connect(&con, NULL, 0) && con_request(&con)) {
		errno = 0;
		CU_ASSERT_EQUAL(rdma_reject(con.passive, pattern, REFUSAL + 1), -1);
		CU_ASSERT_EQUAL(errno, EINVAL);
	}
	con_close(&con);
}

static void refused_with(unsigned length)
{
	struct con con;

	if (!con_open(&con, 4))
		return;
	if (con_connect(&con, NULL, 0) && con_request(&con)) {
		CU_ASSERT_EQUAL(rdma_reject(con.passive, length ? pattern : NULL, (uint8_t)length),
				0);
		expect_refusal(&con, STATUS_CONSUMER, length);
		CU_ASSERT_TRUE(con_silent(con.server));
	}
	con_close(&con);
}

static void refusal(void)
{
	refused_with(0);
	refused_with(10);
	refused_with(REFUSAL);
}

static void listener_goes_on_after_a_refusal(void)
{
	struct rdma_conn_param param = con_param(NULL, 0);
	struct con con;

	if (!con_open(&con, 4))
		return;
	if (con_connect(&con, NULL, 0) && con_request(&con)) {
		CU_ASSERT_EQUAL(rdma_reject(con.passive, NULL, 0), 0);
		expect_refusal(&con, STATUS_CONSUMER, 0);
		con_destroy(&con.passive);
		con_destroy(&con.active);
		CU_ASSERT_TRUE(con_connect(&con, NULL, 0) && con_request(&con));
		CU_ASSERT_EQUAL(rdma_accept(con.passive, &param), 0);
		CU_ASSERT_TRUE(con_comes(con.client, RDMA_CM_EVENT_ESTABLISHED));
		CU_ASSERT_TRUE(con_comes(con.server, RDMA_CM_EVENT_ESTABLISHED));
		CU_ASSERT_TRUE(con_message(con.active, con.passive));
	}
	con_close(&con);
}

static void request_id_is_destroyed(void)
{
	struct con con;

	if (!con_open(&con, 4))
		return;
	if (con_connect(&con, NULL, 0) && con_request(&con)) {
		con_destroy(&con.passive);
		expect_refusal(&con, STATUS_CONSUMER, 0);
	}
	con_close(&con);
}

static void no_listener(void)
{
	struct rdma_conn_param param = con_param(NULL, 0);
	struct sockaddr_storage address = con_address(0);
	struct rdma_cm_id *bound;
	uint16_t port;
	struct con con;
	int round;

	if (!con_open(&con, 4))
		return;
	/* first a port that is bound but has no listener, then one that is not bound */
	CU_ASSERT_EQUAL_FATAL(rdma_create_id(con.server, &bound, NULL, RDMA_PS_TCP), 0);
	CU_ASSERT_EQUAL(rdma_bind_addr(bound, (struct sockaddr *)&address), 0);
	port = ntohs(rdma_get_src_port(bound));
	for (round = 0; round < 2; round++) {
		if (round) {
			CU_ASSERT_EQUAL(rdma_destroy_id(bound), 0);
			con_destroy(&con.active);
		}
		if (!con_resolve(&con, &con.active, port) || !con_make_qp(con.active))
			break;
		CU_ASSERT_EQUAL(rdma_connect(con.active, &param), 0);
		expect_refusal(&con, STATUS_NO_LISTENER, 0);
	}
	con_close(&con);
}

static void queue_counts_unread_requests(void)
{
	struct rdma_conn_param param = con_param(NULL, 0);
	struct rdma_cm_id *ids[3] = { NULL }, *requests[3] = { NULL };
	struct rdma_cm_event *event;
	struct con con;
	uint16_t port;
	int i;

	if (!con_open(&con, 1))
		return;
	port = ntohs(rdma_get_src_port(con.listener));
	for (i = 0; i < 3; i++) {
		CU_ASSERT_TRUE_FATAL(con_resolve(&con, &ids[i], port) && con_make_qp(ids[i]));
		CU_ASSERT_EQUAL(rdma_connect(ids[i], &param), 0);
	}
	/* reading one request makes room for the next, which the active side may have to repeat */
	for (i = 0; i < 3; i++) {
		event = con_wait(con.server, RDMA_CM_EVENT_CONNECT_REQUEST);
		CU_ASSERT_PTR_NOT_NULL(event);
		requests[i] = event ? event->id : NULL;
		CU_ASSERT_TRUE(event && !rdma_ack_cm_event(event));
	}
	CU_ASSERT_TRUE(con_silent(con.client));
	for (i = 0; i < 3; i++) {
		con_destroy(&ids[i]);
		con_destroy(&requests[i]);
	}
	con_close(&con);
}

static void request_outlives_its_listener(void)
{
	struct rdma_conn_param param = con_param(NULL, 0);
	struct con con;

	if (!con_open(&con, 4))
		return;
	if (con_connect(&con, NULL, 0) && con_request(&con)) {
		con_destroy(&con.listener);
		CU_ASSERT_EQUAL(rdma_accept(con.passive, &param), 0);
		CU_ASSERT_TRUE(con_comes(con.client, RDMA_CM_EVENT_ESTABLISHED));
		CU_ASSERT_TRUE(con_comes(con.server, RDMA_CM_EVENT_ESTABLISHED));
		CU_ASSERT_TRUE(con_message(con.active, con.passive));
	}
	con_close(&con);
}

static void connector_gives_up(void)
{
	struct rdma_conn_param param = con_param(NULL, 0);
	struct ibv_qp_init_attr init = {
		.qp_type = IBV_QPT_RC,
		.cap = { .max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1 },
	};
	struct rdma_cm_event *event;
	struct con con;

	if (!con_open(&con, 4))
		return;
	if (con_connect(&con, NULL, 0) &&
	    (event = con_wait(con.server, RDMA_CM_EVENT_CONNECT_REQUEST))) {
		con.passive = event->id;
		CU_ASSERT_EQUAL(rdma_ack_cm_event(event), 0);
		con_destroy(&con.active);
		CU_ASSERT_TRUE(con_silent(con.server));
		/* one of the two calls reports it */
		errno = 0;
		CU_ASSERT_TRUE((rdma_create_qp(con.passive, NULL, &init) ||
				rdma_accept(con.passive, &param)) &&
			       errno == EINVAL);
	}
	con_close(&con);
}

static void fetching_and_acknowledging_are_checked(void)
{
	struct rdma_event_channel *channel = rdma_create_event_channel();
	struct rdma_cm_event *event;

	errno = 0;
	CU_ASSERT_EQUAL(rdma_ack_cm_event(NULL), -1);
	CU_ASSERT_EQUAL(errno, EINVAL);
	CU_ASSERT_PTR_NOT_NULL_FATAL(channel);
	CU_ASSERT_FALSE(con_readable(channel, 0));
	CU_ASSERT_EQUAL(fcntl(channel->fd, F_SETFL, O_NONBLOCK), 0);
	errno = 0;
	CU_ASSERT_EQUAL(rdma_get_cm_event(channel, &event), -1);
	CU_ASSERT_EQUAL(errno, EAGAIN);
	rdma_destroy_event_channel(channel);
}

static const struct unit_test tests[] = {
	{ "connection: events in order, QPs in RTS, messages flow", connection_carries_messages },
	{ "request: channel and context of the listener, device set",
	  request_inherits_from_the_listener },
	{ "addresses and ports of both ids mirror each other", addresses_are_mirrored },
	{ "private data: the whole buffer is seen, zero padded", private_data_is_padded },
	{ "connect with 57 bytes: EINVAL", long_request_data },
	{ "accept with 197 bytes: EINVAL, QP to ERR, peer REJECTED 28", long_reply_data },
	{ "reject with 149 bytes: EINVAL", long_refusal_data },
	{ "reject: REJECTED 28 with private data, QP to ERR", refusal },
	{ "reject: the listener takes the next", listener_goes_on_after_a_refusal },
	{ "request id destroyed: REJECTED 28", request_id_is_destroyed },
	{ "no listener: REJECTED 8, 148 zero bytes, QP to ERR", no_listener },
	{ "backlog counts unread requests", queue_counts_unread_requests },
	{ "a reported request outlives its listener", request_outlives_its_listener },
	{ "active id destroyed: no event, then EINVAL at the passive side", connector_gives_up },
	{ "acknowledging NULL: EINVAL; an empty non-blocking channel: EAGAIN",
	  fetching_and_acknowledging_are_checked },
};

int main(int argc, char **argv)
{
	fill_pattern();
	return conform_open() ? unit_main("conform_cm", tests, COUNT(tests), argc, argv) : 77;
}
