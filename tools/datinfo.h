/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* Internal header of datinfo. */
#ifndef DATINFO_H
#define DATINFO_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include "dat/common/reg.h"

enum { ADDRESS_MAX = 64 };

/* datinfo_out.c: a report, as text or as JSON. */
struct out {
	FILE *stream;
	bool json;
	bool more; /* an item precedes on this level */
	unsigned depth;
};

void out_document(struct out *out);
void out_document_end(struct out *out);
void out_group(struct out *out, const char *name);
void out_group_end(struct out *out);

/* A list of items, each a group that begins with a value for its key. */
void out_list(struct out *out, const char *name);
void out_list_end(struct out *out);
void out_item(struct out *out, const char *key, const char *value);
void out_item_end(struct out *out);

/* Values of members. */
void out_text(struct out *out, const char *name, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
void out_signed(struct out *out, const char *name, int64_t value);
void out_unsigned(struct out *out, const char *name, uint64_t value);
void out_bool(struct out *out, const char *name, bool value);
void out_words(struct out *out, const char *name, const char *const *words, size_t count);
void out_lines(struct out *out, const char *name, const char *text); /* one or more lines */

/* Members that another struct out, with the state of this one, wrote elsewhere. */
void out_copy(struct out *out, const char *text, size_t len);

/* datinfo_child.c: how a child process ended. */
struct child {
	enum { CHILD_RETURNED, CHILD_KILLED, CHILD_LATE, CHILD_FAILED } end;
	int signal;	/* CHILD_KILLED */
	char *messages; /* the output of the child to standard output and standard error */
};

enum { CHILD_SECONDS = 60 };

/*
 * Runs `body` in a child process, so that libraries loaded earlier do not affect it, and a crash does not affect the
 * caller. `result`, of `size` bytes, receives what `body` writes to it, and is unchanged if the child did not return.
 * The caller frees `messages`.
 */
void child_run(void (*body)(void *result), void *result, size_t size, struct child *child);

/* A file in memory, shared with child processes. memory_file_end returns the text, which the caller frees. */
FILE *memory_file(void);
char *memory_file_end(FILE *file, size_t *len); /* len may be NULL */

/* datinfo_open.c: an IA, opened by libdat2 for a program that has loaded nothing before. */
struct opening {
	const char *name; /* IN */
	struct out *out;  /* IN: where the attributes are written, or NULL */
	DAT_RETURN status;
	char provider_file[PATH_MAX]; /* of an open IA, like the rest */
	char device[DAT_NAME_MAX_LENGTH];
	char address[ADDRESS_MAX];
};

/* A provider library that is loaded by itself. */
struct loading {
	const char *library;  /* IN */
	char file[PATH_MAX];  /* empty if it cannot be loaded */
	char error[PATH_MAX]; /* why it cannot be loaded or is no provider; else empty */
};

void loading_run(struct loading *loading);

/* A name that is opened, and if that fails, its library by itself. */
struct attempt {
	const char *dat_conf;
	const char *library, *parameters; /* of its entry in dat.conf; NULL if there is none */
	struct loading loading;
	struct opening opening;
	struct child child;
};

void attempt_run(struct attempt *attempt, const char *name, struct out *attributes);
void attempt_end(struct attempt *attempt);
void ia_address(const DAT_IA_ATTR *attr, char text[ADDRESS_MAX]);

/* The file that a function was loaded from. */
bool file_of_code(void *code, char file[PATH_MAX]);

/* datinfo_reason.c: the outcome of an attempt. */
bool attempt_succeeded(const struct attempt *attempt);

/* Status, reason and cure; what the libraries printed beside the reason. */
void attempt_report(struct out *out, const struct attempt *attempt);
void attempt_report_messages(struct out *out, const struct attempt *attempt);

/* For a library that was loaded by itself: why it cannot be that of a provider. */
void loading_report(struct out *out, const char *dat_conf, const struct loading *loading);

/* datinfo_registry.c: reads dat.conf and, with `try`, opens its entries. */
struct entry;
struct registry {
	STAILQ_HEAD(, entry) entries;
	char source[PATH_MAX]; /* empty if no file could be read */
};

void registry_read(struct registry *registry);
void registry_free(struct registry *registry);
/* Whether an entry has that name, of whatever version. */
bool registry_has(const struct registry *registry, const char *name);
/* Returns false if no dat.conf could be read. */
bool registry_report(struct out *out, const struct registry *registry, bool try);

/* ia_report for each name that dat.conf has. */
void registry_report_ias(struct out *out, const struct registry *registry);

/*
 * datinfo_ia.c: opens the IA and reports its attributes, or reports why it does not open and
 * returns false.
 */
bool ia_report(struct out *out, const struct registry *registry, const char *name);
DAT_RETURN ia_attributes(struct out *out, DAT_IA_HANDLE ia);

/*
 * Finds library and parameters of the entry that programs of DAT 2.0 get for a name; returns false
 * if there is none.
 */
bool registry_find(const struct registry *registry, const char *name, const char **library,
		   const char **parameters);

/*
 * datinfo_settings.c: reports the table, with the values for a device or IA, or, if NULL, for all.
 * Returns false if dapl.conf has no section of that name.
 */
bool settings_report(struct out *out, const char *device);

/* datinfo_soft.c: how the software device, by its settings, does one-sided operations; NULL for another device. */
const char *soft_rdma(const char *device);

#endif
