/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* Common service points, and endpoints that connect to them. */
#include <string.h>
#include "test/unit/ep_util.h"

static struct env env;
static struct end a, b;
static DAT_CSP_HANDLE csp;
static DAT_COMM comm;
static struct sockaddr_in where; /* the CSP's address */

static DAT_RETURN listen_at(uint16_t port)
{
	where.sin_port = htons(port);
	return dat_csp_create(env.ia, &comm, (DAT_IA_ADDRESS_PTR)&where, env.cr, &csp);
}

static void setup(void)
{
	DAT_CSP_PARAM param;

	env_open(&env);
	end_open(&env, &a, NULL);
	end_open(&env, &b, NULL);
	comm = (DAT_COMM){ .domain = AF_INET, .type = SOCK_STREAM };
	memcpy(&where, env.address, sizeof(where));
	MUST(listen_at(0));
	MUST(dat_csp_query(csp, DAT_CSP_FIELD_ALL, &param));
	memcpy(&where, param.address_ptr, sizeof(where));
}

static void teardown(void)
{
	OK(dat_csp_free(csp));
	end_close(&a);
	end_close(&b);
	env_close(&env);
}

static DAT_RETURN try_common(struct end *end, DAT_COUNT size, const void *data)
{
	return dat_ep_common_connect(end->ep, (DAT_IA_ADDRESS_PTR)&where, DAT_TIMEOUT_INFINITE,
				     size, (DAT_PVOID)(uintptr_t)data);
}

static DAT_CR_HANDLE common_request(void)
{
	DAT_CR_ARRIVAL_EVENT_DATA *data;
	DAT_EVENT event;

	CU_ASSERT_TRUE_FATAL(event_next(env.cr, &event));
	CU_ASSERT_EQUAL_FATAL(event.event_number, DAT_CONNECTION_REQUEST_EVENT);
	data = &event.event_data.cr_arrival_event_data;
	CU_ASSERT_PTR_EQUAL(data->sp_handle.csp_handle, csp);
	CU_ASSERT_EQUAL(data->conn_qual, ntohs(where.sin_port));
	CU_ASSERT_EQUAL(data->truncate_flag, DAT_FALSE);
	return data->cr_handle;
}

static void test_arguments(void)
{
	struct sockaddr_in other;
	DAT_CSP_HANDLE none;
	DAT_COMM bad;
	DAT_IA_ADDRESS_PTR to = (DAT_IA_ADDRESS_PTR)&other;

	setup();
	none = env.cr;
	other = where;
	IS(dat_csp_create(a.ep, NULL, NULL, a.ep, NULL), E(INVALID_HANDLE, INVALID_HANDLE_IA));
	IS(dat_csp_create(env.ia, NULL, NULL, a.conn, NULL),
	   E(INVALID_HANDLE, INVALID_HANDLE_EVD_CR));
	IS(dat_csp_create(env.ia, NULL, NULL, env.cr, NULL), E(INVALID_PARAMETER, INVALID_ARG5));
	IS(dat_csp_create(env.ia, NULL, NULL, env.cr, &none), E(INVALID_PARAMETER, INVALID_ARG2));
	bad = (DAT_COMM){ .domain = AF_INET, .type = SOCK_DGRAM };
	IS(dat_csp_create(env.ia, &bad, NULL, env.cr, &none), E(INVALID_PARAMETER, INVALID_ARG3));
	IS(dat_csp_create(env.ia, &bad, to, env.cr, &none), E0(MODEL_NOT_SUPPORTED));
	bad = (DAT_COMM){ .domain = AF_UNIX, .type = SOCK_STREAM };
	IS(dat_csp_create(env.ia, &bad, to, env.cr, &none), E0(MODEL_NOT_SUPPORTED));
	bad = (DAT_COMM){ .domain = AF_INET, .type = SOCK_STREAM, .protocol = IPPROTO_UDP };
	IS(dat_csp_create(env.ia, &bad, to, env.cr, &none), E0(MODEL_NOT_SUPPORTED));
	bad = (DAT_COMM){ .domain = AF_INET6, .type = SOCK_STREAM };
	IS(dat_csp_create(env.ia, &bad, to, env.cr, &none),
	   E(INVALID_ADDRESS, INVALID_ADDRESS_MALFORMED));
	other.sin_addr.s_addr = htonl(0xc0000201); /* of the documentation prefix */
	IS(dat_csp_create(env.ia, &comm, to, env.cr, &none),
	   E(INVALID_ADDRESS, INVALID_ADDRESS_UNREACHABLE));
	IS(dat_csp_create(env.ia, &comm, (DAT_IA_ADDRESS_PTR)&where, env.cr, &none),
	   E0(CONN_QUAL_IN_USE));
	CU_ASSERT_PTR_EQUAL(none, env.cr);
	teardown();
}

static void test_query(void)
{
	DAT_CSP_PARAM param;
	DAT_CSP_HANDLE gone;

	setup();
	IS(dat_csp_query(a.ep, DAT_CSP_FIELD_ALL, &param), E(INVALID_HANDLE, INVALID_HANDLE_CSP));
	IS(dat_csp_query(csp, DAT_CSP_FIELD_ALL, NULL), E(INVALID_PARAMETER, INVALID_ARG3));
	IS(dat_csp_query(csp, (DAT_CSP_PARAM_MASK)0x10, &param),
	   E(INVALID_PARAMETER, INVALID_ARG2));
	OK(dat_csp_query(csp, DAT_CSP_FIELD_ALL, &param));
	CU_ASSERT_PTR_EQUAL(param.ia_handle, env.ia);
	CU_ASSERT_PTR_EQUAL(param.evd_handle, env.cr);
	CU_ASSERT_EQUAL(param.comm->domain, AF_INET);
	CU_ASSERT_EQUAL(param.comm->type, SOCK_STREAM);
	CU_ASSERT_NOT_EQUAL(where.sin_port, 0);
	gone = csp;
	OK(dat_csp_free(csp));
	IS(dat_csp_free(gone), E(INVALID_HANDLE, INVALID_HANDLE_CSP));
	/* the port can be used again at once; the wildcard address stands for the IA's */
	comm.protocol = IPPROTO_TCP;
	where.sin_addr.s_addr = htonl(INADDR_ANY);
	MUST(listen_at(ntohs(where.sin_port)));
	teardown();
}

static void test_connect(void)
{
	DAT_EP_PARAM active, passive;
	DAT_CR_PARAM request;
	DAT_CR_HANDLE cr;

	setup();
	OK(try_common(&a, 3, "hey"));
	cr = common_request();
	OK(dat_cr_query(cr, DAT_CR_FIELD_ALL, &request));
	CU_ASSERT_EQUAL(memcmp(request.private_data, "hey", 3), 0);
	OK(dat_cr_accept(cr, b.ep, 0, NULL));
	expect(a.conn, DAT_CONNECTION_EVENT_ESTABLISHED, a.ep);
	expect(b.conn, DAT_CONNECTION_EVENT_ESTABLISHED, b.ep);
	OK(dat_ep_query(a.ep, DAT_EP_FIELD_ALL, &active));
	OK(dat_ep_query(b.ep, DAT_EP_FIELD_ALL, &passive));
	CU_ASSERT_EQUAL(active.remote_port_qual, ntohs(where.sin_port));
	CU_ASSERT_EQUAL(passive.local_port_qual, ntohs(where.sin_port));
	CU_ASSERT_EQUAL(active.comm.domain, AF_INET);
	CU_ASSERT_EQUAL(active.comm.type, SOCK_STREAM);
	CU_ASSERT_EQUAL(passive.comm.domain, AF_INET);
	disconnect_pair(&a, &b);
	OK(dat_ep_reset(a.ep));
	OK(dat_ep_query(a.ep, DAT_EP_FIELD_ALL, &active));
	CU_ASSERT_EQUAL(active.comm.domain, 0);
	teardown();
}

/* A qualifier up to 65535 is its port, so CSPs and PSPs can be reached in either way. */
static void test_qualifier(void)
{
	struct end c, d;
	DAT_EVENT event;

	setup();
	end_open(&env, &c, NULL);
	end_open(&env, &d, NULL);
	OK(dat_ep_connect(a.ep, env.address, ntohs(where.sin_port), DAT_TIMEOUT_INFINITE, 0, NULL,
			  0, 0));
	OK(dat_cr_accept(common_request(), b.ep, 0, NULL));
	expect(a.conn, DAT_CONNECTION_EVENT_ESTABLISHED, a.ep);
	expect(b.conn, DAT_CONNECTION_EVENT_ESTABLISHED, b.ep);
	/* an EP can also duplicate a connection that was made by address */
	OK(dat_ep_dup_connect(c.ep, a.ep, DAT_TIMEOUT_INFINITE, 0, NULL, 0));
	OK(dat_cr_reject(common_request(), 0, NULL));
	if (event_next(c.conn, &event))
		CU_ASSERT_EQUAL(event.event_number, DAT_CONNECTION_EVENT_PEER_REJECTED);
	env_listen(&env);
	where.sin_port = htons((uint16_t)env.qual);
	OK(try_common(&d, 0, NULL));
	OK(dat_cr_reject(request_next(&env), 0, NULL));
	if (event_next(d.conn, &event))
		CU_ASSERT_EQUAL(event.event_number, DAT_CONNECTION_EVENT_PEER_REJECTED);
	disconnect_pair(&a, &b);
	end_close(&c);
	end_close(&d);
	teardown();
}

static void test_connect_arguments(void)
{
	struct sockaddr_in6 v6 = { .sin6_family = AF_INET6,
				   .sin6_addr = IN6ADDR_LOOPBACK_INIT,
				   .sin6_port = htons(1) };
	DAT_IA_ADDRESS_PTR to = (DAT_IA_ADDRESS_PTR)&where;
	struct sockaddr_in kept;
	DAT_EP_HANDLE deaf;
	char data[57] = "";

	setup();
	kept = where;
	MUST(dat_ep_create(env.ia, env.pz, a.recv, a.request, DAT_HANDLE_NULL, NULL, &deaf));
	IS(dat_ep_common_connect(a.conn, NULL, 0, -1, NULL), E(INVALID_PARAMETER, INVALID_ARG2));
	IS(dat_ep_common_connect(a.conn, to, 0, -1, NULL), E(INVALID_HANDLE, INVALID_HANDLE_EP));
	IS(dat_ep_common_connect(deaf, to, 0, -1, NULL),
	   E(INVALID_HANDLE, INVALID_HANDLE_EVD_CONN));
	IS(dat_ep_common_connect(a.ep, to, 0, -1, NULL), E(INVALID_PARAMETER, INVALID_ARG3));
	where.sin_family = AF_UNIX;
	IS(try_common(&a, -1, NULL), E(INVALID_ADDRESS, INVALID_ADDRESS_UNSUPPORTED));
	where = kept;
	where.sin_addr.s_addr = htonl(INADDR_BROADCAST);
	IS(try_common(&a, -1, NULL), E(INVALID_ADDRESS, INVALID_ADDRESS_UNSUPPORTED));
	IS(dat_ep_common_connect(a.ep, (DAT_IA_ADDRESS_PTR)&v6, 1, -1, NULL),
	   E(INVALID_ADDRESS, INVALID_ADDRESS_UNREACHABLE));
	where = kept;
	where.sin_port = 0;
	IS(try_common(&a, -1, NULL), E(INVALID_ADDRESS, INVALID_ADDRESS_MALFORMED));
	where = kept;
	IS(try_common(&a, -1, NULL), E(INVALID_PARAMETER, INVALID_ARG4));
	IS(try_common(&a, 57, data), E(INVALID_PARAMETER, INVALID_ARG4));
	IS(try_common(&a, 56, NULL), E(INVALID_PARAMETER, INVALID_ARG5));
	CU_ASSERT_EQUAL(state_of(a.ep), DAT_EP_STATE_UNCONNECTED);
	OK(dat_ep_free(deaf));
	teardown();
}

static const struct unit_test tests[] = {
	{ "csp create: arguments in their order", test_arguments },
	{ "a CSP's query returns its port, which is free at once after the free", test_query },
	{ "connected by socket address", test_connect },
	{ "a port is a qualifier, and the other way round", test_qualifier },
	{ "arguments in their order", test_connect_arguments },
};

UNIT_MAIN("csp", tests)
