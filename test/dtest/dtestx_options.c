/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* The command line of dtestx. */

#include <getopt.h>
#include <stdio.h>

#include "dtestx.h"

enum { OPT_TIMEOUT = 256, OPT_HELP };

static const char usage_text[] =
	"usage: dtestx [-s] [options]          server\n"
	"       dtestx -h HOST [options]       client\n"
	"       dtestx -c -h HOST -u|-U N      client, with datagrams\n"
	"       dtestx -q [-P NAME]            show the provider's attributes\n"
	"\n"
	"Both sides need the same -b -u -U -m.\n"
	"\n"
	"  -s            server (the default)\n"
	"  -c            client\n"
	"  -h HOST       name or address of the server; makes a client unless -u or -U is given,\n"
	"                where it may name the client to the server\n"
	"  -P NAME       provider (default ofa-v2-ib0)\n"
	"  -b BYTES      buffer length (default 256)\n"
	"  -u            datagrams, 4 endpoints\n"
	"  -U COUNT      datagrams, COUNT endpoints (at most 1000)\n"
	"  -m            datagrams: each endpoint is used by itself, on both sides\n"
	"  -p            show counters\n"
	"  -q            only query the provider\n"
	"  -v            show more\n"
	"  -N            no TCP side channel\n"
	"  --timeout S   longest single wait in seconds\n"
	"  --help        this text\n";

static void option_take(struct x_options *opt, int letter, const char *arg)
{
	switch (letter) {
	case 's': opt->client = false; break;
	case 'c': opt->client = true; break;
	case 'h': opt->host = arg; break;
	case 'P': opt->provider = option_provider(arg, usage_text); break;
	case 'b': opt->length = (uint32_t)option_number(arg, 1, 1 << 30, usage_text); break;
	case 'u':
		opt->ud = true;
		opt->eps = X_UD_EPS;
		break;
	case 'U':
		opt->ud = true;
		opt->eps = (int)option_number(arg, 1, X_MAX_EPS, usage_text);
		break;
	case 'm': opt->many = true; break;
	case 'p': opt->counters = true; break;
	case 'q': opt->query = true; break;
	case 'v': opt->verbose = true; break;
	case 'N': opt->channel = false; break;
	case OPT_TIMEOUT: opt->limit = option_seconds(arg, usage_text); break;
	case OPT_HELP: option_help(usage_text);
	default: option_usage(usage_text);
	}
}

void x_options_parse(int argc, char **argv, struct x_options *opt)
{
	static const struct option longs[] = {
		{ "timeout", required_argument, NULL, OPT_TIMEOUT },
		{ "help", no_argument, NULL, OPT_HELP },
		{ NULL, 0, NULL, 0 },
	};
	int letter;

	*opt = (struct x_options){
		.provider = "ofa-v2-ib0",
		.eps = 1,
		.length = 256,
		.channel = true,
	};
	while ((letter = getopt_long(argc, argv, "scumpqvNh:P:b:U:", longs, NULL)) != -1)
		option_take(opt, letter, optarg);
	if (optind < argc) {
		fprintf(stderr, "dtestx: unexpected argument %s\n", argv[optind]);
		option_usage(usage_text);
	}
	if (opt->host && !opt->ud)
		opt->client = true;
	if (opt->client && !opt->host && !opt->query) {
		fprintf(stderr, "dtestx: a client needs -h\n");
		option_usage(usage_text);
	}
}
