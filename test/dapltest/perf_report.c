/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* The statistics of a performance test, with a line at the end for scripts. */

#include "performance.h"

static double mean_us(const struct series *s)
{
	return s->count ? (double)s->sum / (double)s->count / 1e3 : 0;
}

static void series_show(const char *what, const char *unit, const struct series *s)
{
	say("\n%s", what);
	if (unit)
		say("    %llu %s", (unsigned long long)s->count, unit);
	say("    Arithmetic mean      : %.2f us", mean_us(s));
	say("    maximum              : %.2f us", (double)s->max / 1e3);
	say("    minimum              : %.2f us", (double)s->min / 1e3);
}

void perf_report(const struct perf_test *pt)
{
	const struct op *op = &pt->p->op;
	const char *name = op->transfer == TRANSFER_READ ? "RR" : "RW";
	double ops = pt->p->iterations, seconds = (double)(pt->elapsed ? pt->elapsed : 1) / 1e9;
	double mb = ops * pt->peer.segment_length / 1048576;
	double cpu = (double)pt->cpu / 1e9 / seconds;

	say("------------------------- Statistics -------------------------");
	say("    Mode                 : %s", pt->p->poll ? "polling" : "blocking");
	say("    Operation Type       : %s", name);
	say("    Number of Operations : %u", (unsigned int)pt->p->iterations);
	say("    Segment Size         : %u", (unsigned int)op->size);
	say("    Number of Segments   : %u", (unsigned int)op->segments);
	say("    Pipeline Length      : %u\n", (unsigned int)pt->pipeline);
	say("    Total Time           : %.6f sec", seconds);
	say("    Total Data Exchanged : %.2f MB", mb);
	say("    CPU Utilization      : %.2f", cpu);
	say("    Operation Throughput : %.2f ops/sec", ops / seconds);
	say("    Bandwidth            : %.2f MB/sec", mb / seconds);
	series_show("Latency", NULL, &pt->latency);
	series_show("Time Per Post", "posts", &pt->posts);
	series_show("Time Per Reap", "reaps", &pt->reaps);
	say("\nNOTE: 1 MB = 1024 KB = 1048576 B");
	say("---------------------------------------------------------------------");
	say("raw: %s, %u, %u, %u, %u, %.2f, %.2f, %.2f, %.2f, %.2f, %.2f", name,
	    (unsigned int)pt->p->iterations, (unsigned int)op->size, (unsigned int)op->segments,
	    (unsigned int)pt->pipeline, cpu, ops / seconds, mb / seconds, mean_us(&pt->latency),
	    mean_us(&pt->posts), mean_us(&pt->reaps));
	say("---------------------------------------------------------------------");
}
