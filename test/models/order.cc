/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/*
 * Small models of the four places where the software device depends on memory order, under Relacy:
 * it runs each in every interleaving, and lets each load return any value that C11 allows. order
 * NAME [weak]: with `weak` one order is weakened, and the error must be found.
 * docs/architecture.md, "Order of memory", names the real code.
 */
#include <cstdio>
#include <cstring>
#include <relacy/relacy.hpp>

static bool weak;

/*
 * A receive slot: payload bytes, then the arrival number; the receiver polls it and returns the
 * slot, and the sender fills it once more.
 */
struct landing : rl::test_suite<landing, 2> {
	rl::atomic<unsigned> head, consumed;
	rl::var<unsigned> bytes;

	void before()
	{
		head($) = 0;
		consumed($) = 0;
	}

	void send(unsigned n)
	{
		while (consumed.load(rl::memory_order_acquire) != n - 1)
			rl::yield(1, $);
		bytes($) = 100 + n;
		head.store(n, weak ? rl::mo_relaxed : rl::mo_release, $);
	}

	void receive(unsigned n)
	{
		while (head.load(rl::memory_order_acquire) != n)
			rl::yield(1, $);
		RL_ASSERT(bytes($) == 100 + n);
		consumed.store(n, rl::memory_order_release);
	}

	void thread(unsigned index)
	{
		for (unsigned n = 1; n <= 2; n++)
			index ? receive(n) : send(n);
	}
};

/*
 * The arm word: the sender publishes a completion, then tests whether the CQ is armed; the consumer
 * arms, then polls. If the poll finds nothing, the consumer is woken.
 */
struct arming : rl::test_suite<arming, 2> {
	rl::atomic<unsigned> published, arm;
	bool woken, found;

	void before()
	{
		published($) = 0;
		arm($) = 0;
		woken = found = false;
	}

	void publish()
	{
		unsigned armed = 1;

		published.store(1, rl::memory_order_release);
		if (!weak)
			rl::atomic_thread_fence(rl::memory_order_seq_cst);
		if (arm.load(rl::memory_order_relaxed))
			woken = arm.compare_exchange_strong(armed, 0, rl::memory_order_acq_rel,
							    rl::memory_order_relaxed);
	}

	void sleep()
	{
		arm.store(1, rl::memory_order_relaxed);
		rl::atomic_thread_fence(rl::memory_order_seq_cst);
		found = published.load(rl::memory_order_acquire);
	}

	void thread(unsigned index)
	{
		index ? sleep() : publish();
	}

	void after()
	{
		RL_ASSERT(found || woken);
	}
};

/*
 * The epoch of an initiator's writes: the initiator enters, then tests its epoch; the owner closes
 * the epoch, then tests whether a sender is inside. They never have the memory both at a time.
 * Where the owner's barrier is membarrier(2), the initiator's is the compiler's alone; the kernel
 * then makes it a full one when needed.
 */
struct window : rl::test_suite<window, 2> {
	rl::atomic<unsigned> inside, closed;
	rl::var<unsigned> memory;

	void before()
	{
		inside($) = 0;
		closed($) = 0;
		memory($) = 0;
	}

	void initiate()
	{
		inside.store(1, rl::memory_order_relaxed);
		if (!weak)
			rl::atomic_thread_fence(rl::memory_order_seq_cst);
		if (!closed.load(rl::memory_order_acquire))
			memory($) = 1;
		inside.store(0, rl::memory_order_release);
	}

	void quiesce()
	{
		closed.store(1, rl::memory_order_release);
		rl::atomic_thread_fence(rl::memory_order_seq_cst);
		while (inside.load(rl::memory_order_acquire))
			rl::yield(1, $);
		memory($) = 2;
	}

	void thread(unsigned index)
	{
		index ? quiesce() : initiate();
	}
};

/*
 * The bias of a lock: its thread stores that it holds the lock, then tests that the lock is still its own; the revoker ends the
 * bias, then tests whether the thread holds the lock. Where the revoker calls membarrier(2), the thread's fence is the
 * compiler's alone. A try that finds the lock held leaves it without a bias; the next acquisition waits all the same.
 */
struct bias : rl::test_suite<bias, 2> {
	rl::atomic<unsigned> biased, by_thread, by_all;
	rl::var<unsigned> memory;

	void before()
	{
		biased($) = 1;
		by_thread($) = 0;
		by_all($) = 0;
		memory($) = 0;
	}

	bool enter()
	{
		by_thread.store(1, rl::memory_order_relaxed);
		if (!weak)
			rl::atomic_thread_fence(rl::memory_order_seq_cst);
		if (biased.load(rl::memory_order_relaxed))
			return true;
		by_thread.store(0, rl::memory_order_relaxed);
		return false;
	}

	bool take_and_revoke()
	{
		if (by_all.exchange(1, rl::memory_order_acquire))
			return false;
		if (biased.load(rl::memory_order_relaxed)) {
			biased.store(0, rl::memory_order_relaxed);
			rl::atomic_thread_fence(rl::memory_order_seq_cst);
		}
		return true;
	}

	bool is_left()
	{
		return !by_thread.load(rl::memory_order_acquire);
	}

	void acquire()
	{
		while (!take_and_revoke())
			rl::yield(1, $);
		while (!is_left())
			rl::yield(1, $);
	}

	void thread(unsigned index)
	{
		bool own = !index && enter();

		if (index && take_and_revoke()) {
			if (!is_left()) { /* the try fails */
				by_all.store(0, rl::memory_order_release);
				acquire();
			}
		} else if (!own) {
			acquire();
		}
		memory($) = index + 1;
		(own ? by_thread : by_all).store(0, rl::memory_order_release);
	}
};

template <typename model> static bool holds()
{
	rl::test_params params;

	params.search_type = rl::sched_full;
	return rl::simulate<model>(params);
}

int main(int argc, char **argv)
{
	const char *name = argc > 1 ? argv[1] : "";

	weak = argc > 2;
	if (!strcmp(name, "landing"))
		return !holds<landing>();
	if (!strcmp(name, "arming"))
		return !holds<arming>();
	if (!strcmp(name, "window"))
		return !holds<window>();
	if (!strcmp(name, "bias"))
		return !holds<bias>();
	fprintf(stderr, "usage: %s landing|arming|window|bias [weak]\n", argv[0]);
	return 2;
}
