/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/*
 * The measured traffic, the same over limit, TCP, verbs and DAT: limit.c, stream.c, verbs.c and dat.c include this after each
 * has defined an end, so that its calls are inlined into the measured loop.
 *
 *   struct end                         one side, connected to the other; its buffers hold options.size bytes
 *   end_use(end, i)                    selects connection i of options.count
 *   end_recv(end, count)               posts that many receives of options.size bytes
 *   end_send(end, size, signaled)      posts a send
 *   end_rdma(end, read)                posts a signaled RDMA write or read of options.size bytes: from this side's first
 *                                      buffer into the other side's second, or the other way round
 *   end_add(end)                       posts a signaled fetch-add on the first word of the other side's second buffer
 *   end_first(end), end_second(end)    the two buffers
 *   end_poll(end, found)               adds the completions that are there, without waiting
 *   end_wait(end, by_fd, found)        adds completions; blocks, in poll(2) or in the interface's own call, until there
 *                                      is one
 *
 * The tests:
 *   lat          half a round trip in ns, polling
 *   wake         the same, blocking
 *   fd           the same, blocking in poll(2)
 *   rate         messages one way, millions a second
 *   bw           the same, each signaled, MB/s
 *   write, read  RDMA, MB/s
 *   add          fetch-adds, one after the other, millions a second
 *   await        reads or, with -w write, writes of RDMA, one after the other, ns each; the target sleeps
 *   put          half a round trip in ns, of RDMA writes whose last byte the target polls
 */
#ifndef BENCH_TRAFFIC_H
#define BENCH_TRAFFIC_H

#include <string.h>
#include <time.h>
#include "bench/measure.h"

#define RECVS	   1024u      /* posted receives for a stream of short messages, */
#define RECVS_TRIP 16u	      /* for a connection whose messages go to and fro, */
#define RECVS_MANY 4u	      /* for one of many such connections */
#define WINDOW	   (1u << 20) /* bytes of the posted receives for a stream of long messages */
#define SENDS	   128u	      /* outstanding in a stream */
#define RDMAS	   16u	      /* outstanding */
#define SIGNALED   16u	      /* of so many sends of a stream of short messages, one is signaled */
#define TINY	   8u	      /* bytes of a message that returns credits */

enum waiting { POLLING, SLEEPING, BY_FD };

static inline void traffic_take(struct end *end, enum waiting how)
{
	struct found found = { 0 };

	while (!found.recvs) {
		if (how == POLLING)
			end_poll(end, &found);
		else
			end_wait(end, how == BY_FD, &found);
	}
}

/* A round trip on each connection in turn. The answer is sent before the receive is posted again. */
static inline __attribute__((always_inline)) void traffic_trips(struct end *end, unsigned count,
								unsigned *at, enum waiting how)
{
	for (unsigned i = 0; i < count; i++) {
		if (options.count > 1) {
			end_use(end, *at);
			*at = *at + 1 == options.count ? 0 : *at + 1;
		}
		if (side)
			traffic_take(end, how);
		end_send(end, (unsigned)options.size, true);
		if (!side)
			traffic_take(end, how);
		end_recv(end, 1);
	}
}

static inline __attribute__((always_inline)) void traffic_latency(struct end *end, unsigned n,
								  enum waiting how)
{
	unsigned at = 0;

	for (unsigned i = 0; i < options.count; i++) {
		end_use(end, i);
		end_recv(end, options.count > 1 ? RECVS_MANY : RECVS_TRIP);
	}
	meet();
	traffic_trips(end, options.count > n ? options.count : n, &at, how);
	mark("begin");
	for (unsigned batch = 0; batch < options.batches; batch++) {
		uint64_t begin = now_ns();

		traffic_trips(end, n, &at, how);
		figure((double)(now_ns() - begin) / n / 2);
	}
	mark("end");
}

/*
 * A stream from side 1, which must not exceed the receives: for each quarter of them that is
 * consumed and posted again, side 0 sends a message back.
 */
static void traffic_stream_out(struct end *end, uint64_t count, unsigned depth, unsigned signaled)
{
	uint64_t granted = depth, done = 0;
	unsigned until_signaled = signaled;
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
		end_send(end, (unsigned)options.size, !--until_signaled);
		if (!until_signaled)
			until_signaled = signaled;
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
			end_send(end, options.size < TINY ? 1 : TINY, true);
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
	meet();
}

/* The target polls meanwhile, as programs with a progress loop do: softverbs(7) exchanges private memory in their calls. */
static void traffic_target(struct end *end)
{
	struct found found = { 0 };

	while (side && !is_awaited())
		end_poll(end, &found);
	meet();
}

static void traffic_rdma(struct end *end, bool read)
{
	unsigned n = batch_messages();

	meet();
	for (unsigned batch = 0; !side && batch < options.batches; batch++) {
		uint64_t begin = now_ns();
		struct found found = { 0 };

		for (unsigned i = 0; i < n; i++) {
			while (i - found.sends >= RDMAS)
				end_poll(end, &found);
			end_rdma(end, read);
		}
		while (found.sends < n)
			end_poll(end, &found);
		figure((double)options.size * n * 1e3 / (double)(now_ns() - begin));
	}
	traffic_target(end);
}

static void traffic_add(struct end *end, unsigned n)
{
	meet();
	for (unsigned batch = 0; !side && batch < options.batches; batch++) {
		uint64_t begin = now_ns();

		for (unsigned i = 0; i < n; i++) {
			struct found found = { 0 };

			end_add(end);
			while (!found.sends)
				end_poll(end, &found);
		}
		figure(n * 1e3 / (double)(now_ns() - begin));
	}
	traffic_target(end);
}

/* The target sleeps, so that its engine alone can act for it. */
static void traffic_await(struct end *end, unsigned n)
{
	const struct timespec pause = { .tv_nsec = 1000000 };
	bool read = strcmp(options.way, "write") != 0;

	meet();
	for (unsigned batch = 0; !side && batch < options.batches; batch++) {
		uint64_t begin = now_ns();

		for (unsigned i = 0; i < n; i++) {
			struct found found = { 0 };

			end_rdma(end, read);
			while (!found.sends)
				end_poll(end, &found);
		}
		figure((double)(now_ns() - begin) / n);
	}
	while (side && !is_awaited())
		nanosleep(&pause, NULL);
	meet();
}

/* Writes `number` to the other side, and polls the completion that this frees a place for. */
static inline void traffic_put_one(struct end *end, struct found *found, unsigned number)
{
	end_first(end)[options.size - 1] = (uint8_t)number;
	end_rdma(end, false);
	while (number - found->sends >= RDMAS)
		end_poll(end, found);
}

static inline void traffic_put_await(struct end *end, unsigned number)
{
	const volatile uint8_t *last = end_second(end) + options.size - 1;

	while (*last != (uint8_t)number)
		;
}

static void traffic_put(struct end *end, unsigned n)
{
	struct found found = { 0 };
	unsigned number = 0;

	end_second(end)[options.size - 1] = 0;
	meet();
	for (unsigned batch = 0; batch <= options.batches; batch++) {
		uint64_t begin = now_ns();

		for (unsigned i = 0; i < n; i++) {
			number++;
			if (!side)
				traffic_put_one(end, &found, number);
			traffic_put_await(end, number);
			if (side)
				traffic_put_one(end, &found, number);
		}
		if (batch) /* the first one warms up */
			figure((double)(now_ns() - begin) / n / 2);
	}
	while (found.sends < number)
		end_poll(end, &found);
	meet();
}

/*
 * A batch exceeds the posted receives, because a receiver that was interrupted reaps all
 * completions of that time at once.
 */
static void traffic_long(struct end *end)
{
	unsigned depth = options.size < WINDOW / 4 ? (unsigned)(WINDOW / options.size) : 4;
	unsigned n = batch_messages();

	if (depth > RECVS)
		depth = RECVS;
	traffic_stream(end, n < 2 * depth ? 2 * depth : n, depth, 1, 1e3 * (double)options.size);
}

static void traffic_run(struct end *end)
{
	const char *test = options.test;

	if (!strcmp(test, "lat"))
		traffic_latency(end, batch_round_trips(), POLLING);
	else if (!strcmp(test, "wake"))
		traffic_latency(end, batch_of(30), SLEEPING);
	else if (!strcmp(test, "fd"))
		traffic_latency(end, batch_of(30), BY_FD);
	else if (!strcmp(test, "rate"))
		traffic_stream(end, batch_of(8192), RECVS, SIGNALED, 1e3);
	else if (!strcmp(test, "bw"))
		traffic_long(end);
	else if (!strcmp(test, "add"))
		traffic_add(end, batch_of(256));
	else if (!strcmp(test, "await"))
		traffic_await(end, batch_of(256));
	else if (!strcmp(test, "put"))
		traffic_put(end, batch_round_trips());
	else if (!strcmp(test, "write") || !strcmp(test, "read"))
		traffic_rdma(end, !strcmp(test, "read"));
	else
		fail("no such test");
}

#endif
