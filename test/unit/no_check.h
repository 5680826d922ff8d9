/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* Keeps the engine from checking whether a reader of links reads (link_reader.c). For one suite each: it replaces a function. */
#ifndef NO_CHECK_H
#define NO_CHECK_H

#include <stdbool.h>
#include "softverbs/link/engine.h"

static _Thread_local bool no_check; /* the calling thread arms no timer */

void __real_sv_engine_timer_arm(struct sv_timer *timer, uint64_t deadline,
				void (*function)(struct sv_timer *timer));
void __wrap_sv_engine_timer_arm(struct sv_timer *timer, uint64_t deadline,
				void (*function)(struct sv_timer *timer));
void __wrap_sv_engine_timer_arm(struct sv_timer *timer, uint64_t deadline,
				void (*function)(struct sv_timer *timer))
{
	if (!no_check)
		__real_sv_engine_timer_arm(timer, deadline, function);
}

#endif
