/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* The socket CM's active side, against servers of all versions, broken servers, and none. */
#include "test/unit/scm_rig.h"

static unsigned char pattern[CM_DATA_OLD];

/* The CM's connection attempt, and the script's socket. */
struct attempt {
	struct rig rig;
	struct rdma_cm_id *id;
	int listener, fd;
	uint16_t port;
};

static void resolve(struct rig *rig, struct rdma_cm_id **id, enum rdma_port_space space,
		    uint16_t port)
{
	struct sockaddr_in to = { .sin_family = AF_INET,
				  .sin_port = htons(port),
				  .sin_addr = { htonl(INADDR_LOOPBACK) } };

	CU_ASSERT_EQUAL_FATAL(rdma_create_id(rig->channel, id, NULL, space), 0);
	CU_ASSERT_EQUAL(rdma_resolve_addr(*id, NULL, (struct sockaddr *)&to, 1000), 0);
	rig_expect(rig, RDMA_CM_EVENT_ADDR_RESOLVED, NULL);
	CU_ASSERT_EQUAL(rdma_resolve_route(*id, 1000), 0);
	rig_expect(rig, RDMA_CM_EVENT_ROUTE_RESOLVED, NULL);
}

static int request(struct rdma_cm_id *id, uint8_t size)
{
	struct rdma_conn_param param = { .private_data = pattern,
					 .private_data_len = size,
					 .responder_resources = 6,
					 .initiator_depth = 9,
					 .retry_count = 5,
					 .rnr_retry_count = 4,
					 .qp_num = 0x4711 };

	return rdma_connect(id, &param);
}

/* Accepts a socket while the rig handles CM events. */
static int wire_accept(struct rig *rig, int listener)
{
	struct pollfd poll_fd = { .fd = listener, .events = POLLIN };
	uint64_t deadline = clock_now() + UNIT_PATIENCE * NSEC_PER_MSEC;
	struct seen seen;

	while (!poll(&poll_fd, 1, 10) && clock_now() < deadline)
		if (rig_poll(rig, &seen))
			CU_FAIL("an event before the connection");
	return poll(&poll_fd, 1, 0) == 1 ? accept4(listener, NULL, NULL, SOCK_CLOEXEC) : -1;
}

static void attempt_open(struct attempt *attempt, enum rdma_port_space space, uint8_t size)
{
	rig_open(&attempt->rig);
	attempt->listener = wire_listen(&attempt->port);
	resolve(&attempt->rig, &attempt->id, space, attempt->port);
	CU_ASSERT_EQUAL(request(attempt->id, size), 0);
	attempt->fd = wire_accept(&attempt->rig, attempt->listener);
	CU_ASSERT_TRUE_FATAL(attempt->fd >= 0);
}

static void attempt_close(struct attempt *attempt)
{
	if (attempt->fd >= 0)
		close(attempt->fd);
	close(attempt->listener);
	CU_ASSERT_EQUAL(rdma_destroy_id(attempt->id), 0);
	rig_close(&attempt->rig);
}

/* Exactly one request of this form arrives. */
static void request_comes(struct attempt *attempt, size_t header, uint8_t size, unsigned qp_type)
{
	unsigned char bytes[CM_MESSAGE_MAX + 1];
	struct sockaddr_in peer;
	socklen_t peer_size = sizeof(peer);

	CU_ASSERT_EQUAL(wire_read(&attempt->rig, attempt->fd, bytes, header + size), header + size);
	CU_ASSERT_EQUAL(recv(attempt->fd, bytes + header + size, 1, MSG_DONTWAIT), -1);
	CU_ASSERT_EQUAL(memcmp(bytes, "\0\11\0\1", 4), 0);
	CU_ASSERT_EQUAL(bytes[16] << 8 | bytes[17], size);
	CU_ASSERT_EQUAL(bytes[28], 6);
	CU_ASSERT_EQUAL(bytes[32], IBV_MTU_4096);
	CU_ASSERT_EQUAL(bytes[36 + 6] << 8 | bytes[36 + 7], 0x4711);
	CU_ASSERT_EQUAL(bytes[36 + 27], qp_type);
	CU_ASSERT_EQUAL(getpeername(attempt->fd, (struct sockaddr *)&peer, &peer_size), 0);
	CU_ASSERT_EQUAL(memcmp(bytes + 64, &peer, 8), 0);
	CU_ASSERT_EQUAL(memcmp(bytes + header, pattern, size), 0);
}

static void answer(struct attempt *attempt, unsigned ver, unsigned op, size_t size, size_t chunk)
{
	unsigned char bytes[512];
	size_t length = wire_message(bytes, ver, op, ver < 8 ? CM_HEADER_OLD : CM_HEADER, pattern,
				     size, IBV_QPT_RC),
	       at;
	struct seen seen;

	for (at = 0; at < length; at += chunk) {
		wire_send(attempt->fd, bytes + at, length - at < chunk ? length - at : chunk);
		if (at + chunk < length)
			CU_ASSERT_FALSE(rig_poll(&attempt->rig, &seen));
	}
}

/* The QP has the attributes that both sides agreed on. */
static void attributes(struct attempt *attempt, unsigned ver)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_RTR };
	int mask;

	CU_ASSERT_EQUAL(rdma_init_qp_attr(attempt->id, &attr, &mask), 0);
	CU_ASSERT_EQUAL(attr.dest_qp_num, 0x1234);
	CU_ASSERT_EQUAL(attr.rq_psn, 1);
	CU_ASSERT_EQUAL(attr.path_mtu, ver < 9 ? IBV_MTU_2048 : IBV_MTU_1024);
	CU_ASSERT_EQUAL(attr.max_dest_rd_atomic, 6);
	CU_ASSERT_EQUAL(attr.min_rnr_timer, 12);
	CU_ASSERT_EQUAL(attr.ah_attr.dlid, 7);
	CU_ASSERT_EQUAL(attr.ah_attr.grh.dgid.raw[0], 0xfe);
	attr = (struct ibv_qp_attr){ .qp_state = IBV_QPS_RTS };
	CU_ASSERT_EQUAL(rdma_init_qp_attr(attempt->id, &attr, &mask), 0);
	CU_ASSERT_EQUAL(attr.sq_psn, 1);
	CU_ASSERT_TRUE(attr.timeout >= 20);
	CU_ASSERT_EQUAL(attr.retry_cnt, 5);
	CU_ASSERT_EQUAL(attr.rnr_retry, 4);
	CU_ASSERT_EQUAL(attr.max_rd_atomic, ver < 7 ? 9 : 3);
	attr = (struct ibv_qp_attr){ .qp_state = IBV_QPS_SQD };
	CU_ASSERT_NOT_EQUAL(rdma_init_qp_attr(attempt->id, &attr, &mask), 0);
	CU_ASSERT_EQUAL(errno, EINVAL);
}

static void established(struct attempt *attempt)
{
	unsigned char bytes[5];

	CU_ASSERT_EQUAL(rdma_establish(attempt->id), 0);
	CU_ASSERT_EQUAL(wire_read(&attempt->rig, attempt->fd, bytes, 4), 4);
	CU_ASSERT_EQUAL(memcmp(bytes, "\0\11\0\5", 4), 0);
	CU_ASSERT_NOT_EQUAL(rdma_establish(attempt->id), 0);
	wire_send(attempt->fd, "\0\0\xde\xad", 4);
	rig_expect(&attempt->rig, RDMA_CM_EVENT_DISCONNECTED, NULL);
	CU_ASSERT_EQUAL(wire_read(&attempt->rig, attempt->fd, bytes, 5), 4);
	CU_ASSERT_EQUAL(memcmp(bytes, "\0\0\xde\xad", 4), 0);
}

static void connects(unsigned ver, uint8_t sent, size_t size, size_t chunk)
{
	struct attempt attempt;
	struct seen seen;

	attempt_open(&attempt, RDMA_PS_TCP, sent);
	request_comes(&attempt, CM_HEADER, sent, IBV_QPT_RC);
	answer(&attempt, ver, CM_REP, size, chunk);
	rig_expect(&attempt.rig, RDMA_CM_EVENT_CONNECT_RESPONSE, &seen);
	CU_ASSERT_EQUAL(seen.size, size);
	CU_ASSERT_EQUAL(memcmp(seen.data, pattern, size), 0);
	CU_ASSERT_EQUAL(seen.event.param.conn.initiator_depth, ver < 7 ? CM_DEPTH_UNKNOWN : 3);
	attributes(&attempt, ver);
	established(&attempt);
	attempt_close(&attempt);
}

static void test_versions(void)
{
	static const uint8_t sizes[] = { 0, 1, 47, 68 };
	size_t i;

	for (i = 0; i < sizeof(sizes); i++) {
		connects(9, sizes[i], sizes[i], 512);
		connects(8, sizes[i], sizes[i], 512);
		connects(7, sizes[i], 118 - sizes[i], 512);
		connects(6, sizes[i], 118, 512);
	}
	connects(9, 48, 68, 1);
	connects(7, 48, 118, 1);
	connects(9, 48, 68, 148);
}

/* After a server closes on the new form, the CM sends the old form once. */
static void test_old_server(void)
{
	struct attempt attempt;
	struct seen seen;

	attempt_open(&attempt, RDMA_PS_TCP, 48);
	request_comes(&attempt, CM_HEADER, 48, IBV_QPT_RC);
	close(attempt.fd);
	attempt.fd = wire_accept(&attempt.rig, attempt.listener);
	request_comes(&attempt, CM_HEADER_OLD, 48, IBV_QPT_RC);
	answer(&attempt, 7, CM_REP, 118, 512);
	rig_expect(&attempt.rig, RDMA_CM_EVENT_CONNECT_RESPONSE, &seen);
	CU_ASSERT_EQUAL(seen.size, 118);
	established(&attempt);
	attempt_close(&attempt);

	/* a server that closes in the middle of its answer */
	attempt_open(&attempt, RDMA_PS_TCP, 0);
	request_comes(&attempt, CM_HEADER, 0, IBV_QPT_RC);
	wire_send(attempt.fd, "\0\7\0\2", 4);
	close(attempt.fd);
	attempt.fd = wire_accept(&attempt.rig, attempt.listener);
	request_comes(&attempt, CM_HEADER_OLD, 0, IBV_QPT_RC);
	close(attempt.fd);
	attempt.fd = -1;
	rig_expect(&attempt.rig, RDMA_CM_EVENT_REJECTED, &seen);
	CU_ASSERT_EQUAL(seen.event.status, CM_REJECTED_BY_CM);
	CU_ASSERT_EQUAL(seen.size, 0);
	attempt_close(&attempt);
}

static void refused(unsigned ver, unsigned op, size_t size, int status, size_t shown)
{
	struct attempt attempt;
	struct seen seen;

	attempt_open(&attempt, RDMA_PS_TCP, 8);
	request_comes(&attempt, CM_HEADER, 8, IBV_QPT_RC);
	answer(&attempt, ver, op, size, 512);
	rig_expect(&attempt.rig, RDMA_CM_EVENT_REJECTED, &seen);
	CU_ASSERT_EQUAL(seen.event.status, status);
	CU_ASSERT_EQUAL(seen.size, shown);
	CU_ASSERT_EQUAL(memcmp(seen.data, pattern, shown), 0);
	CU_ASSERT_NOT_EQUAL(rdma_establish(attempt.id), 0);
	attempt_close(&attempt);
}

static void test_refused(void)
{
	refused(9, CM_REJ_USER, 0, CM_REJECTED_BY_APP, 0);
	refused(9, CM_REJ_USER, 10, CM_REJECTED_BY_APP, 10);
	refused(9, CM_REJ_USER, 68, CM_REJECTED_BY_APP, 68);
	refused(7, CM_REJ_USER, 118, CM_REJECTED_BY_APP, 118);
	refused(9, CM_REJ_CM, 10, CM_REJECTED_BY_CM, 0);
	/* malformed answers */
	refused(5, CM_REP, 0, CM_REJECTED_BY_CM, 0);
	refused(9, CM_REQ, 0, CM_REJECTED_BY_CM, 0);
	refused(9, CM_RTU, 0, CM_REJECTED_BY_CM, 0);
	refused(9, CM_REP, 69, CM_REJECTED_BY_CM, 0);
}

static void test_no_listener(void)
{
	struct seen seen;
	struct rdma_cm_id *id;
	struct rig rig;
	uint16_t port;
	int listener = wire_listen(&port);

	close(listener);
	rig_open(&rig);
	resolve(&rig, &id, RDMA_PS_TCP, port);
	CU_ASSERT_EQUAL(request(id, CM_DATA), 0);
	rig_expect(&rig, RDMA_CM_EVENT_REJECTED, &seen);
	CU_ASSERT_EQUAL(seen.event.status, CM_REJECTED_BY_CM);
	CU_ASSERT_EQUAL(rdma_destroy_id(id), 0);
	rig_close(&rig);
}

/* As the kernel does with connections that a closed listener had not accepted. */
static void wire_reset(int listener)
{
	struct linger at_once = { .l_onoff = 1 };
	int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);

	CU_ASSERT_TRUE_FATAL(fd >= 0);
	CU_ASSERT_EQUAL(setsockopt(fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once)), 0);
	close(fd);
}

/* The connection is reset before the CM has seen it: the CM connects to the next listener, if there is one. */
static void test_listener_closes(void)
{
	struct rdma_cm_id *id;
	struct seen seen;
	struct rig rig;
	uint16_t port;
	int listener = wire_listen(&port), again;

	rig_open(&rig);
	resolve(&rig, &id, RDMA_PS_TCP, port);
	CU_ASSERT_EQUAL(request(id, CM_DATA), 0);
	wire_reset(listener);
	again = wire_accept(&rig, listener);
	CU_ASSERT_TRUE_FATAL(again >= 0);
	CU_ASSERT_EQUAL(rdma_destroy_id(id), 0);
	close(again);

	resolve(&rig, &id, RDMA_PS_TCP, port);
	CU_ASSERT_EQUAL(request(id, CM_DATA), 0);
	wire_reset(listener);
	close(listener);
	rig_expect(&rig, RDMA_CM_EVENT_REJECTED, &seen);
	CU_ASSERT_EQUAL(seen.event.status, CM_REJECTED_BY_CM);
	CU_ASSERT_EQUAL(rdma_destroy_id(id), 0);
	rig_close(&rig);
}

static void test_arguments(void)
{
	struct sockaddr_in6 v6 = { .sin6_family = AF_INET6 };
	struct rdma_cm_id *id;
	uint8_t tos = 8;
	struct rig rig;

	rig_open(&rig);
	CU_ASSERT_NOT_EQUAL(rdma_create_id(rig.channel, &id, NULL, RDMA_PS_IB), 0);
	CU_ASSERT_EQUAL(errno, EPROTONOSUPPORT);
	CU_ASSERT_EQUAL_FATAL(rdma_create_id(rig.channel, &id, NULL, RDMA_PS_TCP), 0);
	CU_ASSERT_NOT_EQUAL(rdma_resolve_addr(id, NULL, (struct sockaddr *)&v6, 1), 0);
	CU_ASSERT_EQUAL(errno, EAFNOSUPPORT);
	CU_ASSERT_NOT_EQUAL(rdma_resolve_route(id, 1), 0);
	CU_ASSERT_NOT_EQUAL(request(id, 0), 0);
	CU_ASSERT_NOT_EQUAL(rdma_listen(id, 0), 0);
	CU_ASSERT_NOT_EQUAL(rdma_disconnect(id), 0);
	CU_ASSERT_NOT_EQUAL(rdma_establish(id), 0);
	CU_ASSERT_NOT_EQUAL(rdma_reject(id, NULL, 0), 0);
	CU_ASSERT_NOT_EQUAL(rdma_accept(id, &(struct rdma_conn_param){ .qp_num = 1 }), 0);
	CU_ASSERT_EQUAL(errno, EINVAL);
	CU_ASSERT_EQUAL(rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_TOS, &tos, 1), 0);
	CU_ASSERT_NOT_EQUAL(rdma_set_option(id, RDMA_OPTION_IB, 1, &tos, 1), 0);
	CU_ASSERT_EQUAL(rdma_destroy_id(id), 0);
	resolve(&rig, &id, RDMA_PS_TCP, 1);
	CU_ASSERT_NOT_EQUAL(request(id, CM_DATA + 1), 0);
	CU_ASSERT_EQUAL(errno, EINVAL);
	CU_ASSERT_EQUAL(rdma_destroy_id(id), 0);
	rig_close(&rig);
}

/* Datagrams: the attempt ends with the answer and an RTU. */
static void test_datagrams(void)
{
	unsigned char bytes[512];
	struct attempt attempt;
	struct seen seen;

	attempt_open(&attempt, RDMA_PS_UDP, 20);
	request_comes(&attempt, CM_HEADER, 20, IBV_QPT_UD);
	wire_send(attempt.fd, bytes,
		  wire_message(bytes, 9, CM_REP, CM_HEADER, pattern, 33, IBV_QPT_UD));
	rig_expect(&attempt.rig, RDMA_CM_EVENT_ESTABLISHED, &seen);
	CU_ASSERT_EQUAL(seen.size, 33);
	CU_ASSERT_EQUAL(seen.event.param.ud.qp_num, 0x1234);
	CU_ASSERT_EQUAL(seen.event.param.ud.qkey, CM_UD_QKEY);
	CU_ASSERT_EQUAL(seen.event.param.ud.ah_attr.port_num, 1);
	CU_ASSERT_EQUAL(wire_read(&attempt.rig, attempt.fd, bytes, 5), 4);
	CU_ASSERT_EQUAL(memcmp(bytes, "\0\11\0\5", 4), 0);
	attempt_close(&attempt);

	/* an RC QP answers */
	attempt_open(&attempt, RDMA_PS_UDP, 20);
	request_comes(&attempt, CM_HEADER, 20, IBV_QPT_UD);
	answer(&attempt, 9, CM_REP, 0, 512);
	rig_expect(&attempt.rig, RDMA_CM_EVENT_REJECTED, &seen);
	CU_ASSERT_EQUAL(seen.event.status, CM_REJECTED_BY_CM);
	attempt_close(&attempt);
}

/* The peer is killed between its answer and the RTU; the first use of the connection finds that. */
static void test_dies_answered(void)
{
	struct attempt attempt;
	struct seen seen;
	unsigned i;

	attempt_open(&attempt, RDMA_PS_TCP, 0);
	request_comes(&attempt, CM_HEADER, 0, IBV_QPT_RC);
	answer(&attempt, 9, CM_REP, 0, 512);
	rig_expect(&attempt.rig, RDMA_CM_EVENT_CONNECT_RESPONSE, &seen);
	close(attempt.fd);
	attempt.fd = -1;
	/* the attempt does not keep the channel readable */
	for (i = 0; i < 3; i++)
		CU_ASSERT_FALSE(rig_poll(&attempt.rig, &seen));
	CU_ASSERT_EQUAL(poll(&(struct pollfd){ .fd = attempt.rig.channel->fd, .events = POLLIN }, 1,
			     10),
			0);
	if (!rdma_establish(attempt.id))
		rig_expect(&attempt.rig, RDMA_CM_EVENT_DISCONNECTED, NULL);
	attempt_close(&attempt);
}

/* The attempt is destroyed in each step: the peer's socket is closed. */
static void test_given_up(void)
{
	struct attempt attempt;
	struct seen seen;
	int step;

	for (step = 0; step < 2; step++) {
		attempt_open(&attempt, RDMA_PS_TCP, 5);
		request_comes(&attempt, CM_HEADER, 5, IBV_QPT_RC);
		if (step) {
			answer(&attempt, 9, CM_REP, 0, 512);
			rig_expect(&attempt.rig, RDMA_CM_EVENT_CONNECT_RESPONSE, &seen);
			CU_ASSERT_EQUAL(rdma_reject(attempt.id, NULL, 0), 0);
		}
		CU_ASSERT_EQUAL(rdma_destroy_id(attempt.id), 0);
		CU_ASSERT_TRUE(wire_ends(&attempt.rig, attempt.fd));
		resolve(&attempt.rig, &attempt.id, RDMA_PS_TCP, attempt.port);
		attempt_close(&attempt);
	}
}

static void test_iwarp(void)
{
	struct sockaddr_in own = { .sin_family = AF_INET, .sin_addr = { htonl(INADDR_LOOPBACK) } };
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct rdma_event_channel *channel = rdma_create_event_channel();

	list[0]->transport_type = IBV_TRANSPORT_IWARP;
	CU_ASSERT_EQUAL(cm_attach(channel, "soft0", 1, (struct sockaddr *)&own), ENXIO);
	list[0]->transport_type = IBV_TRANSPORT_IB;
	rdma_destroy_event_channel(channel);
	ibv_free_device_list(list);
}

static const struct unit_test tests[] = {
	{ "active: a connection to servers of each version, with private data of each size",
	  test_versions },
	{ "active: a server that closes gets the old form once", test_old_server },
	{ "active: rejections and malformed replies end the attempt", test_refused },
	{ "active: a port without a listener is reported at once", test_no_listener },
	{ "active: a listener that closes is tried again, and reported at once",
	  test_listener_closes },
	{ "active: calls in a wrong state are refused", test_arguments },
	{ "active: datagrams", test_datagrams },
	{ "active: a peer that dies between its reply and the RTU is reported",
	  test_dies_answered },
	{ "active: an attempt that is destroyed closes its socket", test_given_up },
	{ "a device of iWARP is refused", test_iwarp },
};

int main(int argc, char **argv)
{
	size_t i;

	for (i = 0; i < sizeof(pattern); i++)
		pattern[i] = (unsigned char)(i + 3);
	return unit_main("scm_active", tests, sizeof(tests) / sizeof(tests[0]), argc, argv);
}
