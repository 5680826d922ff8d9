/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* For suites whose tests each start with two new endpoints and a listening service point. */
#ifndef TWO_ENDS_H
#define TWO_ENDS_H

#include "test/unit/ep_util.h"

static struct env env;
static struct end a, b;

static void setup(void)
{
	env_open(&env);
	env_listen(&env);
	end_open(&env, &a, NULL);
	end_open(&env, &b, NULL);
}

static void teardown(void)
{
	end_close(&a);
	end_close(&b);
	env_close(&env);
}

#endif
