/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* For suites that stand between the provider and the CM: the provider that is linked into this very program. */
#ifndef ANNOUNCE_H
#define ANNOUNCE_H

#include <stdlib.h>
#include "dapl/udapl/provider.h"

/* env_open opens it from now on. */
static inline void announce(void)
{
	static DAT_PROVIDER_INFO info = { .ia_name = "linked", .dapl_version_major = 2 };
	static bool announced;

	if (!announced)
		dat_provider_init(&info, "soft0 1");
	announced = true;
	setenv("DAPL_TEST_IA", "linked", 1);
}

#endif
