/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* Static and dynamic registry: lists by name, version and thread safety. */
#include <stdlib.h>
#include "dat/common/reg.h"
#include "util/log.h"

struct sr_list reg_static = {
	.keys = TAILQ_HEAD_INITIALIZER(reg_static.keys),
	.libs = TAILQ_HEAD_INITIALIZER(reg_static.libs),
};
struct dr_list reg_dynamic = TAILQ_HEAD_INITIALIZER(reg_dynamic);

static bool key_equal(const DAT_PROVIDER_INFO *a, const DAT_PROVIDER_INFO *b)
{
	return a->dapl_version_major == b->dapl_version_major &&
	       a->dapl_version_minor == b->dapl_version_minor &&
	       !a->is_thread_safe == !b->is_thread_safe && !strcmp(a->ia_name, b->ia_name);
}

void sr_list_init(struct sr_list *list)
{
	TAILQ_INIT(&list->keys);
	TAILQ_INIT(&list->libs);
	list->source = NULL;
}

static struct sr_key *sr_list_find(const struct sr_list *list, const DAT_PROVIDER_INFO *info)
{
	struct sr_key *key;

	TAILQ_FOREACH(key, &list->keys, link)
		if (key_equal(&key->info, info))
			break;
	return key;
}

static struct sr_key *key_get(struct sr_list *list, const DAT_PROVIDER_INFO *info)
{
	struct sr_key *key = sr_list_find(list, info);

	if (key)
		return key;
	key = calloc(1, sizeof(*key));
	if (!key)
		return NULL;
	key->info = *info;
	TAILQ_INIT(&key->chain);
	TAILQ_INSERT_TAIL(&list->keys, key, link);
	return key;
}

static struct sr_lib *lib_get(struct sr_list *list, const char *path)
{
	struct sr_lib *lib;

	TAILQ_FOREACH(lib, &list->libs, link)
		if (!strcmp(lib->path, path))
			return lib;
	lib = calloc(1, sizeof(*lib) + strlen(path) + 1);
	if (!lib)
		return NULL;
	strcpy(lib->path, path);
	TAILQ_INSERT_TAIL(&list->libs, lib, link);
	return lib;
}

/* Out of memory a key may remain without a record. It then has nothing to load, which is harmless. */
void sr_list_add(struct sr_list *list, const struct conf_record *record)
{
	struct sr_record *rec = calloc(1, sizeof(*rec) + strlen(record->ia_params) + 1);
	struct sr_lib *lib = lib_get(list, record->lib_path);
	struct sr_key *key = key_get(list, &record->info);

	if (!rec || !lib || !key) {
		log_at(REG_LOG_ERROR, "%s: no memory for its entry", record->info.ia_name);
		free(rec);
		return;
	}
	strcpy(rec->ia_params, record->ia_params);
	rec->lib = lib;
	rec->key = key;
	TAILQ_INSERT_TAIL(&key->chain, rec, link);
	log_at(REG_LOG_STATIC, "%s %u.%u %s: %s \"%s\"", record->info.ia_name,
	       record->info.dapl_version_major, record->info.dapl_version_minor,
	       record->info.is_thread_safe ? "threadsafe" : "nonthreadsafe", record->lib_path,
	       record->ia_params);
}

void sr_list_free(struct sr_list *list)
{
	struct sr_record *rec;
	struct sr_key *key;
	struct sr_lib *lib;

	while ((key = TAILQ_FIRST(&list->keys))) {
		while ((rec = TAILQ_FIRST(&key->chain))) {
			TAILQ_REMOVE(&key->chain, rec, link);
			free(rec);
		}
		TAILQ_REMOVE(&list->keys, key, link);
		free(key);
	}
	while ((lib = TAILQ_FIRST(&list->libs))) {
		TAILQ_REMOVE(&list->libs, lib, link);
		free(lib);
	}
	free(list->source);
	list->source = NULL;
}

struct sr_key *sr_find_locked(const DAT_PROVIDER_INFO *info)
{
	return sr_list_find(&reg_static, info);
}

struct dr_entry *dr_find_locked(const DAT_PROVIDER_INFO *info)
{
	struct dr_entry *entry;

	TAILQ_FOREACH(entry, &reg_dynamic, link)
		if (key_equal(&entry->info, info))
			break;
	return entry;
}

/* Drops the entries that an unloaded library left registered. No IA refers to them, or it would not be unloaded. */
void dr_forget_locked(struct sr_record *origin)
{
	struct dr_entry *entry = TAILQ_FIRST(&reg_dynamic), *next;

	for (; entry; entry = next) {
		next = TAILQ_NEXT(entry, link);
		if (entry->origin == origin) {
			TAILQ_REMOVE(&reg_dynamic, entry, link);
			free(entry);
		}
	}
}

bool reg_name_known_locked(const char *name)
{
	const struct dr_entry *entry;
	const struct sr_key *key;

	TAILQ_FOREACH(key, &reg_static.keys, link)
		if (!strcmp(key->info.ia_name, name))
			return true;
	TAILQ_FOREACH(entry, &reg_dynamic, link)
		if (!strcmp(entry->info.ia_name, name))
			return true;
	return false;
}

void reg_match_locked(struct match *match)
{
	const struct dr_entry *entry;
	const struct sr_key *key;

	*match = (struct match){ .wanted = match->wanted };
	TAILQ_FOREACH(entry, &reg_dynamic, link)
		match_offer(match, &entry->info);
	TAILQ_FOREACH(key, &reg_static.keys, link)
		match_offer(match, &key->info);
}

/* True if no library is loaded, being loaded or referred to. */
bool reg_idle_locked(void)
{
	const struct dr_entry *entry;
	const struct sr_record *rec;
	const struct sr_key *key;

	TAILQ_FOREACH(key, &reg_static.keys, link) {
		if (key->turn.taken)
			return false;
		TAILQ_FOREACH(rec, &key->chain, link)
			if (rec->dl)
				return false;
	}
	TAILQ_FOREACH(entry, &reg_dynamic, link)
		if (entry->refs)
			return false;
	return true;
}

/*
 * In the child of a fork the libraries are mapped, but their threads do not exist: the libraries count as not loaded,
 * and are initialised again. Their entries are not freed, since the fork may have been made inside a library.
 */
void reg_fork_locked(void)
{
	static struct dr_list aside = TAILQ_HEAD_INITIALIZER(aside);
	struct dr_entry *entry = TAILQ_FIRST(&reg_dynamic), *next;
	struct sr_record *rec;
	struct sr_key *key;
	struct sr_lib *lib;

	for (; entry; entry = next) {
		next = TAILQ_NEXT(entry, link);
		entry->refs = 0;
		if (entry->origin) {
			TAILQ_REMOVE(&reg_dynamic, entry, link);
			TAILQ_INSERT_TAIL(&aside, entry, link);
		}
	}
	TAILQ_FOREACH(key, &reg_static.keys, link) {
		key->turn.taken = turn_is_mine_locked(&key->turn);
		TAILQ_FOREACH(rec, &key->chain, link) {
			rec->dl = NULL;
			rec->fini = NULL;
			rec->refs = 0;
		}
	}
	TAILQ_FOREACH(lib, &reg_static.libs, link)
		lib->turn.taken = turn_is_mine_locked(&lib->turn);
}
