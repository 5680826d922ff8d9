/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* The command line of dtestsrq. */

#include <getopt.h>
#include <stdio.h>

#include "dtestsrq.h"

enum { OPT_TIMEOUT = 256, OPT_HELP };

static const char usage_text[] =
	"usage: dtestsrq [-s] [options]         server\n"
	"       dtestsrq -h HOST [options]      client\n"
	"\n"
	"Both sides need the same -c -B -t -b -u -p. The server is to be started first.\n"
	"\n"
	"  -s            server (the default without -h)\n"
	"  -h HOST       client: name or address of the server\n"
	"  -P NAME       provider (default ofa-v2-ib0)\n"
	"  -c COUNT      connections (default 1, at most 100)\n"
	"  -B COUNT      messages of a burst on each connection (default 1, at most 100)\n"
	"  -t COUNT      bursts (default 3)\n"
	"  -b BYTES      message length (default: the path's MTU)\n"
	"  -S 0|1        use a shared receive queue (default 1)\n"
	"  -u            datagram endpoints\n"
	"  -p PORT       connection qualifier (default 45248)\n"
	"  -q QPN -l LID client: server of a provider that is addressed like this\n"
	"  -v            show more\n"
	"  --timeout S   longest single wait in seconds\n"
	"  --help        this text\n";

static void option_take(struct srq_options *opt, int letter, const char *arg)
{
	switch (letter) {
	case 's': break; /* a program without -h is a server in any case */
	case 'h': opt->host = arg; break;
	case 'P': opt->provider = option_provider(arg, usage_text); break;
	case 'c': opt->connections = (int)option_number(arg, 1, SRQ_MAX, usage_text); break;
	case 'B': opt->burst = (int)option_number(arg, 1, SRQ_MAX, usage_text); break;
	case 't': opt->bursts = (int)option_number(arg, 0, 1 << 30, usage_text); break;
	case 'b': opt->length = (uint32_t)option_number(arg, 1, 1 << 30, usage_text); break;
	case 'S': opt->srq = option_number(arg, 0, 1, usage_text) != 0; break;
	case 'u': opt->ud = true; break;
	case 'p': opt->qual = (int)option_number(arg, 1, UINT16_MAX, usage_text); break;
	case 'q': opt->qpn = (uint32_t)option_number(arg, 1, 0xffffff, usage_text); break;
	case 'l': opt->lid = (uint32_t)option_number(arg, 1, UINT16_MAX, usage_text); break;
	case 'v': opt->verbose = true; break;
	case OPT_TIMEOUT: opt->limit = option_seconds(arg, usage_text); break;
	case OPT_HELP: option_help(usage_text);
	default: option_usage(usage_text);
	}
}

void srq_options_parse(int argc, char **argv, struct srq_options *opt)
{
	static const struct option longs[] = {
		{ "timeout", required_argument, NULL, OPT_TIMEOUT },
		{ "help", no_argument, NULL, OPT_HELP },
		{ NULL, 0, NULL, 0 },
	};
	int letter;

	*opt = (struct srq_options){
		.provider = "ofa-v2-ib0",
		.connections = 1,
		.burst = 1,
		.bursts = 3,
		.qual = SRQ_QUAL,
		.srq = true,
	};
	while ((letter = getopt_long(argc, argv, "suvc:B:t:b:h:P:q:l:S:p:", longs, NULL)) != -1)
		option_take(opt, letter, optarg);
	if (optind < argc) {
		fprintf(stderr, "dtestsrq: unexpected argument %s\n", argv[optind]);
		option_usage(usage_text);
	}
	if (!opt->qpn != !opt->lid) {
		fprintf(stderr, "dtestsrq: -q and -l belong together\n");
		option_usage(usage_text);
	}
}
