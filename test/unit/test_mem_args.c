/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* Each check of the calls on PZs, LMRs and RMRs, alone and with each later one. */
#include "test/unit/spoil.h"

/* ---- dat_lmr_create ---- */

struct lmr_args {
	DAT_IA_HANDLE ia;
	DAT_MEM_TYPE type;
	DAT_REGION_DESCRIPTION region;
	DAT_VLEN length;
	DAT_PZ_HANDLE pz;
	DAT_MEM_PRIV_FLAGS privileges;
	DAT_VA_TYPE va_type;
	DAT_LMR_HANDLE *lmr;
};

static void lmr_good(void *args)
{
	*(struct lmr_args *)args = (struct lmr_args){
		.ia = things.ia,
		.type = DAT_MEM_TYPE_VIRTUAL,
		.region.for_va = things_memory,
		.length = sizeof(things_memory),
		.pz = things.pz,
		.privileges = DAT_MEM_PRIV_ALL_FLAG,
		.va_type = DAT_VA_TYPE_VA,
		.lmr = &things_out.handle,
	};
}

static DAT_RETURN lmr_call(void *args)
{
	struct lmr_args *a = args;

	return dat_lmr_create(a->ia, a->type, a->region, a->length, a->pz, a->privileges,
			      a->va_type, a->lmr, &things_out.lkey, &things_out.rkey,
			      &things_out.size, &things_out.address);
}

static void lmr_undo(void *args)
{
	OK(dat_lmr_free(*((struct lmr_args *)args)->lmr));
}

SPOIL(lmr_args, lmr_bad_ia, a->ia = things.evd)
SPOIL(lmr_args, lmr_bad_pz, a->pz = things.evd)
SPOIL(lmr_args, lmr_no_output, a->lmr = NULL)
SPOIL(lmr_args, lmr_bad_type, a->type = 3)
SPOIL(lmr_args, lmr_bad_privileges, a->privileges = 0x80)
SPOIL(lmr_args, lmr_more_privileges, a->privileges = DAT_MEM_PRIV_ALL_FLAG | 0x04)
SPOIL(lmr_args, lmr_bad_va_type, a->va_type = 2)
SPOIL(lmr_args, lmr_no_length, a->length = 0)
SPOIL(lmr_args, lmr_too_long, a->length = (1ull << 40) + 1)
SPOIL(lmr_args, lmr_wraps, a->region.for_va = (void *)(UINTPTR_MAX - 10))

static const struct spoil_row lmr_rows[] = {
	{ "ia", lmr_bad_ia, E(INVALID_HANDLE, INVALID_HANDLE_IA), 1 },
	{ "pz", lmr_bad_pz, E(INVALID_HANDLE, INVALID_HANDLE_PZ), 5 },
	{ "no output", lmr_no_output, E(INVALID_PARAMETER, INVALID_ARG8), 8 },
	{ "type", lmr_bad_type, E(INVALID_PARAMETER, INVALID_ARG2), 2 },
	{ "privileges", lmr_bad_privileges, E(INVALID_PARAMETER, INVALID_ARG6), 6 },
	{ "more privileges", lmr_more_privileges, E(INVALID_PARAMETER, INVALID_ARG6), 6 },
	{ "va_type", lmr_bad_va_type, E(INVALID_PARAMETER, INVALID_ARG7), 7 },
	{ "no length", lmr_no_length, E0(LENGTH_ERROR), 4 },
	{ "too long", lmr_too_long, E0(LENGTH_ERROR), 4 },
	{ "wraps", lmr_wraps, E(INVALID_PARAMETER, INVALID_ARG4), 3 },
};

static const struct spoil_call lmr_create = { "dat_lmr_create", sizeof(struct lmr_args),
					      lmr_good,		lmr_call,
					      lmr_undo,		lmr_rows,
					      COUNT(lmr_rows) };

/* ---- dat_lmr_create over an LMR, and of shared memory ---- */

static void lmr_over_good(void *args)
{
	struct lmr_args *a = args;

	lmr_good(args);
	a->type = DAT_MEM_TYPE_LMR;
	a->region.for_lmr_handle = things.lmr;
	a->length = 0;
}

SPOIL(lmr_args, lmr_over_bad, a->region.for_lmr_handle = things.rmr)

static const struct spoil_row lmr_over_rows[] = {
	{ "ia", lmr_bad_ia, E(INVALID_HANDLE, INVALID_HANDLE_IA), 1 },
	{ "pz", lmr_bad_pz, E(INVALID_HANDLE, INVALID_HANDLE_PZ), 5 },
	{ "no output", lmr_no_output, E(INVALID_PARAMETER, INVALID_ARG8), 8 },
	{ "privileges", lmr_bad_privileges, E(INVALID_PARAMETER, INVALID_ARG6), 6 },
	{ "va_type", lmr_bad_va_type, E(INVALID_PARAMETER, INVALID_ARG7), 7 },
	{ "lmr", lmr_over_bad, E(INVALID_HANDLE, INVALID_HANDLE_LMR), 3 },
};

static const struct spoil_call lmr_over = { "dat_lmr_create over an LMR",
					    sizeof(struct lmr_args),
					    lmr_over_good,
					    lmr_call,
					    lmr_undo,
					    lmr_over_rows,
					    COUNT(lmr_over_rows) };

static void lmr_shared_good(void *args)
{
	static char cookie[DAT_LMR_COOKIE_SIZE];
	struct lmr_args *a = args;

	lmr_good(args);
	a->type = DAT_MEM_TYPE_SHARED_VIRTUAL;
	a->region.for_shared_memory = (DAT_SHARED_MEMORY){ things_memory, &cookie };
}

SPOIL(lmr_args, lmr_no_cookie, a->region.for_shared_memory.shared_memory_id = NULL)

static const struct spoil_row lmr_shared_rows[] = {
	{ "ia", lmr_bad_ia, E(INVALID_HANDLE, INVALID_HANDLE_IA), 1 },
	{ "pz", lmr_bad_pz, E(INVALID_HANDLE, INVALID_HANDLE_PZ), 5 },
	{ "no output", lmr_no_output, E(INVALID_PARAMETER, INVALID_ARG8), 8 },
	{ "privileges", lmr_bad_privileges, E(INVALID_PARAMETER, INVALID_ARG6), 6 },
	{ "va_type", lmr_bad_va_type, E(INVALID_PARAMETER, INVALID_ARG7), 7 },
	{ "no length", lmr_no_length, E0(LENGTH_ERROR), 4 },
	{ "no cookie", lmr_no_cookie, E(INVALID_PARAMETER, INVALID_ARG3), 3 },
};

static const struct spoil_call lmr_shared = { "dat_lmr_create of shared memory",
					      sizeof(struct lmr_args),
					      lmr_shared_good,
					      lmr_call,
					      lmr_undo,
					      lmr_shared_rows,
					      COUNT(lmr_shared_rows) };

/* ---- dat_rmr_bind, on a connected endpoint; dat_pz_create, dat_rmr_create ---- */

/*
 * Objects that make a bind fail: an EP for datagrams, an EP with a full queue, an RMR of another
 * PZ, and an LMR without write privileges.
 */
static DAT_EP_HANDLE ud, full;
static DAT_RMR_HANDLE elsewhere;
static DAT_LMR_HANDLE read_only;
static DAT_LMR_CONTEXT read_only_lkey;

struct bind_args {
	DAT_RMR_HANDLE rmr;
	DAT_LMR_HANDLE lmr;
	DAT_LMR_TRIPLET triplet;
	const DAT_LMR_TRIPLET *where;
	DAT_MEM_PRIV_FLAGS privileges;
	DAT_VA_TYPE va_type;
	DAT_EP_HANDLE ep;
	DAT_COMPLETION_FLAGS flags;
	DAT_RMR_CONTEXT *context;
};

static void bind_good(void *args)
{
	struct bind_args *a = args;

	*a = (struct bind_args){
		.rmr = things.rmr,
		.lmr = things.lmr,
		.triplet = { .virtual_address = (uintptr_t)things_memory,
			     .segment_length = 64,
			     .lmr_context = things.lkey },
		.where = &a->triplet,
		.privileges = DAT_MEM_PRIV_REMOTE_READ_FLAG,
		.va_type = DAT_VA_TYPE_VA,
		.ep = things.ep,
		.context = &things_out.rkey,
	};
}

static DAT_RETURN bind_call(void *args)
{
	struct bind_args *a = args;

	return dat_rmr_bind(a->rmr, a->lmr, a->where, a->privileges, a->va_type, a->ep,
			    (DAT_RMR_COOKIE){ 0 }, a->flags, a->context);
}

static void bind_undo(void *args)
{
	DAT_LMR_TRIPLET nothing = { 0 };
	struct bind_args *a = args;

	OK(dat_rmr_bind(a->rmr, DAT_HANDLE_NULL, &nothing, DAT_MEM_PRIV_NONE_FLAG, DAT_VA_TYPE_VA,
			a->ep, (DAT_RMR_COOKIE){ 0 }, 0, NULL));
}

SPOIL(bind_args, bind_bad_rmr, a->rmr = things.lmr)
SPOIL(bind_args, bind_bad_ep, a->ep = things.evd)
SPOIL(bind_args, bind_no_triplet, a->where = NULL)
SPOIL(bind_args, bind_bad_flags, a->flags = DAT_COMPLETION_EVD_THRESHOLD_FLAG)
SPOIL(bind_args, bind_unsignalled, a->flags = DAT_COMPLETION_UNSIGNALLED_FLAG)
SPOIL(bind_args, bind_state, a->ep = things.reserved)
SPOIL(bind_args, bind_datagrams, a->ep = ud)
SPOIL(bind_args, bind_full, a->ep = full)
SPOIL(bind_args, bind_bad_lmr, a->lmr = things.rmr)
SPOIL(bind_args, bind_other_pz, a->rmr = elsewhere)
SPOIL(bind_args, bind_read_only,
      (a->lmr = read_only, a->triplet.lmr_context = read_only_lkey,
       a->privileges = DAT_MEM_PRIV_REMOTE_WRITE_FLAG))
SPOIL(bind_args, bind_other_context, a->triplet.lmr_context = 1)
SPOIL(bind_args, bind_outside, a->triplet.virtual_address += sizeof(things_memory) - 63)
SPOIL(bind_args, bind_before, a->triplet.virtual_address -= 1)
SPOIL(bind_args, bind_bad_privileges, a->privileges = 0x80)
SPOIL(bind_args, bind_bad_va_type, a->va_type = 2)
SPOIL(bind_args, bind_zero_based, a->va_type = DAT_VA_TYPE_ZB)

static const struct spoil_row bind_rows[] = {
	{ "rmr", bind_bad_rmr, E(INVALID_HANDLE, INVALID_HANDLE_RMR), 1 },
	{ "ep", bind_bad_ep, E(INVALID_HANDLE, INVALID_HANDLE_EP), 6 },
	{ "ep of datagrams", bind_datagrams, E(INVALID_HANDLE, INVALID_HANDLE_EP), 6 },
	{ "no triplet", bind_no_triplet, E(INVALID_PARAMETER, INVALID_ARG3), 3 },
	{ "flags", bind_bad_flags, E(INVALID_PARAMETER, INVALID_ARG8), 8 },
	{ "unsignalled", bind_unsignalled, E(INVALID_PARAMETER, INVALID_ARG8), 8 },
	{ "state", bind_state, E(INVALID_STATE, INVALID_STATE_EP_RESERVED), 6 },
	{ "lmr", bind_bad_lmr, E(INVALID_HANDLE, INVALID_HANDLE_LMR), 2 },
	{ "context", bind_other_context, E(INVALID_PARAMETER, INVALID_ARG3), 3 },
	{ "outside", bind_outside, E(INVALID_PARAMETER, INVALID_ARG3), 3 },
	{ "before", bind_before, E(INVALID_PARAMETER, INVALID_ARG3), 3 },
	{ "another pz", bind_other_pz, E(INVALID_PARAMETER, INVALID_ARG6), 1 },
	{ "privileges", bind_bad_privileges, E(INVALID_PARAMETER, INVALID_ARG4), 4 },
	{ "memory not to be written", bind_read_only,
	  E(PRIVILEGES_VIOLATION, PRIVILEGES_RDMA_WRITE), 2 },
	{ "va_type", bind_bad_va_type, E(INVALID_PARAMETER, INVALID_ARG5), 5 },
	{ "zero-based", bind_zero_based, E0(MODEL_NOT_SUPPORTED), 5 },
	{ "full", bind_full, E(INSUFFICIENT_RESOURCES, RESOURCE_MEMORY), 6 },
};

static const struct spoil_call rmr_bind = { "dat_rmr_bind",  sizeof(struct bind_args),
					    bind_good,	     bind_call,
					    bind_undo,	     bind_rows,
					    COUNT(bind_rows) };

/* ---- the tests ---- */

static void run(const struct spoil_call *call)
{
	things_open();
	rig_connect(&things.rig);
	spoil_run(call);
	things_close();
}

static void test_lmr_create(void)
{
	run(&lmr_create);
}
static void test_lmr_over(void)
{
	run(&lmr_over);
}
static void test_lmr_shared(void)
{
	run(&lmr_shared);
}

/* Each successful bind uses slots of the request queue until its completions are taken. */
static void test_rmr_bind(void)
{
	DAT_REGION_DESCRIPTION region = { .for_va = things_memory };
	DAT_EP_ATTR attr = rig_attr();
	DAT_PZ_HANDLE pz;
	struct rig rig;

	fake.datagrams = true;
	things_open();
	rig_connect(&things.rig);
	rig = things.rig;
	MUST(dat_lmr_create(things.ia, DAT_MEM_TYPE_VIRTUAL, region, sizeof(things_memory),
			    things.pz, DAT_MEM_PRIV_LOCAL_READ_FLAG | DAT_MEM_PRIV_REMOTE_READ_FLAG,
			    DAT_VA_TYPE_VA, &read_only, &read_only_lkey, NULL, NULL, NULL));
	MUST(dat_pz_create(things.ia, &pz));
	MUST(dat_rmr_create(pz, &elsewhere));
	attr.max_request_dtos = 1;
	MUST(dat_ep_create(things.ia, things.pz, rig.recv, rig.request, rig.conn, &attr, &full));
	rig.ep = full;
	rig_connect(&rig);
	while (rig_send(&rig, 1, 0) == DAT_SUCCESS)
		;
	attr.service_type = (DAT_SERVICE_TYPE)DAT_IB_SERVICE_TYPE_UD;
	attr.max_rdma_read_in = attr.max_rdma_read_out = 0;
	MUST(dat_ep_create(things.ia, things.pz, rig.recv, rig.request, rig.conn, &attr, &ud));
	spoil_run(&rmr_bind);
	MUST(dat_ep_free(ud));
	MUST(dat_ep_free(full));
	MUST(dat_rmr_free(elsewhere));
	MUST(dat_pz_free(pz));
	MUST(dat_lmr_free(read_only));
	things_close();
}

static void test_no_output(void)
{
	things_open();
	IS(dat_pz_create(things.ia, NULL), E(INVALID_PARAMETER, INVALID_ARG2));
	IS(dat_rmr_create(things.pz, NULL), E(INVALID_PARAMETER, INVALID_ARG2));
	IS(dat_rmr_create_for_ep(things.pz, NULL), E(INVALID_PARAMETER, INVALID_ARG2));
	IS(dat_lmr_sync_rdma_read(things.ia, NULL, 1), E(INVALID_PARAMETER, INVALID_ARG2));
	IS(dat_lmr_sync_rdma_write(things.ia, NULL, 1), E(INVALID_PARAMETER, INVALID_ARG2));
	OK(dat_lmr_sync_rdma_read(things.ia, NULL, 0));
	OK(dat_lmr_sync_rdma_write(things.ia, NULL, 0));
	things_close();
}

static const struct unit_test tests[] = {
	{ "lmr create: each check, alone and with each later one", test_lmr_create },
	{ "lmr create over an LMR: each check, alone and with each later one", test_lmr_over },
	{ "lmr create of shared memory: each check, alone and with each later one",
	  test_lmr_shared },
	{ "bind: each check, alone and with each later one", test_rmr_bind },
	{ "a missing output and missing segments are refused", test_no_output },
};

UNIT_MAIN("mem_args", tests)
