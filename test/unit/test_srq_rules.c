/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* Endpoints on an SRQ over the software device, rule by rule: object, protection, streams, connecting. */
#include <string.h>
#include "test/unit/srq_rig.h"

struct zone { /* memory in a PZ other than env.pz */
	DAT_PZ_HANDLE pz;
	DAT_LMR_HANDLE lmr;
	DAT_LMR_CONTEXT lkey;
	DAT_RMR_CONTEXT rkey;
};

static DAT_DTO_COOKIE cookie(uint64_t value)
{
	return (DAT_DTO_COOKIE){ .as_64 = value };
}

static void zone_open(struct zone *zone)
{
	DAT_REGION_DESCRIPTION region = { .for_va = env.memory };

	MUST(dat_pz_create(env.ia, &zone->pz));
	MUST(dat_lmr_create(env.ia, DAT_MEM_TYPE_VIRTUAL, region, BUFFER, zone->pz,
			    DAT_MEM_PRIV_ALL_FLAG, DAT_VA_TYPE_VA, &zone->lmr, &zone->lkey,
			    &zone->rkey, NULL, NULL));
}

static void zone_close(struct zone *zone)
{
	OK(dat_lmr_free(zone->lmr));
	OK(dat_pz_free(zone->pz));
}

/* Opens an end on the SRQ whose PZ is the zone's. */
static void zone_end_open(struct end *end, const struct zone *zone)
{
	DAT_EP_ATTR attr = srq_attr();

	attr.max_rdma_read_in = 1;
	end_open(&env, end, NULL);
	MUST(dat_ep_free(end->ep));
	MUST(dat_ep_create_with_srq(env.ia, zone->pz, end->recv, end->request, end->conn, srq,
				    &attr, &end->ep));
}

static DAT_COUNT available(void)
{
	DAT_SRQ_PARAM param;

	OK(dat_srq_query(srq, DAT_SRQ_FIELD_ALL, &param));
	return param.available_dto_count;
}

/* Sends a message from `from`; `to` receives it through the SRQ. */
static void message(struct end *from, struct end *to)
{
	DAT_EVENT event;

	OK(try_send(from, 55, 0));
	expect_dto(from->request, from->ep, 55, DAT_DTO_SUCCESS);
	if (!event_next(to->recv, &event))
		return;
	CU_ASSERT_EQUAL(event.event_number, DAT_DTO_COMPLETION_EVENT);
	CU_ASSERT_EQUAL(event.event_data.dto_completion_event_data.status, DAT_DTO_SUCCESS);
	CU_ASSERT_PTR_EQUAL(event.event_data.dto_completion_event_data.ep_handle, to->ep);
	CU_ASSERT_TRUE(event.event_data.dto_completion_event_data.user_cookie.as_64 - SRQ_COOKIE <
		       32);
}

static void reset_pair(void)
{
	disconnect_pair(&a, &b);
	expect_notice(b.ep);
	OK(dat_ep_reset(a.ep));
	OK(dat_ep_reset(b.ep));
}

static DAT_EP_PARAM query(DAT_EP_HANDLE ep)
{
	DAT_EP_PARAM param;

	memset(&param, 0, sizeof(param));
	OK(dat_ep_query(ep, DAT_EP_FIELD_ALL, &param));
	return param;
}

/* ---- object and handle ---- */

static void test_r1(void)
{
	DAT_EP_ATTR attr = srq_attr();
	DAT_HANDLE_TYPE type;
	DAT_EP_HANDLE ep = env.pz;

	setup();
	ep = env.pz;
	attr.max_request_dtos = -1;
	CU_ASSERT_TRUE(dat_ep_create_with_srq(env.ia, env.pz, b.recv, b.request, b.conn, srq, &attr,
					      &ep) != DAT_SUCCESS);
	CU_ASSERT_PTR_EQUAL(ep, env.pz);
	OK(dat_get_handle_type(b.ep, &type));
	CU_ASSERT_EQUAL(type, DAT_HANDLE_TYPE_EP);
	teardown();
}

static void test_r2(void)
{
	setup();
	CU_ASSERT_EQUAL(query(b.ep).ep_state, DAT_EP_STATE_UNCONNECTED);
	CU_ASSERT_EQUAL(state_of(b.ep), DAT_EP_STATE_UNCONNECTED);
	teardown();
}

static void test_r3(void)
{
	setup();
	CU_ASSERT_PTR_EQUAL(query(b.ep).srq_handle, srq);
	CU_ASSERT_PTR_EQUAL(query(a.ep).srq_handle, DAT_HANDLE_NULL);
	teardown();
}

static void test_r4(void)
{
	unsigned i;

	setup();
	srq_post(20);
	for (i = 0; i < 8; i++) {
		connect_pair(&a, &b);
		message(&a, &b);
		reset_pair();
		CU_ASSERT_PTR_EQUAL(query(b.ep).srq_handle, srq);
	}
	CU_ASSERT_EQUAL(outstanding(), 12);
	teardown();
}

static void test_r5(void)
{
	DAT_SRQ_ATTR attr = { .max_recv_dtos = 4, .max_recv_iov = 1 };
	DAT_EP_PARAM param;
	DAT_SRQ_HANDLE other;

	setup();
	MUST(dat_srq_create(env.ia, env.pz, &attr, &other));
	param = query(b.ep);
	param.srq_handle = other;
	IS(dat_ep_modify(b.ep, DAT_EP_FIELD_SRQ_HANDLE, &param),
	   E(INVALID_PARAMETER, INVALID_ARG2));
	param.srq_handle = DAT_HANDLE_NULL;
	IS(dat_ep_modify(b.ep, DAT_EP_FIELD_SRQ_HANDLE, &param),
	   E(INVALID_PARAMETER, INVALID_ARG2));
	CU_ASSERT_PTR_EQUAL(query(b.ep).srq_handle, srq);
	OK(dat_srq_free(other)); /* it was never used */
	teardown();
}

static void test_r6(void)
{
	setup();
	IS(dat_srq_free(srq), E(INVALID_STATE, INVALID_STATE_SRQ_IN_USE));
	connect_pair(&a, &b);
	IS(dat_srq_free(srq), E(INVALID_STATE, INVALID_STATE_SRQ_IN_USE));
	reset_pair();
	IS(dat_srq_free(srq), E(INVALID_STATE, INVALID_STATE_SRQ_IN_USE));
	teardown(); /* frees the EP, then the SRQ */
}

static void test_r7(void)
{
	DAT_RETURN want = E(INVALID_STATE, INVALID_STATE_SRQ_IN_USE);
	DAT_CR_HANDLE request;

	setup();
	srq_post(3);
	IS(try_recv(&b, 1), want);
	start_connect(&b);
	IS(try_recv(&b, 1), want);
	request = request_next(&env);
	OK(dat_cr_accept(request, a.ep, 0, NULL));
	expect(b.conn, DAT_CONNECTION_EVENT_ESTABLISHED, b.ep);
	expect(a.conn, DAT_CONNECTION_EVENT_ESTABLISHED, a.ep);
	IS(try_recv(&b, 1), want);
	disconnect_pair(&b, &a);
	expect_notice(b.ep);
	IS(try_recv(&b, 1), want);
	CU_ASSERT_EQUAL(outstanding(), 3);
	expect_quiet(b.recv);
	teardown();
}

static void test_r8(void)
{
	setup();
	connect_pair(&a, &b);
	OK(try_send(&a, 1, 0)); /* no receive is posted: the send waits */
	expect_quiet(b.recv);
	srq_post(1);
	expect_dto(b.recv, b.ep, SRQ_COOKIE, DAT_DTO_SUCCESS);
	expect_dto(a.request, a.ep, 1, DAT_DTO_SUCCESS);
	CU_ASSERT_EQUAL(outstanding(), 0);
	teardown();
}

/* ---- protection ---- */

static void zone_connect(struct zone *zone, struct end *c)
{
	setup();
	zone_open(zone);
	zone_end_open(c, zone);
	connect_pair(&a, c);
}

static void zone_end(struct zone *zone, struct end *c)
{
	end_close(c);
	zone_close(zone);
	teardown();
}

static DAT_RETURN send_with(struct end *end, DAT_LMR_CONTEXT lkey)
{
	/* longer than the inline limit, so that the key is checked */
	DAT_LMR_TRIPLET what = segment(&env, 0, 4096);

	what.lmr_context = lkey;
	return dat_ep_post_send(end->ep, 1, &what, cookie(1), 0);
}

static void test_r9(void)
{
	DAT_LMR_TRIPLET room;
	struct zone zone;
	struct end c;

	zone_connect(&zone, &c);
	room = segment(&env, BUFFER / 2, 4096);
	OK(dat_ep_post_recv(a.ep, 1, &room, cookie(0), 0));
	OK(send_with(&c, zone.lkey));
	expect_dto(c.request, c.ep, 1, DAT_DTO_SUCCESS);
	expect_dto(a.recv, a.ep, 0, DAT_DTO_SUCCESS);
	OK(try_write(&a, 2, zone.rkey)); /* memory that the peer may access */
	expect_dto(a.request, a.ep, 2, DAT_DTO_SUCCESS);
	zone_end(&zone, &c);
}

static void test_r10_local(void)
{
	struct zone zone;
	struct end c;

	zone_connect(&zone, &c);
	post_recvs(&a, 1);
	OK(send_with(&c, env.lkey));
	expect_dto(c.request, c.ep, 1, DAT_DTO_ERR_LOCAL_PROTECTION);
	zone_end(&zone, &c);
}

static void test_r10_remote(void)
{
	struct zone zone;
	struct end c;

	zone_connect(&zone, &c);
	OK(try_write(&a, 2, env.rkey));
	expect_dto(a.request, a.ep, 2, DAT_DTO_ERR_REMOTE_ACCESS);
	zone_end(&zone, &c);
}

static void test_r11(void)
{
	DAT_LMR_TRIPLET bad;
	struct zone zone;
	struct end c;
	DAT_EVENT event;

	zone_connect(&zone, &c);
	srq_post(1); /* of the SRQ's PZ, not of the EP's */
	message(&a, &c);
	bad = segment(&env, BUFFER / 2, 64);
	bad.lmr_context = zone.lkey; /* of the EP's PZ, not of the SRQ's */
	OK(dat_srq_post_recv(srq, 1, &bad, cookie(9)));
	OK(try_send(&a, 2, 0));
	memset(&event, 0, sizeof(event));
	if (event_next(c.recv, &event))
		CU_ASSERT_EQUAL(event.event_data.dto_completion_event_data.status,
				DAT_DTO_ERR_LOCAL_PROTECTION);
	zone_end(&zone, &c);
}

static void test_r12(void)
{
	DAT_PROVIDER_ATTR attr;
	struct zone zone;
	struct end c;

	zone_connect(&zone, &c);
	OK(dat_ia_query(env.ia, NULL, 0, NULL, DAT_PROVIDER_FIELD_ALL, &attr));
	CU_ASSERT_EQUAL(attr.srq_ep_pz_difference_supported, DAT_TRUE);
	CU_ASSERT_PTR_EQUAL(query(c.ep).pz_handle, zone.pz);
	CU_ASSERT_PTR_EQUAL(query(c.ep).srq_handle, srq);
	zone_end(&zone, &c);
}

static void test_r13(void)
{
	struct zone first, second;
	struct end c, d, e;

	zone_connect(&first, &c);
	zone_open(&second);
	zone_end_open(&d, &second);
	end_open(&env, &e, NULL);
	connect_pair(&e, &d);
	srq_post(6);
	message(&a, &c);
	message(&e, &d);
	message(&a, &c);
	OK(try_write(&a, 2, first.rkey));
	expect_dto(a.request, a.ep, 2, DAT_DTO_SUCCESS);
	OK(try_write(&e, 3, first.rkey)); /* a key of the other EP's PZ */
	expect_dto(e.request, e.ep, 3, DAT_DTO_ERR_REMOTE_ACCESS);
	end_close(&e);
	end_close(&d);
	zone_close(&second);
	zone_end(&first, &c);
}

/* ---- event streams ---- */

static void test_r14(void)
{
	DAT_LMR_TRIPLET part;
	DAT_RMR_CONTEXT context;
	DAT_EVD_HANDLE conn;
	DAT_RMR_HANDLE rmr;
	DAT_EP_ATTR attr = srq_attr();
	DAT_EVENT event;

	setup();
	attr.max_rdma_read_out = 1;
	conn = b.conn;
	MUST(dat_ep_free(b.ep));
	evd_close(b.request);
	b.request = evd_open(&env, 64, DAT_EVD_DTO_FLAG | DAT_EVD_RMR_BIND_FLAG);
	MUST(dat_ep_create_with_srq(env.ia, env.pz, b.recv, b.request, conn, srq, &attr, &b.ep));
	connect_pair(&a, &b); /* connection events on b.conn */
	srq_post(1);
	message(&a, &b); /* completions on b.recv */
	post_recvs(&a, 1);
	part = segment(&env, 0, 64);
	OK(try_send(&b, 1, 0));
	expect_dto(b.request, b.ep, 1, DAT_DTO_SUCCESS);
	OK(try_write(&b, 2, env.rkey));
	expect_dto(b.request, b.ep, 2, DAT_DTO_SUCCESS);
	OK(dat_ep_post_rdma_read(b.ep, 1, &part, cookie(3),
				 &(DAT_RMR_TRIPLET){ .virtual_address =
							     (uintptr_t)env.memory + 4096,
						     .segment_length = 64,
						     .rmr_context = env.rkey },
				 0));
	expect_dto(b.request, b.ep, 3, DAT_DTO_SUCCESS);
	MUST(dat_rmr_create(env.pz, &rmr));
	OK(dat_rmr_bind(rmr, env.lmr, &part, DAT_MEM_PRIV_REMOTE_READ_FLAG, DAT_VA_TYPE_VA, b.ep,
			(DAT_RMR_COOKIE){ .as_64 = 4 }, 0, &context));
	if (event_next(b.request, &event))
		CU_ASSERT_EQUAL(event.event_number, DAT_RMR_BIND_COMPLETION_EVENT);
	expect_quiet(b.recv);
	expect_quiet(b.conn);
	OK(dat_rmr_free(rmr));
	teardown();
}

static void test_r15(void)
{
	DAT_EP_ATTR attr = srq_attr();
	DAT_EVD_HANDLE own;
	struct end c, d, e, f;

	setup();
	srq_end_open(&c); /* with its own EVD */
	srq_end_open(&d); /* with b's EVD */
	MUST(dat_ep_free(d.ep));
	own = d.recv;
	d.recv = b.recv;
	MUST(dat_ep_create_with_srq(env.ia, env.pz, d.recv, d.request, d.conn, srq, &attr, &d.ep));
	end_open(&env, &e, NULL);
	end_open(&env, &f, NULL);
	connect_pair(&a, &b);
	connect_pair(&e, &c);
	connect_pair(&f, &d);
	srq_post(9);
	message(&f, &d);
	message(&e, &c);
	message(&a, &b);
	message(&e, &c);
	message(&f, &d);
	CU_ASSERT_EQUAL(outstanding(), 4);
	end_close(&e);
	end_close(&f);
	end_close(&c);
	d.recv = own;
	end_close(&d);
	teardown();
}

static void test_r17(void)
{
	uint32_t next[2] = { 0, 0 }, i;
	struct end c, d;

	setup();
	srq_end_open(&c);
	end_open(&env, &d, NULL);
	connect_pair(&a, &b);
	connect_pair(&d, &c);
	srq_post(16);
	for (i = 0; i < 16; i++) {
		struct end *from = i % 2 ? &d : &a;
		DAT_LMR_TRIPLET what = segment(&env, 1024 + 8 * i, 4);

		memcpy(env.memory + 1024 + 8 * i, &(uint32_t){ i / 2 }, 4);
		OK(dat_ep_post_send(from->ep, 1, &what, cookie(i), 0));
	}
	for (i = 0; i < 16; i++) {
		DAT_EVD_HANDLE evd = i % 2 ? c.recv : b.recv;
		uint32_t value = 99;
		DAT_EVENT event;
		uint64_t slot;

		if (!event_next(evd, &event))
			break;
		slot = event.event_data.dto_completion_event_data.user_cookie.as_64 - SRQ_COOKIE;
		CU_ASSERT_TRUE_FATAL(slot < 16);
		memcpy(&value, env.memory + BUFFER / 2 + 64 * slot, 4);
		CU_ASSERT_EQUAL(value, next[i % 2]);
		next[i % 2]++;
	}
	end_close(&d);
	end_close(&c);
	teardown();
}

static void test_r19(void)
{
	setup();
	srq_post(4);
	CU_ASSERT_EQUAL(available(), 4);
	start_connect(&b);
	CU_ASSERT_EQUAL(available(), 4);
	OK(dat_cr_accept(request_next(&env), a.ep, 0, NULL));
	expect(b.conn, DAT_CONNECTION_EVENT_ESTABLISHED, b.ep);
	expect(a.conn, DAT_CONNECTION_EVENT_ESTABLISHED, a.ep);
	message(&a, &b);
	CU_ASSERT_EQUAL(available(), 3);
	disconnect_pair(&a, &b);
	expect_notice(b.ep);
	CU_ASSERT_EQUAL(available(), 3);
	CU_ASSERT_EQUAL(outstanding(), 3);
	teardown();
}

static void test_r20(void)
{
	DAT_EVENT event;
	DAT_COUNT flushed = 0;

	setup();
	srq_post(5);
	connect_pair(&a, &b);
	message(&a, &b);
	message(&a, &b);
	disconnect_pair(&a, &b);
	expect_notice(b.ep);
	while (dat_evd_dequeue(b.recv, &event) == DAT_SUCCESS) {
		CU_ASSERT_EQUAL(event.event_data.dto_completion_event_data.status,
				DAT_DTO_ERR_FLUSHED);
		flushed++;
	}
	/* buffers that were not consumed are still posted, for every EP of the SRQ */
	CU_ASSERT_EQUAL(outstanding(), 3 - flushed);
	CU_ASSERT_EQUAL(available(), 3 - flushed);
	OK(dat_ep_reset(a.ep));
	OK(dat_ep_reset(b.ep));
	connect_pair(&a, &b);
	message(&a, &b);
	teardown();
}

/* ---- connecting ---- */

static void test_r38(void)
{
	DAT_RSP_HANDLE rsp;
	DAT_CONN_QUAL qual;
	DAT_EVENT event;
	struct end c, d;

	setup();
	srq_post(8);
	/* by dat_cr_accept(), and by dat_ep_connect() */
	connect_pair(&a, &b);
	message(&a, &b);
	srq_end_open(&c);
	end_open(&env, &d, NULL);
	/* by dat_ep_dup_connect(), to where a is connected */
	OK(dat_ep_dup_connect(c.ep, a.ep, DAT_TIMEOUT_INFINITE, 0, NULL, DAT_QOS_BEST_EFFORT));
	OK(dat_cr_accept(request_next(&env), d.ep, 0, NULL));
	expect(c.conn, DAT_CONNECTION_EVENT_ESTABLISHED, c.ep);
	expect(d.conn, DAT_CONNECTION_EVENT_ESTABLISHED, d.ep);
	message(&d, &c);
	disconnect_pair(&c, &d);
	expect_notice(c.ep);
	OK(dat_ep_reset(c.ep));
	OK(dat_ep_reset(d.ep));
	/* with the EP of a reserved service point */
	for (qual = env.qual + 1;
	     dat_rsp_create(env.ia, qual, c.ep, env.cr, &rsp) == E0(CONN_QUAL_IN_USE); qual++)
		;
	OK(dat_ep_connect(d.ep, env.address, qual, DAT_TIMEOUT_INFINITE, 0, NULL,
			  DAT_QOS_BEST_EFFORT, DAT_CONNECT_DEFAULT_FLAG));
	if (event_next(env.cr, &event))
		OK(dat_cr_accept(event.event_data.cr_arrival_event_data.cr_handle, DAT_HANDLE_NULL,
				 0, NULL));
	expect(c.conn, DAT_CONNECTION_EVENT_ESTABLISHED, c.ep);
	expect(d.conn, DAT_CONNECTION_EVENT_ESTABLISHED, d.ep);
	OK(dat_rsp_free(rsp));
	message(&d, &c);
	end_close(&c);
	end_close(&d);
	teardown();
}

static void test_r41(void)
{
	unsigned i;

	setup();
	srq_post(30);
	for (i = 0; i < 10; i++) {
		connect_pair(&a, &b);
		message(&a, &b);
		reset_pair();
		CU_ASSERT_EQUAL(state_of(b.ep), DAT_EP_STATE_UNCONNECTED);
		expect_quiet(b.conn);
		expect_quiet(b.recv);
	}
	/* connects again at once, in the other direction */
	start_connect(&b);
	OK(dat_cr_accept(request_next(&env), a.ep, 0, NULL));
	expect(b.conn, DAT_CONNECTION_EVENT_ESTABLISHED, b.ep);
	expect(a.conn, DAT_CONNECTION_EVENT_ESTABLISHED, a.ep);
	message(&a, &b);
	teardown();
}

/*
 * Messages arrived, then the connection ended and the device reported it; the EP is freed before
 * the consumer polls. Every buffer completes or stays posted.
 */
static void freed_with_arrivals(bool notice, bool reset)
{
	DAT_EP_HANDLE ep;
	unsigned i;

	setup();
	srq_post(8);
	connect_pair(&a, &b);
	for (i = 0; i < 3; i++) {
		OK(try_send(&a, i, DAT_COMPLETION_DEFAULT_FLAG));
		expect_dto(a.request, a.ep, i, DAT_DTO_SUCCESS);
	}
	disconnect_pair(&a, &b);
	if (notice)
		expect_notice(b.ep);
	if (reset)
		OK(dat_ep_reset(b.ep));
	ep = b.ep;
	end_free_ep(&b);
	for (i = 0; i < 3; i++)
		expect_dto(b.recv, ep, SRQ_COOKIE + i, DAT_DTO_SUCCESS);
	expect_quiet(b.recv);
	CU_ASSERT_EQUAL(outstanding(), 5);
	teardown();
}

static void test_freed_with_arrivals(void)
{
	freed_with_arrivals(true, false);
	for (unsigned i = 0; i < 20; i++)
		freed_with_arrivals(false, false);
}

static void test_reset_with_arrivals(void)
{
	freed_with_arrivals(true, true);
}

static const struct unit_test tests[] = {
	{ "R1: a handle on success, nothing on failure", test_r1 },
	{ "R2: UNCONNECTED", test_r2 },
	{ "R3: the query names the SRQ", test_r3 },
	{ "R4: the EP keeps its SRQ over resets", test_r4 },
	{ "R5: the SRQ cannot be exchanged", test_r5 },
	{ "R6: only the end of the EP frees the SRQ", test_r6 },
	{ "R7: no receive can be posted to the EP, in any state", test_r7 },
	{ "R8: receives come from the SRQ", test_r8 },
	{ "R9: the EP's PZ for what it sends and the peer reaches", test_r9 },
	{ "R10: memory of another PZ is refused locally", test_r10_local },
	{ "R10: memory of another PZ is refused remotely", test_r10_remote },
	{ "R11: receive buffers are of the SRQ's PZ", test_r11 },
	{ "R12: the EP's PZ may be another one", test_r12 },
	{ "R13: each EP of an SRQ may have its own PZ", test_r13 },
	{ "R14: each completion comes to its EVD", test_r14 },
	{ "R15: EPs may share a recv EVD or have their own", test_r15 },
	{ "R17: receives keep the order of each sender", test_r17 },
	{ "R19: buffers are taken only while connected", test_r19 },
	{ "R20: buffers that were not taken stay on the SRQ", test_r20 },
	{ "R38: connect, duplicate, accept, reserved", test_r38 },
	{ "R41: the EP can be used again after each reset", test_r41 },
	{ "messages that arrived before the EP is freed complete or stay posted",
	  test_freed_with_arrivals },
	{ "messages that arrived before the EP is reset and freed complete or stay posted",
	  test_reset_with_arrivals },
};

UNIT_MAIN("srq_rules", tests)
