/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/*
 * Private memory that is swapped, and the kernel: a bare clone(2), a limit of a control group, strict accounting. The last two
 * need privileges, or a setting of the whole machine: where they are missing the test says so, and test/vm/memory fails.
 */
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include "test/unit/private_rig.h"

/* ---- a child without the handlers of fork(2) ---- */

/* How a child ends that loads from this offset. */
static uint64_t clone_and_load(struct rig *rig, uint64_t offset)
{
	const struct rlimit none = { 0, 0 };
	int status = 0;
	long child = syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);

	if (!child) {
		signal(SIGSEGV, SIG_DFL);
		setrlimit(RLIMIT_CORE, &none);
		syscall(SYS_exit_group,
			*(volatile uint8_t *)(rig->memory + offset) == rig_pattern(0));
	}
	return child > 0 && waitpid((pid_t)child, &status, 0) == child ? (uint64_t)status
								       : UINT64_MAX;
}

/* The child has a hole where the memory was, and never what its parent and the peers share. */
static void bare_clone_shares_nothing(void)
{
	struct rig rig;

	CU_ASSERT_TRUE_FATAL(private_begin(&rig) && rig_register(&rig, 0, 4 * PAGE, RIG_ALL) &&
			     rig_map(&rig));
	rig_fill(&rig, 4 * PAGE);
	CU_ASSERT_EQUAL(rig_move(&rig, IBV_WR_RDMA_WRITE, 0, 0, 4 * PAGE), 0);
	CU_ASSERT_EQUAL(rig_call(&rig, clone_and_load, 0), SIGSEGV);
	CU_ASSERT_EQUAL(rig_call(&rig, is_pooled, 0), 1);
	CU_ASSERT_EQUAL(rig_move(&rig, IBV_WR_RDMA_WRITE, 0, PAGE, 64), 0);
	CU_ASSERT_EQUAL(rig_deregister(&rig), 0);
	CU_ASSERT_EQUAL(rig_call(&rig, clone_and_load, 0), 1 << 8);
	CU_ASSERT_EQUAL(rig_call(&rig, clone_and_load, PAGE), 1 << 8);
	rig_close(&rig);
}

/* ---- a limit of a control group ---- */

struct group {
	char folder[64];
	const char *limit, *usage;
};

/* 0 or errno. */
static int group_write(const struct group *group, const char *name, uint64_t value)
{
	char path[128];
	FILE *file;
	int failed;

	snprintf(path, sizeof(path), "%s/%s", group->folder, name);
	file = fopen(path, "w");
	if (!file)
		return errno;
	failed = fprintf(file, "%llu\n", (unsigned long long)value) < 0;
	return fclose(file) || failed ? errno : 0;
}

static uint64_t group_usage(const struct group *group)
{
	unsigned long long value = 0;
	char path[128];
	FILE *file;

	snprintf(path, sizeof(path), "%s/%s", group->folder, group->usage);
	file = fopen(path, "r");
	if (file && fscanf(file, "%llu", &value) != 1)
		value = 0;
	if (file)
		fclose(file);
	return value;
}

/* Of the unified hierarchy, or of the older one. False if this process may not make a group. */
static bool group_open(struct group *group, pid_t member)
{
	static const struct {
		const char *root, *limit, *usage;
	} kinds[] = {
		{ "/sys/fs/cgroup", "memory.max", "memory.current" },
		{ "/sys/fs/cgroup/memory", "memory.limit_in_bytes", "memory.usage_in_bytes" },
	};

	for (unsigned i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		char path[128];

		snprintf(group->folder, sizeof(group->folder), "%s/softverbs-%d", kinds[i].root,
			 (int)getpid());
		group->limit = kinds[i].limit;
		group->usage = kinds[i].usage;
		if (mkdir(group->folder, 0755))
			continue;
		snprintf(path, sizeof(path), "%s/%s", group->folder, group->limit);
		if (!access(path, W_OK) && !group_write(group, "cgroup.procs", (uint64_t)member))
			return true;
		rmdir(group->folder);
	}
	return false;
}

static bool group_is_gone(void *arg)
{
	const struct group *group = arg;

	return !rmdir(group->folder) || errno == ENOENT;
}

/* Each page says where it is. */
static uint64_t pages_touch(struct rig *rig, uint64_t unused)
{
	(void)unused;
	for (uint32_t at = 0; at < RIG_SIZE; at += PAGE)
		store(rig, at);
	return 1;
}

static uint64_t pages_are_as_touched(struct rig *rig, uint64_t unused)
{
	(void)unused;
	for (uint32_t at = PAGE; at < RIG_SIZE; at += PAGE) /* the first page is written to */
		if (load(rig, at) != ~(uint64_t)at)
			return 0;
	return 1;
}

/* Room for half of the region is enough to move it to and fro: it is never twice in memory. */
static void group_has_little_room(void)
{
	struct group group;
	struct rig rig;

	CU_ASSERT_TRUE_FATAL(private_begin(&rig));
	if (!group_open(&group, rig.target.pid)) {
		puts("no control group can be made here");
		rig_close(&rig);
		return;
	}
	CU_ASSERT_EQUAL(rig_call(&rig, pages_touch, 0), 1);
	CU_ASSERT_TRUE_FATAL(group_usage(&group) >= RIG_SIZE);
	CU_ASSERT_EQUAL(group_write(&group, group.limit, group_usage(&group) + RIG_SIZE / 2), 0);
	CU_ASSERT_TRUE_FATAL(rig_register(&rig, 0, RIG_SIZE, RIG_ALL) && rig_map(&rig));
	CU_ASSERT_EQUAL(rig_call(&rig, is_pooled, 0), 1);
	CU_ASSERT_EQUAL(rig_call(&rig, is_pooled, RIG_SIZE - PAGE), 1);
	CU_ASSERT_EQUAL(rig_call(&rig, pages_are_as_touched, 0), 1);
	CU_ASSERT_EQUAL(rig_deregister(&rig), 0);
	CU_ASSERT_EQUAL(rig_call(&rig, is_pooled, 0), 0);
	CU_ASSERT_EQUAL(rig_call(&rig, pages_are_as_touched, 0), 1);
	rig_close(&rig);
	CU_ASSERT_TRUE(unit_wait_for(group_is_gone, &group, UNIT_PATIENCE));
}

/* ---- strict accounting of memory ---- */

#define LEFT	 (64ull << 10) /* bytes that each processor may promise yet, at most */
#define PROMISES 1024u

static bool is_strict(void)
{
	FILE *file = fopen("/proc/sys/vm/overcommit_memory", "r");
	int mode = 0;

	if (file && fscanf(file, "%d", &mode) != 1)
		mode = 0;
	if (file)
		fclose(file);
	return mode == 2;
}

static struct {
	void *at;
	uint64_t size;
} promised[PROMISES];

static uint64_t promises_add(uint64_t n)
{
	uint64_t size = 1ull << 40;

	while (size >= LEFT && n < PROMISES) {
		void *at = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
				0);

		if (at == MAP_FAILED) {
			size /= 2;
			continue;
		}
		promised[n].at = at;
		promised[n++].size = size;
	}
	return n;
}

/*
 * Has the kernel promise all memory that it may promise; returns how many mappings that takes. Each processor counts some
 * of it by itself.
 */
static uint64_t promises_take(struct rig *rig, uint64_t unused)
{
	cpu_set_t all, one;
	uint64_t n = 0;

	(void)rig, (void)unused;
	sched_getaffinity(0, sizeof(all), &all);
	for (int cpu = 0; cpu < CPU_SETSIZE; cpu++) {
		if (!CPU_ISSET(cpu, &all))
			continue;
		CPU_ZERO(&one);
		CPU_SET(cpu, &one);
		sched_setaffinity(0, sizeof(one), &one);
		n = promises_add(n);
	}
	sched_setaffinity(0, sizeof(all), &all);
	return n;
}

static uint64_t promises_return(struct rig *rig, uint64_t n)
{
	(void)rig;
	while (n--)
		munmap(promised[n].at, promised[n].size);
	return 1;
}

/*
 * A region moves piece by piece, each in the place of its own memory, so it may move or stay; no write fails or is lost, and
 * nothing ends by a signal.
 */
static void kernel_promises_no_more(void)
{
	uint64_t taken;
	struct rig rig;

	if (!is_strict()) {
		puts("the kernel promises more memory than there is here");
		return;
	}
	CU_ASSERT_TRUE_FATAL(private_begin(&rig));
	rig_call(&rig, pages_touch, 0);
	CU_ASSERT_TRUE_FATAL(rig_register(&rig, 0, RIG_SIZE, RIG_ALL));
	taken = rig_call(&rig, promises_take, 0);
	CU_ASSERT(taken > 0 && taken < PROMISES);
	rig_fill(&rig, 64);
	for (unsigned i = 0; i < 300; i++)
		CU_ASSERT_EQUAL(rig_move(&rig, IBV_WR_RDMA_WRITE, 0, 0, 64), 0);
	CU_ASSERT_EQUAL((uint8_t)rig_call(&rig, load, 8), rig_pattern(8));
	CU_ASSERT_EQUAL(rig_call(&rig, pages_are_as_touched, 0), 1);
	CU_ASSERT_EQUAL(rig_deregister(&rig), 0);
	CU_ASSERT_EQUAL(rig_call(&rig, pages_are_as_touched, 0), 1);
	CU_ASSERT_EQUAL(rig_call(&rig, promises_return, taken), 1);
	CU_ASSERT_TRUE(rig_register(&rig, 0, RIG_SIZE, RIG_ALL) && rig_map(&rig));
	CU_ASSERT_EQUAL(rig_call(&rig, is_pooled, 0), 1);
	CU_ASSERT_EQUAL(rig_call(&rig, pages_are_as_touched, 0), 1);
	CU_ASSERT_EQUAL(rig_deregister(&rig), 0);
	rig_close(&rig);
}

static const struct unit_test tests[] = {
	{ "a bare clone(2) shares nothing", bare_clone_shares_nothing },
	{ "a control group with little room", group_has_little_room },
	{ "a kernel that promises no more memory: nothing is lost", kernel_promises_no_more },
};

UNIT_MAIN_UNLESS(PROCESS_TSAN, "nothing is direct under the thread sanitizer",
		 "softverbs_private_kernel", tests)
