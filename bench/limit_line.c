/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/*
 * Limits of telling another process something: a cache line between two processors, and what the kernel has to wake a
 * sleeper. Half round trip in ns.
 *   spin        a line, both sides look at it all the time
 *   futex eventfd evpoll pipe   sleep until woken; evpoll: poll, then read, as for a completion channel
 *   futexspin   look 2,000 times, then sleep
 */
#include <linux/futex.h>
#include <poll.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "bench/measure.h"

#define LOOKS 2000

struct cell {
	_Alignas(LINE) _Atomic(uint32_t) word;
	_Atomic(uint32_t) asleep;
};

static struct cell *cells; /* one written by each side */
static int fds[2];	   /* an eventfd read by each side */

static void wait_spin(uint32_t value)
{
	while (atomic_load_explicit(&cells[!side].word, memory_order_acquire) != value)
		;
}

static void tell_spin(uint32_t value)
{
	atomic_store_explicit(&cells[side].word, value, memory_order_release);
}

static void futex_sleep(uint32_t value)
{
	struct cell *cell = &cells[!side];
	uint32_t seen;

	while ((seen = atomic_load(&cell->word)) != value) {
		atomic_store(&cell->asleep, 1);
		if (atomic_load(&cell->word) == seen)
			syscall(SYS_futex, &cell->word, FUTEX_WAIT, seen, NULL, NULL, 0);
		atomic_store(&cell->asleep, 0);
	}
}

static void tell_futex(uint32_t value)
{
	struct cell *cell = &cells[side];

	atomic_store(&cell->word, value);
	if (atomic_load(&cell->asleep))
		syscall(SYS_futex, &cell->word, FUTEX_WAKE, 1, NULL, NULL, 0);
}

static void wait_futexspin(uint32_t value)
{
	for (unsigned looks = 0; looks < LOOKS; looks++) {
		if (atomic_load_explicit(&cells[!side].word, memory_order_acquire) == value)
			return;
		__builtin_ia32_pause();
	}
	futex_sleep(value);
}

static void wait_eventfd(uint32_t value)
{
	eventfd_t count;

	(void)value;
	must(!eventfd_read(fds[side], &count), "read");
}

static void wait_evpoll(uint32_t value)
{
	struct pollfd p = { .fd = fds[side], .events = POLLIN };

	must(poll(&p, 1, -1) == 1, "poll");
	wait_eventfd(value);
}

static void tell_eventfd(uint32_t value)
{
	(void)value;
	must(!eventfd_write(fds[!side], 1), "write");
}

static const struct way {
	const char *name;
	void (*wait)(uint32_t value);
	void (*tell)(uint32_t value);
	unsigned round_trips;
} ways[] = {
	{ "spin", wait_spin, tell_spin, 700 },
	{ "futex", futex_sleep, tell_futex, 60 },
	{ "futexspin", wait_futexspin, tell_futex, 400 },
	{ "eventfd", wait_eventfd, tell_eventfd, 60 },
	{ "evpoll", wait_evpoll, tell_eventfd, 60 },
};

/* Inlined for each way, so that no indirect call is measured. */
static inline __attribute__((always_inline)) void run(const struct way *way)
{
	unsigned n = batch_of(way->round_trips);
	uint32_t value = 0;

	meet();
	for (unsigned batch = 0; batch < options.batches; batch++) {
		uint64_t begin = now_ns();

		for (unsigned i = 0; i < n; i++) {
			value++;
			if (side)
				way->wait(value);
			way->tell(value);
			if (!side)
				way->wait(value);
		}
		figure(half_round_trip(begin, n));
	}
}

int main(int argc, char **argv)
{
	fds[0] = eventfd(0, 0);
	fds[1] = eventfd(0, 0);
	must(fds[0] >= 0 && fds[1] >= 0, "eventfd");
	measure_begin(argc, argv, 2 * sizeof(struct cell));
	cells = shared;
	if (!strcmp(options.test, "spin"))
		run(&ways[0]);
	else if (!strcmp(options.test, "futex"))
		run(&ways[1]);
	else if (!strcmp(options.test, "futexspin"))
		run(&ways[2]);
	else if (!strcmp(options.test, "eventfd"))
		run(&ways[3]);
	else if (!strcmp(options.test, "evpoll"))
		run(&ways[4]);
	else
		fail("no such test");
	measure_end();
}
