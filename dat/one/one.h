/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/*
 * Internal header of libdat.so.1. The library forwards each call of DAT 1.2 to libdat2.so.2 and owns no objects:
 * handles are those of DAT 2.0. "two" in a name means DAT 2.0.
 */
#ifndef DAT_ONE_ONE_H
#define DAT_ONE_ONE_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

/* Everything is compiled hidden but what the public headers declare. */
#pragma GCC visibility push(default)
#include <dat/udat.h>
#include <dat/dat_registry.h>
/* Providers look this function up by name. */
DAT_RETURN dats_get_ia_handle(unsigned long handle, DAT_IA_HANDLE *other);
#pragma GCC visibility pop

#include "dat/one/two.h"
#include "util/log.h"

/*
 * two.c: the functions of libdat2.so.2, resolved by name and version before any function of this library runs. Constant
 * afterwards.
 */
extern struct two two;

#define ONE_ERROR(type, subtype) ((DAT_RETURN)(DAT_CLASS_ERROR | (type) | (subtype)))
#define ONE_BAD_ARG(n)		 ONE_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG1 + (n)-1)

/* ---- status.c ---- */

/* Translates a failure of DAT 2.0 to DAT 1.2; one_status_to_two translates any result back. */
DAT_RETURN one_failure(DAT_RETURN two_status);
DAT_RETURN one_status_to_two(DAT_RETURN status);

static inline DAT_RETURN one_status(DAT_RETURN two_status)
{
	return __builtin_expect(two_status == DAT_SUCCESS, 1) ? DAT_SUCCESS
							      : one_failure(two_status);
}

/*
 * As one_failure, for a call with a different order of arguments: argument n of DAT 2.0 is argument place[n] of DAT
 * 1.2. Both count from 1; `places` is one more than the last n.
 */
DAT_RETURN one_failure_of_args(DAT_RETURN two_status, const unsigned char *place, unsigned places);

/*
 * The result for a bad argument that cannot be expressed in DAT 2.0. Since handles are checked first: that of a bad
 * handle if the handle is bad, else INVALID_PARAMETER with the argument's number.
 */
DAT_RETURN one_refuse(DAT_HANDLE handle, DAT_HANDLE_TYPE type, unsigned arg);

/* ---- attr.c ---- */

/*
 * Translate masks to DAT 2.0. A mask with a bit unknown to DAT 1.2 becomes ONE_MASK_UNKNOWN: DAT 2.0 checks the
 * arguments before the mask and then refuses the mask, or ignores it.
 */
#define ONE_MASK_UNKNOWN UINT64_C(0x8000000000000000)
#define ONE_ENUM_UNKNOWN 0x40000000

DAT_UINT64 one_ia_mask(DAT_IA_ATTR_MASK mask);
DAT_UINT64 one_provider_mask(DAT_PROVIDER_ATTR_MASK mask);
DAT_UINT64 one_ep_mask(DAT_EP_PARAM_MASK mask);
int one_lmr_mask(DAT_LMR_PARAM_MASK mask);
int one_rmr_mask(DAT_RMR_PARAM_MASK mask);

void one_ia_attr(DAT_IA_ATTR *attr, const struct two_ia_attr *two_attr);
void one_provider_attr(DAT_PROVIDER_ATTR *attr, const struct two_provider_attr *two_attr);
void one_ep_param(DAT_EP_PARAM *param, const struct two_ep_param *two_param);
void one_ep_attr_to_two(struct two_ep_attr *two_attr, const DAT_EP_ATTR *attr);
void one_ep_param_to_two(struct two_ep_param *two_param, const DAT_EP_PARAM *param);

/* ---- triplets ---- */

/* The maximum number of segments of a post, above that of any device, so that posts need not allocate. */
#define ONE_IOV_MAX 64

#define ONE_LENGTH_MAX UINT32_MAX

/* False: the length does not fit. */
static inline bool one_lmr_triplet_to_two(struct two_lmr_triplet *to, const DAT_LMR_TRIPLET *from)
{
	to->virtual_address = from->virtual_address;
	to->segment_length = (DAT_UINT32)from->segment_length;
	to->lmr_context = from->lmr_context;
	return from->segment_length <= ONE_LENGTH_MAX;
}

/* ---- lmr_table.c: which LMR has a context, for dat_rmr_bind() ---- */

struct lmr_entry {
	struct lmr_entry *next;
	DAT_IA_HANDLE ia;	/* as the program has it */
	DAT_IA_HANDLE asked_ia; /* as returned by queries of its objects */
	DAT_LMR_CONTEXT context;
	DAT_LMR_HANDLE lmr;
};

void lmr_table_add(struct lmr_entry *entry);
DAT_LMR_HANDLE lmr_table_find(DAT_IA_HANDLE asked_ia, DAT_LMR_CONTEXT context);

/* Removes an entry, which the caller frees or adds again; NULL if there is none. */
struct lmr_entry *lmr_table_take(DAT_LMR_HANDLE lmr, DAT_LMR_CONTEXT context);
struct lmr_entry *lmr_table_take_ia(DAT_IA_HANDLE ia); /* a list */

/* ---- registry.c ---- */

void one_log_open(void);
bool one_is_listed(const char *name); /* for DAT 1, whatever its minor version */

#endif
