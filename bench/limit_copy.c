/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/*
 * The limit of one-sided copies: nothing but the system call, between ordinary pages of two processes. MB/s.
 *   write SIZE   process_vm_writev       read SIZE   process_vm_readv
 *   memcpy SIZE  from one buffer to another of a process, for comparison
 */
#include <string.h>
#include <sys/uio.h>
#include "bench/measure.h"

static void copies(bool write, uint8_t *from, uint64_t there)
{
	struct iovec mine = { from, options.size },
		     theirs = { (void *)(uintptr_t)there, options.size };
	unsigned n = batch_messages();

	for (unsigned batch = 0; batch < options.batches; batch++) {
		uint64_t begin = now_ns();

		for (unsigned i = 0; i < n; i++) {
			ssize_t moved = write ? process_vm_writev(other, &mine, 1, &theirs, 1, 0)
					      : process_vm_readv(other, &mine, 1, &theirs, 1, 0);

			must(moved == (ssize_t)options.size, "process_vm");
		}
		figure((double)options.size * n * 1e3 / (double)(now_ns() - begin));
	}
}

static void memcpies(const uint8_t *from)
{
	uint8_t *to = buffer(options.size);
	unsigned n = batch_messages();

	for (unsigned batch = 0; batch < options.batches; batch++) {
		uint64_t begin = now_ns();

		for (unsigned i = 0; i < n; i++) {
			memcpy(to, from, options.size);
			atomic_signal_fence(memory_order_seq_cst); /* each one counts */
		}
		figure((double)options.size * n * 1e3 / (double)(now_ns() - begin));
	}
}

int main(int argc, char **argv)
{
	_Atomic(uint64_t) *address;
	uint8_t *memory;

	measure_begin(argc, argv, 2 * LINE);
	must(options.size != 0, "no such size");
	address = shared;
	memory = buffer(options.size);
	atomic_store(&address[side], (uint64_t)(uintptr_t)memory);
	meet();
	if (!strcmp(options.test, "memcpy")) {
		if (!side)
			memcpies(memory);
		measure_end();
	}
	if (strcmp(options.test, "write") && strcmp(options.test, "read"))
		fail("no such test");
	if (!side)
		copies(!strcmp(options.test, "write"), memory, atomic_load(&address[1]));
	measure_end();
}
