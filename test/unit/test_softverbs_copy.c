/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/*
 * Records the system calls that copy bytes into a peer's memory: the number of parts and their
 * order.
 */
#include <string.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>
#include "softverbs/rc/copy.h"
#include "test/unit/unit.h"

#define LONG 5000u

static uint8_t source[LONG];
static _Alignas(64) uint8_t sink[LONG];
static unsigned parts;
static struct iovec last;

ssize_t process_vm_writev(pid_t pid, const struct iovec *here, unsigned long here_count,
			  const struct iovec *there, unsigned long there_count, unsigned long flags)
{
	parts = (unsigned)there_count;
	last = there[there_count - 1];
	return syscall(SYS_process_vm_writev, pid, here, here_count, there, there_count, flags);
}

static struct sv_peer peer(void)
{
	return (struct sv_peer){ .pid = getpid(), .copy = SV_COPY_PVM, .memory = -1 };
}

static void refill(void)
{
	for (unsigned i = 0; i < LONG; i++)
		source[i] = (uint8_t)(i * 7 + 1);
	memset(sink, 0, LONG);
	parts = 0;
}

/* Writes from two buffers, so that the parts of source and target differ. */
static void written(size_t length, unsigned expected, size_t at_last)
{
	struct sv_peer to = peer();
	struct iovec here[2] = { { source, length / 2 },
				 { source + length / 2, length - length / 2 } };

	refill();
	CU_ASSERT_EQUAL(sv_copy_out_polled(&to, here, 2, 0, (struct iovec){ sink, length }),
			COPY_DONE);
	CU_ASSERT_EQUAL(memcmp(sink, source, length), 0);
	CU_ASSERT_EQUAL(parts, expected);
	CU_ASSERT_EQUAL(last.iov_len, at_last);
	CU_ASSERT_PTR_EQUAL((uint8_t *)last.iov_base + last.iov_len, sink + length);
}

static void last_bytes_of_a_write(void)
{
	/* the longest aligned unit that ends where the write ends */
	written(LONG, 2, 8);
	written(LONG - 1, 2, 1);
	written(LONG - 2, 2, 2);
	written(LONG - 4, 2, 4);
	written(9, 2, 1);
	written(8, 1, 8);
	written(6, 2, 2);
	written(4, 1, 4);
	written(1, 1, 1);
}

static void message_in_one_part(void)
{
	struct sv_peer to = peer();
	struct iovec here = { source, LONG }, there = { sink, LONG };

	refill();
	CU_ASSERT_EQUAL(sv_copy_out(&to, &here, 1, 0, &there, 1, LONG), COPY_DONE);
	CU_ASSERT_EQUAL(memcmp(sink, source, LONG), 0);
	CU_ASSERT_EQUAL(parts, 1);
}

static const struct unit_test tests[] = {
	{ "a program that polls the last bytes of a write finds the rest", last_bytes_of_a_write },
	{ "a message is moved as it was posted", message_in_one_part },
};

UNIT_MAIN("softverbs_copy", tests)
