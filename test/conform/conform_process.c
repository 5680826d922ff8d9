/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* The rules again between two processes, and the death of one. */
#include <stdatomic.h>
#include "test/conform/remote.h"

static const uint32_t sizes[] = {
	1,    8,    39,	  40,	41,   48,   49,	  64,	100,   111,   112,   113,
	1000, 1023, 1024, 4096, 5000, 8191, 8192, 8193, 12288, 30000, 65535, BUFFER,
};

static void sizes_there(void)
{
	struct side here;
	struct remote peer;

	if (!remote_open(&peer, &here, NULL))
		return;
	messages_there(&here, &peer, sizes, COUNT(sizes));
	remote_close(&peer);
	side_close(&here);
}

static void sizes_back(void)
{
	struct side here;
	struct remote peer;

	if (!remote_open(&peer, &here, NULL))
		return;
	messages_back(&here, &peer, sizes, COUNT(sizes));
	remote_close(&peer);
	side_close(&here);
}

static void remote_does_nothing(void)
{
	struct side here;
	struct remote peer;
	uint64_t i;

	if (!remote_open(&peer, &here, NULL))
		return;
	for (i = 0; i < 12; i++)
		CU_ASSERT_EQUAL(remote_post_recv(&peer, i, (uint32_t)i * 5000, 5000), 0);
	for (i = 0; i < 12; i++) {
		pattern_fill(here.buffer, 5000, (unsigned)i);
		CU_ASSERT_EQUAL(post_send(&here, i, 0, i % 2 ? 5000 : 30, IBV_SEND_SIGNALED), 0);
		CU_ASSERT_TRUE(completes(here.scq, i, IBV_WC_SUCCESS, NULL));
	}
	for (i = 0; i < 12; i++) {
		CU_ASSERT_TRUE(remote_completes_recv(&peer, i, IBV_WC_SUCCESS, NULL));
		CU_ASSERT_TRUE(
			remote_holds(&peer, (uint32_t)i * 5000, i % 2 ? 5000 : 30, (unsigned)i));
	}
	remote_close(&peer);
	side_close(&here);
}

static void sizes_written_and_read(void)
{
	struct side here;
	struct remote peer;

	if (!remote_open(&peer, &here, NULL))
		return;
	writes_and_reads(&here, &peer, sizes, COUNT(sizes));
	remote_close(&peer);
	side_close(&here);
}

#define ADDITIONS 3000

/* Three processes add to one word at once: two from outside, this one through its own QP. */
static void add_from_everywhere(struct side *here, struct remote *peer, struct side *second,
				struct remote *other)
{
	int access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_ATOMIC;
	struct ibv_mr *again = ibv_reg_mr(second->pd, here->buffer, 4096, access);
	uint64_t *word = (uint64_t *)(void *)(here->buffer + 64);
	struct pair pair;
	struct side target;
	uint64_t i;

	if (!again || !pair_open(&pair, NULL))
		return;
	target.buffer = here->buffer;
	target.mr = ibv_reg_mr(pair.b.pd, here->buffer, 4096, access);
	CU_ASSERT_PTR_NOT_NULL_FATAL(target.mr);
	CU_ASSERT_TRUE(remote_add_start(peer, word, here->mr->rkey, 1, ADDITIONS));
	CU_ASSERT_TRUE(remote_add_start(other, word, again->rkey, 1, ADDITIONS));
	for (i = 0; i < ADDITIONS; i++) {
		CU_ASSERT_EQUAL(post_atomic(&pair.a, IBV_WR_ATOMIC_FETCH_AND_ADD, i, 0, &target, 64,
					    1, 0),
				0);
		CU_ASSERT_TRUE_FATAL(completes(pair.a.scq, i, IBV_WC_SUCCESS, NULL));
	}
	CU_ASSERT_TRUE(remote_add_end(peer));
	CU_ASSERT_TRUE(remote_add_end(other));
	/*
	 * the order after the last addition passed through the other processes, which sanitizers do
	 * not see
	 */
	CU_ASSERT_EQUAL(atomic_load((_Atomic(uint64_t) *)word), 3 * ADDITIONS);
	CU_ASSERT_EQUAL(ibv_dereg_mr(again), 0);
	CU_ASSERT_EQUAL(ibv_dereg_mr(target.mr), 0);
	pair_close(&pair);
}

static void atomics_from_everywhere(void)
{
	struct side here, second;
	struct remote peer, other;

	if (device_attr.atomic_cap == IBV_ATOMIC_NONE) {
		skip("no atomics");
		return;
	}
	if (!remote_open(&peer, &here, NULL))
		return;
	if (remote_open(&other, &second, NULL)) {
		add_from_everywhere(&here, &peer, &second, &other);
		remote_close(&other);
		side_close(&second);
	}
	remote_close(&peer);
	side_close(&here);
}

static void remote_is_woken(void)
{
	struct side here;
	struct remote peer;
	uint64_t i;

	if (!remote_open(&peer, &here, NULL))
		return;
	for (i = 0; i < 5; i++) {
		CU_ASSERT_EQUAL(remote_post_recv(&peer, i, 0, 64), 0);
		CU_ASSERT_TRUE(remote_arm(&peer));
		CU_ASSERT_EQUAL(post_send(&here, i, 0, 8, IBV_SEND_SIGNALED), 0);
		CU_ASSERT_TRUE(remote_event_comes(&peer));
		CU_ASSERT_TRUE(remote_completes_recv(&peer, i, IBV_WC_SUCCESS, NULL));
		CU_ASSERT_TRUE(completes(here.scq, i, IBV_WC_SUCCESS, NULL));
	}
	remote_close(&peer);
	side_close(&here);
}

static void receiver_is_late(void)
{
	struct side here;
	struct remote peer;
	uint64_t i;

	if (!remote_open(&peer, &here, &(struct pair_options){ .min_rnr_timer = 1 }))
		return;
	for (i = 0; i < 3; i++) {
		CU_ASSERT_EQUAL(post_send(&here, i, 0, 5000, IBV_SEND_SIGNALED), 0);
		CU_ASSERT_TRUE(stays_empty(here.scq));
		CU_ASSERT_EQUAL(remote_post_recv(&peer, i, 0, 5000), 0);
		CU_ASSERT_TRUE(completes(here.scq, i, IBV_WC_SUCCESS, NULL));
		CU_ASSERT_TRUE(remote_completes_recv(&peer, i, IBV_WC_SUCCESS, NULL));
	}
	remote_close(&peer);
	side_close(&here);
}

static void access_is_refused(void)
{
	struct side here;
	struct remote peer;

	if (!remote_open(&peer, &here, NULL))
		return;
	CU_ASSERT_EQUAL(remote_post_recv(&peer, 1, 0, 8), 0);
	peer.mr.rkey ^= 0x5500;
	CU_ASSERT_EQUAL(post_rdma(&here, IBV_WR_RDMA_WRITE, 2, 0, 8, &peer.side, 0, 0), 0);
	CU_ASSERT_TRUE(completes(here.scq, 2, IBV_WC_REM_ACCESS_ERR, NULL));
	CU_ASSERT_TRUE(remote_reaches(&peer, IBV_QPS_ERR));
	CU_ASSERT_TRUE(remote_completes_recv(&peer, 1, IBV_WC_WR_FLUSH_ERR, NULL));
	CU_ASSERT_TRUE(device_is_rxe || remote_async_is(&peer, IBV_EVENT_QP_ACCESS_ERR, false));
	remote_close(&peer);
	side_close(&here);
}

static void message_is_too_long(void)
{
	struct side here;
	struct remote peer;

	if (!remote_open(&peer, &here, NULL))
		return;
	CU_ASSERT_EQUAL(remote_post_recv(&peer, 1, 0, 8), 0);
	CU_ASSERT_EQUAL(post_send(&here, 2, 0, 5000, 0), 0);
	CU_ASSERT_TRUE(completes_or_rxe(here.scq, 2, IBV_WC_REM_INV_REQ_ERR, IBV_WC_REM_OP_ERR));
	CU_ASSERT_TRUE(device_is_rxe || remote_completes_recv(&peer, 1, IBV_WC_LOC_LEN_ERR, NULL));
	CU_ASSERT_TRUE(remote_reaches(&peer, IBV_QPS_ERR));
	remote_close(&peer);
	side_close(&here);
}

static void deregistered_there(void)
{
	struct side here;
	struct remote peer;

	if (!remote_open(&peer, &here, NULL))
		return;
	CU_ASSERT_EQUAL(post_rdma(&here, IBV_WR_RDMA_WRITE, 1, 0, 8, &peer.side, 0,
				  IBV_SEND_SIGNALED),
			0);
	CU_ASSERT_TRUE(completes(here.scq, 1, IBV_WC_SUCCESS, NULL));
	CU_ASSERT_TRUE(remote_deregister(&peer));
	CU_ASSERT_EQUAL(post_rdma(&here, IBV_WR_RDMA_WRITE, 2, 0, 8, &peer.side, 0,
				  IBV_SEND_SIGNALED),
			0);
	CU_ASSERT_TRUE(completes(here.scq, 2, IBV_WC_REM_ACCESS_ERR, NULL));
	CU_ASSERT_TRUE(device_is_rxe || remote_async_is(&peer, IBV_EVENT_QP_ACCESS_ERR, false));
	remote_close(&peer);
	side_close(&here);
}

/* A device that pins memory uses the old pages; one that does not must report an error. */
static void memory_is_gone(void)
{
	struct ibv_wc wc = { 0 };
	struct side here;
	struct remote peer;
	int64_t offset;

	if (!remote_open(&peer, &here, NULL))
		return;
	offset = remote_unmap(&peer);
	CU_ASSERT_TRUE(offset >= 0);
	CU_ASSERT_EQUAL(post_rdma(&here, IBV_WR_RDMA_WRITE, 1, 0, 64, &peer.side, (uint32_t)offset,
				  IBV_SEND_SIGNALED),
			0);
	CU_ASSERT_TRUE(poll_one(here.scq, &wc));
	CU_ASSERT_TRUE(wc.status == IBV_WC_SUCCESS || wc.status == IBV_WC_REM_OP_ERR);
	if (wc.status == IBV_WC_REM_OP_ERR) {
		CU_ASSERT_TRUE(remote_async_is(&peer, IBV_EVENT_QP_FATAL, false));
		CU_ASSERT_TRUE(remote_reaches(&peer, IBV_QPS_ERR));
	}
	remote_kill(&peer);
	side_close(&here);
}

static void shared_queue_there(void)
{
	struct side here;
	struct remote peer;
	uint64_t i;

	if (!device_attr.max_srq) {
		skip("no shared receive queues");
		return;
	}
	if (!remote_open(&peer, &here, &(struct pair_options){ .srq_wr = 16 }))
		return;
	for (i = 0; i < 6; i++)
		CU_ASSERT_EQUAL(remote_post_srq(&peer, i, 0, 64), 0);
	CU_ASSERT_TRUE(remote_srq_limit(&peer, 4));
	for (i = 0; i < 3; i++) {
		CU_ASSERT_TRUE(remote_async_silent(&peer));
		CU_ASSERT_EQUAL(post_send(&here, i, 0, 8, IBV_SEND_SIGNALED), 0);
		CU_ASSERT_TRUE(completes(here.scq, i, IBV_WC_SUCCESS, NULL));
	}
	/* the other process has not polled any of them */
	CU_ASSERT_TRUE(remote_async_is(&peer, IBV_EVENT_SRQ_LIMIT_REACHED, true));
	for (i = 0; i < 3; i++)
		CU_ASSERT_TRUE(remote_completes_recv(&peer, i, IBV_WC_SUCCESS, NULL));
	CU_ASSERT_EQUAL(remote_to(&peer, IBV_QPS_ERR), 0);
	CU_ASSERT_TRUE(device_is_rxe ||
		       remote_async_is(&peer, IBV_EVENT_QP_LAST_WQE_REACHED, false));
	remote_close(&peer);
	side_close(&here);
}

#define FEW  8
#define ROOM 8000

static uint32_t numbered_length(uint64_t n)
{
	static const uint32_t lengths[] = { 20, ROOM - 1, 100 };

	return lengths[n % COUNT(lengths)];
}

static int send_numbered(struct side *here, uint64_t n)
{
	uint32_t at = (uint32_t)n % FEW * ROOM;

	pattern_fill(here->buffer + at, numbered_length(n), (unsigned)n);
	return post_send(here, n, at, numbered_length(n), IBV_SEND_SIGNALED);
}

/*
 * Messages that wait in an SRQ, have arrived or are in flight keep their order while the peer's SRQ
 * grows.
 */
static void srq_grows_there(void)
{
	struct side here;
	struct remote peer;
	uint64_t posted = 0, sent = 0, seen = 0;
	uint32_t length;

	if (!(device_attr.device_cap_flags & IBV_DEVICE_SRQ_RESIZE) || device_is_rxe) {
		skip("no resizing of shared receive queues");
		return;
	}
	if (!remote_open(&peer, &here,
			 &(struct pair_options){ .srq_wr = FEW, .retry_none = true, .timeout = 1 }))
		return;
	for (uint32_t size = FEW; size <= 256; size *= 2) {
		for (; posted < seen + size; posted++)
			CU_ASSERT_EQUAL(remote_post_srq(&peer, posted, posted % FEW * ROOM, ROOM),
					0);
		for (; sent < seen + FEW / 2; sent++)
			CU_ASSERT_EQUAL(send_numbered(&here, sent), 0);
		CU_ASSERT_TRUE(remote_srq_grow(&peer, 2 * size));
		for (; sent < seen + FEW; sent++)
			CU_ASSERT_EQUAL(send_numbered(&here, sent), 0);
		for (; seen < sent; seen++) {
			CU_ASSERT_TRUE(completes(here.scq, seen, IBV_WC_SUCCESS, NULL));
			CU_ASSERT_TRUE(remote_completes_recv(&peer, seen, IBV_WC_SUCCESS, &length));
			CU_ASSERT_EQUAL(length, numbered_length(seen));
			CU_ASSERT_TRUE(remote_holds(&peer, (uint32_t)seen % FEW * ROOM, length,
						    (unsigned)seen));
		}
	}
	remote_close(&peer);
	side_close(&here);
}

static void destroyed_there(void)
{
	struct side here;
	struct remote peer;

	if (!remote_open(&peer, &here, &(struct pair_options){ .timeout = 12, .retry_cnt = 1 }))
		return;
	CU_ASSERT_TRUE(remote_destroy_qp(&peer));
	CU_ASSERT_EQUAL(post_send(&here, 1, 0, 8, 0), 0);
	CU_ASSERT_TRUE(completes(here.scq, 1, IBV_WC_RETRY_EXC_ERR, NULL));
	remote_close(&peer);
	side_close(&here);
}

static void remote_dies(void)
{
	struct side here;
	struct remote peer;

	if (!remote_open(&peer, &here, &(struct pair_options){ .retry_cnt = 1 }))
		return;
	CU_ASSERT_EQUAL(post_recv(&here, 1, 0, 8), 0);
	CU_ASSERT_EQUAL(post_send(&here, 2, 0, 8, 0), 0); /* waits for a receive forever */
	CU_ASSERT_TRUE(stays_empty(here.scq));
	remote_kill(&peer);
	CU_ASSERT_TRUE(completes(here.scq, 2, IBV_WC_RETRY_EXC_ERR, NULL));
	CU_ASSERT_TRUE(completes(here.rcq, 1, IBV_WC_WR_FLUSH_ERR, NULL));
	CU_ASSERT_TRUE(reaches(here.qp, IBV_QPS_ERR));
	side_close(&here);
}

static void idle_peer_dies(void)
{
	struct side here;
	struct remote peer;

	if (!remote_open(&peer, &here, &(struct pair_options){ .retry_cnt = 1 }))
		return;
	CU_ASSERT_EQUAL(post_recv(&here, 1, 0, 8), 0);
	remote_kill(&peer);
	CU_ASSERT_TRUE(stays_empty(here.rcq));
	CU_ASSERT_TRUE(async_silent());
	CU_ASSERT_EQUAL(state_of(here.qp), IBV_QPS_RTS);
	CU_ASSERT_EQUAL(post_rdma(&here, IBV_WR_RDMA_WRITE, 2, 0, 8, &peer.side, 0, 0), 0);
	CU_ASSERT_TRUE(completes(here.scq, 2, IBV_WC_RETRY_EXC_ERR, NULL));
	CU_ASSERT_TRUE(completes(here.rcq, 1, IBV_WC_WR_FLUSH_ERR, NULL));
	side_close(&here);
}

static void others_live_on(void)
{
	struct side here, second;
	struct remote peer, other;

	if (!remote_open(&peer, &here, NULL))
		return;
	if (remote_open(&other, &second, NULL)) {
		remote_kill(&peer);
		CU_ASSERT_EQUAL(remote_post_recv(&other, 1, 0, 8), 0);
		CU_ASSERT_EQUAL(post_send(&second, 2, 0, 8, IBV_SEND_SIGNALED), 0);
		CU_ASSERT_TRUE(completes(second.scq, 2, IBV_WC_SUCCESS, NULL));
		CU_ASSERT_TRUE(remote_completes_recv(&other, 1, IBV_WC_SUCCESS, NULL));
		remote_close(&other);
		side_close(&second);
	}
	side_close(&here);
}

static const struct unit_test tests[] = {
	{ "two processes: messages of each size", sizes_there },
	{ "two processes: messages of each size, the other way", sizes_back },
	{ "two processes: sends complete while the receiver does nothing", remote_does_nothing },
	{ "two processes: writes and reads of each size", sizes_written_and_read },
	{ "atomics from several processes on one word", atomics_from_everywhere },
	{ "two processes: a sleeper is woken", remote_is_woken },
	{ "two processes: a send waits for its receive", receiver_is_late },
	{ "two processes: unknown rkey", access_is_refused },
	{ "two processes: message too long", message_is_too_long },
	{ "two processes: nothing reaches deregistered memory", deregistered_there },
	{ "two processes: memory is gone: pinned pages take it, or REM_OP_ERR, QP_FATAL",
	  memory_is_gone },
	{ "two processes: SRQ, limit, last WQE", shared_queue_there },
	{ "two processes: SRQ resized between messages", srq_grows_there },
	{ "two processes: QP destroyed", destroyed_there },
	{ "the peer is killed: what waits ends with RETRY_EXC_ERR", remote_dies },
	{ "an idle QP does not notice a dead peer, the next request does", idle_peer_dies },
	{ "a killed process disturbs no other", others_live_on },
};

int main(int argc, char **argv)
{
	remote_main(argc, argv);
	return conform_open() ? unit_main("conform_process", tests, COUNT(tests), argc, argv) : 77;
}
