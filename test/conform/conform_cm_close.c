/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* The end of connections, ids and channels of rdma_cm. */
#include <netinet/in.h>
#include <pthread.h>
#include <stdatomic.h>
#include "test/conform/con.h"
#include "util/clock.h"

static void disconnect_from_one_side(bool active_first)
{
	struct ibv_recv_wr wr = { .wr_id = 5 }, *bad;
	struct rdma_event_channel *first_channel, *second_channel;
	struct rdma_cm_id *first, *second;
	struct con con;

	if (!con_establish(&con))
		return;
	first = active_first ? con.active : con.passive;
	second = active_first ? con.passive : con.active;
	first_channel = first->channel;
	second_channel = second->channel;
	CU_ASSERT_EQUAL(ibv_post_recv(first->qp, &wr, &bad), 0);
	CU_ASSERT_EQUAL(ibv_post_recv(second->qp, &wr, &bad), 0);
	CU_ASSERT_EQUAL(rdma_disconnect(first), 0);
	CU_ASSERT_EQUAL(state_of(first->qp), IBV_QPS_ERR);
	CU_ASSERT_TRUE(completes(first->recv_cq, 5, IBV_WC_WR_FLUSH_ERR, NULL));
	CU_ASSERT_TRUE(con_comes(second_channel, RDMA_CM_EVENT_DISCONNECTED));
	CU_ASSERT_EQUAL(state_of(second->qp), IBV_QPS_RTS);
	CU_ASSERT_TRUE(stays_empty(second->recv_cq));
	CU_ASSERT_EQUAL(rdma_disconnect(second), 0);
	CU_ASSERT_EQUAL(state_of(second->qp), IBV_QPS_ERR);
	CU_ASSERT_TRUE(completes(second->recv_cq, 5, IBV_WC_WR_FLUSH_ERR, NULL));
	CU_ASSERT_TRUE(con_comes(first_channel, RDMA_CM_EVENT_DISCONNECTED));
	CU_ASSERT_TRUE(con_comes(first_channel, RDMA_CM_EVENT_TIMEWAIT_EXIT));
	CU_ASSERT_TRUE(con_comes(second_channel, RDMA_CM_EVENT_TIMEWAIT_EXIT));
	CU_ASSERT_EQUAL(rdma_disconnect(first), 0);
	CU_ASSERT_EQUAL(rdma_disconnect(second), 0);
	CU_ASSERT_TRUE(con_silent(con.client) && con_silent(con.server));
	con_close(&con);
}

static void active_disconnects(void)
{
	disconnect_from_one_side(true);
}

static void passive_disconnects(void)
{
	disconnect_from_one_side(false);
}

static void both_disconnect_at_once(void)
{
	struct con con;

	if (!con_establish(&con))
		return;
	CU_ASSERT_EQUAL(rdma_disconnect(con.active), 0);
	CU_ASSERT_EQUAL(rdma_disconnect(con.passive), 0);
	CU_ASSERT_TRUE(con_comes(con.client, RDMA_CM_EVENT_DISCONNECTED));
	CU_ASSERT_TRUE(con_comes(con.server, RDMA_CM_EVENT_DISCONNECTED));
	/* the kernel reports none if the two requests cross */
	CU_ASSERT_TRUE(device_is_rxe || con_comes(con.client, RDMA_CM_EVENT_TIMEWAIT_EXIT));
	CU_ASSERT_TRUE(device_is_rxe || con_comes(con.server, RDMA_CM_EVENT_TIMEWAIT_EXIT));
	con_close(&con);
}

static void disconnect_too_early(void)
{
	struct con con;

	if (!con_open(&con, 4))
		return;
	if (con_resolve(&con, &con.active, ntohs(rdma_get_src_port(con.listener)))) {
		errno = 0;
		CU_ASSERT_EQUAL(rdma_disconnect(con.active), -1);
		CU_ASSERT_EQUAL(errno, EINVAL);
	}
	con_close(&con);
}

static void destroyed_connection_disconnects(void)
{
	struct con con;

	if (!con_establish(&con))
		return;
	con_destroy(&con.active);
	CU_ASSERT_TRUE(con_comes(con.server, RDMA_CM_EVENT_DISCONNECTED));
	CU_ASSERT_EQUAL(state_of(con.passive->qp), IBV_QPS_RTS);
	CU_ASSERT_TRUE(con_silent(con.client));
	con_close(&con);
}

struct destroyer {
	struct rdma_cm_id *id;
	atomic_bool done;
};

static void *destroy(void *arg)
{
	struct destroyer *destroyer = arg;

	rdma_destroy_id(destroyer->id);
	atomic_store(&destroyer->done, true);
	return NULL;
}

static bool is_done(void *arg)
{
	return atomic_load(&((struct destroyer *)arg)->done);
}

static void destroy_waits_for_acknowledgement(void)
{
	struct destroyer destroyer = { 0 };
	struct rdma_cm_event *event;
	pthread_t thread;
	struct con con;

	if (!con_establish(&con))
		return;
	CU_ASSERT_EQUAL(rdma_disconnect(con.active), 0);
	event = con_wait(con.server, RDMA_CM_EVENT_DISCONNECTED);
	CU_ASSERT_PTR_NOT_NULL_FATAL(event);
	rdma_destroy_qp(con.passive);
	destroyer.id = con.passive;
	con.passive = NULL;
	CU_ASSERT_EQUAL_FATAL(pthread_create(&thread, NULL, destroy, &destroyer), 0);
	CU_ASSERT_FALSE(unit_wait_for(is_done, &destroyer, SILENCE));
	CU_ASSERT_EQUAL(rdma_ack_cm_event(event), 0);
	CU_ASSERT_TRUE(unit_wait_for(is_done, &destroyer, PATIENCE));
	CU_ASSERT_EQUAL(pthread_join(thread, NULL), 0);
	con_close(&con);
}

static void unread_events_go_with_the_id(void)
{
	struct con con;

	if (!con_establish(&con))
		return;
	CU_ASSERT_EQUAL(rdma_disconnect(con.active), 0);
	CU_ASSERT_TRUE(con_readable(con.server, PATIENCE));
	con_destroy(&con.passive);
	CU_ASSERT_TRUE(con_silent(con.server));
	con_close(&con);
}

/* Destroying a listener rejects a connection request that was not read yet. */
static void unread_requests_go_with_the_listener(void)
{
	struct rdma_cm_event *event;
	struct con con;

	if (!con_open(&con, 4))
		return;
	if (con_connect(&con, NULL, 0)) {
		CU_ASSERT_TRUE(con_readable(con.server, PATIENCE));
		con_destroy(&con.listener);
		CU_ASSERT_TRUE(con_silent(con.server));
		event = con_wait(con.client, RDMA_CM_EVENT_REJECTED);
		CU_ASSERT_PTR_NOT_NULL(event);
		CU_ASSERT_TRUE(event && !rdma_ack_cm_event(event));
	}
	con_close(&con);
}

static void migrated_id_takes_its_events_along(void)
{
	struct rdma_event_channel *other = rdma_create_event_channel();
	struct con con;

	CU_ASSERT_PTR_NOT_NULL_FATAL(other);
	if (!con_establish(&con))
		return;
	CU_ASSERT_EQUAL(rdma_disconnect(con.active), 0);
	CU_ASSERT_TRUE(con_readable(con.server, PATIENCE));
	CU_ASSERT_EQUAL(rdma_migrate_id(con.passive, other), 0);
	CU_ASSERT_PTR_EQUAL(con.passive->channel, other);
	CU_ASSERT_TRUE(con_silent(con.server));
	CU_ASSERT_TRUE(con_comes(other, RDMA_CM_EVENT_DISCONNECTED));
	con_close(&con);
	rdma_destroy_event_channel(other);
}

static void migrated_listener(void)
{
	struct rdma_event_channel *other = rdma_create_event_channel();
	struct rdma_cm_event *event;
	struct con con;

	CU_ASSERT_PTR_NOT_NULL_FATAL(other);
	if (!con_open(&con, 4))
		return;
	CU_ASSERT_EQUAL(rdma_migrate_id(con.listener, other), 0);
	if (con_connect(&con, NULL, 0) &&
	    (event = con_wait(other, RDMA_CM_EVENT_CONNECT_REQUEST))) {
		con.passive = event->id;
		CU_ASSERT_PTR_EQUAL(event->id->channel, other);
		CU_ASSERT_EQUAL(rdma_ack_cm_event(event), 0);
	}
	CU_ASSERT_TRUE(con_silent(con.server));
	con_close(&con);
	rdma_destroy_event_channel(other);
}

static void port_is_free_again(void)
{
	struct rdma_cm_id *id;
	struct sockaddr_storage address;
	struct con con;
	uint16_t port;
	int round;

	if (!con_establish(&con))
		return;
	port = ntohs(rdma_get_src_port(con.listener));
	address = con_address(port);
	con_destroy(&con.active);
	con_destroy(&con.passive);
	con_destroy(&con.listener);
	for (round = 0; round < 3; round++) {
		CU_ASSERT_EQUAL_FATAL(rdma_create_id(con.server, &id, NULL, RDMA_PS_TCP), 0);
		CU_ASSERT_EQUAL(rdma_bind_addr(id, (struct sockaddr *)&address), 0);
		CU_ASSERT_EQUAL(rdma_listen(id, 4), 0);
		CU_ASSERT_EQUAL(rdma_destroy_id(id), 0);
	}
	con_close(&con);
}

#define TOLD_AFTER (20 * NSEC_PER_MSEC) /* the device's limit; no event is due before */

/* The active side sends and disconnects; on the software device the request has arrived. Returns when that began. */
static uint64_t send_and_disconnect(struct con *con)
{
	struct ibv_send_wr wr = { .wr_id = 1,
				  .opcode = IBV_WR_SEND,
				  .send_flags = IBV_SEND_SIGNALED },
			   *bad;
	struct ibv_recv_wr receive = { .wr_id = 2 }, *bad_receive;
	uint64_t begin;

	CU_ASSERT_EQUAL(ibv_post_recv(con->passive->qp, &receive, &bad_receive), 0);
	CU_ASSERT_EQUAL(ibv_post_send(con->active->qp, &wr, &bad), 0);
	CU_ASSERT_TRUE(completes(con->active->send_cq, 1, IBV_WC_SUCCESS, NULL));
	begin = clock_now();
	CU_ASSERT_EQUAL(rdma_disconnect(con->active), 0);
	/* the kernel answers when the program does */
	CU_ASSERT_TRUE(device_is_rxe || con_comes(con->client, RDMA_CM_EVENT_DISCONNECTED));
	return begin;
}

/* Programs destroy the QP when they see the event, so a message that came before it is polled first. */
static void message_comes_before_the_end(void)
{
	bool told = true, in_time = false;
	unsigned attempts = 100;
	struct con con;

	if (device_is_rxe) {
		skip("a kernel does not wait for polls; its request is late by itself");
		return;
	}
	while (!in_time && attempts--) {
		uint64_t begin;

		if (!con_establish(&con))
			return;
		begin = send_and_disconnect(&con);
		told = con_readable(con.server, 0);
		in_time = clock_now() - begin < TOLD_AFTER;
		CU_ASSERT_TRUE(completes(con.passive->recv_cq, 2, IBV_WC_SUCCESS, NULL));
		CU_ASSERT_TRUE(con_comes(con.server, RDMA_CM_EVENT_DISCONNECTED));
		con_close(&con);
	}
	CU_ASSERT_TRUE(in_time && !told);
}

static void end_comes_without_polls(void)
{
	struct con con;

	if (!con_establish(&con))
		return;
	send_and_disconnect(&con);
	CU_ASSERT_TRUE(con_comes(con.server, RDMA_CM_EVENT_DISCONNECTED));
	CU_ASSERT_TRUE(completes(con.passive->recv_cq, 2, IBV_WC_SUCCESS, NULL));
	CU_ASSERT_TRUE(con_silent(con.server));
	con_close(&con);
}

/* Disconnected by both sides while a message waits: each side gets one event, and TIMEWAIT_EXIT. */
static void end_comes_with_ones_own(void)
{
	struct con con;

	if (device_is_rxe) {
		skip("the two requests may cross, and a kernel reports no TIMEWAIT_EXIT then");
		return;
	}
	if (!con_establish(&con))
		return;
	send_and_disconnect(&con);
	CU_ASSERT_EQUAL(rdma_disconnect(con.passive), 0);
	CU_ASSERT_TRUE(con_comes(con.server, RDMA_CM_EVENT_DISCONNECTED));
	CU_ASSERT_TRUE(con_comes(con.server, RDMA_CM_EVENT_TIMEWAIT_EXIT));
	CU_ASSERT_TRUE(completes(con.passive->recv_cq, 2, IBV_WC_SUCCESS, NULL));
	CU_ASSERT_TRUE(con_silent(con.server));
	con_close(&con);
}

static const struct unit_test tests[] = {
	{ "the active side disconnects: its QP to ERR, the other's stays, TIMEWAIT_EXIT twice",
	  active_disconnects },
	{ "the passive side disconnects: the same", passive_disconnects },
	{ "both disconnect", both_disconnect_at_once },
	{ "disconnect before connect: EINVAL", disconnect_too_early },
	{ "a destroyed id disconnects its peer", destroyed_connection_disconnects },
	{ "a message is polled before the end is told", message_comes_before_the_end },
	{ "the end is told without polls, too", end_comes_without_polls },
	{ "the end is told once if the program disconnects, too", end_comes_with_ones_own },
	{ "destroy_id waits until its events are acknowledged", destroy_waits_for_acknowledgement },
	{ "unread events go with their id", unread_events_go_with_the_id },
	{ "unread requests go with their listener, the other side is refused",
	  unread_requests_go_with_the_listener },
	{ "migrate: queued events come along", migrated_id_takes_its_events_along },
	{ "migrate: requests follow their listener", migrated_listener },
	{ "a port is free as soon as its ids are gone", port_is_free_again },
};

CONFORM_MAIN("conform_cm_close", tests)
