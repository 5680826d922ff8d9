/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* The reason why an IA does not open, and its remedy. */
#include <dirent.h>
#include <net/if.h>
#include <stdlib.h>
#include "tools/datinfo.h"

#define CURE_MAX (2 * PATH_MAX)

bool attempt_succeeded(const struct attempt *attempt)
{
	return attempt->child.end == CHILD_RETURNED && attempt->opening.status == DAT_SUCCESS;
}

/* ---- the reason ---- */

/* Each child reads dat.conf again and repeats its errors, which the parent has reported already. */
static bool is_about_dat_conf(const struct attempt *attempt, const char *line)
{
	static const char prefix[] = "libdat2: ";
	size_t len = strlen(attempt->dat_conf);

	return len && !strncmp(line, prefix, sizeof(prefix) - 1) &&
	       !strncmp(line + sizeof(prefix) - 1, attempt->dat_conf, len) &&
	       line[sizeof(prefix) - 1 + len] == ':';
}

/*
 * Returns the last line that the libraries printed, because an error follows the lines that led to
 * it, or NULL if there is none or the reason is another one.
 */
static const char *reason_line(const struct attempt *attempt, size_t *len)
{
	const char *line, *last = NULL;
	size_t size;

	if (attempt->child.end != CHILD_RETURNED || attempt->loading.error[0] ||
	    attempt_succeeded(attempt))
		return NULL;
	for (line = attempt->child.messages; *line; line += size + (line[size] == '\n')) {
		size = strcspn(line, "\n");
		if (size && !is_about_dat_conf(attempt, line)) {
			last = line;
			*len = size;
		}
	}
	return last;
}

static size_t prefix_len(const char *line, const char *prefix)
{
	return strncmp(line, prefix, strlen(prefix)) ? 0 : strlen(prefix);
}

static void reason_report(struct out *out, const struct attempt *attempt)
{
	const struct child *child = &attempt->child;
	size_t len, skip;
	const char *line;

	if (child->end == CHILD_KILLED)
		out_text(out, "reason", "the libraries crash: %s", strsignal(child->signal));
	else if (child->end == CHILD_LATE)
		out_text(out, "reason", "the libraries do not return within %d seconds",
			 CHILD_SECONDS);
	else if (child->end == CHILD_FAILED)
		out_text(out, "reason", "the libraries end the process");
	else if (attempt->loading.error[0])
		out_text(out, "reason", "%s", attempt->loading.error);
	else if ((line = reason_line(attempt, &len))) {
		skip = prefix_len(line, "libdat2: ") + prefix_len(line, "dapl: ");
		out_text(out, "reason", "%.*s", (int)(len - skip), line + skip);
	} else
		out_text(out, "reason", "the provider does not say why");
}

/* ---- the cure ---- */

static bool has_rdma_device(void)
{
	DIR *folder = opendir("/sys/class/infiniband");
	const struct dirent *entry = NULL;

	if (!folder)
		return false;
	while ((entry = readdir(folder)) && entry->d_name[0] == '.')
		;
	closedir(folder);
	return entry;
}

/* True for libraries of OFED for DAT 1.2, which this project does not provide. */
static bool is_from_ofed(const char *library)
{
	static const char *const names[] = { "libdaplscm", "libdaplcma", "libdaplucm" };
	const char *name = strrchr(library, '/');
	size_t i;

	name = name ? name + 1 : library;
	for (i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (!strncmp(name, names[i], strlen(names[i])))
			return true;
	return false;
}

/* The file that an administrator edits. `source` may be the name of the built-in entries. */
static const char *conf_to_edit(const char *source)
{
	return source[0] == '/' ? source : SYSCONFDIR "/dat.conf";
}

/* The library or one of its dependencies cannot be loaded, or it is not a provider. */
static void library_cure(const char *dat_conf, const struct loading *loading, char cure[CURE_MAX])
{
	const char *library = loading->library, *colon = strchr(loading->error, ':');
	int missing_len = colon ? (int)(colon - loading->error) : 0;
	const char *conf = conf_to_edit(dat_conf);
	bool is_other = missing_len && strncmp(loading->error, library, (size_t)missing_len);

	if (loading->file[0])
		snprintf(
			cure, CURE_MAX,
			"name a provider in %s: libdaplofa.so.2 for RDMA devices, libdaplsoft.so.2 "
			"for the software device",
			conf);
	else if (strstr(loading->error, "Permission denied"))
		snprintf(cure, CURE_MAX, "let this user read %.*s and its folders", missing_len,
			 loading->error);
	else if (is_other && strstr(loading->error, "cannot open shared object file"))
		snprintf(cure, CURE_MAX, "install the package with %.*s, which %s needs",
			 missing_len, loading->error, library);
	else if (strstr(library, "libdaplomcm"))
		snprintf(cure, CURE_MAX,
			 "name libdaploscm.so.2, with the same parameters, as in dat.conf(5)");
	else if (is_from_ofed(library))
		snprintf(cure, CURE_MAX,
			 "install the package with %s, or name libdaploscm.so.2 and the same "
			 "parameters, or libdaplofa.so.2 and a network interface, as in "
			 "dat.conf(5)",
			 library);
	else if (strchr(library, '/'))
		snprintf(cure, CURE_MAX, "correct the path in %s, or install the library", conf);
	else
		snprintf(cure, CURE_MAX,
			 "install the package with %s; if it is installed, run ldconfig, or name "
			 "its folder in LD_LIBRARY_PATH",
			 library);
}

/* DAT_INVALID_ADDRESS: the device or address that the parameters name does not exist. */
static void address_cure(const struct attempt *attempt, char cure[CURE_MAX])
{
	char first[256] = "";

	sscanf(attempt->parameters ? attempt->parameters : "", "%255s", first);
	if (strstr(attempt->library ? attempt->library : "", "libdaplsoft"))
		snprintf(cure, CURE_MAX,
			 "write \"soft0 1\", or an address of this machine and a number");
	else if (!has_rdma_device())
		snprintf(
			cure, CURE_MAX,
			"this machine has no RDMA device (\"rdma link\" shows them): an entry with "
			"libdaplsoft.so.2 and \"soft0 1\" works without one");
	else if (if_nametoindex(first))
		snprintf(
			cure, CURE_MAX,
			"give %s an address, or name an interface of an RDMA device; \"rdma link\" "
			"shows them",
			first);
	else
		snprintf(cure, CURE_MAX,
			 "name a network interface of an RDMA device instead of %s; \"rdma link\" "
			 "shows them",
			 first[0] ? first : "nothing");
}

static void not_found_cure(const struct attempt *attempt, char cure[CURE_MAX])
{
	const char *dat_conf = conf_to_edit(attempt->dat_conf);

	switch (DAT_GET_SUBTYPE(attempt->opening.status)) {
	case DAT_MAJOR_NOT_FOUND:
	case DAT_MINOR_NOT_FOUND:
		snprintf(cure, CURE_MAX, "add an entry with u%u.%u and a library for it to %s",
			 DAT_VERSION_MAJOR, DAT_VERSION_MINOR, dat_conf);
		return;
	}
	if (!attempt->library)
		snprintf(cure, CURE_MAX, "use an existing name, or add an entry to %s", dat_conf);
	else if (strstr(attempt->child.messages, ": dlopen: "))
		snprintf(
			cure, CURE_MAX,
			"run ldconfig, name the folder of %s in LD_LIBRARY_PATH, or write its path "
			"into %s",
			attempt->loading.file, dat_conf);
	else
		snprintf(cure, CURE_MAX, "see what %s prints with DAPL_DBG_TYPE=0xff",
			 attempt->library);
}

static void cure_report(struct out *out, const struct attempt *attempt)
{
	char cure[CURE_MAX];

	if (attempt->child.end != CHILD_RETURNED)
		snprintf(cure, sizeof(cure),
			 "see what the provider prints with DAPL_DBG_TYPE=0xff; replace it if "
			 "it does not fit this machine");
	else if (attempt->loading.error[0])
		library_cure(attempt->dat_conf, &attempt->loading, cure);
	else if (DAT_GET_TYPE(attempt->opening.status) == DAT_PROVIDER_NOT_FOUND)
		not_found_cure(attempt, cure);
	else if (DAT_GET_TYPE(attempt->opening.status) == DAT_INVALID_ADDRESS)
		address_cure(attempt, cure);
	else if (DAT_GET_TYPE(attempt->opening.status) == DAT_INSUFFICIENT_RESOURCES)
		snprintf(cure, sizeof(cure),
			 "raise the limits on locked memory and open files (ulimit -l, ulimit -n); "
			 "make /dev/infiniband accessible");
	else if (!has_rdma_device())
		snprintf(
			cure, sizeof(cure),
			"this machine has no RDMA device (\"rdma link\" shows them): an entry with "
			"libdaplsoft.so.2 and \"soft0 1\" works without one");
	else
		snprintf(cure, sizeof(cure),
			 "see what the provider prints with DAPL_DBG_TYPE=0xff");
	out_text(out, "cure", "%s", cure);
}

/* ---- the report ---- */

void attempt_report(struct out *out, const struct attempt *attempt)
{
	const char *type = "none", *detail = "";

	if (attempt->child.end == CHILD_RETURNED)
		dat_strerror(attempt->opening.status, &type, &detail);
	out_text(out, "status", "%s", type);
	if (*detail)
		out_text(out, "detail", "%s", detail);
	if (attempt_succeeded(attempt))
		return;
	reason_report(out, attempt);
	cure_report(out, attempt);
}

void attempt_report_messages(struct out *out, const struct attempt *attempt)
{
	char *text = strdup(attempt->child.messages), *to = text;
	const char *line, *reason = reason_line(attempt, &(size_t){ 0 });
	size_t len;

	if (!text)
		return;
	for (line = attempt->child.messages; *line; line += len) {
		len = strcspn(line, "\n");
		len += line[len] == '\n';
		if (line == reason || is_about_dat_conf(attempt, line))
			continue;
		memcpy(to, line, len);
		to += len;
	}
	*to = '\0';
	if (*text)
		out_lines(out, "messages", text);
	free(text);
}

void loading_report(struct out *out, const char *dat_conf, const struct loading *loading)
{
	char cure[CURE_MAX];

	if (!loading->error[0])
		return;
	library_cure(dat_conf, loading, cure);
	out_text(out, "reason", "%s", loading->error);
	out_text(out, "cure", "%s", cure);
}
