/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* Reads softverbs.conf once in a process. */
#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "softverbs/base/settings_file.h"
#include "util/log.h"
#include "util/text_file.h"

#define FILE_MOST 65536u

static struct { /* constant once it is read */
	char path[PATH_MAX];
	char *text; /* the file, cut into names and values */
	const char *value[SV_SETTINGS];
	unsigned line[SV_SETTINGS];
} file;

static char *trim(char *text)
{
	char *end = text + strlen(text);

	while (end > text && strchr(" \t\r", end[-1]))
		end--;
	*end = '\0';
	return text + strspn(text, " \t");
}

static void line_read(char *line, unsigned number)
{
	char *value, *name;
	int which;

	line[strcspn(line, "#")] = '\0';
	name = trim(line);
	if (!*name)
		return;
	value = strchr(name, '=');
	if (!value) {
		log_at(LOG_ERROR, "softverbs: %s:%u: not NAME = value; the line is ignored",
		       file.path, number);
		return;
	}
	*value++ = '\0';
	name = trim(name);
	for (which = 0; which < SV_SETTINGS; which++)
		if (!strcmp(name, sv_setting_name((enum sv_setting)which)))
			break;
	if (which == SV_SETTINGS) {
		log_at(LOG_ERROR,
		       "softverbs: %s:%u: %s: no such setting, see softverbs(7); the line is "
		       "ignored",
		       file.path, number, name);
		return;
	}
	file.value[which] = trim(value); /* the last line of a name counts */
	file.line[which] = number;
}

static void read_file(void)
{
	const char *named = secure_getenv("SOFTVERBS_CONF"),
		   *path = named ? named : SYSCONFDIR "/softverbs.conf";
	unsigned number = 0;
	char *line, *rest;
	size_t length;
	int error;

	if (!*path)
		return;
	error = text_file_read(path, FILE_MOST, &file.text, &length);
	if (error) {
		if (named || error != ENOENT)
			log_at(LOG_ERROR, "softverbs: %s: %s; its settings are not used", path,
			       strerror(error));
		return;
	}
	snprintf(file.path, sizeof(file.path), "%s", path);
	for (rest = file.text; (line = strsep(&rest, "\n"));)
		line_read(line, ++number);
}

static void settings_file_load(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, read_file);
}

const char *sv_settings_file_text(enum sv_setting which, unsigned *line)
{
	settings_file_load();
	*line = file.line[which];
	return file.value[which];
}

const char *sv_settings_file_path(void)
{
	settings_file_load();
	return file.path;
}
