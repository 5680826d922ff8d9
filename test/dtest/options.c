/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* The command line of dtest. Some options reset others, so they act in their order. */

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dtest.h"

enum { OPT_CPU = 256, OPT_TIMEOUT, OPT_ROUNDS, OPT_QUAL, OPT_CHANNEL, OPT_HELP };

static const char usage_text[] =
	"usage: dtest [-s] [options]           server\n"
	"       dtest -h HOST [options]        client\n"
	"\n"
	"Both sides need the same -b -B -S -u -w -W -D -a -i and --rounds.\n"
	"\n"
	"  -s            server (the default without -h)\n"
	"  -h HOST       client: name or address of the server\n"
	"  -P NAME       provider (default ofa-v2-ib0)\n"
	"  -b BYTES      buffer length, the largest with -a, -i (default 4194304; -W alone: 1)\n"
	"  -B COUNT      RDMA writes in a burst, or rounds with -W and -D (default 1000)\n"
	"  -S COUNT      every COUNTth write gives a completion event (default 10)\n"
	"  -d SECONDS    server: wait before accepting\n"
	"  -u            only the client writes\n"
	"  -w            only a stream of RDMA writes\n"
	"  -W            only an RDMA write ping-pong\n"
	"  -D            the same, with all data compared\n"
	"  -a            with -W or -D: all sizes, powers of two and their neighbours\n"
	"  -i BYTES      with -W or -D: sizes in steps of BYTES\n"
	"  -c            wait for transfers on a CNO\n"
	"  -p            poll instead of waiting\n"
	"  -t            show how long each kind of call took\n"
	"  -v            show more\n"
	"  -N            no TCP side channel\n"
	"  -U            this text, and an exit status of 244\n"
	"  --rounds N    messages sent each way (default 100)\n"
	"  --cpu N       run on processor N\n"
	"  --timeout S   longest single wait in seconds\n"
	"  --qual N      connection qualifier (default 45248)\n"
	"  --channel N   TCP port of the side channel (default 15828)\n"
	"  --help        this text\n";

static void usage(void)
{
	fputs(usage_text, stdout);
	fflush(stdout);
	exit(EXIT_BAD_OPTION);
}

static long long number(const char *text, long long least, long long most)
{
	char *end;
	long long value;

	errno = 0;
	value = strtoll(text, &end, 10);
	if (errno || end == text || *end || value < least || value > most) {
		fprintf(stderr, "dtest: %s is not a number from %lld to %lld\n", text, least, most);
		usage();
	}
	return value;
}

static double seconds(const char *text)
{
	char *end;
	double value = strtod(text, &end);

	if (end == text || *end || !(value > 0 && value <= 1e6)) {
		fprintf(stderr, "dtest: %s is not a number of seconds\n", text);
		usage();
	}
	return value;
}

/* A ping-pong is one way; it sets its defaults at this place of the line. */
static void option_pingpong(struct options *opt)
{
	opt->kind = KIND_PINGPONG;
	opt->one_way = true;
	opt->rate = 1;
	opt->burst = 1000;
}

static void option_provider(struct options *opt, const char *name)
{
	if (!name[0] || strlen(name) >= PROVIDER_SIZE) {
		fprintf(stderr, "dtest: a provider name has 1 to %d characters\n",
			PROVIDER_SIZE - 1);
		usage();
	}
	opt->provider = name;
	opt->provider_given = true;
}

static void option_flag(struct options *opt, int letter)
{
	switch (letter) {
	case 's': break; /* a program without -h is a server in any case */
	case 'u': opt->one_way = true; break;
	case 'w':
		if (opt->kind != KIND_PINGPONG)
			opt->kind = KIND_STREAM;
		break;
	case 'D':
		opt->check = true;
		option_pingpong(opt);
		break;
	case 'W': option_pingpong(opt); break;
	case 'a': opt->all_sizes = true; break;
	case 'c': opt->wait = WAIT_CNO; break;
	case 'p': opt->wait = WAIT_POLL; break;
	case 't': opt->times = true; break;
	case 'v': opt->verbose = true; break;
	case 'N': opt->channel = false; break;
	case OPT_HELP: fputs(usage_text, stdout); exit(EXIT_SUCCESS);
	default: usage();
	}
}

static void option_value(struct options *opt, int letter, const char *arg)
{
	switch (letter) {
	case 'h': opt->host = arg; break;
	case 'P': option_provider(opt, arg); break;
	case 'b': opt->length = (uint32_t)number(arg, 1, 1 << 30); break;
	case 'B': opt->burst = (int)number(arg, 1, 100000000); break;
	case 'S': opt->rate = (int)number(arg, 1, 100000000); break;
	case 'd': opt->delay = (int)number(arg, 0, 1000000); break;
	case 'i':
		opt->step = (int)number(arg, 0, 1 << 30);
		opt->all_sizes = true;
		break;
	case OPT_CPU: opt->cpu = (int)number(arg, 0, 1 << 20); break;
	case OPT_TIMEOUT: opt->limit = seconds(arg); break;
	case OPT_ROUNDS: opt->rounds = (int)number(arg, 1, 100000000); break;
	case OPT_QUAL: opt->qual = (uint64_t)number(arg, 1, INT64_MAX); break;
	case OPT_CHANNEL: opt->channel_port = (uint16_t)number(arg, 1, UINT16_MAX); break;
	default: usage();
	}
}

/* Evaluates the whole line. */
static void options_settle(struct options *opt)
{
	if (opt->all_sizes && opt->kind != KIND_PINGPONG) {
		puts("\n\t -a option only valid with -W option\n");
		exit(EXIT_BAD_OPTION);
	}
	if (!opt->length) {
		bool smallest = opt->kind == KIND_PINGPONG && !opt->check && !opt->all_sizes;

		opt->length = smallest ? 1 : 4 << 20;
	}
	if (opt->rate > opt->burst)
		opt->rate = opt->burst;
}

void options_parse(int argc, char **argv, struct options *opt)
{
	static const char letters[] = "UDauwWtscvpNb:d:B:h:P:S:i:";
	static const struct option longs[] = {
		{ "cpu", required_argument, NULL, OPT_CPU },
		{ "timeout", required_argument, NULL, OPT_TIMEOUT },
		{ "rounds", required_argument, NULL, OPT_ROUNDS },
		{ "qual", required_argument, NULL, OPT_QUAL },
		{ "channel", required_argument, NULL, OPT_CHANNEL },
		{ "help", no_argument, NULL, OPT_HELP },
		{ NULL, 0, NULL, 0 },
	};
	int letter;

	*opt = (struct options){
		.provider = "ofa-v2-ib0",
		.burst = 1000,
		.rate = 10,
		.wait = WAIT_SLEEP,
		.rounds = PING_COUNT,
		.cpu = -1,
		.channel = true,
		.channel_port = CHANNEL_PORT,
		.qual = CONN_QUAL,
	};
	while ((letter = getopt_long(argc, argv, letters, longs, NULL)) != -1) {
		if (optarg)
			option_value(opt, letter, optarg);
		else
			option_flag(opt, letter);
	}
	if (optind < argc) {
		fprintf(stderr, "dtest: unexpected argument %s\n", argv[optind]);
		usage();
	}
	options_settle(opt);
}
