/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* Requests with inline data on a device that reads it by address, as hardware drivers do. */
#include <dat2/dat_ib_extensions.h>
#include "test/unit/rig.h"

static char memory[256];
static DAT_LMR_TRIPLET iov[2];
static DAT_RMR_TRIPLET remote = { 0x100, 1, FAKE_RKEY };
static const DAT_DTO_COOKIE cookie = { .as_64 = 1 };

/* ---- every kind of request with payload ---- */

static DAT_RETURN post_send(DAT_EP_HANDLE ep, DAT_COUNT count)
{
	return dat_ep_post_send(ep, count, iov, cookie, 0);
}

static DAT_RETURN post_send_silent(DAT_EP_HANDLE ep, DAT_COUNT count)
{
	return dat_ep_post_send(ep, count, iov, cookie, DAT_COMPLETION_SUPPRESS_FLAG);
}

static DAT_RETURN post_send_fenced(DAT_EP_HANDLE ep, DAT_COUNT count)
{
	return dat_ep_post_send(ep, count, iov, cookie, DAT_COMPLETION_BARRIER_FENCE_FLAG);
}

static DAT_RETURN post_send_invalidate(DAT_EP_HANDLE ep, DAT_COUNT count)
{
	return dat_ep_post_send_with_invalidate(ep, count, iov, cookie, 0, DAT_TRUE, FAKE_RKEY);
}

static DAT_RETURN post_write(DAT_EP_HANDLE ep, DAT_COUNT count)
{
	return dat_ep_post_rdma_write(ep, count, iov, cookie, &remote, 0);
}

static DAT_RETURN post_write_silent(DAT_EP_HANDLE ep, DAT_COUNT count)
{
	return dat_ep_post_rdma_write(ep, count, iov, cookie, &remote,
				      DAT_COMPLETION_SUPPRESS_FLAG);
}

static DAT_RETURN post_write_immediate(DAT_EP_HANDLE ep, DAT_COUNT count)
{
	return dat_ib_post_rdma_write_immed(ep, count, iov, cookie, &remote, 7, 0);
}

static DAT_RETURN post_read(DAT_EP_HANDLE ep, DAT_COUNT count)
{
	return dat_ep_post_rdma_read(ep, count, iov, cookie, &remote, 0);
}

static DAT_RETURN post_add(DAT_EP_HANDLE ep, DAT_COUNT count)
{
	(void)count;
	return dat_ib_post_fetch_and_add(ep, 1, iov, cookie, &remote, 0);
}

static DAT_RETURN post_swap(DAT_EP_HANDLE ep, DAT_COUNT count)
{
	(void)count;
	return dat_ib_post_cmp_and_swap(ep, 1, 2, iov, cookie, &remote, 0);
}

static DAT_RETURN post_recv(DAT_EP_HANDLE ep, DAT_COUNT count)
{
	return dat_ep_post_recv(ep, count, iov, cookie, 0);
}

static const struct {
	DAT_RETURN (*post)(DAT_EP_HANDLE ep, DAT_COUNT count);
	bool is_inline; /* the payload is short, and the region's addresses are virtual addresses */
} kinds[] = {
	{ post_send, true },
	{ post_send_silent, true },
	{ post_send_fenced, true },
	{ post_send_invalidate, true },
	{ post_write, true },
	{ post_write_silent, true },
	{ post_write_immediate, true },
	{ post_read, false },
	{ post_add, false },
	{ post_swap, false },
	{ post_recv, false },
};

static DAT_EP_HANDLE ep_open(struct rig *rig)
{
	DAT_EP_ATTR attr = rig_attr();
	DAT_EP_HANDLE ep = DAT_HANDLE_NULL;

	attr.max_recv_dtos = attr.max_request_dtos = FAKE_MAX_WR;
	attr.max_rdma_read_iov = 2;
	MUST(dat_ep_create(rig->ia, rig->pz, rig->recv, rig->request, rig->conn, &attr, &ep));
	return ep;
}

static void ep_connect(struct rig *rig, DAT_EP_HANDLE ep)
{
	DAT_EP_HANDLE own = rig->ep;

	rig->ep = ep;
	rig_connect(rig);
	rig->ep = own;
}

static DAT_LMR_HANDLE lmr_open(struct rig *rig, DAT_VA_TYPE va_type)
{
	DAT_REGION_DESCRIPTION region = { .for_va = memory };
	DAT_LMR_HANDLE lmr = DAT_HANDLE_NULL;

	MUST(dat_lmr_create(rig->ia, DAT_MEM_TYPE_VIRTUAL, region, sizeof(memory), rig->pz,
			    DAT_MEM_PRIV_ALL_FLAG, va_type, &lmr, NULL, NULL, NULL, NULL));
	return lmr;
}

/* Posts 8 bytes with each kind of request, in one and in two segments, starting at `base`. */
static void post_each(DAT_EP_HANDLE ep, uint64_t base, bool may_be_inline)
{
	DAT_COUNT count;
	size_t i;

	fake.inline_faults = 0;
	iov[0] = (DAT_LMR_TRIPLET){ base, 8, FAKE_LKEY };
	iov[1] = (DAT_LMR_TRIPLET){ base + 8, 8, FAKE_LKEY };
	for (i = 0; i < COUNT(kinds); i++) {
		for (count = 1; count <= 2; count++) {
			OK(kinds[i].post(ep, count));
			CU_ASSERT_EQUAL(!!(fake.last.flags & IB_POST_INLINE),
					may_be_inline && kinds[i].is_inline);
		}
	}
	CU_ASSERT_EQUAL(fake.inline_faults, 0);
}

static void test_by_address(void)
{
	struct rig rig;
	DAT_LMR_HANDLE lmr;

	rig_open(&rig, NULL);
	rig.ep = ep_open(&rig);
	ep_connect(&rig, rig.ep);
	lmr = lmr_open(&rig, DAT_VA_TYPE_VA);
	post_each(rig.ep, (uintptr_t)memory, true);
	OK(dat_lmr_free(lmr));
	rig_close(&rig);
}

/* The endpoint is created before the zero-based region; other memory can still be sent. */
static void test_region_after_endpoint(void)
{
	struct rig rig;
	DAT_LMR_HANDLE lmr, plain;

	rig_open(&rig, NULL);
	rig.ep = ep_open(&rig);
	ep_connect(&rig, rig.ep);
	plain = lmr_open(&rig, DAT_VA_TYPE_VA);
	lmr = lmr_open(&rig, DAT_VA_TYPE_ZB);
	post_each(rig.ep, 16, false);
	post_each(rig.ep, (uintptr_t)memory, false);
	OK(dat_lmr_free(lmr));
	OK(dat_lmr_free(plain));
	rig_close(&rig);
}

static void test_region_before_endpoint(void)
{
	struct rig rig;
	DAT_LMR_HANDLE lmr;

	rig_open(&rig, NULL);
	lmr = lmr_open(&rig, DAT_VA_TYPE_ZB);
	rig.ep = ep_open(&rig);
	ep_connect(&rig, rig.ep);
	post_each(rig.ep, 16, false);
	OK(dat_lmr_free(lmr));
	rig_close(&rig);
}

/* The inline size of a new queue pair is granted again. */
static void test_region_before_reset(void)
{
	struct rig rig;
	DAT_LMR_HANDLE lmr;

	rig_open(&rig, NULL);
	rig.ep = ep_open(&rig);
	ep_connect(&rig, rig.ep);
	lmr = lmr_open(&rig, DAT_VA_TYPE_ZB);
	fake.upcalls.conn(fake.conn->owner, fake.conn, IB_CONN_DISCONNECTED, NULL, 0);
	CU_ASSERT_EQUAL(rig_take(rig.conn).event_number, DAT_CONNECTION_EVENT_DISCONNECTED);
	MUST(dat_ep_reset(rig.ep));
	ep_connect(&rig, rig.ep);
	post_each(rig.ep, 16, false);
	OK(dat_lmr_free(lmr));
	rig_close(&rig);
}

/* A zero-based region over an existing LMR; the addresses of that LMR stay valid. */
static void test_region_of_a_region(void)
{
	DAT_REGION_DESCRIPTION region;
	DAT_LMR_HANDLE plain, lmr = DAT_HANDLE_NULL;
	struct rig rig;

	rig_open(&rig, NULL);
	rig.ep = ep_open(&rig);
	ep_connect(&rig, rig.ep);
	plain = lmr_open(&rig, DAT_VA_TYPE_VA);
	post_each(rig.ep, (uintptr_t)memory, true);
	region.for_lmr_handle = plain;
	MUST(dat_lmr_create(rig.ia, DAT_MEM_TYPE_LMR, region, 0, rig.pz, DAT_MEM_PRIV_ALL_FLAG,
			    DAT_VA_TYPE_ZB, &lmr, NULL, NULL, NULL, NULL));
	post_each(rig.ep, 16, false);
	OK(dat_lmr_free(lmr));
	OK(dat_lmr_free(plain));
	rig_close(&rig);
}

/* A region of another IA has no effect. */
static void test_other_ia(void)
{
	struct rig rig, other;
	DAT_LMR_HANDLE lmr;

	rig_open(&other, NULL);
	rig_open(&rig, NULL);
	rig.ep = ep_open(&rig);
	ep_connect(&rig, rig.ep);
	lmr = lmr_open(&other, DAT_VA_TYPE_ZB);
	post_each(rig.ep, (uintptr_t)memory, true);
	OK(dat_lmr_free(lmr));
	MUST(dat_ep_free(rig.ep));
	rig.ep = DAT_HANDLE_NULL;
	MUST(dat_ia_close(rig.ia, DAT_CLOSE_ABRUPT_FLAG));
	rig_close(&other);
}

static const struct unit_test tests[] = {
	{ "short payloads of sends and writes go inline", test_by_address },
	{ "a zero-based region ends inline sends of existing endpoints",
	  test_region_after_endpoint },
	{ "a zero-based region ends inline sends of later endpoints", test_region_before_endpoint },
	{ "a zero-based region ends inline sends of an endpoint that is reset",
	  test_region_before_reset },
	{ "a region of another region, zero-based", test_region_of_a_region },
	{ "a zero-based region of another IA changes nothing", test_other_ia },
};

UNIT_MAIN("inline data", tests)
