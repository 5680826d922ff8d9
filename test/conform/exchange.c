/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* Payloads of many sizes between this process and another one; every byte is compared. */
#include "test/conform/remote.h"

void messages_there(struct side *here, struct remote *peer, const uint32_t *sizes, size_t count)
{
	uint32_t length;
	size_t i;

	for (i = 0; i < count; i++) {
		pattern_fill(here->buffer, sizes[i], (unsigned)i);
		CU_ASSERT_EQUAL(remote_post_recv(peer, i, 0, BUFFER), 0);
		CU_ASSERT_EQUAL(post_send(here, i, 0, sizes[i], IBV_SEND_SIGNALED), 0);
		CU_ASSERT_TRUE(completes(here->scq, i, IBV_WC_SUCCESS, NULL));
		CU_ASSERT_TRUE(remote_completes_recv(peer, i, IBV_WC_SUCCESS, &length));
		CU_ASSERT_EQUAL(length, sizes[i]);
		CU_ASSERT_TRUE(remote_holds(peer, 0, sizes[i], (unsigned)i));
	}
}

void messages_back(struct side *here, struct remote *peer, const uint32_t *sizes, size_t count)
{
	struct ibv_wc wc = { 0 };
	size_t i;

	for (i = 0; i < count; i++) {
		remote_fill(peer, 0, sizes[i], (unsigned)i);
		CU_ASSERT_EQUAL(post_recv(here, i, 0, BUFFER), 0);
		CU_ASSERT_EQUAL(remote_post_send(peer, i, 0, sizes[i]), 0);
		CU_ASSERT_TRUE(completes(here->rcq, i, IBV_WC_SUCCESS, &wc));
		CU_ASSERT_EQUAL(wc.byte_len, sizes[i]);
		CU_ASSERT_TRUE(pattern_holds(here->buffer, sizes[i], (unsigned)i));
		CU_ASSERT_TRUE(remote_completes_send(peer, i, IBV_WC_SUCCESS));
	}
}

void writes_and_reads(struct side *here, struct remote *peer, const uint32_t *sizes, size_t count)
{
	size_t i;

	for (i = 0; i < count; i++) {
		uint32_t half = sizes[i] / 2 + 1;

		pattern_fill(here->buffer, half, (unsigned)i);
		CU_ASSERT_EQUAL(post_rdma(here, IBV_WR_RDMA_WRITE, 1, 0, half, &peer->side, 3, 0),
				0);
		CU_ASSERT_EQUAL(post_rdma(here, IBV_WR_RDMA_READ, 2, BUFFER / 2 - 3, half,
					  &peer->side, 3, IBV_SEND_SIGNALED),
				0);
		CU_ASSERT_TRUE(completes(here->scq, 2, IBV_WC_SUCCESS, NULL));
		CU_ASSERT_TRUE(pattern_holds(here->buffer + BUFFER / 2 - 3, half, (unsigned)i));
		CU_ASSERT_TRUE(remote_holds(peer, 3, half, (unsigned)i));
	}
}
