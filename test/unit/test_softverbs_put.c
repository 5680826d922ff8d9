/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/*
 * Two processes that see each other's writes only in memory: the target polls the last word of a
 * write and then reads all of it; the initiator polls the word of its credits. Neither polls its CQ
 * before its queue is full.
 */
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/mman.h>
#include <infiniband/verbs.h>
#include "softverbs/rc/direct.h"
#include "test/unit/node.h"
#include "test/unit/storm.h"

#define SLOTS	  8u
#define SLOT	  (1u << 17)
#define LONGEST	  (1u << 16)
#define CREDIT	  (SLOTS * SLOT) /* offset of the word behind the slots */
#define SIGNALLED 16u		 /* one write in so many is signalled */
#define REPORT	  500u		 /* writes between two reports to the test */
#define LONG_PUTS 10000000u	 /* writes with LONG_SECONDS, if the time suffices */
#define STILL	  (UNIT_PATIENCE * NSEC_PER_MSEC)

#if defined(__SANITIZE_ADDRESS__)
#define CHECKED true /* each byte that either end looks at */
#else
#define CHECKED false
#endif

struct put_loop {
	const char *copy;  /* value of SOFTVERBS_COPY */
	enum sv_copy done; /* the resulting copy class */
	unsigned seed;
	unsigned seconds;
	uint32_t writes; /* the least number of writes */
	bool yields;	 /* the spinning ends leave a core to the engine often */
	bool rough;	 /* both ends share a processor, and are stopped and continued */
	int direct;	 /* into memory that the other end can map (1), open (2), or swaps (3) */
};

/* ---- write number n, as both ends compute it ---- */

struct write {
	uint32_t n, length, begin; /* offset in the memory */
};

static uint32_t noise(unsigned seed, uint32_t n)
{
	uint64_t x = ((uint64_t)seed << 32 | n) * 0x9e3779b97f4a7c15ull;

	x ^= x >> 29;
	x *= 0xbf58476d1ce4e5b9ull;
	return (uint32_t)(x >> 32);
}

/* Most writes are short; those of four bytes or more end at a word boundary. */
static struct write write_of(unsigned seed, uint32_t n)
{
	uint32_t bits = noise(seed, n), most = 1u << bits % 17, length = 1 + (bits >> 5) % most,
		 end;

	end = LONGEST + (noise(seed + 1, n) % LONGEST & ~3u);
	return (struct write){ n, length, n % SLOTS * SLOT + end - length };
}

static uint8_t byte_of(const struct write *w, uint32_t i)
{
	return (uint8_t)(w->n * 31 + i * 7 + (i >> 8));
}

/* Polls a word, or a byte for the shortest writes. */
static bool is_there(const uint8_t *memory, const struct write *w)
{
	const uint8_t *end = memory + w->begin + w->length;

	if (w->length < 4)
		return __atomic_load_n(end - 1, __ATOMIC_ACQUIRE) == (uint8_t)w->n;
	return __atomic_load_n((const uint32_t *)(const void *)(end - 4), __ATOMIC_ACQUIRE) == w->n;
}

static void tail_set(uint8_t *memory, const struct write *w, uint32_t value)
{
	uint8_t *end = memory + w->begin + w->length;

	if (w->length < 4)
		end[-1] = (uint8_t)value;
	else
		memcpy(end - 4, &value, 4);
}

static uint32_t body(const struct write *w)
{
	return w->length < 4 ? w->length - 1 : w->length - 4;
}

static bool is_whole(const uint8_t *memory, const struct write *w)
{
	for (uint32_t i = 0; i < body(w); i++)
		if (memory[w->begin + i] != byte_of(w, i))
			return false;
	return true;
}

/* ---- both ends ---- */

struct spin {
	bool yields;
	uint32_t polls;
	uint64_t deadline;
};

/*
 * One more poll of a word; returns false when the word has stood still for too long. The other end may wait for this
 * processor, so after some polls each end leaves it.
 */
static bool spin_on(struct spin *spin)
{
	spin->polls++;
	if (spin->polls % (spin->yields ? 64 : 5000) == 0)
		sched_yield();
	if (spin->polls % 100000)
		return true;
	if (!spin->deadline)
		spin->deadline = clock_now() + STILL;
	return clock_now() < spin->deadline;
}

struct putter {
	struct node node;
	uint64_t address;
	uint32_t key, posted;
};

static bool put(struct putter *p, uint32_t from, uint32_t to, uint32_t length)
{
	struct ibv_sge sge = node_sge(&p->node, from, length);
	struct ibv_send_wr wr = {
		.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_RDMA_WRITE,
		.send_flags = p->posted++ % SIGNALLED ? 0 : IBV_SEND_SIGNALED,
		.wr.rdma = { p->address + to, p->key },
	}, *bad;
	uint64_t deadline = clock_now() + STILL;
	struct ibv_wc wc;
	int err;

	/* the CQ is polled only when the queue is full */
	while ((err = ibv_post_send(p->node.qp[0], &wr, &bad)) == ENOMEM && clock_now() < deadline)
		while (ibv_poll_cq(p->node.cq, 1, &wc) == 1)
			if (wc.status)
				return false;
	return !err;
}

static uint8_t *memfd_memory(size_t size, int seals)
{
	int fd = memfd_create("put", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	void *at;

	if (fd < 0 || ftruncate(fd, (off_t)size) || fcntl(fd, F_ADD_SEALS, seals))
		return NULL;
	at = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	return at == MAP_FAILED ? NULL : at;
}

static bool putter_open(struct putter *p, int fd, int direct)
{
	struct node_options options = { .memory = CREDIT + 64 };
	uint64_t key;

	memset(p, 0, sizeof(*p));
	setenv("SOFTVERBS_DIRECT", direct == 3 ? "private" : "shared", 1);
	if (direct == 1 || direct == 2)
		options.at =
			memfd_memory(options.memory, direct == 1 ? F_SEAL_SHRINK : F_SEAL_GROW);
	if (((direct == 1 || direct == 2) && !options.at) || !node_open(&p->node, &options) ||
	    !node_connect(&p->node, 0, 1, fd) || !process_say(fd, (uintptr_t)p->node.memory) ||
	    !process_hear(fd, &p->address) || !process_say(fd, p->node.mr->rkey) ||
	    !process_hear(fd, &key))
		return false;
	p->key = (uint32_t)key;
	return true;
}

/* ---- the target ---- */

static bool wait_for_write(const struct put_loop *loop, const struct putter *p,
			   const struct write *w)
{
	struct spin spin = { .yields = loop->yields };

	while (!is_there(p->node.memory, w))
		if (!spin_on(&spin))
			return false;
	return true;
}

static int run_target(int fd, void *arg)
{
	const struct put_loop *loop = arg;
	static struct putter p;
	uint32_t n;

	setenv("SOFTVERBS_COPY", loop->copy, 1);
	if (!putter_open(&p, fd, loop->direct))
		return 1;
	for (n = 0; n < SLOTS; n++) {
		struct write w = write_of(loop->seed, n);

		tail_set(p.node.memory, &w, ~n);
	}
	process_say(fd, 1);
	for (n = 0;; n++) {
		struct write w = write_of(loop->seed, n), next = write_of(loop->seed, n + SLOTS);

		if (!wait_for_write(loop, &p, &w))
			break;
		if (!is_whole(p.node.memory, &w)) {
			fprintf(stderr, "write %u of %u bytes is not whole\n", n, w.length);
			return 3;
		}
		tail_set(p.node.memory, &next, ~(n + SLOTS));
		memcpy(p.node.memory + CREDIT + 4 + n % SLOTS * 4, &(uint32_t){ n + 1 }, 4);
		if (!put(&p, CREDIT + 4 + n % SLOTS * 4, CREDIT, 4))
			return 4;
	}
	fprintf(stderr, "write %u does not come\n", n);
	return 2;
}

/* ---- rough conditions ---- */

static void share_a_processor(void)
{
	cpu_set_t one;

	CPU_ZERO(&one);
	CPU_SET(sched_getcpu(), &one);
	sched_setaffinity(0, sizeof(one), &one);
}

static void stop_and_continue(pid_t pid)
{
	struct timespec pause = { .tv_nsec = 200000 };

	kill(pid, SIGSTOP);
	nanosleep(&pause, NULL);
	kill(pid, SIGCONT);
}

/* ---- the initiator ---- */

static bool wait_for_credit(const struct put_loop *loop, const struct putter *p, uint32_t n)
{
	const uint32_t *word = (const uint32_t *)(const void *)(p->node.memory + CREDIT);
	struct spin spin = { .yields = loop->yields };

	while (n >= SLOTS && (int32_t)(__atomic_load_n(word, __ATOMIC_ACQUIRE) - (n - SLOTS)) <= 0)
		if (!spin_on(&spin))
			return false;
	return true;
}

/* Reports progress to the test through `fd`, and 0 at the end. */
static int run_initiator(int fd, void *arg)
{
	const struct put_loop *loop = arg;
	uint64_t end = clock_now() + loop->seconds * NSEC_PER_SEC;
	static struct putter p;
	struct process target;
	uint32_t n;

	setenv("SOFTVERBS_COPY", loop->copy, 1);
	if (loop->rough)
		share_a_processor();
	if (!process_start(&target, run_target, arg) || !putter_open(&p, target.fd, loop->direct) ||
	    !process_sync(target.fd))
		return 1;
	for (n = 0; n < loop->writes || (n < LONG_PUTS && clock_now() < end); n++) {
		struct write w = write_of(loop->seed, n);

		if (loop->rough && noise(loop->seed + 2, n) % 300 == 0)
			stop_and_continue(target.pid);

		if (!wait_for_credit(loop, &p, n)) {
			fprintf(stderr, "the credit of write %u does not come\n", n - SLOTS);
			return 2;
		}
		for (uint32_t i = 0; i < body(&w); i++)
			p.node.memory[w.begin + i] = byte_of(&w, i);
		tail_set(p.node.memory, &w, n);
		if (w.length < 4)
			p.node.memory[w.begin + w.length - 1] = (uint8_t)n;
		if (!put(&p, w.begin, w.begin, w.length))
			return 3;
		if (n % REPORT == REPORT - 1)
			process_say(fd, n + 1);
	}
	if (!wait_for_credit(loop, &p, n + SLOTS - 1))
		return 4;
	if (qp_of(p.node.qp[0])->remote_rq.copy != loop->done ||
	    sv_direct_count() != !!loop->direct)
		return 5;
	process_say(fd, 0);
	process_kill(&target);
	return 0;
}

/* ---- the test ---- */

static const char *const places[] = { "", ", mapped", ", open", ", swapped" };

static void put_loop_in(const char *copy, enum sv_copy done_by, uint32_t writes, bool rough,
			int direct)
{
	struct put_loop loop = {
		.copy = copy,
		.done = done_by,
		.seed = storm_seed(copy),
		.seconds = storm_number("LONG_SECONDS", 0),
		.writes = storm_number("WRITES", CHECKED ? writes / 4 : writes),
		.yields = rough || done_by == SV_COPY_BOUNCE,
		.rough = rough,
		.direct = direct,
	};
	struct process initiator;
	uint64_t done = 1, last = 0;

	/*
	 * The engine has read a source before the initiator writes there again; the initiator knows
	 * that only through the target, which the thread sanitizer does not see.
	 */
	if (PROCESS_TSAN)
		return;
	CU_ASSERT_TRUE_FATAL(process_start(&initiator, run_initiator, &loop));
	while (done && process_hear(initiator.fd, &done)) {
		last = done ? done : last;
		if (done && rough)
			stop_and_continue(initiator.pid);
	}
	CU_ASSERT_EQUAL(done, 0);
	CU_ASSERT_EQUAL(process_end(&initiator), 0);
	printf("%s%s%s: %llu writes\n", copy, places[direct], rough ? ", roughly" : "",
	       (unsigned long long)last);
}

static void put_loop(const char *copy, enum sv_copy done_by, uint32_t writes, bool rough)
{
	put_loop_in(copy, done_by, writes, rough, 0);
}

static void by_the_initiator(void)
{
	put_loop("pvm", SV_COPY_PVM, 10000, false);
}

static void through_a_descriptor(void)
{
	put_loop("memfd", SV_COPY_MEMFD, 10000, false);
}

static void by_the_target(void)
{
	put_loop("bounce", SV_COPY_BOUNCE, 4000, false);
}

static void by_stores(void)
{
	put_loop_in("pvm", SV_COPY_PVM, 50000, false, 1);
	put_loop_in("bounce", SV_COPY_BOUNCE, 5000, false, 1);
}

/* The memory of both ends moves while they write and poll. */
static void into_swapped_memory(void)
{
	put_loop_in("pvm", SV_COPY_PVM, 20000, false, 3);
	put_loop_in("bounce", SV_COPY_BOUNCE, 5000, false, 3);
}

static void through_the_file(void)
{
	put_loop_in("pvm", SV_COPY_PVM, 10000, false, 2);
	put_loop_in("bounce", SV_COPY_BOUNCE, 5000, false, 2);
}

static void under_rough_conditions(void)
{
	put_loop_in("pvm", SV_COPY_PVM, 2000, true, 1);
	put_loop("pvm", SV_COPY_PVM, 2000, true);
	put_loop("memfd", SV_COPY_MEMFD, 2000, true);
	put_loop("bounce", SV_COPY_BOUNCE, 1000, true);
}

static const struct unit_test tests[] = {
	{ "writes that are polled in memory: process_vm_writev", by_the_initiator },
	{ "writes that are polled in memory: a descriptor of the memory", through_a_descriptor },
	{ "writes that are polled in memory: copied by the target's engine", by_the_target },
	{ "writes that are polled in memory: by stores", by_stores },
	{ "writes that are polled in memory: through a descriptor of the file", through_the_file },
	{ "writes that are polled in memory: into swapped memory", into_swapped_memory },
	{ "writes that are polled in memory: on one processor, by processes that are stopped",
	  under_rough_conditions },
};

UNIT_MAIN("softverbs_put", tests)
