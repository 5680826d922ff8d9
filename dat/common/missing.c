/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* Logs a name that cannot be opened, with the available names and the file that lists them. */
#include <stdio.h>
#include "dat/common/reg.h"

/* A name in a list, and what follows the names: ", and 4294967295 more; datinfo(1) shows all". */
#define TAIL_MAX 48

struct name_list {
	char *text;
	size_t size, len;
	unsigned count; /* names that were offered */
	unsigned shown;
};

static void list_add(struct name_list *list, const char *name)
{
	const char *comma = list->shown ? ", " : "";
	size_t len = strlen(comma) + strlen(name);

	list->count++;
	if (list->count - 1 != list->shown || list->len + len + TAIL_MAX > list->size)
		return;
	snprintf(list->text + list->len, list->size - list->len, "%s%s", comma, name);
	list->len += len;
	list->shown++;
}

static void list_end(struct name_list *list)
{
	if (list->count > list->shown)
		snprintf(list->text + list->len, list->size - list->len,
			 "%s%u more; datinfo(1) shows all", list->shown ? ", and " : "",
			 list->count - list->shown);
}

/* True if a request for the name of this record would match it. */
static bool answers(const DAT_PROVIDER_INFO *info, const DAT_PROVIDER_INFO *wanted)
{
	DAT_PROVIDER_INFO same = *wanted;
	struct match match = { .wanted = &same };

	strcpy(same.ia_name, info->ia_name);
	match_offer(&match, info);
	return match.best;
}

/* A name may have several keys, with other versions or thread safety. */
static bool is_listed_before(const struct sr_key *key, const DAT_PROVIDER_INFO *wanted)
{
	const struct sr_key *other;

	TAILQ_FOREACH(other, &reg_static.keys, link) {
		if (other == key)
			return false;
		if (!strcmp(other->info.ia_name, key->info.ia_name) &&
		    answers(&other->info, wanted))
			return true;
	}
	return false;
}

static void names_locked(struct name_list *list, const DAT_PROVIDER_INFO *wanted)
{
	const struct dr_entry *entry;
	const struct sr_key *key;

	TAILQ_FOREACH(key, &reg_static.keys, link)
		if (answers(&key->info, wanted) && !is_listed_before(key, wanted))
			list_add(list, key->info.ia_name);
	TAILQ_FOREACH(entry, &reg_dynamic, link)
		if (answers(&entry->info, wanted) && !sr_find_locked(&entry->info))
			list_add(list, entry->info.ia_name);
	list_end(list);
}

void reg_missing_locked(const struct match *match, char text[REG_MISSING_MAX])
{
	const DAT_PROVIDER_INFO *wanted = match->wanted;
	const char *source = reg_static.source ? reg_static.source : "the registry";
	int len;

	if (match->reach == MATCH_MINOR) {
		snprintf(text, REG_MISSING_MAX, "%s has no threadsafe record of it", source);
	} else if (match->reach != MATCH_NOTHING) {
		snprintf(text, REG_MISSING_MAX, "%s has it for DAT %u.%u, not for %u.%u", source,
			 match->nearest->dapl_version_major, match->nearest->dapl_version_minor,
			 wanted->dapl_version_major, wanted->dapl_version_minor);
	} else {
		struct name_list list = { .text = text, .size = REG_MISSING_MAX };

		len = snprintf(text, REG_MISSING_MAX, "no such name; %.*s has ",
			       REG_MISSING_MAX / 2, source);
		list.len = (size_t)len;
		names_locked(&list, wanted);
		if (!list.count)
			snprintf(text + len, REG_MISSING_MAX - (size_t)len, "none for DAT %u.%u",
				 wanted->dapl_version_major, wanted->dapl_version_minor);
	}
}
