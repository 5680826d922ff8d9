/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/*
 * Runs a creation while its nth call of some kind fails, for n = 1, 2, ... until none fails: each
 * run returns the right error and leaves nothing behind. The provider is linked into the program so
 * that the linker can wrap its calls.
 */
#ifndef NTH_H
#define NTH_H

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <dat2/udat.h>
#include <dat2/dat_registry.h>
#include <dat2/dat_ib_extensions.h>
#include "test/unit/ep_util.h"

#define NTH_NAME "nth"

void dat_provider_init(const DAT_PROVIDER_INFO *info, const char *params);

/* Number of calls that succeed before one fails; negative: none fails. */
static atomic_long nth_left = -1;
static atomic_uint nth_fired;

/* Called by each wrapped call: returns whether it has to fail. */
static inline bool nth_fails(void)
{
	long left = atomic_load(&nth_left);

	while (left > 0)
		if (atomic_compare_exchange_weak(&nth_left, &left, left - 1)) {
			if (left > 1)
				return false;
			atomic_fetch_add(&nth_fired, 1);
			return true;
		}
	return false;
}

/* Number of live things, besides descriptors, that a failure must not leave behind. */
static unsigned long (*nth_alive)(void);
/*
 * The first run creates what is made on first use and kept: pools, the link to the peer. Only later
 * runs must leave everything unchanged.
 */
static bool nth_warm;

struct nth_scene {
	DAT_IA_HANDLE ia;
	DAT_EVD_HANDLE async;
	DAT_PZ_HANDLE pz;
	DAT_EVD_HANDLE cr;
	DAT_CNO_HANDLE cno;
	struct env env; /* of both ends, with a listening PSP */
	struct end a, b;
	DAT_HANDLE made; /* created by the call under test */
	DAT_CONN_QUAL qual;
	DAT_SRQ_HANDLE srq;
};

/* A call under test: its preparation, the call, and the call that undoes it. */
struct nth_step {
	const char *name;
	DAT_RETURN (*attempt)(struct nth_scene *scene);
	void (*undo)(struct nth_scene *scene);
	void (*settle)(struct nth_scene *scene); /* called after a failure; NULL: nothing to do */
	bool survives;				 /* the call may succeed despite a failure */
};

static inline unsigned nth_descriptors(void)
{
	DIR *dir = opendir("/proc/self/fd");
	unsigned count = 0;

	while (dir && readdir(dir))
		count++;
	if (dir)
		closedir(dir);
	return count;
}

struct nth_resources {
	unsigned descriptors;
	unsigned long alive;
};

static inline struct nth_resources nth_resources(void)
{
	return (struct nth_resources){ nth_descriptors(), nth_alive ? nth_alive() : 0 };
}

/* Background threads may hold a descriptor a moment longer. */
static inline bool nth_as_before(void *arg)
{
	const struct nth_resources *before = arg;
	struct nth_resources now = nth_resources();

	return now.descriptors <= before->descriptors && now.alive <= before->alive;
}

static inline void nth_announce(void)
{
	static DAT_PROVIDER_INFO info = { .ia_name = NTH_NAME, .dapl_version_major = 2 };
	static bool announced;

	if (!announced)
		dat_provider_init(&info, "soft0 1");
	announced = true;
	setenv("DAPL_TEST_IA", NTH_NAME, 1);
}

static inline void nth_expect(struct nth_resources before, const char *after, unsigned n)
{
	struct nth_resources now;

	if (unit_wait_for(nth_as_before, &before, UNIT_PATIENCE))
		return;
	now = nth_resources();
	printf("%s, failure %u: descriptors %u to %u, alive %lu to %lu\n", after, n,
	       before.descriptors, now.descriptors, before.alive, now.alive);
	CU_FAIL("left behind");
}

/* Runs the step with its 1st, 2nd, ... call failing; returns how many calls could fail. */
static inline unsigned nth_run(const struct nth_step *step, struct nth_scene *scene,
			       void (*arm)(unsigned n), bool (*disarm)(DAT_RETURN status))
{
	struct nth_resources before;
	DAT_RETURN status;
	unsigned n;
	bool fired;

	if (nth_warm) {
		OK(step->attempt(scene));
		step->undo(scene);
	}
	for (n = 1;; n++) {
		before = nth_resources();
		scene->made = DAT_HANDLE_NULL;
		arm(n);
		status = step->attempt(scene);
		fired = disarm(status);
		if (status == DAT_SUCCESS)
			step->undo(scene);
		else if (!fired || DAT_GET_TYPE(status) != DAT_INSUFFICIENT_RESOURCES ||
			 !(status & DAT_CLASS_ERROR))
			break;
		else
			CU_ASSERT_PTR_NULL(scene->made);
		if (status != DAT_SUCCESS && step->settle)
			step->settle(scene);
		if (status == DAT_SUCCESS && !fired)
			return n - 1;
		if (status == DAT_SUCCESS && !step->survives)
			break;
		if (nth_warm)
			nth_expect(before, step->name, n);
	}
	printf("%s, failure %u%s: 0x%x\n", step->name, n, fired ? "" : " (none)", status);
	CU_FAIL("not the right error");
	return n;
}

#endif
