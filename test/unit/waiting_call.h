/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* A call that waits for another thread, made by a thread of its own; and copies that can be held, so that such a call waits. */
#ifndef WAITING_CALL_H
#define WAITING_CALL_H

#include <errno.h>
#include <sched.h>
#include <stdatomic.h>
#include <unistd.h>
#include "softverbs/rc/copy.h"
#include "test/unit/node.h"

struct waiting_call {
	int (*run)(void *object); /* returns 0 */
	void *object;
	bool cancelled; /* the thread is cancelled before the call */
	pthread_t thread;
	atomic_int tid;
	bool succeeded;
};

static void *waiting_call_thread(void *arg)
{
	struct waiting_call *call = arg;

	pthread_cleanup_push(unit_forget_stack, NULL);
	if (call->cancelled)
		pthread_cancel(pthread_self());
	atomic_store(&call->tid, gettid());
	call->succeeded = !call->run(call->object);
	pthread_cleanup_pop(0);
	return NULL;
}

static bool waiting_call_waits(void *arg)
{
	pid_t tid = atomic_load(&((struct waiting_call *)arg)->tid);

	return tid && unit_is_asleep(tid);
}

/* Returns when the call waits. */
static inline void waiting_call_begin(struct waiting_call *call)
{
	CU_ASSERT_FATAL(!pthread_create(&call->thread, NULL, waiting_call_thread, call));
	CU_ASSERT_FATAL(unit_wait_for(waiting_call_waits, call, UNIT_PATIENCE));
	CU_ASSERT_EQUAL_FATAL(pthread_tryjoin_np(call->thread, NULL), EBUSY);
}

static inline void waiting_call_end(struct waiting_call *call)
{
	CU_ASSERT_FATAL(unit_join(call->thread));
	CU_ASSERT(call->succeeded);
}

/* ---- copies ---- */

#define COPY_SIZE (256u << 10)

static atomic_bool copies_held, copy_begun;

enum copy_result __wrap_sv_copy_in(struct sv_peer *peer, const struct iovec *here,
				   unsigned here_count, uint64_t skip, const struct iovec *there,
				   unsigned there_count, size_t length);
enum copy_result __real_sv_copy_in(struct sv_peer *peer, const struct iovec *here,
				   unsigned here_count, uint64_t skip, const struct iovec *there,
				   unsigned there_count, size_t length);

enum copy_result __wrap_sv_copy_in(struct sv_peer *peer, const struct iovec *here,
				   unsigned here_count, uint64_t skip, const struct iovec *there,
				   unsigned there_count, size_t length)
{
	atomic_store(&copy_begun, true);
	while (atomic_load(&copies_held))
		sched_yield();
	return __real_sv_copy_in(peer, here, here_count, skip, there, there_count, length);
}

static bool copy_has_begun(void *unused)
{
	(void)unused;
	return atomic_load(&copy_begun);
}

/* Reads from the second COPY_SIZE bytes of the node's memory into the first, by its first QP. */
static void *copy_read(void *arg)
{
	struct node *node = arg;
	struct ibv_sge sge = node_sge(node, 0, COPY_SIZE);
	struct ibv_send_wr *bad, wr = {
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = IBV_WR_RDMA_READ,
		.send_flags = IBV_SEND_SIGNALED,
		.wr.rdma = { (uintptr_t)node->memory + COPY_SIZE, node->mr->rkey },
	};

	return ibv_post_send(node->qp[0], &wr, &bad) ? arg : NULL;
}

/* Returns when a thread is in the middle of that copy, where it stays until copy_release. */
static inline pthread_t copy_hold(struct node *node)
{
	pthread_t reader;

	atomic_store(&copy_begun, false);
	atomic_store(&copies_held, true);
	CU_ASSERT_FATAL(!pthread_create(&reader, NULL, copy_read, node));
	CU_ASSERT_FATAL(unit_wait_for(copy_has_begun, NULL, UNIT_PATIENCE));
	return reader;
}

static inline void copy_release(pthread_t reader)
{
	void *failed;

	atomic_store(&copies_held, false);
	CU_ASSERT_FATAL(!pthread_join(reader, &failed));
	CU_ASSERT(!failed);
}

/* ---- connections ---- */

/* Two QPs of this process, connected. */
static inline struct node node_connected(const struct node_options *options)
{
	struct node node;

	CU_ASSERT_FATAL(node_open(&node, options));
	CU_ASSERT_FATAL(node_qp_connect(node.qp[0], node.qp[1]->qp_num, options));
	CU_ASSERT_FATAL(node_qp_connect(node.qp[1], node.qp[0]->qp_num, options));
	return node;
}

#endif
