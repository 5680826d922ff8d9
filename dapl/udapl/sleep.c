/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* The one place where consumers' threads sleep. */
#include <errno.h>
#include <pthread.h>
#include "dapl/udapl/sleep.h"
#include "util/clock.h"

void sleep_begin(struct sleeper *self, DAT_TIMEOUT timeout)
{
	self->deadline = CLOCK_NEVER;
	/* 0 is over whatever the clock says. */
	if (timeout != DAT_TIMEOUT_INFINITE)
		self->deadline = timeout ? clock_now() + timeout * NSEC_PER_USEC : 0;
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &self->cancel_state);
}

void sleep_end(const struct sleeper *self)
{
	pthread_setcancelstate(self->cancel_state, NULL);
}

bool sleep_is_over(const struct sleeper *self)
{
	return self->deadline != CLOCK_NEVER && clock_now() >= self->deadline;
}

int sleep_on(struct sleeper *self)
{
	bool ends = self->deadline != CLOCK_NEVER;
	struct timespec left = { 0 };
	int n, error;

	if (ends)
		left = clock_left(self->deadline);
	pthread_cleanup_push(self->leave, self->arg);
	pthread_setcancelstate(self->cancel_state, NULL);
	n = ppoll(self->fds, self->count, ends ? &left : NULL, NULL);
	error = n < 0 ? errno : 0;
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
	pthread_cleanup_pop(0);
	return error;
}
