/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* The lock of the connection manager, and how a call fails. */
#include <errno.h>
#include "softverbs/cm/cm.h"
#include "util/cancel.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static _Thread_local int cancel_before;

void sv_cm_lock(void)
{
	int before = cancel_off();

	pthread_mutex_lock(&lock);
	cancel_before = before;
}

void sv_cm_unlock(void)
{
	pthread_mutex_unlock(&lock);
	cancel_restore(cancel_before);
}

void sv_cm_wait(pthread_cond_t *cond)
{
	pthread_cond_wait(cond, &lock);
}

int sv_cm_fail(int error)
{
	errno = error;
	return -1;
}

bool sv_cm_id_is_ours(const struct cm_id *id)
{
	return *id->alive;
}

enum cm_state sv_cm_id_state(const struct cm_id *id)
{
	enum cm_state state;

	sv_cm_lock();
	state = id->state;
	sv_cm_unlock();
	return state;
}
