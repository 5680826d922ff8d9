/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* Limit tests: objects of one kind are created until no more can be created. */

#ifndef LIMIT_H
#define LIMIT_H

#include "dapltest.h"

/* The objects of a set that the tested object needs; each value includes the earlier ones. */
enum limit_depth { DEPTH_NONE, DEPTH_IA, DEPTH_PZ, DEPTH_CNO, DEPTH_EVD, DEPTH_EP };

enum { LIMIT_BUFFER = 4096 };

/* Objects that a test builds on; there are as many sets as the width says. */
struct limit_set {
	DAT_IA_HANDLE ia;
	DAT_EVD_HANDLE async_evd;
	DAT_PZ_HANDLE pz;
	DAT_CNO_HANDLE cno;
	DAT_EVD_HANDLE evd; /* for completions and connection requests */
	DAT_EP_HANDLE ep;
	struct region buffer;
};

struct limit_run {
	const struct options *opt;
	struct limit_set *sets;
	int width;
	DAT_EVD_HANDLE conn_evd; /* one for all sets, on the first IA */
	DAT_CONN_QUAL next_qual;
};

/* An object that was created, perhaps with an EP made for it. */
struct limit_made {
	DAT_HANDLE handle;
	DAT_EP_HANDLE ep;
};

/* limit_set.c */
bool limit_sets_create(struct limit_run *run, enum limit_depth depth);
bool limit_sets_free(struct limit_run *run);
DAT_RETURN limit_ep_make(struct limit_run *run, struct limit_set *set, DAT_EP_HANDLE *ep);
DAT_RETURN limit_cno_make(struct limit_set *set, DAT_CNO_HANDLE *cno);
bool limit_is_missing(DAT_RETURN ret);

/* limit_make.c: creates and frees one object of each kind */
struct limit_kind {
	const char *name, *description, *result;
	const char *call; /* the name of the call that creates it */
	enum limit_depth depth;
	DAT_RETURN (*make)(struct limit_run *run, struct limit_set *set, struct limit_made *made);
	DAT_RETURN (*unmake)(struct limit_made *made);
};

extern const struct limit_kind limit_kinds[];
extern const int limit_kind_count;

/* limit_size.c */
bool limit_size_run(const struct options *opt);

#endif
