/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* Runs functional cases and reports the result of each. */

#include <string.h>

#include "func.h"

static const char stars[] = "*********************************************************************";

static const struct func_feature *feature_find(const char *name)
{
	static const struct func_feature *const all[] = {
		&func_hwconn, &func_endpoint, &func_pz, &func_mem, &func_connmgt, &func_queryinfo,
	};

	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		if (strcmp(all[i]->name, name) == 0)
			return all[i];
	return NULL;
}

int functional_cases(const char *feature)
{
	const struct func_feature *found = feature_find(feature);

	return found ? found->count : 0;
}

static bool case_run(const struct options *opt, const struct func_feature *feature, int number)
{
	static const char *const texts[] = {
		[FUNC_FAIL] = "FAIL",
		[FUNC_PASS] = "PASS",
		[FUNC_UNSUPPORTED] = "UNSUPP",
	};
	const struct func_case *c = &feature->cases[number];
	struct func_run run = { .opt = opt, .variant = c->variant };
	enum func_result result;

	say("%s", stars);
	say("Function feature: %-40s case: %d", feature->title, number);
	say("Description: %s", c->description);
	result = c->run(&run);
	say("Result: %s", texts[result]);
	say("%s", stars);
	return result != FUNC_FAIL;
}

bool functional_run(const struct options *opt)
{
	const struct functional *f = &opt->functional;
	const struct func_feature *feature = feature_find(f->feature);
	int count = f->case_count ? f->case_count : feature->count;
	bool passed = true;

	watchdog_start();
	for (int i = 0; i < count; i++)
		passed &= case_run(opt, feature, f->case_count ? f->cases[i] : i);
	return passed;
}
