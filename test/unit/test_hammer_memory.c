/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* Protection zones, LMRs and RMRs, freed while another thread uses them. */
#include "test/unit/hammer.h"

static char memory[8192];

static DAT_RETURN lmr_create(struct hammer *h, DAT_PZ_HANDLE pz, DAT_LMR_HANDLE *lmr)
{
	DAT_REGION_DESCRIPTION region = { .for_va = memory };
	DAT_LMR_CONTEXT lkey;

	return dat_lmr_create(h->env.ia, DAT_MEM_TYPE_VIRTUAL, region, sizeof(memory), pz,
			      DAT_MEM_PRIV_ALL_FLAG, DAT_VA_TYPE_VA, lmr, &lkey, NULL, NULL, NULL);
}

/* An object that refers to the PZ may keep it for a moment. */
static void pz_make(struct hammer *h)
{
	DAT_PZ_HANDLE pz = DAT_HANDLE_NULL;

	if (!hammer_call(h, dat_pz_create(h->env.ia, &pz)))
		return;
	hammer_show(h, pz);
	while (DAT_GET_TYPE(dat_pz_free(pz)) == DAT_INVALID_STATE)
		sched_yield();
}

static void pz_use(struct hammer *h)
{
	DAT_HANDLE pz = atomic_load(&h->handle), made;
	DAT_PZ_PARAM param;

	hammer_call(h, dat_pz_query(pz, DAT_PZ_FIELD_ALL, &param));
	if (hammer_call(h, lmr_create(h, pz, &made)))
		hammer_call(h, dat_lmr_free(made));
	if (hammer_call(h, dat_rmr_create(pz, &made)))
		hammer_call(h, dat_rmr_free(made));
	if (hammer_call(h, dat_srq_create(h->env.ia, pz,
					  &(DAT_SRQ_ATTR){ .max_recv_dtos = 4, .max_recv_iov = 1 },
					  &made)))
		hammer_call(h, dat_srq_free(made));
	hammer_call(h, dat_set_consumer_context(pz, (DAT_CONTEXT){ .as_64 = 1 }));
}

static void test_pz(void)
{
	hammer_run(pz_make, pz_use);
}

static void lmr_make(struct hammer *h)
{
	DAT_LMR_HANDLE lmr = DAT_HANDLE_NULL;

	if (!hammer_call(h, lmr_create(h, h->env.pz, &lmr)))
		return;
	hammer_show(h, lmr);
	hammer_call(h, dat_lmr_free(lmr));
}

static void lmr_use(struct hammer *h)
{
	DAT_HANDLE lmr = atomic_load(&h->handle), made;
	DAT_REGION_DESCRIPTION region = { .for_lmr_handle = lmr };
	DAT_LMR_CONTEXT lkey;
	DAT_LMR_PARAM param;

	hammer_call(h, dat_lmr_query(lmr, DAT_LMR_FIELD_ALL, &param));
	if (hammer_call(h, dat_lmr_create(h->env.ia, DAT_MEM_TYPE_LMR, region, 0, h->env.pz,
					  DAT_MEM_PRIV_ALL_FLAG, DAT_VA_TYPE_VA, &made, &lkey, NULL,
					  NULL, NULL)))
		hammer_call(h, dat_lmr_free(made));
	hammer_call(h, dat_lmr_free(lmr));
}

static void test_lmr(void)
{
	hammer_run(lmr_make, lmr_use);
}

static void rmr_make(struct hammer *h)
{
	DAT_RMR_HANDLE rmr = DAT_HANDLE_NULL;
	bool odd = atomic_load(&h->rounds) & 1;

	if (!hammer_call(h, odd ? dat_rmr_create(h->env.pz, &rmr)
				: dat_rmr_create_for_ep(h->env.pz, &rmr)))
		return;
	hammer_show(h, rmr);
	hammer_call(h, dat_rmr_free(rmr));
}

/* Binds through one endpoint of a connection. */
static void rmr_use(struct hammer *h)
{
	struct end *a = h->more;
	DAT_HANDLE rmr = atomic_load(&h->handle);
	DAT_LMR_TRIPLET what = segment(&h->env, 0, 64), nothing = { 0 };
	DAT_RMR_CONTEXT key;
	DAT_RMR_PARAM param;
	DAT_EVENT event;

	hammer_call(h, dat_rmr_query(rmr, DAT_RMR_FIELD_IA_HANDLE, &param));
	hammer_call(h, dat_rmr_bind(rmr, h->env.lmr, &what, DAT_MEM_PRIV_REMOTE_READ_FLAG,
				    DAT_VA_TYPE_VA, a->ep, (DAT_RMR_COOKIE){ 0 }, 0, &key));
	hammer_call(h, dat_rmr_bind(rmr, DAT_HANDLE_NULL, &nothing, DAT_MEM_PRIV_NONE_FLAG,
				    DAT_VA_TYPE_VA, a->ep, (DAT_RMR_COOKIE){ 0 }, 0, &key));
	hammer_call(h, dat_rmr_free(rmr));
	while (hammer_call(h, dat_evd_dequeue(a->request, &event)))
		;
}

static void test_rmr(void)
{
	struct hammer *h = calloc(1, sizeof(*h));
	struct end a, b;

	CU_ASSERT_PTR_NOT_NULL_FATAL(h);
	*h = (struct hammer){ .make = rmr_make, .use = rmr_use, .more = &a };
	env_open(&h->env);
	env_listen(&h->env);
	end_open(&h->env, &a, NULL);
	end_open(&h->env, &b, NULL);
	connect_pair(&a, &b);
	hammer_threads(h);
	end_close(&a);
	end_close(&b);
	env_close(&h->env);
	free(h);
}

static const struct unit_test tests[] = {
	{ "a PZ is freed while another thread uses it", test_pz },
	{ "an LMR is freed while another thread uses it", test_lmr },
	{ "an RMR is freed while another thread binds it", test_rmr },
};

UNIT_MAIN("hammer_memory", tests)
