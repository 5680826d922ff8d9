/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* Which memory a peer maps, and which it does not. */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include "test/unit/direct_rig.h"
#include "test/unit/memory_kind.h"

/* ---- what lies under a region ---- */

static struct memory sealed_private(void)
{
	return by_memfd(F_SEAL_SHRINK, PROT_READ | PROT_WRITE, MAP_PRIVATE);
}

static struct memory closed(void)
{
	struct memory m = sealed();

	close(m.fd);
	m.fd = -1;
	return m;
}

static struct memory anonymous(int flags)
{
	void *at = mmap(NULL, PART, PROT_READ | PROT_WRITE, flags | MAP_ANONYMOUS, -1, 0);

	return (struct memory){ .at = at == MAP_FAILED ? NULL : at, .fd = -1 };
}

static struct memory anonymous_shared(void)
{
	return anonymous(MAP_SHARED);
}

static struct memory anonymous_private(void)
{
	return anonymous(MAP_PRIVATE);
}

static struct memory segment(void)
{
	int id = shmget(IPC_PRIVATE, PART, 0600);
	void *at = shmat(id, NULL, 0);

	shmctl(id, IPC_RMID, NULL);
	return (struct memory){ .at = at == (void *)-1 ? NULL : at, .fd = -1 };
}

static struct memory closed_file(void)
{
	struct memory m = file_of_a_folder();

	close(m.fd);
	m.fd = -1;
	return m;
}

static char named_path[] = FOLDER_PATH;

/* Without a descriptor, by its name; the test removes it. */
static struct memory closed_and_named(void)
{
	struct memory m = by_folder(named_path, false);

	close(m.fd);
	m.fd = -1;
	return m;
}

/* Another file has its name by now. */
static struct memory renamed(void)
{
	char path[] = FOLDER_PATH;
	struct memory m = by_folder(path, false);

	close(m.fd);
	unlink(path);
	m.fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	unlink(path);
	return m;
}

/* Two mappings side by side, of the parts `first` and `second` of one file. */
static struct memory in_two(uint32_t first, uint32_t second)
{
	struct memory m = sealed();
	uint8_t *at = mmap(NULL, PART, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	mmap(at, PART / 2, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, m.fd, first);
	mmap(at + PART / 2, PART / 2, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, m.fd, second);
	munmap(m.at, PART);
	m.at = at;
	return m;
}

static struct memory without_a_gap(void)
{
	struct memory m = in_two(PART, PART + PART / 2);

	mprotect(m.at, PART / 2, PROT_READ | PROT_WRITE);
	return m;
}

static struct memory with_a_gap(void)
{
	return in_two(PART, 3 * PART);
}

static struct memory half_private(void)
{
	struct memory m = sealed();

	mmap(m.at + PART / 2, PART / 2, PROT_READ | PROT_WRITE,
	     MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
	return m;
}

static const struct row {
	const char *name;
	struct memory (*make)(void);
	bool is_file;
} rows[] = {
	{ "a memfd that cannot shrink", sealed, true },
	{ "a segment", segment, true },
	{ "two mappings without a gap", without_a_gap, true },
	{ "a memfd that may shrink", unsealed, true },
	{ "a file of shm_open", file_of_a_folder, true },
	{ "a file of shm_open that is closed and has a name", closed_and_named, true },
	{ "a file of shm_open that is closed and removed", closed_file, false },
	{ "a file of shm_open whose name another one has", renamed, false },
	{ "a memfd without a descriptor", closed, false },
	{ "a private mapping of a memfd", sealed_private, false },
	{ "shared anonymous memory", anonymous_shared, false },
	{ "private memory", anonymous_private, false },
	{ "two mappings with a gap", with_a_gap, false },
	{ "a memfd, then private memory", half_private, false },
};

/* As when a peer asks. */
static bool has_file(const struct ibv_mr *mr)
{
	return sv_file_find(mr->lkey);
}

static void files_are_recognised(void)
{
	const struct node_options options = { .memory = 4096 };
	struct node node;

	CU_ASSERT_TRUE_FATAL(node_open(&node, &options));
	for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct memory m = rows[i].make();
		struct ibv_mr *mr;

		CU_ASSERT_PTR_NOT_NULL_FATAL(m.at);
		memset(m.at, 1, PART);
		mr = ibv_reg_mr(node.pd, m.at + 100, PART - 100, RIG_ALL);
		CU_ASSERT_PTR_NOT_NULL_FATAL(mr);
		if (has_file(mr) != (rows[i].is_file && !PROCESS_TSAN)) {
			fprintf(stderr, "%s\n", rows[i].name);
			CU_FAIL("the kind of a file");
		}
		CU_ASSERT_EQUAL(ibv_dereg_mr(mr), 0);
		unlink(named_path);
		if (shmdt(m.at))
			munmap(m.at, PART);
		if (m.fd >= 0)
			close(m.fd);
	}
	CU_ASSERT_EQUAL(node_close(&node), 0);
}

/* Only a key that a peer may use for one-sided operations has a file. */
static void local_regions_have_none(void)
{
	const struct node_options options = { .memory = 4096 };
	struct memory m = sealed();
	struct node node;
	struct ibv_mr *mr;

	CU_ASSERT_TRUE_FATAL(node_open(&node, &options));
	mr = ibv_reg_mr(node.pd, m.at, PART, IBV_ACCESS_LOCAL_WRITE);
	CU_ASSERT_PTR_NOT_NULL_FATAL(mr);
	CU_ASSERT_FALSE(has_file(mr));
	CU_ASSERT_EQUAL(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, RIG_ALL), 0);
	CU_ASSERT_TRUE(PROCESS_TSAN || has_file(mr));
	CU_ASSERT_EQUAL(ibv_dereg_mr(mr), 0);
	CU_ASSERT_EQUAL(node_close(&node), 0);
	munmap(m.at, PART);
	close(m.fd);
}

/* Those of more files than there is room for are as private memory; none keeps a descriptor. */
static void files_in_excess(void)
{
	static struct ibv_mr *mr[SV_FILES + 4];
	static struct memory m[SV_FILES + 4];
	const struct node_options options = { .memory = 4096 };
	unsigned had, found = 0;
	struct node node;

	CU_ASSERT_TRUE_FATAL(node_open(&node, &options));
	had = unit_entries("/proc/self/fd");
	for (unsigned i = 0; i < SV_FILES + 4; i++) {
		m[i] = segment();
		mr[i] = ibv_reg_mr(node.pd, m[i].at, PART, RIG_ALL);
		CU_ASSERT_PTR_NOT_NULL_FATAL(mr[i]);
		found += has_file(mr[i]);
	}
	CU_ASSERT_EQUAL(found, PROCESS_TSAN ? 0 : SV_FILES - 2);
	for (unsigned i = 0; i < SV_FILES + 4; i++) {
		CU_ASSERT_EQUAL(ibv_dereg_mr(mr[i]), 0);
		shmdt(m[i].at);
	}
	CU_ASSERT_EQUAL(unit_entries("/proc/self/fd"), had);
	CU_ASSERT_EQUAL(node_close(&node), 0);
}

/* ---- ibv_reg_dmabuf_mr ---- */

static bool dmabuf_is_refused(struct node *node, uint64_t offset, size_t length, int fd, int error)
{
	struct ibv_mr *mr;

	errno = 0;
	mr = ibv_reg_dmabuf_mr(node->pd, offset, length, 0, fd, RIG_ALL);
	if (mr)
		ibv_dereg_mr(mr);
	return !mr && errno == error;
}

/* The memfd is known by an address that the consumer chooses, and lies under the region as any other does. */
static void region_of_a_descriptor(void)
{
	const struct node_options options = { .memory = 4096 };
	int disk = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	struct memory m = sealed();
	struct ibv_send_wr wr, *bad;
	struct ibv_sge sge;
	struct node node;
	struct ibv_mr *mr;
	struct ibv_wc wc;

	CU_ASSERT_TRUE_FATAL(node_open(&node, &options));
	CU_ASSERT_TRUE(node_qp_connect(node.qp[0], node.qp[0]->qp_num, &node.options));
	mr = ibv_reg_dmabuf_mr(node.pd, PART + 100, PART - 100, 0x1000, m.fd, RIG_ALL);
	CU_ASSERT_PTR_NOT_NULL_FATAL(mr);
	CU_ASSERT_EQUAL((uintptr_t)mr->addr, PART + 100);
	CU_ASSERT_TRUE(PROCESS_TSAN || has_file(mr));
	memset(node.memory, 9, 64);
	sge = node_sge(&node, 0, 64);
	wr = (struct ibv_send_wr){ .sg_list = &sge,
				   .num_sge = 1,
				   .opcode = IBV_WR_RDMA_WRITE,
				   .send_flags = IBV_SEND_SIGNALED,
				   .wr.rdma = { 0x1008, mr->rkey } };
	CU_ASSERT_EQUAL(ibv_post_send(node.qp[0], &wr, &bad), 0);
	CU_ASSERT_TRUE(node_poll(&node, &wc) && wc.status == IBV_WC_SUCCESS);
	CU_ASSERT_EQUAL(m.at[107], 0);
	CU_ASSERT_EQUAL(memcmp(m.at + 108, node.memory, 64), 0);
	CU_ASSERT_EQUAL(m.at[172], 0);
	CU_ASSERT_EQUAL(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_TRANSLATION, NULL, m.at, PART,
				     RIG_ALL),
			IBV_REREG_MR_ERR_INPUT);
	CU_ASSERT_EQUAL(ibv_dereg_mr(mr), 0);
	CU_ASSERT_TRUE(dmabuf_is_refused(&node, 0, 0, m.fd, EINVAL));
	CU_ASSERT_TRUE(dmabuf_is_refused(&node, UINT64_MAX, 2, m.fd, EINVAL));
	CU_ASSERT_TRUE(dmabuf_is_refused(&node, 3 * PART, PART + 1, m.fd, EOPNOTSUPP));
	CU_ASSERT_TRUE(dmabuf_is_refused(&node, 0, 1, disk, EOPNOTSUPP));
	CU_ASSERT_TRUE(dmabuf_is_refused(&node, 0, PART, -1, EOPNOTSUPP));
	CU_ASSERT_EQUAL(node_close(&node), 0);
	close(m.fd);
	close(disk);
	munmap(m.at, PART);
}

/* ---- settings ---- */

/* Writes until the answer must be there, and a little more. */
static bool stays_unmapped(struct rig *rig)
{
	for (unsigned i = 0; i < 300; i++)
		if (rig_move(rig, IBV_WR_RDMA_WRITE, 0, 64, 64))
			return false;
	return !memcmp(rig->memory + 64, rig->node.memory, 64) && !sv_direct_count();
}

static void off(const char *ours, const char *theirs)
{
	struct rig rig = { .fd = -1, .id = -1, .direct = theirs };

	setenv("SOFTVERBS_DIRECT", ours, 1);
	CU_ASSERT_TRUE_FATAL(rig_memfd(&rig) && rig_open(&rig) &&
			     rig_register(&rig, 0, RIG_SIZE, RIG_ALL));
	memset(rig.node.memory, 7, 64);
	CU_ASSERT_TRUE(stays_unmapped(&rig));
	CU_ASSERT_EQUAL(rig_file(&rig),
			PROCESS_TSAN || !strcmp(theirs, "off") ? FILE_NONE : FILE_UNKNOWN);
	rig_close(&rig);
	unsetenv("SOFTVERBS_DIRECT");
}

static void off_at_either_end(void)
{
	off("off", "shared");
	off("shared", "off");
}

/* ---- what the owner does with its mapping ---- */

static uint64_t unmap_it(struct rig *rig, uint64_t length)
{
	return (uint64_t)munmap(rig->memory, length);
}

static uint64_t protect_it(struct rig *rig, uint64_t length)
{
	return (uint64_t)mprotect(rig->memory, length, PROT_NONE);
}

/* As with an adapter, peers go on with the pages. */
static void owner_unmaps(void)
{
	rig_work *const works[] = { protect_it, unmap_it };
	struct rig rig;

	for (unsigned i = 0; i < 2 && !PROCESS_TSAN; i++) {
		CU_ASSERT_TRUE_FATAL(rig_begin(&rig, rig_memfd));
		rig_fill(&rig, 4096);
		CU_ASSERT_EQUAL(rig_call(&rig, works[i], 65536), 0);
		for (unsigned n = 0; n < 100; n++)
			CU_ASSERT_EQUAL(rig_move(&rig, IBV_WR_RDMA_WRITE, 0, 0, 4096), 0);
		CU_ASSERT_EQUAL(memcmp(rig.memory, rig.node.memory, 4096), 0);
		CU_ASSERT_EQUAL(rig_deregister(&rig), 0);
		rig_close(&rig);
	}
}

static uint64_t leave_ipc(struct rig *rig, uint64_t unused)
{
	(void)rig, (void)unused;
	return !unshare(CLONE_NEWIPC);
}

/* A segment has its number in one IPC namespace only; peers in another one do not take it for one of theirs. */
static void segment_of_another_namespace(void)
{
	struct rig rig = { .fd = -1, .id = -1 };

	CU_ASSERT_TRUE_FATAL(rig_segment(&rig) && rig_open(&rig));
	if (!rig_call(&rig, leave_ipc, 0))
		puts("this user makes no IPC namespaces");
	else if (rig_register(&rig, 0, RIG_SIZE, RIG_ALL))
		CU_ASSERT_TRUE(memset(rig.node.memory, 7, 64) && stays_unmapped(&rig));
	rig_close(&rig);
}

/* Two processes register one segment; adds by both keys are atomic with each other, mapped or not. */
static void segment_of_two_owners(void)
{
	struct rig first = { .fd = -1, .id = -1 }, second;
	uint64_t old, word;

	/* a child of a process with threads starts none under the thread sanitizer */
	if (PROCESS_TSAN)
		return;
	CU_ASSERT_TRUE_FATAL(rig_segment(&first));
	second = first;
	CU_ASSERT_TRUE_FATAL(rig_open(&first) && rig_register(&first, 0, 4096, RIG_ALL) &&
			     rig_open(&second) && rig_register(&second, 0, 4096, RIG_ALL));
	for (unsigned i = 0; i < 200; i++)
		CU_ASSERT_TRUE(!rig_add(&first, 0, 1, &old) && old == 2 * i &&
			       !rig_add(&second, 0, 1, &old) && old == 2 * i + 1);
	memcpy(&word, first.memory, sizeof(word));
	CU_ASSERT_EQUAL(word, 400);
	process_say(second.target.fd, RIG_END);
	CU_ASSERT_EQUAL(process_end(&second.target), 0);
	CU_ASSERT_EQUAL(node_close(&second.node), 0);
	rig_close(&first);
}

static const struct unit_test tests[] = {
	{ "what lies under a region", files_are_recognised },
	{ "local regions have no file", local_regions_have_none },
	{ "more files than there is room for", files_in_excess },
	{ "ibv_reg_dmabuf_mr of a memfd", region_of_a_descriptor },
	{ "SOFTVERBS_DIRECT=off at either end", off_at_either_end },
	{ "memory that its owner unmaps or protects", owner_unmaps },
	{ "a segment of another IPC namespace", segment_of_another_namespace },
	{ "a segment of two owners", segment_of_two_owners },
};

UNIT_MAIN("softverbs_direct_map", tests)
