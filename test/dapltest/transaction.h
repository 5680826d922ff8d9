/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* A transaction test: threads, their endpoints, and a list of transfers that is repeated. */

#ifndef TRANSACTION_H
#define TRANSACTION_H

#include "control.h"

/* The memory that one OP uses of one EP. */
struct trans_buffer {
	struct region region;
	DAT_LMR_TRIPLET *iov;
	DAT_RMR_TRIPLET peer; /* the peer's memory for RDMA of this side */
};

struct trans_ep {
	struct link link;
	struct region small;	      /* tables and synchronizing messages, see trans_meet.c */
	struct trans_buffer *buffers; /* one for each OP */
};

struct trans_test {
	const struct place *place;
	const struct transaction *t;
	struct gate gate; /* all threads are ready for the first transfer */
};

struct trans_thread {
	struct trans_test *test;
	unsigned int index;
	pthread_t thread;
	DAT_PZ_HANDLE pz;
	struct trans_ep *eps;
	uint64_t begin, end; /* of the transfers, in ns */
	bool passed;
};

/* Returns whether this side initiates the transfer. */
static inline bool op_is_ours(const struct trans_thread *th, const struct op *op)
{
	return op->by_server == th->test->place->server;
}

/* Returns whether the data come from this side's buffer. */
static inline bool op_is_source(const struct trans_thread *th, const struct op *op)
{
	return op_is_ours(th, op) == (op->transfer != TRANSFER_READ);
}

static inline uint32_t op_bytes(const struct op *op)
{
	return op->size * op->segments;
}

/* trans_thread.c: the main function of a thread */
void *trans_thread_main(void *arg);

/* trans_meet.c: connects two EPs that then know each other's buffers and are in step */
bool trans_small_create(struct trans_thread *th, struct trans_ep *ep);
bool trans_ep_meet(struct trans_thread *th, unsigned int index);
bool trans_sync_await(struct trans_thread *th, bool last);
bool trans_sync_send(struct trans_thread *th, bool last);
bool trans_final_recv_post(struct trans_thread *th);

/* trans_data.c: the transfers */
bool trans_recvs_post(struct trans_thread *th);
bool trans_data_run(struct trans_thread *th);

/* trans_check.c: the contents of buffers, with -V */
bool trans_check_iteration(struct trans_thread *th, uint32_t op, uint32_t iteration);
void trans_fill(struct trans_thread *th, uint32_t iteration);

#endif
