/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* Reports the settings of the providers in this environment. */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include "tools/datinfo.h"
#include "util/settings.h"

#define ORIGIN_MAX (PATH_MAX + 16)

static const char *origin_of(const struct settings *all, const struct setting_value *value,
			     char text[ORIGIN_MAX])
{
	if (value->origin == SETTING_FILE)
		snprintf(text, ORIGIN_MAX, "%s:%u", all->path, value->line);
	else
		strcpy(text, value->origin == SETTING_ENVIRONMENT ? "environment" : "default");
	return text;
}

static void setting_value_out(struct out *out, const char *name, const struct setting_row *row,
			      const struct setting_value *value)
{
	char text[SETTING_TEXT_MAX];

	if (row->type == SETTING_NAME)
		out_text(out, name, "%s", value->name);
	else if (row->type == SETTING_CHOICE || (row->type == SETTING_BITS && !out->json))
		out_text(out, name, "%s", setting_show(row, value, text));
	else
		out_signed(out, name, value->value);
}

static void report_row(struct out *out, const struct settings *all, const struct setting_row *row,
		       const struct setting_value *value)
{
	const struct setting_value standard = { .value = row->standard };
	char origin[ORIGIN_MAX], range[SETTING_TEXT_MAX];

	out_item(out, "name", row->name);
	setting_value_out(out, "value", row, value);
	out_text(out, "origin", "%s", origin_of(all, value, origin));
	setting_value_out(out, "default", row, &standard);
	out_text(out, "allowed", "%s", setting_range(row, range));
	out_bool(out, "per_device", row->per_device);
	out_text(out, "environment", "%s", row->variable);
	out_text(out, "help", "%s", row->help);
	out_item_end(out);
}

static void report_devices(struct out *out, const struct settings *all)
{
	unsigned i;
	int which;

	out_list(out, "devices");
	for (i = 0; i < all->device_count; i++) {
		const struct settings_device *section = &all->devices[i];

		out_item(out, "name", section->name);
		out_text(out, "origin", "%s:%u", all->path, section->line);
		for (which = 0; which < SETTINGS; which++)
			if (section->values[which].origin == SETTING_FILE)
				setting_value_out(out, settings_table[which].name,
						  &settings_table[which], &section->values[which]);
		out_item_end(out);
	}
	out_list_end(out);
}

/*
 * A row has some hundred bytes, which would hide the values: the value and its meaning have a line
 * each.
 */
static void print_table(const struct settings *all, const char *device)
{
	char value[SETTING_TEXT_MAX], range[SETTING_TEXT_MAX], origin[ORIGIN_MAX];
	int i;

	for (i = 0; i < SETTINGS; i++) {
		const struct setting_row *row = &settings_table[i];
		const struct setting_value *found =
			settings_find(all, device, NULL, (enum setting)i);

		printf("%-22s %-12s %-28s %s\n", row->name, setting_show(row, found, value),
		       row->variable, origin_of(all, found, origin));
		printf("    %s (%s, default %s)\n", row->help, setting_range(row, range),
		       setting_format(row, row->standard, value));
	}
}

static bool has_section(const struct settings *all, const char *device)
{
	unsigned i;

	for (i = 0; i < all->device_count; i++)
		if (!strcmp(all->devices[i].name, device))
			return true;
	return false;
}

bool settings_report(struct out *out, const char *device)
{
	static struct settings all;
	int i;

	settings_read(&all);
	out_text(out, "dapl_conf", "%s", all.path);
	if (out->json) {
		out_list(out, "settings");
		for (i = 0; i < SETTINGS; i++)
			report_row(out, &all, &settings_table[i],
				   settings_find(&all, device, NULL, (enum setting)i));
		out_list_end(out);
	} else {
		print_table(&all, device);
	}
	report_devices(out, &all);
	return !device || has_section(&all, device);
}
