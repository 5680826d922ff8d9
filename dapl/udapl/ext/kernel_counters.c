/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/*
 * Counters of the kernel over an interval: the difference between start and stop is added to the
 * IA's.
 */
#include <pthread.h>
#include <stdlib.h>
#include "dapl/udapl/ext/ext.h"
#include "dapl/udapl/base/ia.h"
#include "util/cancel.h"

#define GROUPS (DCNT_IA_DIAG + 1)
#define NONE   (-1) /* the IA counts this itself, or has no counter for it */

struct kernel_sample {
	bool started[GROUPS];
	uint64_t values[GROUPS][IB_KERNEL_MOST];
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* samples of all IAs */

void ext_kernel_fork_child(void)
{
	lock = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
}

/* Messages in the order of the kernel: req, mra, rej, rep, rtu, dreq, drep, lap, apr. */
static const int cm_counters[IB_CM_KINDS][IB_KERNEL_CM_MESSAGES] = {
	[IB_CM_SENT] = { NONE, DCNT_IA_CM_MRA_TX, NONE, NONE, DCNT_IA_CM_RTU_TX, NONE,
			 DCNT_IA_CM_DREP_TX, NONE, NONE },
	[IB_CM_RECEIVED] = { NONE, DCNT_IA_CM_MRA_RX, NONE, NONE, NONE, NONE, DCNT_IA_CM_DREP_RX,
			     NONE, NONE },
	[IB_CM_SENT_AGAIN] = { DCNT_IA_CM_ERR_REQ_RETRY, DCNT_IA_CM_ERR_MRA_RETRY, NONE,
			       DCNT_IA_CM_ERR_REP_RETRY, DCNT_IA_CM_ERR_RTU_RETRY,
			       DCNT_IA_CM_ERR_DREQ_RETRY, DCNT_IA_CM_ERR_DREP_RETRY, NONE, NONE },
	[IB_CM_DUPLICATES] = { DCNT_IA_CM_ERR_REQ_DUP, DCNT_IA_CM_ERR_MRA_DUP, NONE,
			       DCNT_IA_CM_ERR_REP_DUP, DCNT_IA_CM_ERR_RTU_DUP,
			       DCNT_IA_CM_ERR_DREQ_DUP, DCNT_IA_CM_ERR_DREP_DUP, NONE, NONE },
};

static int ext_ib_kernel_counter_of(int group, unsigned i)
{
	if (group == DCNT_IA_LNK)
		return DCNT_IA_LNK_ERR_RCV + (int)i;
	if (group == DCNT_IA_DIAG)
		return DCNT_IA_DIAG_ERR_RQ_RAE + (int)i;
	return cm_counters[i / IB_KERNEL_CM_MESSAGES][i % IB_KERNEL_CM_MESSAGES];
}

static unsigned sample(const struct dapl_ia *ia, int group, uint64_t *values)
{
	static const enum ib_kernel_group groups[GROUPS] = {
		[DCNT_IA_CM] = IB_KERNEL_CM,
		[DCNT_IA_LNK] = IB_KERNEL_LINK,
		[DCNT_IA_DIAG] = IB_KERNEL_DIAGNOSTICS,
	};

	return ib_kernel_counters(ia->device, groups[group], values);
}

static bool is_group(int group)
{
	return group >= 0 && group < GROUPS;
}

/* A second start begins again from here. */
DAT_RETURN ext_start_counters(DAT_HANDLE handle, va_list args)
{
	CANCEL_OFF_HERE;
	int group = va_arg(args, int);
	struct dapl_ia *ia = handle;
	DAT_RETURN status = DAT_SUCCESS;

	if (!is_group(group))
		return DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
	pthread_mutex_lock(&lock);
	if (!ia->kernel)
		ia->kernel = calloc(1, sizeof(*ia->kernel));
	if (ia->kernel) {
		sample(ia, group, ia->kernel->values[group]);
		ia->kernel->started[group] = true;
	} else {
		status = DAT_ERROR(DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_MEMORY);
	}
	pthread_mutex_unlock(&lock);
	return status;
}

/* A counter of the kernel that was reset since the start adds nothing. */
static void ext_ib_kernel_add_locked(struct dapl_ia *ia, int group)
{
	const uint64_t *before = ia->kernel->values[group];
	uint64_t now[IB_KERNEL_MOST];
	unsigned count = sample(ia, group, now);

	for (unsigned i = 0; i < count; i++) {
		int counter = ext_ib_kernel_counter_of(group, i);

		if (counter != NONE && now[i] > before[i])
			counter_add(&ia->counters.value[counter], now[i] - before[i]);
	}
	ia->kernel->started[group] = false;
}

DAT_RETURN ext_stop_counters(DAT_HANDLE handle, va_list args)
{
	CANCEL_OFF_HERE;
	int group = va_arg(args, int);
	struct dapl_ia *ia = handle;
	bool started;

	if (!is_group(group))
		return DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
	pthread_mutex_lock(&lock);
	started = ia->kernel && ia->kernel->started[group];
	if (started)
		ext_ib_kernel_add_locked(ia, group);
	pthread_mutex_unlock(&lock);
	return started ? DAT_SUCCESS : DAT_ERROR(DAT_INVALID_STATE, 0);
}

void ext_kernel_free(struct dapl_ia *ia)
{
	free(ia->kernel);
	ia->kernel = NULL;
}
