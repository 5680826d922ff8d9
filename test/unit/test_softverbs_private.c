/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* SOFTVERBS_DIRECT=private: private memory that a peer uses often becomes memory that it can map, and private again. */
#include <stdio.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include "test/unit/denied.h"
#include "test/unit/private_rig.h"
#include "test/unit/storm.h"

/* 1 if each byte of the first `length` is as rig_fill makes it. */
static uint64_t is_filled(struct rig *rig, uint64_t length)
{
	for (uint32_t i = 0; i < length; i++)
		if (rig->memory[i] != rig_pattern(i))
			return 0;
	return 1;
}

/* ---- in and back ---- */

static void bytes_arrive(struct rig *rig, uint32_t length)
{
	uint64_t old = 0;

	rig_fill(rig, length);
	CU_ASSERT_EQUAL(rig_move(rig, IBV_WR_RDMA_WRITE, 0, 0, length), IBV_WC_SUCCESS);
	CU_ASSERT_EQUAL(rig_call(rig, is_filled, length), 1);
	memset(rig->node.memory, 0, length);
	CU_ASSERT_EQUAL(rig_move(rig, IBV_WR_RDMA_READ, 0, 0, length), IBV_WC_SUCCESS);
	for (uint32_t i = 0; i < length; i++)
		if (rig->node.memory[i] != rig_pattern(i)) {
			CU_FAIL("a byte that was read");
			break;
		}
	rig_call(rig, store, 64);
	CU_ASSERT_EQUAL(rig_add(rig, 64, 5, &old), IBV_WC_SUCCESS);
	CU_ASSERT_EQUAL(old, ~64ull);
	CU_ASSERT_EQUAL(rig_call(rig, load, 64), ~64ull + 5);
}

static void swapped_and_back(void)
{
	struct rig rig;

	CU_ASSERT_TRUE_FATAL(private_begin(&rig) && rig_register(&rig, 0, 1 << 20, RIG_ALL));
	CU_ASSERT_EQUAL(rig_call(&rig, is_pooled, 0), 0);
	rig_fill(&rig, 1 << 20);
	CU_ASSERT_EQUAL(rig_move(&rig, IBV_WR_RDMA_WRITE, 0, 0, 1 << 20), IBV_WC_SUCCESS);
	CU_ASSERT_TRUE_FATAL(rig_map(&rig));
	CU_ASSERT_EQUAL(rig_call(&rig, is_pooled, 0), 1);
	CU_ASSERT_EQUAL(rig_call(&rig, is_pooled, (1 << 20) - 1), 1);
	CU_ASSERT_EQUAL(rig_call(&rig, is_pooled, 1 << 20), 0);
	CU_ASSERT_EQUAL(rig_call(&rig, is_filled, 1 << 20), 1);
	bytes_arrive(&rig, 1 << 20);
	rig_fill(&rig, 1 << 20);
	CU_ASSERT_EQUAL(rig_move(&rig, IBV_WR_RDMA_WRITE, 0, 0, 1 << 20), IBV_WC_SUCCESS);
	CU_ASSERT_EQUAL(rig_deregister(&rig), 0);
	CU_ASSERT_EQUAL(rig_call(&rig, is_pooled, 0), 0);
	CU_ASSERT_EQUAL(rig_call(&rig, is_filled, 1 << 20), 1);
	CU_ASSERT_TRUE(unit_wait_for(rig_is_unmapped, NULL, UNIT_PATIENCE));
	CU_ASSERT_EQUAL(rig_move(&rig, IBV_WR_RDMA_WRITE, 0, 0, 64), IBV_WC_REM_ACCESS_ERR);
	rig_close(&rig);
}

/* 1 if `length` bytes, from this offset on, are as rig_fill makes them: offset:32 | length:32. */
static uint64_t is_filled_at(struct rig *rig, uint64_t range)
{
	for (uint32_t i = 0; i < (uint32_t)range; i++)
		if (rig->memory[(range >> 32) + i] != rig_pattern(i))
			return 0;
	return 1;
}

/* Only whole pages move; bytes beside them, of the region and not, stay where they are, and are reached as before. */
static void edges_stay(void)
{
	const uint32_t begin = PAGE + 100, length = 3 * PAGE;
	uint64_t old = 1;
	struct rig rig;

	CU_ASSERT_TRUE_FATAL(private_begin(&rig));
	rig_call(&rig, store, begin - 8);
	rig_call(&rig, store, begin + length);
	CU_ASSERT_TRUE_FATAL(rig_register(&rig, begin, length, RIG_ALL) && rig_map(&rig));
	CU_ASSERT_EQUAL(rig_call(&rig, is_pooled, PAGE), 0);
	CU_ASSERT_EQUAL(rig_call(&rig, is_pooled, 2 * PAGE), 1);
	CU_ASSERT_EQUAL(rig_call(&rig, is_pooled, 3 * PAGE), 1);
	CU_ASSERT_EQUAL(rig_call(&rig, is_pooled, 4 * PAGE), 0);
	rig_fill(&rig, length);
	for (uint32_t at = 0; at < length; at += 61) {
		struct ibv_sge sge = node_sge(&rig.node, at, length - at < 61 ? length - at : 61);

		CU_ASSERT_EQUAL(rig_do(&rig, IBV_WR_RDMA_WRITE, &sge, 1, at), 0);
	}
	CU_ASSERT_EQUAL(rig_call(&rig, is_filled_at, (uint64_t)begin << 32 | length), 1);
	memset(rig.node.memory, 0, length);
	CU_ASSERT_EQUAL(rig_move(&rig, IBV_WR_RDMA_READ, 0, 0, length), 0);
	CU_ASSERT_EQUAL(rig.node.memory[0], rig_pattern(0));
	CU_ASSERT_EQUAL(rig.node.memory[length - 1], rig_pattern(length - 1));
	CU_ASSERT_EQUAL(rig_add(&rig, 4, 0, &old), 0);
	CU_ASSERT_EQUAL(old, rig_call(&rig, load, begin + 4));
	CU_ASSERT_EQUAL(rig_call(&rig, load, begin - 8), ~(uint64_t)(begin - 8));
	CU_ASSERT_EQUAL(rig_call(&rig, load, begin + length), ~(uint64_t)(begin + length));
	CU_ASSERT_EQUAL(rig_deregister(&rig), 0);
	CU_ASSERT_EQUAL(rig_call(&rig, is_pooled, 2 * PAGE), 0);
	CU_ASSERT_EQUAL(rig_call(&rig, load, begin + length), ~(uint64_t)(begin + length));
	rig_close(&rig);
}

/* A region that has no whole page. */
static void part_of_a_page(void)
{
	struct rig rig;

	CU_ASSERT_TRUE_FATAL(private_begin(&rig) && rig_register(&rig, PAGE + 100, 200, RIG_ALL));
	CU_ASSERT_TRUE(stays_private(&rig));
	CU_ASSERT_EQUAL(rig_call(&rig, is_pooled, PAGE), 0);
	CU_ASSERT_EQUAL(rig_deregister(&rig), 0);
	rig_close(&rig);
}

/* 1 if each of the first `count` lines begins with its number. */
static uint64_t are_numbered(struct rig *rig, uint64_t count)
{
	for (uint64_t i = 0; i < count; i++)
		if (load(rig, i * 64) != i + 1)
			return 0;
	return 1;
}

/* Writes a number into each line until the memory is mapped; returns how many. */
static uint64_t number_lines(struct rig *rig, uint64_t most)
{
	uint64_t deadline = clock_now() + UNIT_PATIENCE * NSEC_PER_MSEC, n = 0;

	while (n < most && !sv_direct_count() && clock_now() < deadline) {
		uint64_t number = n + 1;

		memcpy(rig->node.memory, &number, sizeof(number));
		CU_ASSERT_EQUAL(rig_move(rig, IBV_WR_RDMA_WRITE, 0, (uint32_t)n * 64, 8), 0);
		n++;
	}
	return n;
}

/* A peer writes all the time while the memory moves; nothing is lost on either way. */
static void to_and_fro(void)
{
	const uint32_t size = 1 << 20, rounds = storm_rounds(60);
	struct rig rig;

	CU_ASSERT_TRUE_FATAL(private_begin(&rig));
	for (uint32_t round = 0; round < rounds; round++) {
		uint8_t mark = (uint8_t)(round + 1);
		uint64_t lines;

		CU_ASSERT_TRUE_FATAL(rig_register(&rig, 0, size, RIG_ALL));
		lines = number_lines(&rig, size / 64);
		CU_ASSERT_TRUE_FATAL(rig_map(&rig));
		CU_ASSERT_EQUAL(rig_call(&rig, are_numbered, lines), 1);
		memset(rig.node.memory, mark, 64);
		CU_ASSERT_EQUAL(rig_move(&rig, IBV_WR_RDMA_WRITE, 0, 0, 64), IBV_WC_SUCCESS);
		CU_ASSERT_EQUAL((uint8_t)rig_call(&rig, load, 0), mark);
		CU_ASSERT_EQUAL(rig_deregister(&rig), 0);
		CU_ASSERT_EQUAL(rig_call(&rig, is_pooled, size / 2), 0);
		CU_ASSERT_EQUAL((uint8_t)rig_call(&rig, load, 0), mark);
		CU_ASSERT_EQUAL(rig_call(&rig, load, 64), 2);
		CU_ASSERT_TRUE(unit_wait_for(rig_is_unmapped, NULL, UNIT_PATIENCE));
	}
	rig_close(&rig);
}

/* ---- two regions ---- */

static struct ibv_mr *other;

/* offset:32 | length:32 */
static uint64_t other_register(struct rig *rig, uint64_t range)
{
	other = ibv_reg_mr(rig->node.pd, rig->memory + (range >> 32), (uint32_t)range, RIG_ALL);
	return other ? other->rkey : 0;
}

static uint64_t other_deregister(struct rig *rig, uint64_t unused)
{
	(void)rig, (void)unused;
	return (uint64_t)ibv_dereg_mr(other);
}

static bool writes_pool_its_end(void *arg)
{
	struct rig *second = arg;

	return rig_move(second, IBV_WR_RDMA_WRITE, 0, 0, 4 * PAGE) ||
	       rig_call(second, is_pooled, 6 * PAGE);
}

/* The page that two regions have in common is private again when both are gone. */
static void regions_overlap(void)
{
	struct rig rig, second;

	CU_ASSERT_TRUE_FATAL(private_begin(&rig) && rig_register(&rig, 0, 4 * PAGE, RIG_ALL) &&
			     rig_map(&rig));
	second = rig;
	second.address = rig.address + 3 * PAGE;
	second.key = (uint32_t)rig_call(&rig, other_register, 3ull * PAGE << 32 | 4 * PAGE);
	rig_fill(&rig, 4 * PAGE);
	CU_ASSERT_TRUE(unit_wait_for(writes_pool_its_end, &second, UNIT_PATIENCE));
	CU_ASSERT_EQUAL(rig_deregister(&rig), 0);
	CU_ASSERT_EQUAL(rig_call(&rig, is_pooled, 2 * PAGE), 0);
	CU_ASSERT_EQUAL(rig_call(&rig, is_pooled, 3 * PAGE), 1);
	memset(rig.node.memory, 0x77, PAGE);
	CU_ASSERT_EQUAL(rig_move(&second, IBV_WR_RDMA_WRITE, 0, 0, PAGE), 0);
	CU_ASSERT_EQUAL(rig_call(&rig, load, 3 * PAGE), 0x7777777777777777ull);
	CU_ASSERT_EQUAL(rig_call(&rig, other_deregister, 0), 0);
	CU_ASSERT_EQUAL(rig_call(&rig, is_pooled, 3 * PAGE), 0);
	CU_ASSERT_EQUAL(rig_call(&rig, load, 3 * PAGE), 0x7777777777777777ull);
	rig_close(&rig);
}

/* ---- what stays private ---- */

static uint64_t lock_memory(struct rig *rig, uint64_t unused)
{
	(void)unused;
	/* the address sanitizer's mlock does nothing */
	return (uint64_t)syscall(SYS_mlock, rig->memory + (1 << 20), PAGE);
}

static uint64_t limit_files(struct rig *rig, uint64_t unused)
{
	struct rlimit limit = { 1 << 30, 1 << 30 };

	(void)rig, (void)unused;
	return (uint64_t)setrlimit(RLIMIT_FSIZE, &limit);
}

/* A page in the middle that is no private memory. */
static uint64_t share_a_page(struct rig *rig, uint64_t unused)
{
	(void)unused;
	return mmap(rig->memory + 2 * PAGE, PAGE, PROT_READ | PROT_WRITE,
		    MAP_SHARED | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == MAP_FAILED;
}

static uint64_t deny_memfds(struct rig *rig, uint64_t unused)
{
	(void)rig, (void)unused;
	return !deny_calls(SYS_memfd_create, SYS_memfd_create);
}

static void some_stay(void)
{
	rig_work *const why[] = { lock_memory, limit_files, share_a_page, deny_memfds };

	for (unsigned i = 0; i < sizeof(why) / sizeof(why[0]); i++) {
		struct rig rig;

		CU_ASSERT_TRUE_FATAL(private_begin(&rig));
		CU_ASSERT_EQUAL(rig_call(&rig, why[i], 0), 0);
		CU_ASSERT_TRUE_FATAL(rig_register(&rig, 0, 8 * PAGE, RIG_ALL));
		CU_ASSERT_TRUE(stays_private(&rig));
		CU_ASSERT_EQUAL(rig_call(&rig, is_pooled, 0), 0);
		CU_ASSERT_EQUAL(rig_deregister(&rig), 0);
		rig_close(&rig);
	}
}

/* What the program has moved elsewhere keeps its pages; memory that is now at its address does not get them, too. */
static uint64_t move_elsewhere(struct rig *rig, uint64_t length)
{
	void *to = mremap(rig->memory, length, length, MREMAP_MAYMOVE | MREMAP_FIXED,
			  rig->memory + (2 << 20));

	return to == MAP_FAILED ||
	       mmap(rig->memory, length, PROT_READ | PROT_WRITE,
		    MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == MAP_FAILED;
}

static void moved_while_registered(void)
{
	struct rig rig, second;

	CU_ASSERT_TRUE_FATAL(private_begin(&rig) && rig_register(&rig, 0, 4 * PAGE, RIG_ALL) &&
			     rig_map(&rig));
	rig_call(&rig, store, 64);
	CU_ASSERT_EQUAL(rig_call(&rig, move_elsewhere, 4 * PAGE), 0);
	second = rig;
	second.key = (uint32_t)rig_call(&rig, other_register, 4 * PAGE);
	rig_fill(&rig, 4 * PAGE);
	for (unsigned i = 0; i < 100; i++)
		CU_ASSERT_EQUAL(rig_move(&second, IBV_WR_RDMA_WRITE, 0, 0, 4 * PAGE), 0);
	CU_ASSERT_EQUAL(rig_call(&rig, is_pooled, 0), 0);
	CU_ASSERT_EQUAL(rig_call(&rig, is_filled, 4 * PAGE), 1);
	CU_ASSERT_EQUAL(rig_call(&rig, load, (2 << 20) + 64), ~64ull);
	CU_ASSERT_EQUAL(rig_call(&rig, other_deregister, 0), 0);
	CU_ASSERT_EQUAL(rig_deregister(&rig), 0);
	rig_close(&rig);
}

/* A peer that is stopped while it copies does not keep the owner for long, and does not lose its connection by it. */
static void peer_is_stopped(void)
{
	struct sv_remote_rq *remote;
	struct rig rig;

	CU_ASSERT_TRUE_FATAL(private_begin(&rig) && rig_register(&rig, 0, PAGE, RIG_ALL));
	rig_fill(&rig, 64);
	for (unsigned i = 0; i < 15; i++)
		CU_ASSERT_EQUAL(rig_move(&rig, IBV_WR_RDMA_WRITE, 0, 0, 64), 0);
	remote = &qp_of(rig.node.qp[0])->remote_rq;
	CU_ASSERT_EQUAL(rig_move(&rig, IBV_WR_RDMA_WRITE, 0, 0, 64), 0);
	epoch_enter(remote);
	/* it asks the target, which polls until then */
	for (unsigned i = 0; i < 50; i++)
		CU_ASSERT_EQUAL(rig_call(&rig, is_pooled, 0), 0);
	epoch_leave(remote);
	for (unsigned i = 0; i < 100; i++)
		CU_ASSERT_EQUAL(rig_move(&rig, IBV_WR_RDMA_WRITE, 0, 0, 64), 0);
	CU_ASSERT_EQUAL(rig_call(&rig, is_filled, 64), 1);
	rig_close(&rig);
}

/* ---- fork ---- */

static bool waits_well(pid_t child)
{
	int status = 1;

	return child > 0 && waitpid(child, &status, 0) == child && !status;
}

/* The child has a copy of its own, in which it may do anything; so has a child of it. */
static uint64_t fork_it(struct rig *rig, uint64_t unused)
{
	uint64_t mine = 1, theirs = 2;
	pid_t child;

	(void)unused;
	memcpy(rig->memory, &mine, sizeof(mine));
	child = fork();
	if (!child) {
		bool good = load(rig, 0) == mine && !is_pooled(rig, 0) && !is_pooled(rig, PAGE);

		memcpy(rig->memory, &theirs, sizeof(theirs));
		child = fork();
		if (!child)
			_exit(load(rig, 0) == theirs ? 0 : 1);
		_exit(good && waits_well(child) && load(rig, PAGE) == ~(uint64_t)PAGE ? 0 : 1);
	}
	return waits_well(child) && load(rig, 0) == mine;
}

static uint64_t run_true(struct rig *rig, uint64_t unused)
{
	(void)unused;
	return !system("true") && is_pooled(rig, 0);
}

static void child_has_its_own(void)
{
	struct rig rig;

	CU_ASSERT_TRUE_FATAL(private_begin(&rig) && rig_register(&rig, 0, 4 * PAGE, RIG_ALL) &&
			     rig_map(&rig));
	rig_call(&rig, store, PAGE);
	CU_ASSERT_EQUAL(rig_call(&rig, fork_it, 0), 1);
	CU_ASSERT_EQUAL(rig_call(&rig, run_true, 0), 1);
	CU_ASSERT_EQUAL(rig_call(&rig, is_pooled, 0), 1);
	bytes_arrive(&rig, 4 * PAGE);
	CU_ASSERT_EQUAL(rig_deregister(&rig), 0);
	CU_ASSERT_EQUAL(rig_call(&rig, is_pooled, 0), 0);
	rig_close(&rig);
}

static const struct unit_test tests[] = {
	{ "memory is swapped, and is private again", swapped_and_back },
	{ "the edges of a region stay", edges_stay },
	{ "a region in a part of a page", part_of_a_page },
	{ "to and fro", to_and_fro },
	{ "two regions overlap", regions_overlap },
	{ "what stays private", some_stay },
	{ "memory that moved while it was registered", moved_while_registered },
	{ "a peer that stopped while it copied", peer_is_stopped },
	{ "a child has its own memory", child_has_its_own },
};

UNIT_MAIN_UNLESS(PROCESS_TSAN, "nothing is direct under the thread sanitizer", "softverbs_private",
		 tests)
