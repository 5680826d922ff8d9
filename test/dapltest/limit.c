/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* Runs limit tests: a failed create ends a test, a failed free fails it. */

#include <stdlib.h>
#include <string.h>

#include "limit.h"

enum { CHUNK = 256 };

static const char stars[] =
	"**********************************************************************";

struct pile {
	struct limit_made *made;
	long count, room;
};

static bool pile_has_room(struct pile *pile)
{
	struct limit_made *more;

	if (pile->count < pile->room)
		return true;
	more = realloc(pile->made, (size_t)(pile->room + CHUNK) * sizeof(*more));
	if (!more)
		return false;
	memset(more + pile->room, 0, CHUNK * sizeof(*more));
	pile->made = more;
	pile->room += CHUNK;
	return true;
}

/*
 * Creates objects on each set in turn until a create is refused, which happens at the first one
 * only if the kind is not supported.
 */
static bool pile_up(struct limit_run *run, const struct limit_kind *kind, struct pile *pile)
{
	static struct limit_set none;
	char text[128];

	while (pile->count < run->opt->limits.maximum && pile_has_room(pile)) {
		struct limit_set *set = run->sets ? &run->sets[pile->count % run->width] : &none;
		DAT_RETURN ret;

		watchdog_feed();
		ret = kind->make(run, set, &pile->made[pile->count]);
		if (limit_is_missing(ret)) {
			say("LimitTest: %s unimplemented", kind->call);
			return true;
		}
		if (ret != DAT_SUCCESS) {
			say("LimitTest: %s fails: %s", kind->call, dat_text(ret, text));
			break;
		}
		pile->count++;
	}
	return pile->count > 0;
}

static bool pile_free(const struct limit_kind *kind, struct pile *pile)
{
	bool ok = true;

	for (long i = 0; i < pile->count; i++) {
		watchdog_feed();
		ok &= dat_ok(kind->unmake(&pile->made[i]), kind->name);
	}
	free(pile->made);
	return ok;
}

static bool kind_run(const struct options *opt, const struct limit_kind *kind)
{
	struct limit_run run = {
		.opt = opt,
		.width = opt->limits.width,
		.next_qual = 0x0affab1e,
	};
	struct pile pile = { 0 };
	bool ok = kind->depth == DEPTH_NONE || limit_sets_create(&run, kind->depth);

	if (ok) {
		ok = pile_up(&run, kind, &pile);
		say("LimitTest: %s: %ld", kind->result, pile.count);
	}
	ok &= pile_free(kind, &pile);
	return limit_sets_free(&run) && ok;
}

int limit_find(const char *name)
{
	for (int i = 0; i < limit_kind_count; i++)
		if (strcmp(limit_kinds[i].name, name) == 0)
			return i;
	return -1;
}

bool limit_run(const struct options *opt)
{
	watchdog_start();
	for (int i = 0; i < limit_kind_count; i++) {
		const struct limit_kind *kind = &limit_kinds[i];
		bool ok;

		if (!(opt->limits.chosen & 1u << i))
			continue;
		say("%s\nLimitation Test                      %s", stars, kind->name);
		say("Description:  %s", kind->description);
		ok = kind->make ? kind_run(opt, kind) : limit_size_run(opt);
		if (!ok)
			complain("error occurs, can not continue with limit test");
		say("%s", stars);
		if (!ok)
			return false;
	}
	return true;
}
