/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* A listener and a connector of this process. */
#include <netinet/in.h>
#include <stdio.h>
#include "test/conform/con.h"

struct sockaddr_storage con_address_of(const union ibv_gid *gid, uint16_t port)
{
	static const uint8_t ipv4_mapped[12] = { [10] = 0xff, [11] = 0xff };
	struct sockaddr_storage storage = { 0 };

	if (!memcmp(gid->raw, ipv4_mapped, sizeof(ipv4_mapped))) {
		struct sockaddr_in *sin = (struct sockaddr_in *)(void *)&storage;

		sin->sin_family = AF_INET;
		sin->sin_port = htons(port);
		memcpy(&sin->sin_addr, gid->raw + 12, 4);
	} else {
		struct sockaddr_in6 *sin6 = (struct sockaddr_in6 *)(void *)&storage;

		sin6->sin6_family = AF_INET6;
		sin6->sin6_port = htons(port);
		memcpy(&sin6->sin6_addr, gid->raw, 16);
	}
	return storage;
}

struct sockaddr_storage con_address(uint16_t port)
{
	return con_address_of(&device_gid, port);
}

bool con_readable(struct rdma_event_channel *channel, unsigned milliseconds)
{
	return readable(channel->fd, milliseconds);
}

struct rdma_cm_event *con_wait(struct rdma_event_channel *channel, enum rdma_cm_event_type type)
{
	struct rdma_cm_event *event;

	if (!con_readable(channel, PATIENCE) || rdma_get_cm_event(channel, &event)) {
		fprintf(stderr, "no event within the time, expected: %s\n", rdma_event_str(type));
		return NULL;
	}
	if (event->event == type)
		return event;
	fprintf(stderr, "event: %s (%d), expected: %s\n", rdma_event_str(event->event),
		event->status, rdma_event_str(type));
	rdma_ack_cm_event(event);
	return NULL;
}

bool con_comes(struct rdma_event_channel *channel, enum rdma_cm_event_type type)
{
	struct rdma_cm_event *event = con_wait(channel, type);
	bool good = event && !event->status;

	return event && !rdma_ack_cm_event(event) && good;
}

bool con_silent(struct rdma_event_channel *channel)
{
	struct rdma_cm_event *event;

	if (!con_readable(channel, SILENCE))
		return true;
	if (!rdma_get_cm_event(channel, &event)) {
		fprintf(stderr, "unexpected event: %s\n", rdma_event_str(event->event));
		rdma_ack_cm_event(event);
	}
	return false;
}

bool con_open(struct con *con, int backlog)
{
	return con_open_in(con, backlog, RDMA_PS_TCP);
}

bool con_open_in(struct con *con, int backlog, enum rdma_port_space space)
{
	struct sockaddr_storage address = con_address(0);
	bool good;

	*con = (struct con){ .server = rdma_create_event_channel(),
			     .client = rdma_create_event_channel() };
	good = con->server && con->client &&
	       !rdma_create_id(con->server, &con->listener, con, space) &&
	       !rdma_bind_addr(con->listener, (struct sockaddr *)&address) &&
	       !rdma_listen(con->listener, backlog);
	CU_ASSERT_TRUE(good);
	if (!good)
		con_close(con);
	return good;
}

void con_destroy(struct rdma_cm_id **id)
{
	if (*id && (*id)->qp)
		rdma_destroy_qp(*id);
	CU_ASSERT_EQUAL(*id ? rdma_destroy_id(*id) : 0, 0);
	*id = NULL;
}

void con_close(struct con *con)
{
	con_destroy(&con->active);
	con_destroy(&con->passive);
	con_destroy(&con->listener);
	if (con->server)
		rdma_destroy_event_channel(con->server);
	if (con->client)
		rdma_destroy_event_channel(con->client);
	*con = (struct con){ 0 };
}

bool con_resolve_at(struct con *con, struct rdma_cm_id **id, const union ibv_gid *gid,
		    uint16_t port)
{
	struct sockaddr_storage address = con_address_of(gid, port);
	bool good = !rdma_create_id(con->client, id, NULL, con->listener->ps) &&
		    !rdma_resolve_addr(*id, NULL, (struct sockaddr *)&address, 2000) &&
		    con_comes(con->client, RDMA_CM_EVENT_ADDR_RESOLVED) &&
		    !rdma_resolve_route(*id, 2000) &&
		    con_comes(con->client, RDMA_CM_EVENT_ROUTE_RESOLVED);

	CU_ASSERT_TRUE(good);
	return good;
}

bool con_resolve(struct con *con, struct rdma_cm_id **id, uint16_t port)
{
	return con_resolve_at(con, id, &device_gid, port);
}

bool con_make_qp(struct rdma_cm_id *id)
{
	struct ibv_qp_init_attr init = {
		.qp_type = id->qp_type,
		.sq_sig_all = 1,
		.cap = { .max_send_wr = 8, .max_recv_wr = 8, .max_send_sge = 1, .max_recv_sge = 1 },
	};
	bool good = !rdma_create_qp(id, NULL, &init);

	CU_ASSERT_TRUE(good);
	return good;
}

struct rdma_conn_param con_param(const void *data, uint8_t length)
{
	return (struct rdma_conn_param){
		.private_data = data,
		.private_data_len = length,
		.responder_resources = 1,
		.initiator_depth = 1,
		.retry_count = 7,
		.rnr_retry_count = 7,
	};
}

bool con_connect(struct con *con, const void *data, uint8_t length)
{
	struct rdma_conn_param param = con_param(data, length);
	bool good = con_resolve(con, &con->active, ntohs(rdma_get_src_port(con->listener))) &&
		    con_make_qp(con->active) && !rdma_connect(con->active, &param);

	CU_ASSERT_TRUE(good);
	return good;
}

bool con_request(struct con *con)
{
	struct rdma_cm_event *event = con_wait(con->server, RDMA_CM_EVENT_CONNECT_REQUEST);

	CU_ASSERT_PTR_NOT_NULL(event);
	if (!event)
		return false;
	con->passive = event->id;
	CU_ASSERT_PTR_EQUAL(event->listen_id, con->listener);
	CU_ASSERT_EQUAL(rdma_ack_cm_event(event), 0);
	return con_make_qp(con->passive);
}

bool con_establish(struct con *con)
{
	struct rdma_conn_param param = con_param(NULL, 0);
	bool good = con_open(con, 4) && con_connect(con, NULL, 0) && con_request(con) &&
		    !rdma_accept(con->passive, &param) &&
		    con_comes(con->client, RDMA_CM_EVENT_ESTABLISHED) &&
		    con_comes(con->server, RDMA_CM_EVENT_ESTABLISHED);

	CU_ASSERT_TRUE(good);
	if (!good)
		con_close(con);
	return good;
}

bool con_message(struct rdma_cm_id *from, struct rdma_cm_id *to)
{
	struct ibv_send_wr swr = { .wr_id = 1,
				   .opcode = IBV_WR_SEND,
				   .send_flags = IBV_SEND_SIGNALED };
	struct ibv_recv_wr rwr = { .wr_id = 2 }, *rbad;
	struct ibv_send_wr *sbad;

	return !ibv_post_recv(to->qp, &rwr, &rbad) && !ibv_post_send(from->qp, &swr, &sbad) &&
	       completes(from->send_cq, 1, IBV_WC_SUCCESS, NULL) &&
	       completes(to->recv_cq, 2, IBV_WC_SUCCESS, NULL);
}
