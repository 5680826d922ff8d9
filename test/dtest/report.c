/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* Prints the results. */

#include <stdlib.h>

#include "dtest.h"

static int ns_compare(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return (x > y) - (x < y);
}

static double half_us(const uint32_t *sorted, int count, double fraction)
{
	int at = (int)(fraction * (count - 1) + 0.5);

	return sorted[at] / 2000.0;
}

/* Sorts the measured rounds in place; only the client's are whole round trips. */
void report_rounds(const struct session *s, const char *what, uint32_t length, int count,
		   double total_us)
{
	uint32_t *ns = s->m.rounds_ns;

	say_result("%s PingPong: (%d x %u) Total %6.2f us: latency %3.2f us, BW %4.2f MB/s", what,
		   count, length, total_us, total_us / count / 2, 2.0 * count * length / total_us);
	if (is_server(s))
		return;
	qsort(ns, (size_t)count, sizeof(*ns), ns_compare);
	say_result("ping-pong %u B x %d: half round trip %.2f us (median %.2f, p99 %.2f, max %.2f)",
		   length, count, total_us / count / 2, half_us(ns, count, 0.5),
		   half_us(ns, count, 0.99), half_us(ns, count, 1));
}

void report_writes(const struct session *s)
{
	int count = s->opt->burst * (s->opt->one_way ? 1 : 2);

	say_result("RDMA write (%s-direction): Total=%6.2f usec, itime=%6.2f us, poll=%lu, "
		   "%d x %u, %4.2f MB/sec",
		   s->opt->one_way ? "uni" : "bi", s->m.write_us, s->m.write_us / count,
		   s->m.write_polls, count, s->opt->length,
		   (double)count * s->opt->length / s->m.write_us);
}

static void report_reads(const struct session *s)
{
	double total = 0;

	for (int i = 0; i < s->m.reads; i++)
		total += s->m.read_us[i];
	for (int i = 0; i < s->m.reads; i++)
		say_result("RDMA read:   Total=%10.2f usec,   %d bursts, itime=%10.2f usec, pc=%lu",
			   total, s->m.reads, s->m.read_us[i], s->m.read_polls);
}

void report_times(const struct session *s)
{
	static const struct {
		enum timing which;
		const char *name;
	} rows[] = {
		{ TIME_OPEN, "open:" },
		{ TIME_CLOSE, "close:" },
		{ TIME_PZ_CREATE, "PZ create:" },
		{ TIME_PZ_FREE, "PZ free:" },
		{ TIME_LMR_CREATE, "LMR create:" },
		{ TIME_LMR_FREE, "LMR free:" },
		{ TIME_EVD_CREATE, "EVD create:" },
		{ TIME_EVD_FREE, "EVD free:" },
		{ TIME_CNO_CREATE, "CNO create:" },
		{ TIME_CNO_FREE, "CNO free:" },
		{ TIME_EP_CREATE, "EP create:" },
		{ TIME_EP_FREE, "EP free:" },
	};
	double total = 0;

	report_reads(s);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		bool cno = rows[i].which == TIME_CNO_CREATE || rows[i].which == TIME_CNO_FREE;

		total += s->m.api_us[rows[i].which];
		if (!cno || s->opt->wait == WAIT_CNO)
			say_result("%-11s%10.2f usec", rows[i].name, s->m.api_us[rows[i].which]);
	}
	if (!is_server(s))
		say_result("%-11s%10.2f usec, poll_cnt=%lu", "connect:", s->m.connect_us,
			   s->m.connect_polls);
	say_result("%-11s%10.2f usec", "TOTAL:", total);
}
