/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/*
 * The limit of larger reliable messages: posted receives in shared memory, one thread a side, no locks, no checks, and
 * the payload moved in one of three ways.
 *   lat-WAY SIZE   half round trip in ns        bw-WAY SIZE   one way, MB/s
 * WAY is one of
 *   vmw      the sender writes into the posted buffer with process_vm_writev
 *   vmr      the receiver reads the sender's buffer with process_vm_readv and says so
 *   bounce   through a ring in shared memory of -r bytes, copied in and out piece by piece
 */
#include <string.h>
#include <sys/uio.h>
#include "bench/measure.h"

#define DEPTH 64u
#define PIECE 32768u /* of the ring: one side copies in while the other copies out */

enum way { VMW, VMR, BOUNCE };

struct entry {				       /* a posted receive, or a message */
	_Alignas(LINE) _Atomic(uint64_t) head; /* length:32 | number:32 */
	uint64_t addr;
};

/* What one side writes for the other. */
struct half {
	struct entry posts[DEPTH];
	struct entry messages[DEPTH];
	/* vmr: messages whose sender's buffer is free again */
	_Alignas(LINE) _Atomic(uint32_t) done;
	_Alignas(LINE) _Atomic(uint64_t) filled;  /* bounce: bytes put into the own ring */
	_Alignas(LINE) _Atomic(uint64_t) emptied; /* bytes taken out of the other's */
};

static struct half *mine, *theirs;
static uint8_t *ring_out, *ring_in;
static uint32_t posted, sent, received;
static uint64_t filled, filled_limit, emptied;

static inline uint32_t number_of(struct entry *entry, uint32_t *length)
{
	uint64_t head = atomic_load_explicit(&entry->head, memory_order_acquire);

	*length = (uint32_t)(head >> 32);
	return (uint32_t)head;
}

static inline void put(struct entry *entry, uint32_t number, const void *addr, uint32_t length)
{
	entry->addr = (uintptr_t)addr;
	atomic_store_explicit(&entry->head, (uint64_t)length << 32 | number, memory_order_release);
}

static inline void post_recv(void *addr, uint32_t length)
{
	posted++;
	put(&mine->posts[posted % DEPTH], posted, addr, length);
}

static void ring_put(const uint8_t *from, uint32_t length)
{
	uint64_t mask = options.ring - 1;

	for (uint32_t part; length; length -= part, from += part) {
		part = length < PIECE ? length : PIECE;
		if (part > options.ring - (filled & mask))
			part = (uint32_t)(options.ring - (filled & mask));
		while (filled + part > filled_limit)
			filled_limit =
				atomic_load_explicit(&theirs->emptied, memory_order_acquire) +
				options.ring;
		memcpy(ring_out + (filled & mask), from, part);
		filled += part;
		atomic_store_explicit(&mine->filled, filled, memory_order_release);
	}
}

static void ring_take(uint8_t *to, uint32_t length)
{
	uint64_t mask = options.ring - 1;

	for (uint32_t part; length; length -= part, to += part) {
		part = length < PIECE ? length : PIECE;
		if (part > options.ring - (emptied & mask))
			part = (uint32_t)(options.ring - (emptied & mask));
		while (atomic_load_explicit(&theirs->filled, memory_order_acquire) < emptied + part)
			;
		memcpy(to, ring_in + (emptied & mask), part);
		emptied += part;
		atomic_store_explicit(&mine->emptied, emptied, memory_order_release);
	}
}

/* The next message, into the receive that the other side posted for it. */
static inline __attribute__((always_inline)) void send(enum way way, uint8_t *from, uint32_t size)
{
	struct entry *receive = &theirs->posts[++sent % DEPTH],
		     *message = &mine->messages[sent % DEPTH];
	struct iovec here = { from, size }, there;
	uint32_t room;

	while (number_of(receive, &room) != sent)
		;
	must(size <= room, "a buffer too small");
	if (way == VMW) {
		there = (struct iovec){ (void *)(uintptr_t)receive->addr, size };
		must(process_vm_writev(other, &here, 1, &there, 1, 0) == (ssize_t)size,
		     "process_vm_writev");
	}
	put(message, sent, from, size);
	if (way == BOUNCE)
		ring_put(from, size);
}

static inline __attribute__((always_inline)) void receive(enum way way, uint8_t *to)
{
	struct entry *message = &theirs->messages[++received % DEPTH];
	struct iovec here, there;
	uint32_t size;

	while (number_of(message, &size) != received)
		;
	if (way == VMR) {
		here = (struct iovec){ to, size };
		there = (struct iovec){ (void *)(uintptr_t)message->addr, size };
		must(process_vm_readv(other, &here, 1, &there, 1, 0) == (ssize_t)size,
		     "process_vm_readv");
		atomic_store_explicit(&mine->done, received, memory_order_release);
	} else if (way == BOUNCE) {
		ring_take(to, size);
	}
	post_recv(to, size);
}

/* As many sends outstanding as the queue holds; only vmr needs to look. */
static inline void await_done(enum way way, uint32_t outstanding)
{
	if (way != VMR)
		return;
	while (sent - atomic_load_explicit(&theirs->done, memory_order_acquire) > outstanding)
		;
}

static inline __attribute__((always_inline)) void latency(enum way way, uint8_t *from, uint8_t *to)
{
	unsigned n = batch_round_trips();

	for (unsigned batch = 0; batch < options.batches; batch++) {
		uint64_t begin = now_ns();

		for (unsigned i = 0; i < n; i++) {
			if (side)
				receive(way, to);
			send(way, from, (uint32_t)options.size);
			if (!side)
				receive(way, to);
			await_done(way, side); /* the last one is told by the next message */
		}
		figure(half_round_trip(begin, n));
	}
	await_done(way, 0);
}

static inline __attribute__((always_inline)) void bandwidth(enum way way, uint8_t *from,
							    uint8_t *to)
{
	unsigned n = batch_messages();

	for (unsigned batch = 0; batch < options.batches; batch++) {
		uint64_t begin = now_ns();

		for (unsigned i = 0; i < n; i++) {
			if (!side) {
				receive(way, to);
				continue;
			}
			send(way, from, (uint32_t)options.size);
			await_done(way, DEPTH / 2);
		}
		figure((double)options.size * n * 1e3 / (double)(now_ns() - begin));
	}
	if (side)
		await_done(way, 0);
}

static inline __attribute__((always_inline)) bool run(enum way way, const char *name, uint8_t *from,
						      uint8_t *to)
{
	if (!strncmp(options.test, "lat-", 4) && !strcmp(options.test + 4, name))
		latency(way, from, to);
	else if (!strncmp(options.test, "bw-", 3) && !strcmp(options.test + 3, name))
		bandwidth(way, from, to);
	else
		return false;
	return true;
}

int main(int argc, char **argv)
{
	uint8_t *from, *to, *rings;

	measure_begin(argc, argv, 2 * sizeof(struct half) + (2 << 20));
	must(options.size && options.ring <= 1 << 20 && !(options.ring & (options.ring - 1)),
	     "no such size");
	mine = (struct half *)shared + side;
	theirs = (struct half *)shared + !side;
	rings = (uint8_t *)shared + 2 * sizeof(struct half);
	ring_out = rings + (side ? 1 << 20 : 0);
	ring_in = rings + (side ? 0 : 1 << 20);
	filled_limit = options.ring;
	from = buffer(options.size);
	to = buffer(options.size);
	for (unsigned i = 0; i < DEPTH / 2; i++)
		post_recv(to, (uint32_t)options.size);
	meet();
	if (!run(VMW, "vmw", from, to) && !run(VMR, "vmr", from, to) &&
	    !run(BOUNCE, "bounce", from, to))
		fail("no such test");
	measure_end();
}
