/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/*
 * The patterns of traffic, the same whatever they are made of: verbs.c and dat.c include this after they have said what
 * an end is, so that each call is inlined into the loop that is measured.
 *
 *   struct end                               connected; its send and receive buffers hold options.size bytes
 *   struct found { unsigned sends, recvs; }
 *   end_recv(end, count)                     posts that many receives of options.size bytes
 *   end_send(end, signaled)                  posts a send of options.size bytes
 *   end_rdma(end, read, signaled)            posts an RDMA write or read of options.size bytes
 *   end_poll(end, found)                     adds what is there, without waiting
 *   end_wait(end, found)                     adds what is there; sleeps until there is something
 */
#ifndef BENCH_TRAFFIC_H
#define BENCH_TRAFFIC_H

#include <string.h>
#include "bench/measure.h"

#define RECVS	 1024u /* posted before a stream */
#define SENDS	 128u  /* outstanding in one */
#define SIGNALED 16u   /* of a stream of messages, each so many sends make a completion */

static inline void traffic_take(struct end *end, unsigned recvs, bool sleep)
{
	struct found found = { 0 };

	while (found.recvs < recvs) {
		if (sleep)
			end_wait(end, &found);
		else
			end_poll(end, &found);
	}
}

/* A message to and fro: the answer is sent before the receive is posted anew. */
static inline __attribute__((always_inline)) void traffic_bounce(struct end *end, unsigned count,
								 bool sleep)
{
	for (unsigned i = 0; i < count; i++) {
		if (side)
			traffic_take(end, 1, sleep);
		end_send(end, true);
		if (side)
			end_recv(end, 1);
		else {
			traffic_take(end, 1, sleep);
			end_recv(end, 1);
		}
	}
}

static void traffic_latency(struct end *end, bool sleep)
{
	unsigned n = sleep ? batch_of(60) : batch_round_trips();

	end_recv(end, 16);
	meet();
	traffic_bounce(end, n, sleep);
	mark("begin");
	for (unsigned batch = 0; batch < options.batches; batch++) {
		uint64_t begin = now_ns();

		if (sleep)
			traffic_bounce(end, n, true);
		else
			traffic_bounce(end, n, false);
		figure(half_round_trip(begin, n));
	}
	mark("end");
}

/*
 * A stream from side 1, which may not run ahead of the receives: for each quarter of them that was consumed and posted
 * again, side 0 sends a message back.
 */
static void traffic_stream_out(struct end *end, uint64_t count, unsigned depth, unsigned signaled)
{
	uint64_t granted = depth, done = 0;
	struct found found = { 0 };

	end_recv(end, 8);
	meet();
	for (uint64_t sent = 0; sent < count; sent++) {
		while (sent - done >= SENDS || sent == granted) {
			end_poll(end, &found);
			done += (uint64_t)found.sends * signaled;
			granted += (uint64_t)found.recvs * (depth / 4);
			end_recv(end, found.recvs);
			found = (struct found){ 0 };
		}
		end_send(end, sent % signaled == signaled - 1);
	}
}

static void traffic_stream_in(struct end *end, uint64_t count, unsigned n, unsigned depth,
			      double scale)
{
	unsigned owed = 0, got = 0;
	uint64_t begin;

	end_recv(end, depth);
	meet();
	begin = now_ns();
	while (count) {
		struct found found = { 0 };

		end_poll(end, &found);
		if (!found.recvs)
			continue;
		end_recv(end, found.recvs);
		for (owed += found.recvs; owed >= depth / 4; owed -= depth / 4)
			end_send(end, true);
		count -= found.recvs;
		got += found.recvs;
		if (got >= n) {
			uint64_t t = now_ns();

			figure(scale * got / (double)(t - begin));
			begin = t;
			got = 0;
		}
	}
}

static void traffic_stream(struct end *end, unsigned n, unsigned depth, unsigned signaled,
			   double scale)
{
	uint64_t count = (uint64_t)n * options.batches;

	if (side)
		traffic_stream_out(end, count, depth, signaled);
	else
		traffic_stream_in(end, count, n, depth, scale);
}

static void traffic_rdma(struct end *end, bool read)
{
	unsigned n = batch_messages();

	meet();
	if (side)
		return;
	for (unsigned batch = 0; batch < options.batches; batch++) {
		uint64_t begin = now_ns();
		struct found found = { 0 };

		for (unsigned i = 0; i < n; i++) {
			while (i - found.sends >= 16)
				end_poll(end, &found);
			end_rdma(end, read, true);
		}
		while (found.sends < n)
			end_poll(end, &found);
		figure((double)options.size * n * 1e3 / (double)(now_ns() - begin));
	}
}

/* False: there is no such test. */
static bool traffic_run(struct end *end)
{
	if (!strcmp(options.test, "lat"))
		traffic_latency(end, false);
	else if (!strcmp(options.test, "wake"))
		traffic_latency(end, true);
	else if (!strcmp(options.test, "rate"))
		traffic_stream(end, batch_of(8192), RECVS, SIGNALED, 1e3);
	else if (!strcmp(options.test, "bw"))
		traffic_stream(end, batch_messages(), 64, 1, 1e3 * (double)options.size);
	else if (!strcmp(options.test, "write") || !strcmp(options.test, "read"))
		traffic_rdma(end, !strcmp(options.test, "read"));
	else
		return false;
	return true;
}

#endif
