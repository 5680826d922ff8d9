/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* dapl.conf, in the syntax of libconfig: a group of defaults, and a list of devices. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <libconfig.h>
#include "util/log.h"
#include "util/settings.h"
#include "util/text_file.h"

#define SETTINGS_FILE_MAX (1u << 20) /* libconfig needs many times this memory */

struct file {
	struct settings *all;
	const char *path;
};

/* Formats the value as the user wrote it, or nearly so. */
static void show(const config_setting_t *item, char text[SETTING_TEXT_MAX])
{
	switch (config_setting_type(item)) {
	case CONFIG_TYPE_INT:
	case CONFIG_TYPE_INT64:
		snprintf(text, SETTING_TEXT_MAX, "%lld", config_setting_get_int64(item));
		break;
	case CONFIG_TYPE_FLOAT:
		snprintf(text, SETTING_TEXT_MAX, "%g", config_setting_get_float(item));
		break;
	case CONFIG_TYPE_STRING:
		snprintf(text, SETTING_TEXT_MAX, "'%s'", config_setting_get_string(item));
		break;
	case CONFIG_TYPE_BOOL:
		snprintf(text, SETTING_TEXT_MAX, "%s",
			 config_setting_get_bool(item) ? "true" : "false");
		break;
	default: snprintf(text, SETTING_TEXT_MAX, "a group or list");
	}
}

static bool value_of(const config_setting_t *item, const struct setting_row *row,
		     struct setting_value *value)
{
	long long number;

	switch (config_setting_type(item)) {
	case CONFIG_TYPE_INT:
	case CONFIG_TYPE_INT64:
		if (row->type == SETTING_CHOICE || row->type == SETTING_NAME)
			return false;
		number = config_setting_get_int64(item);
		/* hexadecimal numbers of 32 bits come as negative ones */
		if (row->type == SETTING_BITS && number < 0 && number >= INT_MIN)
			number &= UINT_MAX;
		value->value = (long)number;
		return setting_fits(row, value->value);
	case CONFIG_TYPE_STRING: return setting_parse(row, config_setting_get_string(item), value);
	default: return false;
	}
}

static int setting_named(const char *name)
{
	int i;

	for (i = 0; i < SETTINGS; i++)
		if (!strcmp(settings_table[i].name, name))
			break;
	return i;
}

static void unknown(const struct file *file, const config_setting_t *item)
{
	log_at(LOG_ERROR, "%s:%u: %s is not known here; ignored", file->path,
	       config_setting_source_line(item), config_setting_name(item));
}

static void read_item(const struct file *file, const config_setting_t *item, bool per_device,
		      struct setting_value *values)
{
	char text[SETTING_TEXT_MAX], range[SETTING_TEXT_MAX], used[SETTING_TEXT_MAX];
	int which = setting_named(config_setting_name(item));
	const struct setting_row *row = &settings_table[which];
	unsigned line = config_setting_source_line(item);
	struct setting_value value = { .origin = SETTING_FILE, .line = line };

	if (which == SETTINGS) {
		unknown(file, item);
	} else if (per_device && !row->per_device) {
		log_at(LOG_ERROR, "%s:%u: %s is the same for all devices; ignored", file->path,
		       line, row->name);
	} else if (value_of(item, row, &value)) {
		values[which] = value;
	} else {
		show(item, text);
		log_at(LOG_ERROR, "%s:%u: %s: %s is not %s; %s is used", file->path, line,
		       row->name, text, setting_range(row, range),
		       setting_show(row, &file->all->values[which], used));
	}
}

static void read_defaults(const struct file *file, const config_setting_t *group)
{
	int i;

	for (i = 0; i < config_setting_length(group); i++)
		read_item(file, config_setting_get_elem(group, (unsigned)i), false,
			  file->all->values);
}

/*
 * Returns the section's name if it can have a place of its own; else logs the reason and returns
 * NULL.
 */
static const char *device_name(const struct file *file, config_setting_t *group)
{
	unsigned line = config_setting_source_line(group), i;
	const char *name, *why = NULL;

	if (!config_setting_is_group(group)) {
		log_at(LOG_ERROR, "%s:%u: a device is a group, { name = \"...\"; ... }; ignored",
		       file->path, line);
		return NULL;
	}
	if (!config_setting_lookup_string(group, "name", &name) || !*name) {
		log_at(LOG_ERROR, "%s:%u: a device without a name; ignored", file->path, line);
		return NULL;
	}
	if (strlen(name) >= SETTINGS_NAME_MAX)
		why = "too long a name";
	else if (file->all->device_count == SETTINGS_DEVICES)
		why = "too many devices";
	for (i = 0; i < file->all->device_count; i++)
		if (!strcmp(file->all->devices[i].name, name))
			why = "this device has a section already";
	if (!why)
		return name;
	log_at(LOG_ERROR, "%s:%u: %s: %s; ignored", file->path, line, name, why);
	return NULL;
}

static void read_device(const struct file *file, config_setting_t *group)
{
	struct settings_device *section = &file->all->devices[file->all->device_count];
	const char *name = device_name(file, group);
	const config_setting_t *item;
	int i;

	if (!name)
		return;
	memset(section, 0, sizeof(*section));
	strcpy(section->name, name);
	section->line = config_setting_source_line(group);
	file->all->device_count++;
	for (i = 0; i < config_setting_length(group); i++) {
		item = config_setting_get_elem(group, (unsigned)i);
		if (strcmp(config_setting_name(item), "name"))
			read_item(file, item, true, section->values);
	}
}

static void read_config(const struct file *file, const config_t *config)
{
	const config_setting_t *root = config_root_setting(config);
	config_setting_t *defaults = config_lookup(config, "defaults");
	config_setting_t *devices = config_lookup(config, "devices");
	const config_setting_t *item;
	int i;

	/*
	 * defaults come first, wherever they are: a bad value of a device is replaced by that for
	 * all
	 */
	if (defaults && config_setting_is_group(defaults))
		read_defaults(file, defaults);
	else if (defaults)
		log_at(LOG_ERROR, "%s:%u: defaults is a group, { ... }; ignored", file->path,
		       config_setting_source_line(defaults));
	if (devices && config_setting_is_list(devices))
		for (i = 0; i < config_setting_length(devices); i++)
			read_device(file, config_setting_get_elem(devices, (unsigned)i));
	else if (devices)
		log_at(LOG_ERROR, "%s:%u: devices is a list, ( { ... }, ... ); ignored", file->path,
		       config_setting_source_line(devices));
	for (i = 0; i < config_setting_length(root); i++) {
		item = config_setting_get_elem(root, (unsigned)i);
		if (item != defaults && item != devices)
			unknown(file, item);
	}
}

static void settings_file_parse(const struct file *file, const char *text)
{
	config_t config;

	if (!settings_text_check(file->path, text))
		return;
	config_init(&config);
	if (config_read_string(&config, text))
		read_config(file, &config);
	else
		log_at(LOG_ERROR, "%s:%d: %s; the file is ignored", file->path,
		       config_error_line(&config), config_error_text(&config));
	config_destroy(&config);
}

void settings_file_read(struct settings *all, const char *path, bool must_exist)
{
	const struct file file = { .all = all, .path = path };
	char *text;
	size_t len;

	errno = text_file_read(path, SETTINGS_FILE_MAX, &text, &len);
	if (errno) {
		if (must_exist || (errno != ENOENT && errno != ENOTDIR))
			log_at(LOG_ERROR, "%s: %m; the defaults are used", path);
		return;
	}
	snprintf(all->path, sizeof(all->path), "%s", path);
	if (memchr(text, '\0', len))
		log_at(LOG_ERROR, "%s: a NUL byte; the file is ignored", path);
	else
		settings_file_parse(&file, text);
	free(text);
}
