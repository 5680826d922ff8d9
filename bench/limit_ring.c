/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/*
 * The limit of small reliable messages: one ring in shared memory each way, one thread a side, no locks, no checks, but
 * all that makes it a send: a posted receive, a copy in and a copy out, a completion at both ends.
 *   lat SIZE    half round trip in ns
 *   rate SIZE   messages a second, one way, 10^6
 */
#include <string.h>
#include "bench/measure.h"

#define POSTS	 1024u
#define SIGNALED 16u /* of a stream, each so many sends make a completion */

struct slot {			/* one line or more */
	_Atomic(uint64_t) head; /* length:32 | number:32, with which the rest is there */
	uint64_t what;
	uint8_t data[];
};

struct ring {
	_Alignas(LINE) _Atomic(uint32_t) taken; /* written by the receiver, now and then */
	_Alignas(LINE) uint8_t slots[];
};

struct completion {
	uint64_t wr_id;
	uint32_t length;
	uint16_t opcode, status;
};

struct posted {
	uint8_t *addr;
	uint64_t wr_id;
	uint32_t length;
};

static struct {
	struct ring *out, *in;
	uint32_t stride, slots; /* bytes of a slot; in a ring */
	uint32_t sent, sent_at, taken_seen;
	uint32_t received, received_at, given;
	struct posted posts[POSTS]; /* receives */
	uint32_t posted;
	struct completion done[POSTS]; /* sends */
	uint32_t done_in, done_out;
} q;

static inline void post_recv(void *addr, uint32_t length, uint64_t wr_id)
{
	struct posted *p = &q.posts[q.posted++ % POSTS];

	p->addr = addr;
	p->length = length;
	p->wr_id = wr_id;
}

/* False: the ring is full. */
static inline bool post_send(const void *addr, uint32_t length, uint64_t wr_id, bool signaled)
{
	struct slot *slot = (void *)(q.out->slots + (size_t)q.sent_at * q.stride);

	if (q.sent - q.taken_seen == q.slots) {
		q.taken_seen = atomic_load_explicit(&q.out->taken, memory_order_acquire);
		if (q.sent - q.taken_seen == q.slots)
			return false;
	}
	slot->what = 1;
	if (length == 8)
		memcpy(slot->data, addr, 8);
	else
		memcpy(slot->data, addr, length);
	atomic_store_explicit(&slot->head, (uint64_t)length << 32 | ++q.sent, memory_order_release);
	if (++q.sent_at == q.slots)
		q.sent_at = 0;
	if (signaled)
		q.done[q.done_in++ % POSTS] = (struct completion){ wr_id, length, 0, 0 };
	return true;
}

static inline unsigned poll(struct completion *c)
{
	struct slot *slot = (void *)(q.in->slots + (size_t)q.received_at * q.stride);
	uint64_t head;
	struct posted *p;

	if (q.done_out != q.done_in) {
		*c = q.done[q.done_out++ % POSTS];
		return 1;
	}
	head = atomic_load_explicit(&slot->head, memory_order_acquire);
	if ((uint32_t)head != q.received + 1)
		return 0;
	p = &q.posts[q.received++ % POSTS];
	c->wr_id = p->wr_id;
	c->length = (uint32_t)(head >> 32);
	c->opcode = 128;
	c->status = c->length > p->length;
	if (c->length == 8)
		memcpy(p->addr, slot->data, 8);
	else
		memcpy(p->addr, slot->data, c->length);
	if (++q.received_at == q.slots)
		q.received_at = 0;
	if (q.received - q.given >= q.slots / 4) {
		q.given = q.received;
		atomic_store_explicit(&q.in->taken, q.received, memory_order_release);
	}
	return 1;
}

static inline void receive_one(uint8_t *to, uint32_t size)
{
	struct completion c;

	do {
		while (!poll(&c))
			;
	} while (c.opcode != 128);
	must(c.status == 0 && c.length == size, "a wrong message");
	post_recv(to, size, 1);
}

static void latency(uint8_t *from, uint8_t *to, uint32_t size)
{
	unsigned n = batch_round_trips();

	for (unsigned batch = 0; batch < options.batches; batch++) {
		uint64_t begin = now_ns();

		for (unsigned i = 0; i < n; i++) {
			if (side)
				receive_one(to, size);
			must(post_send(from, size, i, true), "the ring is full");
			if (!side)
				receive_one(to, size);
		}
		figure(half_round_trip(begin, n));
	}
}

static void stream_out(const uint8_t *from, uint32_t size, uint64_t count)
{
	struct completion c;

	for (uint64_t i = 0; i < count; i++) {
		while (!post_send(from, size, i, i % SIGNALED == 0))
			;
		if (i % SIGNALED == 0)
			must(poll(&c) == 1, "no completion");
	}
}

static void rate(const uint8_t *from, uint8_t *to, uint32_t size)
{
	unsigned n = batch_of(8192);

	if (side) {
		stream_out(from, size, (uint64_t)n * options.batches);
		return;
	}
	for (unsigned batch = 0; batch < options.batches; batch++) {
		uint64_t begin = now_ns();

		for (unsigned i = 0; i < n; i++)
			receive_one(to, size);
		figure(n * 1e3 / (double)(now_ns() - begin));
	}
}

int main(int argc, char **argv)
{
	uint8_t *from, *to;
	size_t bytes;

	measure_begin(argc, argv, 2 * (sizeof(struct ring) + (1 << 20)));
	must(options.size > 0 && options.size <= 4096 && options.ring <= 1 << 20, "no such size");
	q.stride = (uint32_t)(sizeof(struct slot) + options.size + LINE - 1) / LINE * LINE;
	q.slots = (uint32_t)options.ring / q.stride;
	bytes = sizeof(struct ring) + (1 << 20);
	q.out = (void *)((uint8_t *)shared + (side ? bytes : 0));
	q.in = (void *)((uint8_t *)shared + (side ? 0 : bytes));
	from = buffer(options.size);
	to = buffer(options.size);
	for (unsigned i = 0; i < POSTS / 2; i++)
		post_recv(to, (uint32_t)options.size, i);
	meet();
	if (!strcmp(options.test, "lat"))
		latency(from, to, (uint32_t)options.size);
	else if (!strcmp(options.test, "rate"))
		rate(from, to, (uint32_t)options.size);
	else
		fail("no such test");
	measure_end();
}
