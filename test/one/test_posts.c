/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* Segments of posts and syncs. */
#include "test/one/fake.h"

#define W(i)	  (0x7000 + (i))
#define C(i)	  ((DAT_CONTEXT){ .as_64 = W(i) })
#define ARG(n)	  ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG##n)
#define BAD(kind) ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_##kind)

static DAT_LMR_TRIPLET iov[200];

static void iov_fill(void)
{
	unsigned i;

	for (i = 0; i < COUNT(iov); i++)
		iov[i] = (DAT_LMR_TRIPLET){ .lmr_context = 0x1000 + i,
					    .pad = 0xbad,
					    .virtual_address = UINT64_C(0x123400000000) + i,
					    .segment_length = 0xfffffff0u + i % 16 };
}

/* The arrived segments are those from `first` on. */
static void check_iov(unsigned first, unsigned count)
{
	struct two_lmr_triplet two_iov[64];
	unsigned i, wrong = 0;

	memcpy(two_iov, fake.in, count * sizeof(*two_iov));
	for (i = 0; i < count; i++)
		if (two_iov[i].virtual_address != iov[first + i].virtual_address ||
		    two_iov[i].segment_length != iov[first + i].segment_length ||
		    two_iov[i].lmr_context != iov[first + i].lmr_context)
			wrong++;
	CU_ASSERT_EQUAL(wrong, 0);
}

static const DAT_RMR_TRIPLET remote = { .rmr_context = 0x77,
					.pad = 0xbad,
					.target_address = UINT64_C(0x998877665544),
					.segment_length = UINT64_C(0x300000000) };

typedef DAT_RETURN post_function(DAT_HANDLE h, DAT_COUNT n, DAT_LMR_TRIPLET *segments);

static DAT_RETURN post_send(DAT_HANDLE h, DAT_COUNT n, DAT_LMR_TRIPLET *segments)
{
	return dat_ep_post_send(h, n, segments, C(3), W(4));
}

static DAT_RETURN post_recv(DAT_HANDLE h, DAT_COUNT n, DAT_LMR_TRIPLET *segments)
{
	return dat_ep_post_recv(h, n, segments, C(3), W(4));
}

static DAT_RETURN post_srq(DAT_HANDLE h, DAT_COUNT n, DAT_LMR_TRIPLET *segments)
{
	return dat_srq_post_recv(h, n, segments, C(3));
}

static DAT_RETURN post_read(DAT_HANDLE h, DAT_COUNT n, DAT_LMR_TRIPLET *segments)
{
	return dat_ep_post_rdma_read(h, n, segments, C(3), &remote, W(5));
}

static DAT_RETURN post_write(DAT_HANDLE h, DAT_COUNT n, DAT_LMR_TRIPLET *segments)
{
	return dat_ep_post_rdma_write(h, n, segments, C(3), &remote, W(5));
}

static const struct post {
	post_function *call;
	size_t slot;
	unsigned flags; /* the word of the completion flags; 0 if the call has none */
	DAT_HANDLE_TYPE type;
	DAT_RETURN bad;
} posts[] = {
	{ post_send, FAKE_SLOT(ep_post_send), 4, DAT_HANDLE_TYPE_EP, BAD(EP) },
	{ post_recv, FAKE_SLOT(ep_post_recv), 4, DAT_HANDLE_TYPE_EP, BAD(EP) },
	{ post_srq, FAKE_SLOT(srq_post_recv), 0, DAT_HANDLE_TYPE_SRQ, BAD(SRQ) },
	{ post_read, FAKE_SLOT(ep_post_rdma_read), 5, DAT_HANDLE_TYPE_EP, BAD(EP) },
	{ post_write, FAKE_SLOT(ep_post_rdma_write), 5, DAT_HANDLE_TYPE_EP, BAD(EP) },
};

/* The call reads as many segments as it has. */
static void aim(const struct post *post, DAT_RETURN answer, DAT_COUNT n)
{
	fake_aim(post->slot, answer);
	fake.in_arg = 2;
	fake.in_size = (size_t)n * sizeof(struct two_lmr_triplet);
}

static void test_posts(void)
{
	static const DAT_COUNT counts[] = { 1, 2, 3, 30, 64 };
	const struct post *post;
	size_t i;

	fake_open();
	iov_fill();
	for (post = posts; post < posts + COUNT(posts); post++)
		for (i = 0; i < COUNT(counts); i++) {
			aim(post, DAT_SUCCESS, counts[i]);
			CU_ASSERT_EQUAL(post->call(&fake_object, counts[i], iov), DAT_SUCCESS);
			CU_ASSERT_EQUAL(fake.calls, 1);
			CU_ASSERT_EQUAL(fake.seen[0], (uintptr_t)&fake_object);
			CU_ASSERT_EQUAL((DAT_COUNT)fake.seen[1], counts[i]);
			CU_ASSERT_EQUAL(fake.seen[3], W(3));
			if (post->flags)
				CU_ASSERT_EQUAL((uint32_t)fake.seen[post->flags],
						(uint32_t)W(post->flags));
			check_iov(0, (unsigned)counts[i]);
			/* INVALID_STATE/EP_UNCONNECTED */
			aim(post, 0x8007002fu, counts[i]);
			CU_ASSERT_EQUAL(post->call(&fake_object, counts[i], iov),
					ERROR(DAT_INVALID_STATE, DAT_INVALID_STATE_EP_UNCONNECTED));
		}
	fake_close();
}

/* DAT 2.0 itself refuses a missing list and invalid numbers, so they are passed on. */
static void test_posts_without_segments(void)
{
	const struct post *post;

	fake_open();
	for (post = posts; post < posts + COUNT(posts); post++) {
		fake_aim(post->slot, 0x80060027u);
		CU_ASSERT_EQUAL(post->call(&fake_object, 3, NULL), ARG(3));
		CU_ASSERT_EQUAL(fake.seen[2], 0);
		CU_ASSERT_EQUAL(fake.seen[1], 3);
		CU_ASSERT_EQUAL(post->call(&fake_object, -5, iov), ARG(3));
		CU_ASSERT_EQUAL((DAT_COUNT)fake.seen[1], -5);
		fake_aim(post->slot, DAT_SUCCESS);
		CU_ASSERT_EQUAL(post->call(&fake_object, 0, NULL), DAT_SUCCESS);
		CU_ASSERT_EQUAL(fake.calls, 1);
	}
	fake_close();
}

static void test_remote(void)
{
	struct two_rmr_triplet two_remote;
	DAT_RMR_TRIPLET there = remote;

	fake_open();
	iov_fill();
	fake_aim(FAKE_SLOT(ep_post_rdma_write), DAT_SUCCESS);
	fake.in_arg = 4;
	fake.in_size = sizeof(two_remote);
	CU_ASSERT_EQUAL(post_write(&fake_object, 1, iov), DAT_SUCCESS);
	memcpy(&two_remote, fake.in, sizeof(two_remote));
	CU_ASSERT_EQUAL(two_remote.virtual_address, remote.target_address);
	CU_ASSERT_EQUAL(two_remote.rmr_context, remote.rmr_context);
	CU_ASSERT_EQUAL(two_remote.segment_length, 0xffffffff); /* posts do not read it */
	there.segment_length = 0x1234;
	CU_ASSERT_EQUAL(dat_ep_post_rdma_write(&fake_object, 1, iov, C(3), &there, 0), DAT_SUCCESS);
	memcpy(&two_remote, fake.in, sizeof(two_remote));
	CU_ASSERT_EQUAL(two_remote.segment_length, 0x1234);
	CU_ASSERT_EQUAL(dat_ep_post_rdma_write(&fake_object, 1, iov, C(3), NULL, 0), DAT_SUCCESS);
	CU_ASSERT_EQUAL(fake.seen[4], 0);
	fake_aim(FAKE_SLOT(ep_post_rdma_read), DAT_SUCCESS);
	fake.in_arg = 4;
	fake.in_size = sizeof(two_remote);
	CU_ASSERT_EQUAL(post_read(&fake_object, 1, iov), DAT_SUCCESS);
	memcpy(&two_remote, fake.in, sizeof(two_remote));
	CU_ASSERT_EQUAL(two_remote.virtual_address, remote.target_address);
	CU_ASSERT_EQUAL(dat_ep_post_rdma_read(&fake_object, 1, iov, C(3), NULL, 0), DAT_SUCCESS);
	CU_ASSERT_EQUAL(fake.seen[4], 0);
	fake_close();
}

static DAT_HANDLE_TYPE kind;

static DAT_RETURN get_handle_type(DAT_HANDLE handle, DAT_HANDLE_TYPE *type)
{
	if (handle != &fake_object)
		return 0x8005001bu;
	*type = kind;
	return DAT_SUCCESS;
}

/*
 * A segment that does not fit into 32 bits, and more segments than a post can have; a bad handle
 * takes precedence over both.
 */
static void test_posts_refused(void)
{
	static struct {
		void **table;
	} freed = { fake_table };
	const struct post *post;

	fake_open();
	fake_table[FAKE_SLOT(get_handle_type)] = (void *)get_handle_type;
	for (post = posts; post < posts + COUNT(posts); post++) {
		iov_fill();
		aim(post, DAT_SUCCESS, 2);
		kind = post->type;
		CU_ASSERT_EQUAL(post->call(&fake_object, 65, iov), ARG(2));
		CU_ASSERT_EQUAL(post->call(&freed, 65, iov), post->bad);
		iov[2].segment_length = UINT64_C(0x100000000);
		CU_ASSERT_EQUAL(post->call(&fake_object, 2, iov), DAT_SUCCESS);
		CU_ASSERT_EQUAL(post->call(&fake_object, 3, iov), ARG(3));
		CU_ASSERT_EQUAL(post->call(&freed, 3, iov), post->bad);
		CU_ASSERT_EQUAL(post->call(NULL, 3, iov), post->bad);
		kind = DAT_HANDLE_TYPE_PZ;
		CU_ASSERT_EQUAL(post->call(&fake_object, 3, iov), post->bad);
		CU_ASSERT_EQUAL(fake.calls, 1);
	}
	fake_close();
}

static void check_sync(size_t slot,
		       DAT_RETURN (*sync)(DAT_IA_HANDLE, const DAT_LMR_TRIPLET *, DAT_VLEN))
{
	iov_fill();
	fake_aim(slot, DAT_SUCCESS);
	fake.in_arg = 1;
	fake.in_size = 64 * sizeof(struct two_lmr_triplet);
	CU_ASSERT_EQUAL(sync(fake_ia, iov, 3), DAT_SUCCESS);
	CU_ASSERT_EQUAL(fake.seen[0], (uintptr_t)&fake_object);
	CU_ASSERT_EQUAL(fake.seen[2], 3);
	check_iov(0, 3);
	/* In several pieces: the last one begins at 192. */
	fake.calls = 0;
	CU_ASSERT_EQUAL(sync(fake_ia, iov, 200), DAT_SUCCESS);
	CU_ASSERT_EQUAL(fake.calls, 4);
	CU_ASSERT_EQUAL(fake.seen[2], 8);
	check_iov(192, 8);
	/* A bad last segment prevents the whole call. */
	fake.calls = 0;
	kind = DAT_HANDLE_TYPE_IA;
	iov[199].segment_length = UINT64_C(0x100000000);
	CU_ASSERT_EQUAL(sync(fake_ia, iov, 200), ARG(2));
	CU_ASSERT_EQUAL(sync((DAT_IA_HANDLE)4000, iov, 200), BAD(IA));
	CU_ASSERT_EQUAL(fake.calls, 0);
	CU_ASSERT_EQUAL(sync(fake_ia, NULL, 0), DAT_SUCCESS);
	fake.answer = 0x80060026u;
	CU_ASSERT_EQUAL(sync(fake_ia, NULL, 7), ARG(2));
	CU_ASSERT_EQUAL(fake.seen[1], 0);
	CU_ASSERT_EQUAL(fake.seen[2], 7);
	fake.calls = 0;
	CU_ASSERT_EQUAL(sync(fake_ia, iov, 199), ARG(2));
	CU_ASSERT_EQUAL(fake.calls, 1);
}

static void test_syncs(void)
{
	fake_open();
	fake_table[FAKE_SLOT(get_handle_type)] = (void *)get_handle_type;
	check_sync(FAKE_SLOT(lmr_sync_rdma_read), dat_lmr_sync_rdma_read);
	check_sync(FAKE_SLOT(lmr_sync_rdma_write), dat_lmr_sync_rdma_write);
	fake_close();
}

static const struct unit_test tests[] = {
	{ "posts: every segment and argument", test_posts },
	{ "posts without a list", test_posts_without_segments },
	{ "the peer's memory", test_remote },
	{ "posts that cannot be expressed in DAT 2.0", test_posts_refused },
	{ "syncs take any number of segments", test_syncs },
};

UNIT_MAIN("one posts", tests)
