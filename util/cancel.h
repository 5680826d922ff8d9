/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/*
 * Keeps a thread from being cancelled while it holds a lock, a reference or a bare descriptor.
 *
 * Both the cancelability type and the state matter. Glibc cancels an asynchronous thread by a signal, whose handler
 * checks the type only: disabling the state does not stop a pending signal. A deferred thread is cancelled at
 * cancellation points, and disabling the state prevents that.
 */
#ifndef UTIL_CANCEL_H
#define UTIL_CANCEL_H

#include <poll.h>
#include <pthread.h>

_Static_assert(PTHREAD_CANCEL_DEFERRED == 0 && PTHREAD_CANCEL_ENABLE == 0,
	       "the type and the state are two bits of one number");
#define CANCEL_STATE 1
#define CANCEL_TYPE  2

/*
 * After a change from asynchronous to deferred, glibc's signal may still be pending. Each system call that is a
 * cancellation point makes the thread asynchronous for its duration, regardless of the state, so that the signal would
 * cancel the thread in the first such call under a lock. This function makes such a call, which lets the signal arrive.
 */
static inline void cancel_settle(void)
{
	poll(NULL, 0, 0);
	pthread_testcancel();
}

static inline int cancel_type_defer(void)
{
	int type;

	pthread_setcanceltype(PTHREAD_CANCEL_DEFERRED, &type);
	if (__builtin_expect(type != PTHREAD_CANCEL_DEFERRED, 0))
		cancel_settle();
	return type;
}

/* If the thread was asynchronous and has been cancelled since, it ends here. */
static inline void cancel_type_restore(int type)
{
	if (__builtin_expect(type != PTHREAD_CANCEL_DEFERRED, 0))
		pthread_setcanceltype(type, &type);
}

/* Returns the argument for cancel_restore. */
static inline int cancel_off(void)
{
	int type = cancel_type_defer(), state;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
	return (type ? CANCEL_TYPE : 0) | (state ? CANCEL_STATE : 0);
}

static inline void cancel_restore(int before)
{
	int state;

	pthread_setcancelstate(before & CANCEL_STATE ? PTHREAD_CANCEL_DISABLE
						     : PTHREAD_CANCEL_ENABLE,
			       &state);
	cancel_type_restore(before & CANCEL_TYPE ? PTHREAD_CANCEL_ASYNCHRONOUS
						 : PTHREAD_CANCEL_DEFERRED);
}

static inline void cancel_scope_end(const int *before)
{
	cancel_restore(*before);
}

static inline void cancel_type_scope_end(const int *type)
{
	cancel_type_restore(*type);
}

/*
 * Disables cancellation until the end of the block. A declaration, to be placed before those that acquire a resource.
 */
#define CANCEL_OFF_HERE \
	const int cancel_here __attribute__((unused, cleanup(cancel_scope_end))) = cancel_off()
/*
 * Like CANCEL_OFF_HERE at half the cost, for a block that has no cancellation point, or cleans up
 * at each.
 */
#define CANCEL_DEFER_HERE                                                               \
	const int cancel_here __attribute__((unused, cleanup(cancel_type_scope_end))) = \
		cancel_type_defer()

#endif
