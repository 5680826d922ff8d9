/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* The entries of dat.conf: which of them programs get, and whether they open. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "tools/datinfo_entry.h"

/* ---- reading ---- */

static void *must(void *memory)
{
	if (memory)
		return memory;
	perror("datinfo");
	exit(EXIT_FAILURE);
}

static void registry_opened(void *arg, const char *source)
{
	struct registry *registry = arg;

	snprintf(registry->source, sizeof(registry->source), "%s", source);
}

static bool is_passed_over(const struct entry *entry)
{
	return entry->for_kernel || entry->nondefault;
}

static bool same_key(const DAT_PROVIDER_INFO *a, const DAT_PROVIDER_INFO *b)
{
	return !strcmp(a->ia_name, b->ia_name) && a->dapl_version_major == b->dapl_version_major &&
	       a->dapl_version_minor == b->dapl_version_minor &&
	       a->is_thread_safe == b->is_thread_safe;
}

static struct entry *datinfo_registry_first_of(const struct registry *registry, struct entry *entry)
{
	struct entry *other;

	if (!is_passed_over(entry))
		STAILQ_FOREACH(other, &registry->entries, link)
			if (!is_passed_over(other) && same_key(&other->info, &entry->info))
				return other;
	return entry;
}

static void registry_add(void *arg, const struct conf_record *record)
{
	struct entry *entry = must(calloc(1, sizeof(*entry)));
	struct registry *registry = arg;

	entry->info = record->info;
	entry->library = must(strdup(record->lib_path));
	entry->parameters = must(strdup(record->ia_params));
	entry->for_kernel = record->for_kernel;
	entry->nondefault = record->nondefault;
	entry->first = datinfo_registry_first_of(registry, entry);
	STAILQ_INSERT_TAIL(&registry->entries, entry, link);
}

/* Returns what a program of DAT 2.0 that opens this name gets, or NULL. */
static const DAT_PROVIDER_INFO *registry_match(const struct registry *registry, const char *name)
{
	DAT_PROVIDER_INFO wanted = {
		.dapl_version_major = DAT_VERSION_MAJOR,
		.dapl_version_minor = DAT_VERSION_MINOR,
		.is_thread_safe = DAT_THREADSAFE,
	};
	struct match match = { .wanted = &wanted };
	const struct entry *entry;

	if (!name_is_valid(name))
		return NULL;
	strcpy(wanted.ia_name, name);
	STAILQ_FOREACH(entry, &registry->entries, link)
		if (!is_passed_over(entry))
			match_offer(&match, &entry->info);
	return match.best;
}

void registry_read(struct registry *registry)
{
	const struct conf_sink sink = {
		.keep = registry_add,
		.pass = registry_add,
		.opened = registry_opened,
		.arg = registry,
	};
	const DAT_PROVIDER_INFO *best;
	struct entry *entry;

	STAILQ_INIT(&registry->entries);
	registry->source[0] = '\0';
	conf_load_usual(&sink);
	STAILQ_FOREACH(entry, &registry->entries, link) {
		best = registry_match(registry, entry->info.ia_name);
		entry->chosen = best && !is_passed_over(entry) && same_key(best, &entry->info);
	}
}

bool registry_has(const struct registry *registry, const char *name)
{
	const struct entry *entry;

	STAILQ_FOREACH(entry, &registry->entries, link)
		if (!strcmp(entry->info.ia_name, name))
			return true;
	return false;
}

void registry_free(struct registry *registry)
{
	struct entry *entry;

	while ((entry = STAILQ_FIRST(&registry->entries))) {
		STAILQ_REMOVE_HEAD(&registry->entries, link);
		if (entry->attempt)
			attempt_end(entry->attempt);
		free(entry->attempt);
		free(entry->library);
		free(entry->parameters);
		free(entry);
	}
}

bool registry_find(const struct registry *registry, const char *name, const char **library,
		   const char **parameters)
{
	const struct entry *entry;

	STAILQ_FOREACH(entry, &registry->entries, link) {
		if (!entry->chosen || strcmp(entry->info.ia_name, name))
			continue;
		*library = entry->library;
		*parameters = entry->parameters;
		return true;
	}
	return false;
}

/* ---- entries that programs of DAT 2.0 do not get ---- */

static void unused_report(struct out *out, const struct registry *registry,
			  const struct entry *entry)
{
	const DAT_PROVIDER_INFO *best = registry_match(registry, entry->info.ia_name);
	unsigned major = entry->info.dapl_version_major, minor = entry->info.dapl_version_minor;

	if (entry->for_kernel) {
		out_text(out, "reason", "it is for the kernel");
		out_text(out, "cure", "write u%u.%u if it is for programs", DAT_VERSION_MAJOR,
			 DAT_VERSION_MINOR);
	} else if (entry->nondefault) {
		out_text(out, "reason", "it is marked nondefault");
		out_text(out, "cure", "write default if programs should use it");
	} else if (best) {
		out_text(out, "reason",
			 "another entry of this name, u%u.%u %s, is what programs get that ask for "
			 "DAT %u.%u without thread safety",
			 best->dapl_version_major, best->dapl_version_minor,
			 best->is_thread_safe ? "threadsafe" : "nonthreadsafe", DAT_VERSION_MAJOR,
			 DAT_VERSION_MINOR);
		out_text(out, "cure", "remove that one if programs should get this");
	} else {
		out_text(out, "reason",
			 "it is for programs of DAT %u.%u; those of DAT %u.%u pass it over", major,
			 minor, DAT_VERSION_MAJOR, DAT_VERSION_MINOR);
		out_text(out, "cure", "add an entry with u%u.%u for programs of DAT %u.%u",
			 DAT_VERSION_MAJOR, DAT_VERSION_MINOR, DAT_VERSION_MAJOR,
			 DAT_VERSION_MINOR);
	}
}

/* ---- entries that they do get ---- */

static bool same_file(const char *a, const char *b)
{
	struct stat one, other;

	return !stat(a, &one) && !stat(b, &other) && one.st_dev == other.st_dev &&
	       one.st_ino == other.st_ino;
}

bool entry_has_fallbacks(const struct entry *first)
{
	const struct entry *entry = first;

	while ((entry = STAILQ_NEXT(entry, link)))
		if (entry->first == first)
			return true;
	return false;
}

/* Returns the first entry whose library is behind the open IA. */
static struct entry *server_of(struct entry *first)
{
	const char *file = first->attempt->opening.provider_file;
	struct loading loading;
	struct entry *entry;

	if (!attempt_succeeded(first->attempt) || !entry_has_fallbacks(first))
		return first;
	for (entry = first; entry; entry = STAILQ_NEXT(entry, link)) {
		loading = (struct loading){ .library = entry->library };
		if (entry->first != first)
			continue;
		loading_run(&loading);
		if (loading.file[0] && same_file(loading.file, file))
			return entry;
	}
	return first;
}

static void chain_try(const struct registry *registry, struct entry *first)
{
	if (first->attempt)
		return;
	first->attempt = must(calloc(1, sizeof(*first->attempt)));
	first->attempt->dat_conf = registry->source;
	first->attempt->library = first->library;
	first->attempt->parameters = first->parameters;
	attempt_run(first->attempt, first->info.ia_name, NULL);
	first->server = server_of(first);
}

static void used_report(struct out *out, const struct attempt *attempt)
{
	const struct opening *opening = &attempt->opening;
	const char *rdma = soft_rdma(opening->device);

	if (attempt_succeeded(attempt))
		out_text(out, "library_file", "%s", opening->provider_file);
	else if (attempt->loading.file[0])
		out_text(out, "library_file", "%s", attempt->loading.file);
	attempt_report(out, attempt);
	if (attempt_succeeded(attempt)) {
		out_text(out, "device", "%s", opening->device);
		out_text(out, "address", "%s", opening->address);
	}
	if (attempt_succeeded(attempt) && rdma)
		out_text(out, "rdma", "%s", rdma);
	attempt_report_messages(out, attempt);
}

/* A fallback that is not needed, or an entry that fails while one of its fallbacks works. */
static void spare_report(struct out *out, const struct registry *registry,
			 const struct entry *entry)
{
	struct loading loading = { .library = entry->library };
	const struct entry *above = entry->first;

	loading_run(&loading);
	if (loading.file[0])
		out_text(out, "library_file", "%s", loading.file);
	while (above != entry && above != entry->first->server)
		above = STAILQ_NEXT(above, link);
	if (loading.error[0])
		loading_report(out, registry->source, &loading);
	else if (above != entry)
		out_text(out, "reason", "an entry above it serves the name");
	else {
		out_text(out, "reason", "its library does not register the name");
		out_text(out, "cure", "see what %s prints with DAPL_DBG_TYPE=0xff", entry->library);
	}
}

/* ---- all entries ---- */

static void entry_report(struct out *out, const struct registry *registry, struct entry *entry,
			 bool try)
{
	bool used = entry->chosen && entry == entry->first;

	if (entry->chosen && try) {
		chain_try(registry, entry->first);
		used = entry == entry->first->server;
	}
	if (!out->json && entry_is_summarised(registry, entry))
		return;
	out_item(out, "name", entry->info.ia_name);
	out_text(out, "version", "%u.%u", entry->info.dapl_version_major,
		 entry->info.dapl_version_minor);
	out_bool(out, "thread_safe", entry->info.is_thread_safe == DAT_TRUE);
	out_bool(out, "fallback", entry != entry->first);
	out_bool(out, "used", used);
	out_text(out, "parameters", "%s", entry->parameters);
	out_text(out, "library", "%s", entry->library);
	if (!entry->chosen)
		unused_report(out, registry, entry);
	else if (try && used)
		used_report(out, entry->first->attempt);
	else if (try)
		spare_report(out, registry, entry);
	out_item_end(out);
}

/* The libdat2 of this program. Other programs use the same one, unless they have their own library path. */
static void libdat2_report(struct out *out)
{
	DAT_RETURN(*function)
	(const DAT_NAME_PTR, DAT_COUNT, DAT_EVD_HANDLE *, DAT_IA_HANDLE *, DAT_UINT32, DAT_UINT32,
	 DAT_BOOLEAN) = dat_ia_openv;
	char file[PATH_MAX];
	void *code;

	memcpy(&code, &function, sizeof(code));
	if (file_of_code(code, file))
		out_text(out, "libdat2", "%s", file);
}

/* Why dat.conf was not read. There is a reason, because the built-in entries stand in for a file that does not exist. */
static void unread_report(struct out *out)
{
	const char *path = secure_getenv("DAT_OVERRIDE");
	int fd;

	path = path ? path : SYSCONFDIR "/dat.conf";
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd >= 0) {
		close(fd);
		out_text(out, "reason", "%s is not a file that can be read", path);
		return;
	}
	out_text(out, "reason", "%s: %s", path, strerror(errno));
	out_text(out, "cure",
		 errno == EACCES ? "let this user read %s and its folders"
				 : "name a file in DAT_OVERRIDE that is there, instead of %s",
		 path);
}

bool registry_report(struct out *out, const struct registry *registry, bool try)
{
	struct entry *entry;

	out_text(out, "dat_conf", "%s",
		 registry->source[0] || out->json ? registry->source : "none that can be read");
	if (!registry->source[0])
		unread_report(out);
	libdat2_report(out);
	out_list(out, "entries");
	STAILQ_FOREACH(entry, &registry->entries, link)
		entry_report(out, registry, entry, try);
	out_list_end(out);
	if (!out->json)
		entries_summarise(out, registry);
	return registry->source[0];
}

/* A name with several entries is opened once. */
void registry_report_ias(struct out *out, const struct registry *registry)
{
	const struct entry *entry, *other;

	STAILQ_FOREACH(entry, &registry->entries, link) {
		if (is_passed_over(entry))
			continue;
		STAILQ_FOREACH(other, &registry->entries, link)
			if (!is_passed_over(other) &&
			    !strcmp(other->info.ia_name, entry->info.ia_name))
				break;
		if (other == entry)
			ia_report(out, registry, entry->info.ia_name);
	}
}
