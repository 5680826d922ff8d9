/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* Protection zones and memory regions: the checks, and the resulting registrations. */
#include "dat2/dat_ib_extensions.h"
#include "test/unit/rig.h"

static char memory[8192];

static DAT_REGION_DESCRIPTION region_of(void *address)
{
	return (DAT_REGION_DESCRIPTION){ .for_va = address };
}

/* A valid registration, of which each test changes one argument. */
struct request {
	DAT_IA_HANDLE ia;
	DAT_MEM_TYPE type;
	DAT_REGION_DESCRIPTION region;
	DAT_VLEN length;
	DAT_PZ_HANDLE pz;
	DAT_MEM_PRIV_FLAGS privileges;
	DAT_VA_TYPE va_type;
	DAT_LMR_HANDLE *lmr;
};

static struct request good(struct rig *rig, DAT_LMR_HANDLE *lmr)
{
	return (struct request){ rig->ia, DAT_MEM_TYPE_VIRTUAL,	 region_of(memory), sizeof(memory),
				 rig->pz, DAT_MEM_PRIV_ALL_FLAG, DAT_VA_TYPE_VA,    lmr };
}

static DAT_RETURN ask(const struct request *r)
{
	return dat_lmr_create(r->ia, r->type, r->region, r->length, r->pz, r->privileges,
			      r->va_type, r->lmr, NULL, NULL, NULL, NULL);
}

static void test_pz_checks(void)
{
	DAT_PZ_PARAM param = { 0 };
	struct rig rig;

	rig_open(&rig, NULL);
	IS(dat_pz_create(rig.pz, &rig.pz), E(INVALID_HANDLE, INVALID_HANDLE_IA));
	IS(dat_pz_create(rig.ia, NULL), E(INVALID_PARAMETER, INVALID_ARG2));
	fake.refuse = E(INSUFFICIENT_RESOURCES, RESOURCE_PROTECTION_DOMAIN);
	IS(dat_pz_create(rig.ia, &rig.pz), E(INSUFFICIENT_RESOURCES, RESOURCE_PROTECTION_DOMAIN));
	IS(dat_pz_query(rig.conn, DAT_PZ_FIELD_ALL, &param), E(INVALID_HANDLE, INVALID_HANDLE_PZ));
	IS(dat_pz_query(rig.pz, DAT_PZ_FIELD_ALL, NULL), E(INVALID_PARAMETER, INVALID_ARG3));
	IS(dat_pz_query(rig.pz, 2, &param), E(INVALID_PARAMETER, INVALID_ARG2));
	MUST(dat_pz_query(rig.pz, DAT_PZ_FIELD_ALL, &param));
	CU_ASSERT_PTR_EQUAL(param.ia_handle, rig.ia);
	IS(dat_pz_free(rig.conn), E(INVALID_HANDLE, INVALID_HANDLE_PZ));
	rig_close(&rig);
}

static void test_pz_in_use(void)
{
	DAT_EP_ATTR attr = rig_attr();
	DAT_LMR_HANDLE lmr;
	struct request r;
	struct rig rig;

	rig_open(&rig, &attr);
	IS(dat_pz_free(rig.pz), E(INVALID_STATE, INVALID_STATE_PZ_IN_USE));
	MUST(dat_ep_free(rig.ep));
	rig.ep = DAT_HANDLE_NULL;
	r = good(&rig, &lmr);
	MUST(ask(&r));
	IS(dat_pz_free(rig.pz), E(INVALID_STATE, INVALID_STATE_PZ_IN_USE));
	MUST(dat_lmr_free(lmr));
	fake.refuse = E0(CONN_QUAL_IN_USE); /* the status for EBUSY */
	IS(dat_pz_free(rig.pz), E(INVALID_STATE, INVALID_STATE_PZ_IN_USE));
	rig_close(&rig);
}

static void test_freed_pz_is_invalid(void)
{
	DAT_PZ_HANDLE pz = DAT_HANDLE_NULL;
	DAT_LMR_HANDLE lmr;
	struct request r;
	struct rig rig;

	rig_open(&rig, NULL);
	MUST(dat_pz_create(rig.ia, &pz));
	MUST(dat_pz_free(pz));
	IS(dat_pz_free(pz), E(INVALID_HANDLE, INVALID_HANDLE_PZ));
	r = good(&rig, &lmr);
	r.pz = pz;
	IS(ask(&r), E(INVALID_HANDLE, INVALID_HANDLE_PZ));
	rig_close(&rig);
}

static void test_lmr_checks(void)
{
	DAT_LMR_HANDLE lmr = DAT_HANDLE_NULL;
	struct request r;
	struct rig rig, other;

	rig_open(&rig, NULL);
	r = good(&rig, &lmr);
	r.ia = rig.pz;
	IS(ask(&r), E(INVALID_HANDLE, INVALID_HANDLE_IA));
	r = good(&rig, &lmr);
	r.pz = rig.conn;
	IS(ask(&r), E(INVALID_HANDLE, INVALID_HANDLE_PZ));
	rig_open(&other, NULL);
	r.pz = other.pz;
	IS(ask(&r), E(INVALID_HANDLE, INVALID_HANDLE_PZ));
	r = good(&rig, NULL);
	IS(ask(&r), E(INVALID_PARAMETER, INVALID_ARG8));
	r = good(&rig, &lmr);
	r.type = 3;
	IS(ask(&r), E(INVALID_PARAMETER, INVALID_ARG2));
	r = good(&rig, &lmr);
	r.privileges = 0x80;
	IS(ask(&r), E(INVALID_PARAMETER, INVALID_ARG6));
	r = good(&rig, &lmr);
	r.va_type = 2;
	IS(ask(&r), E(INVALID_PARAMETER, INVALID_ARG7));
	r = good(&rig, &lmr);
	r.length = 0;
	IS(ask(&r), E0(LENGTH_ERROR));
	r.length = (1ull << 40) + 1;
	IS(ask(&r), E0(LENGTH_ERROR));
	r = good(&rig, &lmr);
	r.region = region_of((void *)(UINTPTR_MAX - 10));
	IS(ask(&r), E(INVALID_PARAMETER, INVALID_ARG4));
	CU_ASSERT_PTR_NULL(lmr);
	MUST(dat_evd_free(other.request));
	MUST(dat_evd_free(other.recv));
	MUST(dat_evd_free(other.conn));
	MUST(dat_pz_free(other.pz));
	MUST(dat_ia_close(other.ia, DAT_CLOSE_GRACEFUL_FLAG));
	rig_close(&rig);
}

static void test_lmr_without_the_device(void)
{
	DAT_LMR_HANDLE lmr;
	struct request r;
	struct rig rig;

	rig_open(&rig, NULL);
	fake.devices[0].attr.zero_based = fake.devices[0].attr.atomics = false;
	r = good(&rig, &lmr);
	r.va_type = DAT_VA_TYPE_ZB;
	IS(ask(&r), E0(MODEL_NOT_SUPPORTED));
	r = good(&rig, &lmr);
	r.privileges = (DAT_MEM_PRIV_FLAGS)DAT_IB_MEM_PRIV_REMOTE_ATOMIC;
	IS(ask(&r), E0(MODEL_NOT_SUPPORTED));
	r = good(&rig, &lmr);
	fake.refuse = E(INSUFFICIENT_RESOURCES, RESOURCE_MEMORY_REGION);
	IS(ask(&r), E(INSUFFICIENT_RESOURCES, RESOURCE_MEMORY_REGION));
	rig_close(&rig);
}

static void test_lmr_outputs(void)
{
	DAT_LMR_HANDLE lmr;
	DAT_LMR_CONTEXT lkey = 0;
	DAT_RMR_CONTEXT rkey = 0;
	DAT_VLEN size = 0;
	DAT_VADDR address = 0;
	DAT_LMR_PARAM param;
	struct rig rig;

	rig_open(&rig, NULL);
	MUST(dat_lmr_create(rig.ia, DAT_MEM_TYPE_VIRTUAL, region_of(memory + 1), 4096, rig.pz,
			    DAT_MEM_PRIV_REMOTE_READ_FLAG, DAT_VA_TYPE_ZB, &lmr, &lkey, &rkey,
			    &size, &address));
	CU_ASSERT_EQUAL(lkey, FAKE_LKEY);
	CU_ASSERT_EQUAL(rkey, FAKE_RKEY);
	CU_ASSERT_EQUAL(size, 4096);
	CU_ASSERT_EQUAL(address, (uintptr_t)memory + 1);
	CU_ASSERT_TRUE(fake.zero_based);
	CU_ASSERT_EQUAL(fake.privileges, DAT_MEM_PRIV_REMOTE_READ_FLAG);
	MUST(dat_lmr_query(lmr, DAT_LMR_FIELD_ALL, &param));
	CU_ASSERT_PTR_EQUAL(param.ia_handle, rig.ia);
	CU_ASSERT_PTR_EQUAL(param.pz_handle, rig.pz);
	CU_ASSERT_EQUAL(param.mem_type, DAT_MEM_TYPE_VIRTUAL);
	CU_ASSERT_EQUAL(param.va_type, DAT_VA_TYPE_ZB);
	CU_ASSERT_EQUAL(param.mem_priv, DAT_MEM_PRIV_REMOTE_READ_FLAG);
	CU_ASSERT_EQUAL(param.length, 4096);
	CU_ASSERT_EQUAL(param.lmr_context, FAKE_LKEY);
	CU_ASSERT_EQUAL(param.registered_address, (uintptr_t)memory + 1);
	IS(dat_lmr_query(lmr, DAT_LMR_FIELD_ALL, NULL), E(INVALID_PARAMETER, INVALID_ARG3));
	IS(dat_lmr_query(lmr, 0x800, &param), E(INVALID_PARAMETER, INVALID_ARG2));
	IS(dat_lmr_query(rig.pz, 0, &param), E(INVALID_HANDLE, INVALID_HANDLE_LMR));
	fake.refuse = E0(CONN_QUAL_IN_USE);
	IS(dat_lmr_free(lmr), E(INVALID_STATE, INVALID_STATE_LMR_IN_USE));
	MUST(dat_lmr_free(lmr));
	IS(dat_lmr_free(lmr), E(INVALID_HANDLE, INVALID_HANDLE_LMR));
	rig_close(&rig);
}

static void test_local_lmr_has_no_rmr_context(void)
{
	DAT_RMR_CONTEXT rkey = 77;
	DAT_LMR_HANDLE lmr;
	struct rig rig;

	rig_open(&rig, NULL);
	MUST(dat_lmr_create(rig.ia, DAT_MEM_TYPE_VIRTUAL, region_of(memory), 64, rig.pz,
			    DAT_MEM_PRIV_LOCAL_READ_FLAG | DAT_MEM_PRIV_LOCAL_WRITE_FLAG,
			    DAT_VA_TYPE_VA, &lmr, NULL, &rkey, NULL, NULL));
	CU_ASSERT_EQUAL(rkey, 0);
	MUST(dat_lmr_free(lmr));
	rig_close(&rig);
}

static void test_lmr_over_lmr(void)
{
	DAT_LMR_HANDLE first, second = DAT_HANDLE_NULL;
	DAT_LMR_PARAM param;
	struct request r;
	struct rig rig;

	rig_open(&rig, NULL);
	r = good(&rig, &first);
	MUST(ask(&r));
	r.type = DAT_MEM_TYPE_LMR;
	r.lmr = &second;
	r.region.for_lmr_handle = rig.pz;
	IS(ask(&r), E(INVALID_HANDLE, INVALID_HANDLE_LMR));
	r.region.for_lmr_handle = first;
	r.length = 0;
	MUST(ask(&r));
	MUST(dat_lmr_free(first));
	MUST(dat_lmr_query(second, DAT_LMR_FIELD_ALL, &param));
	CU_ASSERT_EQUAL(param.registered_address, (uintptr_t)memory);
	CU_ASSERT_EQUAL(param.length, sizeof(memory));
	MUST(dat_lmr_free(second));
	rig_close(&rig);
}

static void test_shared_cookie(void)
{
	char cookie[DAT_LMR_COOKIE_SIZE], wanted[DAT_LMR_COOKIE_SIZE];
	DAT_LMR_HANDLE lmr;
	DAT_LMR_PARAM param;
	struct request r;
	struct rig rig;

	memset(cookie, 0, sizeof(cookie));
	cookie[0] = cookie[DAT_LMR_COOKIE_SIZE - 1] = 'x';
	memcpy(wanted, cookie, sizeof(wanted));
	rig_open(&rig, NULL);
	r = good(&rig, &lmr);
	r.type = DAT_MEM_TYPE_SHARED_VIRTUAL;
	r.region.for_shared_memory = (DAT_SHARED_MEMORY){ memory, NULL };
	IS(ask(&r), E(INVALID_PARAMETER, INVALID_ARG3));
	r.length = 0;
	IS(ask(&r), E0(LENGTH_ERROR));
	r.length = 100;
	r.region.for_shared_memory.shared_memory_id = &cookie;
	MUST(ask(&r));
	memset(cookie, 0xff, sizeof(cookie));
	MUST(dat_lmr_query(lmr, DAT_LMR_FIELD_ALL, &param));
	CU_ASSERT_EQUAL(memcmp(param.region_desc.for_shared_memory.shared_memory_id, wanted,
			       sizeof(wanted)),
			0);
	MUST(dat_lmr_free(lmr));
	rig_close(&rig);
}

static void test_sync(void)
{
	DAT_LMR_TRIPLET one = { 0 };
	struct rig rig;

	rig_open(&rig, NULL);
	MUST(dat_lmr_sync_rdma_read(rig.ia, NULL, 0));
	MUST(dat_lmr_sync_rdma_write(rig.ia, &one, 1));
	IS(dat_lmr_sync_rdma_read(rig.ia, NULL, 1), E(INVALID_PARAMETER, INVALID_ARG2));
	IS(dat_lmr_sync_rdma_write(rig.ia, NULL, 1), E(INVALID_PARAMETER, INVALID_ARG2));
	IS(dat_lmr_sync_rdma_read(rig.pz, NULL, 0), E(INVALID_HANDLE, INVALID_HANDLE_IA));
	rig_close(&rig);
}

static const struct unit_test tests[] = {
	{ "pz create, query and free: every check", test_pz_checks },
	{ "a PZ that an EP, an LMR or the device uses is not freed", test_pz_in_use },
	{ "a freed PZ is refused", test_freed_pz_is_invalid },
	{ "lmr create: every check", test_lmr_checks },
	{ "registrations that the device cannot do are refused", test_lmr_without_the_device },
	{ "an LMR's outputs and query agree, and it can be freed", test_lmr_outputs },
	{ "without a remote privilege there is no RMR context", test_local_lmr_has_no_rmr_context },
	{ "an LMR over an LMR outlives it", test_lmr_over_lmr },
	{ "a query returns the 40 bytes of a shared cookie", test_shared_cookie },
	{ "sync", test_sync },
};

UNIT_MAIN("pz_lmr", tests)
