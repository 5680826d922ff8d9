/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* The command line of dtestcm. */

#include <getopt.h>
#include <stdio.h>

#include "dtestcm.h"

enum { OPT_TIMEOUT = 256, OPT_HELP };

static const char usage_text[] =
	"usage: dtestcm [-s] [options]         server\n"
	"       dtestcm -h HOST [options]      client\n"
	"\n"
	"Both sides need the same -c -b -p -m -u.\n"
	"\n"
	"  -s            server (the default without -h)\n"
	"  -h HOST       client: name or address of the server\n"
	"  -P NAME       provider (default ofa-v2-ib0)\n"
	"  -c COUNT      connections (default 1000)\n"
	"  -b COUNT      connections in a burst (default 100)\n"
	"  -p PORT       connection qualifier, with -m the first (default 45248)\n"
	"  -m            as many service points as a burst has connections\n"
	"  -u            datagram endpoints\n"
	"  -w            wait for events (default: poll)\n"
	"  -d SECONDS    server: wait before accepting each connection\n"
	"  -v            show more\n"
	"  -N            no TCP side channel\n"
	"  --timeout S   longest single wait in seconds\n"
	"  --help        this text\n";

static void option_take(struct cm_options *opt, int letter, const char *arg)
{
	switch (letter) {
	case 's': break; /* a program without -h is a server in any case */
	case 'h': opt->host = arg; break;
	case 'P':
		opt->provider = option_provider(arg, usage_text);
		opt->provider_given = true;
		break;
	case 'c': opt->connections = (int)option_number(arg, 1, CM_MAX, usage_text); break;
	case 'b': opt->burst = (int)option_number(arg, 1, CM_MAX, usage_text); break;
	case 'p': opt->qual = (int)option_number(arg, 1, UINT16_MAX, usage_text); break;
	case 'd': opt->delay = (int)option_number(arg, 0, 1000000, usage_text); break;
	case 'm': opt->many_ports = true; break;
	case 'u': opt->ud = true; break;
	case 'w': opt->wait = WAIT_SLEEP; break;
	case 'v': opt->verbose = true; break;
	case 'N': opt->channel = false; break;
	case OPT_TIMEOUT: opt->limit = option_seconds(arg, usage_text); break;
	case OPT_HELP: option_help(usage_text);
	default: option_usage(usage_text);
	}
}

void cm_options_parse(int argc, char **argv, struct cm_options *opt)
{
	static const struct option longs[] = {
		{ "timeout", required_argument, NULL, OPT_TIMEOUT },
		{ "help", no_argument, NULL, OPT_HELP },
		{ NULL, 0, NULL, 0 },
	};
	int letter;

	*opt = (struct cm_options){
		.provider = "ofa-v2-ib0",
		.connections = 1000,
		.burst = 100,
		.qual = CM_QUAL,
		.channel = true,
		.wait = WAIT_POLL,
	};
	while ((letter = getopt_long(argc, argv, "smwuvNc:b:d:h:P:p:", longs, NULL)) != -1)
		option_take(opt, letter, optarg);
	if (optind < argc) {
		fprintf(stderr, "dtestcm: unexpected argument %s\n", argv[optind]);
		option_usage(usage_text);
	}
	if (opt->burst > opt->connections)
		opt->burst = opt->connections;
	if (opt->many_ports && opt->qual + opt->burst - 1 > UINT16_MAX) {
		fprintf(stderr, "dtestcm: %d ports from %d on are too many\n", opt->burst,
			opt->qual);
		option_usage(usage_text);
	}
}
