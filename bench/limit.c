/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/*
 * What the machine allows: the traffic of traffic.h with one thread a side, no locks, no checks and no objects.
 *   -w ring      a copy into a slot of a ring in shared memory, and a copy out; up to 4096 bytes
 *   -w bounce    pieces through a ring of bytes in shared memory
 *   -w vmw       process_vm_writev by the sender, into the posted receive
 *   -w vmr       process_vm_readv by the receiver
 *   -w futex, -w eventfd   wake: no payload, a sleeper is woken; an eventfd is read after poll(2), as a completion
 *                channel is
 * The RDMA tests are process_vm_writev and process_vm_readv alone. conn: see limit_conn.c.
 */
#include <linux/futex.h>
#include <poll.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>
#include "bench/limit.h"

#define SLOTS	  1024u	     /* one for each receive; credits keep a slot from being overwritten */
#define SLOT_MAX  4096u	     /* bytes of a message in a slot */
#define RING_TRIP (1u << 17) /* bytes of the bounce ring for messages that go to and fro */
/* and for a stream, where both processors work on it at the same time */
#define RING_BYTES (1u << 20)
/* one part of the bounce ring: one side copies in while the other copies out */
#define PIECE (1u << 15)

enum way { RING, BOUNCE, VMW, VMR, FUTEX, EVENTFD, WAYS };
static const char *const way_names[WAYS] = { "ring", "bounce", "vmw", "vmr", "futex", "eventfd" };

struct receive { /* a posted receive */
	_Atomic(uint32_t) number;
	uint8_t *to;
};

/* where the payload is: behind this in the ring, or at its address */
struct message {
	_Atomic(uint64_t) head; /* length:32 | number:32; when it is stored the rest is valid */
	uint8_t payload[];
};

/* One side writes this and the other reads it. */
struct half {
	struct receive receives[SLOTS];
	_Alignas(LINE) _Atomic(uint32_t) done; /* VMR: messages that were read */
	/* BOUNCE: bytes that this side has put into its ring */
	_Alignas(LINE) _Atomic(uint64_t) filled;
	/* BOUNCE: bytes that this side has taken out of the other's */
	_Alignas(LINE) _Atomic(uint64_t) emptied;
	_Alignas(LINE) _Atomic(uint32_t) word; /* FUTEX */
	_Atomic(uint32_t) asleep;
	_Alignas(LINE) uint8_t *memory;
	_Alignas(LINE) uint8_t ring[RING_BYTES];
	_Alignas(LINE) uint8_t slots[SLOTS * (SLOT_MAX + LINE)];
};

struct end {
	enum way way;
	struct half *mine, *theirs;
	uint8_t *from, *to;
	uint32_t stride, ring_size;
	uint32_t posted, sent, received, unpolled, done;
	uint64_t filled, emptied;
	int fd[2];
};

static inline void end_use(struct end *end, unsigned i)
{
	(void)end;
	must(i == 0, "-n: this test has only one connection");
}

static inline void end_recv(struct end *end, unsigned count)
{
	while (count--) {
		struct receive *receive = &end->mine->receives[++end->posted % SLOTS];

		receive->to = end->to;
		atomic_store_explicit(&receive->number, end->posted, memory_order_release);
	}
}

static inline struct message *end_slot(struct half *half, uint32_t stride, uint32_t number)
{
	return (void *)(half->slots + (size_t)(number % SLOTS) * stride);
}

static inline void end_copy(void *to, const void *from, uint32_t size)
{
	if (size == 8)
		memcpy(to, from, 8);
	else
		memcpy(to, from, size);
}

static void end_write(struct end *end, uint32_t size)
{
	struct receive *receive = &end->theirs->receives[end->sent % SLOTS];
	struct iovec from = { end->from, size }, to = { NULL, size };

	while (atomic_load_explicit(&receive->number, memory_order_acquire) != end->sent)
		;
	to.iov_base = receive->to;
	must(process_vm_writev(other, &from, 1, &to, 1, 0) == (ssize_t)size, "process_vm_writev");
}

static void end_read(struct end *end, const struct message *message, uint32_t size, uint8_t *to)
{
	struct iovec here = { to, size }, there = { NULL, size };

	memcpy(&there.iov_base, message->payload, sizeof(there.iov_base));
	must(process_vm_readv(other, &here, 1, &there, 1, 0) == (ssize_t)size, "process_vm_readv");
	atomic_store_explicit(&end->mine->done, end->received, memory_order_release);
}

/* Returns the length of the next piece of a message, which ends at the ring's end. */
static inline uint32_t ring_piece(const struct end *end, uint64_t at, uint32_t left)
{
	uint32_t room = end->ring_size - (uint32_t)(at % end->ring_size);

	left = left < PIECE ? left : PIECE;
	return left < room ? left : room;
}

static void ring_put(struct end *end, const uint8_t *from, uint32_t size)
{
	for (uint32_t piece; size; size -= piece, from += piece) {
		piece = ring_piece(end, end->filled, size);
		while (end->filled + piece -
			       atomic_load_explicit(&end->theirs->emptied, memory_order_acquire) >
		       end->ring_size)
			;
		memcpy(end->mine->ring + end->filled % end->ring_size, from, piece);
		end->filled += piece;
		atomic_store_explicit(&end->mine->filled, end->filled, memory_order_release);
	}
}

static void ring_take(struct end *end, uint8_t *to, uint32_t size)
{
	for (uint32_t piece; size; size -= piece, to += piece) {
		piece = ring_piece(end, end->emptied, size);
		while (atomic_load_explicit(&end->theirs->filled, memory_order_acquire) <
		       end->emptied + piece)
			;
		memcpy(to, end->theirs->ring + end->emptied % end->ring_size, piece);
		end->emptied += piece;
		atomic_store_explicit(&end->mine->emptied, end->emptied, memory_order_release);
	}
}

static void end_wake(struct end *end)
{
	if (end->way == EVENTFD) {
		must(!eventfd_write(end->fd[!side], 1), "eventfd_write");
		return;
	}
	atomic_store(&end->mine->word, end->sent);
	if (atomic_load(&end->mine->asleep))
		syscall(SYS_futex, &end->mine->word, FUTEX_WAKE, 1, NULL, NULL, 0);
}

static inline void end_send(struct end *end, uint32_t size, bool signaled)
{
	struct message *message = end_slot(end->mine, end->stride, ++end->sent);

	if (end->way >= FUTEX) {
		end_wake(end);
		return;
	}
	if (end->way == RING)
		end_copy(message->payload, end->from, size);
	else if (end->way == VMW)
		end_write(end, size);
	else if (end->way == VMR)
		memcpy(message->payload, &end->from, sizeof(end->from));
	atomic_store_explicit(&message->head, (uint64_t)size << 32 | end->sent,
			      memory_order_release);
	if (end->way == BOUNCE)
		ring_put(end, end->from, size);
	end->unpolled += signaled;
}

static inline void end_poll_sends(struct end *end, struct found *found)
{
	uint32_t done;

	if (end->way == VMR) { /* the sender may use its buffer again */
		done = atomic_load_explicit(&end->theirs->done, memory_order_acquire);
		end->unpolled = done - end->done;
		end->done = done;
	}
	found->sends += end->unpolled;
	end->unpolled = 0;
}

static inline void end_poll(struct end *end, struct found *found)
{
	struct message *message = end_slot(end->theirs, end->stride, end->received + 1);
	uint64_t head = atomic_load_explicit(&message->head, memory_order_acquire);
	uint32_t size = (uint32_t)(head >> 32);
	uint8_t *to;

	end_poll_sends(end, found);
	if ((uint32_t)head != end->received + 1)
		return;
	to = end->mine->receives[++end->received % SLOTS].to;
	must(size <= options.size, "a message too long");
	if (end->way == RING)
		end_copy(to, message->payload, size);
	else if (end->way == VMR)
		end_read(end, message, size, to);
	else if (end->way == BOUNCE)
		ring_take(end, to, size);
	found->recvs++;
}

static void futex_wait(struct end *end, uint32_t number)
{
	struct half *half = end->theirs;
	uint32_t seen;

	while ((seen = atomic_load(&half->word)) != number) {
		atomic_store(&half->asleep, 1);
		if (atomic_load(&half->word) == seen)
			syscall(SYS_futex, &half->word, FUTEX_WAIT, seen, NULL, NULL, 0);
		atomic_store(&half->asleep, 0);
	}
}

static inline void end_wait(struct end *end, bool by_fd, struct found *found)
{
	struct pollfd p = { .fd = end->fd[side], .events = POLLIN };
	eventfd_t count;

	must(!by_fd, "no such test");
	end->received++;
	if (end->way == FUTEX)
		futex_wait(end, end->received);
	else
		must(poll(&p, 1, -1) == 1 && !eventfd_read(end->fd[side], &count), "poll");
	found->recvs++;
}

static inline void end_rdma(struct end *end, bool read)
{
	struct iovec here = { end->from, options.size },
		     there = { end->theirs->memory, options.size };
	ssize_t moved = read ? process_vm_readv(other, &here, 1, &there, 1, 0)
			     : process_vm_writev(other, &here, 1, &there, 1, 0);

	must(moved == (ssize_t)options.size, "process_vm");
	end->unpolled++;
}

static inline void end_add(struct end *end)
{
	atomic_fetch_add(&end->theirs->word, 1);
	end->unpolled++;
}

static inline uint8_t *end_first(struct end *end)
{
	return end->from;
}

static inline uint8_t *end_second(struct end *end)
{
	return end->to;
}

#include "bench/traffic.h"

static void end_open(struct end *end)
{
	struct half *halves = shared;

	while (end->way < WAYS && strcmp(options.way, way_names[end->way]))
		end->way++;
	must(end->way < WAYS, "no such way");
	must(options.size && (end->way != RING || options.size <= SLOT_MAX ||
			      strstr("write read put", options.test)),
	     "no such size");
	end->mine = &halves[side];
	end->theirs = &halves[!side];
	end->from = buffer();
	end->mine->memory = end->to = buffer();
	end->stride = (uint32_t)(sizeof(struct message) +
				 (end->way == RING ? options.size : sizeof(void *)) + LINE - 1) /
		      LINE * LINE;
	end->ring_size = strcmp(options.test, "bw") ? RING_TRIP : RING_BYTES;
}

int main(int argc, char **argv)
{
	struct end end = { .fd = { eventfd(0, EFD_CLOEXEC), eventfd(0, EFD_CLOEXEC) } };

	must(end.fd[0] >= 0 && end.fd[1] >= 0, "eventfd");
	measure_begin(argc, argv, 2 * sizeof(struct half));
	if (!strcmp(options.test, "conn")) {
		limit_conn();
		measure_end();
	}
	end_open(&end);
	meet();
	traffic_run(&end);
	measure_end();
}
