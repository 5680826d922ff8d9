/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/*
 * The shipped dapl.conf and the manual page agree with the table of settings. Runs in the top
 * folder of the tree.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "test/unit/unit.h"
#include "util/settings.h"

static char *slurp(const char *path)
{
	FILE *file = fopen(path, "r");
	char *text = NULL;
	size_t room = 0;

	CU_ASSERT_PTR_NOT_NULL_FATAL(file);
	CU_ASSERT_TRUE(getdelim(&text, &room, '\0', file) > 0);
	fclose(file);
	return text;
}

/* A setting's entry as it is in the page, with an escaped minus sign where one is needed. */
static void page_entry(const struct setting_row *row, char *entry)
{
	char range[SETTING_TEXT_MAX], standard[SETTING_TEXT_MAX], line[600], *at;

	snprintf(line, sizeof(line), "%s (%s, default %s%s).\n", row->help,
		 setting_range(row, range), setting_format(row, row->standard, standard),
		 row->per_device ? "" : "; for all devices");
	entry += sprintf(entry, ".TP\n.BR %s \", \" %s\n", row->name, row->variable);
	for (at = line; *at; at++)
		entry += sprintf(entry, at[0] == '-' && at[1] >= '0' && at[1] <= '9' ? "\\-" : "%c",
				 *at);
}

static void test_page(void)
{
	char *page = slurp("man5/dapl.conf.5"), entry[1000];
	int i;

	for (i = 0; i < SETTINGS; i++) {
		page_entry(&settings_table[i], entry);
		CU_ASSERT_PTR_NOT_NULL(strstr(page, entry));
		if (!strstr(page, entry))
			printf("missing from the page:\n%s", entry);
	}
	free(page);
}

/* The shipped file sets nothing; with its example lines enabled it sets each default. */
static void test_conf(void)
{
	char *text = slurp("dapl.conf"), *line, *rest = text, path[300];
	static struct settings all;
	FILE *file;
	int i;

	setenv("DAPL_CONF", "dapl.conf", 1);
	settings_read(&all);
	CU_ASSERT_STRING_EQUAL(all.path, "dapl.conf");
	CU_ASSERT_EQUAL(all.device_count, 0);
	for (i = 0; i < SETTINGS; i++)
		CU_ASSERT_EQUAL(all.values[i].origin, SETTING_STANDARD);

	snprintf(path, sizeof(path), "%s/dapl.conf", unit_tmpdir());
	file = fopen(path, "w");
	CU_ASSERT_PTR_NOT_NULL_FATAL(file);
	while ((line = strsep(&rest, "\n")))
		fprintf(file, "%s\n", !strncmp(line, "#\t", 2) ? line + 1 : line);
	fclose(file);
	setenv("DAPL_CONF", path, 1);
	settings_read(&all);
	CU_ASSERT_EQUAL(all.device_count, 2);
	for (i = 0; i < SETTINGS; i++) {
		CU_ASSERT_EQUAL(all.values[i].origin, SETTING_FILE);
		CU_ASSERT_EQUAL(all.values[i].value, settings_table[i].standard);
		if (all.values[i].origin != SETTING_FILE)
			printf("missing from dapl.conf: %s\n", settings_table[i].name);
	}
	free(text);
}

static const struct unit_test tests[] = {
	{ "settings: the manual page has each one, with its range and default", test_page },
	{ "settings: dapl.conf has each one, with its default", test_conf },
};

UNIT_MAIN("settings_doc", tests)
