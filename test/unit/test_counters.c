/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* Counters over the software device: the checks, what is counted, reset, and the printed form. */
#include <dat2/dat_ib_extensions.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include "test/unit/two_ends.h"

#define ROUNDS 200

static void setup_connected(void)
{
	setup();
	connect_pair(&a, &b);
}

static uint64_t counter(DAT_HANDLE handle, int which)
{
	DAT_UINT64 out[DCNT_IA_ALL_COUNTERS];

	memset(out, 0xee, sizeof(out));
	MUST(dat_ib_query_counters(handle, which, out, 0));
	return out[which];
}

static void test_checks(void)
{
	DAT_UINT64 out[DCNT_IA_ALL_COUNTERS];

	setup_connected();
	IS(dat_ib_query_counters(env.pz, 0, out, 0), E0(INVALID_HANDLE));
	IS(dat_ib_print_counters(env.lmr, 0, 0), E0(INVALID_HANDLE));
	IS(dat_ib_query_counters(a.ep, -1, out, 0), E(INVALID_PARAMETER, INVALID_ARG2));
	IS(dat_ib_query_counters(a.ep, DCNT_EP_ALL_COUNTERS + 1, out, 0),
	   E(INVALID_PARAMETER, INVALID_ARG2));
	IS(dat_ib_print_counters(a.recv, DCNT_EVD_ALL_COUNTERS + 1, 0),
	   E(INVALID_PARAMETER, INVALID_ARG2));
	IS(dat_ib_query_counters(env.ia, 0, NULL, 0), E(INVALID_PARAMETER, INVALID_ARG3));
	teardown();
}

static void test_one_and_all(void)
{
	DAT_UINT64 out[DCNT_EP_ALL_COUNTERS + 1];
	int i;

	setup_connected();
	memset(out, 0xee, sizeof(out));
	MUST(dat_ib_query_counters(a.ep, DCNT_EP_CONNECT, out, 0));
	CU_ASSERT_EQUAL(out[DCNT_EP_CONNECT], 1);
	for (i = 1; i <= DCNT_EP_ALL_COUNTERS; i++)
		CU_ASSERT_EQUAL(out[i], 0xeeeeeeeeeeeeeeee);
	MUST(dat_ib_query_counters(a.ep, DCNT_EP_ALL_COUNTERS, out, 0));
	CU_ASSERT_EQUAL(out[DCNT_EP_CONNECT], 1);
	CU_ASSERT_EQUAL(out[DCNT_EP_POST_SEND], 0);
	CU_ASSERT_EQUAL(out[DCNT_EP_ALL_COUNTERS], 0xeeeeeeeeeeeeeeee);
	teardown();
}

static void test_objects_and_connections(void)
{
	DAT_PZ_HANDLE pz;

	setup_connected();
	CU_ASSERT_EQUAL(counter(env.ia, DCNT_IA_EP_CREATE), 2);
	CU_ASSERT_EQUAL(counter(env.ia, DCNT_IA_LMR_CREATE), 1);
	CU_ASSERT_EQUAL(counter(env.ia, DCNT_IA_CM_LISTEN), 1);
	CU_ASSERT_EQUAL(counter(env.ia, DCNT_IA_SP_CR), 1);
	CU_ASSERT_EQUAL(counter(env.ia, DCNT_IA_SP_CR_ACCEPTED), 1);
	CU_ASSERT_EQUAL(counter(env.ia, DCNT_IA_SP_CR_REJECTED), 0);
	CU_ASSERT_EQUAL(counter(env.ia, DCNT_IA_CM_REQ_TX), 1);
	CU_ASSERT_EQUAL(counter(env.ia, DCNT_IA_CM_REQ_RX), 1);
	CU_ASSERT_EQUAL(counter(env.ia, DCNT_IA_CM_ACTIVE_EST), 1);
	CU_ASSERT_EQUAL(counter(env.ia, DCNT_IA_CM_PASSIVE_EST), 1);
	MUST(dat_pz_create(env.ia, &pz));
	MUST(dat_pz_free(pz));
	CU_ASSERT_EQUAL(counter(env.ia, DCNT_IA_PZ_CREATE), 2);
	CU_ASSERT_EQUAL(counter(env.ia, DCNT_IA_PZ_FREE), 1);
	CU_ASSERT_EQUAL(counter(a.conn, DCNT_EVD_CONN_CALLBACK), 1);
	disconnect_pair(&a, &b);
	CU_ASSERT_EQUAL(counter(a.ep, DCNT_EP_DISCONNECT), 1);
	CU_ASSERT_EQUAL(counter(env.ia, DCNT_IA_CM_DREQ_TX), 1);
	CU_ASSERT_EQUAL(counter(env.ia, DCNT_IA_CM_DREQ_RX), 1);
	teardown();
}

static void *sender(void *arg)
{
	DAT_LMR_TRIPLET from = segment(&env, 0, 10);
	struct end *end = arg;
	int i;

	for (i = 0; i < ROUNDS; i++) {
		MUST(dat_ep_post_send(end->ep, 1, &from, (DAT_DTO_COOKIE){ .as_64 = 1 }, 0));
		expect_dto(end->request, end->ep, 1, DAT_DTO_SUCCESS);
	}
	return NULL;
}

static void *receiver(void *arg)
{
	DAT_LMR_TRIPLET to = segment(&env, 4096, 64);
	struct end *end = arg;
	int i;

	for (i = 0; i < ROUNDS; i++) {
		MUST(dat_ep_post_recv(end->ep, 1, &to, (DAT_DTO_COOKIE){ .as_64 = 2 }, 0));
		expect_dto(end->recv, end->ep, 2, DAT_DTO_SUCCESS);
	}
	return NULL;
}

static void test_data(void)
{
	pthread_t thread;

	setup_connected();
	CU_ASSERT_EQUAL_FATAL(pthread_create(&thread, NULL, receiver, &b), 0);
	sender(&a);
	pthread_join(thread, NULL);
	CU_ASSERT_EQUAL(counter(a.ep, DCNT_EP_POST_SEND), ROUNDS);
	CU_ASSERT_EQUAL(counter(a.ep, DCNT_EP_POST_SEND_DATA), 10 * ROUNDS);
	CU_ASSERT_EQUAL(counter(b.ep, DCNT_EP_POST_RECV), ROUNDS);
	CU_ASSERT_EQUAL(counter(b.ep, DCNT_EP_POST_RECV_DATA), 64 * ROUNDS);
	CU_ASSERT_EQUAL(counter(b.ep, DCNT_EP_RECV), ROUNDS);
	CU_ASSERT_EQUAL(counter(b.ep, DCNT_EP_RECV_DATA), 10 * ROUNDS);
	CU_ASSERT_EQUAL(counter(b.ep, DCNT_EP_POST_SEND), 0);
	teardown();
}

static void test_evd(void)
{
	DAT_UINT64 out[DCNT_EVD_ALL_COUNTERS];
	DAT_EVENT event;

	setup_connected();
	MUST(dat_ib_query_counters(a.request, DCNT_EVD_ALL_COUNTERS, out, 1));
	IS(dat_evd_dequeue(a.request, &event), DAT_QUEUE_EMPTY);
	IS(dat_evd_dequeue(a.request, &event), DAT_QUEUE_EMPTY);
	MUST(try_write(&a, 1, env.rkey));
	while (dat_evd_dequeue(a.request, &event) != DAT_SUCCESS)
		;
	MUST(dat_ib_query_counters(a.request, DCNT_EVD_ALL_COUNTERS, out, 0));
	CU_ASSERT_EQUAL(out[DCNT_EVD_DEQUEUE_FOUND], 1);
	CU_ASSERT_TRUE(out[DCNT_EVD_DEQUEUE_NOT_FOUND] >= 2);
	CU_ASSERT_EQUAL(out[DCNT_EVD_DEQUEUE],
			out[DCNT_EVD_DEQUEUE_FOUND] + out[DCNT_EVD_DEQUEUE_NOT_FOUND]);
	CU_ASSERT_TRUE(out[DCNT_EVD_DEQUEUE_POLL] >= 3);
	CU_ASSERT_EQUAL(out[DCNT_EVD_DEQUEUE_POLL_FOUND], 1);
	CU_ASSERT_EQUAL(out[DCNT_EVD_WAIT], 0);
	teardown();
}

static void test_reset(void)
{
	DAT_UINT64 out[DCNT_EP_ALL_COUNTERS];

	setup_connected();
	MUST(dat_ib_query_counters(a.ep, DCNT_EP_CONNECT, out, 1));
	CU_ASSERT_EQUAL(out[DCNT_EP_CONNECT], 1);
	CU_ASSERT_EQUAL(counter(a.ep, DCNT_EP_CONNECT), 0);
	teardown();
}

static void test_printed_form(void)
{
	char line[512] = "", host[256] = "", expected[512];
	int saved, pipes[2];
	ssize_t size;

	setup_connected();
	CU_ASSERT_EQUAL_FATAL(pipe(pipes), 0);
	fflush(stdout);
	saved = dup(STDOUT_FILENO);
	dup2(pipes[1], STDOUT_FILENO);
	OK(dat_ib_print_counters(a.ep, DCNT_EP_CONNECT, 0));
	fflush(stdout);
	dup2(saved, STDOUT_FILENO);
	size = read(pipes[0], line, sizeof(line) - 1);
	CU_ASSERT_TRUE(size > 0);
	gethostname(host, sizeof(host) - 1);
	snprintf(expected, sizeof(expected), " %s:0x%x: DCNT_EP_CONNECT = 1 \n", host,
		 (unsigned)getpid());
	CU_ASSERT_STRING_EQUAL(line, expected);
	close(pipes[0]);
	close(pipes[1]);
	close(saved);
	teardown();
}

static const struct unit_test tests[] = {
	{ "each check", test_checks },
	{ "one counter and all counters can be read", test_one_and_all },
	{ "objects and connections are counted", test_objects_and_connections },
	{ "data of two threads are counted exactly", test_data },
	{ "an EVD", test_evd },
	{ "reset", test_reset },
	{ "counters are printed with their names", test_printed_form },
};

UNIT_MAIN("counters", tests)
