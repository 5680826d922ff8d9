/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* RDMA and atomics by load and store: what is moved, and what must not be. */
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include "test/unit/direct_rig.h"

#define ALL 15u /* each right */

typedef bool rig_make(struct rig *rig);

/* A rig with its memory registered as a whole and mapped. */
static bool rig_begin(struct rig *rig, rig_make *make)
{
	*rig = (struct rig){ .fd = -1, .id = -1 };
	return make(rig) && rig_open(rig) && rig_register(rig, 0, RIG_SIZE, ALL) && rig_map(rig);
}

static uint8_t pattern(uint32_t i)
{
	return (uint8_t)(i * 31 + (i >> 8) + 1);
}

static void fill(struct rig *rig, uint32_t length)
{
	for (uint32_t i = 0; i < length; i++)
		rig->node.memory[i] = pattern(i);
}

/* ---- writes and reads ---- */

/* Writes `length` bytes from up to three pieces; those around them keep their value. */
static bool write_is_exact(struct rig *rig, uint32_t at, uint32_t length, int pieces)
{
	uint32_t first = length / 3, second = pieces > 2 ? length / 4 : 0;
	struct ibv_sge sge[] = { node_sge(&rig->node, 0, pieces > 1 ? first : length),
				 node_sge(&rig->node, first, pieces > 2 ? second : length - first),
				 node_sge(&rig->node, first + second, length - first - second) };

	memset(rig->memory + at - 16, 0xee, length + 32);
	if (rig_do(rig, IBV_WR_RDMA_WRITE, sge, pieces, at))
		return false;
	for (uint32_t i = 0; i < length; i++)
		if (rig->memory[at + i] != pattern(i))
			return false;
	for (uint32_t i = 1; i <= 16; i++)
		if (rig->memory[at - i] != 0xee || rig->memory[at + length + i - 1] != 0xee)
			return false;
	return true;
}

static void writes(rig_make *make)
{
	static const uint32_t lengths[] = { 4095, 4096, 4097, 65536, (1u << 20) + 5, 3u << 20 };
	struct rig rig;

	CU_ASSERT_TRUE_FATAL(rig_begin(&rig, make));
	fill(&rig, 3u << 20);
	for (uint32_t length = 1; length < 140; length++)
		for (uint32_t at = 64; at<128; at += length> 20 ? 7 : 1)
			if (!write_is_exact(&rig, at, length, 1 + (int)(length % 2)))
				CU_FAIL("a short write");
	for (unsigned i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++)
		CU_ASSERT_TRUE(write_is_exact(&rig, 4093, lengths[i], 1 + (int)(i % 2)));
	CU_ASSERT_EQUAL(sv_direct_count(), 1);
	rig_close(&rig);
	CU_ASSERT_EQUAL(sv_direct_count(), 0);
}

static void writes_to_a_segment(void)
{
	writes(rig_segment);
}

static void writes_to_a_memfd(void)
{
	writes(rig_memfd);
}

static void reads(void)
{
	static const uint32_t lengths[] = {
		1, 2, 3, 4, 7, 8, 9, 64, 4096, 4097, 1u << 20, 3u << 20
	};
	struct rig rig;

	CU_ASSERT_TRUE_FATAL(rig_begin(&rig, rig_memfd));
	for (uint32_t i = 0; i < RIG_SIZE; i++)
		rig.memory[i] = pattern(i);
	for (unsigned i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
		uint32_t from = lengths[i] < 100 ? 1000 + i : 0;

		memset(rig.node.memory, 0, RIG_SIZE);
		CU_ASSERT_EQUAL(rig_move(&rig, IBV_WR_RDMA_READ, 64, from, lengths[i]), 0);
		CU_ASSERT_EQUAL(memcmp(rig.node.memory + 64, rig.memory + from, lengths[i]), 0);
		CU_ASSERT_EQUAL(rig.node.memory[63], 0);
		CU_ASSERT_EQUAL(rig.node.memory[64 + lengths[i]], 0);
	}
	rig_close(&rig);
}

/* A local range that is registered and no longer mapped costs an error, no signal. */
static void local_memory_is_gone(void)
{
	struct ibv_sge sge;
	struct ibv_mr *mr;
	struct rig rig;
	void *local = mmap(NULL, 65536, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	CU_ASSERT_TRUE_FATAL(rig_begin(&rig, rig_memfd));
	mr = ibv_reg_mr(rig.node.pd, local, 65536, ALL);
	CU_ASSERT_PTR_NOT_NULL_FATAL(mr);
	munmap((uint8_t *)local + 32768, 32768);
	sge = (struct ibv_sge){ (uintptr_t)local, 65536, mr->lkey };
	CU_ASSERT_EQUAL(rig_do(&rig, IBV_WR_RDMA_WRITE, &sge, 1, 0), IBV_WC_LOC_PROT_ERR);
	CU_ASSERT_EQUAL(ibv_dereg_mr(mr), 0);
	munmap(local, 32768);
	rig_close(&rig);
}

/* ---- rights ---- */

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
			     rig_register(&rig, 4096, 100, ALL) && rig_map(&rig));
	fill(&rig, 200);
	CU_ASSERT_EQUAL(rig_move(&rig, IBV_WR_RDMA_WRITE, 0, 92, 8), IBV_WC_SUCCESS);
	CU_ASSERT_EQUAL(rig.memory[4096 + 99], pattern(7));
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
	fill(&rig, 64);
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
	unsigned written = 0;
	struct rig rig;

	for (unsigned round = 0; round < 8; round++) {
		CU_ASSERT_TRUE_FATAL(rig_begin(&rig, round % 2 ? rig_memfd : rig_segment));
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
	fill(&rig, 4096);
	for (unsigned round = 0; round < 300; round++) {
		if (rig_deregister(&rig) || !rig_register(&rig, round % 7 * 4096, 65536, ALL)) {
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

/* ---- atomics ---- */

static atomic_bool adding;

/* Stands for the owner: adds with the processor's own instruction. */
static void *adder(void *arg)
{
	_Atomic(uint64_t) *word = arg;
	uint64_t count = 0;

	for (; atomic_load(&adding); count++)
		atomic_fetch_add(word, 1);
	return (void *)(uintptr_t)count;
}

static void atomics(void)
{
	pthread_t thread;
	uint64_t old, word;
	struct rig rig;
	void *owners;

	CU_ASSERT_TRUE_FATAL(rig_begin(&rig, rig_segment));
	memset(rig.memory, 0, 64);
	atomic_store(&adding, true);
	CU_ASSERT_EQUAL(pthread_create(&thread, NULL, adder, rig.memory + 8), 0);
	for (unsigned i = 0; i < 20000; i++)
		if (rig_add(&rig, 8, 1ull << 32, &old) || old >> 32 != i)
			CU_FAIL("an add");
	atomic_store(&adding, false);
	pthread_join(thread, &owners);
	memcpy(&word, rig.memory + 8, sizeof(word));
	CU_ASSERT_EQUAL(word, (20000ull << 32) + (uintptr_t)owners);
	CU_ASSERT_EQUAL(rig_add(&rig, 12, 1, &old), IBV_WC_REM_INV_REQ_ERR);
	rig_close(&rig);
}

static const struct unit_test tests[] = {
	{ "writes to a segment: every byte of it, and no other one", writes_to_a_segment },
	{ "writes to a memfd: the same", writes_to_a_memfd },
	{ "reads", reads },
	{ "local memory that is unmapped: an error", local_memory_is_gone },
	{ "the rights of the key are kept", rights_are_kept },
	{ "the bounds of the key are kept", bounds_are_kept },
	{ "a deregistered segment is not held", key_of_a_segment_ends },
	{ "a deregistered memfd is not held", key_of_a_memfd_ends },
	{ "deregistered under writes: none comes later", deregistered_under_writes },
	{ "regions of one file that come and go", regions_come_and_go },
	{ "atomics with the owner's own instructions", atomics },
};

int main(int argc, char **argv)
{
	if (PROCESS_TSAN) {
		puts("softverbs_direct: skipped: nothing is direct under the thread sanitizer");
		return 77;
	}
	return unit_main("softverbs_direct", tests, sizeof(tests) / sizeof(tests[0]), argc, argv);
}
