/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/*
 * A thread that sleeps on the arm word of a CQ until the CQ fires. It costs a system call, and another one of the thread that
 * completes work; by the channel, it would be poll(2), a read and a write.
 */
#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "softverbs/object/cq.h"

/* With a timeout the kernel does not begin FUTEX_WAIT anew after a signal handler with SA_RESTART. */
static const struct timespec long_time = { .tv_sec = 3600 };

/* Peers wake the thread, so the futex is not a private one. */
static long word_wait(_Atomic(uint32_t) *word, uint32_t value, const struct timespec *timeout)
{
	return syscall(SYS_futex, word, FUTEX_WAIT, value, timeout, NULL, 0);
}

void sv_cq_block_wake(struct cq_by_peers *by_peers, uint32_t arm)
{
	if (arm & ARM_BLOCKED)
		syscall(SYS_futex, &by_peers->arm, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

bool ibv_block_begin(struct ibv_cq *ibv)
{
	struct sv_cq *cq = cq_of(ibv);
	uint32_t arm;
	bool begins;

	lock_acquire(&cq->lock);
	arm = atomic_load_explicit(&cq->by_peers->arm, memory_order_relaxed);
	do
		begins = arm_is_for_program(arm) && !(arm & ARM_BLOCKED);
	while (begins &&
	       !atomic_compare_exchange_weak_explicit(&cq->by_peers->arm, &arm, arm | ARM_BLOCKED,
						      memory_order_relaxed, memory_order_relaxed));
	if (begins)
		cq->blocks_on = arm | ARM_BLOCKED;
	lock_release(&cq->lock);
	return begins;
}

int ibv_block(struct ibv_cq *ibv, const struct timespec *timeout)
{
	struct sv_cq *cq = cq_of(ibv);
	long result;
	int error;

	/* as in system calls that are cancellation points; nothing is held */
	pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, NULL);
	result = word_wait(&cq->by_peers->arm, cq->blocks_on, timeout ? timeout : &long_time);
	error = result ? errno : 0;
	pthread_setcanceltype(PTHREAD_CANCEL_DEFERRED, NULL);
	return error == EAGAIN || error == ETIMEDOUT ? 0 : error;
}

void ibv_block_interrupt(struct ibv_cq *ibv)
{
	struct cq_by_peers *by_peers = cq_of(ibv)->by_peers;
	uint32_t arm = atomic_load(&by_peers->arm);
	int saved = errno;

	while (arm & ARM_BLOCKED)
		if (atomic_compare_exchange_weak(&by_peers->arm, &arm, arm | ARM_INTERRUPTED))
			break;
	sv_cq_block_wake(by_peers, arm);
	errno = saved;
}

bool ibv_block_end(struct ibv_cq *ibv)
{
	struct sv_cq *cq = cq_of(ibv);
	uint32_t arm;
	bool fired;

	lock_acquire(&cq->lock);
	do /* a completion disarms the CQ before, and is for this thread, or after, and is for the channel */
		arm = sv_cq_event_count_locked(cq);
	while (!atomic_compare_exchange_weak_explicit(&cq->by_peers->arm, &arm,
						      arm & ~(uint32_t)(ARM_BLOCKED |
									ARM_INTERRUPTED),
						      memory_order_acquire, memory_order_relaxed));
	fired = cq->unblocked;
	cq->unblocked = false;
	lock_release(&cq->lock);
	return fired;
}
