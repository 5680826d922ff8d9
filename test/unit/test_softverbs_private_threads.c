/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* SOFTVERBS_DIRECT=private in a program whose threads and signal handlers store while their memory moves. */
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>
#include "softverbs/base/kernel.h"
#include "test/unit/denied.h"
#include "test/unit/private_rig.h"

#define WRITERS 3u

static struct writer {
	pthread_t thread;
	_Atomic(bool) stop;
	volatile uint64_t *word;
	uint64_t stored, lost;
} writers[WRITERS];

/* Each word has one writer, so it holds what the writer stored last. */
static void *writer_run(void *arg)
{
	struct writer *writer = arg;

	while (!atomic_load(&writer->stop)) {
		for (unsigned i = 0; i < 1000; i++) {
			*writer->word = ++writer->stored;
			writer->lost += *writer->word != writer->stored;
		}
	}
	return NULL;
}

/* A queue pair beside the rig's, and the thread of the target that reads by it from the initiator. */
static struct reader {
	pthread_t thread;
	_Atomic(bool) stop;
	struct ibv_cq *cq;
	struct ibv_qp *qp;
	struct ibv_mr *mr; /* the initiator's of `source`, the target's of `word` */
	uint64_t source[2], wrong;
	uint32_t rkey;
	volatile uint64_t *word;
} reader = { .source = { 0x1111111111111111, 0x2222222222222222 } };

static bool reader_open(struct rig *rig)
{
	struct ibv_qp_init_attr attr = {
		.qp_type = IBV_QPT_RC,
		.cap = { .max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1 },
	};

	reader.cq = ibv_create_cq(rig->node.context, 8, NULL, NULL, 0);
	attr.send_cq = attr.recv_cq = reader.cq;
	reader.qp = ibv_create_qp(rig->node.pd, &attr);
	return reader.qp;
}

static void reader_close(void)
{
	CU_ASSERT_EQUAL(ibv_destroy_qp(reader.qp), 0);
	CU_ASSERT_EQUAL(ibv_destroy_cq(reader.cq), 0);
	CU_ASSERT_EQUAL(ibv_dereg_mr(reader.mr), 0);
}

static uint64_t reader_connect(struct rig *rig, uint64_t qpn)
{
	return reader_open(rig) && node_qp_connect(reader.qp, (uint32_t)qpn, &rig->node.options)
		       ? reader.qp->qp_num
		       : 0;
}

static bool reader_read(unsigned which)
{
	struct ibv_sge sge = { (uintptr_t)reader.word, 8, reader.mr->lkey };
	struct ibv_send_wr wr = { .sg_list = &sge,
				  .num_sge = 1,
				  .opcode = IBV_WR_RDMA_READ,
				  .send_flags = IBV_SEND_SIGNALED,
				  .wr.rdma = { (uintptr_t)&reader.source[which], reader.rkey } },
			   *bad;
	struct ibv_wc wc;
	int n;

	if (ibv_post_send(reader.qp, &wr, &bad))
		return false;
	while (!(n = ibv_poll_cq(reader.cq, 1, &wc)))
		sched_yield();
	return n == 1 && wc.status == IBV_WC_SUCCESS;
}

/* The kernel stores for this thread, and must not be refused while memory moves. */
static void *reader_run(void *arg)
{
	for (unsigned n = 0; !atomic_load(&reader.stop); n++)
		reader.wrong += !reader_read(n % 2) || *reader.word != reader.source[n % 2];
	return arg;
}

/* offset:32 | key of the source:32 */
static uint64_t reader_start(struct rig *rig, uint64_t arg)
{
	reader.word = (uint64_t *)(rig->memory + (arg >> 32));
	reader.rkey = (uint32_t)arg;
	reader.mr = ibv_reg_mr(rig->node.pd, rig->memory + (arg >> 32), 8, IBV_ACCESS_LOCAL_WRITE);
	return reader.mr && !pthread_create(&reader.thread, NULL, reader_run, NULL);
}

static uint64_t reader_stop(struct rig *rig, uint64_t unused)
{
	(void)rig, (void)unused;
	atomic_store(&reader.stop, true);
	pthread_join(reader.thread, NULL);
	reader_close();
	return reader.wrong;
}

static bool reader_begin(struct rig *rig, uint64_t offset)
{
	uint64_t qpn = reader_open(rig) ? rig_call(rig, reader_connect, reader.qp->qp_num) : 0;

	reader.mr = ibv_reg_mr(rig->node.pd, reader.source, sizeof(reader.source), RIG_ALL);
	return qpn && reader.mr && node_qp_connect(reader.qp, (uint32_t)qpn, &rig->node.options) &&
	       rig_call(rig, reader_start, offset << 32 | reader.mr->rkey);
}

static uint64_t writers_start(struct rig *rig, uint64_t unused)
{
	(void)unused;
	for (unsigned i = 0; i < WRITERS; i++) {
		writers[i].word = (uint64_t *)(rig->memory + i * PAGE + 512);
		if (pthread_create(&writers[i].thread, NULL, writer_run, &writers[i]))
			return 0;
	}
	return 1;
}

static uint64_t writers_stop(struct rig *rig, uint64_t unused)
{
	uint64_t lost = 0;

	(void)rig, (void)unused;
	for (unsigned i = 0; i < WRITERS; i++) {
		atomic_store(&writers[i].stop, true);
		pthread_join(writers[i].thread, NULL);
		lost += writers[i].lost + (*writers[i].word != writers[i].stored);
	}
	return lost;
}

/* 1 if a child that one thread forks, while others store, has its own copy. */
static uint64_t fork_among_threads(struct rig *rig, uint64_t unused)
{
	int status = 1;
	pid_t child = fork();

	(void)unused;
	if (!child)
		_exit(is_pooled(rig, 0) ? 1 : 0);
	return child > 0 && waitpid(child, &status, 0) == child && !status;
}

/* Adds 1 until the word is mapped, or the deadline; returns how often. */
static uint64_t add_until_mapped(struct rig *rig, uint64_t deadline)
{
	uint64_t old, sum = 0;

	do {
		CU_ASSERT_EQUAL(rig_add(rig, 0, 1, &old), IBV_WC_SUCCESS);
		sum++;
	} while (!sv_direct_count() && clock_now() < deadline);
	return sum;
}

#define SWAPS 40u

/*
 * Threads of the program store without a pause while their pages move to and fro under a peer's adds. On a busy machine the
 * device may not become still in the tries that one registration has, so there are more rounds than swaps.
 */
static void threads_store(void)
{
	uint64_t sum = 0, patience = UNIT_PATIENCE / 4 * NSEC_PER_MSEC;
	unsigned swaps = 0;
	struct rig rig;

	CU_ASSERT_TRUE_FATAL(private_begin(&rig));
	CU_ASSERT_EQUAL(rig_call(&rig, writers_start, 0), 1);
	CU_ASSERT_TRUE_FATAL(reader_begin(&rig, 2 * PAGE + 1024));
	for (unsigned round = 0; swaps < SWAPS && round < 2 * SWAPS && patience; round++) {
		CU_ASSERT_TRUE_FATAL(rig_register(&rig, 0, 1 << 20, RIG_ALL));
		sum += add_until_mapped(&rig, clock_now() + patience);
		if (sv_direct_count())
			swaps++;
		else if (!round)
			patience = 0; /* the kernel does not hold threads for this user */
		CU_ASSERT_EQUAL(rig_call(&rig, load, 0), sum);
		CU_ASSERT_EQUAL(rig_call(&rig, fork_among_threads, 0), 1);
		CU_ASSERT_EQUAL(rig_deregister(&rig), 0);
		CU_ASSERT_EQUAL(rig_call(&rig, load, 0), sum);
		CU_ASSERT_TRUE(unit_wait_for(rig_is_unmapped, NULL, UNIT_PATIENCE));
	}
	CU_ASSERT_EQUAL(rig_call(&rig, reader_stop, 0), 0);
	reader_close();
	CU_ASSERT_EQUAL(rig_call(&rig, writers_stop, 0), 0);
	CU_ASSERT(!patience || swaps == SWAPS);
	printf("%u swaps under stores\n", swaps);
	rig_close(&rig);
}

static uint64_t deny_userfaultfd(struct rig *rig, uint64_t unused)
{
	(void)rig, (void)unused;
	return deny_calls(SYS_userfaultfd, SYS_userfaultfd);
}

/* Where the kernel does not hold threads, memory stays where it is. */
static void threads_cannot_be_held(void)
{
	struct rig rig;

	CU_ASSERT_TRUE_FATAL(private_begin(&rig));
	CU_ASSERT_EQUAL(rig_call(&rig, writers_start, 0), 1);
	CU_ASSERT_EQUAL(rig_call(&rig, deny_userfaultfd, 0), 1);
	CU_ASSERT_TRUE_FATAL(rig_register(&rig, 0, 1 << 20, RIG_ALL));
	CU_ASSERT_TRUE(stays_private(&rig));
	CU_ASSERT_EQUAL(rig_call(&rig, is_pooled, 0), 0);
	CU_ASSERT_EQUAL(rig_deregister(&rig), 0);
	CU_ASSERT_EQUAL(rig_call(&rig, writers_stop, 0), 0);
	rig_close(&rig);
}

/* ---- signals ---- */

static volatile uint64_t *handler_word, handler_count;

static void handler(int sig)
{
	(void)sig;
	++handler_count;
	++*handler_word;
}

static uint64_t handlers_start(struct rig *rig, uint64_t offset)
{
	const struct itimerval often = { { 0, 100 }, { 0, 100 } };

	handler_word = (uint64_t *)(rig->memory + offset);
	return signal(SIGALRM, handler) == SIG_ERR || setitimer(ITIMER_REAL, &often, NULL);
}

/* How many stores of handlers are lost. */
static uint64_t handlers_stop(struct rig *rig, uint64_t unused)
{
	const struct itimerval never = { { 0, 0 }, { 0, 0 } };

	(void)rig, (void)unused;
	setitimer(ITIMER_REAL, &never, NULL);
	return handler_count ? handler_count - *handler_word : UINT64_MAX;
}

static void handlers_store(void)
{
	struct rig rig;

	CU_ASSERT_TRUE_FATAL(private_begin(&rig));
	CU_ASSERT_EQUAL(rig_call(&rig, handlers_start, 1024), 0);
	for (unsigned round = 0; round < 40; round++) {
		CU_ASSERT_TRUE_FATAL(rig_register(&rig, 0, 1 << 20, RIG_ALL) && rig_map(&rig));
		CU_ASSERT_EQUAL(rig_deregister(&rig), 0);
		CU_ASSERT_TRUE(unit_wait_for(rig_is_unmapped, NULL, UNIT_PATIENCE));
	}
	CU_ASSERT_EQUAL(rig_call(&rig, handlers_stop, 0), 0);
	rig_close(&rig);
}

/* ---- later ---- */

/* As while another thread changes the queue pair, so that the device cannot become still. */
static uint64_t deregister_meanwhile(struct rig *rig, uint64_t unused)
{
	pthread_mutex_t *modify = &qp_of(rig->node.qp[0])->modify;
	int error;

	(void)unused;
	pthread_mutex_lock(modify);
	error = ibv_dereg_mr(rig->mr);
	pthread_mutex_unlock(modify);
	return (uint64_t)error;
}

/* Memory that cannot come back when it is deregistered does so with the next region. */
static void comes_back_later(void)
{
	struct rig rig;

	CU_ASSERT_TRUE_FATAL(private_begin(&rig) && rig_register(&rig, 0, 4 * PAGE, RIG_ALL) &&
			     rig_map(&rig));
	rig_call(&rig, store, 64);
	CU_ASSERT_EQUAL(rig_call(&rig, deregister_meanwhile, 0), 0);
	CU_ASSERT_TRUE(unit_wait_for(rig_is_unmapped, NULL, UNIT_PATIENCE));
	CU_ASSERT_EQUAL(rig_call(&rig, is_pooled, 0), 1);
	CU_ASSERT_EQUAL(rig_call(&rig, load, 64), ~64ull);
	CU_ASSERT_TRUE_FATAL(rig_register(&rig, 8 * PAGE, PAGE, RIG_ALL) && rig_map(&rig));
	CU_ASSERT_EQUAL(rig_call(&rig, is_pooled, 0), 0);
	CU_ASSERT_EQUAL(rig_call(&rig, load, 64), ~64ull);
	CU_ASSERT_EQUAL(rig_deregister(&rig), 0);
	CU_ASSERT_EQUAL(rig_call(&rig, is_pooled, 8 * PAGE), 0);
	rig_close(&rig);
}

/* ---- a thread that was cancelled ---- */

static uint64_t polls_set(struct rig *rig, uint64_t polls)
{
	rig->polls = polls;
	return 0;
}

static uint64_t is_asked(struct rig *rig, uint64_t unused)
{
	(void)rig, (void)unused;
	return sv_area_own()->files.asks;
}

static bool writes_and_is_asked(void *arg)
{
	struct rig *rig = arg;

	return rig_move(rig, IBV_WR_RDMA_WRITE, 0, 0, 64) || rig_call(rig, is_asked, 0);
}

/* Whether the kernel can hold threads that store; without that, memory of a process with threads stays. */
static bool kernel_holds_threads(void)
{
	struct uffdio_api api = { .api = UFFD_API, .features = UFFD_FEATURE_PAGEFAULT_FLAG_WP };
	int fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC | UFFD_USER_MODE_ONLY);
	bool holds = fd >= 0 && !ioctl(fd, UFFDIO_API, &api);

	if (fd >= 0)
		close(fd);
	return holds;
}

/* The loop has no cancellation point: a poll is none. */
static void *polls_until_swapped(void *arg)
{
	struct rig *rig = arg;
	const struct region_entry *region = &sv_area_own()->by_owner->region[rig->mr->lkey >> 16];
	uint64_t patience = kernel_holds_threads() ? UNIT_PATIENCE : 100;
	uint64_t deadline = clock_now() + patience * NSEC_PER_MSEC;
	struct ibv_wc wc;

	pthread_cancel(pthread_self());
	do
		ibv_poll_cq(rig->node.cq, 1, &wc);
	while (!sv_file_is_pool(region) && clock_now() < deadline);
	return rig;
}

/* 1 if the thread lived until the memory was swapped, if the kernel allows that. */
static uint64_t polls_cancelled(struct rig *rig, uint64_t unused)
{
	pthread_t thread;
	void *result;

	(void)unused;
	return !pthread_create(&thread, NULL, polls_until_swapped, rig) &&
	       !pthread_join(thread, &result) && result == rig &&
	       is_pooled(rig, 0) == kernel_holds_threads();
}

/* The engine moves memory for a thread that waits for it in a poll, and that must not end there. */
static void cancelled_in_a_poll(void)
{
	struct rig rig;

	CU_ASSERT_TRUE_FATAL(private_begin(&rig));
	rig_call(&rig, polls_set, false);
	CU_ASSERT_TRUE_FATAL(rig_register(&rig, 0, 1 << 20, RIG_ALL));
	CU_ASSERT_TRUE(unit_wait_for(writes_and_is_asked, &rig, UNIT_PATIENCE));
	CU_ASSERT_EQUAL(rig_call(&rig, polls_cancelled, 0), 1);
	CU_ASSERT_EQUAL(rig_deregister(&rig), 0);
	rig_close(&rig);
}

static const struct unit_test tests[] = {
	{ "threads store while memory moves", threads_store },
	{ "threads that cannot be held", threads_cannot_be_held },
	{ "signal handlers store while memory moves", handlers_store },
	{ "memory that comes back later", comes_back_later },
	{ "a thread that was cancelled polls", cancelled_in_a_poll },
};

UNIT_MAIN_UNLESS(PROCESS_TSAN, "nothing is direct under the thread sanitizer",
		 "softverbs_private_threads", tests)
