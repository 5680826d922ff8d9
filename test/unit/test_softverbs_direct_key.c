/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* Keys of memory that a peer has mapped or open: their rights, their bounds, their end. */
#include <poll.h>
#include <stdio.h>
#include "test/unit/direct_rig.h"

static void rights_are_kept(void)
{
	const unsigned read_only = IBV_ACCESS_REMOTE_READ;
	struct rig rig = { .fd = -1, .id = -1 };

	CU_ASSERT_TRUE_FATAL(rig_memfd(&rig) && rig_open(&rig) &&
			     rig_register(&rig, 4096, 8192, read_only) && rig_map(&rig));
	CU_ASSERT_EQUAL(rig_move(&rig, IBV_WR_RDMA_READ, 0, 8191, 1), IBV_WC_SUCCESS);
	CU_ASSERT_EQUAL(rig_move(&rig, IBV_WR_RDMA_WRITE, 0, 0, 8), IBV_WC_REM_ACCESS_ERR);
	CU_ASSERT_EQUAL(rig.memory[4096], 0);
	rig_close(&rig);
}

static void bounds_are_kept(void)
{
	struct rig rig = { .fd = -1, .id = -1 };

	CU_ASSERT_TRUE_FATAL(rig_segment(&rig) && rig_open(&rig) &&
			     rig_register(&rig, 4096, 100, RIG_ALL) && rig_map(&rig));
	rig_fill(&rig, 200);
	CU_ASSERT_EQUAL(rig_move(&rig, IBV_WR_RDMA_WRITE, 0, 92, 8), IBV_WC_SUCCESS);
	CU_ASSERT_EQUAL(rig.memory[4096 + 99], rig_pattern(7));
	CU_ASSERT_EQUAL(rig_move(&rig, IBV_WR_RDMA_WRITE, 0, 93, 8), IBV_WC_REM_ACCESS_ERR);
	CU_ASSERT_EQUAL(rig.memory[4096 + 100], 0);
	rig_close(&rig);
}

/* After dereg the key is refused, and the memory is not held here any more. */
static void key_ends(rig_make *make)
{
	struct shmid_ds segment;
	struct rig rig;

	CU_ASSERT_TRUE_FATAL(rig_begin(&rig, make));
	rig_fill(&rig, 64);
	CU_ASSERT_EQUAL(rig_move(&rig, IBV_WR_RDMA_WRITE, 0, 0, 64), IBV_WC_SUCCESS);
	memset(rig.memory, 0, 64);
	CU_ASSERT_EQUAL(rig_deregister(&rig), 0);
	CU_ASSERT_TRUE(unit_wait_for(rig_is_unmapped, NULL, UNIT_PATIENCE));
	if (rig.id >= 0) {
		CU_ASSERT_EQUAL(shmctl(rig.id, IPC_STAT, &segment), 0);
		CU_ASSERT_EQUAL(segment.shm_nattch, 2); /* this process's own and the target's */
	}
	CU_ASSERT_EQUAL(rig_move(&rig, IBV_WR_RDMA_WRITE, 0, 0, 64), IBV_WC_REM_ACCESS_ERR);
	CU_ASSERT_EQUAL(rig.memory[0], 0);
	rig_close(&rig);
}

static void key_of_a_segment_ends(void)
{
	key_ends(rig_segment);
}

static void key_of_a_memfd_ends(void)
{
	key_ends(rig_memfd);
}

static bool is_set(const struct rig *rig)
{
	for (uint32_t i = 0; i < RIG_SET; i++)
		if (rig->memory[i] != RIG_BYTE)
			return false;
	return true;
}

/* Writes go on without a pause while the target deregisters. No byte of them comes after the dereg has returned. */
static void deregistered_under_writes(void)
{
	struct pollfd answer = { .events = POLLIN };
	uint64_t order = RIG_WITHDRAW, result = 1;
	enum ibv_wc_status status = IBV_WC_SUCCESS;
	rig_make *const makes[] = { rig_segment, rig_memfd, rig_file_open };
	unsigned written = 0;
	struct rig rig;

	for (unsigned round = 0; round < 12; round++) {
		CU_ASSERT_TRUE_FATAL(rig_begin(&rig, makes[round % 3]));
		answer.fd = rig.target.fd;
		status = rig_move(&rig, IBV_WR_RDMA_WRITE, 0, 0, RIG_SET);
		process_say(rig.target.fd, order);
		for (; status == IBV_WC_SUCCESS && !poll(&answer, 1, 0); written++)
			status = rig_move(&rig, IBV_WR_RDMA_WRITE, 0, 0,
					  round % 4 < 2 ? RIG_SET : 64);
		CU_ASSERT_TRUE(process_hear(rig.target.fd, &result) && !result);
		CU_ASSERT_TRUE(is_set(&rig));
		if (status == IBV_WC_SUCCESS)
			status = rig_move(&rig, IBV_WR_RDMA_WRITE, 0, 0, 64);
		CU_ASSERT_EQUAL(status, IBV_WC_REM_ACCESS_ERR);
		CU_ASSERT_TRUE(is_set(&rig));
		rig_close(&rig);
	}
	CU_ASSERT(written > 0);
}

static void regions_come_and_go(void)
{
	struct rig rig;

	CU_ASSERT_TRUE_FATAL(rig_begin(&rig, rig_memfd));
	rig_fill(&rig, 4096);
	for (unsigned round = 0; round < 300; round++) {
		if (rig_deregister(&rig) || !rig_register(&rig, round % 7 * 4096, 65536, RIG_ALL)) {
			CU_FAIL("registered again");
			break;
		}
		for (unsigned i = 0; i < 12; i++) {
			uint32_t at = round % 7 * 4096 + i * 512;

			memset(rig.memory + at, 0, 512);
			CU_ASSERT_EQUAL(rig_move(&rig, IBV_WR_RDMA_WRITE, 0, i * 512, 512), 0);
			CU_ASSERT_EQUAL(memcmp(rig.memory + at, rig.node.memory, 512), 0);
		}
		CU_ASSERT(sv_direct_count() <= 1);
		CU_ASSERT_TRUE(round % 10 || rig_map(&rig));
	}
	rig_close(&rig);
}

/* ---- windows ---- */

/* A window lies in the file of its region, wherever it is bound, and lets nothing else be written. */
static void window_moves(void)
{
	struct rig rig = { .fd = -1, .id = -1 };

	CU_ASSERT_TRUE_FATAL(
		rig_memfd(&rig) && rig_open(&rig) &&
		rig_register(&rig, 4096, RIG_SIZE - 4096, RIG_ALL | IBV_ACCESS_MW_BIND));
	rig_fill(&rig, 8192);
	for (uint32_t round = 0; round < 40; round++) {
		uint32_t at = 8192 + round * 20000;

		CU_ASSERT_TRUE_FATAL(rig_window(&rig, at, 8192));
		CU_ASSERT_TRUE(round % 8 || rig_map(&rig));
		for (uint32_t i = 0; i < 20; i++)
			CU_ASSERT_EQUAL(rig_move(&rig, IBV_WR_RDMA_WRITE, 0, 0, 8192), 0);
		CU_ASSERT_EQUAL(memcmp(rig.memory + at, rig.node.memory, 8192), 0);
		CU_ASSERT_TRUE(!rig.memory[at - 1] && !rig.memory[at + 8192]);
	}
	CU_ASSERT_EQUAL(sv_direct_count(), 1);
	CU_ASSERT_EQUAL(rig_move(&rig, IBV_WR_RDMA_WRITE, 0, 1, 8192), IBV_WC_REM_ACCESS_ERR);
	rig_close(&rig);
}

/* ---- processes that end ---- */

/* The initiator keeps the pages until it knows, and gets an error then. */
static void target_is_killed(void)
{
	rig_make *const makes[] = { rig_segment, rig_memfd, rig_file_open };
	uint64_t deadline = clock_now() + UNIT_PATIENCE * NSEC_PER_MSEC;

	for (unsigned i = 0; i < 3; i++) {
		enum ibv_wc_status status = IBV_WC_SUCCESS;
		struct rig rig;

		CU_ASSERT_TRUE_FATAL(rig_begin(&rig, makes[i]));
		rig_fill(&rig, 4096);
		process_kill(&rig.target);
		while (!status && clock_now() < deadline)
			status = rig_move(&rig, IBV_WR_RDMA_WRITE, 0, 0, 4096);
		CU_ASSERT_TRUE(status == IBV_WC_RETRY_EXC_ERR || status == IBV_WC_WR_FLUSH_ERR);
		rig_close_here(&rig);
		CU_ASSERT_EQUAL(sv_direct_count(), 0);
	}
}

/* Writes to its parent's memory until it is killed. */
static int run_writer(int fd, void *arg)
{
	const struct node_options options = { .memory = RIG_SET };
	static struct rig rig;
	uint64_t key = 0;

	(void)arg;
	if (!node_open(&rig.node, &options) || !node_connect(&rig.node, 0, 1, fd) ||
	    !process_hear(fd, &rig.address) || !process_hear(fd, &key))
		return 1;
	rig.key = (uint32_t)key;
	if (!rig_map(&rig))
		return 2;
	rig_fill(&rig, RIG_SET);
	process_say(fd, 1);
	while (!rig_move(&rig, IBV_WR_RDMA_WRITE, 0, 0, RIG_SET))
		;
	return 3;
}

/* It leaves nothing that the owner waits for, and no write comes after it. */
static void initiator_is_killed(void)
{
	rig_make *const makes[] = { rig_segment, rig_memfd, rig_file_open };

	for (unsigned i = 0; i < 6; i++) {
		struct rig rig = { .fd = -1, .id = -1 };
		struct node_options options = { .memory = RIG_SIZE };

		CU_ASSERT_TRUE_FATAL(makes[i % 3](&rig));
		options.at = rig.memory;
		CU_ASSERT_TRUE_FATAL(process_start(&rig.target, run_writer, NULL));
		CU_ASSERT_TRUE_FATAL(node_open(&rig.node, &options) &&
				     node_connect(&rig.node, 0, 1, rig.target.fd) &&
				     process_say(rig.target.fd, (uintptr_t)rig.memory) &&
				     process_say(rig.target.fd, rig.node.mr->rkey) &&
				     process_sync(rig.target.fd));
		process_kill(&rig.target);
		memset(rig.memory, RIG_BYTE, RIG_SET);
		CU_ASSERT_EQUAL(ibv_dereg_mr(rig.node.mr), 0);
		rig.node.mr = NULL;
		CU_ASSERT_TRUE(is_set(&rig));
		rig_close_here(&rig);
	}
}

static const struct unit_test tests[] = {
	{ "a window that moves in its region", window_moves },
	{ "the target is killed under writes: an error, no signal", target_is_killed },
	{ "the initiator is killed under its writes", initiator_is_killed },
	{ "the rights of the key are kept", rights_are_kept },
	{ "the bounds of the key are kept", bounds_are_kept },
	{ "a deregistered segment is not held", key_of_a_segment_ends },
	{ "a deregistered memfd is not held", key_of_a_memfd_ends },
	{ "deregistered under writes: none comes later", deregistered_under_writes },
	{ "regions of one file that come and go", regions_come_and_go },
};

UNIT_MAIN_UNLESS(PROCESS_TSAN, "nothing is direct under the thread sanitizer",
		 "softverbs_direct_key", tests)
