/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* Waking whoever waits for an EVD, and how waits spend their time. */
#include "dapl/udapl/evd.h"
#include "dapl/udapl/ext.h"
#include "util/clock.h"

#define SPIN_US_MAX 1000000u

/* From a signal handler, too: no lock, no memory, and errno as it was. */
DAT_RETURN ext_evd_signal(DAT_HANDLE handle, va_list args)
{
	struct dapl_evd *evd = handle;

	(void)args;
	wakefd_signal(&evd->wake);
	return DAT_SUCCESS;
}

DAT_RETURN ext_evd_wait_policy(DAT_HANDLE handle, va_list args)
{
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
