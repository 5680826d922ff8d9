/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* A program waits on the memory of its receives and calls nothing: what is sent arrives there, as from a device. */
#include <sys/mman.h>
#include "softverbs/link/engine.h"
#include "softverbs/object/cq.h"
#include "test/unit/node.h"

#define ROOM 32768u
#define FROM (ROOM * 16) /* offset of what is sent; receives are below */

struct sent {
	volatile uint8_t *last;
	uint8_t value;
};

static bool is_there(void *arg)
{
	struct sent *sent = arg;

	return *sent->last == sent->value;
}

static bool shows(struct node *node, uint32_t slot, uint32_t length, uint8_t value)
{
	struct sent sent = { node->memory + slot * ROOM + length - 1, value };

	return unit_wait_for(is_there, &sent, UNIT_PATIENCE) &&
	       (length == 1 || node->memory[slot * ROOM] == value) &&
	       node->memory[slot * ROOM + length / 2] == value;
}

static void send_value(struct node *node, uint32_t qp, uint32_t length, uint8_t value)
{
	memset(node->memory + FROM, value, length);
	CU_ASSERT_EQUAL(node_send(node, qp, value, FROM, length, 0), 0);
}

/* The program has changed the memory since, and the completion does not change it back. */
static void take(struct node *node, uint32_t slot, uint32_t length)
{
	struct ibv_wc wc = { 0 };

	node->memory[slot * ROOM + length - 1] = 0;
	CU_ASSERT(node_poll(node, &wc));
	CU_ASSERT(!wc.status && wc.opcode == IBV_WC_RECV && wc.wr_id == slot);
	CU_ASSERT_EQUAL(wc.byte_len, length);
	CU_ASSERT_EQUAL(node->memory[slot * ROOM + length - 1], 0);
}

static void open_to_itself(struct node *node, const struct node_options *options)
{
	CU_ASSERT_FATAL(node_open(node, options));
	for (uint32_t i = 0; i < node->options.qps; i++)
		CU_ASSERT_FATAL(node_qp_connect(node->qp[i], node->qp[i]->qp_num, &node->options));
}

/* In a receive slot, in its extension, in the ring, copied by the sender. */
static const uint32_t lengths[] = { 1, 8, 112, 113, 236, 237, 4096, 4097, ROOM };

static void lengths_arrive(const struct node_options *options)
{
	struct node node;

	open_to_itself(&node, options);
	for (unsigned i = 0; i < sizeof(lengths) / sizeof(*lengths); i++)
		for (uint8_t value = 1; value < 4; value++) {
			CU_ASSERT_EQUAL(node_recv(&node, 0, 0, 0, ROOM), 0);
			send_value(&node, 0, lengths[i], value);
			CU_ASSERT(shows(&node, 0, lengths[i], value));
			take(&node, 0, lengths[i]);
		}
	CU_ASSERT_EQUAL(node_close(&node), 0);
}

static void all_lengths(void)
{
	lengths_arrive(&(struct node_options){ .channel = true });
}

static void without_a_channel(void)
{
	lengths_arrive(&(struct node_options){ .channel = false });
}

static void with_an_srq(void)
{
	lengths_arrive(&(struct node_options){ .srq = 16 });
}

/* More QPs than a poll examines each time, and each has the next message. */
static void many_qps(void)
{
	struct node node;

	open_to_itself(&node, &(struct node_options){ .qps = NODE_QPS });
	for (uint32_t i = 0; i < NODE_QPS; i++) {
		CU_ASSERT_EQUAL(node_recv(&node, i, 0, 0, ROOM), 0);
		send_value(&node, i, 8, (uint8_t)(i + 1));
		CU_ASSERT(shows(&node, 0, 8, (uint8_t)(i + 1)));
		take(&node, 0, 8);
	}
	CU_ASSERT_EQUAL(node_close(&node), 0);
}

/* The program takes no completion meanwhile: more messages than the engine copies at once, in order. */
static void never_polled(void)
{
	enum { COUNT = 50 };
	struct node node;

	open_to_itself(&node, &(struct node_options){ .depth = 64 });
	for (uint32_t i = 0; i < COUNT; i++)
		CU_ASSERT_EQUAL(node_recv(&node, 0, i, i * 64, 64), 0);
	for (uint32_t i = 0; i < COUNT; i++) {
		struct sent sent = { node.memory + i * 64 + 63, (uint8_t)(i + 1) };

		send_value(&node, 0, 64, sent.value);
		if (i % 4 == 3)
			CU_ASSERT(unit_wait_for(is_there, &sent, UNIT_PATIENCE));
	}
	for (uint32_t i = 0; i < COUNT; i++) {
		struct ibv_wc wc = { 0 };

		CU_ASSERT(node_poll(&node, &wc) && !wc.status && wc.wr_id == i);
		CU_ASSERT_EQUAL(node.memory[i * 64], i + 1);
	}
	CU_ASSERT_EQUAL(node_close(&node), 0);
}

/* The event of an arming is sent and not read; the next message comes to the memory all the same. */
static void after_an_event(void)
{
	struct ibv_cq *cq;
	struct node node;
	void *context;

	open_to_itself(&node, &(struct node_options){ .channel = true });
	for (unsigned armed = 0; armed < 2; armed++)
		for (uint8_t value = 1; value < 5; value++) {
			if (value == 1 && armed)
				CU_ASSERT_EQUAL(ibv_req_notify_cq(node.cq, 0), 0);
			CU_ASSERT_EQUAL(node_recv(&node, 0, 0, 0, ROOM), 0);
			send_value(&node, 0, 8, value);
			CU_ASSERT(shows(&node, 0, 8, value));
			take(&node, 0, 8);
		}
	CU_ASSERT_EQUAL(ibv_get_cq_event(node.channel, &cq, &context), 0);
	ibv_ack_cq_events(cq, 1);
	CU_ASSERT_EQUAL(node_close(&node), 0);
}

static bool has_come(void *arg)
{
	struct sv_qp *qp = arg;
	bool has;

	lock_acquire(&qp->recv_cq->lock);
	has = qp->rx.landed == 1;
	lock_release(&qp->recv_cq->lock);
	return has;
}

/* Memory that is gone: the poll reports it, and no thread accesses it. */
static void memory_is_gone(void)
{
	uint8_t *pages =
		mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct ibv_wc wc = { 0 };
	struct node node;

	CU_ASSERT_FATAL(pages != MAP_FAILED);
	open_to_itself(&node, &(struct node_options){ .at = pages });
	CU_ASSERT_EQUAL(node_recv(&node, 0, 7, 0, ROOM), 0);
	CU_ASSERT_EQUAL(node_recv(&node, 0, 8, ROOM, ROOM), 0);
	munmap(pages, ROOM);
	send_value(&node, 0, 8, 1);
	CU_ASSERT_FATAL(unit_wait_for(has_come, qp_of(node.qp[0]), UNIT_PATIENCE));
	CU_ASSERT(node_poll(&node, &wc));
	CU_ASSERT(wc.status == IBV_WC_LOC_PROT_ERR && wc.wr_id == 7);
	CU_ASSERT_EQUAL(node_close(&node), 0);
	munmap(pages, 1 << 20);
}

/* ---- the engine is not needed for long where a program polls ---- */

static atomic_uint rings;

void __real_sv_peer_ring(struct sv_peer *peer);
void __wrap_sv_peer_ring(struct sv_peer *peer);
void __wrap_sv_peer_ring(struct sv_peer *peer)
{
	atomic_fetch_add(&rings, 1);
	__real_sv_peer_ring(peer);
}

static bool rests(void *cq)
{
	return atomic_load(&cq_of(cq)->by_peers->engine_rests);
}

static void a_program_that_polls_needs_no_doorbell(void)
{
	enum { COUNT = 20000 };
	struct ibv_wc wc = { 0 };
	struct node node;

	open_to_itself(&node, &(struct node_options){ .depth = 64 });
	CU_ASSERT(rests(node.cq));
	atomic_store(&rings, 0);
	for (unsigned i = 0; i < COUNT; i++) {
		CU_ASSERT_EQUAL(node_recv(&node, 0, 0, 0, ROOM), 0);
		CU_ASSERT_EQUAL(node_send(&node, 0, 0, FROM, 8, IBV_SEND_SIGNALED), 0);
		CU_ASSERT_FATAL(node_poll(&node, &wc) && !wc.status);
		CU_ASSERT_FATAL(node_poll(&node, &wc) && !wc.status);
	}
	CU_ASSERT(atomic_load(&rings) > 0);
	CU_ASSERT(atomic_load(&rings) < COUNT / 10);
	CU_ASSERT(unit_wait_for(rests, node.cq, UNIT_PATIENCE));
	CU_ASSERT_EQUAL(node_recv(&node, 0, 0, 0, ROOM), 0);
	send_value(&node, 0, 8, 1);
	CU_ASSERT(shows(&node, 0, 8, 1));
	CU_ASSERT_EQUAL(node_close(&node), 0);
}

/* ---- a sender that ends before its doorbell ---- */

static bool dies;

void __real_sv_cq_fire_armed(struct cq_by_peers *by_peers, struct sv_peer *owner, uint32_t index,
			     bool solicited);
void __wrap_sv_cq_fire_armed(struct cq_by_peers *by_peers, struct sv_peer *owner, uint32_t index,
			     bool solicited);
void __wrap_sv_cq_fire_armed(struct cq_by_peers *by_peers, struct sv_peer *owner, uint32_t index,
			     bool solicited)
{
	if (dies) {
		atomic_store(&by_peers->engine_rests, 0);
		_exit(0);
	}
	__real_sv_cq_fire_armed(by_peers, owner, index, solicited);
}

static int sender(int fd, void *arg)
{
	struct node node;

	(void)arg;
	if (!node_open(&node, &(struct node_options){ 0 }) || !node_connect(&node, 0, 1, fd))
		return 1;
	process_sync(fd);
	dies = true;
	memset(node.memory, 9, 8);
	node_send(&node, 0, 0, 0, 8, 0); /* the engine sends it, if the link is not made yet */
	process_sync(fd);
	return 2;
}

static void a_sender_that_dies(void)
{
	struct process process;
	struct node node;

	CU_ASSERT_FATAL(process_start(&process, sender, NULL));
	CU_ASSERT_FATAL(node_open(&node, &(struct node_options){ 0 }));
	CU_ASSERT_FATAL(node_connect(&node, 0, 1, process.fd));
	CU_ASSERT_EQUAL(node_recv(&node, 0, 0, 0, ROOM), 0);
	process_say(process.fd, 1);
	CU_ASSERT(shows(&node, 0, 8, 9));
	take(&node, 0, 8);
	CU_ASSERT_EQUAL(process_end(&process), 0);
	CU_ASSERT_EQUAL(node_close(&node), 0);
}

static const struct unit_test tests[] = {
	{ "messages of every length show in the memory of their receives", all_lengths },
	{ "without a completion channel", without_a_channel },
	{ "in receives of an SRQ", with_an_srq },
	{ "of a QP among many", many_qps },
	{ "of a program that takes no completion", never_polled },
	{ "after an event that is not read", after_an_event },
	{ "memory that is gone is an error of the poll", memory_is_gone },
	{ "a program that polls needs no doorbell", a_program_that_polls_needs_no_doorbell },
	{ "of a sender that dies before its doorbell", a_sender_that_dies },
};

UNIT_MAIN("softverbs_unpolled", tests)
