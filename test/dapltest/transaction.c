/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* A whole transaction test: its threads and their results. */

#include <stdlib.h>
#include <string.h>

#include "transaction.h"

struct volume {
	double sent, received, read, written;
};

/* The bytes of one iteration on one EP, as this side counts them. */
static void volume_add(struct volume *v, const struct op *op, bool ours)
{
	double bytes = op_bytes(op);

	switch (op->transfer) {
	case TRANSFER_SEND:
		if (ours)
			v->sent += bytes;
		else
			v->received += bytes;
		break;
	case TRANSFER_READ: v->read += bytes; break;
	case TRANSFER_WRITE: v->written += bytes; break;
	}
}

static void line_show(const char *what, double bytes, double seconds)
{
	double mb = bytes / 1e6;

	say("Total %-10s : %10.2f MB - %10.2f MB/Sec", what, mb, mb / seconds);
}

static void report(const struct trans_test *test, const struct trans_thread *threads)
{
	const struct transaction *t = test->t;
	double rounds = (double)t->iterations * t->threads * t->eps, seconds;
	uint64_t begin = threads[0].begin, end = threads[0].end;
	struct volume v = { 0 };

	for (uint32_t i = 1; i < t->threads; i++) {
		begin = threads[i].begin < begin ? threads[i].begin : begin;
		end = threads[i].end > end ? threads[i].end : end;
	}
	for (uint32_t i = 0; i < t->op_count; i++)
		volume_add(&v, &t->ops[i], t->ops[i].by_server == test->place->server);
	seconds = end > begin ? (double)(end - begin) / 1e9 : 1e-9;
	say("----- Stats ---- : %u threads, %u EPs", (unsigned int)t->threads,
	    (unsigned int)t->eps);
	say("Total WQE        : %10.2f WQE/Sec", rounds * t->op_count / seconds);
	say("Total Time       : %10.2f sec", seconds);
	line_show("Send", v.sent * rounds, seconds);
	line_show("Recv", v.received * rounds, seconds);
	line_show("RDMA Read", v.read * rounds, seconds);
	line_show("RDMA Write", v.written * rounds, seconds);
}

/* A thread that cannot be started counts as failed, so that the others do not wait for it. */
static uint32_t threads_start(struct trans_test *test, struct trans_thread *threads)
{
	for (uint32_t i = 0; i < test->t->threads; i++) {
		int err;

		threads[i].test = test;
		threads[i].index = i;
		err = pthread_create(&threads[i].thread, NULL, trans_thread_main, &threads[i]);
		if (err) {
			complain("Error: pthread_create: %s", strerror(err));
			gate_pass(&test->gate, false);
			return i;
		}
	}
	return test->t->threads;
}

bool transaction_run(const struct place *place, const struct transaction *t)
{
	struct trans_test test = { .place = place, .t = t };
	struct trans_thread *threads = calloc(t->threads, sizeof(*threads));
	uint32_t started = 0;
	bool passed;

	gate_init(&test.gate, (int)t->threads);
	if (threads)
		started = threads_start(&test, threads);
	if (place->server && started == 0)
		gate_pass(place->ready, false); /* there is no first thread to do it */
	for (uint32_t i = 0; i < started; i++)
		pthread_join(threads[i].thread, NULL);
	passed = started == t->threads;
	for (uint32_t i = 0; i < started; i++)
		passed &= threads[i].passed;
	gate_destroy(&test.gate);
	if (passed && !place->server)
		report(&test, threads);
	free(threads);
	return passed;
}
