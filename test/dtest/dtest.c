/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* dtest: two programs connect through uDAPL, transfer data in every way, and check all of it. */

#include <stdio.h>
#include <stdlib.h>

#include "dtest.h"

static bool run(struct session *s)
{
	if (!session_meet(s) || !session_open(s) || !session_connect(s))
		return false;
	if (s->opt->kind == KIND_PINGPONG)
		return test_pingpong(s);
	if (s->opt->kind == KIND_STREAM && s->has_ib)
		return test_writes_immed(s);
	if (!test_writes(s))
		return false;
	if (s->opt->kind == KIND_STREAM || !s->has_read)
		return true;
	return test_reads(s) && test_ping(s);
}

static void report(const struct session *s)
{
	if (s->m.pinged)
		report_rounds(s, "Message", s->opt->length, s->opt->rounds, s->m.ping_us);
	if (s->m.wrote) {
		putchar('\n');
		report_writes(s);
	}
	if (s->opt->times)
		report_times(s);
}

int main(int argc, char **argv)
{
	static struct session s;
	struct options opt;
	bool passed;

	options_parse(argc, argv, &opt);
	s.opt = &opt;
	if (opt.cpu >= 0 && !cpu_pin(opt.cpu)) {
		complain("Error: cannot run on processor %d", opt.cpu);
		return EXIT_FAILURE;
	}
	if (opt.check)
		say("Running DATA CHECK mode");
	passed = run(&s);
	session_disconnect(&s, !passed);
	session_close(&s);
	watchdog_stop();
	if (passed)
		report(&s);
	free(s.m.rounds_ns);
	passed = passed && !s.teardown_failed;
	printf("\n");
	say_result("DAPL Test Complete. %s\n", passed ? "PASSED" : "FAILED");
	return passed ? EXIT_SUCCESS : EXIT_FAILURE;
}
