/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "bench/measure.h"

#define LIMIT		 60 /* seconds */
#define PAGE		 4096u
#define BATCH_NS	 200000u
#define QUICK_COUNT	 64u
#define WARM_UP(batches) ((batches) / 5 + 1)

struct options options = { .batches = 20, .cpu = { 0, 1 }, .way = "ring", .count = 1, .burst = 1 };
int side;
pid_t other;
void *shared;

static struct meeting {
	_Alignas(LINE) _Atomic(unsigned) came[2];
	atomic_bool over; /* the figures are complete */
	_Alignas(LINE) char program[];
} * meeting;

static double *figures;
static unsigned figure_count;

static _Noreturn void usage(const char *program)
{
	fprintf(stderr,
		"usage: %s TEST [SIZE] [-b BATCHES] [-c CPU,CPU] [-n CONNECTIONS] [-o AT_A_TIME]\n"
		"       [-1] [-w WAY] [-a ADDRESS] [-N NETWORK_NAMESPACE] [-m] [-q]\n"
		"bench/traffic.h describes the tests.\n",
		program);
	exit(2);
}

static void options_read(int argc, char **argv)
{
	bool one = false;
	int c;

	while ((c = getopt(argc, argv, "1a:b:c:n:o:w:N:mq")) != -1) {
		switch (c) {
		case '1': one = true; break;
		case 'a': options.address = optarg; break;
		case 'b': options.batches = (unsigned)strtoul(optarg, NULL, 0); break;
		case 'c':
			if (sscanf(optarg, "%d,%d", &options.cpu[0], &options.cpu[1]) != 2)
				usage(argv[0]);
			break;
		case 'n': options.count = (unsigned)strtoul(optarg, NULL, 0); break;
		case 'o': options.burst = (unsigned)strtoul(optarg, NULL, 0); break;
		case 'w': options.way = optarg; break;
		case 'N': options.net = optarg; break;
		case 'm': options.marks = true; break;
		case 'q': options.quick = true; break;
		default: usage(argv[0]);
		}
	}
	if (optind == argc || !options.batches || !options.count || !options.burst)
		usage(argv[0]);
	if (options.quick && options.count > QUICK_COUNT)
		options.count = QUICK_COUNT;
	if (one)
		options.cpu[1] = options.cpu[0];
	options.test = argv[optind++];
	if (optind < argc)
		options.size = strtoul(argv[optind], NULL, 0);
}

_Noreturn void fail(const char *what)
{
	fprintf(stderr, "%s, side %d: %s: %s\n", options.test, side, what,
		errno ? strerror(errno) : "failed");
	_exit(1);
}

/* Side 1 has ended, too early unless the figures are complete. */
static void child_ended(int signal)
{
	(void)signal;
	if (!atomic_load(&meeting->over))
		_exit(1);
}

static void pin(int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	must(!sched_setaffinity(0, sizeof(set), &set), "sched_setaffinity");
}

static void net_enter(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	must(fd >= 0 && !setns(fd, CLONE_NEWNET), path);
	close(fd);
}

void measure_begin(int argc, char **argv, size_t shared_size)
{
	pid_t parent = getpid();

	options_read(argc, argv);
	meeting = mmap(NULL, sizeof(*meeting) + shared_size, PROT_READ | PROT_WRITE,
		       MAP_SHARED | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	must(meeting != MAP_FAILED, "mmap");
	shared = meeting->program;
	options.batches += WARM_UP(options.batches);
	figures = calloc(options.batches, sizeof(*figures));
	must(figures != NULL, "calloc");
	signal(SIGCHLD, child_ended);
	other = fork();
	must(other >= 0, "fork");
	if (!other) {
		side = 1;
		other = parent;
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		must(getppid() == parent, "fork");
		signal(SIGCHLD, SIG_DFL);
		if (options.net)
			net_enter(options.net);
	}
	pin(options.cpu[side]);
	alarm(LIMIT);
}

void meet(void)
{
	unsigned turn = atomic_load_explicit(&meeting->came[side], memory_order_relaxed) + 1;

	atomic_store_explicit(&meeting->came[side], turn, memory_order_release);
	for (unsigned looks = 0;
	     atomic_load_explicit(&meeting->came[!side], memory_order_acquire) < turn; looks++)
		if (looks > 1000)
			sched_yield();
}

bool is_awaited(void)
{
	return atomic_load_explicit(&meeting->came[!side], memory_order_acquire) >
	       atomic_load_explicit(&meeting->came[side], memory_order_relaxed);
}

void figure(double value)
{
	if (figure_count < options.batches)
		figures[figure_count++] = value;
}

_Noreturn void measure_end(void)
{
	unsigned first = WARM_UP(options.batches * 5 / 6);

	atomic_store(&meeting->over, true);
	meet();
	if (side)
		_exit(0);
	for (unsigned i = figure_count > first ? first : 0; i < figure_count; i++)
		printf("%.6g\n", figures[i]);
	fflush(stdout);
	waitpid(other, NULL, 0);
	_exit(0);
}

void mark(const char *where)
{
	if (options.marks)
		unlink(where); /* the kernel has no such file */
}

uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* With BENCH_MEMORY=memfd another process can map it. */
static void *pages(size_t size)
{
	const char *kind = getenv("BENCH_MEMORY");
	int fd = -1, how = MAP_PRIVATE | MAP_ANONYMOUS;

	if (kind && !strcmp(kind, "memfd")) {
		how = MAP_SHARED;
		fd = memfd_create("bench", MFD_CLOEXEC | MFD_ALLOW_SEALING);
		must(fd >= 0 && !ftruncate(fd, (off_t)size) &&
			     !fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK),
		     "memfd_create");
	}
	return mmap(NULL, size, PROT_READ | PROT_WRITE, how, fd, 0);
}

size_t buffer_bytes(void)
{
	return (options.size / PAGE + 1) * PAGE;
}

void *buffer(void)
{
	void *memory = pages(buffer_bytes());

	must(memory != MAP_FAILED, "mmap");
	madvise(memory, buffer_bytes(), MADV_NOHUGEPAGE);
	memset(memory, 1, buffer_bytes());
	return memory;
}

unsigned batch_of(unsigned count)
{
	if (options.quick)
		count /= 16;
	return count ? count : 1;
}

/* A message takes some 200 ns, or 50 ns in a stream, and 15 bytes a nanosecond. */
unsigned batch_round_trips(void)
{
	return batch_of((unsigned)(BATCH_NS / 2 / (200 + options.size / 15)));
}

unsigned batch_messages(void)
{
	unsigned n = batch_of((unsigned)(BATCH_NS / (50 + options.size / 15)));

	return n < 4 ? 4 : n;
}
