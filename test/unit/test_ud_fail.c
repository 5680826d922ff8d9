/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/*
 * Datagrams over the fake device: resolutions and answers that fail at each step make one event
 * each and leave nothing behind.
 */
#include "test/unit/spoil.h"
#include "dapl/udapl/ep/ud.h"

static DAT_EP_HANDLE ud;
static unsigned conns, ahs; /* live objects before a step */

static void open_all(void)
{
	DAT_EP_ATTR attr = rig_attr();

	fake.datagrams = true;
	things_open();
	attr.service_type = (DAT_SERVICE_TYPE)DAT_IB_SERVICE_TYPE_UD;
	attr.max_rdma_read_in = attr.max_rdma_read_out = 0;
	MUST(dat_ep_create(things.ia, things.pz, things.rig.recv, things.rig.request, things.evd,
			   &attr, &ud));
	conns = fake.conns;
	ahs = fake.ahs;
}

static void close_all(void)
{
	MUST(dat_ep_free(ud));
	CU_ASSERT_EQUAL(fake.ahs, ahs);
	CU_ASSERT_EQUAL(fake.conns, conns);
	things_close();
}

static DAT_RETURN ask(void)
{
	return dat_ep_connect(ud, things.address, 7, DAT_TIMEOUT_INFINITE, 0, NULL,
			      DAT_QOS_BEST_EFFORT, DAT_CONNECT_DEFAULT_FLAG);
}

static void answer(enum ib_conn_event event, const void *data, uint32_t size)
{
	fake.upcalls.resolved(fake.conn->owner, fake.conn, event, data, size);
}

static DAT_EVENT told(DAT_IB_EVENT_NUMBER number, DAT_IB_EXT_TYPE type)
{
	DAT_EVENT event = rig_take(things.evd);
	const DAT_IB_EXTENSION_EVENT_DATA *data =
		(const DAT_IB_EXTENSION_EVENT_DATA *)(const void *)event.event_extension_data;

	CU_ASSERT_EQUAL((int)event.event_number, (int)number);
	CU_ASSERT_EQUAL(data->type, type);
	CU_ASSERT_PTR_EQUAL(event.event_data.connect_event_data.ep_handle, ud);
	if (type == DAT_IB_UD_CONNECT_REJECT || type == DAT_IB_UD_CONNECT_ERROR)
		CU_ASSERT_EQUAL(data->status, DAT_IB_OP_ERR);
	return event;
}

static void expect_nothing(void)
{
	CU_ASSERT_EQUAL(dat_evd_dequeue(things.evd, &(DAT_EVENT){ 0 }), DAT_QUEUE_EMPTY);
	CU_ASSERT_EQUAL(fake.conns, conns);
	CU_ASSERT_EQUAL(fake.ahs, ahs);
}

/* Only a consumer's private data is passed on, without its header and cut to the room there is. */
static void test_refusals(void)
{
	static const struct {
		enum ib_conn_event how;
		uint32_t size;
		unsigned char first;
		DAT_COUNT size_told;
	} rows[] = {
		{ IB_CONN_REJECTED_BY_PEER, 4 + 5, 2, 5 },
		{ IB_CONN_REJECTED_BY_PEER, 4, 2, 0 },
		{ IB_CONN_REJECTED_BY_PEER, 3, 2, 0 },
		{ IB_CONN_REJECTED_BY_PEER, 4 + 5, 0, 0 },
		{ IB_CONN_REJECTED_BY_PEER, 4 + EP_PRIVATE_DATA_MAX + 9, 2, EP_PRIVATE_DATA_MAX },
		{ IB_CONN_REJECTED, 4 + 5, 2, 0 },
	};
	unsigned char data[4 + EP_PRIVATE_DATA_MAX + 9] = { 2, 0, 2, 0, 'a', 'b', 'c', 'd', 'e' };
	DAT_EVENT event;
	size_t i;

	open_all();
	for (i = 0; i < COUNT(rows); i++) {
		data[0] = rows[i].first;
		MUST(ask());
		answer(rows[i].how, data, rows[i].size);
		event = told(DAT_IB_UD_CONNECTION_REJECT_EVENT, DAT_IB_UD_CONNECT_REJECT);
		CU_ASSERT_EQUAL(event.event_data.connect_event_data.private_data_size,
				rows[i].size_told);
		if (rows[i].size_told)
			CU_ASSERT_EQUAL(memcmp(event.event_data.connect_event_data.private_data,
					       "abcde", 5),
					0);
		expect_nothing();
	}
	close_all();
}

static void test_errors(void)
{
	static const enum ib_conn_event endings[] = { IB_CONN_UNREACHABLE, IB_CONN_ERROR,
						      IB_CONN_DEVICE_REMOVED };
	size_t i;

	open_all();
	for (i = 0; i < COUNT(endings); i++) {
		MUST(ask());
		answer(endings[i], NULL, 0);
		told(DAT_IB_UD_CONNECTION_ERROR_EVENT, DAT_IB_UD_CONNECT_ERROR);
		expect_nothing();
	}
	/* the peer answered, but the device refuses an address handle */
	MUST(ask());
	fake.refuse = E(INSUFFICIENT_RESOURCES, RESOURCE_MEMORY);
	answer(IB_CONN_ESTABLISHED, NULL, 0);
	told(DAT_IB_UD_CONNECTION_ERROR_EVENT, DAT_IB_UD_CONNECT_ERROR);
	expect_nothing();
	/* the request cannot be sent: the call fails and there is no event */
	fake.refuse = E0(INTERNAL_ERROR);
	IS(ask(), E0(INTERNAL_ERROR));
	expect_nothing();
	MUST(ask());
	answer(IB_CONN_ESTABLISHED, "hello", 6);
	told(DAT_IB_UD_CONNECTION_EVENT_ESTABLISHED, DAT_IB_UD_REMOTE_AH);
	close_all();
}

/* Answers that arrive after the endpoint is freed are dropped. */
static void test_freed_meanwhile(void)
{
	open_all();
	MUST(ask());
	MUST(ask());
	close_all();
}

/*
 * A peer whose event does not fit into the connect EVD is dropped: an address that the consumer
 * does not know would stay for ever.
 */
static void test_no_room(void)
{
	DAT_EVENT event;
	int i;

	open_all();
	for (i = 0; i < RIG_QLEN; i++) {
		MUST(ask());
		answer(IB_CONN_UNREACHABLE, NULL, 0);
	}
	MUST(ask());
	answer(IB_CONN_ESTABLISHED, NULL, 0);
	CU_ASSERT_EQUAL(fake.conns, conns);
	CU_ASSERT_EQUAL(fake.ahs, ahs);
	event = rig_take(things.rig.async);
	CU_ASSERT_EQUAL(event.event_number, DAT_ASYNC_ERROR_EVD_OVERFLOW);
	while (i--)
		told(DAT_IB_UD_CONNECTION_ERROR_EVENT, DAT_IB_UD_CONNECT_ERROR);
	expect_nothing();
	close_all();
}

/* ---- the passive side ---- */

static DAT_CR_HANDLE request(void)
{
	struct ib_request arrived = { .datagrams = true };
	struct ib_conn *conn = fake_new(sizeof(*conn), &fake.conns);

	arrived.remote.ss_family = arrived.local.ss_family = AF_INET;
	fake.upcalls.request(things.psp, conn, &arrived);
	return rig_take(things.requests).event_data.cr_arrival_event_data.cr_handle;
}

/* Each case uses the request up. */
static void test_answers(void)
{
	DAT_CR_HANDLE cr;
	int i;

	open_all();
	cr = request();
	fake.refuse = E(INSUFFICIENT_RESOURCES, RESOURCE_MEMORY);
	IS(dat_cr_accept(cr, ud, 0, NULL), E(INSUFFICIENT_RESOURCES, RESOURCE_MEMORY));
	IS(dat_cr_accept(cr, ud, 0, NULL), E(INVALID_HANDLE, INVALID_HANDLE_CR));
	expect_nothing();
	/* the requester has gone: the call succeeds, and an event reports the failure */
	cr = request();
	fake.refuse = E0(INVALID_STATE);
	OK(dat_cr_accept(cr, ud, 0, NULL));
	told(DAT_IB_UD_CONNECTION_ERROR_EVENT, DAT_IB_UD_CONNECT_ERROR);
	expect_nothing();
	/* the event that would report the address has no room */
	for (i = 0; i < RIG_QLEN; i++) {
		MUST(ask());
		answer(IB_CONN_UNREACHABLE, NULL, 0);
	}
	cr = request();
	OK(dat_cr_accept(cr, ud, 0, NULL));
	CU_ASSERT_EQUAL(fake.conns, conns);
	CU_ASSERT_EQUAL(fake.ahs, ahs);
	while (i--)
		told(DAT_IB_UD_CONNECTION_ERROR_EVENT, DAT_IB_UD_CONNECT_ERROR);
	/*
	 * the service point's own endpoint is for connections, so a request for datagrams is
	 * rejected
	 */
	fake.upcalls.request(things.rsp, fake_new(sizeof(struct ib_conn), &fake.conns),
			     &(struct ib_request){ .datagrams = true });
	CU_ASSERT_EQUAL(dat_evd_dequeue(things.requests, &(DAT_EVENT){ 0 }), DAT_QUEUE_EMPTY);
	expect_nothing();
	close_all();
}

/* A datagram that the device refuses uses no slot of the queue. */
static void test_sends(void)
{
	DAT_DTO_COOKIE cookie = { .as_64 = 1 };
	DAT_IB_ADDR_HANDLE to;
	DAT_EVENT event;
	int i;

	open_all();
	MUST(ask());
	answer(IB_CONN_ESTABLISHED, NULL, 0);
	event = told(DAT_IB_UD_CONNECTION_EVENT_ESTABLISHED, DAT_IB_UD_REMOTE_AH);
	to = ((const DAT_IB_EXTENSION_EVENT_DATA *)(const void *)event.event_extension_data)
		     ->remote_ah;
	for (i = 0; i < 3 * RIG_QLEN; i++) {
		fake.refuse = E0(INTERNAL_ERROR);
		IS(dat_ib_post_send_ud(ud, 0, NULL, &to, cookie, 0), E0(INTERNAL_ERROR));
	}
	OK(dat_ib_post_send_ud(ud, 0, NULL, &to, cookie, 0));
	close_all();
}

static const struct unit_test tests[] = {
	{ "refusals are reported with and without a consumer's data", test_refusals },
	{ "a failed resolution makes one event", test_errors },
	{ "an endpoint can be freed during its resolutions", test_freed_meanwhile },
	{ "a peer whose event has no room is dropped", test_no_room },
	{ "a failed answer makes one event", test_answers },
	{ "a datagram that the device refuses uses no slot", test_sends },
};

UNIT_MAIN("ud_fail", tests)
