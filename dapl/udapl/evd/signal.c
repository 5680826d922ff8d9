/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* Signals, which wake the waiter of an EVD, and wait policies. */
#include "dapl/udapl/evd/evd.h"
#include "util/cancel.h"
#include "util/clock.h"

#define SPIN_US_MAX 1000000u

/* Async-signal-safe: acquires no lock, allocates no memory, and preserves errno. */
DAT_RETURN ext_evd_signal(DAT_HANDLE handle, va_list args)
{
	struct dapl_evd *evd = handle;

	(void)args;
	wakefd_signal(&evd->wake);
	return DAT_SUCCESS;
}

DAT_RETURN ext_evd_wait_policy(DAT_HANDLE handle, va_list args)
{
	CANCEL_OFF_HERE;
	DAT_UINT32 policy = va_arg(args, DAT_UINT32), spin_us = va_arg(args, DAT_UINT32);
	struct dapl_evd *evd = handle;

	if (policy > DAT_EV_WAIT_YIELD)
		return DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG3);
	if (spin_us > SPIN_US_MAX)
		return DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG4);
	lock_acquire(&evd->lock);
	evd->policy = (DAT_EV_WAIT_POLICY)policy;
	evd->spin = spin_us * NSEC_PER_USEC;
	lock_release(&evd->lock);
	return DAT_SUCCESS;
}
