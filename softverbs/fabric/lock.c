/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* The fabric's lock, which link.h explains. A thread that holds it is not cancelled. */
#include <pthread.h>
#include "softverbs/fabric/link.h"
#include "util/cancel.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static _Thread_local int cancel_before;

void sv_fabric_lock(void)
{
	int before = cancel_off();

	pthread_mutex_lock(&lock);
	cancel_before = before;
}

bool sv_fabric_trylock(void)
{
	int before = cancel_off();

	if (pthread_mutex_trylock(&lock)) {
		cancel_restore(before);
		return false;
	}
	cancel_before = before;
	return true;
}

void sv_fabric_unlock(void)
{
	pthread_mutex_unlock(&lock);
	cancel_restore(cancel_before);
}
