/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* Data arrive even where the kernel denies access to the memory of other processes. */
#include <stdio.h>
#include "test/conform/remote.h"
#include "test/unit/denied.h"

static const uint32_t sizes[] = { 1, 48, 49, 4096, 4097, 30000, BUFFER };

static void messages_both_ways(void)
{
	struct side here;
	struct remote peer;

	if (!remote_open(&peer, &here, NULL))
		return;
	messages_there(&here, &peer, sizes, COUNT(sizes));
	messages_back(&here, &peer, sizes, COUNT(sizes));
	remote_close(&peer);
	side_close(&here);
}

static void writes_reads_and_atomics(void)
{
	struct side here;
	struct remote peer;

	if (!remote_open(&peer, &here, NULL))
		return;
	writes_and_reads(&here, &peer, sizes, COUNT(sizes));
	remote_fill(&peer, 0, 8, 5);
	CU_ASSERT_EQUAL(post_atomic(&here, IBV_WR_ATOMIC_FETCH_AND_ADD, 3, 0, &peer.side, 0, 0, 0),
			0);
	CU_ASSERT_TRUE(completes(here.scq, 3, IBV_WC_SUCCESS, NULL));
	CU_ASSERT_TRUE(pattern_holds(here.buffer, 8, 5));
	remote_close(&peer);
	side_close(&here);
}

/* A receive that waits for the start of a copy is taken once, even if it is tried often. */
static void shared_receives_are_used_once(void)
{
	const uint32_t length = 60000;
	struct side here;
	struct remote peer;
	uint64_t i;

	if (!device_attr.max_srq) {
		skip("no shared receive queues");
		return;
	}
	if (!remote_open(&peer, &here, &(struct pair_options){ .srq_wr = 16 }))
		return;
	for (i = 0; i < 12; i++)
		CU_ASSERT_EQUAL(remote_post_srq(&peer, i, 0, BUFFER), 0);
	pattern_fill(here.buffer, length, 1);
	for (i = 0; i < 12; i++)
		CU_ASSERT_EQUAL(post_send(&here, i, 0, i < 10 ? length : 8, IBV_SEND_SIGNALED), 0);
	for (i = 0; i < 12; i++)
		CU_ASSERT_TRUE(completes(here.scq, i, IBV_WC_SUCCESS, NULL));
	for (i = 0; i < 12; i++)
		CU_ASSERT_TRUE(remote_completes_recv(&peer, i, IBV_WC_SUCCESS, NULL));
	CU_ASSERT_TRUE(remote_holds(&peer, 0, length, 1));
	remote_close(&peer);
	side_close(&here);
}

static void memory_that_is_gone(void)
{
	struct ibv_wc wc = { 0 };
	struct side here;
	struct remote peer;
	int64_t offset;

	if (!remote_open(&peer, &here, NULL))
		return;
	offset = remote_unmap(&peer);
	CU_ASSERT_TRUE(offset >= 0);
	CU_ASSERT_EQUAL(post_atomic(&here, IBV_WR_ATOMIC_FETCH_AND_ADD, 1, 0, &peer.side,
				    (uint32_t)offset, 1, 0),
			0);
	CU_ASSERT_TRUE(poll_one(here.scq, &wc));
	CU_ASSERT_TRUE(wc.status == IBV_WC_SUCCESS || wc.status == IBV_WC_REM_OP_ERR);
	remote_kill(&peer);
	side_close(&here);
}

static void within_one_process(void)
{
	struct pair pair;
	size_t i;

	if (!pair_open(&pair, NULL))
		return;
	for (i = 0; i < COUNT(sizes); i++) {
		pattern_fill(pair.a.buffer, sizes[i], (unsigned)i);
		CU_ASSERT_EQUAL(post_rdma(&pair.a, IBV_WR_RDMA_WRITE, 1, 0, sizes[i], &pair.b, 0,
					  IBV_SEND_SIGNALED),
				0);
		CU_ASSERT_TRUE(completes(pair.a.scq, 1, IBV_WC_SUCCESS, NULL));
		CU_ASSERT_TRUE(pattern_holds(pair.b.buffer, sizes[i], (unsigned)i));
		memset(pair.b.buffer, 0, BUFFER);
		CU_ASSERT_EQUAL(post_recv(&pair.b, 2, 0, BUFFER), 0);
		CU_ASSERT_EQUAL(post_send(&pair.a, 3, 0, sizes[i], IBV_SEND_SIGNALED), 0);
		CU_ASSERT_TRUE(completes(pair.a.scq, 3, IBV_WC_SUCCESS, NULL));
		CU_ASSERT_TRUE(completes(pair.b.rcq, 2, IBV_WC_SUCCESS, NULL));
		CU_ASSERT_TRUE(pattern_holds(pair.b.buffer, sizes[i], (unsigned)i));
	}
	pair_close(&pair);
}

static const struct unit_test tests[] = {
	{ "denied: messages, both ways", messages_both_ways },
	{ "denied: writes, reads, atomics", writes_reads_and_atomics },
	{ "denied: a shared receive is used once", shared_receives_are_used_once },
	{ "denied: memory is gone", memory_that_is_gone },
	{ "denied: within one process", within_one_process },
};

/* The peer runs by exec and keeps the filter. */
int main(int argc, char **argv)
{
	remote_main(argc, argv);
	if (!deny_process_vm()) {
		fprintf(stderr, "skipped: no filters for system calls here\n");
		return 77;
	}
	return conform_open() ? unit_main("conform_denied", tests, COUNT(tests), argc, argv) : 77;
}
