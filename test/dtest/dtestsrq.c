/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* dtestsrq: bursts of messages between two programs, received from a shared receive queue. */

#include <stdio.h>
#include <stdlib.h>

#include "dtestsrq.h"

int main(int argc, char **argv)
{
	static struct srq_test t;
	struct connections all;
	const char *kind, *queue;
	bool passed;

	srq_options_parse(argc, argv, &t.opt);
	kind = t.opt.ud ? "UD" : "RC";
	queue = t.opt.srq ? "SRQ" : "none SRQ";
	t.a.verbose = t.opt.verbose;
	t.a.limit = t.opt.limit;
	t.wait.mode = WAIT_SLEEP;
	adapter_name(&t.a, t.opt.provider);
	note("Running %s %s test as %s: on %s with %d connections, %d burst(s) of %d messages",
	     kind, queue, srq_role(&t), t.a.provider, t.opt.connections, t.opt.bursts, t.opt.burst);
	passed = srq_open(&t) && (srq_is_server(&t) ? srq_accept_all(&t) : srq_connect_all(&t)) &&
		 srq_exchange(&t) && srq_disconnect_all(&t);
	all = srq_connections(&t);
	if (!passed)
		connections_end(&t.a, &all);
	srq_close(&t);
	watchdog_stop();
	passed = passed && !t.a.failed;
	note("DAPL %s %s Test Complete. %s\n", kind, queue, passed ? "PASSED" : "FAILED");
	return passed ? EXIT_SUCCESS : EXIT_FAILURE;
}
