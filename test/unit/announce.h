/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/*
 * For suites that wrap calls between the provider and the CM: announces the provider that is linked
 * into this program.
 */
#ifndef ANNOUNCE_H
#define ANNOUNCE_H

#include <stdlib.h>
#include "dapl/udapl/base/provider.h"

/* After this call env_open opens that provider. */
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
