/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/*
 * Keeps a thread from being cancelled while it holds a lock or a bare descriptor: only the getters
 * of events are meant for that.
 */
#ifndef SV_CANCEL_H
#define SV_CANCEL_H

#include <pthread.h>

static inline int cancel_off(void)
{
	int before;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before);
	return before;
}

static inline void cancel_restore(int before)
{
	pthread_setcancelstate(before, &before);
}

#endif
