/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* The provider's counters of one object, printed by this program and by the provider. */

#include <stdio.h>
#include <string.h>

#include "dtestx.h"

enum { COUNTERS_MOST = DCNT_IA_ALL_COUNTERS };

bool x_counters(struct x_test *t, DAT_HANDLE handle, const char *what, int count)
{
	DAT_UINT64 values[COUNTERS_MOST];
	DAT_RETURN ret;

	if (!t->opt.counters || !handle)
		return true;
	if (!named_find(t->a.named, t->a.named_count, DAT_IB_ATTR_COUNTERS)) {
		note("Skipping counters of %s as they are not supported", what);
		return true;
	}
	memset(values, 0, sizeof(values));
	ret = dat_ib_query_counters(handle, count, values, 0);
	if (!dat_ok(ret, "dat_ib_query_counters"))
		return false;
	printf(" %s Cntrs:", what);
	for (int i = 0; i < count; i++)
		printf(" %llu", (unsigned long long)values[i]);
	printf("\n");
	fflush(stdout);
	return dat_ok(dat_ib_print_counters(handle, count, 0), "dat_ib_print_counters");
}
