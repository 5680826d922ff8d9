/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* Endpoints for datagrams over the software device: resolving, sending and freeing. */
#include <string.h>
#include "test/unit/datagram_ep.h"
#include "test/unit/ep_util.h"

#define GRH 40u
#define MTU 4096u

static struct env env;
static struct end a, b;
static char answer_data[] = "answer", refusal[] = "no";

static void setup(void)
{
	DAT_EP_ATTR attr = datagram_attr();

	env_open(&env);
	env_listen(&env);
	end_open(&env, &a, &attr);
	end_open(&env, &b, &attr);
}

static void teardown(void)
{
	end_close(&a);
	end_close(&b);
	env_close(&env);
}

static const DAT_IB_EXTENSION_EVENT_DATA *extension(const DAT_EVENT *event)
{
	return (const DAT_IB_EXTENSION_EVENT_DATA *)(const void *)event->event_extension_data;
}

static DAT_RETURN ask(struct end *from, DAT_CONN_QUAL qual, DAT_COUNT size, const char *data)
{
	return dat_ep_connect(from->ep, env.address, qual, PATIENCE, size,
			      (DAT_PVOID)(uintptr_t)data, DAT_QOS_BEST_EFFORT,
			      DAT_CONNECT_DEFAULT_FLAG);
}

static DAT_CR_HANDLE asked(void)
{
	DAT_EVENT event = { 0 };

	CU_ASSERT_TRUE_FATAL(event_next(env.cr, &event));
	CU_ASSERT_EQUAL_FATAL((int)event.event_number, (int)DAT_IB_UD_CONNECTION_REQUEST_EVENT);
	CU_ASSERT_EQUAL(extension(&event)->type, DAT_IB_UD_CONNECT_REQUEST);
	CU_ASSERT_EQUAL(event.event_data.cr_arrival_event_data.conn_qual, env.qual);
	return event.event_data.cr_arrival_event_data.cr_handle;
}

/* Takes the next event of the end, which is about a peer. */
static DAT_EVENT peer_event(struct end *end, DAT_IB_EVENT_NUMBER number, DAT_IB_EXT_TYPE type)
{
	DAT_EVENT event = { 0 };

	CU_ASSERT_TRUE_FATAL(event_next(end->conn, &event));
	CU_ASSERT_EQUAL_FATAL((int)event.event_number, (int)number);
	CU_ASSERT_EQUAL(extension(&event)->type, type);
	CU_ASSERT_PTR_EQUAL(event.event_data.connect_event_data.ep_handle, end->ep);
	return event;
}

struct met {
	DAT_EVENT active, passive;
};

static struct met meet(struct end *from, struct end *to)
{
	struct met met;

	MUST(ask(from, env.qual, 9, "question"));
	MUST(dat_cr_accept(asked(), to->ep, 7, answer_data));
	met.passive =
		peer_event(to, DAT_IB_UD_CONNECTION_EVENT_ESTABLISHED, DAT_IB_UD_PASSIVE_REMOTE_AH);
	met.active = peer_event(from, DAT_IB_UD_CONNECTION_EVENT_ESTABLISHED, DAT_IB_UD_REMOTE_AH);
	return met;
}

static DAT_IB_ADDR_HANDLE *address(DAT_EVENT *event)
{
	return (DAT_IB_ADDR_HANDLE *)(uintptr_t)&extension(event)->remote_ah;
}

static void post_recv(struct end *end, uint64_t cookie, size_t offset, DAT_SEG_LENGTH length)
{
	DAT_LMR_TRIPLET iov = segment(&env, offset, length);

	MUST(dat_ep_post_recv(end->ep, 1, &iov, (DAT_DTO_COOKIE){ .as_64 = cookie }, 0));
}

static DAT_RETURN send_to(struct end *end, DAT_IB_ADDR_HANDLE *to, DAT_SEG_LENGTH length)
{
	DAT_LMR_TRIPLET iov = segment(&env, 0, length);
	DAT_DTO_COOKIE cookie = { .as_64 = 77 };

	return dat_ib_post_send_ud(end->ep, 1, &iov, to, cookie, 0);
}

static DAT_EVENT transfer(DAT_EVD_HANDLE evd, DAT_IB_EXT_TYPE type, DAT_IB_DTOS operation,
			  uint64_t cookie, DAT_VLEN length)
{
	const DAT_DTO_COMPLETION_EVENT_DATA *dto;
	DAT_EVENT event = { 0 };

	CU_ASSERT_TRUE_FATAL(event_next(evd, &event));
	dto = &event.event_data.dto_completion_event_data;
	CU_ASSERT_EQUAL((int)event.event_number, (int)DAT_IB_DTO_EVENT);
	CU_ASSERT_EQUAL(extension(&event)->type, type);
	CU_ASSERT_EQUAL((int)dto->operation, (int)operation);
	CU_ASSERT_EQUAL(dto->user_cookie.as_64, cookie);
	CU_ASSERT_EQUAL(dto->transfered_length, length);
	return event;
}

/* ---- tests ---- */

static void test_resolution(void)
{
	const DAT_CONNECTION_EVENT_DATA *data;
	struct met met;

	setup();
	met = meet(&a, &b);
	data = &met.active.event_data.connect_event_data;
	CU_ASSERT_TRUE(data->private_data_size >= 7);
	CU_ASSERT_EQUAL(memcmp(data->private_data, "answer", 7), 0);
	data = &met.passive.event_data.connect_event_data;
	CU_ASSERT_TRUE(data->private_data_size >= 9);
	CU_ASSERT_EQUAL(memcmp(data->private_data, "question", 9), 0);
	CU_ASSERT_PTR_NOT_NULL(address(&met.active)->ah);
	CU_ASSERT_NOT_EQUAL(address(&met.active)->qpn, address(&met.passive)->qpn);
	CU_ASSERT_EQUAL(address(&met.active)->ia_addr.sin6_family, AF_INET);
	CU_ASSERT_EQUAL(extension(&met.active)->status, DAT_OP_SUCCESS);
	CU_ASSERT_EQUAL(state_of(a.ep), DAT_EP_STATE_UNCONNECTED);
	CU_ASSERT_EQUAL(state_of(b.ep), DAT_EP_STATE_UNCONNECTED);
	teardown();
}

static void test_datagrams(void)
{
	struct met met;

	setup();
	met = meet(&a, &b);
	post_recv(&b, 5, 8192, GRH + 100);
	memcpy(env.memory, "there", 6);
	MUST(send_to(&a, address(&met.active), 6));
	transfer(a.request, DAT_IB_UD_SEND, DAT_IB_DTO_SEND_UD, 77, 6);
	transfer(b.recv, DAT_IB_UD_RECV, DAT_IB_DTO_RECV_UD, 5, GRH + 6);
	CU_ASSERT_STRING_EQUAL(env.memory + 8192 + GRH, "there");
	post_recv(&a, 6, 16384, GRH + MTU);
	MUST(send_to(&b, address(&met.passive), MTU));
	transfer(b.request, DAT_IB_UD_SEND, DAT_IB_DTO_SEND_UD, 77, MTU);
	transfer(a.recv, DAT_IB_UD_RECV, DAT_IB_DTO_RECV_UD, 6, GRH + MTU);
	teardown();
}

static void test_many_peers(void)
{
	DAT_EP_ATTR attr = datagram_attr();
	struct met first, second;
	struct end c;

	setup();
	end_open(&env, &c, &attr);
	first = meet(&a, &b);
	second = meet(&a, &c);
	meet(&c, &b); /* an EP may accept any number of requests */
	post_recv(&b, 1, 4096, GRH + 8);
	post_recv(&c, 2, 8192, GRH + 8);
	MUST(send_to(&a, address(&second.active), 8));
	transfer(c.recv, DAT_IB_UD_RECV, DAT_IB_DTO_RECV_UD, 2, GRH + 8);
	MUST(send_to(&a, address(&first.active), 8));
	transfer(b.recv, DAT_IB_UD_RECV, DAT_IB_DTO_RECV_UD, 1, GRH + 8);
	end_close(&c);
	teardown();
}

static void test_refusals(void)
{
	DAT_EVENT event;

	setup();
	MUST(ask(&a, env.qual, 0, NULL));
	MUST(dat_cr_reject(asked(), 3, refusal));
	event = peer_event(&a, DAT_IB_UD_CONNECTION_REJECT_EVENT, DAT_IB_UD_CONNECT_REJECT);
	CU_ASSERT_EQUAL(extension(&event)->status, DAT_IB_OP_ERR);
	CU_ASSERT_EQUAL(memcmp(event.event_data.connect_event_data.private_data, "no", 3), 0);
	MUST(dat_psp_free(env.psp));
	env.psp = DAT_HANDLE_NULL;
	MUST(ask(&a, env.qual, 0, NULL));
	event = peer_event(&a, DAT_IB_UD_CONNECTION_REJECT_EVENT, DAT_IB_UD_CONNECT_REJECT);
	CU_ASSERT_EQUAL(event.event_data.connect_event_data.private_data_size, 0);
	teardown();
}

static void test_attributes(void)
{
	DAT_EP_ATTR attr = datagram_attr();
	DAT_PROVIDER_ATTR provider;
	DAT_EP_HANDLE ep;
	bool listed = false;

	setup();
	MUST(dat_ia_query(env.ia, NULL, 0, NULL, DAT_PROVIDER_FIELD_ALL, &provider));
	for (DAT_COUNT i = 0; i < provider.num_provider_specific_attr; i++)
		listed |= !strcmp(provider.provider_specific_attr[i].name, DAT_IB_ATTR_UD);
	CU_ASSERT_TRUE(listed);
	attr.max_message_size = MTU + 1;
	IS(dat_ep_create(env.ia, env.pz, a.recv, a.request, a.conn, &attr, &ep),
	   E(INVALID_PARAMETER, INVALID_ARG6));
	attr = datagram_attr();
	attr.max_rdma_read_in = 1;
	IS(dat_ep_create(env.ia, env.pz, a.recv, a.request, a.conn, &attr, &ep),
	   E(INVALID_PARAMETER, INVALID_ARG6));
	attr = datagram_attr();
	attr.max_rdma_read_out = 1;
	IS(dat_ep_create(env.ia, env.pz, a.recv, a.request, a.conn, &attr, &ep),
	   E(INVALID_PARAMETER, INVALID_ARG6));
	teardown();
}

static void test_send_checks(void)
{
	DAT_LMR_TRIPLET iov;
	DAT_DTO_COOKIE cookie = { .as_64 = 1 };
	DAT_IB_ADDR_HANDLE bad = { 0 }, *to;
	DAT_EP_PARAM param;
	struct met met;

	setup();
	met = meet(&a, &b);
	to = address(&met.active);
	iov = segment(&env, 0, 8);
	MUST(dat_ep_query(a.ep, DAT_EP_FIELD_ALL, &param));
	IS(dat_ib_post_send_ud(a.ep, param.ep_attr.max_request_iov + 1, &iov, to, cookie, 0),
	   E(INVALID_PARAMETER, INVALID_ARG2));
	IS(dat_ib_post_send_ud(a.ep, -1, &iov, to, cookie, 0), E(INVALID_PARAMETER, INVALID_ARG2));
	IS(dat_ib_post_send_ud(a.ep, 1, NULL, to, cookie, 0), E(INVALID_PARAMETER, INVALID_ARG3));
	IS(dat_ib_post_send_ud(a.ep, 1, &iov, NULL, cookie, 0), E(INVALID_PARAMETER, INVALID_ARG4));
	IS(dat_ib_post_send_ud(a.ep, 1, &iov, &bad, cookie, 0), E(INVALID_PARAMETER, INVALID_ARG4));
	bad = *to;
	bad.ah = (struct ibv_ah *)(void *)a.ep;
	IS(dat_ib_post_send_ud(a.ep, 1, &iov, &bad, cookie, 0), E(INVALID_PARAMETER, INVALID_ARG4));
	IS(dat_ib_post_send_ud(a.ep, 1, &iov, to, cookie, 0x1000),
	   E(INVALID_PARAMETER, INVALID_ARG6));
	IS(send_to(&a, to, MTU + 1), E0(LENGTH_ERROR));
	expect_quiet(a.request);
	/* calls for connected endpoints */
	IS(try_send(&a, 1, 0), E(INVALID_HANDLE, INVALID_HANDLE_EP));
	IS(try_write(&a, 1, env.rkey), E(INVALID_HANDLE, INVALID_HANDLE_EP));
	IS(dat_ib_post_fetch_and_add(a.ep, 1, &iov, cookie,
				     (&(DAT_RMR_TRIPLET){ .virtual_address = 8 }), 0),
	   E(INVALID_HANDLE, INVALID_HANDLE_EP));
	teardown();
}

static void test_full_queue(void)
{
	struct met met;
	DAT_EP_PARAM param;
	DAT_EVENT event;
	unsigned i;

	setup();
	met = meet(&a, &b);
	MUST(dat_ep_query(a.ep, DAT_EP_FIELD_ALL, &param));
	for (i = 0; i < (unsigned)param.ep_attr.max_request_dtos; i++)
		MUST(send_to(&a, address(&met.active), 8));
	IS(send_to(&a, address(&met.active), 8), E(INSUFFICIENT_RESOURCES, RESOURCE_MEMORY));
	while (i--)
		CU_ASSERT_TRUE(event_next(a.request, &event));
	OK(send_to(&a, address(&met.active), 8));
	teardown();
}

static void test_connect_checks(void)
{
	char data[200] = "";
	DAT_EVENT event = { 0 };
	DAT_CR_HANDLE cr;
	struct end rc;

	setup();
	IS(ask(&a, env.qual, 153, data), E(INVALID_PARAMETER, INVALID_ARG5));
	IS(ask(&a, env.qual, -1, data), E(INVALID_PARAMETER, INVALID_ARG5));
	IS(ask(&a, env.qual, 1, NULL), E(INVALID_PARAMETER, INVALID_ARG6));
	IS(ask(&a, 0, 0, NULL), E(INVALID_PARAMETER, INVALID_ARG3));
	end_open(&env, &rc, NULL);
	MUST(ask(&a, env.qual, 152, data));
	cr = asked();
	/* an endpoint for connections, and more data than fits into the answer */
	IS(dat_cr_accept(cr, rc.ep, 0, NULL), E(INVALID_HANDLE, INVALID_HANDLE_EP));
	IS(dat_cr_accept(cr, b.ep, 137, data), E(INVALID_PARAMETER, INVALID_ARG3));
	MUST(dat_cr_accept(cr, b.ep, 136, data));
	peer_event(&b, DAT_IB_UD_CONNECTION_EVENT_ESTABLISHED, DAT_IB_UD_PASSIVE_REMOTE_AH);
	peer_event(&a, DAT_IB_UD_CONNECTION_EVENT_ESTABLISHED, DAT_IB_UD_REMOTE_AH);
	/* a connection request with an endpoint for datagrams */
	start_connect(&rc);
	cr = request_next(&env);
	IS(dat_cr_accept(cr, b.ep, 0, NULL), E(INVALID_HANDLE, INVALID_HANDLE_EP));
	MUST(dat_cr_reject(cr, 0, NULL));
	CU_ASSERT_TRUE(event_next(rc.conn, &event));
	CU_ASSERT_EQUAL(event.event_number, DAT_CONNECTION_EVENT_PEER_REJECTED);
	end_close(&rc);
	teardown();
}

static void test_disconnect_does_nothing(void)
{
	struct met met;

	setup();
	met = meet(&a, &b);
	OK(dat_ep_disconnect(a.ep, DAT_CLOSE_ABRUPT_FLAG));
	OK(dat_ep_disconnect(a.ep, DAT_CLOSE_GRACEFUL_FLAG));
	expect_quiet(a.conn);
	post_recv(&b, 5, 8192, GRH + 8);
	OK(send_to(&a, address(&met.active), 8));
	transfer(b.recv, DAT_IB_UD_RECV, DAT_IB_DTO_RECV_UD, 5, GRH + 8);
	teardown();
}

static void test_freeing(void)
{
	struct met met;
	DAT_CONTEXT context, nothing = { .as_ptr = NULL };

	setup();
	met = meet(&a, &b);
	context = extension(&met.active)->context;
	IS(dat_ib_ud_cm_free(a.ep, nothing), E(INVALID_PARAMETER, INVALID_ARG2));
	IS(dat_ib_ud_cm_free(b.ep, context), E(INVALID_PARAMETER, INVALID_ARG2));
	IS(dat_ib_ud_ah_free(b.ep, address(&met.active)), E(INVALID_PARAMETER, INVALID_ARG2));
	IS(dat_ib_ud_ah_free(a.ep, NULL), E(INVALID_PARAMETER, INVALID_ARG2));
	OK(dat_ib_ud_cm_free(a.ep, context));
	IS(dat_ib_ud_cm_free(a.ep, context), E(INVALID_PARAMETER, INVALID_ARG2));
	post_recv(&b, 5, 8192, GRH + 8);
	OK(send_to(&a, address(&met.active), 8)); /* the address outlives the CM's object */
	transfer(b.recv, DAT_IB_UD_RECV, DAT_IB_DTO_RECV_UD, 5, GRH + 8);
	transfer(a.request, DAT_IB_UD_SEND, DAT_IB_DTO_SEND_UD, 77, 8);
	OK(dat_ib_ud_ah_free(a.ep, address(&met.active)));
	IS(send_to(&a, address(&met.active), 8), E(INVALID_PARAMETER, INVALID_ARG4));
	IS(dat_ib_ud_ah_free(a.ep, address(&met.active)), E(INVALID_PARAMETER, INVALID_ARG2));
	/* freed in the other order */
	OK(dat_ib_ud_ah_free(b.ep, address(&met.passive)));
	IS(send_to(&b, address(&met.passive), 8), E(INVALID_PARAMETER, INVALID_ARG4));
	OK(dat_ib_ud_cm_free(b.ep, extension(&met.passive)->context));
	teardown();
}

static void test_failed_receive(void)
{
	const DAT_DTO_COMPLETION_EVENT_DATA *dto;
	DAT_EVENT event;
	struct met met;

	setup();
	met = meet(&a, &b);
	post_recv(&b, 5, 8192, GRH); /* no room for any payload */
	OK(send_to(&a, address(&met.active), 8));
	event = transfer(b.recv, DAT_IB_UD_RECV, DAT_IB_DTO_RECV_UD, 5, 0);
	dto = &event.event_data.dto_completion_event_data;
	CU_ASSERT_EQUAL((int)dto->status, (int)DAT_DTO_ERR_LOCAL_LENGTH);
	CU_ASSERT_EQUAL(extension(&event)->status, DAT_IB_OP_ERR);
	teardown();
}

static void test_counters(void)
{
	DAT_UINT64 out[DCNT_IA_ALL_COUNTERS];
	struct met met;

	setup();
	met = meet(&a, &b);
	post_recv(&b, 5, 8192, GRH + 8);
	MUST(send_to(&a, address(&met.active), 8));
	transfer(b.recv, DAT_IB_UD_RECV, DAT_IB_DTO_RECV_UD, 5, GRH + 8);
	MUST(dat_ib_query_counters(a.ep, DCNT_EP_ALL_COUNTERS, out, 0));
	CU_ASSERT_TRUE(out[DCNT_EP_POST_SEND_UD] == 1 && out[DCNT_EP_POST_SEND_UD_DATA] == 8);
	CU_ASSERT_TRUE(!out[DCNT_EP_POST_SEND] && !out[DCNT_EP_POST_SEND_DATA]);
	CU_ASSERT_EQUAL(out[DCNT_EP_CONNECT], 1);
	MUST(dat_ib_query_counters(b.ep, DCNT_EP_ALL_COUNTERS, out, 0));
	CU_ASSERT_TRUE(out[DCNT_EP_RECV_UD] == 1 && out[DCNT_EP_RECV_UD_DATA] == GRH + 8);
	MUST(dat_ib_query_counters(env.ia, DCNT_IA_ALL_COUNTERS, out, 0));
	CU_ASSERT_EQUAL(out[DCNT_IA_CM_AH_REQ_TX], 1);
	CU_ASSERT_EQUAL(out[DCNT_IA_CM_AH_REQ_RX], 1);
	CU_ASSERT_EQUAL(out[DCNT_IA_CM_AH_RESOLVED], 2);
	teardown();
}

static void test_shared_receives(void)
{
	DAT_SRQ_ATTR srq_attr = { .max_recv_dtos = 8,
				  .max_recv_iov = 2,
				  .low_watermark = DAT_SRQ_LW_DEFAULT };
	DAT_EP_ATTR attr = datagram_attr();
	DAT_LMR_TRIPLET iov;
	DAT_SRQ_HANDLE srq;
	struct end c = { .env = &env };
	struct met met;

	setup();
	iov = segment(&env, 8192, GRH + 8);
	MUST(dat_srq_create(env.ia, env.pz, &srq_attr, &srq));
	c.conn = evd_open(&env, 8, DAT_EVD_CONNECTION_FLAG);
	c.recv = evd_open(&env, 8, DAT_EVD_DTO_FLAG);
	c.request = evd_open(&env, 8, DAT_EVD_DTO_FLAG);
	MUST(dat_ep_create_with_srq(env.ia, env.pz, c.recv, c.request, c.conn, srq, &attr, &c.ep));
	MUST(dat_srq_post_recv(srq, 1, &iov, (DAT_DTO_COOKIE){ .as_64 = 9 }));
	met = meet(&a, &c);
	MUST(send_to(&a, address(&met.active), 8));
	transfer(c.recv, DAT_IB_UD_RECV, DAT_IB_DTO_RECV_UD, 9, GRH + 8);
	end_close(&c);
	OK(dat_srq_free(srq));
	teardown();
}

static const struct unit_test tests[] = {
	{ "each side learns the other's address and data", test_resolution },
	{ "datagrams arrive both ways, behind 40 bytes", test_datagrams },
	{ "one endpoint can have many peers", test_many_peers },
	{ "a consumer's refusal and a missing listener are reported", test_refusals },
	{ "the endpoint and the IA have the attributes of datagrams", test_attributes },
	{ "dat_ib_post_send_ud, each check", test_send_checks },
	{ "a full request queue is reported", test_full_queue },
	{ "connect and accept, each check", test_connect_checks },
	{ "there is nothing to disconnect", test_disconnect_does_nothing },
	{ "context and address are freed separately", test_freeing },
	{ "a receive that failed", test_failed_receive },
	{ "datagrams are received from an SRQ", test_shared_receives },
	{ "datagrams and resolutions are counted", test_counters },
};

UNIT_MAIN("ud", tests)
