/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* dtestx: two programs test the InfiniBand extensions: immediate data, atomics, datagrams. */

#include <stdio.h>
#include <stdlib.h>

#include "dtestx.h"

static bool run(struct x_test *t)
{
	if (!x_open(t))
		return false;
	if (t->opt.ud)
		return x_ud_connect(t) && x_ud_exchange(t);
	return x_connect(t) && x_descriptions_exchange(t) && x_immed(t) && x_cmp_swap(t) &&
	       x_fetch_add(t) && x_disconnect(t);
}

int main(int argc, char **argv)
{
	static struct x_test t;
	struct connections all;
	bool passed;

	x_options_parse(argc, argv, &t.opt);
	t.a.verbose = t.opt.verbose;
	t.a.limit = t.opt.limit;
	t.wait.mode = WAIT_SLEEP;
	adapter_name(&t.a, t.opt.provider);
	if (t.opt.query)
		return x_query(&t) ? EXIT_SUCCESS : EXIT_FAILURE;
	passed = run(&t);
	all = x_connections(&t);
	if (!passed)
		connections_end(&t.a, &all);
	x_close(&t);
	watchdog_stop();
	passed = passed && !t.a.failed;
	printf("\n");
	note("IB extension test - %s test %s\n", t.opt.ud ? "UD" : "immed/atomic",
	     passed ? "PASSED" : "FAILED");
	return passed ? EXIT_SUCCESS : EXIT_FAILURE;
}
