/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* An entry of dat.conf, as datinfo reads and tries it. */
#ifndef DATINFO_ENTRY_H
#define DATINFO_ENTRY_H

#include "tools/datinfo.h"

struct entry {
	STAILQ_ENTRY(entry) link;
	DAT_PROVIDER_INFO info;
	char *library, *parameters;
	bool chosen; /* a program of DAT 2.0 that opens the name gets it, or one of its fallbacks */
	bool for_kernel, nondefault;
	struct entry *first; /* the entry that this is a fallback of, or itself */
	/* the attempt to open the name, kept by the first entry; NULL before it */
	struct attempt *attempt;
	/* the entry whose library then serves the name; the first if it does not open */
	struct entry *server;
};

/* Whether others have the key of this entry, which is the first one that has it. */
bool entry_has_fallbacks(const struct entry *first);

/* datinfo_alike.c, after the entries were tried: whether the text passes the entry over; and a line for those. */
bool entry_is_summarised(const struct registry *registry, const struct entry *entry);
void entries_summarise(struct out *out, const struct registry *registry);

#endif
