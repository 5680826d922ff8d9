/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/*
 * The checks of counters and of calls that open and close an IA, each alone and with each later
 * one.
 */
#include "test/unit/spoil.h"

#define P(arg) E(INVALID_PARAMETER, INVALID_##arg)

static void run(const struct spoil_call *call)
{
	things_open();
	spoil_run(call);
	things_close();
}

/* ---- counters ---- */

struct counter_args {
	DAT_HANDLE h;
	int which, reset;
	DAT_UINT64 *out;
};

static void counter_good(void *args)
{
	*(struct counter_args *)args = (struct counter_args){
		.h = things.ep, .which = DCNT_EP_CONNECT, .out = (DAT_UINT64 *)things_out.bytes
	};
}

static DAT_RETURN query_call(void *args)
{
	struct counter_args *a = args;

	return dat_ib_query_counters(a->h, a->which, a->out, a->reset);
}

static DAT_RETURN print_call(void *args)
{
	struct counter_args *a = args;

	return dat_ib_print_counters(a->h, a->which, a->reset);
}

SPOIL(counter_args, counter_pz, a->h = things.pz)
SPOIL(counter_args, counter_cno, (a->h = things.cno, a->reset = 1))
SPOIL(counter_args, counter_none, a->which = -1)
SPOIL(counter_args, counter_of_ep, a->which = DCNT_EP_ALL_COUNTERS + 1)
SPOIL(counter_args, counter_of_evd, (a->h = things.evd, a->which = DCNT_EVD_ALL_COUNTERS + 1))
SPOIL(counter_args, counter_of_ia, (a->h = things.ia, a->which = DCNT_IA_ALL_COUNTERS + 1))
SPOIL(counter_args, counter_nowhere, a->out = NULL)

static const struct spoil_row counter_rows[] = {
	{ "pz", counter_pz, E0(INVALID_HANDLE), 1 },
	{ "cno", counter_cno, E0(INVALID_HANDLE), 1 },
	{ "less than none", counter_none, P(ARG2), 2 },
	{ "none of an ep", counter_of_ep, P(ARG2), 2 },
	{ "none of an evd", counter_of_evd, P(ARG2), 2 },
	{ "none of an ia", counter_of_ia, P(ARG2), 2 },
	{ "no place", counter_nowhere, P(ARG3), 3 },
};

static const struct spoil_call query = { "dat_ib_query_counters",
					 sizeof(struct counter_args),
					 counter_good,
					 query_call,
					 NULL,
					 counter_rows,
					 COUNT(counter_rows) };
static const struct spoil_call print = { "dat_ib_print_counters",
					 sizeof(struct counter_args),
					 counter_good,
					 print_call,
					 NULL,
					 counter_rows,
					 COUNT(counter_rows) - 1 };

static void test_query(void)
{
	run(&query);
}
static void test_print(void)
{
	run(&print);
}

/* ---- counters of the kernel ---- */

struct kernel_args {
	DAT_IA_HANDLE ia;
	int group;
};

static void kernel_good(void *args)
{
	*(struct kernel_args *)args = (struct kernel_args){ things.ia, DCNT_IA_LNK };
}

static DAT_RETURN start_call(void *args)
{
	struct kernel_args *a = args;

	return dat_ib_start_counter(a->ia, a->group);
}

static DAT_RETURN stop_call(void *args)
{
	struct kernel_args *a = args;

	return dat_ib_stop_counter(a->ia, a->group);
}

/* Starting an already started counter restarts its count. */
static void stop_good(void *args)
{
	kernel_good(args);
	OK(start_call(args));
}

SPOIL(kernel_args, kernel_no_ia, a->ia = things.ep)
SPOIL(kernel_args, kernel_none, a->group = -1)
SPOIL(kernel_args, kernel_too_many, a->group = DCNT_IA_DIAG + 1)
SPOIL(kernel_args, kernel_not_started, a->group = DCNT_IA_CM)

static const struct spoil_row kernel_rows[] = {
	{ "ia", kernel_no_ia, E(INVALID_HANDLE, INVALID_HANDLE_IA), 1 },
	{ "less than none", kernel_none, P(ARG2), 2 },
	{ "no such", kernel_too_many, P(ARG2), 2 },
	{ "not started", kernel_not_started, E0(INVALID_STATE), 2 },
};

static const struct spoil_call start = { "dat_ib_start_counter",
					 sizeof(struct kernel_args),
					 kernel_good,
					 start_call,
					 NULL,
					 kernel_rows,
					 COUNT(kernel_rows) - 1 };
static const struct spoil_call stop = {
	"dat_ib_stop_counter", sizeof(struct kernel_args), stop_good, stop_call, NULL,
	kernel_rows,	       COUNT(kernel_rows)
};

static void test_kernel(void)
{
	run(&start);
	run(&stop);
}

/* ---- dat_ib_open_query, dat_ib_close_query ---- */

static char endless[DAT_NAME_MAX_LENGTH + 1] = { [0 ... DAT_NAME_MAX_LENGTH - 1] = 'n' };

struct query_args {
	const char *name;
	DAT_HANDLE *out;
	DAT_IA_ATTR_MASK ia_mask;
	DAT_IA_ATTR *ia;
	DAT_PROVIDER_ATTR_MASK provider_mask;
	DAT_PROVIDER_ATTR *provider;
};

static void open_query_good(void *args)
{
	*(struct query_args *)args =
		(struct query_args){ "fake",	     &things_out.handle,     DAT_IA_FIELD_ALL,
				     &things_out.ia, DAT_PROVIDER_FIELD_ALL, &things_out.provider };
}

static DAT_RETURN open_query_call(void *args)
{
	struct query_args *a = args;

	return dat_ib_open_query(a->name, a->out, a->ia_mask, a->ia, a->provider_mask, a->provider);
}

static void open_query_undo(void *args)
{
	OK(dat_ib_close_query(*((struct query_args *)args)->out));
}

SPOIL(query_args, query_no_name, a->name = NULL)
SPOIL(query_args, query_endless, a->name = endless)
SPOIL(query_args, query_unknown, a->name = "unknown")
SPOIL(query_args, query_nowhere, a->out = NULL)
SPOIL(query_args, query_nothing, (a->ia = NULL, a->provider = NULL))
SPOIL(query_args, query_ia_mask, a->ia_mask = DAT_IA_FIELD_ALL + 1)
SPOIL(query_args, query_provider_mask, a->provider_mask = DAT_PROVIDER_FIELD_ALL + 1)

/*
 * A mask is checked only with its attributes, so the mask's rows are not combined with missing
 * attributes.
 */
static const struct spoil_row open_query_rows[] = {
	{ "no name", query_no_name, P(ARG3), 1 },
	{ "endless name", query_endless, P(ARG3), 1 },
	{ "unknown name", query_unknown, E(PROVIDER_NOT_FOUND, NAME_NOT_REGISTERED), 1 },
	{ "no place", query_nowhere, P(ARG2), 2 },
	{ "nothing asked", query_nothing, P(ARG5), 5 },
	{ "ia mask", query_ia_mask, P(ARG3), 3 },
	{ "provider mask", query_provider_mask, P(ARG5), 4 },
};

static const struct spoil_call open_query = { "dat_ib_open_query",   sizeof(struct query_args),
					      open_query_good,	     open_query_call,
					      open_query_undo,	     open_query_rows,
					      COUNT(open_query_rows) };

static void test_open_query(void)
{
	run(&open_query);
}

/* Closes the IA of an open query, once, and no other; a refused handle is unchanged. */
static void test_close_query(void)
{
	const DAT_RETURN bad = E(INVALID_HANDLE, INVALID_HANDLE1);
	DAT_HANDLE queried = DAT_HANDLE_NULL, second = DAT_HANDLE_NULL;
	DAT_IA_ATTR attr;
	size_t i;

	things_open();
	MUST(dat_ib_open_query("fake", &queried, DAT_IA_FIELD_ALL, &attr, 0, NULL));
	MUST(dat_ib_open_query("fake", &second, DAT_IA_FIELD_ALL, &attr, 0, NULL));
	IS(dat_ib_close_query(DAT_HANDLE_NULL), bad);
	IS(dat_ib_close_query(&attr), bad);
	for (i = 0; i < COUNT(things.all); i++)
		IS(dat_ib_close_query(things.all[i]), bad);
	IS(dat_ib_close_query(rig_inside(things.ia)), bad);
	OK(dat_ia_query(things.ia, NULL, DAT_IA_FIELD_ALL, &attr, 0, NULL));
	OK(dat_ib_close_query(queried));
	IS(dat_ib_close_query(queried), bad);
	OK(dat_ib_close_query(second));
	things_close();
}

/* ---- dat_ia_openv ---- */

struct open_args {
	const char *name;
	DAT_COUNT qlen;
	DAT_EVD_HANDLE async_value, *async;
	DAT_IA_HANDLE ia_value, *ia;
	DAT_UINT32 major, minor;
	DAT_BOOLEAN thread_safe;
};

static void open_good(void *args)
{
	struct open_args *a = args;

	*a = (struct open_args){ .name = "fake",
				 .qlen = RIG_QLEN,
				 .async = &a->async_value,
				 .ia_value = things.psp,
				 .ia = &a->ia_value,
				 .major = DAT_VERSION_MAJOR,
				 .minor = DAT_VERSION_MINOR };
}

/*
 * A failed open returns no IA, leaves the async EVD unchanged and keeps the device open for its
 * other users.
 */
static DAT_RETURN open_call(void *args)
{
	struct open_args *a = args;
	DAT_EVD_HANDLE before = a->async_value;
	unsigned opens = fake.devices[0].opens;
	DAT_RETURN status = dat_ia_openv((DAT_NAME_PTR)(uintptr_t)a->name, a->qlen, a->async, a->ia,
					 a->major, a->minor, a->thread_safe);

	if (status != DAT_SUCCESS) {
		CU_ASSERT_PTR_EQUAL(a->ia_value, a->ia ? DAT_HANDLE_NULL : things.psp);
		CU_ASSERT_PTR_EQUAL(a->async_value, before);
		CU_ASSERT_EQUAL(fake.devices[0].opens, opens);
	}
	return status;
}

static void open_undo(void *args)
{
	struct open_args *a = args;

	CU_ASSERT_PTR_NOT_NULL(a->async_value);
	OK(dat_ia_close(a->ia_value, DAT_CLOSE_GRACEFUL_FLAG));
}

SPOIL(open_args, open_no_name, a->name = NULL)
SPOIL(open_args, open_endless, a->name = endless)
SPOIL(open_args, open_nowhere, a->ia = NULL)
SPOIL(open_args, open_unknown, a->name = "unknown")
SPOIL(open_args, open_major, a->major = DAT_VERSION_MAJOR + 1)
SPOIL(open_args, open_minor, a->minor = DAT_VERSION_MINOR + 1)
SPOIL(open_args, open_safe, a->thread_safe = DAT_TRUE)
SPOIL(open_args, open_no_async, a->async = NULL)
SPOIL(open_args, open_no_length, a->qlen = 0)
SPOIL(open_args, open_less, a->qlen = -1)
SPOIL(open_args, open_too_long, a->qlen = FAKE_MAX_CQE + 1)
SPOIL(open_args, open_bad_evd, a->async_value = things.evd)
SPOIL(open_args, open_no_evd, a->async_value = things.ep)
SPOIL(open_args, open_out_of_scope, a->async_value = DAT_EVD_OUT_OF_SCOPE)

#define BAD_ASYNC E(INVALID_HANDLE, INVALID_HANDLE_EVD_ASYNC)

/*
 * The length is checked only if an EVD is to be created. Argument 8 means the value to which the
 * third argument points.
 */
static const struct spoil_row open_rows[] = {
	{ "no name", open_no_name, P(ARG1), 1 },
	{ "endless name", open_endless, P(ARG1), 1 },
	{ "nowhere", open_nowhere, E(INVALID_HANDLE, INVALID_HANDLE_IA), 4 },
	{ "unknown name", open_unknown, E(PROVIDER_NOT_FOUND, NAME_NOT_REGISTERED), 1 },
	{ "major", open_major, E(PROVIDER_NOT_FOUND, MAJOR_NOT_FOUND), 5 },
	{ "minor", open_minor, E(PROVIDER_NOT_FOUND, MINOR_NOT_FOUND), 6 },
	{ "thread safe", open_safe, E(PROVIDER_NOT_FOUND, THREAD_SAFETY_NOT_FOUND), 7 },
	{ "no async evd", open_no_async, P(ARG3), 3 },
	{ "evd of another kind", open_bad_evd, BAD_ASYNC, 8 },
	{ "no evd", open_no_evd, BAD_ASYNC, 8 },
	{ "out of scope", open_out_of_scope, BAD_ASYNC, 8 },
	{ "no length", open_no_length, P(ARG2), 2 },
	{ "less", open_less, P(ARG2), 2 },
	{ "too long", open_too_long, E(INSUFFICIENT_RESOURCES, RESOURCE_TEVD), 2 },
};

static const struct spoil_call openv = { "dat_ia_openv",  sizeof(struct open_args),
					 open_good,	  open_call,
					 open_undo,	  open_rows,
					 COUNT(open_rows) };

static void test_openv(void)
{
	run(&openv);
}

/* ---- dat_cno_modify_agent ---- */

static void agent(DAT_PVOID instance, DAT_EVD_HANDLE evd)
{
	(void)instance;
	(void)evd;
}

/* Setting or removing an agent is always valid; only the handle is checked. */
static void test_agents(void)
{
	const DAT_OS_WAIT_PROXY_AGENT agents[] = { { NULL, agent },
						   { NULL, NULL },
						   { &things, NULL } };
	const DAT_RETURN bad = E(INVALID_HANDLE, INVALID_HANDLE_CNO);
	DAT_CNO_HANDLE with_fd = DAT_HANDLE_NULL;
	DAT_CNO_PARAM param;
	size_t i;

	things_open();
	MUST(dat_cno_fd_create(things.ia, &(DAT_FD){ 0 }, &with_fd));
	for (i = 0; i < COUNT(agents); i++) {
		IS(dat_cno_modify_agent(DAT_HANDLE_NULL, agents[i]), bad);
		IS(dat_cno_modify_agent(things.evd, agents[i]), bad);
		IS(dat_cno_modify_agent(with_fd, agents[i]),
		   E(INVALID_STATE, INVALID_STATE_CNO_IN_USE));
		OK(dat_cno_modify_agent(things.cno, agents[i]));
		MUST(dat_cno_query(things.cno, DAT_CNO_FIELD_ALL, &param));
		CU_ASSERT_EQUAL(param.proxy_type, agents[i].proxy_agent_func ? DAT_PROXY_TYPE_AGENT
									     : DAT_PROXY_TYPE_NONE);
		MUST(dat_cno_query(with_fd, DAT_CNO_FIELD_ALL, &param));
		CU_ASSERT_EQUAL(param.proxy_type, DAT_PROXY_TYPE_FD);
	}
	OK(dat_cno_free(with_fd));
	IS(dat_cno_modify_agent(with_fd, agents[0]), bad);
	things_close();
}

static const struct unit_test tests[] = {
	{ "reading counters: each check, alone and with each later one", test_query },
	{ "printing counters: each check, alone and with each later one", test_print },
	{ "counters of the kernel: each check, alone and with each later one", test_kernel },
	{ "an open query: each check, alone and with each later one", test_open_query },
	{ "a query is closed by its own IA handle only", test_close_query },
	{ "openv: each check, alone and with each later one", test_openv },
	{ "modify_agent: each agent is valid, and each wrong CNO is refused", test_agents },
};

UNIT_MAIN("ext_args", tests)
