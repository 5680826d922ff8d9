/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/*
 * Atomic operations of several processes and threads on one word: none is lost, none is executed
 * twice, and a process that is stopped or killed in the middle of one delays no other.
 */
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
#include "test/conform/remote.h"
#include "util/clock.h"

#define ALL    (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_ATOMIC)
#define ROUNDS 40u
#define BEGUN  800u
#define MANY   1000000000u /* more than fit into the time of a test */

/* ---- a word of this process, and processes that add to it ---- */

struct adder {
	struct remote peer;
	struct side here;
	struct ibv_mr *mr; /* of the word */
};

static _Alignas(8) _Atomic(uint64_t) word;

static bool adder_open(struct adder *adder)
{
	if (!remote_open(&adder->peer, &adder->here, NULL))
		return false;
	adder->mr = ibv_reg_mr(adder->here.pd, &word, sizeof(word), ALL);
	CU_ASSERT_PTR_NOT_NULL_FATAL(adder->mr);
	return true;
}

static void adder_close(struct adder *adder, bool killed)
{
	if (killed)
		remote_kill(&adder->peer);
	else
		remote_close(&adder->peer);
	CU_ASSERT_EQUAL(ibv_dereg_mr(adder->mr), 0);
	side_close(&adder->here);
}

static bool adder_start(struct adder *adder, uint64_t amount, uint32_t count)
{
	return remote_add_start(&adder->peer, &word, adder->mr->rkey, amount, count);
}

static bool adder_adds(struct adder *adder, uint64_t amount, uint32_t count)
{
	return adder_start(adder, amount, count) && remote_add_end(&adder->peer);
}

static bool has_atomics(void)
{
	if (device_attr.atomic_cap == IBV_ATOMIC_NONE)
		skip("no atomics");
	return device_attr.atomic_cap != IBV_ATOMIC_NONE;
}

static void pause_for(uint64_t nanoseconds)
{
	uint64_t end = clock_now() + nanoseconds;

	while (clock_now() < end)
		;
}

/* ---- stopped ---- */

static void stop(struct adder *adder)
{
	int status;

	CU_ASSERT_EQUAL(kill(adder->peer.pid, SIGSTOP), 0);
	CU_ASSERT_EQUAL_FATAL(waitpid(adder->peer.pid, &status, WUNTRACED), adder->peer.pid);
	CU_ASSERT_TRUE_FATAL(WIFSTOPPED(status));
}

static bool has_begun(void *arg)
{
	return atomic_load(&word) > *(uint64_t *)arg;
}

/*
 * The process is stopped at varying instants of several operations. When it continues, it brings no
 * old value back.
 */
static void stopped_in_the_middle(void)
{
	struct adder stopped, other;
	uint64_t last = 0, middle = 0;

	if (device_attr.atomic_cap != IBV_ATOMIC_GLOB) {
		skip("its atomics are not atomic towards the processor's");
		return;
	}
	if (!adder_open(&stopped) || !adder_open(&other))
		return;
	atomic_store(&word, 0);
	for (uint32_t i = 0; i < ROUNDS; i++) {
		CU_ASSERT_TRUE_FATAL(adder_start(&stopped, 1, BEGUN));
		CU_ASSERT_TRUE(unit_wait_for(has_begun, &last, PATIENCE));
		pause_for(i * 137ull);
		stop(&stopped);
		if (!adder_adds(&other, 1, 5)) {
			CU_FAIL("the other process waits for the stopped one");
			remote_kill(&stopped.peer);
			remote_kill(&other.peer);
			return;
		}
		atomic_fetch_add(&word, 1); /* while the process is stopped */
		middle += atomic_load(&word) < last + BEGUN + 6;
		CU_ASSERT_EQUAL(kill(stopped.peer.pid, SIGCONT), 0);
		CU_ASSERT_TRUE(remote_add_end(&stopped.peer));
		last = atomic_load(&word);
		CU_ASSERT_EQUAL(last, (i + 1ull) * (BEGUN + 6));
	}
	CU_ASSERT_TRUE(middle); /* some round stopped it at work */
	adder_close(&other, false);
	adder_close(&stopped, false);
}

/* While the owner of the memory is stopped, a post returns, and waiting requests can be flushed. */
static void stopped_owner(void)
{
	struct adder adder;
	struct ibv_wc wc;

	if (!has_atomics() || !adder_open(&adder))
		return;
	stop(&adder);
	CU_ASSERT_EQUAL(post_atomic(&adder.here, IBV_WR_ATOMIC_FETCH_AND_ADD, 1, 0,
				    &adder.peer.side, 64, 1, 0),
			0);
	CU_ASSERT_EQUAL(move_to(adder.here.qp, IBV_QPS_ERR), 0);
	CU_ASSERT_TRUE(poll_one(adder.here.scq, &wc));
	CU_ASSERT_TRUE(wc.status == IBV_WC_WR_FLUSH_ERR || wc.status == IBV_WC_SUCCESS);
	CU_ASSERT_EQUAL(kill(adder.peer.pid, SIGCONT), 0);
	adder_close(&adder, false);
}

/* ---- killed ---- */

/* Each killed process adds to the upper half, so that the lower half is exact. */
static void killed_at_random(void)
{
	unsigned seed = (unsigned)clock_now();
	struct adder other;

	if (!has_atomics() || !adder_open(&other))
		return;
	printf("seed %u ", seed);
	atomic_store(&word, 0);
	for (uint32_t i = 0; i < 12; i++) {
		struct adder killed;

		if (!adder_open(&killed))
			break;
		CU_ASSERT_TRUE(adder_start(&killed, 1ull << 32, MANY));
		/* a process that posts without end does not keep others from the owner */
		CU_ASSERT_TRUE_FATAL(adder_adds(&other, i % 2, 50));
		pause_for((uint64_t)(rand_r(&seed) % 100) * NSEC_PER_USEC);
		CU_ASSERT_EQUAL(kill(killed.peer.pid, SIGKILL), 0);
		CU_ASSERT_TRUE_FATAL(adder_adds(&other, 1, 50));
		adder_close(&killed, true);
	}
	CU_ASSERT_EQUAL(atomic_load(&word) & UINT32_MAX, 12 * 100);
	adder_close(&other, false);
}

/* ---- many at once ---- */

#define THREADS 2
/* Under the thread sanitizer fewer take as long. */
#ifdef __SANITIZE_THREAD__
#define EACH 500u
#else
#define EACH 2000u
#endif

static void *thread_adds(void *arg)
{
	struct pair pair;
	struct side target = { .buffer = (char *)&word };
	bool *good = arg;

	if (!pair_open(&pair, NULL))
		return NULL;
	target.mr = ibv_reg_mr(pair.b.pd, &word, sizeof(word), ALL);
	*good = target.mr;
	for (uint32_t i = 0; i < EACH && *good; i++)
		*good = !post_atomic(&pair.a, IBV_WR_ATOMIC_FETCH_AND_ADD, i, 0, &target, 0, 1,
				     0) &&
			completes(pair.a.scq, i, IBV_WC_SUCCESS, NULL);
	*good = *good && !ibv_dereg_mr(target.mr);
	pair_close(&pair);
	return NULL;
}

/*
 * Where the device says that both may be mixed, the processor's own atomic instructions are used,
 * too.
 */
static void all_at_once(void)
{
	bool mixed = device_attr.atomic_cap == IBV_ATOMIC_GLOB, good[THREADS] = { false };
	struct adder adder[4];
	pthread_t thread[THREADS];

	if (!has_atomics())
		return;
	for (size_t i = 0; i < COUNT(adder); i++)
		if (!adder_open(&adder[i]))
			return;
	atomic_store(&word, 0);
	for (size_t i = 0; i < COUNT(adder); i++)
		CU_ASSERT_TRUE(adder_start(&adder[i], i % 2, EACH));
	for (size_t i = 0; i < THREADS; i++)
		CU_ASSERT_EQUAL_FATAL(pthread_create(&thread[i], NULL, thread_adds, &good[i]), 0);
	for (uint32_t i = 0; i < EACH && mixed; i++)
		atomic_fetch_add(&word, 1);
	for (size_t i = 0; i < THREADS; i++) {
		pthread_join(thread[i], NULL);
		CU_ASSERT_TRUE(good[i]);
	}
	for (size_t i = 0; i < COUNT(adder); i++)
		CU_ASSERT_TRUE(remote_add_end(&adder[i].peer));
	CU_ASSERT_EQUAL(atomic_load(&word), (COUNT(adder) + THREADS + mixed) * EACH);
	for (size_t i = 0; i < COUNT(adder); i++)
		adder_close(&adder[i], false);
}

/* ---- each once ---- */

struct counter {
	struct adder adder;
	uint64_t count; /* the value of the word */
	bool good;
	atomic_bool stop;
};

/* This thread alone adds, so it gets every number once and in order. */
static void *counts(void *arg)
{
	struct counter *counter = arg;
	struct side *here = &counter->adder.here;
	uint64_t old;

	while (counter->good && !atomic_load(&counter->stop)) {
		counter->good = !post_atomic(here, IBV_WR_ATOMIC_FETCH_AND_ADD, counter->count, 0,
					     &counter->adder.peer.side, 64, 1, 0) &&
				completes(here->scq, counter->count, IBV_WC_SUCCESS, NULL);
		memcpy(&old, here->buffer, sizeof(old));
		counter->good = counter->good && old == counter->count++;
	}
	return NULL;
}

/* The SRQ of the other side is resized while the operations arrive. */
static void once_while_the_srq_grows(void)
{
	static struct counter counter;
	const struct pair_options options = { .srq_wr = 16 };
	pthread_t thread;

	if (!has_atomics())
		return;
	counter = (struct counter){ .good = true };
	if (!remote_open(&counter.adder.peer, &counter.adder.here, &options))
		return;
	CU_ASSERT_EQUAL(post_atomic(&counter.adder.here, IBV_WR_ATOMIC_FETCH_AND_ADD, 1, 0,
				    &counter.adder.peer.side, 64, 0, 0),
			0);
	CU_ASSERT_TRUE(completes(counter.adder.here.scq, 1, IBV_WC_SUCCESS, NULL));
	memcpy(&counter.count, counter.adder.here.buffer, sizeof(counter.count));
	CU_ASSERT_EQUAL_FATAL(pthread_create(&thread, NULL, counts, &counter), 0);
	for (uint32_t size = 17; size <= 1000; size += 8)
		if (!remote_srq_grow(&counter.adder.peer, size))
			break;
	atomic_store(&counter.stop, true);
	pthread_join(thread, NULL);
	CU_ASSERT_TRUE(counter.good);
	remote_close(&counter.adder.peer);
	side_close(&counter.adder.here);
}

static const struct unit_test tests[] = {
	{ "a process stopped in an atomic operation holds up no other, and loses nothing",
	  stopped_in_the_middle },
	{ "the owner of the memory is stopped: posts return, requests can be flushed",
	  stopped_owner },
	{ "processes killed in atomic operations", killed_at_random },
	{ "fetch and add, compare and swap, of processes and threads on one word", all_at_once },
	{ "each is made once while the SRQ is resized", once_while_the_srq_grows },
};

/* Runs the suite again in a process of its own, whose peers inherit its environment. */
static int in_way(const char *way)
{
	pid_t pid = fork();
	int status = -1;

	if (!pid) {
		setenv("SOFTVERBS_COPY", way, 1);
		execl("/proc/self/exe", "conform_atomic", (char *)NULL);
		_exit(127);
	}
	return waitpid(pid, &status, 0) == pid && WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

/*
 * The suite runs once where the ways do not matter: on a device of the kernel, which knows nothing of them, and with the other
 * processes on another host.
 */
int main(int argc, char **argv)
{
	bool opened;

	remote_main(argc, argv);
	opened = conform_open();
	if (opened && argc == 1 && !device_is_rxe && !getenv("CONFORM_PEER_NET") &&
	    !getenv("SOFTVERBS_COPY")) {
		int pvm = in_way("pvm"), memfd = in_way("memfd"), bounce = in_way("bounce");

		return pvm ? pvm : memfd ? memfd : bounce;
	}
	return opened ? unit_main("conform_atomic", tests, COUNT(tests), argc, argv) : 77;
}
