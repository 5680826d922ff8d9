/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* What the parts of datinfo know of each other. */
#ifndef DATINFO_H
#define DATINFO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "dat/common/reg.h"

/* datinfo_out.c: a report, as text or as JSON. */
struct out {
	bool json;
	bool more; /* something stands before, on this level */
	unsigned depth;
};

void out_document(struct out *out);
void out_document_end(struct out *out);
void out_group(struct out *out, const char *name);
void out_group_end(struct out *out);

/*
 * A list of items, each a group that begins with what it is called; or, with a NULL name, of plain
 * values.
 */
void out_list(struct out *out, const char *name);
void out_list_end(struct out *out);
void out_item(struct out *out, const char *key, const char *value);
void out_item_end(struct out *out);

/* Values; without a name in a list. */
void out_text(struct out *out, const char *name, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
void out_signed(struct out *out, const char *name, int64_t value);
void out_unsigned(struct out *out, const char *name, uint64_t value);
void out_bool(struct out *out, const char *name, bool value);
void out_words(struct out *out, const char *name, const char *const *words, size_t count);

/* datinfo_registry.c: what dat.conf says, and, with `try`, whether it works. */
void registry_report(struct out *out, bool try);

/* ia_report for each name and version of dat.conf. */
void registry_report_ias(struct out *out);

/* datinfo_ia.c: opens the IA and reports its attributes, or why it cannot be opened; false then. */
bool ia_report(struct out *out, const DAT_PROVIDER_INFO *info);

/* Leaves *ia open. */
DAT_RETURN ia_open(const DAT_PROVIDER_INFO *info, DAT_IA_HANDLE *ia);
void ia_close(DAT_IA_HANDLE ia);
void ia_status(struct out *out, DAT_RETURN status);
const char *ia_address(const DAT_IA_ATTR *attr, char text[64]);

/*
 * datinfo_settings.c: the table, with the values that hold for a device or IA, or, if NULL, for
 * all.
 */
void settings_report(struct out *out, const char *device);

#endif
