/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/*
 * Entries that fail alike: OFED's dat.conf has names of many devices, of which a machine has a few. The text shows the first
 * of them, and the names of the rest.
 */
#include <string.h>
#include "tools/datinfo_entry.h"

enum { SHOWN_ALIKE = 2, NAMES_MAX = 4000 };

/* Tried, used, and failed, as the only one of its name. */
static bool is_plain_failure(const struct entry *entry)
{
	return entry->attempt && entry->first == entry && entry->server == entry &&
	       !entry_has_fallbacks(entry) && !attempt_succeeded(entry->attempt);
}

static bool fails_alike(const struct entry *one, const struct entry *other)
{
	return is_plain_failure(other) && !strcmp(one->library, other->library) &&
	       one->attempt->child.end == other->attempt->child.end &&
	       one->attempt->opening.status == other->attempt->opening.status &&
	       one->attempt->opening.status != DAT_SUCCESS;
}

/* How many entries before this one fail with the same library and status. */
static unsigned alike_before(const struct registry *registry, const struct entry *entry)
{
	const struct entry *other;
	unsigned count = 0;

	STAILQ_FOREACH(other, &registry->entries, link) {
		if (other == entry)
			break;
		count += fails_alike(entry, other);
	}
	return count;
}

bool entry_is_summarised(const struct registry *registry, const struct entry *entry)
{
	return is_plain_failure(entry) && alike_before(registry, entry) >= SHOWN_ALIKE;
}

/* A line for the entries like this one, which is the first of them that was not shown. */
static void alike_report(struct out *out, const struct entry *first)
{
	const struct entry *entry;
	char names[NAMES_MAX] = "";
	unsigned count = 0;

	for (entry = first; entry; entry = STAILQ_NEXT(entry, link)) {
		if (entry != first && !fails_alike(first, entry))
			continue;
		count++;
		if (strlen(names) + DAT_NAME_MAX_LENGTH + 1 < sizeof(names)) {
			strcat(names, " ");
			strcat(names, entry->info.ia_name);
		}
	}
	out_text(out, "alike", "%u more with %s fail in the same way (datinfo NAME tells):%s",
		 count, first->library, names);
}

void entries_summarise(struct out *out, const struct registry *registry)
{
	const struct entry *entry;

	STAILQ_FOREACH(entry, &registry->entries, link)
		if (is_plain_failure(entry) && alike_before(registry, entry) == SHOWN_ALIKE)
			alike_report(out, entry);
}
