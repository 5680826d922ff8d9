/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* dapltest: a server and its clients try out, time and exhaust what DAT offers. */

#include <stdlib.h>
#include <string.h>

#include "dapltest.h"

static bool run(const struct options *opt)
{
	switch (opt->type) {
	case TEST_SERVER: return server_run(opt);
	case TEST_LIMIT: return limit_run(opt);
	case TEST_FUNCTIONAL: return functional_run(opt);
	default: return client_run(opt);
	}
}

int main(int argc, char **argv)
{
	static struct options opt;
	bool passed;

	if (argc == 2 && !strcmp(argv[1], "--help")) {
		usage_show_all();
		return EXIT_SUCCESS;
	}
	if (!options_parse(argc, argv, &opt)) {
		complain("Command line syntax error");
		return EXIT_FAILURE;
	}
	output_verbose(opt.debug);
	passed = run(&opt);
	watchdog_stop();
	return passed ? EXIT_SUCCESS : EXIT_FAILURE;
}
