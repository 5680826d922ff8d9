/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* Identifiers, addresses, ports and queue pairs of the software device's connection manager. */
#include "test/unit/cm.h"

/* ---- addresses and ports ---- */

static int bind_error(struct rdma_event_channel *channel, struct sockaddr_in addr,
		      enum rdma_port_space space, struct rdma_cm_id **out)
{
	struct rdma_cm_id *id;

	*out = NULL;
	if (rdma_create_id(channel, &id, NULL, space))
		return -1;
	if (!rdma_bind_addr(id, (struct sockaddr *)&addr)) {
		*out = id;
		return 0;
	}
	rdma_destroy_id(id);
	return errno;
}

static void ports_are_claimed(void)
{
	struct rdma_event_channel *channel = rdma_create_event_channel();
	struct rdma_cm_id *first, *second, *third;
	struct sockaddr_in addr, wild;

	first = cm_bound(channel, 0);
	CU_ASSERT_PTR_NOT_NULL_FATAL(first);
	CU_ASSERT_PTR_NOT_NULL(first->verbs);
	CU_ASSERT_PTR_NOT_NULL(first->pd);
	CU_ASSERT_EQUAL(first->port_num, 1);
	CU_ASSERT_EQUAL(rdma_bind_addr(first, rdma_get_local_addr(first)), -1);
	CU_ASSERT_EQUAL(errno, EINVAL);
	addr = wild = cm_loopback(ntohs(rdma_get_src_port(first)));
	wild.sin_addr.s_addr = htonl(INADDR_ANY);
	CU_ASSERT_NOT_EQUAL(addr.sin_port, 0);
	CU_ASSERT_EQUAL(bind_error(channel, addr, RDMA_PS_TCP, &second), EADDRINUSE);
	CU_ASSERT_EQUAL(bind_error(channel, wild, RDMA_PS_TCP, &second), EADDRINUSE);
	CU_ASSERT_EQUAL(bind_error(channel, addr, RDMA_PS_UDP, &second), 0);
	CU_ASSERT_EQUAL(rdma_destroy_id(second), 0);
	CU_ASSERT_EQUAL(rdma_destroy_id(first), 0);
	CU_ASSERT_EQUAL(bind_error(channel, wild, RDMA_PS_TCP, &first), 0);
	CU_ASSERT_PTR_NULL(first->verbs); /* not bound to a device yet */
	CU_ASSERT_EQUAL(bind_error(channel, addr, RDMA_PS_TCP, &second), EADDRINUSE);
	CU_ASSERT_EQUAL(rdma_destroy_id(first), 0);
	CU_ASSERT_EQUAL(bind_error(channel, addr, RDMA_PS_TCP, &first), 0);
	addr.sin_addr.s_addr = htonl(INADDR_LOOPBACK + 1); /* another address, the same port */
	CU_ASSERT_EQUAL(bind_error(channel, addr, RDMA_PS_TCP, &second), 0);
	CU_ASSERT_EQUAL(bind_error(channel, addr, RDMA_PS_TCP, &third), EADDRINUSE);
	addr.sin_addr.s_addr = inet_addr("192.0.2.1");
	CU_ASSERT_EQUAL(bind_error(channel, addr, RDMA_PS_TCP, &third), EADDRNOTAVAIL);
	addr.sin_addr.s_addr = inet_addr("224.0.0.1");
	CU_ASSERT_EQUAL(bind_error(channel, addr, RDMA_PS_TCP, &third), EADDRNOTAVAIL);
	addr.sin_family = AF_UNIX;
	CU_ASSERT_EQUAL(bind_error(channel, addr, RDMA_PS_TCP, &third), EAFNOSUPPORT);
	CU_ASSERT_EQUAL(rdma_destroy_id(first), 0);
	CU_ASSERT_EQUAL(rdma_destroy_id(second), 0);
	rdma_destroy_event_channel(channel);
}

static void port_is_free_when_destroy_returns(void)
{
	struct rdma_event_channel *channel = rdma_create_event_channel();
	struct rdma_cm_id *id = cm_listener(channel, 0);
	uint16_t port = ntohs(rdma_get_src_port(id));
	unsigned round;

	for (round = 0; round < 100; round++) {
		CU_ASSERT_EQUAL(rdma_destroy_id(id), 0);
		id = cm_bound(channel, port);
		CU_ASSERT_PTR_NOT_NULL_FATAL(id);
		CU_ASSERT_EQUAL(rdma_listen(id, 1), 0);
		CU_ASSERT_EQUAL(rdma_listen(id, 1), -1);
	}
	CU_ASSERT_EQUAL(rdma_destroy_id(id), 0);
	rdma_destroy_event_channel(channel);
}

static void ephemeral_ports_differ(void)
{
	enum { COUNT = 700 }; /* many blocks of ports, claimed several at a time */
	struct rdma_event_channel *channel = rdma_create_event_channel();
	struct rdma_cm_id *ids[COUNT], *taken;
	bool used[65536] = { false };
	unsigned i;
	uint16_t port;

	for (i = 0; i < COUNT; i++) {
		ids[i] = cm_bound(channel, 0);
		CU_ASSERT_PTR_NOT_NULL_FATAL(ids[i]);
		port = ntohs(rdma_get_src_port(ids[i]));
		CU_ASSERT(port >= 1024 && !used[port]);
		used[port] = true;
	}
	CU_ASSERT_EQUAL(bind_error(channel, cm_loopback(port), RDMA_PS_TCP, &taken), EADDRINUSE);
	for (i = 0; i < COUNT; i++)
		CU_ASSERT_EQUAL(rdma_destroy_id(ids[i]), 0);
	/* a port that a program has bound is not chosen */
	CU_ASSERT_EQUAL(bind_error(channel, cm_loopback((uint16_t)(port + 1)), RDMA_PS_TCP, &taken),
			0);
	for (i = 0; i < COUNT; i++) {
		ids[i] = cm_bound(channel, 0);
		CU_ASSERT_PTR_NOT_NULL_FATAL(ids[i]);
		CU_ASSERT_NOT_EQUAL(ntohs(rdma_get_src_port(ids[i])), port + 1);
	}
	for (i = 0; i < COUNT; i++)
		CU_ASSERT_EQUAL(rdma_destroy_id(ids[i]), 0);
	CU_ASSERT_EQUAL(rdma_destroy_id(taken), 0);
	rdma_destroy_event_channel(channel);
}

/* Descriptors of a peer that links to this process go with the peer; those that a port leaves stay. */
static bool descriptors_are_at_most(void *count)
{
	return unit_entries("/proc/self/fd") <= *(unsigned *)count;
}

static void ephemeral_ports_leave_nothing(void)
{
	enum { COUNT = 300 };
	struct rdma_event_channel *channel = rdma_create_event_channel();
	struct rdma_cm_id *ids[COUNT], *kept = cm_bound(channel, 0);
	unsigned before = unit_entries("/proc/self/fd"), i;

	for (i = 0; i < COUNT; i++)
		CU_ASSERT_PTR_NOT_NULL_FATAL(ids[i] = cm_bound(channel, 0));
	CU_ASSERT(unit_entries("/proc/self/fd") > before);
	for (i = 0; i < COUNT; i++)
		CU_ASSERT_EQUAL(rdma_destroy_id(ids[i]), 0);
	before++; /* one block is kept for the next identifier */
	CU_ASSERT(unit_wait_for(descriptors_are_at_most, &before, UNIT_PATIENCE));
	CU_ASSERT_EQUAL(rdma_destroy_id(kept), 0);
	rdma_destroy_event_channel(channel);
}

static void address_may_be_shared_until_one_listens(void)
{
	struct rdma_event_channel *channel = rdma_create_event_channel();
	struct rdma_cm_id *ids[2] = { cm_new(channel), cm_new(channel) }, *other;
	struct sockaddr_in addr = cm_loopback(0);
	int on = 1, i;

	other = cm_bound(channel, 0);
	addr.sin_port = rdma_get_src_port(other);
	CU_ASSERT_EQUAL(rdma_destroy_id(other), 0);
	for (i = 0; i < 2; i++) {
		CU_ASSERT_EQUAL(rdma_set_option(ids[i], RDMA_OPTION_ID, RDMA_OPTION_ID_REUSEADDR,
						&on, sizeof(on)),
				0);
		CU_ASSERT_EQUAL(rdma_bind_addr(ids[i], (struct sockaddr *)&addr), 0);
	}
	CU_ASSERT_EQUAL(bind_error(channel, addr, RDMA_PS_TCP, &other), EADDRINUSE);
	CU_ASSERT_EQUAL(rdma_listen(ids[0], 0), 0);
	CU_ASSERT_EQUAL(rdma_listen(ids[1], 0), -1);
	CU_ASSERT_EQUAL(errno, EADDRINUSE);
	CU_ASSERT_EQUAL(rdma_destroy_id(ids[0]), 0);
	CU_ASSERT_EQUAL(rdma_listen(ids[1], 0), 0);
	CU_ASSERT_EQUAL(rdma_destroy_id(ids[1]), 0);
	rdma_destroy_event_channel(channel);
}

static void listens_without_a_bind(void)
{
	struct rdma_conn_param param = cm_param(1);
	struct pair pair;
	struct seen seen;

	CU_ASSERT_FATAL(pair_listen(&pair));
	CU_ASSERT_EQUAL(rdma_destroy_id(pair.listener), 0);
	CU_ASSERT_EQUAL(rdma_destroy_id(pair.active), 0);
	pair.listener = cm_new(pair.far);
	CU_ASSERT_EQUAL(rdma_listen(pair.listener, 0), 0);
	CU_ASSERT_NOT_EQUAL(rdma_get_src_port(pair.listener), 0);
	pair.active = cm_client(pair.near, ntohs(rdma_get_src_port(pair.listener)));
	CU_ASSERT_PTR_NOT_NULL_FATAL(pair.active);
	CU_ASSERT_EQUAL(rdma_connect(pair.active, &param), 0);
	CU_ASSERT_FATAL(cm_expect(pair.far, RDMA_CM_EVENT_CONNECT_REQUEST, &seen));
	pair.passive = seen.event.id;
	pair_free(&pair);
}

static void absent_hosts(void)
{
	struct rdma_event_channel *channel = rdma_create_event_channel();
	struct sockaddr_in far = { .sin_family = AF_INET,
				   .sin_addr.s_addr = inet_addr("192.0.2.1"),
				   .sin_port = 9 };
	struct sockaddr_in6 six = { .sin6_family = AF_INET6,
				    .sin6_addr = IN6ADDR_LOOPBACK_INIT,
				    .sin6_port = 9 };
	struct sockaddr_in near = cm_loopback(9);
	struct rdma_cm_id *id = cm_new(channel);
	struct seen seen;

	CU_ASSERT_EQUAL(rdma_resolve_route(id, 1000), -1);
	CU_ASSERT_EQUAL(errno, EINVAL);
	if (rdma_resolve_addr(id, NULL, (struct sockaddr *)&far, 1000)) {
		CU_ASSERT(errno == ENETUNREACH || errno == EHOSTUNREACH);
	} else {
		CU_ASSERT(cm_expect(channel, RDMA_CM_EVENT_ADDR_ERROR, &seen));
		CU_ASSERT_EQUAL(seen.event.status, -ETIMEDOUT);
	}
	/* an address of the other family */
	CU_ASSERT_EQUAL(rdma_resolve_addr(id, NULL, (struct sockaddr *)&six, 1000), -1);
	CU_ASSERT_EQUAL(errno, EINVAL);
	/* the call may be repeated */
	CU_ASSERT_EQUAL(rdma_resolve_addr(id, NULL, (struct sockaddr *)&near, 1000), 0);
	CU_ASSERT(cm_expect(channel, RDMA_CM_EVENT_ADDR_RESOLVED, NULL));
	CU_ASSERT_EQUAL(rdma_resolve_addr(id, NULL, (struct sockaddr *)&near, 1000), -1);
	CU_ASSERT_EQUAL(rdma_destroy_id(id), 0);
	rdma_destroy_event_channel(channel);
}

static void internet_protocol_six(void)
{
	struct sockaddr_in6 addr = { .sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT };
	struct rdma_event_channel *channel = rdma_create_event_channel();
	struct rdma_cm_id *listener = cm_new(channel), *active = cm_new(channel);
	struct rdma_conn_param param = cm_param(1);
	struct seen seen;

	if (rdma_bind_addr(listener, (struct sockaddr *)&addr)) {
		CU_ASSERT_EQUAL(errno, EADDRNOTAVAIL); /* the host has no IPv6 */
	} else {
		CU_ASSERT_EQUAL(rdma_listen(listener, 0), 0);
		addr.sin6_port = rdma_get_src_port(listener);
		CU_ASSERT_EQUAL(rdma_resolve_addr(active, NULL, (struct sockaddr *)&addr, 1000), 0);
		CU_ASSERT(cm_expect(channel, RDMA_CM_EVENT_ADDR_RESOLVED, NULL));
		CU_ASSERT_EQUAL(rdma_resolve_route(active, 1000), 0);
		CU_ASSERT(cm_expect(channel, RDMA_CM_EVENT_ROUTE_RESOLVED, NULL));
		CU_ASSERT_EQUAL(rdma_connect(active, &param), 0);
		CU_ASSERT_FATAL(cm_expect(channel, RDMA_CM_EVENT_CONNECT_REQUEST, &seen));
		CU_ASSERT_EQUAL(rdma_get_peer_addr(seen.event.id)->sa_family, AF_INET6);
		CU_ASSERT(!memcmp(rdma_get_local_addr(seen.event.id), &addr, sizeof(addr)));
		CU_ASSERT_EQUAL(rdma_destroy_id(seen.event.id), 0);
	}
	CU_ASSERT_EQUAL(rdma_destroy_id(active), 0);
	CU_ASSERT_EQUAL(rdma_destroy_id(listener), 0);
	rdma_destroy_event_channel(channel);
}

/* ---- the rest of an identifier ---- */

static void options(void)
{
	struct rdma_event_channel *channel = rdma_create_event_channel();
	struct rdma_cm_id *id = cm_new(channel);
	uint8_t byte = 18;
	int on = 1;

	CU_ASSERT_EQUAL(rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_TOS, &byte, 1), 0);
	CU_ASSERT_EQUAL(rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_TOS, &on, sizeof(on)),
			-1);
	CU_ASSERT_EQUAL(errno, EINVAL);
	CU_ASSERT_EQUAL(rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_ACK_TIMEOUT, &byte, 1),
			0);
	CU_ASSERT_EQUAL(rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_AFONLY, &on, sizeof(on)),
			0);
	CU_ASSERT_EQUAL(rdma_set_option(id, RDMA_OPTION_ID, 77, &on, sizeof(on)), -1);
	CU_ASSERT_EQUAL(errno, ENOSYS);
	CU_ASSERT_EQUAL(rdma_set_option(id, 5, 0, &on, sizeof(on)), -1);
	CU_ASSERT_EQUAL(rdma_destroy_id(id), 0);
	CU_ASSERT_EQUAL(rdma_create_id(channel, &id, NULL, RDMA_PS_IPOIB), -1);
	CU_ASSERT_EQUAL(errno, EINVAL);
	rdma_destroy_event_channel(channel);
}

static void devices(void)
{
	int count = 0;
	struct ibv_context **list = rdma_get_devices(&count);

	CU_ASSERT_PTR_NOT_NULL_FATAL(list);
	CU_ASSERT_EQUAL(count, 1);
	CU_ASSERT_PTR_NOT_NULL(list[0]);
	CU_ASSERT_PTR_NULL(list[1]);
	rdma_free_devices(list);
}

static struct ibv_qp_init_attr qp_wish(void)
{
	return (struct ibv_qp_init_attr){
		.qp_type = IBV_QPT_RC,
		.sq_sig_all = 1,
		.cap = { .max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1 }
	};
}

static enum ibv_qp_state state_of(struct ibv_qp *qp, struct ibv_qp_attr *attr)
{
	struct ibv_qp_init_attr init;

	memset(attr, 0, sizeof(*attr));
	CU_ASSERT_EQUAL(ibv_query_qp(qp, attr, IBV_QP_STATE | IBV_QP_ACCESS_FLAGS | IBV_QP_DEST_QPN,
				     &init),
			0);
	return attr->qp_state;
}

static void queue_pair_follows_the_connection(void)
{
	struct ibv_qp_init_attr near_wish = qp_wish(), far_wish = qp_wish();
	struct ibv_qp_attr attr;
	struct pair pair;
	struct seen seen;

	CU_ASSERT_FATAL(pair_listen(&pair));
	CU_ASSERT_EQUAL(rdma_create_qp(pair.listener, NULL, &far_wish), 0);
	rdma_destroy_qp(pair.listener);
	CU_ASSERT_EQUAL_FATAL(rdma_create_qp(pair.active, NULL, &near_wish), 0);
	CU_ASSERT(near_wish.cap.max_send_wr >= 4);
	CU_ASSERT_PTR_NOT_NULL(pair.active->send_cq);
	CU_ASSERT_PTR_NOT_NULL(pair.active->recv_cq_channel);
	CU_ASSERT_EQUAL(rdma_create_qp(pair.active, NULL, &near_wish), -1);
	CU_ASSERT_EQUAL(errno, EINVAL);
	CU_ASSERT_EQUAL(state_of(pair.active->qp, &attr), IBV_QPS_INIT);
	CU_ASSERT_EQUAL(attr.qp_access_flags, 0);
	CU_ASSERT_EQUAL(rdma_connect(pair.active, NULL), 0);
	CU_ASSERT_FATAL(cm_expect(pair.far, RDMA_CM_EVENT_CONNECT_REQUEST, &seen));
	pair.passive = seen.event.id;
	CU_ASSERT_EQUAL(seen.event.param.conn.qp_num, pair.active->qp->qp_num);
	CU_ASSERT_EQUAL_FATAL(rdma_create_qp(pair.passive, NULL, &far_wish), 0);
	CU_ASSERT_EQUAL(rdma_accept(pair.passive, NULL), 0);
	CU_ASSERT_EQUAL(state_of(pair.passive->qp, &attr), IBV_QPS_RTS);
	CU_ASSERT_EQUAL(attr.dest_qp_num, pair.active->qp->qp_num);
	CU_ASSERT_EQUAL(attr.qp_access_flags, 0xe);
	CU_ASSERT_FATAL(cm_ready(pair.near, UNIT_PATIENCE));
	CU_ASSERT_EQUAL(state_of(pair.active->qp, &attr), IBV_QPS_INIT);
	CU_ASSERT_EQUAL(rdma_establish(pair.active), -1);
	CU_ASSERT(cm_expect(pair.near, RDMA_CM_EVENT_ESTABLISHED, &seen));
	CU_ASSERT_EQUAL(seen.event.param.conn.private_data_len, 196);
	CU_ASSERT_EQUAL(state_of(pair.active->qp, &attr), IBV_QPS_RTS);
	CU_ASSERT(cm_expect(pair.far, RDMA_CM_EVENT_ESTABLISHED, NULL));
	CU_ASSERT_EQUAL(rdma_disconnect(pair.active), 0);
	CU_ASSERT_EQUAL(state_of(pair.active->qp, &attr), IBV_QPS_ERR);
	CU_ASSERT(cm_expect(pair.far, RDMA_CM_EVENT_DISCONNECTED, NULL));
	CU_ASSERT_EQUAL(state_of(pair.passive->qp, &attr), IBV_QPS_RTS);
	CU_ASSERT_EQUAL(rdma_disconnect(pair.passive), 0);
	CU_ASSERT_EQUAL(state_of(pair.passive->qp, &attr), IBV_QPS_ERR);
	rdma_destroy_qp(pair.active);
	rdma_destroy_qp(pair.passive);
	CU_ASSERT_PTR_NULL(pair.active->send_cq);
	pair_free(&pair);
}

static void rejection_puts_the_queue_pair_in_error(void)
{
	struct ibv_qp_init_attr wish = qp_wish();
	struct rdma_conn_param param = cm_param(0);
	struct ibv_qp_attr attr;
	struct pair pair;
	struct seen seen;

	CU_ASSERT_FATAL(pair_listen(&pair));
	CU_ASSERT_EQUAL_FATAL(rdma_create_qp(pair.active, NULL, &wish), 0);
	CU_ASSERT_EQUAL(rdma_connect(pair.active, &param), 0);
	CU_ASSERT_FATAL(cm_expect(pair.far, RDMA_CM_EVENT_CONNECT_REQUEST, &seen));
	pair.passive = seen.event.id;
	wish = qp_wish();
	CU_ASSERT_EQUAL_FATAL(rdma_create_qp(pair.passive, NULL, &wish), 0);
	param.private_data = &param;
	param.private_data_len = 200;
	CU_ASSERT_EQUAL(rdma_accept(pair.passive, &param), -1);
	CU_ASSERT_EQUAL(state_of(pair.passive->qp, &attr), IBV_QPS_ERR);
	CU_ASSERT(cm_expect(pair.near, RDMA_CM_EVENT_REJECTED, &seen));
	CU_ASSERT_EQUAL(seen.event.status, 28);
	CU_ASSERT_EQUAL(state_of(pair.active->qp, &attr), IBV_QPS_ERR);
	rdma_destroy_qp(pair.active);
	rdma_destroy_qp(pair.passive);
	pair_free(&pair);
}

static void calls_without_a_channel_wait(void)
{
	struct sockaddr_in addr;
	struct rdma_conn_param param = cm_param(1);
	struct rdma_cm_id *id;
	struct pair pair;
	struct seen seen;

	CU_ASSERT_FATAL(pair_listen(&pair));
	addr = cm_loopback(ntohs(rdma_get_src_port(pair.listener)));
	CU_ASSERT_EQUAL_FATAL(rdma_create_id(NULL, &id, NULL, RDMA_PS_TCP), 0);
	CU_ASSERT_EQUAL(rdma_resolve_addr(id, NULL, (struct sockaddr *)&addr, 1000), 0);
	CU_ASSERT_EQUAL(id->event->event, RDMA_CM_EVENT_ADDR_RESOLVED);
	CU_ASSERT_EQUAL(rdma_resolve_route(id, 1000), 0);
	CU_ASSERT_EQUAL(rdma_migrate_id(id, pair.near), 0);
	CU_ASSERT_PTR_NULL(id->event);
	CU_ASSERT_EQUAL(rdma_connect(id, &param), 0);
	CU_ASSERT_FATAL(cm_expect(pair.far, RDMA_CM_EVENT_CONNECT_REQUEST, &seen));
	pair.passive = seen.event.id;
	CU_ASSERT_EQUAL(rdma_accept(pair.passive, &param), 0);
	CU_ASSERT_EQUAL(rdma_migrate_id(id, NULL), 0); /* then back to a channel of its own */
	CU_ASSERT_PTR_NOT_EQUAL(id->channel, pair.near);
	CU_ASSERT_EQUAL(rdma_destroy_id(id), 0);
	CU_ASSERT_EQUAL(rdma_destroy_id(pair.listener), 0);
	pair.listener = NULL;
	CU_ASSERT_EQUAL_FATAL(rdma_create_id(NULL, &id, NULL, RDMA_PS_TCP), 0);
	CU_ASSERT_EQUAL(rdma_resolve_addr(id, NULL, (struct sockaddr *)&addr, 1000), 0);
	CU_ASSERT_EQUAL(rdma_resolve_route(id, 1000), 0);
	CU_ASSERT_EQUAL(rdma_connect(id, &param), -1);
	CU_ASSERT_EQUAL(errno, ECONNREFUSED);
	CU_ASSERT_EQUAL(rdma_destroy_id(id), 0);
	pair_free(&pair);
}

static const struct unit_test tests[] = {
	{ "a claimed port is refused to others", ports_are_claimed },
	{ "a port is free when destroy returns", port_is_free_when_destroy_returns },
	{ "ephemeral ports differ", ephemeral_ports_differ },
	{ "ephemeral ports leave no descriptors", ephemeral_ports_leave_nothing },
	{ "an address may be shared until one listens", address_may_be_shared_until_one_listens },
	{ "an identifier can listen without a bind", listens_without_a_bind },
	{ "an address of no host is reported", absent_hosts },
	{ "IPv6", internet_protocol_six },
	{ "options", options },
	{ "devices", devices },
	{ "a queue pair follows the connection", queue_pair_follows_the_connection },
	{ "a rejection puts the queue pair in error", rejection_puts_the_queue_pair_in_error },
	{ "calls without a channel wait", calls_without_a_channel_wait },
};

UNIT_MAIN("softverbs_cm_id", tests)
