/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/*
 * The defaults of the UD CM in a large job, whose processes may all connect to one of them at once: their messages queue
 * there, and repetitions would only add to them.
 */
#include "util/settings.h"

static const struct {
	enum setting which;
	long factor;
} in_large_jobs[] = {
	{ SET_UCM_REP_TIME, 20 },
	{ SET_UCM_RTU_TIME, 20 },
	{ SET_UCM_DREP_TIME, 2 },
	{ SET_UCM_QP_SIZE, 4 },
};

static bool job_is_large(const struct settings *all)
{
	long processes = all->values[SET_NETWORK_PROCESS_NUM].value;

	if (!processes)
		processes =
			all->values[SET_NETWORK_NODES].value * all->values[SET_NETWORK_PPN].value;
	return processes > all->values[SET_NETWORK_THRESHOLD].value;
}

void settings_job(struct settings *all)
{
	struct setting_value *value;
	size_t i;

	if (!job_is_large(all))
		return;
	for (i = 0; i < sizeof(in_large_jobs) / sizeof(in_large_jobs[0]); i++) {
		value = &all->values[in_large_jobs[i].which];
		if (value->origin == SETTING_STANDARD)
			value->value *= in_large_jobs[i].factor;
	}
}
