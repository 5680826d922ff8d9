/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* The table of the device's settings, and where the value of each comes from. */
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "softverbs/base/settings.h"
#include "softverbs/base/settings_file.h"
#include "util/log.h"

static const char *const copy_words[] = {
	[SV_WISH_AUTO] = "auto",
	[SV_WISH_PVM] = "pvm",
	[SV_WISH_MEMFD] = "memfd",
	[SV_WISH_BOUNCE] = "bounce",
};

static const char *const link_words[] = {
	[SV_LINK_ETHERNET] = "ethernet",
	[SV_LINK_INFINIBAND] = "infiniband",
};

static const char *const direct_words[] = {
	[SV_DIRECT_OFF] = "off",
	[SV_DIRECT_SHARED] = "shared",
	[SV_DIRECT_PRIVATE] = "private",
};

static const struct {
	const char *name;
	unsigned long least, most, standard;
	const char *const *words; /* words for the values 0 to `most`; NULL: a number, or a text */
	const char *text;	  /* the default of a text; NULL: a number or a word */
} table[SV_SETTINGS] = {
	[SV_SET_COPY] = { "SOFTVERBS_COPY", 0, SV_WISH_BOUNCE, SV_WISH_AUTO, copy_words, NULL },
	/* beyond the default, one copy by the kernel is faster than two through the ring */
	[SV_SET_EAGER] = { "SOFTVERBS_EAGER", 0, 65536, 4096, NULL, NULL },
	[SV_SET_DIRECT] = { "SOFTVERBS_DIRECT", 0, SV_DIRECT_PRIVATE, SV_DIRECT_SHARED,
			    direct_words, NULL },
	[SV_SET_LINK] = { "SOFTVERBS_LINK", 0, SV_LINK_INFINIBAND, SV_LINK_ETHERNET, link_words,
			  NULL },
	[SV_SET_LOG] = { "SOFTVERBS_LOG", 0, LOG_ERROR | LOG_WARN | LOG_NOTE | LOG_TRACE, 0, NULL,
			 NULL },
	[SV_SET_DIR] = { "SOFTVERBS_DIR", 0, 0, 0, NULL, "" },
	[SV_SET_FABRIC] = { "SOFTVERBS_FABRIC", 0, 0, 0, NULL, "off" },
	[SV_SET_FABRIC_ADDRESS] = { "SOFTVERBS_FABRIC_ADDRESS", 0, 0, 0, NULL, "" },
	[SV_SET_FABRIC_PORT] = { "SOFTVERBS_FABRIC_PORT", 1, 65535, 20515, NULL, NULL },
	[SV_SET_FABRIC_KEY] = { "SOFTVERBS_FABRIC_KEY", 0, 0, 0, NULL, "" },
	[SV_SET_FABRIC_TIMEOUT] = { "SOFTVERBS_FABRIC_TIMEOUT", 1, 3600, 20, NULL, NULL },
};

const char *sv_setting_name(enum sv_setting which)
{
	return table[which].name;
}

/* The text of a setting from the environment or else from the file; NULL if in neither. */
static const char *text_find(enum sv_setting which, struct sv_setting_shown *shown)
{
	const char *text = secure_getenv(table[which].name);

	memset(shown, 0, sizeof(*shown));
	if (text) {
		shown->variable = table[which].name;
		return text;
	}
	text = sv_settings_file_text(which, &shown->line);
	if (text)
		shown->file = sv_settings_file_path();
	return text;
}

static bool text_parse(enum sv_setting which, const char *text, unsigned long *value)
{
	char *end;

	if (table[which].words) {
		for (*value = 0; *value <= table[which].most; ++*value)
			if (!strcmp(text, table[which].words[*value]))
				return true;
		return false;
	}
	*value = strtoul(text, &end, 0);
	return end != text && !*end && *text != '-' && *value >= table[which].least &&
	       *value <= table[which].most;
}

/* Once a setting: some are read again for each connection. */
static void settings_complain(enum sv_setting which, const char *text,
			      const struct sv_setting_shown *from)
{
	static atomic_bool done[SV_SETTINGS];

	if (atomic_exchange_explicit(&done[which], true, memory_order_relaxed))
		return;
	if (from->file)
		log_at(LOG_ERROR,
		       "softverbs: %s:%u: %s = %s: no such value, see softverbs(7); the default is "
		       "used",
		       from->file, from->line, table[which].name, text);
	else
		log_at(LOG_ERROR,
		       "softverbs: %s=%s: no such value, see softverbs(7); the default is used",
		       table[which].name, text);
}

unsigned long sv_setting(enum sv_setting which)
{
	struct sv_setting_shown from;
	const char *text = text_find(which, &from);
	unsigned long value;

	if (!text)
		return table[which].standard;
	if (text_parse(which, text, &value))
		return value;
	settings_complain(which, text, &from);
	return table[which].standard;
}

const char *sv_setting_text(enum sv_setting which)
{
	struct sv_setting_shown from;
	const char *text = text_find(which, &from);

	if (!text)
		text = table[which].text;
	return *text ? text : NULL;
}

void sv_setting_show(enum sv_setting which, struct sv_setting_shown *shown)
{
	static _Thread_local char number[24];
	const char *text = text_find(which, shown);
	unsigned long value = table[which].standard;

	shown->name = table[which].name;
	shown->value = text ? text : table[which].text;
	if (table[which].text)
		return;
	if (text && !text_parse(which, text, &value)) {
		settings_complain(which, text, shown);
		value = table[which].standard;
		shown->variable = shown->file = NULL;
	}
	snprintf(number, sizeof(number), "%lu", value);
	shown->value = table[which].words ? table[which].words[value] : number;
}
