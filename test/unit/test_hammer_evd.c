/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* EVDs and CNOs, freed while another thread waits, posts, resizes, attaches and detaches. */
#include "test/unit/hammer.h"

static void evd_make(struct hammer *h)
{
	DAT_EVD_HANDLE evd = DAT_HANDLE_NULL;
	bool odd = atomic_load(&h->rounds) & 1;

	if (!hammer_call(h, dat_evd_create(h->env.ia, 8, DAT_HANDLE_NULL,
					   odd ? DAT_EVD_SOFTWARE_FLAG
					       : DAT_EVD_SOFTWARE_FLAG | DAT_EVD_DTO_FLAG,
					   &evd)))
		return;
	hammer_show(h, evd);
	while (DAT_GET_TYPE(dat_evd_free(evd)) == DAT_INVALID_STATE)
		sched_yield();
}

static void evd_use(struct hammer *h)
{
	DAT_EVD_HANDLE evd = atomic_load(&h->handle);
	DAT_EVENT event = { .event_number = DAT_SOFTWARE_EVENT };
	DAT_UINT64 counters[DCNT_EVD_ALL_COUNTERS];
	DAT_EVD_PARAM param;
	DAT_PSP_HANDLE psp;
	DAT_CONN_QUAL qual;
	DAT_COUNT more;

	hammer_call(h, dat_evd_post_se(evd, &event));
	hammer_call(h, dat_evd_post_se(evd, &event));
	hammer_call(h, dat_evd_query(evd, DAT_EVD_FIELD_ALL, &param));
	hammer_call(h, dat_evd_modify_cno(evd, h->more));
	hammer_call(h, dat_evd_dequeue(evd, &event));
	hammer_call(h, dat_evd_wait(evd, 0, 1, &event, &more));
	hammer_call(h, dat_evd_wait(evd, 10, 1, &event, &more));
	hammer_call(h, dat_evd_disable(evd));
	hammer_call(h, dat_evd_enable(evd));
	hammer_call(h, dat_evd_resize(evd, 16));
	hammer_call(h, dat_evd_set_unwaitable(evd));
	hammer_call(h, dat_evd_clear_unwaitable(evd));
	hammer_call(h, dat_evd_modify_cno(evd, DAT_HANDLE_NULL));
	hammer_call(h, dat_ib_query_counters(evd, DCNT_EVD_ALL_COUNTERS, counters, 0));
	if (hammer_call(h, dat_psp_create_any(h->env.ia, &qual, evd, DAT_PSP_CONSUMER_FLAG, &psp)))
		hammer_call(h, dat_psp_free(psp));
}

static void test_evd(void)
{
	struct hammer *h = calloc(1, sizeof(*h));
	DAT_CNO_HANDLE cno;

	CU_ASSERT_PTR_NOT_NULL_FATAL(h);
	*h = (struct hammer){ .make = evd_make, .use = evd_use };
	env_open(&h->env);
	MUST(dat_cno_create(h->env.ia, DAT_OS_WAIT_PROXY_AGENT_NULL, &cno));
	h->more = cno;
	hammer_threads(h);
	MUST(dat_cno_free(cno));
	env_close(&h->env);
	free(h);
}

/* Waits without a timeout until the EVD is freed. */
static void sleep_use(struct hammer *h)
{
	DAT_EVENT event;
	DAT_COUNT more;

	hammer_call(h,
		    dat_evd_wait(atomic_load(&h->handle), DAT_TIMEOUT_INFINITE, 1, &event, &more));
}

static void sleep_make(struct hammer *h)
{
	DAT_EVENT event = { .event_number = DAT_SOFTWARE_EVENT };
	DAT_EVD_HANDLE evd = DAT_HANDLE_NULL;

	if (!hammer_call(h, dat_evd_create(h->env.ia, 8, DAT_HANDLE_NULL, DAT_EVD_SOFTWARE_FLAG,
					   &evd)))
		return;
	atomic_store(&h->handle, evd);
	hammer_call(h, dat_evd_post_se(evd, &event));
	hammer_show(h, evd);
	hammer_call(h, dat_evd_free(evd));
}

static void test_asleep(void)
{
	hammer_run(sleep_make, sleep_use);
}

static void agent(DAT_PVOID data, DAT_EVD_HANDLE evd)
{
	(void)evd;
	atomic_fetch_add((atomic_uint *)data, 1);
}

static void cno_make(struct hammer *h)
{
	DAT_CNO_HANDLE cno = DAT_HANDLE_NULL;
	DAT_FD fd;
	bool odd = atomic_load(&h->rounds) & 1;

	if (!hammer_call(h, odd ? dat_cno_fd_create(h->env.ia, &fd, &cno)
				: dat_cno_create(h->env.ia, DAT_OS_WAIT_PROXY_AGENT_NULL, &cno)))
		return;
	hammer_show(h, cno);
	while (DAT_GET_TYPE(dat_cno_free(cno)) == DAT_INVALID_STATE)
		sched_yield();
}

static void cno_use(struct hammer *h)
{
	static atomic_uint calls;
	DAT_CNO_HANDLE cno = atomic_load(&h->handle);
	DAT_EVD_HANDLE own = h->more, evd;
	DAT_EVENT event = { .event_number = DAT_SOFTWARE_EVENT };
	DAT_CNO_PARAM param;

	hammer_call(h, dat_cno_query(cno, DAT_CNO_FIELD_ALL, &param));
	hammer_call(h, dat_evd_modify_cno(own, cno));
	hammer_call(h, dat_evd_post_se(own, &event));
	hammer_call(h, dat_cno_modify_agent(cno, (DAT_OS_WAIT_PROXY_AGENT){ &calls, agent }));
	hammer_call(h, dat_cno_wait(cno, 0, &evd));
	hammer_call(h, dat_cno_trigger(cno, &evd));
	hammer_call(h, dat_cno_wait(cno, 10, &evd));
	hammer_call(h, dat_evd_modify_cno(own, DAT_HANDLE_NULL));
	hammer_call(h, dat_evd_dequeue(own, &event));
	if (hammer_call(h, dat_evd_create(h->env.ia, 8, cno, DAT_EVD_SOFTWARE_FLAG, &evd)))
		hammer_call(h, dat_evd_free(evd));
}

static void test_cno(void)
{
	struct hammer *h = calloc(1, sizeof(*h));
	DAT_EVD_HANDLE evd;

	CU_ASSERT_PTR_NOT_NULL_FATAL(h);
	*h = (struct hammer){ .make = cno_make, .use = cno_use };
	env_open(&h->env);
	evd = evd_open(&h->env, 64, DAT_EVD_SOFTWARE_FLAG);
	h->more = evd;
	hammer_threads(h);
	MUST(dat_evd_free(evd));
	env_close(&h->env);
	free(h);
}

static const struct unit_test tests[] = {
	{ "an EVD is freed while another thread uses it", test_evd },
	{ "an EVD is freed while another thread waits on it", test_asleep },
	{ "a CNO is freed while another thread uses it", test_cno },
};

UNIT_MAIN("hammer_evd", tests)
