/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* Behaviour that existing consumers rely on beyond the specification: connections and endpoints. */
#include <arpa/inet.h>
#include <pthread.h>
#include <string.h>
#include "test/unit/two_ends.h"
#include "test/unit/process.h"

static DAT_DTO_COOKIE cookie(uint64_t value)
{
	return (DAT_DTO_COOKIE){ .as_64 = value };
}

static DAT_RETURN connect_with(struct end *end, DAT_CONN_QUAL qual, DAT_COUNT size, void *data)
{
	return dat_ep_connect(end->ep, env.address, qual, DAT_TIMEOUT_INFINITE, size, data,
			      DAT_QOS_BEST_EFFORT, DAT_CONNECT_DEFAULT_FLAG);
}

static void expect_rejected(struct end *end)
{
	DAT_EVENT event;

	if (!event_next(end->conn, &event))
		return;
	CU_ASSERT_EQUAL(event.event_number, DAT_CONNECTION_EVENT_PEER_REJECTED);
	CU_ASSERT_PTR_EQUAL(event.event_data.connect_event_data.ep_handle, end->ep);
}

/* Consumers compare the whole status, or all of it but the class. */
static void test_bare_codes(void)
{
	DAT_PSP_HANDLE psp;
	DAT_EVENT event;
	DAT_COUNT more;
	DAT_RETURN status;

	setup();
	status = dat_psp_create(env.ia, env.qual, env.cr, DAT_PSP_CONSUMER_FLAG, &psp);
	CU_ASSERT_EQUAL(status & ~(DAT_RETURN)DAT_CLASS_ERROR, (DAT_RETURN)DAT_CONN_QUAL_IN_USE);
	CU_ASSERT_TRUE(dat_evd_wait(b.recv, 1000, 1, &event, &more) == DAT_TIMEOUT_EXPIRED);
	CU_ASSERT_TRUE(dat_evd_wait(b.recv, 0, 1, &event, &more) == DAT_TIMEOUT_EXPIRED);
	CU_ASSERT_TRUE(dat_evd_wait(b.conn, 1000, 1, &event, &more) == DAT_TIMEOUT_EXPIRED);
	CU_ASSERT_TRUE(dat_evd_dequeue(b.recv, &event) == DAT_QUEUE_EMPTY);
	teardown();
}

static bool is_connected(void *arg)
{
	return state_of(((struct end *)arg)->ep) == DAT_EP_STATE_CONNECTED;
}

/*
 * The passive side learns that it is connected from its state or from the peer, not from its event.
 */
static void test_write_after_accept(void)
{
	setup();
	start_connect(&a);
	MUST(dat_cr_accept(request_next(&env), b.ep, 0, NULL));
	CU_ASSERT_TRUE_FATAL(unit_wait_for(is_connected, &b, PATIENCE / 1000));
	memset(env.memory, 5, 64);
	memset(env.memory + 4096, 0, 64);
	OK(try_write(&b, 1, env.rkey));
	expect_dto(b.request, b.ep, 1, DAT_DTO_SUCCESS);
	CU_ASSERT_EQUAL(memcmp(env.memory, env.memory + 4096, 64), 0);
	expect(b.conn, DAT_CONNECTION_EVENT_ESTABLISHED, b.ep);
	expect(a.conn, DAT_CONNECTION_EVENT_ESTABLISHED, a.ep);
	teardown();
}

static void *disconnect_end(void *arg)
{
	struct end *end = arg;

	OK(dat_ep_disconnect(end->ep, DAT_CLOSE_ABRUPT_FLAG));
	return NULL;
}

static void test_one_end(void)
{
	pthread_t thread;
	unsigned i;

	setup();
	for (i = 0; i < 60; i++) {
		connect_pair(&a, &b);
		if (i % 3 == 2) { /* both ends disconnect at the same time */
			CU_ASSERT_EQUAL_FATAL(pthread_create(&thread, NULL, disconnect_end, &a), 0);
			disconnect_end(&b);
			pthread_join(thread, NULL);
		} else {
			disconnect_end(i % 3 ? &a : &b);
		}
		expect(a.conn, DAT_CONNECTION_EVENT_DISCONNECTED, a.ep);
		expect(b.conn, DAT_CONNECTION_EVENT_DISCONNECTED, b.ep);
		OK(dat_ep_disconnect(a.ep, DAT_CLOSE_ABRUPT_FLAG));
		OK(dat_ep_disconnect(b.ep, DAT_CLOSE_GRACEFUL_FLAG));
		OK(dat_ep_reset(a.ep));
		OK(dat_ep_reset(b.ep));
		expect_quiet(a.conn);
		expect_quiet(b.conn);
	}
	teardown();
}

static void test_private_data_stays(void)
{
	char first[48], second[48];
	DAT_CR_PARAM cr1, cr2;
	DAT_CR_HANDLE request1, request2;
	const char *answer;
	struct end c, d;
	DAT_EVENT event, later;

	setup();
	end_open(&env, &c, NULL);
	end_open(&env, &d, NULL);
	memset(first, 1, sizeof(first));
	memset(second, 2, sizeof(second));
	OK(connect_with(&a, env.qual, sizeof(first), first));
	request1 = request_next(&env);
	MUST(dat_cr_query(request1, DAT_CR_FIELD_ALL, &cr1));
	OK(connect_with(&c, env.qual, sizeof(second), second));
	request2 = request_next(&env);
	MUST(dat_cr_query(request2, DAT_CR_FIELD_ALL, &cr2));
	/* the private data is still there; the consumer may write to it and pass it back */
	CU_ASSERT_EQUAL(memcmp(cr1.private_data, first, sizeof(first)), 0);
	CU_ASSERT_EQUAL(memcmp(cr2.private_data, second, sizeof(second)), 0);
	((char *)cr1.private_data)[0] = 9;
	OK(dat_cr_accept(request1, b.ep, sizeof(first), cr1.private_data));
	CU_ASSERT_EQUAL(memcmp(cr2.private_data, second, sizeof(second)), 0);
	OK(dat_cr_accept(request2, d.ep, sizeof(second), cr2.private_data));
	CU_ASSERT_TRUE_FATAL(event_next(a.conn, &event));
	CU_ASSERT_EQUAL(event.event_number, DAT_CONNECTION_EVENT_ESTABLISHED);
	CU_ASSERT_TRUE_FATAL(event_next(c.conn, &later));
	answer = event.event_data.connect_event_data.private_data;
	first[0] = 9;
	CU_ASSERT_EQUAL(memcmp(answer, first, sizeof(first)), 0);
	CU_ASSERT_EQUAL(memcmp(later.event_data.connect_event_data.private_data, second,
			       sizeof(second)),
			0);
	expect(b.conn, DAT_CONNECTION_EVENT_ESTABLISHED, b.ep);
	expect(d.conn, DAT_CONNECTION_EVENT_ESTABLISHED, d.ep);
	end_close(&c);
	end_close(&d);
	teardown();
}

static void private_data_passes(DAT_COUNT size)
{
	char there[48], back[48];
	DAT_CR_HANDLE request;
	DAT_CR_PARAM cr;
	DAT_EVENT event;

	memset(there, (int)size, sizeof(there));
	memset(back, (int)size + 100, sizeof(back));
	OK(connect_with(&a, env.qual, size, there));
	request = request_next(&env);
	MUST(dat_cr_query(request, DAT_CR_FIELD_ALL, &cr));
	CU_ASSERT_TRUE_FATAL(cr.private_data_size >= size);
	CU_ASSERT_EQUAL(memcmp(cr.private_data, there, (size_t)size), 0);
	OK(dat_cr_accept(request, b.ep, size, back));
	CU_ASSERT_TRUE_FATAL(event_next(a.conn, &event));
	CU_ASSERT_TRUE_FATAL(event.event_data.connect_event_data.private_data_size >= size);
	CU_ASSERT_EQUAL(memcmp(event.event_data.connect_event_data.private_data, back,
			       (size_t)size),
			0);
	expect(b.conn, DAT_CONNECTION_EVENT_ESTABLISHED, b.ep); /* size 0 */
	disconnect_pair(&a, &b);
	OK(dat_ep_reset(a.ep));
	OK(dat_ep_reset(b.ep));
}

static void test_private_data_sizes(void)
{
	setup();
	private_data_passes(4);
	private_data_passes(24);
	private_data_passes(32);
	private_data_passes(48);
	connect_pair(&a, &b); /* neither event has private data */
	teardown();
}

static void expect_request(DAT_EVD_HANDLE evd, DAT_CONN_QUAL qual, DAT_PSP_HANDLE psp)
{
	DAT_EVENT event;

	if (!event_next(evd, &event))
		return;
	CU_ASSERT_EQUAL(event.event_data.cr_arrival_event_data.conn_qual, qual);
	CU_ASSERT_PTR_EQUAL(event.event_data.cr_arrival_event_data.sp_handle.psp_handle, psp);
	OK(dat_cr_reject(event.event_data.cr_arrival_event_data.cr_handle, 0, NULL));
}

static void test_wide_qualifiers(void)
{
	DAT_CONN_QUAL quals[3];
	DAT_PSP_HANDLE psps[3];
	unsigned i, tries = 0;

	setup();
	/* derived from the process id, because another copy of the test may run */
	quals[0] = 0xfedcba9800000000u + (DAT_CONN_QUAL)getpid() * 64;
	for (i = 0; i < 3; i++) {
		DAT_RETURN status;

		if (i)
			quals[i] = quals[i - 1] + 0x100000001u;
		while ((status = dat_psp_create(env.ia, quals[i], env.cr, 0, &psps[i])) ==
			       E0(CONN_QUAL_IN_USE) &&
		       ++tries < 1000)
			quals[i] += 3;
		CU_ASSERT_EQUAL_FATAL(status, DAT_SUCCESS);
	}
	for (i = 0; i < 3; i++) {
		OK(connect_with(&a, quals[i], 0, NULL));
		expect_request(env.cr, quals[i], psps[i]);
		expect_rejected(&a);
		OK(dat_ep_reset(a.ep));
	}
	for (i = 0; i < 3; i++)
		OK(dat_psp_free(psps[i]));
	teardown();
}

static void test_own_ia(void)
{
	setup();
	connect_pair(&a, &b);
	message_passes(&a, &b);
	disconnect_pair(&a, &b);
	teardown();
}

/* Connects in a child to the qualifier that it receives, at this host's address. */
static int connect_from_child(int fd, void *arg)
{
	uint64_t qual;

	(void)arg;
	if (!process_hear(fd, &qual))
		return 1;
	env_open(&env);
	env.qual = qual;
	end_open(&env, &a, NULL);
	start_connect(&a);
	expect(a.conn, DAT_CONNECTION_EVENT_ESTABLISHED, a.ep);
	OK(try_send(&a, 1, 0));
	expect_dto(a.request, a.ep, 1, DAT_DTO_SUCCESS);
	process_sync(fd);
	end_close(&a);
	env_close(&env);
	return CU_get_number_of_failures() ? 2 : 0;
}

static void test_other_process(void)
{
	struct process child;

	if (PROCESS_TSAN)
		return;
	CU_ASSERT_TRUE_FATAL(process_start(&child, connect_from_child, NULL));
	env_open(&env);
	env_listen(&env);
	end_open(&env, &b, NULL);
	post_recvs(&b, 1);
	process_say(child.fd, env.qual);
	MUST(dat_cr_accept(request_next(&env), b.ep, 0, NULL));
	expect(b.conn, DAT_CONNECTION_EVENT_ESTABLISHED, b.ep);
	expect_dto(b.recv, b.ep, 0, DAT_DTO_SUCCESS);
	process_say(child.fd, 1);
	CU_ASSERT_EQUAL(process_end(&child), 0);
	expect(b.conn, DAT_CONNECTION_EVENT_DISCONNECTED, b.ep);
	end_close(&b);
	env_close(&env);
}

static void test_reset(void)
{
	unsigned i;

	setup();
	post_recvs(&a, 3);
	start_connect(&a);
	OK(dat_cr_reject(request_next(&env), 0, NULL));
	expect_rejected(&a);
	OK(dat_ep_reset(a.ep));
	for (i = 0; i < 3; i++)
		expect_dto(a.recv, a.ep, i, DAT_DTO_ERR_FLUSHED);
	connect_pair(&a, &b);
	post_recvs(&b, 3);
	disconnect_pair(&a, &b);
	OK(dat_ep_reset(a.ep));
	OK(dat_ep_reset(b.ep));
	for (i = 0; i < 3; i++)
		expect_dto(b.recv, b.ep, i, DAT_DTO_ERR_FLUSHED);
	connect_pair(&a, &b);
	message_passes(&a, &b);
	teardown();
}

static void test_busy_accept(void)
{
	DAT_CR_HANDLE request;
	struct end c;

	setup();
	end_open(&env, &c, NULL);
	connect_pair(&a, &b);
	start_connect(&c);
	request = request_next(&env);
	CU_ASSERT_EQUAL(DAT_GET_TYPE(dat_cr_accept(request, b.ep, 0, NULL)), DAT_INVALID_STATE);
	message_passes(&a, &b); /* the connection is unaffected */
	OK(dat_cr_reject(request, 0, NULL));
	expect_rejected(&c);
	end_close(&c);
	teardown();
}

static void test_defaults(void)
{
	DAT_EP_PARAM param, again;
	DAT_EP_HANDLE ep;

	setup();
	MUST(dat_ep_query(a.ep, DAT_EP_FIELD_ALL, &param));
	CU_ASSERT_EQUAL(param.ep_state, DAT_EP_STATE_UNCONNECTED);
	CU_ASSERT_TRUE(param.ep_attr.max_recv_dtos >= 16);
	CU_ASSERT_TRUE(param.ep_attr.max_request_dtos >= 16);
	CU_ASSERT_TRUE(param.ep_attr.max_rdma_read_in >= 1);
	CU_ASSERT_TRUE(param.ep_attr.max_rdma_read_out >= 1);
	/* the queried attributes can be changed and passed back */
	param.ep_attr.max_recv_dtos = 100;
	param.ep_attr.max_request_dtos = 50;
	MUST(dat_ep_create(env.ia, env.pz, a.recv, a.request, a.conn, &param.ep_attr, &ep));
	MUST(dat_ep_query(ep, DAT_EP_FIELD_ALL, &again));
	CU_ASSERT_TRUE(again.ep_attr.max_recv_dtos >= 100);
	CU_ASSERT_TRUE(again.ep_attr.max_request_dtos >= 50);
	OK(dat_ep_free(ep));
	/* with default flags each post completes with an event */
	connect_pair(&a, &b);
	message_passes(&a, &b);
	teardown();
}

static void test_zero_iov(void)
{
	DAT_EP_ATTR attr = { .max_recv_dtos = 4,
			     .max_request_dtos = 4,
			     .max_recv_iov = 1,
			     .max_request_iov = 1,
			     .max_rdma_read_in = 1,
			     .max_rdma_read_out = 1 };
	DAT_LMR_TRIPLET local;
	DAT_RMR_TRIPLET remote;

	env_open(&env);
	env_listen(&env);
	end_open(&env, &a, &attr);
	end_open(&env, &b, &attr);
	connect_pair(&a, &b);
	local = segment(&env, 0, 64);
	remote = (DAT_RMR_TRIPLET){ .virtual_address = (uintptr_t)env.memory + 4096,
				    .segment_length = 64,
				    .rmr_context = env.rkey };
	OK(dat_ep_post_rdma_write(a.ep, 1, &local, cookie(1), &remote, 0));
	expect_dto(a.request, a.ep, 1, DAT_DTO_SUCCESS);
	OK(dat_ep_post_rdma_read(a.ep, 1, &local, cookie(2), &remote, 0));
	expect_dto(a.request, a.ep, 2, DAT_DTO_SUCCESS);
	teardown();
}

static bool is_ours(const void *address)
{
	const struct sockaddr_in *in = address;

	return in && in->sin_family == AF_INET &&
	       in->sin_addr.s_addr == ((const struct sockaddr_in *)env.address)->sin_addr.s_addr;
}

static void test_addresses(void)
{
	DAT_EP_PARAM near, there;

	setup();
	connect_pair(&a, &b);
	MUST(dat_ep_query(a.ep, DAT_EP_FIELD_ALL, &near));
	MUST(dat_ep_query(b.ep, DAT_EP_FIELD_ALL, &there));
	CU_ASSERT_TRUE(is_ours(near.local_ia_address_ptr));
	CU_ASSERT_TRUE(is_ours(near.remote_ia_address_ptr));
	CU_ASSERT_TRUE(is_ours(there.local_ia_address_ptr));
	CU_ASSERT_TRUE(is_ours(there.remote_ia_address_ptr));
	CU_ASSERT_EQUAL(near.remote_port_qual, env.qual);
	CU_ASSERT_EQUAL(near.local_port_qual, there.remote_port_qual);
	teardown();
}

static void test_sockaddr(void)
{
	struct sockaddr_in copy;

	setup();
	memcpy(&copy, env.address, 16);
	CU_ASSERT_EQUAL(copy.sin_family, AF_INET);
	CU_ASSERT_EQUAL(copy.sin_addr.s_addr, htonl(INADDR_LOOPBACK));
	/* the port in the IA address is ignored, even if it is in use */
	((struct sockaddr_in *)env.address)->sin_port = htons((uint16_t)env.qual);
	connect_pair(&a, &b);
	disconnect_pair(&a, &b);
	OK(dat_ep_reset(a.ep));
	OK(dat_ep_reset(b.ep));
	copy.sin_port = htons(2);
	MUST(dat_ep_connect(a.ep, (DAT_IA_ADDRESS_PTR)&copy, env.qual, DAT_TIMEOUT_INFINITE, 0,
			    NULL, DAT_QOS_BEST_EFFORT, DAT_CONNECT_DEFAULT_FLAG));
	memset(&copy, 0xff, sizeof(copy));
	OK(dat_cr_accept(request_next(&env), b.ep, 0, NULL));
	expect(a.conn, DAT_CONNECTION_EVENT_ESTABLISHED, a.ep);
	expect(b.conn, DAT_CONNECTION_EVENT_ESTABLISHED, b.ep);
	teardown();
}

static const struct unit_test tests[] = {
	{ "C16: to a service point of another process", test_other_process },
	{ "C6: CONN_QUAL_IN_USE and TIMEOUT_EXPIRED without a subtype", test_bare_codes },
	{ "C11: the passive side writes before it took ESTABLISHED", test_write_after_accept },
	{ "C12: one DISCONNECTED for each endpoint, whichever side began", test_one_end },
	{ "C13: private data stays valid, and can be passed back", test_private_data_stays },
	{ "C14: private data of 4, 24, 32, 48 bytes, and none", test_private_data_sizes },
	{ "C15: qualifiers have 64 bits, and each is distinct", test_wide_qualifiers },
	{ "C16: to a service point of the same IA", test_own_ia },
	{ "C17: after a reject or a disconnect the EP can be reset; flushes stay queued",
	  test_reset },
	{ "C18: accept on a busy endpoint leaves the request", test_busy_accept },
	{ "C22: default attributes are usable, and can be changed and passed back", test_defaults },
	{ "C23: read and write iov of 0", test_zero_iov },
	{ "C31: a connected endpoint has usable addresses", test_addresses },
	{ "C32: an IA address is a sockaddr_in, its port is the consumer's", test_sockaddr },
};

UNIT_MAIN("consumer_cm", tests)
