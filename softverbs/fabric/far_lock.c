/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* The data lock, which data.h explains. A thread that holds it is not cancelled. */
#include <pthread.h>
#include "softverbs/fabric/data.h"
#include "util/cancel.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static _Thread_local int cancel_before;

void sv_far_lock(void)
{
	int before = cancel_off();

	pthread_mutex_lock(&lock);
	cancel_before = before;
}

void sv_far_unlock(void)
{
	pthread_mutex_unlock(&lock);
	cancel_restore(cancel_before);
}

void sv_far_lock_renew(void)
{
	pthread_mutex_init(&lock, NULL);
}
