/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* dat_ep_connect: the order of its checks, and the outcome of an attempt. */
#include <arpa/inet.h>
#include <string.h>
#include "test/unit/two_ends.h"
#include "util/clock.h"

/* The arguments of a call, of which the test makes some wrong. */
struct call {
	DAT_EP_HANDLE ep;
	DAT_IA_ADDRESS_PTR address;
	DAT_CONN_QUAL qual;
	DAT_TIMEOUT timeout;
	DAT_COUNT size;
	DAT_PVOID data;
	DAT_QOS qos;
	DAT_CONNECT_FLAGS flags;
};

static struct call good_call(void)
{
	return (struct call){ .ep = a.ep,
			      .address = env.address,
			      .qual = env.qual,
			      .timeout = DAT_TIMEOUT_INFINITE };
}

static DAT_RETURN do_call(const struct call *call)
{
	return dat_ep_connect(call->ep, call->address, call->qual, call->timeout, call->size,
			      call->data, call->qos, call->flags);
}

static void test_arguments(void)
{
	char data[64] = "";
	struct call call;

	setup();
	call = good_call();
	call.address = NULL;
	IS(do_call(&call), E(INVALID_PARAMETER, INVALID_ARG2));
	call = good_call();
	call.ep = b.conn;
	IS(do_call(&call), E(INVALID_HANDLE, INVALID_HANDLE_EP));
	call = good_call();
	call.timeout = 0;
	IS(do_call(&call), E(INVALID_PARAMETER, INVALID_ARG4));
	call.qual = 0; /* the timeout is checked first */
	IS(do_call(&call), E(INVALID_PARAMETER, INVALID_ARG4));
	call.timeout = 1;
	call.size = -1;
	IS(do_call(&call), E(INVALID_PARAMETER, INVALID_ARG3));
	call = good_call();
	call.size = -1;
	IS(do_call(&call), E(INVALID_PARAMETER, INVALID_ARG5));
	call.size = 57;
	call.data = data;
	IS(do_call(&call), E(INVALID_PARAMETER, INVALID_ARG5));
	call.size = 56;
	call.data = NULL;
	IS(do_call(&call), E(INVALID_PARAMETER, INVALID_ARG6));
	call.qos = DAT_QOS_PREMIUM;
	IS(do_call(&call), E(INVALID_PARAMETER, INVALID_ARG6));
	call.data = data;
	IS(do_call(&call), E0(MODEL_NOT_SUPPORTED));
	call.qos = DAT_QOS_BEST_EFFORT;
	call.flags = DAT_CONNECT_MULTIPATH_FLAG;
	IS(do_call(&call), E0(MODEL_NOT_SUPPORTED));
	CU_ASSERT_EQUAL(state_of(a.ep), DAT_EP_STATE_UNCONNECTED);
	teardown();
}

static void test_addresses(void)
{
	struct sockaddr_in6 v6 = { .sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT };
	struct sockaddr_in v4;
	struct call call;

	setup();
	call = good_call();
	memcpy(&v4, env.address, sizeof(v4));
	call.address = (DAT_IA_ADDRESS_PTR)&v4;
	v4.sin_family = AF_UNIX;
	IS(do_call(&call), E(INVALID_ADDRESS, INVALID_ADDRESS_UNSUPPORTED));
	v4.sin_family = AF_INET;
	v4.sin_addr.s_addr = htonl(INADDR_BROADCAST);
	IS(do_call(&call), E(INVALID_ADDRESS, INVALID_ADDRESS_UNSUPPORTED));
	v4.sin_addr.s_addr = inet_addr("224.0.0.1");
	IS(do_call(&call), E(INVALID_ADDRESS, INVALID_ADDRESS_UNSUPPORTED));
	call.address = (DAT_IA_ADDRESS_PTR)&v6;
	IS(do_call(&call), E(INVALID_ADDRESS, INVALID_ADDRESS_UNREACHABLE));
	CU_ASSERT_EQUAL(state_of(a.ep), DAT_EP_STATE_UNCONNECTED);
	teardown();
}

/* A port in the address is ignored; an address without a family is IPv4. */
static void test_old_consumers(void)
{
	struct sockaddr_in v4;
	struct call call;

	setup();
	memcpy(&v4, env.address, sizeof(v4));
	v4.sin_family = AF_UNSPEC;
	v4.sin_port = htons(9);
	call = good_call();
	call.address = (DAT_IA_ADDRESS_PTR)&v4;
	CU_ASSERT_EQUAL(do_call(&call), DAT_SUCCESS);
	OK(dat_cr_accept(request_next(&env), b.ep, 0, NULL));
	expect(a.conn, DAT_CONNECTION_EVENT_ESTABLISHED, a.ep);
	expect(b.conn, DAT_CONNECTION_EVENT_ESTABLISHED, b.ep);
	disconnect_pair(&a, &b);
	teardown();
}

static void test_not_ready(void)
{
	DAT_EP_HANDLE bare, deaf;

	setup();
	OK(dat_ep_create(env.ia, DAT_HANDLE_NULL, a.recv, a.request, a.conn, NULL, &bare));
	OK(dat_ep_create(env.ia, env.pz, a.recv, a.request, DAT_HANDLE_NULL, NULL, &deaf));
	IS(dat_ep_connect(bare, env.address, env.qual, 1, 0, NULL, 0, 0),
	   E(INVALID_STATE, INVALID_STATE_EP_NOTREADY));
	IS(dat_ep_connect(deaf, env.address, env.qual, 0, 0, NULL, 0, 0),
	   E(INVALID_HANDLE, INVALID_HANDLE_EVD_CONN));
	OK(dat_ep_free(bare));
	OK(dat_ep_free(deaf));
	teardown();
}

/* C14: private data of both directions arrives, padded by the CM or exact. */
static void test_private_data(void)
{
	char asked[56], answered[196];
	DAT_CR_PARAM param;
	DAT_CR_HANDLE cr;
	DAT_EVENT event;

	setup();
	memset(asked, 'q', sizeof(asked));
	memset(answered, 'r', sizeof(answered));
	OK(dat_ep_connect(a.ep, env.address, env.qual, DAT_TIMEOUT_INFINITE, sizeof(asked), asked,
			  0, 0));
	cr = request_next(&env);
	OK(dat_cr_query(cr, DAT_CR_FIELD_ALL, &param));
	CU_ASSERT_TRUE_FATAL(param.private_data_size >= (DAT_COUNT)sizeof(asked));
	CU_ASSERT_EQUAL(memcmp(param.private_data, asked, sizeof(asked)), 0);
	OK(dat_cr_accept(cr, b.ep, sizeof(answered), answered));
	if (event_next(a.conn, &event)) {
		DAT_CONNECTION_EVENT_DATA *data = &event.event_data.connect_event_data;

		CU_ASSERT_EQUAL(event.event_number, DAT_CONNECTION_EVENT_ESTABLISHED);
		CU_ASSERT_TRUE_FATAL(data->private_data_size >= (DAT_COUNT)sizeof(answered));
		CU_ASSERT_EQUAL(memcmp(data->private_data, answered, sizeof(answered)), 0);
	}
	if (event_next(b.conn, &event)) {
		CU_ASSERT_EQUAL(event.event_data.connect_event_data.private_data_size, 0);
		CU_ASSERT_PTR_NULL(event.event_data.connect_event_data.private_data);
	}
	disconnect_pair(&b, &a);
	teardown();
}

static void test_established(void)
{
	DAT_EP_PARAM param;

	setup();
	start_connect(&a);
	CU_ASSERT_EQUAL(state_of(a.ep), DAT_EP_STATE_ACTIVE_CONNECTION_PENDING);
	IS(try_connect(&a, 1), E(INVALID_STATE, INVALID_STATE_EP_ACTCONNPENDING));
	IS(try_send(&a, 1, 0), E(INVALID_STATE, INVALID_STATE_EP_ACTCONNPENDING));
	IS(dat_ep_reset(a.ep), E(INVALID_STATE, INVALID_STATE_EP_ACTCONNPENDING));
	OK(dat_cr_accept(request_next(&env), b.ep, 0, NULL));
	expect(a.conn, DAT_CONNECTION_EVENT_ESTABLISHED, a.ep);
	CU_ASSERT_EQUAL(state_of(a.ep), DAT_EP_STATE_CONNECTED);
	expect(b.conn, DAT_CONNECTION_EVENT_ESTABLISHED, b.ep);
	CU_ASSERT_EQUAL(state_of(b.ep), DAT_EP_STATE_CONNECTED);
	IS(try_connect(&a, 1), E(INVALID_STATE, INVALID_STATE_EP_CONNECTED));
	IS(dat_ep_reset(a.ep), E(INVALID_STATE, INVALID_STATE_EP_CONNECTED));

	OK(dat_ep_query(a.ep, DAT_EP_FIELD_ALL, &param));
	CU_ASSERT_EQUAL(param.remote_port_qual, env.qual);
	CU_ASSERT_EQUAL(param.remote_ia_address_ptr->sa_family, AF_INET);
	CU_ASSERT_EQUAL(((struct sockaddr_in *)param.remote_ia_address_ptr)->sin_addr.s_addr,
			((struct sockaddr_in *)env.address)->sin_addr.s_addr);
	OK(dat_ep_query(b.ep, DAT_EP_FIELD_ALL, &param));
	CU_ASSERT_EQUAL(param.local_port_qual, env.qual);
	CU_ASSERT_NOT_EQUAL(param.remote_port_qual, 0);
	disconnect_pair(&a, &b);
	teardown();
}

static void test_messages(void)
{
	unsigned i;

	setup();
	post_recvs(&b, 4);
	connect_pair(&a, &b);
	strcpy(env.memory, "over the wire");
	for (i = 0; i < 4; i++)
		CU_ASSERT_EQUAL(try_send(&a, 10 + i, 0), DAT_SUCCESS);
	for (i = 0; i < 4; i++) {
		expect_dto(b.recv, b.ep, i, DAT_DTO_SUCCESS);
		expect_dto(a.request, a.ep, 10 + i, DAT_DTO_SUCCESS);
	}
	CU_ASSERT_STRING_EQUAL(env.memory + BUFFER / 2, "over the wire");
	disconnect_pair(&a, &b);
	teardown();
}

/* A failed attempt flushes the receives that were posted. */
static void test_no_listener(void)
{
	setup();
	post_recvs(&a, 3);
	OK(dat_psp_free(env.psp));
	env.psp = DAT_HANDLE_NULL;
	CU_ASSERT_EQUAL(try_connect(&a, 10 * PATIENCE), DAT_SUCCESS);
	expect(a.conn, DAT_CONNECTION_EVENT_NON_PEER_REJECTED, a.ep);
	CU_ASSERT_EQUAL(state_of(a.ep), DAT_EP_STATE_DISCONNECTED);
	expect_dto(a.recv, a.ep, 0, DAT_DTO_ERR_FLUSHED);
	expect_dto(a.recv, a.ep, 1, DAT_DTO_ERR_FLUSHED);
	expect_dto(a.recv, a.ep, 2, DAT_DTO_ERR_FLUSHED);
	end_free_ep(&a);
	expect_quiet(a.conn);
	teardown();
}

/* The peer neither accepts nor rejects in time; an accept after the timeout must not connect. */
static void test_timeout(void)
{
	uint64_t began, took;
	DAT_CR_HANDLE cr;

	setup();
	began = clock_now();
	CU_ASSERT_EQUAL(try_connect(&a, 200000), DAT_SUCCESS);
	cr = request_next(&env);
	expect(a.conn, DAT_CONNECTION_EVENT_TIMED_OUT, a.ep);
	took = clock_now() - began;
	CU_ASSERT_TRUE(took >= 200 * NSEC_PER_MSEC);
	CU_ASSERT_TRUE(took < PATIENCE * NSEC_PER_USEC);
	CU_ASSERT_EQUAL(state_of(a.ep), DAT_EP_STATE_DISCONNECTED);
	OK(dat_cr_accept(cr, b.ep, 0, NULL));
	expect(b.conn, DAT_CONNECTION_EVENT_ACCEPT_COMPLETION_ERROR, b.ep);
	CU_ASSERT_EQUAL(state_of(b.ep), DAT_EP_STATE_DISCONNECTED);
	OK(dat_ep_reset(a.ep));
	OK(dat_ep_reset(b.ep));
	expect_quiet(a.conn);
	expect_quiet(b.conn);
	connect_pair(&a, &b);
	disconnect_pair(&b, &a);
	teardown();
}

/* The timer of an attempt that succeeded does not affect the connection. */
static void test_timeout_after(void)
{
	DAT_TIMEOUT timeout = 100000;
	DAT_EVENT event;
	bool came;

	setup();
	/* a busy machine may need more time */
	for (;; timeout *= 4) {
		CU_ASSERT_EQUAL(try_connect(&a, timeout), DAT_SUCCESS);
		OK(dat_cr_accept(request_next(&env), b.ep, 0, NULL));
		came = event_next(a.conn, &event);
		CU_ASSERT_TRUE_FATAL(came);
		if (event.event_number != DAT_CONNECTION_EVENT_TIMED_OUT || timeout >= PATIENCE)
			break;
		expect(b.conn, DAT_CONNECTION_EVENT_ACCEPT_COMPLETION_ERROR, b.ep);
		OK(dat_ep_reset(a.ep));
		OK(dat_ep_reset(b.ep));
	}
	CU_ASSERT_EQUAL(event.event_number, DAT_CONNECTION_EVENT_ESTABLISHED);
	expect(b.conn, DAT_CONNECTION_EVENT_ESTABLISHED, b.ep);
	CU_ASSERT_EQUAL(dat_evd_wait(a.conn, 3 * timeout, 1, &event, &(DAT_COUNT){ 0 }),
			DAT_TIMEOUT_EXPIRED);
	CU_ASSERT_EQUAL(state_of(a.ep), DAT_EP_STATE_CONNECTED);
	disconnect_pair(&a, &b);
	teardown();
}

/* C10: both sides fold a large qualifier into the same port, and report all its bits. */
static void test_large_qualifiers(void)
{
	static const DAT_CONN_QUAL quals[] = { 65536, 0xaffab1e, (1ull << 63) + 5 };
	size_t i;

	setup();
	OK(dat_psp_free(env.psp));
	for (i = 0; i < COUNT(quals); i++) {
		/* If another test on this machine uses the qualifier, take the next one. */
		env.qual = quals[i];
		while (dat_psp_create(env.ia, env.qual, env.cr, DAT_PSP_CONSUMER_FLAG, &env.psp) ==
		       E0(CONN_QUAL_IN_USE))
			env.qual++;
		connect_pair(&a, &b);
		disconnect_pair(&a, &b);
		OK(dat_ep_reset(a.ep));
		OK(dat_ep_reset(b.ep));
		OK(dat_psp_free(env.psp));
	}
	env.psp = DAT_HANDLE_NULL;
	teardown();
}

/* A message may arrive before ESTABLISHED, but its event follows ESTABLISHED on the EVD. */
static void test_shared_evd(void)
{
	DAT_EVD_HANDLE one;
	struct end c;
	DAT_EVENT event;
	unsigned i;

	setup();
	one = evd_open(&env, 64, DAT_EVD_CONNECTION_FLAG | DAT_EVD_DTO_FLAG);
	for (i = 0; i < 50; i++) {
		c = (struct end){ .env = &env, .conn = one, .recv = one, .request = one };
		MUST(dat_ep_create(env.ia, env.pz, one, one, one, NULL, &c.ep));
		post_recvs(&c, 1);
		start_connect(&a);
		OK(dat_cr_accept(request_next(&env), c.ep, 0, NULL));
		expect(a.conn, DAT_CONNECTION_EVENT_ESTABLISHED, a.ep);
		CU_ASSERT_EQUAL(try_send(&a, 5, 0), DAT_SUCCESS);
		expect(one, DAT_CONNECTION_EVENT_ESTABLISHED, c.ep);
		expect_dto(one, c.ep, 0, DAT_DTO_SUCCESS);
		expect_dto(a.request, a.ep, 5, DAT_DTO_SUCCESS);
		disconnect_pair(&a, &c);
		OK(dat_ep_free(c.ep));
		IS(dat_evd_dequeue(one, &event), DAT_QUEUE_EMPTY);
		OK(dat_ep_reset(a.ep));
	}
	evd_close(one);
	teardown();
}

/* A default EP reports the depths of the connection; an EP created with depths reports those. */
static void test_depths(void)
{
	DAT_EP_ATTR few = { .max_recv_dtos = 4,
			    .max_request_dtos = 4,
			    .max_recv_iov = 1,
			    .max_request_iov = 1,
			    .max_rdma_read_in = 1,
			    .max_rdma_read_out = 2 };
	DAT_EP_PARAM param;

	setup();
	end_close(&b);
	end_open(&env, &b, &few);
	connect_pair(&a, &b);
	OK(dat_ep_query(a.ep, DAT_EP_FIELD_ALL, &param));
	CU_ASSERT_EQUAL(param.ep_attr.max_rdma_read_in, 2);
	CU_ASSERT_EQUAL(param.ep_attr.max_rdma_read_out, 1);
	OK(dat_ep_query(b.ep, DAT_EP_FIELD_ALL, &param));
	CU_ASSERT_EQUAL(param.ep_attr.max_rdma_read_in, 1);
	CU_ASSERT_EQUAL(param.ep_attr.max_rdma_read_out, 2);
	disconnect_pair(&a, &b);
	OK(dat_ep_reset(a.ep));
	OK(dat_ep_query(a.ep, DAT_EP_FIELD_ALL, &param));
	CU_ASSERT_EQUAL(param.ep_attr.max_rdma_read_in, 4);
	teardown();
}

static const struct unit_test tests[] = {
	{ "arguments in their order", test_arguments },
	{ "families, multicast, broadcast", test_addresses },
	{ "an address without a family is IPv4, and its port is ignored", test_old_consumers },
	{ "an EP without a connect EVD or a PZ is refused", test_not_ready },
	{ "56 bytes there, 196 back, none on the passive side", test_private_data },
	{ "states, ports and addresses of a connection", test_established },
	{ "messages arrive over the connection", test_messages },
	{ "without a listener NON_PEER_REJECTED comes at once, and receives are flushed",
	  test_no_listener },
	{ "TIMED_OUT comes in time, and a late accept does not connect", test_timeout },
	{ "the timer of an attempt does not affect its connection", test_timeout_after },
	{ "read depths of a default EP, and of one that asked", test_depths },
	{ "both sides map a qualifier of more than 16 bits to the same port",
	  test_large_qualifiers },
	{ "on one EVD for all events ESTABLISHED comes before the first message", test_shared_evd },
};

UNIT_MAIN("connect", tests)
