/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* What goes wrong while a request is executed: status on either side, states, events. */
#include <sys/mman.h>
#include "test/conform/conform.h"

#undef ibv_reg_mr /* the function itself: the access flags here are not constants */

/* The effect that a bad request has on the responder. */
enum blame {
	BLAME_NONE,    /* unaffected, stays in RTS */
	BLAME_ACCESS,  /* ERR, receives flushed, QP_ACCESS_ERR */
	BLAME_REQUEST, /* ERR, receives flushed, QP_REQ_ERR */
};

static void expect_responder(struct pair *pair, enum blame blame)
{
	if (blame == BLAME_NONE) {
		CU_ASSERT_TRUE(stays_empty(pair->b.rcq));
		CU_ASSERT_EQUAL(state_of(pair->b.qp), IBV_QPS_RTS);
		CU_ASSERT_TRUE(async_silent());
		return;
	}
	CU_ASSERT_TRUE(reaches(pair->b.qp, IBV_QPS_ERR));
	CU_ASSERT_TRUE(completes(pair->b.rcq, 50, IBV_WC_WR_FLUSH_ERR, NULL));
	CU_ASSERT_TRUE(completes(pair->b.rcq, 51, IBV_WC_WR_FLUSH_ERR, NULL));
	/* the kernel's software RoCE raises no event */
	CU_ASSERT_TRUE(device_is_rxe || async_is(blame == BLAME_ACCESS ? IBV_EVENT_QP_ACCESS_ERR
								       : IBV_EVENT_QP_REQ_ERR,
						 pair->b.qp));
}

/*
 * Posts two receives at b, and at a the unsignaled bad request with two writes behind it; checks
 * all results.
 */
static void expect_failure(struct pair *pair, struct ibv_send_wr *wr, enum ibv_wc_status status,
			   enum ibv_wc_status rxe, enum blame blame)
{
	struct ibv_send_wr *bad;

	CU_ASSERT_EQUAL(post_recv(&pair->b, 50, 0, 8), 0);
	CU_ASSERT_EQUAL(post_recv(&pair->b, 51, 0, 8), 0);
	CU_ASSERT_EQUAL(ibv_post_send(pair->a.qp, wr, &bad), 0);
	CU_ASSERT_EQUAL(post_rdma(&pair->a, IBV_WR_RDMA_WRITE, 2, 0, 0, &pair->b, 0, 0), 0);
	CU_ASSERT_EQUAL(post_rdma(&pair->a, IBV_WR_RDMA_WRITE, 3, 0, 0, &pair->b, 0, 0), 0);
	CU_ASSERT_TRUE(completes_or_rxe(pair->a.scq, wr->wr_id, status, rxe));
	CU_ASSERT_TRUE(completes(pair->a.scq, 2, IBV_WC_WR_FLUSH_ERR, NULL));
	CU_ASSERT_TRUE(completes(pair->a.scq, 3, IBV_WC_WR_FLUSH_ERR, NULL));
	CU_ASSERT_TRUE(reaches(pair->a.qp, IBV_QPS_ERR));
	expect_responder(pair, blame);
}

/* Prepares a request of eight bytes between the starts of the buffers. */
struct request {
	struct ibv_sge sge;
	struct ibv_send_wr wr;
};

static void request_make(struct request *r, struct pair *pair, enum ibv_wr_opcode opcode)
{
	r->sge = (struct ibv_sge){ (uintptr_t)pair->a.buffer, 8, pair->a.mr->lkey };
	r->wr = (struct ibv_send_wr){
		.wr_id = 1, .sg_list = &r->sge, .num_sge = 1, .opcode = opcode
	};
	if (opcode == IBV_WR_ATOMIC_FETCH_AND_ADD || opcode == IBV_WR_ATOMIC_CMP_AND_SWP) {
		r->wr.wr.atomic.remote_addr = (uintptr_t)pair->b.buffer;
		r->wr.wr.atomic.rkey = pair->b.mr->rkey;
	} else {
		r->wr.wr.rdma.remote_addr = (uintptr_t)pair->b.buffer;
		r->wr.wr.rdma.rkey = pair->b.mr->rkey;
	}
}

static const enum ibv_wr_opcode one_sided[] = { IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ };

static void unknown_rkey(void)
{
	struct request r;
	struct pair pair;
	size_t i;

	for (i = 0; i < COUNT(one_sided); i++) {
		if (!pair_open(&pair, NULL))
			return;
		request_make(&r, &pair, one_sided[i]);
		r.wr.wr.rdma.rkey ^= 0x5500;
		expect_failure(&pair, &r.wr, IBV_WC_REM_ACCESS_ERR, IBV_WC_REM_ACCESS_ERR,
			       BLAME_ACCESS);
		CU_ASSERT_EQUAL(pair.b.buffer[0], 0);
		pair_close(&pair);
	}
}

static void out_of_bounds(void)
{
	const int64_t offsets[] = { BUFFER - 7, -1, BUFFER, INT64_MAX / 2 };
	struct request r;
	struct pair pair;
	size_t i;

	for (i = 0; i < 2 * COUNT(offsets); i++) {
		if (!pair_open(&pair, NULL))
			return;
		request_make(&r, &pair, one_sided[i % 2]);
		r.wr.wr.rdma.remote_addr += (uint64_t)offsets[i / 2];
		expect_failure(&pair, &r.wr, IBV_WC_REM_ACCESS_ERR, IBV_WC_REM_ACCESS_ERR,
			       BLAME_ACCESS);
		pair_close(&pair);
	}
}

static void address_wraps(void)
{
	struct request r;
	struct pair pair;

	if (!pair_open(&pair, NULL))
		return;
	request_make(&r, &pair, IBV_WR_RDMA_WRITE);
	r.wr.wr.rdma.remote_addr = UINT64_MAX - 3;
	expect_failure(&pair, &r.wr, IBV_WC_REM_ACCESS_ERR, IBV_WC_REM_ACCESS_ERR, BLAME_ACCESS);
	pair_close(&pair);
}

static void missing_permission(void)
{
	static const struct {
		enum ibv_wr_opcode opcode;
		int access;
	} rows[] = {
		{ IBV_WR_RDMA_WRITE, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ },
		{ IBV_WR_RDMA_READ, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE },
		{ IBV_WR_ATOMIC_FETCH_AND_ADD,
		  IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ },
	};
	struct request r;
	struct pair pair;
	size_t i;

	for (i = 0; i < COUNT(rows); i++) {
		if (!pair_open(&pair, &(struct pair_options){ .mr_access = rows[i].access }))
			return;
		request_make(&r, &pair, rows[i].opcode);
		expect_failure(&pair, &r.wr, IBV_WC_REM_ACCESS_ERR, IBV_WC_REM_ACCESS_ERR,
			       BLAME_ACCESS);
		pair_close(&pair);
	}
}

static void other_domain(void)
{
	struct request r;
	struct pair pair;

	if (!pair_open(&pair, NULL))
		return;
	request_make(&r, &pair, IBV_WR_RDMA_WRITE);
	r.wr.wr.rdma.remote_addr = (uintptr_t)pair.a.buffer + 64;
	r.wr.wr.rdma.rkey = pair.a.mr->rkey; /* of a's PD instead of b's */
	expect_failure(&pair, &r.wr, IBV_WC_REM_ACCESS_ERR, IBV_WC_REM_ACCESS_ERR, BLAME_ACCESS);
	pair_close(&pair);
}

static void qp_forbids_it(void)
{
	static const struct {
		enum ibv_wr_opcode opcode;
		int access;
	} rows[] = {
		{ IBV_WR_RDMA_WRITE, IBV_ACCESS_REMOTE_READ },
		{ IBV_WR_RDMA_READ, IBV_ACCESS_REMOTE_WRITE },
		{ IBV_WR_ATOMIC_CMP_AND_SWP, IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE },
	};
	struct request r;
	struct pair pair;
	size_t i;

	for (i = 0; i < COUNT(rows); i++) {
		if (!pair_open(&pair, &(struct pair_options){ .qp_access = rows[i].access }))
			return;
		request_make(&r, &pair, rows[i].opcode);
		expect_failure(&pair, &r.wr, IBV_WC_REM_INV_REQ_ERR, IBV_WC_REM_INV_REQ_ERR,
			       BLAME_REQUEST);
		pair_close(&pair);
	}
}

static void no_responder_resources(void)
{
	struct request r;
	struct pair pair;

	if (!pair_open(&pair, &(struct pair_options){ .no_dest_rd_atomic = true }))
		return;
	request_make(&r, &pair, IBV_WR_RDMA_READ);
	expect_failure(&pair, &r.wr, IBV_WC_REM_INV_REQ_ERR, IBV_WC_REM_INV_REQ_ERR, BLAME_REQUEST);
	pair_close(&pair);
}

static void misaligned_atomic(void)
{
	struct request r;
	struct pair pair;

	if (device_is_rxe) {
		skip("kernel software RoCE drops a misaligned atomic");
		return;
	}
	if (!pair_open(&pair, NULL))
		return;
	request_make(&r, &pair, IBV_WR_ATOMIC_FETCH_AND_ADD);
	r.wr.wr.atomic.remote_addr += 4;
	expect_failure(&pair, &r.wr, IBV_WC_REM_INV_REQ_ERR, IBV_WC_REM_INV_REQ_ERR, BLAME_REQUEST);
	pair_close(&pair);
}

static void no_initiator_depth(void)
{
	struct request r;
	struct pair pair;

	if (device_is_rxe) {
		skip("kernel software RoCE waits for ever");
		return;
	}
	if (!pair_open(&pair, &(struct pair_options){ .no_rd_atomic = true }))
		return;
	request_make(&r, &pair, IBV_WR_RDMA_READ);
	expect_failure(&pair, &r.wr, IBV_WC_LOC_QP_OP_ERR, IBV_WC_LOC_QP_OP_ERR, BLAME_NONE);
	pair_close(&pair);
}

static void source_is_invalid(void)
{
	static const enum ibv_wr_opcode opcodes[] = { IBV_WR_SEND, IBV_WR_RDMA_WRITE };
	struct request r;
	struct pair pair;
	size_t i;

	for (i = 0; i < 2 * COUNT(opcodes); i++) {
		if (!pair_open(&pair, NULL))
			return;
		request_make(&r, &pair, opcodes[i % 2]);
		if (i / 2)
			r.sge.lkey ^= 0x5500;
		else
			r.sge.addr += BUFFER - 4;
		expect_failure(&pair, &r.wr, IBV_WC_LOC_PROT_ERR, rxe_local(IBV_WC_LOC_QP_OP_ERR),
			       BLAME_NONE);
		pair_close(&pair);
	}
}

static void source_of_another_domain(void)
{
	struct request r;
	struct pair pair;

	if (!pair_open(&pair, NULL))
		return;
	request_make(&r, &pair, IBV_WR_RDMA_WRITE);
	r.sge = (struct ibv_sge){ (uintptr_t)pair.b.buffer, 8, pair.b.mr->lkey };
	expect_failure(&pair, &r.wr, IBV_WC_LOC_PROT_ERR, rxe_local(IBV_WC_LOC_QP_OP_ERR),
		       BLAME_NONE);
	pair_close(&pair);
}

static void read_into_read_only(void)
{
	struct ibv_mr *read_only;
	struct request r;
	struct pair pair;

	if (!pair_open(&pair, NULL))
		return;
	read_only = ibv_reg_mr(pair.a.pd, pair.a.buffer, BUFFER, 0);
	CU_ASSERT_PTR_NOT_NULL_FATAL(read_only);
	request_make(&r, &pair, IBV_WR_RDMA_READ);
	r.sge.lkey = read_only->lkey;
	expect_failure(&pair, &r.wr, IBV_WC_LOC_PROT_ERR, IBV_WC_LOC_PROT_ERR, BLAME_NONE);
	CU_ASSERT_EQUAL(ibv_dereg_mr(read_only), 0);
	pair_close(&pair);
}

/* A valid send consumes an invalid receive, which is followed by a valid one. */
static void expect_bad_receive(struct pair *pair, struct ibv_sge *sge, uint32_t length,
			       enum ibv_wc_status sender, enum ibv_wc_status receiver)
{
	struct ibv_recv_wr wr = { .wr_id = 50, .sg_list = sge, .num_sge = 1 }, *bad;

	/* a good message first, because the first of a connection may take another path */
	CU_ASSERT_EQUAL(post_recv(&pair->b, 49, 64, 64), 0);
	CU_ASSERT_EQUAL(post_send(&pair->a, 9, 0, 8, IBV_SEND_SIGNALED), 0);
	CU_ASSERT_TRUE(completes(pair->a.scq, 9, IBV_WC_SUCCESS, NULL));
	CU_ASSERT_TRUE(completes(pair->b.rcq, 49, IBV_WC_SUCCESS, NULL));
	CU_ASSERT_EQUAL(ibv_post_recv(pair->b.qp, &wr, &bad), 0);
	CU_ASSERT_EQUAL(post_recv(&pair->b, 51, 0, 64), 0);
	CU_ASSERT_EQUAL(post_send(&pair->a, 1, 0, length, 0), 0);
	CU_ASSERT_EQUAL(post_send(&pair->a, 2, 0, 8, 0), 0);
	CU_ASSERT_TRUE(completes_or_rxe(pair->a.scq, 1, sender, IBV_WC_REM_OP_ERR));
	CU_ASSERT_TRUE(completes(pair->a.scq, 2, IBV_WC_WR_FLUSH_ERR, NULL));
	CU_ASSERT_TRUE(completes_or_rxe(pair->b.rcq, 50, receiver, IBV_WC_LOC_QP_OP_ERR));
	CU_ASSERT_TRUE(completes(pair->b.rcq, 51, IBV_WC_WR_FLUSH_ERR, NULL));
	CU_ASSERT_TRUE(reaches(pair->a.qp, IBV_QPS_ERR));
	CU_ASSERT_TRUE(reaches(pair->b.qp, IBV_QPS_ERR));
}

static void message_too_long(void)
{
	static const uint32_t lengths[] = { 9, 100, 5000, 60000 };
	struct ibv_sge sge;
	struct pair pair;
	size_t i;

	for (i = 0; i < COUNT(lengths); i++) {
		if (!pair_open(&pair, NULL))
			return;
		sge = (struct ibv_sge){ (uintptr_t)pair.b.buffer, 8, pair.b.mr->lkey };
		memset(pair.a.buffer, 1, BUFFER);
		expect_bad_receive(&pair, &sge, lengths[i], IBV_WC_REM_INV_REQ_ERR,
				   IBV_WC_LOC_LEN_ERR);
		CU_ASSERT_EQUAL(pair.b.buffer[8], 0);
		pair_close(&pair);
	}
}

static void receive_buffer_is_invalid(void)
{
	static const uint32_t lengths[] = { 8, 5000, 60000 };
	struct ibv_mr *read_only;
	struct ibv_sge sge;
	struct pair pair;
	size_t i;

	for (i = 0; i < 3 * COUNT(lengths); i++) {
		if (!pair_open(&pair, NULL))
			return;
		read_only = ibv_reg_mr(pair.b.pd, pair.b.buffer, BUFFER, 0);
		CU_ASSERT_PTR_NOT_NULL_FATAL(read_only);
		sge = (struct ibv_sge){ (uintptr_t)pair.b.buffer, BUFFER, pair.b.mr->lkey };
		if (i % 3 == 0)
			sge.lkey ^= 0x5500;
		else if (i % 3 == 1)
			sge.addr += BUFFER - 4;
		else
			sge.lkey = read_only->lkey;
		expect_bad_receive(&pair, &sge, lengths[i / 3], IBV_WC_REM_OP_ERR,
				   IBV_WC_LOC_PROT_ERR);
		CU_ASSERT_EQUAL(ibv_dereg_mr(read_only), 0);
		pair_close(&pair);
	}
}

#define PAGES 5
#define PAGE  4096

/* Registers a mapping whose pages are unmapped later. */
static struct ibv_mr *mapped_region(struct ibv_pd *pd)
{
	int access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
		     IBV_ACCESS_REMOTE_ATOMIC;
	char *pages = mmap(NULL, PAGES * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
			   -1, 0);
	struct ibv_mr *mr =
		pages == MAP_FAILED ? NULL : ibv_reg_mr(pd, pages, PAGES * PAGE, access);

	CU_ASSERT_PTR_NOT_NULL_FATAL(mr);
	CU_ASSERT_EQUAL(munmap(pages, PAGES * PAGE), 0);
	return mr;
}

static void target_is_unmapped(void)
{
	static const struct {
		enum ibv_wr_opcode opcode;
		uint32_t length;
	} requests[] = {
		{ IBV_WR_RDMA_WRITE, 8 },
		{ IBV_WR_RDMA_READ, 8 },
		{ IBV_WR_RDMA_WRITE, PAGES * PAGE },
		{ IBV_WR_RDMA_READ, PAGES * PAGE },
		{ IBV_WR_ATOMIC_FETCH_AND_ADD, 8 },
		{ IBV_WR_ATOMIC_CMP_AND_SWP, 8 },
	};

	for (size_t i = 0; i < COUNT(requests); i++) {
		struct request r;
		struct ibv_send_wr *bad;
		struct ibv_mr *mr;
		struct ibv_wc wc = { 0 };
		struct pair pair;

		if (!pair_open(&pair, NULL))
			return;
		mr = mapped_region(pair.b.pd);
		request_make(&r, &pair, requests[i].opcode);
		r.sge.length = requests[i].length;
		if (requests[i].opcode == IBV_WR_RDMA_WRITE ||
		    requests[i].opcode == IBV_WR_RDMA_READ) {
			r.wr.wr.rdma.remote_addr = (uintptr_t)mr->addr;
			r.wr.wr.rdma.rkey = mr->rkey;
		} else {
			r.wr.wr.atomic.remote_addr = (uintptr_t)mr->addr;
			r.wr.wr.atomic.rkey = mr->rkey;
		}
		r.wr.send_flags = IBV_SEND_SIGNALED;
		CU_ASSERT_EQUAL(ibv_post_send(pair.a.qp, &r.wr, &bad), 0);
		CU_ASSERT_TRUE(poll_one(pair.a.scq, &wc));
		/* pinned pages accept the data */
		CU_ASSERT_TRUE(wc.status == IBV_WC_SUCCESS || wc.status == IBV_WC_REM_OP_ERR);
		if (wc.status == IBV_WC_REM_OP_ERR) {
			CU_ASSERT_TRUE(async_is(IBV_EVENT_QP_FATAL, pair.b.qp));
			CU_ASSERT_TRUE(reaches(pair.b.qp, IBV_QPS_ERR));
		}
		CU_ASSERT_EQUAL(ibv_dereg_mr(mr), 0);
		pair_close(&pair);
	}
}

static void source_is_unmapped(void)
{
	static const enum ibv_wr_opcode opcodes[] = {
		IBV_WR_RDMA_WRITE,
		IBV_WR_RDMA_READ,
		IBV_WR_SEND,
	};

	for (size_t i = 0; i < COUNT(opcodes); i++) {
		struct request r;
		struct ibv_send_wr *bad;
		struct ibv_mr *mr;
		struct ibv_wc wc = { 0 };
		struct pair pair;

		if (!pair_open(&pair, NULL))
			return;
		mr = mapped_region(pair.a.pd);
		request_make(&r, &pair, opcodes[i]);
		r.sge = (struct ibv_sge){ (uintptr_t)mr->addr, PAGES * PAGE, mr->lkey };
		r.wr.send_flags = IBV_SEND_SIGNALED;
		CU_ASSERT_EQUAL(post_recv(&pair.b, 1, 0, BUFFER), 0);
		CU_ASSERT_EQUAL(ibv_post_send(pair.a.qp, &r.wr, &bad), 0);
		CU_ASSERT_TRUE(poll_one(pair.a.scq, &wc));
		CU_ASSERT_TRUE(wc.status == IBV_WC_SUCCESS || wc.status == IBV_WC_LOC_PROT_ERR);
		CU_ASSERT_EQUAL(state_of(pair.b.qp), IBV_QPS_RTS);
		CU_ASSERT_TRUE(async_silent());
		CU_ASSERT_EQUAL(ibv_dereg_mr(mr), 0);
		pair_close(&pair);
	}
}

static const struct unit_test tests[] = {
	{ "unknown rkey: REM_ACCESS_ERR, both QPs to ERR", unknown_rkey },
	{ "out of bounds: REM_ACCESS_ERR, both QPs to ERR", out_of_bounds },
	{ "remote address wraps around: REM_ACCESS_ERR", address_wraps },
	{ "region lacks the permission: REM_ACCESS_ERR", missing_permission },
	{ "region of another PD: REM_ACCESS_ERR", other_domain },
	{ "the QP forbids the operation: REM_INV_REQ_ERR, both QPs to ERR", qp_forbids_it },
	{ "read with max_dest_rd_atomic 0 there: REM_INV_REQ_ERR", no_responder_resources },
	{ "misaligned atomic: REM_INV_REQ_ERR", misaligned_atomic },
	{ "read with max_rd_atomic 0 here: LOC_QP_OP_ERR, peer unaffected", no_initiator_depth },
	{ "invalid source (rxe: LOC_QP_OP_ERR): LOC_PROT_ERR, peer unaffected", source_is_invalid },
	{ "source of another PD: LOC_PROT_ERR, peer unaffected", source_of_another_domain },
	{ "read into memory without LOCAL_WRITE: LOC_PROT_ERR, peer unaffected",
	  read_into_read_only },
	{ "message longer than the receive (rxe: 11 and 2): REM_INV_REQ_ERR and LOC_LEN_ERR",
	  message_too_long },
	{ "invalid receive buffer (rxe: 11 and 2): REM_OP_ERR and LOC_PROT_ERR",
	  receive_buffer_is_invalid },
	{ "registered, then unmapped there: pinned pages take it, or REM_OP_ERR, QP_FATAL",
	  target_is_unmapped },
	{ "registered, then unmapped here: pinned pages give it, or LOC_PROT_ERR",
	  source_is_unmapped },
};

CONFORM_MAIN("conform_error", tests)
