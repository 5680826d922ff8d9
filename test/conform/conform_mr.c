/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* Memory registration: what is refused, what the keys are good for, when they stop. */
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>
#include "test/conform/conform.h"

#undef ibv_reg_mr /* the functions themselves: the access flags here are not constants */
#define REMOTE_ALL (IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC)

static struct ibv_pd *pd;
static char *page;
static size_t page_size;

static bool set_up(int protection)
{
	page_size = (size_t)sysconf(_SC_PAGESIZE);
	pd = ibv_alloc_pd(device);
	page = mmap(NULL, 2 * page_size, protection, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CU_ASSERT_TRUE(pd && page != MAP_FAILED);
	return pd && page != MAP_FAILED;
}

static void tear_down(void)
{
	CU_ASSERT_EQUAL(munmap(page, 2 * page_size), 0);
	CU_ASSERT_EQUAL(ibv_dealloc_pd(pd), 0);
}

static bool refused(size_t length, int access, int error)
{
	struct ibv_mr *mr;

	errno = 0;
	mr = ibv_reg_mr(pd, page, length, access);
	if (mr)
		ibv_dereg_mr(mr);
	return !mr && errno == error;
}

static bool accepted(size_t length, int access)
{
	struct ibv_mr *mr = ibv_reg_mr(pd, page, length, access);

	return mr && !ibv_dereg_mr(mr);
}

static void remote_write_needs_local(void)
{
	if (!set_up(PROT_READ | PROT_WRITE))
		return;
	CU_ASSERT_TRUE(refused(page_size, IBV_ACCESS_REMOTE_WRITE, EINVAL));
	CU_ASSERT_TRUE(refused(page_size, IBV_ACCESS_REMOTE_ATOMIC, EINVAL));
	CU_ASSERT_TRUE(refused(page_size, REMOTE_ALL, EINVAL));
	CU_ASSERT_TRUE(accepted(page_size, IBV_ACCESS_REMOTE_READ));
	CU_ASSERT_TRUE(accepted(page_size, IBV_ACCESS_LOCAL_WRITE | REMOTE_ALL));
	CU_ASSERT_TRUE(accepted(page_size, 0));
	tear_down();
}

static void memory_must_be_there(void)
{
	if (!set_up(PROT_READ | PROT_WRITE))
		return;
	CU_ASSERT_EQUAL(munmap(page + page_size, page_size), 0);
	CU_ASSERT_TRUE(refused(2 * page_size, IBV_ACCESS_LOCAL_WRITE, EFAULT));
	CU_ASSERT_TRUE(refused(page_size + 1, 0, EFAULT));
	CU_ASSERT_TRUE(accepted(page_size, IBV_ACCESS_LOCAL_WRITE));
	tear_down();
}

static void read_only_memory(void)
{
	if (!set_up(PROT_READ))
		return;
	CU_ASSERT_TRUE(refused(page_size, IBV_ACCESS_LOCAL_WRITE, EFAULT));
	CU_ASSERT_TRUE(accepted(page_size, 0));
	CU_ASSERT_TRUE(accepted(page_size, IBV_ACCESS_REMOTE_READ));
	tear_down();
}

static void inaccessible_memory(void)
{
	if (!set_up(PROT_NONE))
		return;
	/* the kernel pins for reading, whatever the protection */
	CU_ASSERT_TRUE(device_is_rxe || refused(page_size, 0, EFAULT));
	CU_ASSERT_TRUE(refused(page_size, IBV_ACCESS_LOCAL_WRITE, EFAULT));
	tear_down();
}

static void empty_region(void)
{
	if (!set_up(PROT_READ | PROT_WRITE))
		return;
	CU_ASSERT_TRUE(refused(0, IBV_ACCESS_LOCAL_WRITE, EINVAL));
	tear_down();
}

static void optional_access_is_ignored(void)
{
	if (!set_up(PROT_READ | PROT_WRITE))
		return;
	CU_ASSERT_TRUE(accepted(page_size, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_RELAXED_ORDERING));
	tear_down();
}

static void fields_and_keys(void)
{
	struct ibv_mr *one, *two;

	if (!set_up(PROT_READ | PROT_WRITE))
		return;
	one = ibv_reg_mr(pd, page + 3, page_size, IBV_ACCESS_LOCAL_WRITE | REMOTE_ALL);
	two = ibv_reg_mr(pd, page + 3, page_size, IBV_ACCESS_LOCAL_WRITE | REMOTE_ALL);
	CU_ASSERT_PTR_NOT_NULL_FATAL(one);
	CU_ASSERT_PTR_NOT_NULL_FATAL(two);
	CU_ASSERT_PTR_EQUAL(one->context, device);
	CU_ASSERT_PTR_EQUAL(one->pd, pd);
	CU_ASSERT_PTR_EQUAL(one->addr, page + 3);
	CU_ASSERT_EQUAL(one->length, page_size);
	CU_ASSERT_NOT_EQUAL(one->rkey >> 8, two->rkey >> 8);
	CU_ASSERT_NOT_EQUAL(one->lkey >> 8, two->lkey >> 8);
	CU_ASSERT_EQUAL(ibv_dereg_mr(one), 0);
	CU_ASSERT_EQUAL(ibv_dereg_mr(two), 0);
	tear_down();
}

/* The key of a deregistered region must not be valid for the next region. */
static void keys_are_not_reused_at_once(void)
{
	uint32_t last = 0;
	int i, repeated = 0;

	if (!set_up(PROT_READ | PROT_WRITE))
		return;
	for (i = 0; i < 300; i++) {
		struct ibv_mr *mr = ibv_reg_mr(pd, page, page_size, IBV_ACCESS_LOCAL_WRITE);

		CU_ASSERT_PTR_NOT_NULL_FATAL(mr);
		repeated += i && mr->rkey == last;
		last = mr->rkey;
		CU_ASSERT_EQUAL(ibv_dereg_mr(mr), 0);
	}
	/* the kernel's software RoCE uses the number again at once */
	CU_ASSERT_TRUE(!repeated || device_is_rxe);
	tear_down();
}

static void other_base_address(void)
{
	const uint64_t iova = 0x100000000ull;
	struct pair pair;
	struct ibv_mr *mr;

	if (!pair_open(&pair, NULL))
		return;
	mr = ibv_reg_mr_iova2(pair.b.pd, pair.b.buffer, BUFFER, iova,
			      IBV_ACCESS_LOCAL_WRITE | REMOTE_ALL);
	if (mr) {
		struct ibv_sge sge = { (uintptr_t)pair.a.buffer, 5, pair.a.mr->lkey };
		struct ibv_send_wr wr = {
			.wr_id = 1,
			.sg_list = &sge,
			.num_sge = 1,
			.opcode = IBV_WR_RDMA_WRITE,
			.send_flags = IBV_SEND_SIGNALED,
			.wr.rdma = { iova + 100, mr->rkey },
		}, *bad;

		memcpy(pair.a.buffer, "hello", 5);
		CU_ASSERT_EQUAL(ibv_post_send(pair.a.qp, &wr, &bad), 0);
		CU_ASSERT_TRUE(completes(pair.a.scq, 1, IBV_WC_SUCCESS, NULL));
		CU_ASSERT_EQUAL(memcmp(pair.b.buffer + 100, "hello", 5), 0);
		wr.wr.rdma.remote_addr = (uintptr_t)pair.b.buffer;
		CU_ASSERT_EQUAL(ibv_post_send(pair.a.qp, &wr, &bad), 0);
		CU_ASSERT_TRUE(completes(pair.a.scq, 1, IBV_WC_REM_ACCESS_ERR, NULL));
		CU_ASSERT_TRUE(device_is_rxe || async_is(IBV_EVENT_QP_ACCESS_ERR, pair.b.qp));
		CU_ASSERT_EQUAL(ibv_dereg_mr(mr), 0);
	} else {
		skip("no regions with a base address of their own");
	}
	pair_close(&pair);
}

static void deregistered_region_is_gone(void)
{
	struct ibv_mr old;
	struct pair pair;
	struct side peer;

	if (!pair_open(&pair, NULL))
		return;
	old = *pair.b.mr;
	peer = pair.b;
	peer.mr = &old;
	CU_ASSERT_EQUAL(post_rdma(&pair.a, IBV_WR_RDMA_WRITE, 1, 0, 8, &peer, 0, IBV_SEND_SIGNALED),
			0);
	CU_ASSERT_TRUE(completes(pair.a.scq, 1, IBV_WC_SUCCESS, NULL));
	CU_ASSERT_EQUAL(ibv_dereg_mr(pair.b.mr), 0);
	pair.b.mr = NULL;
	memset(pair.a.buffer, 0x5a, 8);
	CU_ASSERT_EQUAL(post_rdma(&pair.a, IBV_WR_RDMA_WRITE, 2, 0, 8, &peer, 0, IBV_SEND_SIGNALED),
			0);
	CU_ASSERT_TRUE(completes(pair.a.scq, 2, IBV_WC_REM_ACCESS_ERR, NULL));
	CU_ASSERT_TRUE(device_is_rxe || async_is(IBV_EVENT_QP_ACCESS_ERR, pair.b.qp));
	CU_ASSERT_EQUAL(peer.buffer[0], 0);
	pair_close(&pair);
}

/* Returns whether the device has ibv_rereg_mr; the kernel's software RoCE of 6.1 does not. */
static bool reregisters(void)
{
	struct ibv_mr *mr;
	int result;

	if (!set_up(PROT_READ | PROT_WRITE))
		return false;
	mr = ibv_reg_mr(pd, page, page_size, IBV_ACCESS_LOCAL_WRITE);
	CU_ASSERT_PTR_NOT_NULL_FATAL(mr);
	errno = 0;
	result = ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0,
			      IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ);
	CU_ASSERT_TRUE(result == 0 || (device_is_rxe && errno == EOPNOTSUPP));
	CU_ASSERT_EQUAL(ibv_dereg_mr(mr), 0);
	tear_down();
	if (result)
		skip("no ibv_rereg_mr");
	return !result;
}

/* The call is refused for `error` with `result`, and the region is unchanged. */
static bool rereg_refused(struct ibv_mr *mr, int flags, size_t length, int access, int result,
			  int error)
{
	struct ibv_mr before;

	memcpy(&before, mr, sizeof(before)); /* with the bytes between its members */
	errno = 0;
	return ibv_rereg_mr(mr, flags, NULL, page, length, access) == result && errno == error &&
	       !memcmp(&before, mr, sizeof(before));
}

static void rereg_is_checked(void)
{
	struct ibv_mr *mr;

	if (!reregisters() || !set_up(PROT_READ | PROT_WRITE))
		return;
	CU_ASSERT_EQUAL(munmap(page + page_size, page_size), 0);
	mr = ibv_reg_mr(pd, page, page_size, IBV_ACCESS_LOCAL_WRITE);
	CU_ASSERT_PTR_NOT_NULL_FATAL(mr);
	CU_ASSERT_TRUE(rereg_refused(mr, 0, 1, 0, IBV_REREG_MR_ERR_INPUT, EINVAL));
	CU_ASSERT_TRUE(rereg_refused(mr, 8, 1, 0, IBV_REREG_MR_ERR_INPUT, EINVAL));
	CU_ASSERT_TRUE(rereg_refused(mr, IBV_REREG_MR_CHANGE_TRANSLATION, 0, 0,
				     IBV_REREG_MR_ERR_INPUT, EINVAL));
	CU_ASSERT_TRUE(rereg_refused(mr, IBV_REREG_MR_CHANGE_ACCESS, 0, IBV_ACCESS_REMOTE_WRITE,
				     IBV_REREG_MR_ERR_INPUT, EINVAL));
	CU_ASSERT_TRUE(
		rereg_refused(mr, IBV_REREG_MR_CHANGE_PD, 0, 0, IBV_REREG_MR_ERR_INPUT, EINVAL));
	CU_ASSERT_TRUE(rereg_refused(mr, IBV_REREG_MR_CHANGE_TRANSLATION, 2 * page_size, 0,
				     IBV_REREG_MR_ERR_CMD, EFAULT));
	CU_ASSERT_EQUAL(ibv_dereg_mr(mr), 0);
	tear_down();
}

static void rereg_changes_access(void)
{
	struct pair pair;
	struct ibv_mr *mr;

	if (!reregisters() || !pair_open(&pair, NULL))
		return;
	mr = pair.b.mr;
	CU_ASSERT_EQUAL(post_rdma(&pair.a, IBV_WR_RDMA_WRITE, 1, 0, 8, &pair.b, 0,
				  IBV_SEND_SIGNALED),
			0);
	CU_ASSERT_TRUE(completes(pair.a.scq, 1, IBV_WC_SUCCESS, NULL));
	CU_ASSERT_EQUAL(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0,
				     IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ),
			0);
	CU_ASSERT_EQUAL(post_rdma(&pair.a, IBV_WR_RDMA_READ, 2, 0, 8, &pair.b, 0,
				  IBV_SEND_SIGNALED),
			0);
	CU_ASSERT_TRUE(completes(pair.a.scq, 2, IBV_WC_SUCCESS, NULL));
	CU_ASSERT_EQUAL(post_rdma(&pair.a, IBV_WR_RDMA_WRITE, 3, 0, 8, &pair.b, 0,
				  IBV_SEND_SIGNALED),
			0);
	CU_ASSERT_TRUE(completes(pair.a.scq, 3, IBV_WC_REM_ACCESS_ERR, NULL));
	CU_ASSERT_TRUE(device_is_rxe || async_is(IBV_EVENT_QP_ACCESS_ERR, pair.b.qp));
	pair_close(&pair);
}

static void rereg_changes_translation(void)
{
	static char elsewhere[4096];
	struct pair pair;
	struct side target;

	if (!reregisters() || !pair_open(&pair, NULL))
		return;
	target = pair.b;
	target.buffer = elsewhere;
	CU_ASSERT_EQUAL(ibv_rereg_mr(pair.b.mr, IBV_REREG_MR_CHANGE_TRANSLATION, NULL, elsewhere,
				     sizeof(elsewhere), 0),
			0);
	CU_ASSERT_PTR_EQUAL(pair.b.mr->addr, elsewhere);
	CU_ASSERT_EQUAL(pair.b.mr->length, sizeof(elsewhere));
	memset(pair.a.buffer, 7, 8);
	CU_ASSERT_EQUAL(post_rdma(&pair.a, IBV_WR_RDMA_WRITE, 1, 0, 8, &target, 4088,
				  IBV_SEND_SIGNALED),
			0);
	CU_ASSERT_TRUE(completes(pair.a.scq, 1, IBV_WC_SUCCESS, NULL));
	CU_ASSERT_EQUAL(elsewhere[4095], 7);
	CU_ASSERT_EQUAL(post_rdma(&pair.a, IBV_WR_RDMA_WRITE, 2, 0, 8, &pair.b, 0,
				  IBV_SEND_SIGNALED),
			0);
	CU_ASSERT_TRUE(completes(pair.a.scq, 2, IBV_WC_REM_ACCESS_ERR, NULL));
	CU_ASSERT_TRUE(device_is_rxe || async_is(IBV_EVENT_QP_ACCESS_ERR, pair.b.qp));
	pair_close(&pair);
}

static void rereg_changes_pd(void)
{
	struct ibv_pd *other;
	struct pair pair;

	if (!reregisters() || !pair_open(&pair, NULL))
		return;
	other = ibv_alloc_pd(device);
	CU_ASSERT_PTR_NOT_NULL_FATAL(other);
	CU_ASSERT_EQUAL(ibv_rereg_mr(pair.b.mr, IBV_REREG_MR_CHANGE_PD, other, NULL, 0, 0), 0);
	CU_ASSERT_PTR_EQUAL(pair.b.mr->pd, other);
	CU_ASSERT_EQUAL(ibv_dealloc_pd(other), EBUSY);
	CU_ASSERT_EQUAL(post_rdma(&pair.a, IBV_WR_RDMA_WRITE, 1, 0, 8, &pair.b, 0,
				  IBV_SEND_SIGNALED),
			0);
	CU_ASSERT_TRUE(completes(pair.a.scq, 1, IBV_WC_REM_ACCESS_ERR, NULL));
	CU_ASSERT_TRUE(device_is_rxe || async_is(IBV_EVENT_QP_ACCESS_ERR, pair.b.qp));
	CU_ASSERT_EQUAL(ibv_rereg_mr(pair.b.mr, IBV_REREG_MR_CHANGE_PD, pair.b.pd, NULL, 0, 0), 0);
	CU_ASSERT_EQUAL(ibv_dealloc_pd(other), 0);
	pair_close(&pair);
}

/* The region is judged when the message comes, not when the receive was posted. */
static void rereg_meets_receives(uint32_t srq_wr)
{
	struct ibv_pd *other;
	struct pair pair;

	if (!reregisters() || !pair_open(&pair, &(struct pair_options){ .srq_wr = srq_wr }))
		return;
	other = ibv_alloc_pd(device);
	CU_ASSERT_PTR_NOT_NULL_FATAL(other);
	for (uint64_t i = 1; i <= 3; i++)
		CU_ASSERT_EQUAL(srq_wr ? post_srq(&pair.b, i, 0, 8) : post_recv(&pair.b, i, 0, 8),
				0);
	CU_ASSERT_EQUAL(post_send(&pair.a, 1, 0, 8, IBV_SEND_SIGNALED), 0);
	CU_ASSERT_TRUE(completes(pair.a.scq, 1, IBV_WC_SUCCESS, NULL));
	CU_ASSERT_TRUE(completes(pair.b.rcq, 1, IBV_WC_SUCCESS, NULL));
	CU_ASSERT_EQUAL(ibv_rereg_mr(pair.b.mr, IBV_REREG_MR_CHANGE_PD, other, NULL, 0, 0), 0);
	CU_ASSERT_EQUAL(ibv_rereg_mr(pair.b.mr, IBV_REREG_MR_CHANGE_PD, pair.b.pd, NULL, 0, 0), 0);
	CU_ASSERT_EQUAL(post_send(&pair.a, 2, 0, 8, IBV_SEND_SIGNALED), 0);
	CU_ASSERT_TRUE(completes(pair.a.scq, 2, IBV_WC_SUCCESS, NULL));
	CU_ASSERT_TRUE(completes(pair.b.rcq, 2, IBV_WC_SUCCESS, NULL));
	CU_ASSERT_EQUAL(ibv_rereg_mr(pair.b.mr, IBV_REREG_MR_CHANGE_PD, other, NULL, 0, 0), 0);
	CU_ASSERT_EQUAL(post_send(&pair.a, 3, 0, 8, IBV_SEND_SIGNALED), 0);
	CU_ASSERT_TRUE(completes(pair.a.scq, 3, IBV_WC_REM_OP_ERR, NULL));
	CU_ASSERT_TRUE(completes(pair.b.rcq, 3, IBV_WC_LOC_PROT_ERR, NULL));
	CU_ASSERT_EQUAL(ibv_rereg_mr(pair.b.mr, IBV_REREG_MR_CHANGE_PD, pair.b.pd, NULL, 0, 0), 0);
	CU_ASSERT_EQUAL(ibv_dealloc_pd(other), 0);
	pair_close(&pair);
}

static void rereg_meets_posted_receives(void)
{
	rereg_meets_receives(0);
}

static void rereg_meets_shared_receives(void)
{
	rereg_meets_receives(8);
}

/* A device that pins pages needs the right to lock memory; the software device pins none. */
static void nothing_is_pinned(void)
{
	struct rlimit before, none;
	struct ibv_mr *mr;

	if (!set_up(PROT_READ | PROT_WRITE))
		return;
	getrlimit(RLIMIT_MEMLOCK, &before);
	none = (struct rlimit){ 0, before.rlim_max };
	CU_ASSERT_EQUAL(setrlimit(RLIMIT_MEMLOCK, &none), 0);
	mr = ibv_reg_mr(pd, page, 2 * page_size, IBV_ACCESS_LOCAL_WRITE);
	CU_ASSERT_TRUE(mr || strcmp(ibv_get_device_name(device->device), "soft0"));
	CU_ASSERT_EQUAL(mr ? ibv_dereg_mr(mr) : 0, 0);
	CU_ASSERT_EQUAL(setrlimit(RLIMIT_MEMLOCK, &before), 0);
	tear_down();
}

static void advice_is_taken_or_not_supported(void)
{
	struct ibv_sge sge;
	struct ibv_mr *mr;
	int result;

	if (!set_up(PROT_READ | PROT_WRITE))
		return;
	mr = ibv_reg_mr(pd, page, page_size, IBV_ACCESS_LOCAL_WRITE);
	CU_ASSERT_PTR_NOT_NULL_FATAL(mr);
	sge = (struct ibv_sge){ (uintptr_t)page, 64, mr->lkey };
	result = ibv_advise_mr(pd, IBV_ADVISE_MR_ADVICE_PREFETCH, 0, &sge, 1);
	CU_ASSERT_TRUE(result == 0 || result == EOPNOTSUPP);
	CU_ASSERT_EQUAL(ibv_dereg_mr(mr), 0);
	tear_down();
}

static const struct unit_test tests[] = {
	{ "REMOTE_WRITE or REMOTE_ATOMIC without LOCAL_WRITE: EINVAL", remote_write_needs_local },
	{ "unmapped range: EFAULT", memory_must_be_there },
	{ "read-only memory: EFAULT with LOCAL_WRITE, fine without", read_only_memory },
	{ "memory without read permission: EFAULT", inaccessible_memory },
	{ "length 0: EINVAL", empty_region },
	{ "optional access bits are ignored", optional_access_is_ignored },
	{ "fields are set; the upper 24 bits of keys identify", fields_and_keys },
	{ "a key is not used again at once", keys_are_not_reused_at_once },
	{ "a region with a base address of its own is reached through that address only",
	  other_base_address },
	{ "after dereg nothing reaches the memory", deregistered_region_is_gone },
	{ "rereg: what is refused changes nothing", rereg_is_checked },
	{ "rereg: other access", rereg_changes_access },
	{ "rereg: other memory", rereg_changes_translation },
	{ "rereg: other PD", rereg_changes_pd },
	{ "ibv_rereg_mr applies to receives posted before", rereg_meets_posted_receives },
	{ "ibv_rereg_mr applies to receives posted before to an SRQ", rereg_meets_shared_receives },
	{ "registering needs no RLIMIT_MEMLOCK", nothing_is_pinned },
	{ "advise_mr works or says EOPNOTSUPP", advice_is_taken_or_not_supported },
};

CONFORM_MAIN("conform_mr", tests)
