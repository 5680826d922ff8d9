/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* The command line: the test, and its options. */

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dapltest.h"

enum { OPT_TIMEOUT = 256 };

bool option_number(const char *text, uint64_t max, uint64_t *number)
{
	uint64_t n = 0;

	if (!*text)
		return false;
	for (; *text; text++) {
		if (*text < '0' || *text > '9')
			return false;
		n = n * 10 + (uint64_t)(*text - '0');
		if (n > max)
			return false;
	}
	*number = n;
	return true;
}

static bool count_take(int opt, const char *what, uint64_t min, uint64_t max, uint32_t *count)
{
	uint64_t number;

	if (!option_number(optarg, max, &number) || number < min) {
		complain("Syntax Error -%c<%s> option", opt, what);
		return false;
	}
	*count = (uint32_t)number;
	return true;
}

static bool name_claim(int opt, const char *what, char name[NAME_SIZE])
{
	if (!*optarg || strlen(optarg) >= NAME_SIZE) {
		complain("Syntax Error -%c<%s> option", opt, what);
		return false;
	}
	snprintf(name, NAME_SIZE, "%s", optarg);
	return true;
}

static DAT_QOS qos_find(const char *text)
{
	static const struct {
		const char *name;
		DAT_QOS qos;
	} kinds[] = {
		{ "HT", DAT_QOS_HIGH_THROUGHPUT },
		{ "LL", DAT_QOS_LOW_LATENCY },
		{ "EC", DAT_QOS_ECONOMY },
		{ "PM", DAT_QOS_PREMIUM },
	};

	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		if (strcmp(text, kinds[i].name) == 0)
			return kinds[i].qos;
	return DAT_QOS_BEST_EFFORT;
}

static bool timeout_take(void)
{
	char *end;
	double seconds = strtod(optarg, &end);

	if (end == optarg || *end || !(seconds > 0) || seconds > 1e6) {
		complain("Syntax Error --timeout <seconds> option");
		return false;
	}
	wait_limit_set(seconds);
	return true;
}

static bool common_option(int c, struct options *opt)
{
	uint32_t number;

	switch (c) {
	case 'D': return name_claim(c, "device", opt->device);
	case 's': return name_claim(c, "server", opt->server);
	case 'R': opt->qos = qos_find(optarg); return true;
	case 'd': opt->debug++; return true;
	case OPT_TIMEOUT: return timeout_take();
	case 'n':
		if (!count_take(c, "server port number", 1, UINT32_MAX, &number))
			return false;
		opt->port = number;
		return true;
	default: return false;
	}
}

static bool transaction_option(int c, struct options *opt)
{
	struct transaction *t = &opt->transaction;

	switch (c) {
	case 'i': return count_take(c, "iterations", 1, INT32_MAX, &t->iterations);
	case 't': return count_take(c, "threads", 1, THREADS_MAX, &t->threads);
	case 'w': return count_take(c, "EPs per thread", 1, EPS_MAX, &t->eps);
	case 'V': t->validate = true; return true;
	case 'P': t->poll = true; return true;
	case 'r': t->reserved = true; return true;
	case 'Q': return true;
	default: return common_option(c, opt);
	}
}

static bool performance_option(int c, struct options *opt)
{
	struct performance *p = &opt->performance;

	switch (c) {
	case 'i': return count_take(c, "iterations", 1, INT32_MAX, &p->iterations);
	case 'p': return count_take(c, "pipeline", 1, INT32_MAX, &p->pipeline);
	case 'm':
		if (strcmp(optarg, "b") != 0 && strcmp(optarg, "p") != 0) {
			complain("Syntax Error -m<mode> option");
			return false;
		}
		p->poll = *optarg == 'p';
		return true;
	default: return common_option(c, opt);
	}
}

static bool limit_option(int c, struct options *opt)
{
	uint32_t number;

	switch (c) {
	case 'w':
		if (!count_take(c, "width", 1, THREADS_MAX, &number))
			return false;
		opt->limits.width = (int)number;
		return true;
	case 'm':
		if (!count_take(c, "maximum", 1, INT32_MAX, &number))
			return false;
		opt->limits.maximum = (long)number;
		return true;
	default: return common_option(c, opt);
	}
}

static bool functional_option(int c, struct options *opt)
{
	uint32_t ignored;

	switch (c) {
	case 'f':
		if (functional_cases(optarg) == 0) {
			complain("don't know this function feature: %s", optarg);
			return false;
		}
		opt->functional.feature = optarg;
		return true;
	case 'i': return count_take(c, "iterations", 0, INT32_MAX, &ignored);
	case 't': return count_take(c, "threads", 0, INT32_MAX, &ignored);
	case 'v': return count_take(c, "vis", 0, INT32_MAX, &ignored);
	default: return common_option(c, opt);
	}
}

static bool no_rest(const struct options *opt, int count, char **words)
{
	(void)opt;
	if (count > 0)
		complain("Unexpected argument: %s", words[0]);
	return count == 0;
}

static bool transaction_rest(struct options *opt, int count, char **words)
{
	struct transaction *t = &opt->transaction;

	if ((uint64_t)t->threads * t->eps > EPS_MAX) {
		complain("Error: more than %d endpoints", EPS_MAX);
		return false;
	}
	return transaction_ops_parse(count, words, t);
}

static bool limit_rest(struct limits *l, int count, char **words)
{
	for (int i = 0; i < count; i++) {
		int test = limit_find(words[i]);

		if (test < 0) {
			complain("Cannot find this limit test: %s", words[i]);
			return false;
		}
		l->chosen |= 1u << test;
	}
	if (count == 0)
		l->chosen = ~0u;
	return true;
}

static bool functional_rest(struct functional *f, int count, char **words)
{
	int cases;
	uint64_t number;

	if (!f->feature) {
		complain("must define the function feature with -f to test");
		return false;
	}
	cases = functional_cases(f->feature);
	for (int i = 0; i < count; i++) {
		if (strncmp(words[i], "case", 4) != 0 ||
		    !option_number(words[i] + 4, (uint64_t)cases - 1, &number)) {
			complain("test case number must be within range : 0 -- %d", cases - 1);
			return false;
		}
		if (f->case_count == (int)(sizeof(f->cases) / sizeof(f->cases[0]))) {
			complain("too many test cases");
			return false;
		}
		f->cases[f->case_count++] = (int)number;
	}
	return true;
}

static bool rest_parse(struct options *opt, int count, char **words)
{
	bool needs_server = opt->type == TEST_TRANSACTION || opt->type == TEST_PERFORMANCE ||
			    opt->type == TEST_QUIT;

	if (needs_server && !*opt->server) {
		complain("Must specify server_name in command line or scriptfile");
		return false;
	}
	switch (opt->type) {
	case TEST_TRANSACTION: return transaction_rest(opt, count, words);
	case TEST_PERFORMANCE: return performance_op_parse(count, words, &opt->performance);
	case TEST_LIMIT: return limit_rest(&opt->limits, count, words);
	case TEST_FUNCTIONAL: return functional_rest(&opt->functional, count, words);
	default: return no_rest(opt, count, words);
	}
}

struct kind {
	char letter;
	enum test_type type;
	const char *options; /* '+': getopt stops at the first other word */
	bool (*take)(int c, struct options *opt);
};

static const struct kind *kind_find(char letter)
{
	static const struct kind kinds[] = {
		{ 'S', TEST_SERVER, "+D:dR:n:", common_option },
		{ 'T', TEST_TRANSACTION, "+s:D:dR:n:i:t:w:VPrQ", transaction_option },
		{ 'P', TEST_PERFORMANCE, "+s:D:dR:n:m:i:p:", performance_option },
		{ 'L', TEST_LIMIT, "+D:dR:n:w:m:", limit_option },
		{ 'F', TEST_FUNCTIONAL, "+D:df:s:i:t:v:R:n:", functional_option },
		{ 'Q', TEST_QUIT, "+s:D:dR:n:", common_option },
	};

	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		if (kinds[i].letter == letter)
			return &kinds[i];
	return NULL;
}

static bool test_parse(const struct kind *kind, int argc, char **argv, struct options *opt)
{
	static const struct option words[] = {
		{ "timeout", required_argument, NULL, OPT_TIMEOUT },
		{ NULL, 0, NULL, 0 },
	};
	int c;

	opt->type = kind->type;
	while ((c = getopt_long(argc, argv, kind->options, words, NULL)) != -1)
		if (!kind->take(c, opt))
			return false;
	return rest_parse(opt, argc - optind, argv + optind);
}

static void defaults_set(struct options *opt)
{
	memset(opt, 0, sizeof(*opt));
	opt->type = TEST_SERVER;
	snprintf(opt->device, sizeof(opt->device), "ofa-v2-ib0");
	opt->port = PORT_DEFAULT;
	opt->qos = DAT_QOS_BEST_EFFORT;
	opt->transaction = (struct transaction){ .iterations = 1000, .threads = 1, .eps = 1 };
	opt->performance = (struct performance){
		.iterations = 1000,
		.pipeline = UINT32_MAX,
		.op = { .transfer = TRANSFER_WRITE, .size = 4096, .segments = 1 },
	};
	opt->limits = (struct limits){ .width = 1, .maximum = 1000 };
}

/*
 * The value of the option that must come first, "-Tx" or "-T x", and the index of the next option.
 */
static const char *first_option(int argc, char **argv, char letter, int *next)
{
	if (argv[1][0] != '-' || argv[1][1] != letter)
		return NULL;
	*next = argv[1][2] ? 2 : 3;
	return argv[1][2] ? argv[1] + 2 : argc > 2 ? argv[2] : NULL;
}

bool options_parse(int argc, char **argv, struct options *opt)
{
	const struct kind *kind;
	const char *value;
	int next;

	defaults_set(opt);
	if (argc < 2)
		return true;
	value = first_option(argc, argv, 'f', &next);
	if (value && argc == next) {
		argv = script_words(value, argv[0], &argc);
		if (!argv)
			return false;
		if (argc < 2)
			return true;
	}
	value = first_option(argc, argv, 'T', &next);
	kind = value && value[0] && !value[1] ? kind_find(value[0]) : NULL;
	if (!kind) {
		complain(value ? "Invalid Test Type" : "Must Specify Test (-T) option first");
		usage_show();
		return false;
	}
	argv[next - 1] = argv[0]; /* getopt takes this for the name of the program */
	if (test_parse(kind, argc - next + 1, argv + next - 1, opt))
		return true;
	usage_show_test(kind->type);
	return false;
}
