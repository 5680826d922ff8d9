/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* Counters over the fake device: each operation moves its own counter and no other. */
#include "test/unit/spoil.h"

/* ---- differences between two readings ---- */

struct reading {
	DAT_HANDLE handle;
	int all;
	DAT_UINT64 before[DCNT_IA_ALL_COUNTERS], after[DCNT_IA_ALL_COUNTERS];
};

static void reading_begin(struct reading *r, DAT_HANDLE handle, int all)
{
	*r = (struct reading){ .handle = handle, .all = all };
	OK(dat_ib_query_counters(handle, all, r->before, 0));
}

static void reading_end(struct reading *r)
{
	OK(dat_ib_query_counters(r->handle, r->all, r->after, 0));
}

static uint64_t moved(const struct reading *r, int counter)
{
	return r->after[counter] - r->before[counter];
}

/* Exactly these counters moved, by these amounts; a negative number ends the list. */
struct move {
	int counter;
	uint64_t by;
};

#define END           \
	{             \
		-1, 0 \
	}

static void expect_moves(struct reading *r, const struct move *moves)
{
	uint64_t by;
	int i, j;

	reading_end(r);
	for (i = 0; i < r->all; i++) {
		for (by = 0, j = 0; moves[j].counter >= 0; j++)
			if (moves[j].counter == i)
				by = moves[j].by;
		if (moved(r, i) != by)
			printf("counter %d of %d moved by %llu, not by %llu\n", i, r->all,
			       (unsigned long long)moved(r, i), (unsigned long long)by);
		CU_ASSERT_EQUAL(moved(r, i), by);
	}
}

/* ---- of an IA: objects ---- */

static DAT_HANDLE object;

#define MAKE(name, expression)              \
	static DAT_RETURN make_##name(void) \
	{                                   \
		return expression;          \
	}

MAKE(pz, dat_pz_create(things.ia, &object))
MAKE(lmr, dat_lmr_create(things.ia, DAT_MEM_TYPE_VIRTUAL,
			 (DAT_REGION_DESCRIPTION){ .for_va = things_memory }, 64, things.pz,
			 DAT_MEM_PRIV_ALL_FLAG, DAT_VA_TYPE_VA, &object, NULL, NULL, NULL, NULL))
MAKE(rmr, dat_rmr_create(things.pz, &object))
MAKE(psp, dat_psp_create(things.ia, 7101, things.requests, DAT_PSP_CONSUMER_FLAG, &object))
MAKE(psp_any, dat_psp_create_any(things.ia, &things_out.qual, things.requests,
				 DAT_PSP_CONSUMER_FLAG, &object))
MAKE(rsp, dat_rsp_create(things.ia, 7102, things.ep, things.requests, &object))
MAKE(evd, dat_evd_create(things.ia, 8, DAT_HANDLE_NULL, DAT_EVD_SOFTWARE_FLAG, &object))
MAKE(ep, dat_ep_create(things.ia, things.pz, things.rig.recv, things.rig.request, things.evd, NULL,
		       &object))
MAKE(srq, dat_srq_create(things.ia, things.pz,
			 &((DAT_SRQ_ATTR){ .max_recv_dtos = 4, .max_recv_iov = 1 }), &object))

static const struct {
	const char *name;
	DAT_RETURN (*make)(void);
	DAT_RETURN (*end)(DAT_HANDLE object);
	int created, freed;
	bool listens;
} objects[] = {
	{ "pz", make_pz, dat_pz_free, DCNT_IA_PZ_CREATE, DCNT_IA_PZ_FREE, false },
	{ "lmr", make_lmr, dat_lmr_free, DCNT_IA_LMR_CREATE, DCNT_IA_LMR_FREE, false },
	{ "rmr", make_rmr, dat_rmr_free, DCNT_IA_RMR_CREATE, DCNT_IA_RMR_FREE, false },
	{ "psp", make_psp, dat_psp_free, DCNT_IA_PSP_CREATE, DCNT_IA_PSP_FREE, true },
	{ "psp any", make_psp_any, dat_psp_free, DCNT_IA_PSP_CREATE, DCNT_IA_PSP_FREE, true },
	{ "rsp", make_rsp, dat_rsp_free, DCNT_IA_RSP_CREATE, DCNT_IA_RSP_FREE, true },
	{ "evd", make_evd, dat_evd_free, DCNT_IA_EVD_CREATE, DCNT_IA_EVD_FREE, false },
	{ "ep", make_ep, dat_ep_free, DCNT_IA_EP_CREATE, DCNT_IA_EP_FREE, false },
	{ "srq", make_srq, dat_srq_free, DCNT_IA_SRQ_CREATE, DCNT_IA_SRQ_FREE, false },
};

static void test_objects(void)
{
	struct reading r;
	size_t i;

	things_open();
	for (i = 0; i < COUNT(objects); i++) {
		reading_begin(&r, things.ia, DCNT_IA_ALL_COUNTERS);
		MUST(objects[i].make());
		reading_end(&r);
		CU_ASSERT_TRUE(moved(&r, DCNT_IA_MEM_ALLOC_DATA) > 0);
		expect_moves(&r,
			     (const struct move[]){
				     { objects[i].created, 1 },
				     { DCNT_IA_MEM_ALLOC, 1 },
				     { DCNT_IA_MEM_ALLOC_DATA, moved(&r, DCNT_IA_MEM_ALLOC_DATA) },
				     { DCNT_IA_CM_LISTEN, objects[i].listens },
				     { DCNT_IA_PSP_CREATE_ANY, objects[i].make == make_psp_any },
				     END });
		reading_begin(&r, things.ia, DCNT_IA_ALL_COUNTERS);
		MUST(objects[i].end(object));
		expect_moves(&r, (const struct move[]){
					 { objects[i].freed, 1 }, { DCNT_IA_MEM_FREE, 1 }, END });
	}
	things_close();
}

/* ---- of an IA: the CM, as seen in a consumer's calls and events ---- */

static void upcall(enum ib_conn_event event, const void *data, uint32_t size)
{
	fake.upcalls.conn(fake.conn->owner, fake.conn, event, data, size);
	rig_take(things.evd);
}

/* Requests a connection that ends with this event; afterwards the endpoint can connect again. */
static void expect_ending(enum ib_conn_event event, const void *data, uint32_t size, int counter)
{
	struct reading r;

	rig_start_connect(&things.rig);
	reading_begin(&r, things.ia, DCNT_IA_ALL_COUNTERS);
	upcall(event, data, size);
	expect_moves(&r, (const struct move[]){ { counter, 1 }, END });
	OK(dat_ep_reset(things.ep));
}

static void test_active(void)
{
	static const unsigned char refusal[8] = { 2, 0, 2, 0 };
	struct reading r;

	things_open();
	reading_begin(&r, things.ia, DCNT_IA_ALL_COUNTERS);
	rig_start_connect(&things.rig);
	expect_moves(&r, (const struct move[]){ { DCNT_IA_CM_REQ_TX, 1 }, END });
	reading_begin(&r, things.ia, DCNT_IA_ALL_COUNTERS);
	upcall(IB_CONN_ESTABLISHED, NULL, 0);
	expect_moves(&r, (const struct move[]){
				 { DCNT_IA_CM_REP_RX, 1 }, { DCNT_IA_CM_ACTIVE_EST, 1 }, END });
	reading_begin(&r, things.ia, DCNT_IA_ALL_COUNTERS);
	upcall(IB_CONN_DISCONNECTED, NULL, 0);
	expect_moves(&r, (const struct move[]){ { DCNT_IA_CM_DREQ_RX, 1 }, END });
	OK(dat_ep_reset(things.ep));
	expect_ending(IB_CONN_REJECTED_BY_PEER, refusal, sizeof(refusal), DCNT_IA_CM_USER_REJ_RX);
	expect_ending(IB_CONN_REJECTED_BY_PEER, refusal + 4, 4, DCNT_IA_CM_ERR_REJ_RX);
	expect_ending(IB_CONN_REJECTED, NULL, 0, DCNT_IA_CM_ERR_REJ_RX);
	MUST(dat_ep_connect(things.ep, things.address, 7, 1, 0, NULL, DAT_QOS_BEST_EFFORT,
			    DAT_CONNECT_DEFAULT_FLAG));
	reading_begin(&r, things.ia, DCNT_IA_ALL_COUNTERS);
	while (dat_evd_dequeue(things.evd, &(DAT_EVENT){ 0 }) != DAT_SUCCESS)
		fake_run_timers();
	expect_moves(&r, (const struct move[]){ { DCNT_IA_CM_ERR_TIMEOUT, 1 }, END });
	things_close();
}

static void test_passive(void)
{
	struct reading r;
	struct ib_conn *conn;

	things_open();
	MUST(dat_cr_reject(things.cr, 0, NULL));
	reading_begin(&r, things.ia, DCNT_IA_ALL_COUNTERS);
	things.cr = things_request(things.psp);
	reading_end(&r);
	CU_ASSERT_EQUAL(moved(&r, DCNT_IA_SP_CR), 1);
	CU_ASSERT_EQUAL(moved(&r, DCNT_IA_CM_REQ_RX), 1);
	reading_begin(&r, things.ia, DCNT_IA_ALL_COUNTERS);
	OK(dat_cr_reject(things.cr, 0, NULL));
	expect_moves(&r, (const struct move[]){ { DCNT_IA_SP_CR_REJECTED, 1 },
						{ DCNT_IA_CM_USER_REJ_TX, 1 },
						{ DCNT_IA_MEM_FREE, 1 },
						END });
	things.cr = things_request(things.psp);
	conn = ((struct dapl_cr *)things.cr)->conn;
	reading_begin(&r, things.ia, DCNT_IA_ALL_COUNTERS);
	OK(dat_cr_accept(things.cr, things.ep, 0, NULL));
	expect_moves(&r, (const struct move[]){ { DCNT_IA_SP_CR_ACCEPTED, 1 },
						{ DCNT_IA_CM_REP_TX, 1 },
						{ DCNT_IA_MEM_FREE, 1 },
						END });
	reading_begin(&r, things.ia, DCNT_IA_ALL_COUNTERS);
	fake.upcalls.conn(things.ep, conn, IB_CONN_ESTABLISHED, NULL, 0);
	rig_take(things.evd);
	expect_moves(&r, (const struct move[]){
				 { DCNT_IA_CM_RTU_RX, 1 }, { DCNT_IA_CM_PASSIVE_EST, 1 }, END });
	reading_begin(&r, things.ia, DCNT_IA_ALL_COUNTERS);
	OK(dat_ep_disconnect(things.ep, DAT_CLOSE_ABRUPT_FLAG));
	expect_moves(&r, (const struct move[]){ { DCNT_IA_CM_DREQ_TX, 1 }, END });
	things.cr = things_request(things.psp);
	things_close();
}

static void test_async(void)
{
	struct dapl_ep *ep;
	struct reading r;

	things_open();
	ep = things.ep;
	reading_begin(&r, things.ia, DCNT_IA_ALL_COUNTERS);
	fake.upcalls.async(ep->obj.ia->device, IB_ASYNC_QP_ERROR, ep);
	expect_moves(&r, (const struct move[]){
				 { DCNT_IA_ASYNC_ERROR, 1 }, { DCNT_IA_ASYNC_QP_ERROR, 1 }, END });
	reading_begin(&r, things.ia, DCNT_IA_ALL_COUNTERS);
	fake.upcalls.async(ep->obj.ia->device, IB_ASYNC_CQ_ERROR, things.rig.request);
	expect_moves(&r, (const struct move[]){
				 { DCNT_IA_ASYNC_ERROR, 1 }, { DCNT_IA_ASYNC_CQ_ERROR, 1 }, END });
	things_close();
}

/* ---- of an EP: posts and received messages ---- */

static DAT_LMR_TRIPLET local = { 0x1000, 8, FAKE_LKEY };
static DAT_RMR_TRIPLET remote = { 0x5000, 8, 0x99 };
static const DAT_DTO_COOKIE cookie = { .as_64 = 7 };

MAKE(send, dat_ep_post_send(things.ep, 1, &local, cookie, 0))
MAKE(sends, dat_ep_post_send(things.ep, 2, ((DAT_LMR_TRIPLET[]){ local, local }), cookie, 0))
MAKE(recv, dat_ep_post_recv(things.ep, 1, &local, cookie, 0))
MAKE(write, dat_ep_post_rdma_write(things.ep, 1, &local, cookie, &remote, 0))
MAKE(read, dat_ep_post_rdma_read(things.ep, 1, &local, cookie, &remote, 0))
MAKE(immed, dat_ib_post_rdma_write_immed(things.ep, 1, &local, cookie, &remote, 1, 0))
MAKE(add, dat_ib_post_fetch_and_add(things.ep, 1, &local, cookie, &remote, 0))
MAKE(swap, dat_ib_post_cmp_and_swap(things.ep, 1, 2, &local, cookie, &remote, 0))
MAKE(inv, dat_ep_post_send_with_invalidate(things.ep, 1, &local, cookie, 0, DAT_TRUE, 1))

static void test_posts(void)
{
	static const struct {
		DAT_RETURN (*post)(void);
		struct move moves[3];
	} posts[] = {
		{ make_send, { { DCNT_EP_POST_SEND, 1 }, { DCNT_EP_POST_SEND_DATA, 8 }, END } },
		{ make_sends, { { DCNT_EP_POST_SEND, 1 }, { DCNT_EP_POST_SEND_DATA, 16 }, END } },
		{ make_inv, { { DCNT_EP_POST_SEND, 1 }, { DCNT_EP_POST_SEND_DATA, 8 }, END } },
		{ make_recv, { { DCNT_EP_POST_RECV, 1 }, { DCNT_EP_POST_RECV_DATA, 8 }, END } },
		{ make_write, { { DCNT_EP_POST_WRITE, 1 }, { DCNT_EP_POST_WRITE_DATA, 8 }, END } },
		{ make_read, { { DCNT_EP_POST_READ, 1 }, { DCNT_EP_POST_READ_DATA, 8 }, END } },
		{ make_immed,
		  { { DCNT_EP_POST_WRITE_IMM, 1 }, { DCNT_EP_POST_WRITE_IMM_DATA, 8 }, END } },
		{ make_add, { { DCNT_EP_POST_FETCH_ADD, 1 }, END } },
		{ make_swap, { { DCNT_EP_POST_CMP_SWAP, 1 }, END } },
	};
	struct reading r;
	size_t i;

	things_open();
	rig_connect(&things.rig);
	for (i = 0; i < COUNT(posts); i++) {
		reading_begin(&r, things.ep, DCNT_EP_ALL_COUNTERS);
		MUST(posts[i].post());
		expect_moves(&r, posts[i].moves);
		/* a post that the device refuses is not counted */
		fake.refuse = E0(INTERNAL_ERROR);
		reading_begin(&r, things.ep, DCNT_EP_ALL_COUNTERS);
		IS(posts[i].post(), E0(INTERNAL_ERROR));
		expect_moves(&r, (const struct move[]){ END });
		if (posts[i].post != make_recv) {
			rig_complete(things.rig.request, fake.last.wr_id, DAT_DTO_SUCCESS, 8);
			rig_take(things.rig.request);
		}
	}
	things_close();
}

static void receive(unsigned flags, unsigned opcode, uint32_t status)
{
	MUST(make_recv());
	fake_complete(rig_cq(things.rig.recv),
		      &(struct ib_completion){ .wr_id = fake.last.wr_id,
					       .status = status,
					       .flags = (uint8_t)flags,
					       .opcode = (uint8_t)opcode,
					       .byte_len = 5 },
		      false);
	rig_take(things.rig.recv);
}

static void test_received(void)
{
	static const struct {
		unsigned flags, opcode;
		struct move moves[5];
	} kinds[] = {
#define POSTED { DCNT_EP_POST_RECV, 1 }, { DCNT_EP_POST_RECV_DATA, 8 }
		{ 0,
		  IB_RECV_WRITE - 1,
		  { POSTED, { DCNT_EP_RECV, 1 }, { DCNT_EP_RECV_DATA, 5 }, END } },
		{ IB_WITH_IMMEDIATE,
		  IB_RECV_WRITE - 1,
		  { POSTED, { DCNT_EP_RECV_IMM, 1 }, { DCNT_EP_RECV_IMM_DATA, 5 }, END } },
		{ IB_WITH_IMMEDIATE,
		  IB_RECV_WRITE,
		  { POSTED,
		    { DCNT_EP_RECV_RDMA_IMM, 1 },
		    { DCNT_EP_RECV_RDMA_IMM_DATA, 5 },
		    END } },
	};
	struct reading r;
	size_t i;

	things_open();
	rig_connect(&things.rig);
	for (i = 0; i < COUNT(kinds); i++) {
		reading_begin(&r, things.ep, DCNT_EP_ALL_COUNTERS);
		receive(kinds[i].flags, kinds[i].opcode, DAT_DTO_SUCCESS);
		expect_moves(&r, kinds[i].moves);
	}
	reading_begin(&r, things.ep, DCNT_EP_ALL_COUNTERS);
	receive(0, IB_RECV_WRITE - 1, DAT_DTO_ERR_FLUSHED);
	expect_moves(&r, (const struct move[]){ POSTED, END });
	things_close();
}

/* ---- of an EVD ---- */

static void test_evd(void)
{
	DAT_TIMEOUT timeout =
		1000; /* us; a thread that loses its processor for so long does not block */
	DAT_EVENT event;
	struct reading r;
	DAT_COUNT more;

	things_open();
	do {
		reading_begin(&r, things.software, DCNT_EVD_ALL_COUNTERS);
		IS(dat_evd_wait(things.software, timeout, 1, &event, &more), DAT_TIMEOUT_EXPIRED);
		reading_end(&r);
		CU_ASSERT_EQUAL(moved(&r, DCNT_EVD_WAIT), 1);
		timeout *= 4;
	} while (!moved(&r, DCNT_EVD_WAIT_BLOCKED) && timeout < UNIT_PATIENCE * 1000);
	CU_ASSERT_TRUE(moved(&r, DCNT_EVD_WAIT_BLOCKED) >= 1);
	CU_ASSERT_EQUAL(moved(&r, DCNT_EVD_WAIT_NOTIFY), 0);
	MUST(rig_post_se(things.software, 1));
	reading_begin(&r, things.software, DCNT_EVD_ALL_COUNTERS);
	OK(dat_evd_wait(things.software, 1000, 1, &event, &more));
	expect_moves(&r, (const struct move[]){ { DCNT_EVD_WAIT, 1 }, END });
	/* the event thread reports completions */
	rig_connect(&things.rig);
	MUST(make_recv());
	reading_begin(&r, things.rig.recv, DCNT_EVD_ALL_COUNTERS);
	fake.upcalls.completion(things.rig.recv);
	reading_end(&r);
	CU_ASSERT_EQUAL(moved(&r, DCNT_EVD_DTO_CALLBACK), 1);
	CU_ASSERT_EQUAL(moved(&r, DCNT_EVD_CONN_CALLBACK), 0);
	things_close();
}

static const struct unit_test tests[] = {
	{ "each object of an IA moves its own counter", test_objects },
	{ "each CM message of the active side moves its own counter", test_active },
	{ "each CM message of the passive side moves its own counter", test_passive },
	{ "async errors are counted", test_async },
	{ "each kind of post of an EP moves its own counter", test_posts },
	{ "each kind of arrival at an EP moves its own counter", test_received },
	{ "waits and callbacks of an EVD are counted", test_evd },
};

UNIT_MAIN("counters_all", tests)
