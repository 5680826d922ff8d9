/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* The largest size of an LMR. */

#include <sys/mman.h>
#include <unistd.h>

#include "limit.h"

/* Registration pins the memory, and other programs on this host need some, too. */
static size_t size_bearable(void)
{
	long pages = sysconf(_SC_AVPHYS_PAGES), page = sysconf(_SC_PAGESIZE);

	return pages > 0 && page > 0 ? (size_t)pages / 4 * (size_t)page : SIZE_MAX;
}

static bool size_try(struct limit_set *set, size_t size, bool *registered)
{
	void *base = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	DAT_REGION_DESCRIPTION where = { .for_va = base };
	DAT_LMR_HANDLE lmr = DAT_HANDLE_NULL;
	DAT_LMR_CONTEXT lkey;
	DAT_VLEN length;
	DAT_VADDR address;
	DAT_RETURN ret;
	char text[128];
	bool ok = true;

	*registered = false;
	if (base == MAP_FAILED) {
		say("LimitTest: no memory for %zu bytes", size);
		return true;
	}
	ret = dat_lmr_create(set->ia, DAT_MEM_TYPE_VIRTUAL, where, size, set->pz,
			     DAT_MEM_PRIV_ALL_FLAG, DAT_VA_TYPE_VA, &lmr, &lkey, NULL, &length,
			     &address);
	if (ret != DAT_SUCCESS) {
		say("LimitTest: dat_lmr_create fails: %s", dat_text(ret, text));
	} else {
		*registered = true;
		ok = dat_ok(dat_lmr_free(lmr), "dat_lmr_free");
	}
	munmap(base, size);
	return ok;
}

bool limit_size_run(const struct options *opt)
{
	struct limit_run run = { .opt = opt, .width = opt->limits.width };
	bool ok = limit_sets_create(&run, DEPTH_EP), registered;

	for (int i = 0; ok && i < run.width; i++) {
		size_t largest = 0, bearable = size_bearable();

		for (size_t size = LIMIT_BUFFER; size != 0; size *= 2) {
			if (size > bearable) {
				say("LimitTest: %zu bytes would be too much for this host", size);
				break;
			}
			watchdog_feed();
			ok &= size_try(&run.sets[i], size, &registered);
			if (!registered)
				break;
			largest = size;
		}
		say("LimitTest: largest LMR: %zu bytes", largest);
	}
	return limit_sets_free(&run) && ok;
}
