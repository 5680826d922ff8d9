/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* The options of dapltest, and the programs of its test types. */

#ifndef DAPLTEST_H
#define DAPLTEST_H

#include "tool.h"

enum {
	PORT_DEFAULT = 62000,
	PORT_SPAN = 1000, /* tests use the ports from base + 1 to base + PORT_SPAN */
	NAME_SIZE = 256,
	OPS_MAX = 100,
	THREADS_MAX = 1024,
	EPS_MAX = 4096, /* in one test, over all threads */
	SEGMENTS_MAX = 1024,
	BYTES_MAX = 1 << 30, /* in one transfer */
};

/* The numbers are on the wire. */
enum test_type {
	TEST_SERVER,
	TEST_TRANSACTION,
	TEST_PERFORMANCE,
	TEST_LIMIT,
	TEST_QUIT,
	TEST_FUNCTIONAL,
};

enum transfer { TRANSFER_READ, TRANSFER_WRITE, TRANSFER_SEND };

struct op {
	bool by_server;
	enum transfer transfer;
	uint32_t size, segments;
	bool reap_late; /* the client reaps a send after the answer has come */
};

struct transaction {
	uint32_t iterations, threads, eps;
	bool reserved; /* RSPs in place of PSPs */
	bool validate, poll;
	uint32_t op_count;
	struct op ops[OPS_MAX];
};

struct performance {
	bool poll;
	uint32_t iterations, pipeline;
	struct op op;
};

struct limits {
	int width;
	long maximum;
	unsigned int chosen; /* a bit for each test */
};

struct functional {
	const char *feature;
	int case_count;
	int cases[64];
};

struct options {
	enum test_type type;
	char device[NAME_SIZE];
	char server[NAME_SIZE];
	uint64_t port;
	DAT_QOS qos;
	int debug;
	struct transaction transaction;
	struct performance performance;
	struct limits limits;
	struct functional functional;
};

/* options.c, options_op.c, script.c, usage.c: return false after they have printed the error */
bool options_parse(int argc, char **argv, struct options *opt);
bool option_number(const char *text, uint64_t max, uint64_t *number);
bool op_parse(int count, char **words, struct op *op);
bool transaction_ops_parse(int count, char **words, struct transaction *t);
bool performance_op_parse(int count, char **words, struct performance *p);
char **script_words(const char *path, const char *program, int *count);
void usage_show(void);
void usage_show_all(void);
void usage_show_test(enum test_type type);

/* client.c, server.c, limit.c, functional.c: return whether everything passed */
bool client_run(const struct options *opt);
bool server_run(const struct options *opt);
bool limit_run(const struct options *opt);
bool functional_run(const struct options *opt);

int limit_find(const char *name);	   /* -1 if there is no such test */
int functional_cases(const char *feature); /* 0 if there is no such feature */

#endif
