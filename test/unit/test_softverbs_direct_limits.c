/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* Memory of peers that is mapped: more regions than mappings, many in turn, and processes that lock their memory. */
#include <stdio.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "test/unit/private_rig.h"
#include "test/unit/storm.h"

/* ---- more regions than mappings ---- */

#define LIMIT	200u
#define REGIONS 300u
#define SOME	100u
#define APART	(2u << 20) /* bytes: no two share a mapping */

static struct ibv_mr *mr[REGIONS];

/* The target registers a page in each part of a large range; returns its address. */
static uint64_t many_register(struct rig *rig, uint64_t unused)
{
	uint8_t *at = mmap(NULL, (size_t)REGIONS * APART, PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	(void)unused;
	for (uint32_t i = 0; i < REGIONS && at != MAP_FAILED; i++) {
		mr[i] = ibv_reg_mr(rig->node.pd, at + (size_t)i * APART, PAGE, RIG_ALL);
		if (!mr[i])
			return 0;
	}
	return at == MAP_FAILED ? 0 : (uintptr_t)at;
}

static uint64_t many_key(struct rig *rig, uint64_t i)
{
	(void)rig;
	return mr[i]->rkey;
}

/* Whether a region has not what was written there, before or after it is deregistered. */
static bool is_lost(uint32_t i)
{
	const volatile uint32_t *at = mr[i]->addr;
	uint32_t before = *at;
	int error = ibv_dereg_mr(mr[i]);

	if (!error && before == i + 1 && *at == i + 1)
		return false;
	printf("region %u has %u, and %u when it is deregistered (%d)\n", i, before, *at, error);
	fflush(stdout);
	return true;
}

/* How many of them are lost, from the first on: on a busy machine each may take as long as a swap is tried. */
static uint64_t some_deregister(struct rig *rig, uint64_t first)
{
	uint64_t lost = 0;

	(void)rig;
	for (uint64_t i = first; i < first + SOME; i++)
		lost += is_lost((uint32_t)i);
	return lost;
}

/* Bytes of the pool in this process. */
static uint64_t pool_bytes(struct rig *rig, uint64_t unused)
{
	char path[32], target[64];
	uint64_t bytes = 0;

	(void)rig, (void)unused;
	for (int fd = 0; fd < 256; fd++) {
		ssize_t length;
		struct stat st;

		snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
		length = readlink(path, target, sizeof(target) - 1);
		target[length < 0 ? 0 : length] = 0;
		if (pool_is_named(target) && !fstat(fd, &st))
			bytes += (uint64_t)st.st_blocks * 512;
	}
	return bytes;
}

struct use {
	struct rig *rig;
	uint32_t value;
};

/* Writes its number into the region, and tells whether there are as many mappings as regions, or the limit. */
static bool uses(void *arg)
{
	const struct use *use = arg;

	memcpy(use->rig->node.memory, &use->value, sizeof(use->value));
	CU_ASSERT_EQUAL(rig_move(use->rig, IBV_WR_RDMA_WRITE, 0, 0, sizeof(use->value)), 0);
	return sv_direct_count() == (use->value < LIMIT ? use->value : LIMIT);
}

/* Those beyond the limit are reached as private memory is. Nothing is left of any of them. */
static void more_regions_than_mappings(void)
{
	unsigned limit = sv_direct_limit;
	uint64_t base;
	struct rig rig;

	sv_direct_limit = LIMIT;
	CU_ASSERT_TRUE_FATAL(private_begin(&rig));
	base = rig_call(&rig, many_register, 0);
	CU_ASSERT_TRUE_FATAL(base);
	for (uint32_t i = 0; i < REGIONS; i++) {
		struct use use = { &rig, i + 1 };

		rig.key = (uint32_t)rig_call(&rig, many_key, i);
		rig.address = base + (uint64_t)i * APART;
		for (unsigned more = 0; more < 20; more++)
			CU_ASSERT_TRUE(uses(&use) || i < LIMIT);
		CU_ASSERT_TRUE_FATAL(unit_wait_for(uses, &use, UNIT_PATIENCE));
	}
	CU_ASSERT(rig_call(&rig, pool_bytes, 0) >= LIMIT * PAGE);
	for (uint32_t i = 0; i < REGIONS; i += SOME)
		CU_ASSERT_EQUAL(rig_call(&rig, some_deregister, i), 0);
	CU_ASSERT_TRUE(unit_wait_for(rig_is_unmapped, NULL, UNIT_PATIENCE));
	CU_ASSERT_EQUAL(rig_call(&rig, pool_bytes, 0), 0);
	rig_close(&rig);
	sv_direct_limit = limit;
}

/* ---- many in turn ---- */

static uint64_t entries(struct rig *rig, uint64_t unused)
{
	(void)rig, (void)unused;
	return unit_entries("/proc/self/fd");
}

static bool count_line(const struct map_line *line, void *arg)
{
	(void)line;
	++*(uint64_t *)arg;
	return true;
}

static uint64_t count_maps(struct rig *rig, uint64_t unused)
{
	uint64_t count = 0;

	(void)rig, (void)unused;
	sv_mapping_each(count_line, &count);
	return count;
}

#define ALLOCATOR 16u /* mappings that an allocator may make meanwhile */

static void one_in_turn(struct rig *rig, unsigned round)
{
	CU_ASSERT_TRUE_FATAL(rig_register(rig, round % 3 * PAGE, 3 * PAGE, RIG_ALL));
	CU_ASSERT_TRUE_FATAL(rig_map(rig));
	CU_ASSERT_EQUAL(rig_move(rig, IBV_WR_RDMA_WRITE, 0, 0, 64), 0);
	CU_ASSERT_EQUAL(rig_deregister(rig), 0);
	CU_ASSERT_TRUE(unit_wait_for(rig_is_unmapped, NULL, UNIT_PATIENCE));
}

/* Descriptors, mappings and pages are what they were after the first one. */
static void many_in_turn(void)
{
	uint64_t theirs, their_maps, ours, our_maps;
	unsigned rounds = storm_rounds(300);
	struct rig rig;

	CU_ASSERT_TRUE_FATAL(private_begin(&rig));
	for (unsigned round = 0; round < 3; round++)
		one_in_turn(&rig, round);
	theirs = rig_call(&rig, entries, 0);
	their_maps = rig_call(&rig, count_maps, 0);
	ours = entries(&rig, 0);
	our_maps = count_maps(&rig, 0);
	for (unsigned round = 0; round < rounds; round++)
		one_in_turn(&rig, round);
	CU_ASSERT_EQUAL(rig_call(&rig, entries, 0), theirs);
	CU_ASSERT(rig_call(&rig, count_maps, 0) <= their_maps + ALLOCATOR);
	CU_ASSERT_EQUAL(rig_call(&rig, pool_bytes, 0), 0);
	CU_ASSERT_EQUAL(entries(&rig, 0), ours);
	CU_ASSERT(count_maps(&rig, 0) <= our_maps + ALLOCATOR);
	rig_close(&rig);
}

/* ---- many peers ---- */

#define PEERS 40u /* of NODE_QPS */

/* Maps its parent's memory and writes its number into it. */
static int run_peer(int fd, void *number)
{
	const struct node_options options = { .memory = PAGE };
	static struct rig rig;
	uint64_t key = 0, value = 0;

	if (!node_open(&rig.node, &options) || !node_connect(&rig.node, 0, 1, fd) ||
	    !process_hear(fd, &rig.address) || !process_hear(fd, &key))
		return 1;
	rig.key = (uint32_t)key;
	if (!rig_map(&rig))
		return 2;
	value = *(uint32_t *)number;
	memcpy(rig.node.memory, &value, sizeof(value));
	if (rig_move(&rig, IBV_WR_RDMA_WRITE, 0, (uint32_t)value * 64, sizeof(value)))
		return 3;
	process_say(fd, value);
	return process_hear(fd, &value) ? 0 : 4;
}

static bool peer_begin(struct rig *owner, struct process *peer, uint32_t number)
{
	return process_start(peer, run_peer, &number) &&
	       node_connect(&owner->node, number, 1, peer->fd) &&
	       process_say(peer->fd, (uintptr_t)owner->memory) &&
	       process_say(peer->fd, owner->node.mr->rkey);
}

/* All have it mapped at once. Every other one is killed; the deregistration waits for none. */
static void many_peers(void)
{
	struct node_options options = { .memory = RIG_SIZE, .qps = PEERS };
	struct process peer[PEERS];
	struct rig owner = { .fd = -1, .id = -1 };
	uint64_t value = 0;

	CU_ASSERT_TRUE_FATAL(rig_memfd(&owner));
	options.at = owner.memory;
	CU_ASSERT_TRUE_FATAL(node_open(&owner.node, &options));
	for (uint32_t i = 0; i < PEERS; i++)
		CU_ASSERT_TRUE_FATAL(peer_begin(&owner, &peer[i], i));
	for (uint32_t i = 0; i < PEERS; i++) {
		CU_ASSERT_TRUE(process_hear(peer[i].fd, &value) && value == i);
		CU_ASSERT_EQUAL(load(&owner, i * 64), i);
	}
	for (uint32_t i = 0; i < PEERS; i += 2)
		process_kill(&peer[i]);
	CU_ASSERT_EQUAL(ibv_dereg_mr(owner.node.mr), 0);
	owner.node.mr = NULL;
	for (uint32_t i = 1; i < PEERS; i += 2) {
		process_say(peer[i].fd, 1);
		CU_ASSERT_EQUAL(process_end(&peer[i]), 0);
	}
	rig_close_here(&owner);
}

/* ---- locked memory ---- */

/* By the system call: the address sanitizer's function does nothing. False if this user may not lock. */
static bool lock_all(bool on)
{
	return on ? !syscall(SYS_mlockall, MCL_FUTURE) : !syscall(SYS_munlockall);
}

/* A process that locks what it maps does not fill the holes of its peer's file. */
static void holes_stay_holes(void)
{
	struct rig rig = { .fd = -1, .id = -1 };
	struct stat st;

	CU_ASSERT_TRUE_FATAL(rig_memfd(&rig) && rig_open(&rig) &&
			     rig_register(&rig, 1 << 20, PAGE, RIG_ALL));
	if (!lock_all(true)) {
		puts("this user may not lock memory");
		rig_close(&rig);
		return;
	}
	rig_fill(&rig, 64);
	CU_ASSERT_TRUE(rig_map(&rig));
	CU_ASSERT_EQUAL(rig_move(&rig, IBV_WR_RDMA_WRITE, 0, 0, 64), 0);
	CU_ASSERT_TRUE(!fstat(rig.fd, &st) && st.st_blocks * 512 <= 16 * PAGE);
	CU_ASSERT_EQUAL(memcmp(rig.memory + (1 << 20), rig.node.memory, 64), 0);
	lock_all(false);
	rig_close(&rig);
}

/* An attached segment would become present as a whole, so it is not attached. */
static void segment_is_not_attached(void)
{
	struct rig rig = { .fd = -1, .id = -1 };

	CU_ASSERT_EQUAL(sv_direct_count(), 0);
	CU_ASSERT_TRUE_FATAL(rig_segment(&rig) && rig_open(&rig) &&
			     rig_register(&rig, 0, PAGE, RIG_ALL));
	rig_fill(&rig, 64);
	if (!lock_all(true)) {
		rig_close(&rig);
		return;
	}
	/* so that something is locked, whatever the process maps */
	CU_ASSERT_PTR_NOT_EQUAL(mmap(NULL, PAGE, PROT_READ | PROT_WRITE,
				     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0),
				MAP_FAILED);
	for (unsigned i = 0; i < 300; i++)
		CU_ASSERT_EQUAL(rig_move(&rig, IBV_WR_RDMA_WRITE, 0, 0, 64), 0);
	/* the engine counts a mapping while it tries to make it */
	CU_ASSERT_TRUE(unit_wait_for(rig_is_unmapped, NULL, UNIT_PATIENCE));
	CU_ASSERT_EQUAL(memcmp(rig.memory, rig.node.memory, 64), 0);
	lock_all(false);
	rig_close(&rig);
}

static const struct unit_test tests[] = {
	{ "more regions than mappings", more_regions_than_mappings },
	{ "many regions in turn", many_in_turn },
	{ "many peers", many_peers },
	{ "a process that locks its memory does not fill holes", holes_stay_holes },
	{ "a process that locks its memory does not attach segments", segment_is_not_attached },
};

UNIT_MAIN_UNLESS(PROCESS_TSAN, "nothing is direct under the thread sanitizer",
		 "softverbs_direct_limits", tests)
