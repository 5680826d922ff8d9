/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/*
 * Which calls each state of an endpoint allows: every operation in every state, with new objects
 * each.
 */
#include <dat2/dat_ib_extensions.h>
#include "test/unit/rig.h"
#include "dapl/udapl/sp/sp.h"

static struct rig rig; /* holds the EP under test */
static DAT_EVD_HANDLE requests;
static DAT_EP_HANDLE connected, idle;
static DAT_LMR_HANDLE lmr;
static DAT_LMR_TRIPLET eight = { .segment_length = 8 };
static DAT_RMR_TRIPLET remote = { .virtual_address = 0x2000,
				  .segment_length = 8,
				  .rmr_context = 1 };
static DAT_RMR_HANDLE rmr;
static DAT_PSP_HANDLE psp;
static char memory[64];

static DAT_CR_HANDLE request_for(DAT_HANDLE point)
{
	struct ib_request arrived = { .data = NULL };

	arrived.remote.ss_family = arrived.local.ss_family = AF_INET;
	fake.upcalls.request(point, fake_new(sizeof(struct ib_conn), &fake.conns), &arrived);
	return rig_take(requests).event_data.cr_arrival_event_data.cr_handle;
}

static DAT_EP_HANDLE another(void)
{
	DAT_EP_ATTR attr = rig_attr();
	DAT_EP_HANDLE ep;

	MUST(dat_ep_create(rig.ia, rig.pz, rig.recv, rig.request, rig.conn, &attr, &ep));
	return ep;
}

static void open_all(void)
{
	DAT_REGION_DESCRIPTION region = { .for_va = memory };
	DAT_EP_ATTR attr = rig_attr();
	struct rig second;

	rig_open(&rig, &attr);
	requests = rig_evd(&rig, RIG_QLEN, DAT_EVD_CR_FLAG);
	connected = another();
	idle = another();
	second = rig;
	second.ep = connected;
	rig_connect(&second);
	MUST(dat_lmr_create(rig.ia, DAT_MEM_TYPE_VIRTUAL, region, sizeof(memory), rig.pz,
			    DAT_MEM_PRIV_ALL_FLAG, DAT_VA_TYPE_VA, &lmr, &eight.lmr_context, NULL,
			    NULL, NULL));
	eight.virtual_address = (DAT_VADDR)(uintptr_t)memory;
	MUST(dat_rmr_create(rig.pz, &rmr));
	MUST(dat_psp_create(rig.ia, 7001, requests, DAT_PSP_CONSUMER_FLAG, &psp));
}

static void close_all(void)
{
	MUST(dat_ia_close(rig.ia, DAT_CLOSE_ABRUPT_FLAG));
	CU_ASSERT_EQUAL(fake.pds + fake.mrs + fake.mws + fake.cqs + fake.qps + fake.srqs +
				fake.conns,
			0);
	CU_ASSERT_EQUAL(fake.devices[0].opens, 0);
}

/* ---- steps that bring an endpoint into each state ---- */

static void to_unconnected(void)
{
}

static void to_reserved(void)
{
	DAT_RSP_HANDLE rsp;

	MUST(dat_rsp_create(rig.ia, 7002, rig.ep, requests, &rsp));
}

static void to_passive(void)
{
	DAT_RSP_HANDLE rsp;

	MUST(dat_rsp_create(rig.ia, 7002, rig.ep, requests, &rsp));
	request_for(rsp);
}

/* The EP has all that a consumer can set before an accept. */
static void to_tentative(void)
{
	DAT_EP_PARAM whole = { .pz_handle = rig.pz,
			       .recv_evd_handle = rig.recv,
			       .request_evd_handle = rig.request,
			       .connect_evd_handle = rig.conn,
			       .ep_attr = rig_attr() };
	DAT_PSP_HANDLE provider;
	DAT_CR_PARAM param;

	MUST(dat_psp_create(rig.ia, 7003, requests, DAT_PSP_PROVIDER_FLAG, &provider));
	MUST(dat_cr_query(request_for(provider), DAT_CR_FIELD_ALL, &param));
	rig.ep = param.local_ep_handle;
	MUST(dat_ep_modify(
		rig.ep,
		DAT_EP_FIELD_PZ_HANDLE | DAT_EP_FIELD_RECV_EVD_HANDLE |
			DAT_EP_FIELD_REQUEST_EVD_HANDLE | DAT_EP_FIELD_CONNECT_EVD_HANDLE |
			DAT_EP_FIELD_EP_ATTR_MAX_RECV_DTOS | DAT_EP_FIELD_EP_ATTR_MAX_REQUEST_DTOS |
			DAT_EP_FIELD_EP_ATTR_MAX_RECV_IOV | DAT_EP_FIELD_EP_ATTR_MAX_REQUEST_IOV |
			DAT_EP_FIELD_EP_ATTR_MAX_RDMA_READ_IOV |
			DAT_EP_FIELD_EP_ATTR_MAX_RDMA_WRITE_IOV,
		&whole));
}

static void to_active(void)
{
	rig_start_connect(&rig);
}
static void to_completion(void)
{
	MUST(dat_cr_accept(request_for(psp), rig.ep, 0, NULL));
}
static void to_connected(void)
{
	rig_connect(&rig);
}

static void to_disconnect_pending(void)
{
	rig_connect(&rig);
	MUST(dat_ep_disconnect(rig.ep, DAT_CLOSE_ABRUPT_FLAG));
}

static void to_disconnected(void)
{
	rig_start_connect(&rig);
	MUST(dat_ep_disconnect(rig.ep, DAT_CLOSE_ABRUPT_FLAG));
}

static const struct {
	const char *name;
	void (*reach)(void);
	DAT_EP_STATE state;
	DAT_RETURN error;
} states[] = {
	{ "U", to_unconnected, DAT_EP_STATE_UNCONNECTED,
	  E(INVALID_STATE, INVALID_STATE_EP_UNCONNECTED) },
	{ "R", to_reserved, DAT_EP_STATE_RESERVED, E(INVALID_STATE, INVALID_STATE_EP_RESERVED) },
	{ "PP", to_passive, DAT_EP_STATE_PASSIVE_CONNECTION_PENDING,
	  E(INVALID_STATE, INVALID_STATE_EP_PASSCONNPENDING) },
	{ "TP", to_tentative, DAT_EP_STATE_TENTATIVE_CONNECTION_PENDING,
	  E(INVALID_STATE, INVALID_STATE_EP_TENTCONNPENDING) },
	{ "AP", to_active, DAT_EP_STATE_ACTIVE_CONNECTION_PENDING,
	  E(INVALID_STATE, INVALID_STATE_EP_ACTCONNPENDING) },
	{ "CP", to_completion, DAT_EP_STATE_COMPLETION_PENDING,
	  E(INVALID_STATE, INVALID_STATE_EP_COMPLPENDING) },
	{ "C", to_connected, DAT_EP_STATE_CONNECTED, E(INVALID_STATE, INVALID_STATE_EP_CONNECTED) },
	{ "DP", to_disconnect_pending, DAT_EP_STATE_DISCONNECT_PENDING,
	  E(INVALID_STATE, INVALID_STATE_EP_DISCPENDING) },
	{ "D", to_disconnected, DAT_EP_STATE_DISCONNECTED,
	  E(INVALID_STATE, INVALID_STATE_EP_DISCONNECTED) },
};

/* ---- the operations ---- */

static DAT_DTO_COOKIE cookie;

static DAT_IA_ADDRESS_PTR address(void)
{
	DAT_IA_ATTR attr;

	MUST(dat_ia_query(rig.ia, NULL, DAT_IA_FIELD_IA_ADDRESS_PTR, &attr, 0, NULL));
	return attr.ia_address_ptr;
}

static DAT_RETURN modify(DAT_EP_PARAM_MASK mask)
{
	DAT_EP_PARAM param = { .pz_handle = rig.pz,
			       .connect_evd_handle = rig.conn,
			       .ep_attr = { .max_rdma_read_in = 3 } };

	return dat_ep_modify(rig.ep, mask, &param);
}

#define OPERATION(name, expression)       \
	static DAT_RETURN do_##name(void) \
	{                                 \
		return expression;        \
	}

OPERATION(query, dat_ep_query(rig.ep, DAT_EP_FIELD_ALL, &(DAT_EP_PARAM){ .pz_handle = NULL }))
OPERATION(status, dat_ep_get_status(rig.ep, NULL, NULL, NULL))
OPERATION(recv_query, dat_ep_recv_query(rig.ep, NULL, NULL))
OPERATION(watermark, dat_ep_set_watermark(rig.ep, DAT_WATERMARK_INFINITE, DAT_WATERMARK_INFINITE))
OPERATION(modify_pz, modify(DAT_EP_FIELD_PZ_HANDLE))
OPERATION(modify_evd, modify(DAT_EP_FIELD_CONNECT_EVD_HANDLE))
OPERATION(modify_depth, modify(DAT_EP_FIELD_EP_ATTR_MAX_RDMA_READ_IN))
OPERATION(modify_transport, modify(DAT_EP_FIELD_EP_ATTR_NUM_TRANSPORT_ATTR))
OPERATION(modify_provider, modify(DAT_EP_FIELD_EP_ATTR_NUM_PROVIDER_ATTR))
OPERATION(connect, dat_ep_connect(rig.ep, address(), 4711, DAT_TIMEOUT_INFINITE, 0, NULL, 0, 0))
OPERATION(dup, dat_ep_dup_connect(rig.ep, connected, DAT_TIMEOUT_INFINITE, 0, NULL, 0))
OPERATION(dup_of, dat_ep_dup_connect(idle, rig.ep, DAT_TIMEOUT_INFINITE, 0, NULL, 0))
OPERATION(reserve, dat_rsp_create(rig.ia, 7009, rig.ep, requests, &(DAT_RSP_HANDLE){ NULL }))
OPERATION(accept, dat_cr_accept(request_for(psp), rig.ep, 0, NULL))
OPERATION(abrupt, dat_ep_disconnect(rig.ep, DAT_CLOSE_ABRUPT_FLAG))
OPERATION(graceful, dat_ep_disconnect(rig.ep, DAT_CLOSE_GRACEFUL_FLAG))
OPERATION(reset, dat_ep_reset(rig.ep))
OPERATION(free, dat_ep_free(rig.ep))
OPERATION(recv, dat_ep_post_recv(rig.ep, 1, &eight, cookie, 0))
OPERATION(send, dat_ep_post_send(rig.ep, 1, &eight, cookie, 0))
OPERATION(read, dat_ep_post_rdma_read(rig.ep, 1, &eight, cookie, &remote, 0))
OPERATION(write, dat_ep_post_rdma_write(rig.ep, 1, &eight, cookie, &remote, 0))
OPERATION(add, dat_ib_post_fetch_and_add(rig.ep, 1, &eight, cookie, &remote, 0))
OPERATION(swap, dat_ib_post_cmp_and_swap(rig.ep, 1, 2, &eight, cookie, &remote, 0))
OPERATION(immed, dat_ib_post_rdma_write_immed(rig.ep, 1, &eight, cookie, &remote, 3, 0))
OPERATION(bind, dat_rmr_bind(rmr, lmr, &eight, DAT_MEM_PRIV_REMOTE_READ_FLAG, DAT_VA_TYPE_VA,
			     rig.ep, (DAT_RMR_COOKIE){ 0 }, 0, &(DAT_RMR_CONTEXT){ 0 }))

/* One column for each state: '+' the call succeeds, '-' it returns the state's error. */
static const struct {
	const char *name;
	DAT_RETURN (*call)(void);
	char cells[COUNT(states) + 1];
} operations[] = {
	/* U R PP TP AP CP C DP D */
	{ "ep_query", do_query, "+++++++++" },
	{ "ep_get_status", do_status, "+++++++++" },
	{ "ep_recv_query", do_recv_query, "+++++++++" },
	{ "ep_set_watermark", do_watermark, "+++++++++" },
	{ "modify PZ", do_modify_pz, "+--+-----" },
	{ "modify EVD", do_modify_evd, "++++-----" },
	{ "modify read depth", do_modify_depth, "++++-----" },
	{ "modify transport", do_modify_transport, "+--------" },
	{ "modify provider", do_modify_provider, "+--------" },
	{ "ep_connect", do_connect, "+--------" },
	{ "ep_dup_connect", do_dup, "+--------" },
	{ "dup_connect of it", do_dup_of, "------+--" },
	{ "rsp_create", do_reserve, "+--------" },
	{ "cr_accept", do_accept, "+--------" },
	{ "disconnect abruptly", do_abrupt, "----+++++" },
	{ "disconnect gracefully", do_graceful, "----+++++" },
	{ "ep_reset", do_reset, "+-------+" },
	{ "ep_free", do_free, "+---+++++" },
	{ "post_recv", do_recv, "+++++++++" },
	{ "post_send", do_send, "-----++-+" },
	{ "post_rdma_read", do_read, "-----++-+" },
	{ "post_rdma_write", do_write, "-----++-+" },
	{ "fetch_and_add", do_add, "-----++-+" },
	{ "cmp_and_swap", do_swap, "-----++-+" },
	{ "rdma_write_immed", do_immed, "-----++-+" },
	{ "rmr_bind", do_bind, "-----++-+" },
};

static void cell(size_t operation, size_t state)
{
	DAT_EP_STATE now = DAT_EP_STATE_UNCONNECTED;
	DAT_RETURN expected = DAT_SUCCESS, status;
	char wanted = operations[operation].cells[state];

	open_all();
	states[state].reach();
	OK(dat_ep_get_status(rig.ep, &now, NULL, NULL));
	CU_ASSERT_EQUAL(now, states[state].state);
	if (wanted == '-')
		expected = states[state].error;
	status = operations[operation].call();
	if (status != expected)
		printf("%s in %s: 0x%x, expected 0x%x\n", operations[operation].name,
		       states[state].name, status, expected);
	CU_ASSERT_EQUAL(status, expected);
	/* a refused call does not change the state */
	if (wanted != '+') {
		OK(dat_ep_get_status(rig.ep, &now, NULL, NULL));
		CU_ASSERT_EQUAL(now, states[state].state);
	}
	close_all();
}

static void test_cells(void)
{
	size_t operation, state;

	for (operation = 0; operation < COUNT(operations); operation++)
		for (state = 0; state < COUNT(states); state++)
			cell(operation, state);
}

static const struct unit_test tests[] = {
	{ "each state allows the operations that it should", test_cells },
};

UNIT_MAIN("ep_cells", tests)
