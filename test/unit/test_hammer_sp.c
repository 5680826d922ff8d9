/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* Service points and connection requests, freed or answered while another thread does so, too; and whole IAs. */
#include "test/unit/hammer.h"

static void psp_make(struct hammer *h)
{
	DAT_PSP_HANDLE psp = DAT_HANDLE_NULL;
	DAT_CONN_QUAL qual = 0;

	if (!hammer_call(h, dat_psp_create_any(h->env.ia, &qual, h->env.cr, DAT_PSP_CONSUMER_FLAG,
					       &psp)))
		return;
	atomic_store(&h->other, (DAT_HANDLE)(uintptr_t)qual);
	hammer_show(h, psp);
	hammer_call(h, dat_psp_free(psp));
}

/* Connects to the PSP and frees it, too; the thread that frees second gets an invalid handle. */
static void psp_use(struct hammer *h)
{
	struct end *a = h->more;
	DAT_PSP_HANDLE psp = atomic_load(&h->handle);
	DAT_CONN_QUAL qual = (uintptr_t)atomic_load(&h->other);
	DAT_PSP_PARAM param;
	DAT_EVENT event;

	hammer_call(h, dat_psp_query(psp, DAT_PSP_FIELD_ALL, &param));
	if (!qual || !hammer_call(h, dat_ep_connect(a->ep, h->env.address, qual, 1000000, 0, NULL,
						    DAT_QOS_BEST_EFFORT, DAT_CONNECT_DEFAULT_FLAG)))
		return;
	hammer_call(h, dat_psp_free(psp));
	while (hammer_call(h, dat_evd_dequeue(h->env.cr, &event)))
		hammer_call(h, dat_cr_reject(event.event_data.cr_arrival_event_data.cr_handle, 0,
					     NULL));
	hammer_call(h, dat_ep_disconnect(a->ep, DAT_CLOSE_ABRUPT_FLAG));
	hammer_call(h, dat_ep_reset(a->ep));
	while (hammer_call(h, dat_evd_dequeue(a->conn, &event)))
		;
}

static void reject_rest(struct hammer *h)
{
	DAT_EVENT event;

	while (dat_evd_dequeue(h->env.cr, &event) == DAT_SUCCESS)
		OK(dat_cr_reject(event.event_data.cr_arrival_event_data.cr_handle, 0, NULL));
}

static void hammer_end(void (*make)(struct hammer *h), void (*use)(struct hammer *h), bool listens)
{
	struct hammer *h = calloc(1, sizeof(*h));
	struct end a;

	CU_ASSERT_PTR_NOT_NULL_FATAL(h);
	*h = (struct hammer){ .make = make, .use = use, .more = &a };
	env_open(&h->env);
	if (listens)
		env_listen(&h->env);
	end_open(&h->env, &a, NULL);
	hammer_threads(h);
	end_close(&a);
	reject_rest(h);
	env_close(&h->env);
	free(h);
}

static void test_psp(void)
{
	hammer_end(psp_make, psp_use, false);
}

static void rsp_make(struct hammer *h)
{
	struct end *a = h->more;
	DAT_RSP_HANDLE rsp = DAT_HANDLE_NULL;

	if (!hammer_call(h, dat_rsp_create(h->env.ia, 60000 + atomic_load(&h->rounds) % 1000, a->ep,
					   h->env.cr, &rsp)))
		return;
	hammer_show(h, rsp);
	hammer_call(h, dat_rsp_free(rsp));
}

static void rsp_use(struct hammer *h)
{
	struct end *a = h->more;
	DAT_RSP_HANDLE rsp = atomic_load(&h->handle);
	DAT_RSP_PARAM param;
	DAT_EP_PARAM ep;

	hammer_call(h, dat_rsp_query(rsp, DAT_RSP_FIELD_ALL, &param));
	hammer_call(h, dat_ep_query(a->ep, DAT_EP_FIELD_ALL, &ep));
	hammer_call(h, dat_rsp_free(rsp));
}

static void test_rsp(void)
{
	hammer_end(rsp_make, rsp_use, false);
}

static void csp_make(struct hammer *h)
{
	DAT_COMM comm = { .domain = AF_INET, .type = SOCK_STREAM };
	struct sockaddr_in any = { .sin_family = AF_INET };
	DAT_CSP_HANDLE csp = DAT_HANDLE_NULL;

	if (!hammer_call(h, dat_csp_create(h->env.ia, &comm, (DAT_IA_ADDRESS_PTR)&any, h->env.cr,
					   &csp)))
		return;
	hammer_show(h, csp);
	hammer_call(h, dat_csp_free(csp));
}

static void csp_use(struct hammer *h)
{
	DAT_CSP_HANDLE csp = atomic_load(&h->handle);
	DAT_CSP_PARAM param;

	hammer_call(h, dat_csp_query(csp, DAT_CSP_FIELD_ALL, &param));
	hammer_call(h, dat_csp_free(csp));
}

static void test_csp(void)
{
	hammer_run(csp_make, csp_use);
}

/* Both threads answer the same request. */
static void cr_make(struct hammer *h)
{
	struct end *a = h->more;
	DAT_EVENT event;
	DAT_COUNT more;

	if (!hammer_call(h, dat_ep_connect(a->ep, h->env.address, h->env.qual, 1000000, 0, NULL,
					   DAT_QOS_BEST_EFFORT, DAT_CONNECT_DEFAULT_FLAG)))
		return;
	if (hammer_call(h, dat_evd_wait(h->env.cr, PATIENCE, 1, &event, &more))) {
		DAT_CR_HANDLE cr = event.event_data.cr_arrival_event_data.cr_handle;

		hammer_show(h, cr);
		hammer_call(h, dat_cr_reject(cr, 0, NULL));
	}
	hammer_call(h, dat_evd_wait(a->conn, PATIENCE, 1, &event, &more));
	hammer_call(h, dat_ep_reset(a->ep));
}

static void cr_use(struct hammer *h)
{
	DAT_CR_HANDLE cr = atomic_load(&h->handle);
	DAT_CR_PARAM param;

	hammer_call(h, dat_cr_query(cr, DAT_CR_FIELD_ALL, &param));
	hammer_call(h, dat_cr_accept(cr, DAT_HANDLE_NULL, 0, NULL));
	hammer_call(h, dat_cr_reject(cr, 0, NULL));
}

static void test_cr(void)
{
	hammer_end(cr_make, cr_use, true);
}

static void ia_make(struct hammer *h)
{
	DAT_EVD_HANDLE async = DAT_HANDLE_NULL;
	DAT_IA_HANDLE ia = DAT_HANDLE_NULL;

	if (!hammer_call(h, dat_ia_open((char *)(uintptr_t) "ofa-v2-soft", 8, &async, &ia)))
		return;
	hammer_show(h, ia);
	hammer_call(h, dat_ia_close(ia, DAT_CLOSE_ABRUPT_FLAG));
}

/* Closing the IA frees the objects that this function creates. */
static void ia_use(struct hammer *h)
{
	DAT_IA_HANDLE ia = atomic_load(&h->handle);
	DAT_PROVIDER_ATTR provider;
	DAT_EVD_HANDLE evd;
	DAT_PZ_HANDLE pz;
	DAT_IA_ATTR attr;

	hammer_call(h, dat_ia_query(ia, &evd, DAT_IA_FIELD_ALL, &attr, DAT_PROVIDER_FIELD_ALL,
				    &provider));
	hammer_call(h, dat_pz_create(ia, &pz));
	hammer_call(h, dat_evd_create(ia, 8, DAT_HANDLE_NULL, DAT_EVD_DTO_FLAG, &evd));
}

static void test_ia(void)
{
	hammer_run(ia_make, ia_use);
}

static void ia_ep_make(struct hammer *h)
{
	DAT_EVD_HANDLE async = DAT_HANDLE_NULL, dto, conn;
	DAT_IA_HANDLE ia = DAT_HANDLE_NULL;
	DAT_PZ_HANDLE pz;
	DAT_EP_HANDLE ep;

	if (!hammer_call(h, dat_ia_open((char *)(uintptr_t) "ofa-v2-soft", 8, &async, &ia)))
		return;
	if (hammer_call(h, dat_pz_create(ia, &pz)) &&
	    hammer_call(h, dat_evd_create(ia, 8, DAT_HANDLE_NULL, DAT_EVD_DTO_FLAG, &dto)) &&
	    hammer_call(h,
			dat_evd_create(ia, 8, DAT_HANDLE_NULL, DAT_EVD_CONNECTION_FLAG, &conn)) &&
	    hammer_call(h, dat_ep_create(ia, pz, dto, dto, conn, NULL, &ep)))
		hammer_show(h, ep);
	hammer_call(h, dat_ia_close(ia, DAT_CLOSE_ABRUPT_FLAG));
}

/* The connect may fail: it needs no listener. */
static void ia_ep_use(struct hammer *h)
{
	DAT_EP_HANDLE ep = atomic_load(&h->handle);

	hammer_call(h, dat_ep_connect(ep, h->env.address, 45999, 1000000, 0, NULL,
				      DAT_QOS_BEST_EFFORT, DAT_CONNECT_DEFAULT_FLAG));
}

static void test_ia_ep(void)
{
	hammer_run(ia_ep_make, ia_ep_use);
}

static const struct unit_test tests[] = {
	{ "a PSP is freed while another thread connects to it", test_psp },
	{ "an RSP is freed by two threads", test_rsp },
	{ "a CSP is freed by two threads", test_csp },
	{ "a request is answered by two threads", test_cr },
	{ "an IA is closed while another thread uses it", test_ia },
	{ "an IA is closed while another thread connects its endpoint", test_ia_ep },
};

UNIT_MAIN("hammer_sp", tests)
