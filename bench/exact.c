/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/*
 * Counts the cost of data path calls without the verbs driver: user instructions, locked instructions and system calls,
 * of this build and of the packaged OFED libraries, with the same program and device. Since it counts and does not
 * time, load does not change the figures. A figure that could not be counted is not printed.
 */
#include <linux/membarrier.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "bench/beside.h"
#include "bench/exact_step.h"

enum { MET, MISSED, NOT_MEASURED, SKIPPED = 77 }; /* how the program ends */

/*
 * Instructions of ours over those of the reference, at most. The posts of the reference take no lock. Ours take one that is
 * biased to the thread (util/lock_bias.h): some nine instructions, and six in a wait, in place of a locked one that takes as
 * long as twenty.
 */
static const struct {
	const char *goal, *call;
	double limit[VARIANTS];
} rows[EXACT_CALLS] = {
	[EXACT_POST_SEND] = { "G12", "dat_ep_post_send", { 0, 0.50, 0.55 } },
	[EXACT_POST_RECV] = { "G12", "dat_ep_post_recv", { 0, 0.58, 0.58 } },
	[EXACT_POST_WRITE] = { "G12", "dat_ep_post_rdma_write", { 0, 0.53, 0.55 } },
	[EXACT_POST_READ] = { "G12", "dat_ep_post_rdma_read", { 0, 0.50, 0.55 } },
	[EXACT_DEQUEUE_SENT] = { "G13", "dat_evd_dequeue, hit: send", { 0, 0.45, 0.45 } },
	[EXACT_DEQUEUE_RECEIVED] = { "G13", "dat_evd_dequeue, hit: recv", { 0, 0.45, 0.45 } },
	[EXACT_DEQUEUE_EMPTY] = { "G13", "dat_evd_dequeue, empty", { 0, 0.50, 0.50 } },
	[EXACT_WAIT_SENT] = { "G13", "dat_evd_wait, hit: send", { 0, 0.33, 0.35 } },
	[EXACT_WAIT_RECEIVED] = { "G13", "dat_evd_wait, hit: recv", { 0, 0.33, 0.35 } },
	[EXACT_QUEUED_SENT] = { "EV", "dat_evd_dequeue of 32: send", { 0 } },
	[EXACT_QUEUED_RECEIVED] = { "EV", "dat_evd_dequeue of 32: recv", { 0 } },
	[EXACT_BATCH_SENT] = { "EV", "DAT_EVD_DEQUEUE_N of 32: send", { 0 } },
	[EXACT_BATCH_RECEIVED] = { "EV", "DAT_EVD_DEQUEUE_N of 32: recv", { 0 } },
	[EXACT_ARM] = { "EV", "DAT_EVD_ARM, nothing pending", { 0 } },
	[EXACT_ARM_AGAIN] = { "EV", "DAT_EVD_ARM, armed already", { 0 } },
};

/* The calls of the event extension, which the packaged libraries do not have. */
#define BATCH_LIMIT 0.50 /* at most this part of as many single dequeues */
#define ARM_LIMIT   130u /* each call arms a new EVD, whose lock is not biased yet */

/* The same program through libdat.so.1: the most that it may add to a call. */
#define ONE_POST_LIMIT	30 /* one triplet is converted */
#define ONE_RDMA_LIMIT	40 /* two triplets are converted */
#define ONE_EVENT_LIMIT 40

#define LOCKED_LIMIT	   0u
#define LOCKED_LIMIT_ARM   1u
#define SYSTEM_CALLS_LIMIT 0u

static struct exact_run runs[VARIANTS], run_one;

/* ---- the three runs ---- */

/* True if the run used the right libraries and counted all calls. */
static bool is_sound(const struct exact_run *run, bool ours, int calls)
{
	int i;

	if (beside_is_of_build(run->registry) != ours ||
	    beside_is_of_build(run->provider) != ours || !beside_is_of_build(run->driver)) {
		fprintf(stderr, "exact: wrong libraries were loaded: %s, %s, %s\n", run->registry,
			run->provider, run->driver);
		return false;
	}
	for (i = 0; i < calls; i++) {
		if (run->counted[i] < EXACT_CALLS_KEPT) {
			fprintf(stderr, "exact: %s: counted %u times, not %u\n", rows[i].call,
				run->counted[i], EXACT_CALLS_KEPT);
			return false;
		}
	}
	return true;
}

static bool run_all(void)
{
	const char *client = beside_program("exact-client");
	int variant;

	for (variant = OURS; variant < VARIANTS; variant++) {
		if (!beside_set(variant) || !exact_run(client, "exact", &runs[variant]) ||
		    !is_sound(&runs[variant], variant == OURS,
			      variant == OURS ? EXACT_CALLS : EXACT_PLAIN)) {
			fprintf(stderr, "exact: no figures of %s\n", beside_name[variant]);
			return false;
		}
	}
	client = beside_program("exact-client1");
	if (beside_set(OURS) && exact_run(client, "exact", &run_one) &&
	    is_sound(&run_one, true, EXACT_PLAIN))
		return true;
	fprintf(stderr, "exact: no figures of DAT 1.2\n");
	return false;
}

/* ---- the figures ---- */

struct spread {
	unsigned least, median, most;
};

static int by_size(const void *a, const void *b)
{
	unsigned x = *(const unsigned *)a, y = *(const unsigned *)b;

	return (x > y) - (x < y);
}

static struct spread spread_of(const struct exact_count *calls, size_t member)
{
	unsigned values[EXACT_CALLS_KEPT];
	int i;

	for (i = 0; i < EXACT_CALLS_KEPT; i++)
		memcpy(&values[i], (const char *)&calls[i] + member, sizeof(values[i]));
	qsort(values, EXACT_CALLS_KEPT, sizeof(*values), by_size);
	return (struct spread){ values[0], values[EXACT_CALLS_KEPT / 2],
				values[EXACT_CALLS_KEPT - 1] };
}

#define INSTRUCTIONS offsetof(struct exact_count, instructions)
#define SPREAD(variant, call, member) \
	spread_of(runs[variant].calls[call], offsetof(struct exact_count, member))

static const char *verdict(bool met, int *end)
{
	if (!met)
		*end = MISSED;
	return met ? "met" : "MISSED";
}

static void print_ratio(int call, enum variant reference, int *end)
{
	unsigned ours = SPREAD(OURS, call, instructions).median;
	unsigned theirs = SPREAD(reference, call, instructions).median;
	double ratio = (double)ours / theirs, limit = rows[call].limit[reference];

	printf("%s\t%s: instructions, %s\t%u\t%u\t%.2f\t%.2f\t%s\n", rows[call].goal,
	       rows[call].call, beside_name[reference], ours, theirs, ratio, limit,
	       verdict(ratio <= limit, end));
}

/* The worst call of these counts. */
static void print_most(const char *goal, int call, const char *what, size_t member, unsigned limit,
		       int *end)
{
	unsigned ours = spread_of(runs[OURS].calls[call], member).most;
	unsigned theirs = spread_of(runs[PACKAGED].calls[call], member).most;

	printf("%s\t%s: %s\t%u\t", goal, rows[call].call, what, ours);
	if (call < EXACT_PLAIN)
		printf("%u\t", theirs);
	else
		printf("-\t");
	printf("-\t%u\t%s\n", limit, verdict(ours <= limit, end));
}

/*
 * Compares the means of whole batches, because single dequeues cost more when they poll the device.
 */
static void print_batch(int batch, int single, int *end)
{
	unsigned ours = SPREAD(OURS, batch, instructions).median, sum = 0;
	double ratio, singly;
	int i;

	for (i = 0; i < EXACT_CALLS_KEPT; i++)
		sum += runs[OURS].calls[single][i].instructions;
	singly = (double)sum / EXACT_CALLS_KEPT;
	ratio = ours / (singly * EXACT_BATCH);
	printf("EV\t%s: instructions an event, of those of %s\t%.1f\t%.1f\t%.2f\t%.2f\t%s\n",
	       rows[batch].call, rows[single].call, (double)ours / EXACT_BATCH, singly, ratio,
	       BATCH_LIMIT, verdict(ratio <= BATCH_LIMIT, end));
}

static void print_events(int *end)
{
	print_batch(EXACT_BATCH_SENT, EXACT_QUEUED_SENT, end);
	print_batch(EXACT_BATCH_RECEIVED, EXACT_QUEUED_RECEIVED, end);
	print_most("EV", EXACT_ARM, "instructions beside the device's", INSTRUCTIONS, ARM_LIMIT,
		   end);
	print_most("EV", EXACT_ARM_AGAIN, "instructions beside the device's", INSTRUCTIONS,
		   ARM_LIMIT, end);
}

/*
 * DAT 1.2 adds neither a lock nor a system call, and few instructions: in the median, and to the
 * worst call.
 */
static void print_one(int call, int *end)
{
	const struct exact_count *one = run_one.calls[call], *two = runs[OURS].calls[call];
	int limit = call <= EXACT_POST_SEND   ? ONE_POST_LIMIT
		    : call <= EXACT_POST_READ ? ONE_RDMA_LIMIT
					      : ONE_EVENT_LIMIT;
	int with = (int)spread_of(one, INSTRUCTIONS).median;
	int without = (int)spread_of(two, INSTRUCTIONS).median;
	size_t locked = offsetof(struct exact_count, locked);
	size_t system_calls = offsetof(struct exact_count, system_calls);
	bool only = spread_of(one, locked).most <= spread_of(two, locked).most &&
		    spread_of(one, system_calls).most <= spread_of(two, system_calls).most;

	printf("12\t%s of DAT 1.2: instructions added\t%d\t%d\t%d\t%d\t%s\n", rows[call].call, with,
	       without, with - without, limit, verdict(with - without <= limit && only, end));
}

static void print_spread(int call)
{
	struct spread is;
	int variant;

	for (variant = OURS; variant < (call < EXACT_PLAIN ? VARIANTS : PACKAGED); variant++) {
		is = SPREAD(variant, call, instructions);
		if (is.least != is.most)
			printf("# %s, %s: %u instructions, between %u and %u\n", rows[call].call,
			       beside_name[variant], is.median, is.least, is.most);
	}
}

static int print_all(void)
{
	int call, end = MET;

	printf("# %s, %s\n# %s, %s\n# over %s; %d calls of each\n", runs[OURS].registry,
	       runs[OURS].provider, runs[PACKAGED].registry, runs[PACKAGED].provider,
	       runs[OURS].driver, EXACT_CALLS_KEPT);
	printf("# goal\twhat\tours\treference\tratio\tlimit\tverdict\n");
	for (call = 0; call < EXACT_PLAIN; call++) {
		print_ratio(call, PACKAGED, &end);
		print_ratio(call, PACKAGED_QUIET, &end);
	}
	print_events(&end);
	for (call = 0; call < EXACT_PLAIN; call++)
		print_one(call, &end);
	for (call = 0; call < EXACT_CALLS; call++)
		print_most("G14", call, "locked instructions", offsetof(struct exact_count, locked),
			   call == EXACT_ARM || call == EXACT_ARM_AGAIN ? LOCKED_LIMIT_ARM
									: LOCKED_LIMIT,
			   &end);
	for (call = 0; call < EXACT_CALLS; call++)
		print_most("G11", call, "system calls", offsetof(struct exact_count, system_calls),
			   SYSTEM_CALLS_LIMIT, &end);
	for (call = 0; call < EXACT_CALLS; call++)
		print_spread(call);
	printf("# %s\n", end == MET ? "all goals met" : "goals MISSED");
	return end;
}

int main(int argc, char **argv)
{
	bool report = argc == 2 && !strcmp(argv[1], "--report"), counted;
	int end;

	if (argc > 1 && !report) {
		fprintf(stderr, "usage: exact [--report]\n");
		return NOT_MEASURED;
	}
	if (!(syscall(SYS_membarrier, MEMBARRIER_CMD_QUERY, 0, 0) &
	      MEMBARRIER_CMD_PRIVATE_EXPEDITED)) {
		puts("exact: skipped: no membarrier(2) here, so no lock is biased");
		return MET;
	}
	if (!beside_begin())
		return NOT_MEASURED;
	if (!beside_has_packaged(beside_program("exact-client"))) {
		beside_end();
		puts("exact: skipped: no packaged libdat2 here (Debian: dapl2-utils)");
		return SKIPPED;
	}
	counted = run_all();
	beside_end();
	if (!counted)
		return NOT_MEASURED;
	end = print_all();
	return report ? MET : end;
}
