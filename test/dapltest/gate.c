/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* A gate that opens when all threads have come, and stays shut if one of them has failed. */

#include <errno.h>
#include <time.h>

#include "tool.h"

void gate_init(struct gate *g, int threads)
{
	pthread_condattr_t attr;

	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_mutex_init(&g->lock, NULL);
	pthread_cond_init(&g->cond, &attr);
	pthread_condattr_destroy(&attr);
	g->missing = threads;
	g->broken = false;
}

void gate_destroy(struct gate *g)
{
	pthread_cond_destroy(&g->cond);
	pthread_mutex_destroy(&g->lock);
}

bool gate_pass(struct gate *g, bool ok)
{
	uint64_t deadline = clock_after(wait_limit());
	struct timespec end = {
		.tv_sec = (time_t)(deadline / 1000000000u),
		.tv_nsec = (long)(deadline % 1000000000u),
	};
	int err = 0;

	pthread_mutex_lock(&g->lock);
	g->missing--;
	if (!ok)
		g->broken = true;
	pthread_cond_broadcast(&g->cond);
	while (g->missing > 0 && !g->broken && err != ETIMEDOUT)
		err = pthread_cond_timedwait(&g->cond, &g->lock, &end);
	if (g->missing > 0 && !g->broken) {
		complain("Error: other threads were not ready within %g seconds", wait_limit());
		g->broken = true;
	}
	ok = !g->broken;
	pthread_mutex_unlock(&g->lock);
	return ok;
}
