/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/*
 * Copies that the owner of the memory makes for its peer, where the processes cannot access each other's memory: to
 * private memory as fast as the program itself, and never with a signal.
 */
#include "softverbs/object/area.h"
#include "test/unit/direct_rig.h"

#define PIECE (32u << 10) /* bytes of a part of a copy */
#define HOLE  (1u << 20)  /* offset of the page that is not there */

/* ---- what the target does ---- */

static uint64_t use(struct rig *rig, uint64_t arg)
{
	(void)arg;
	return sv_area_own()->use[rig->mr->rkey >> 16];
}

static uint64_t hole(struct rig *rig, uint64_t arg)
{
	(void)arg;
	return (uint64_t)munmap(rig->memory + HOLE, 4096);
}

/* Returns the number of bytes behind the offset that are the pattern's. */
static uint64_t held(struct rig *rig, uint64_t offset)
{
	uint64_t n = 0;

	while (offset + n < RIG_SIZE && rig->memory[offset + n] == rig_pattern((uint32_t)n))
		n++;
	return n;
}

/* ---- rigs ---- */

/* Neither process can access the other's memory. */
static bool begin(struct rig *rig, rig_make *make)
{
	setenv("SOFTVERBS_COPY", "bounce", 1);
	*rig = (struct rig){ .fd = -1, .id = -1, .direct = "off" };
	return make(rig) && rig_open(rig) && rig_register(rig, 0, RIG_SIZE, RIG_ALL);
}

static bool is_known(void *arg)
{
	struct rig *rig = arg;

	return rig_move(rig, IBV_WR_RDMA_WRITE, 0, 0, 64) || rig_call(rig, use, 0) > REGION_USES;
}

/* Uses the region until the target knows what memory it is. */
static bool learn(struct rig *rig, enum region_use expected)
{
	return unit_wait_for(is_known, rig, UNIT_PATIENCE) && rig_call(rig, use, 0) == expected;
}

static bool begin_own(struct rig *rig)
{
	return begin(rig, rig_private) && learn(rig, REGION_OWN);
}

/* ---- tests ---- */

static void private_memory(void)
{
	static const uint32_t lengths[] = { 1, 7, 8, 4097, PIECE - 1, PIECE + 5, (1u << 20) + 3 };
	struct rig rig;

	CU_ASSERT_TRUE_FATAL(begin_own(&rig));
	for (unsigned i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
		uint32_t length = lengths[i], at = 4093 + i;

		memset(rig.node.memory, 0, RIG_SIZE);
		rig_fill(&rig, length);
		CU_ASSERT_EQUAL(rig_move(&rig, IBV_WR_RDMA_WRITE, 0, at, length), 0);
		CU_ASSERT_EQUAL(rig_call(&rig, held, at), length);
		memset(rig.node.memory, 0, RIG_SIZE);
		CU_ASSERT_EQUAL(rig_move(&rig, IBV_WR_RDMA_READ, 0, at, length), 0);
		for (uint32_t n = 0; n < length; n++)
			if (rig.node.memory[n] != rig_pattern(n))
				CU_FAIL_FATAL("a byte that was read");
	}
	rig_close(&rig);
}

static void receives(void)
{
	struct rig rig;

	CU_ASSERT_TRUE_FATAL(begin_own(&rig));
	rig_fill(&rig, 2u << 20);
	CU_ASSERT_EQUAL(rig_ask(&rig, RIG_RECEIVE), 0);
	CU_ASSERT_EQUAL(rig_move(&rig, IBV_WR_SEND, 0, 0, 2u << 20), 0);
	CU_ASSERT_TRUE(rig_call(&rig, held, 0) >= 2u << 20);
	rig_close(&rig);
}

/* Up to the hole a copy succeeds, although the pages that the kernel is asked about together are not all there. */
static void up_to_a_hole(void)
{
	uint32_t page = (uint32_t)sv_os_page_size();
	struct rig rig;

	CU_ASSERT_TRUE_FATAL(begin_own(&rig));
	rig_fill(&rig, 2 * PIECE);
	CU_ASSERT_EQUAL(rig_call(&rig, hole, 0), 0);
	CU_ASSERT_EQUAL(rig_move(&rig, IBV_WR_RDMA_WRITE, 0, HOLE - 2 * PIECE, 2 * PIECE), 0);
	CU_ASSERT_EQUAL(rig_move(&rig, IBV_WR_RDMA_READ, 0, HOLE + page, 2 * PIECE), 0);
	rig_close(&rig);
}

static void into_a_hole(enum ibv_wr_opcode opcode, uint32_t at, uint32_t length)
{
	struct rig rig;

	CU_ASSERT_TRUE_FATAL(begin_own(&rig));
	CU_ASSERT_EQUAL(rig_call(&rig, hole, 0), 0);
	CU_ASSERT_EQUAL(rig_move(&rig, opcode, 0, at, length), IBV_WC_REM_OP_ERR);
	CU_ASSERT_EQUAL(rig_call(&rig, use, 0), REGION_OWN); /* the target is alive */
	rig_close(&rig);
}

static void holes(void)
{
	into_a_hole(IBV_WR_RDMA_WRITE, HOLE + 8, 8);
	into_a_hole(IBV_WR_RDMA_WRITE, HOLE - 3 * PIECE, 5 * PIECE);
	into_a_hole(IBV_WR_RDMA_READ, HOLE - PIECE, 2 * PIECE);
}

/* This process truncates the file under the target's region. */
static void truncated(void)
{
	struct rig rig;

	CU_ASSERT_TRUE_FATAL(begin(&rig, rig_file_open));
	CU_ASSERT_TRUE(learn(&rig, REGION_OTHER));
	CU_ASSERT_EQUAL(rig_move(&rig, IBV_WR_RDMA_WRITE, 0, HOLE, 2 * PIECE), 0);
	CU_ASSERT_EQUAL(ftruncate(rig.fd, HOLE), 0);
	CU_ASSERT_EQUAL(rig_move(&rig, IBV_WR_RDMA_WRITE, 0, HOLE, 2 * PIECE), IBV_WC_REM_OP_ERR);
	CU_ASSERT_EQUAL(rig_call(&rig, use, 0), REGION_OTHER);
	rig_close(&rig);
}

/* The number of a region is used again; what it was before does not count. */
static void registered_again(void)
{
	struct rig rig;
	uint32_t number;

	CU_ASSERT_TRUE_FATAL(begin_own(&rig));
	number = rig.key >> 16;
	do {
		CU_ASSERT_EQUAL_FATAL(rig_deregister(&rig), 0);
		CU_ASSERT_TRUE_FATAL(rig_register(&rig, 0, 4096, RIG_ALL));
	} while (rig.key >> 16 != number);
	CU_ASSERT_EQUAL(rig_call(&rig, use, 0), 0);
	CU_ASSERT_TRUE(learn(&rig, REGION_OWN));
	rig_close(&rig);
}

static const struct unit_test tests[] = {
	{ "private memory: each byte arrives", private_memory },
	{ "private memory: a message lands in its receive", receives },
	{ "private memory: copies that end at a page that is not there", up_to_a_hole },
	{ "private memory: an unmapped page is an error", holes },
	{ "a file that a peer truncates is an error", truncated },
	{ "what a region's number was before does not count", registered_again },
};

UNIT_MAIN_UNLESS(PROCESS_TSAN, "under the thread sanitizer the kernel copies",
		 "softverbs_serve_memory", tests)
