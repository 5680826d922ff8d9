/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* RDMA and atomics by load and store: what is moved, and what must not be. */
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include "test/unit/denied.h"
#include "test/unit/direct_rig.h"
#include "test/unit/word_rig.h"

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
		if (rig->memory[at + i] != rig_pattern(i))
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
	rig_fill(&rig, 3u << 20);
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

static void writes_to_a_file(void)
{
	writes(rig_file_open);
}

/* ---- messages and reads ---- */

/* A long message into a receive that is mapped. */
static void sends(void)
{
	static const uint32_t lengths[] = { 4097, 65536, (2u << 20) + 77 };
	struct rig rig;

	CU_ASSERT_TRUE_FATAL(rig_begin(&rig, rig_memfd));
	rig_fill(&rig, 3u << 20);
	for (unsigned i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
		memset(rig.memory, 0xee, RIG_SIZE);
		CU_ASSERT_EQUAL(rig_ask(&rig, RIG_RECEIVE), 0);
		CU_ASSERT_EQUAL(rig_move(&rig, IBV_WR_SEND, 0, 0, lengths[i]), 0);
		CU_ASSERT_EQUAL(memcmp(rig.memory, rig.node.memory, lengths[i]), 0);
		CU_ASSERT_EQUAL(rig.memory[lengths[i]], 0xee);
	}
	rig_close(&rig);
}

static void reads(rig_make *make)
{
	static const uint32_t lengths[] = {
		1, 2, 3, 4, 7, 8, 9, 64, 4096, 4097, 1u << 20, 3u << 20
	};
	struct rig rig;

	CU_ASSERT_TRUE_FATAL(rig_begin(&rig, make));
	for (uint32_t i = 0; i < RIG_SIZE; i++)
		rig.memory[i] = rig_pattern(i);
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

static void reads_of_a_memfd(void)
{
	reads(rig_memfd);
}

static void reads_of_a_file(void)
{
	reads(rig_file_open);
}

static bool mapped_time_is_over(void *arg)
{
	return clock_now() >= *(uint64_t *)arg;
}

/* A local range that is registered and no longer mapped costs an error, no signal, though it was used shortly before. */
static void local_memory_is_gone(rig_make *make)
{
	struct ibv_sge sge;
	struct ibv_mr *mr;
	struct rig rig;
	uint64_t end;
	void *local = mmap(NULL, 65536, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	CU_ASSERT_TRUE_FATAL(rig_begin(&rig, make));
	mr = ibv_reg_mr(rig.node.pd, local, 65536, RIG_ALL);
	CU_ASSERT_PTR_NOT_NULL_FATAL(mr);
	sge = (struct ibv_sge){ (uintptr_t)local, 65536, mr->lkey };
	CU_ASSERT_EQUAL(rig_do(&rig, IBV_WR_RDMA_WRITE, &sge, 1, 0), IBV_WC_SUCCESS);
	munmap((uint8_t *)local + 32768, 32768);
	end = clock_now() + MAPPED_TIME;
	CU_ASSERT_TRUE(unit_wait_for(mapped_time_is_over, &end, UNIT_PATIENCE));
	CU_ASSERT_EQUAL(rig_do(&rig, IBV_WR_RDMA_WRITE, &sge, 1, 0), IBV_WC_LOC_PROT_ERR);
	CU_ASSERT_EQUAL(ibv_dereg_mr(mr), 0);
	munmap(local, 32768);
	rig_close(&rig);
}

static void local_memory_is_gone_before_a_store(void)
{
	local_memory_is_gone(rig_memfd);
}

static void local_memory_is_gone_before_a_write(void)
{
	local_memory_is_gone(rig_file_open);
}

/* ---- a file that shrinks ---- */

static atomic_bool shrinking;

static void *shrinker(void *arg)
{
	int fd = *(int *)arg;

	while (atomic_load(&shrinking))
		if (ftruncate(fd, 100) || ftruncate(fd, RIG_SIZE))
			CU_FAIL("ftruncate");
	return NULL;
}

/*
 * The initiator gets no signal, and all is well when the file has its size again. The writes end with a word of eight bytes:
 * a shorter one goes by the target's pages, which may be gone.
 */
static void file_shrinks_under_writes(void)
{
	pthread_t thread;
	struct rig rig;

	CU_ASSERT_TRUE_FATAL(rig_begin(&rig, rig_file_open));
	rig_fill(&rig, 65536);
	atomic_store(&shrinking, true);
	CU_ASSERT_EQUAL(pthread_create(&thread, NULL, shrinker, &rig.fd), 0);
	for (unsigned i = 0; i < 5000; i++)
		if (rig_move(&rig, IBV_WR_RDMA_WRITE, 0, 4096 + i % 8 * 8, i % 16 ? 64 : 65536))
			CU_FAIL("a write to a file that shrinks");
	atomic_store(&shrinking, false);
	pthread_join(thread, NULL);
	CU_ASSERT_TRUE(write_is_exact(&rig, 8192, 5000, 1));
	CU_ASSERT_EQUAL(sv_direct_count(), 1);
	rig_close(&rig);
}

/* ---- processes with fewer rights ---- */

static int without_rights(rig_make *make, bool allowed)
{
	unsigned failures = CU_get_number_of_failures();
	struct rig rig;

	if (!allowed)
		return 77;
	writes(make);
	/* few, since each may wait for the owner's engine, which has to get a processor beside threads that poll */
	if (make == rig_file_open && rig_begin(&rig, make)) {
		flip_words(&rig, 3);
		rig_close(&rig);
	}
	return CU_get_number_of_failures() != failures;
}

static int run_filtered(int fd, void *make)
{
	(void)fd;
	return without_rights(*(rig_make **)make, deny_process_vm());
}

static int run_as_user(int fd, void *make)
{
	(void)fd;
	return without_rights(*(rig_make **)make,
			      !setgid(65534) && !setuid(65534) && !prctl(PR_SET_DUMPABLE, 1));
}

static void in_a_process(int (*run)(int fd, void *make))
{
	rig_make *const makes[] = { rig_segment, rig_memfd, rig_file_open };

	for (unsigned i = 0; i < 3; i++) {
		struct process process;
		int status;

		CU_ASSERT_TRUE_FATAL(process_start(&process, run, (void *)&makes[i]));
		status = process_end(&process);
		CU_ASSERT_TRUE(status == 0 || status == 77);
	}
}

static void under_a_filter(void)
{
	in_a_process(run_filtered);
}

static void as_an_ordinary_user(void)
{
	in_a_process(run_as_user);
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
	{ "writes to a file that may shrink: the same", writes_to_a_file },
	{ "long messages into a memfd", sends },
	{ "reads of a memfd", reads_of_a_memfd },
	{ "reads of a file that may shrink", reads_of_a_file },
	{ "local memory that is unmapped: an error, by a store",
	  local_memory_is_gone_before_a_store },
	{ "local memory that is unmapped: an error, by a file",
	  local_memory_is_gone_before_a_write },
	{ "a file that shrinks under writes: no signal", file_shrinks_under_writes },
	{ "under a filter that denies process_vm_*", under_a_filter },
	{ "as an ordinary user", as_an_ordinary_user },
	{ "atomics with the owner's own instructions", atomics },
};

UNIT_MAIN_UNLESS(PROCESS_TSAN, "nothing is direct under the thread sanitizer", "softverbs_direct",
		 tests)
