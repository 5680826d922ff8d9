/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* Functional tests: small cases, each on an adapter opened for it. */

#ifndef FUNC_H
#define FUNC_H

#include "dapltest.h"

enum func_result { FUNC_FAIL, FUNC_PASS, FUNC_UNSUPPORTED };

struct func_run {
	const struct options *opt;
	int variant; /* of the case, from its table */
};

struct func_case {
	const char *description;
	enum func_result (*run)(const struct func_run *run);
	int variant;
};

struct func_feature {
	const char *name, *title;
	const struct func_case *cases;
	int count;
};

extern const struct func_feature func_hwconn, func_endpoint, func_pz, func_mem, func_connmgt,
	func_queryinfo;

/*
 * The objects of a case. Those that exist when the case ends are freed, and the free must succeed.
 */
struct bench {
	DAT_IA_HANDLE ia;
	DAT_EVD_HANDLE async_evd;
	DAT_PZ_HANDLE pz;
	DAT_EVD_HANDLE cr_evd, conn_evd, request_evd, recv_evd;
	DAT_EP_HANDLE ep;
	struct region region;
};

/* func_bench.c */
bool bench_open(struct bench *b, const struct func_run *run);
bool bench_pz(struct bench *b);
bool bench_evds(struct bench *b);
bool bench_ep(struct bench *b);
enum func_result bench_close(struct bench *b, bool passed);
bool expect(DAT_RETURN ret, DAT_RETURN_TYPE type, const char *call);
bool expect_true(bool fact, const char *what);

#endif
