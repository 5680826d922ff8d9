/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* What the environment says about the device. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "softverbs/settings.h"
#include "util/log.h"

static const char *const copy_words[] = {
	[SV_WISH_AUTO] = "auto",
	[SV_WISH_PVM] = "pvm",
	[SV_WISH_MEMFD] = "memfd",
	[SV_WISH_BOUNCE] = "bounce",
};

static const struct {
	const char *variable;
	unsigned long least, most, standard;
	const char *const *words; /* from 0 to most; NULL: a number */
} table[SV_SETTINGS] = {
	[SV_SET_COPY] = { "SOFTVERBS_COPY", 0, SV_WISH_BOUNCE, SV_WISH_AUTO, copy_words },
	/* above, one copy by the kernel is faster than two through the ring */
	[SV_SET_EAGER] = { "SOFTVERBS_EAGER", 0, 65536, 4096, NULL },
	[SV_SET_AREA_MB] = { "SOFTVERBS_AREA_MB", 32, 16384, 512, NULL },
	[SV_SET_LOG] = { "SOFTVERBS_LOG", 0, LOG_ERROR | LOG_WARN | LOG_NOTE | LOG_TRACE, 0, NULL },
};

unsigned long sv_setting(enum sv_setting which)
{
	const char *text = secure_getenv(table[which].variable);
	unsigned long value;
	char *end;

	if (!text)
		return table[which].standard;
	if (table[which].words) {
		for (value = 0; value <= table[which].most; value++)
			if (!strcmp(text, table[which].words[value]))
				return value;
	} else {
		value = strtoul(text, &end, 0);
		if (end != text && !*end && *text != '-' && value >= table[which].least &&
		    value <= table[which].most)
			return value;
	}
	log_at(LOG_WARN, "softverbs: %s=%s: no such value, see softverbs(7); the default is used",
	       table[which].variable, text);
	return table[which].standard;
}

void sv_setting_vendor(uint32_t *vendor, uint32_t *part)
{
	const char *text = secure_getenv("SOFTVERBS_VENDOR");
	unsigned v, p;
	char rest;

	if (!text)
		return;
	if (sscanf(text, "%i:%i%c", (int *)&v, (int *)&p, &rest) != 2) {
		log_at(LOG_WARN, "softverbs: SOFTVERBS_VENDOR=%s: not vendor:part", text);
		return;
	}
	*vendor = v;
	*part = p;
}

const char *sv_setting_folder(void)
{
	const char *path = secure_getenv("SOFTVERBS_DIR");

	return path && *path ? path : NULL;
}
