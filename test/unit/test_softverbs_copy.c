/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/*
 * Records the system calls that copy between this process and a peer's memory: where they divide the bytes, and when a
 * descriptor of that memory is used instead.
 */
#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>
#include "softverbs/rc/copy.h"
#include "test/unit/unit.h"

#define LONG 5000u

static _Alignas(4096) uint8_t source[LONG], room[1024 + LONG];
static uint8_t *const sink = room + 1024;
static unsigned calls;
static bool strings, no_populate;	   /* what the processor does, and what the kernel lacks */
static const uint8_t *last_from, *last_to; /* the last part of the last call */
static size_t ends[8];			   /* where a part of either list of the last call ends */
static unsigned end_count;

static void ends_add(const struct iovec *iov, unsigned long count)
{
	size_t end = 0;

	for (unsigned long i = 0; i < count; i++) {
		end += iov[i].iov_len;
		ends[end_count++] = end;
	}
}

int __real_sv_os_populate(uintptr_t begin, uintptr_t end, bool write);
int __wrap_sv_os_populate(uintptr_t begin, uintptr_t end, bool write);
bool __wrap_sv_os_moves_strings(void);

int __wrap_sv_os_populate(uintptr_t begin, uintptr_t end, bool write)
{
	return no_populate ? ENOSYS : __real_sv_os_populate(begin, end, write);
}

bool __wrap_sv_os_moves_strings(void)
{
	return strings;
}

ssize_t process_vm_writev(pid_t pid, const struct iovec *here, unsigned long here_count,
			  const struct iovec *there, unsigned long there_count, unsigned long flags)
{
	calls++;
	last_from = here[here_count - 1].iov_base;
	last_to = (const uint8_t *)there[there_count - 1].iov_base +
		  there[there_count - 1].iov_len - here[here_count - 1].iov_len;
	end_count = 0;
	ends_add(here, here_count);
	ends_add(there, there_count);
	return syscall(SYS_process_vm_writev, pid, here, here_count, there, there_count, flags);
}

ssize_t process_vm_readv(pid_t pid, const struct iovec *here, unsigned long here_count,
			 const struct iovec *there, unsigned long there_count, unsigned long flags)
{
	calls++;
	return syscall(SYS_process_vm_readv, pid, here, here_count, there, there_count, flags);
}

static bool is_divided_at(size_t at)
{
	for (unsigned i = 0; i < end_count; i++)
		if (ends[i] == at)
			return true;
	return false;
}

/* The descriptor of its link is none, so that no descriptor of its memory is opened. */
static struct sv_peer peer(void)
{
	return (struct sv_peer){
		.pid = getpid(), .copy = SV_COPY_PVM, .memory = -1, .doorbell = -1
	};
}

static void refill(void)
{
	for (unsigned i = 0; i < LONG; i++)
		source[i] = (uint8_t)(i * 7 + 1);
	memset(sink, 0, LONG);
	calls = end_count = 0;
}

/* Writes from two buffers, so that the bytes are divided there, too. Returns the bytes that were copied last, by themselves. */
static size_t last_of(size_t length)
{
	struct sv_peer to = peer();
	struct iovec here[2] = { { source, length / 3 },
				 { source + length / 3, length - length / 3 } };
	size_t last = length;

	refill();
	CU_ASSERT_EQUAL(sv_copy_out_polled(&to, here, 2, 0, (struct iovec){ sink, length }),
			COPY_DONE);
	CU_ASSERT_EQUAL(memcmp(sink, source, length), 0);
	if (calls > 1) {
		last = ends[end_count - 1];
		CU_ASSERT_EQUAL(end_count, last == 2 ? 4 : 2);
		CU_ASSERT(last != 2 || is_divided_at(1));
		return last;
	}
	for (size_t inside = 1; inside < length && last == length; inside++)
		if (is_divided_at(length - inside))
			last = inside;
	return last;
}

/* The longest aligned unit that ends where the write ends. */
static void last_bytes_of_a_write(void)
{
	CU_ASSERT_EQUAL(last_of(LONG), 8);
	CU_ASSERT_EQUAL(last_of(LONG - 1), 1);
	CU_ASSERT_EQUAL(calls, 1);
	CU_ASSERT_EQUAL(last_of(9), 1);
	CU_ASSERT_EQUAL(last_of(1), 1);
	CU_ASSERT_EQUAL(calls, 1);
}

/* Some kernels copy less than eight bytes one by one, others also up to the next multiple of eight: never with those before. */
static void last_unit_by_itself(void)
{
	CU_ASSERT_EQUAL(last_of(4964), 4);
	CU_ASSERT_EQUAL(calls, 2);
	CU_ASSERT_EQUAL(last_of(4966), 2);
	CU_ASSERT_EQUAL(calls, 3);
	CU_ASSERT_EQUAL(last_of(12), 4);
	CU_ASSERT_EQUAL(last_of(6), 2);
	/* the two buffers divide the unit: it is copied to here first */
	CU_ASSERT_EQUAL(last_of(4), 4);
	CU_ASSERT_EQUAL(calls, 2);
	CU_ASSERT_EQUAL(last_of(8), 8);
	CU_ASSERT_EQUAL(calls, 2);
}

static void message_in_one_part(void)
{
	struct sv_peer to = peer();
	struct iovec here = { source, LONG }, there = { sink, LONG };

	refill();
	CU_ASSERT_EQUAL(sv_copy_out(&to, &here, 1, 0, &there, 1, LONG), COPY_DONE);
	CU_ASSERT_EQUAL(memcmp(sink, source, LONG), 0);
	CU_ASSERT_EQUAL(calls, 1);
	CU_ASSERT_FALSE(is_divided_at(LONG - 8));
}

/* Writes and reads so many bytes; returns the number of calls that name the process. */
static unsigned calls_for(struct sv_peer *to, size_t write, size_t read)
{
	struct iovec here = { source, write }, there = { sink, read };

	refill();
	if (write) {
		CU_ASSERT_EQUAL(sv_copy_out_polled(to, &here, 1, 0, (struct iovec){ sink, write }),
				COPY_DONE);
		CU_ASSERT_EQUAL(memcmp(sink, source, write), 0);
	}
	if (read) {
		here.iov_len = read;
		memset(source, 1, LONG);
		CU_ASSERT_EQUAL(sv_copy_in(to, &here, 1, 0, &there, 1, read), COPY_DONE);
		CU_ASSERT_EQUAL(memcmp(sink, source, read), 0);
	}
	return calls;
}

static void short_copies_by_descriptor(void)
{
	struct sv_peer to = peer();
	struct iovec here = { source, 8 };
	int link[2];

	CU_ASSERT_EQUAL_FATAL(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, link), 0);
	to.doorbell = link[0];
	CU_ASSERT_EQUAL(calls_for(&to, LONG, 0), 1);
	CU_ASSERT_EQUAL(to.memory, -1);
	CU_ASSERT_EQUAL(calls_for(&to, 8, 0), 0);
	CU_ASSERT_TRUE(to.memory >= 0);
	CU_ASSERT_EQUAL(calls_for(&to, 1, 0), 0);
	CU_ASSERT_EQUAL(calls_for(&to, 9, 0), 1); /* two parts */
	CU_ASSERT_EQUAL(calls_for(&to, 4, 0), 0);
	CU_ASSERT_EQUAL(calls_for(&to, 20, 0), 1); /* the four by the descriptor */
	/* of two bytes, the kernel would store the first one last */
	CU_ASSERT_EQUAL(calls_for(&to, 2, 0), 2);
	CU_ASSERT(end_count == 4 && is_divided_at(1));
	CU_ASSERT_EQUAL(calls_for(&to, 0, 4096), 0);
	CU_ASSERT_EQUAL(calls_for(&to, 0, 4097), 1);
	/* nothing is mapped there */
	CU_ASSERT_EQUAL(sv_copy_out_polled(&to, &here, 1, 0, (struct iovec){ (void *)4096, 8 }),
			COPY_THERE);
	here.iov_base = (void *)4096;
	CU_ASSERT_EQUAL(sv_copy_out_polled(&to, &here, 1, 0, (struct iovec){ sink, 8 }), COPY_HERE);
	close(to.memory);

	/* The process has ended: another one may have its number. */
	close(link[1]);
	to.memory = -1;
	errno = EAGAIN; /* of an earlier call */
	CU_ASSERT_EQUAL(calls_for(&to, 8, 0), 1);
	CU_ASSERT_TRUE(to.memory < -1);
	close(link[0]);
}

/* ---- what stores a word at once ---- */

/* The target of the last part is not a little ahead of the source, where such a processor moves byte by byte. */
static bool last_is_moved_at_once(void)
{
	size_t ahead = ((size_t)last_to - (size_t)last_from) % 4096;

	return !ahead || ahead >= 64;
}

static void words_are_not_moved_byte_by_byte(void)
{
	static const size_t lengths[] = { 4, 8, 12, 16, 24 };
	struct sv_peer to = peer();

	strings = true;
	for (size_t ahead = 0; ahead < 128; ahead += 4) {
		for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
			struct iovec here = { source + 1024 - ahead, lengths[i] };

			refill();
			CU_ASSERT_EQUAL(sv_copy_out_polled(&to, &here, 1, 0,
							   (struct iovec){ sink, lengths[i] }),
					COPY_DONE);
			CU_ASSERT_EQUAL(memcmp(sink, here.iov_base, lengths[i]), 0);
			CU_ASSERT_TRUE(last_is_moved_at_once());
		}
	}
	strings = false;
}

/* The kernel copies what goes through a descriptor from the beginning of a page. */
static void words_at_the_beginning_of_a_page(void)
{
	struct sv_peer to = peer();
	int link[2];

	CU_ASSERT_EQUAL_FATAL(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, link), 0);
	to.doorbell = link[0];
	strings = true;
	for (size_t at = 0; at < 128; at += 4) {
		struct iovec here = { source + 2048, 4 };

		refill();
		CU_ASSERT_EQUAL(sv_copy_out_polled(&to, &here, 1, 0,
						   (struct iovec){ room + 4096 + at, 4 }),
				COPY_DONE);
		CU_ASSERT_EQUAL(memcmp(room + 4096 + at, source + 2048, 4), 0);
		CU_ASSERT_EQUAL(calls == 0, !at || at >= 64);
		CU_ASSERT_TRUE(!calls || last_is_moved_at_once());
	}
	strings = false;
	close(to.memory);
	close(link[0]);
	close(link[1]);
}

/* Kernels before 5.14 cannot be told to populate pages. */
static void own_words_on_older_kernels(void)
{
	struct sv_peer to = { .pid = getpid(), .copy = SV_COPY_SELF };
	struct iovec here = { source, 12 };

	no_populate = true;
	refill();
	CU_ASSERT_EQUAL(sv_copy_out_polled(&to, &here, 1, 0, (struct iovec){ sink, 12 }),
			COPY_DONE);
	CU_ASSERT_EQUAL(memcmp(sink, source, 12), 0);
	CU_ASSERT_PTR_NOT_EQUAL(last_to, sink + 8); /* this process has stored it */
	CU_ASSERT_EQUAL(sv_copy_out_polled(&to, &here, 1, 0, (struct iovec){ (void *)4096, 4 }),
			COPY_THERE);
	no_populate = false;
}

static void *copy_cancelled(void *arg)
{
	struct sv_peer *to = arg;

	CU_ASSERT_EQUAL(pthread_cancel(pthread_self()), 0);
	CU_ASSERT_EQUAL(calls_for(to, 8, 4096), 0);
	return to;
}

/* A sender holds the lock of its queue: the copy is no cancellation point. */
static void copies_are_not_cancelled(void)
{
	struct sv_peer to = peer();
	int link[2];
	pthread_t thread;
	void *result = NULL;

	CU_ASSERT_EQUAL_FATAL(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, link), 0);
	to.doorbell = link[0];
	CU_ASSERT_EQUAL_FATAL(pthread_create(&thread, NULL, copy_cancelled, &to), 0);
	CU_ASSERT_EQUAL(pthread_join(thread, &result), 0);
	CU_ASSERT_PTR_EQUAL(result, &to);
	close(to.memory);
	close(link[0]);
	close(link[1]);
}

static const struct unit_test tests[] = {
	{ "a program that polls the last bytes of a write finds the rest", last_bytes_of_a_write },
	{ "such bytes are copied by themselves where the kernel would copy them one by one",
	  last_unit_by_itself },
	{ "a message is moved as it was posted", message_in_one_part },
	{ "short copies go by a descriptor of the peer's memory", short_copies_by_descriptor },
	{ "a processor that moves strings byte by byte stores a word at once",
	  words_are_not_moved_byte_by_byte },
	{ "and at the beginning of a page, where the kernel copies from one",
	  words_at_the_beginning_of_a_page },
	{ "a word of the own memory is stored, on older kernels, too", own_words_on_older_kernels },
	{ "a copy by that descriptor is no cancellation point", copies_are_not_cancelled },
};

UNIT_MAIN("softverbs_copy", tests)
