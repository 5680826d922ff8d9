/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/*
 * The entries of dat.conf as libdat2 sees them, the libraries they load, and whether their IAs
 * open.
 */
#include <dlfcn.h>
#include <limits.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include "tools/datinfo.h"

struct entry {
	STAILQ_ENTRY(entry) link;
	DAT_PROVIDER_INFO info;
	char *library, *parameters;
	bool first; /* of this name, version and thread safety; others are fallbacks */
};

struct registry {
	STAILQ_HEAD(, entry) entries;
	char source[PATH_MAX]; /* empty: no file could be read */
};

static void *must(void *memory)
{
	if (memory)
		return memory;
	perror("datinfo");
	exit(EXIT_FAILURE);
}

static void opened(void *arg, const char *source)
{
	struct registry *registry = arg;

	snprintf(registry->source, sizeof(registry->source), "%s", source);
}

static bool is_new(const struct registry *registry, const DAT_PROVIDER_INFO *info)
{
	const struct entry *entry;

	STAILQ_FOREACH(entry, &registry->entries, link)
		if (!strcmp(entry->info.ia_name, info->ia_name) &&
		    entry->info.dapl_version_major == info->dapl_version_major &&
		    entry->info.dapl_version_minor == info->dapl_version_minor &&
		    entry->info.is_thread_safe == info->is_thread_safe)
			return false;
	return true;
}

static void keep(void *arg, const struct conf_record *record)
{
	struct entry *entry = must(calloc(1, sizeof(*entry)));
	struct registry *registry = arg;

	entry->info = record->info;
	entry->library = must(strdup(record->lib_path));
	entry->parameters = must(strdup(record->ia_params));
	entry->first = is_new(registry, &record->info);
	STAILQ_INSERT_TAIL(&registry->entries, entry, link);
}

static void registry_read(struct registry *registry)
{
	const struct conf_sink sink = { .keep = keep, .opened = opened, .arg = registry };

	STAILQ_INIT(&registry->entries);
	registry->source[0] = '\0';
	conf_load_usual(&sink);
}

static void registry_free(struct registry *registry)
{
	struct entry *entry;

	while ((entry = STAILQ_FIRST(&registry->entries))) {
		STAILQ_REMOVE_HEAD(&registry->entries, link);
		free(entry->library);
		free(entry->parameters);
		free(entry);
	}
}

/* NULL, with the reason reported, if it cannot be a provider. */
static void *report_library(struct out *out, const char *library)
{
	void *dl = dlopen(library, RTLD_NOW | RTLD_LOCAL);
	struct link_map *map;

	if (!dl) {
		out_text(out, "library_error", "%s", dlerror());
		return NULL;
	}
	if (!dlinfo(dl, RTLD_DI_LINKMAP, &map))
		out_text(out, "library_file", "%s", map->l_name);
	if (dlsym(dl, DAT_PROVIDER_INIT_FUNC_STR))
		return dl;
	out_text(out, "library_error", "it has no %s", DAT_PROVIDER_INIT_FUNC_STR);
	dlclose(dl);
	return NULL;
}

static void report_opening(struct out *out, const DAT_PROVIDER_INFO *info)
{
	DAT_IA_ATTR attr = { .max_eps = 0 };
	DAT_IA_HANDLE ia;
	DAT_RETURN status = ia_open(info, &ia);
	bool is_open = status == DAT_SUCCESS;
	char text[64];

	if (is_open)
		status = dat_ia_query(ia, NULL, DAT_IA_FIELD_ALL, &attr, 0, NULL);
	ia_status(out, status);
	if (status == DAT_SUCCESS) {
		out_text(out, "device", "%.*s", DAT_NAME_MAX_LENGTH, attr.adapter_name);
		out_text(out, "address", "%s", ia_address(&attr, text));
	}
	if (is_open)
		ia_close(ia);
}

static void report_entry(struct out *out, const struct entry *entry, bool try)
{
	void *dl;

	out_item(out, "name", entry->info.ia_name);
	out_text(out, "version", "%u.%u", entry->info.dapl_version_major,
		 entry->info.dapl_version_minor);
	out_bool(out, "thread_safe", entry->info.is_thread_safe == DAT_TRUE);
	out_bool(out, "fallback", !entry->first);
	out_text(out, "parameters", "%s", entry->parameters);
	out_text(out, "library", "%s", entry->library);
	if (try) {
		dl = report_library(out, entry->library);
		if (entry->first)
			report_opening(out, &entry->info);
		if (dl)
			dlclose(dl);
	}
	out_item_end(out);
}

void registry_report(struct out *out, bool try)
{
	const struct entry *entry;
	struct registry registry;

	registry_read(&registry);
	out_text(out, "dat_conf", "%s", registry.source);
	out_list(out, "entries");
	STAILQ_FOREACH(entry, &registry.entries, link)
		report_entry(out, entry, try);
	out_list_end(out);
	registry_free(&registry);
}

void registry_report_ias(struct out *out)
{
	const struct entry *entry;
	struct registry registry;

	registry_read(&registry);
	STAILQ_FOREACH(entry, &registry.entries, link)
		if (entry->first)
			ia_report(out, &entry->info);
	registry_free(&registry);
}
