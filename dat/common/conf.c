/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* Parses dat.conf into records. A bad record is reported and skipped. */
#include "dat/common/reg.h"
#include "util/log.h"

#define CONF_FIELDS    8 /* the last, platform_params, may be left out */
#define CONF_FIELD_MAX 4096

struct line {
	const char *source;
	unsigned number;
	char *at, *end; /* what is not yet read */
	char *field[CONF_FIELDS];
	unsigned count;
};

static bool conf_complain(const struct line *line, unsigned field, const char *what)
{
	log_at(REG_LOG_ERROR, "%s:%u: field %u: %s; record ignored", line->source, line->number,
	       field + 1, what);
	return false;
}

/* `at` is on the opening quote. A closing quote ends the field: no blank need follow. */
static bool scan_quoted(struct line *line)
{
	char *in = line->at + 1, *out = in;

	line->field[line->count] = in;
	while (in < line->end && *in != '"') {
		if (*in == '\\' && in + 1 < line->end)
			in++;
		if (!*in)
			return conf_complain(line, line->count, "NUL byte");
		*out++ = *in++;
	}
	if (in == line->end)
		return conf_complain(line, line->count, "quote is not closed");
	if (out - line->field[line->count] > CONF_FIELD_MAX)
		return conf_complain(line, line->count, "longer than 4096 bytes");
	*out = '\0';
	line->at = in + 1;
	return true;
}

static bool scan_bare(struct line *line)
{
	char *in = line->at;

	line->field[line->count] = in;
	while (in < line->end && *in != ' ' && *in != '\t' && *in != '"') {
		if (!*in)
			return conf_complain(line, line->count, "NUL byte");
		in++;
	}
	if (in < line->end && *in == '"')
		return conf_complain(line, line->count, "quote inside an unquoted field");
	if (in - line->at > CONF_FIELD_MAX)
		return conf_complain(line, line->count, "longer than 4096 bytes");
	line->at = in < line->end ? in + 1 : in;
	*in = '\0';
	return true;
}

/* '#' opens a comment only where a field could begin. */
static bool scan_fields(struct line *line)
{
	for (;;) {
		while (line->at < line->end && (*line->at == ' ' || *line->at == '\t'))
			line->at++;
		if (line->at == line->end || *line->at == '#')
			return true;
		if (line->count == CONF_FIELDS)
			return conf_complain(line, line->count, "more than eight fields");
		if (*line->at == '"' ? !scan_quoted(line) : !scan_bare(line))
			return false;
		line->count++;
	}
}

/* One to ten digits that fit 32 bits. */
static bool scan_decimal(const char **at, DAT_UINT32 *value)
{
	const char *start = *at;
	uint64_t sum = 0;

	while (**at >= '0' && **at <= '9' && *at - start < 11)
		sum = sum * 10 + (uint64_t)(*(*at)++ - '0');
	*value = (DAT_UINT32)sum;
	return *at > start && *at - start <= 10 && sum <= UINT32_MAX;
}

/* "2.0" and nothing after it */
static bool scan_version(const char *at, DAT_UINT32 *major, DAT_UINT32 *minor)
{
	return scan_decimal(&at, major) && *at++ == '.' && scan_decimal(&at, minor) && !*at;
}

/* "dapl.2.0": the vendor and a version; no lookup uses either */
static bool provider_version_is_valid(const char *field)
{
	const char *dot = strchr(field, '.');
	DAT_UINT32 major, minor;

	return dot && dot > field && scan_version(dot + 1, &major, &minor);
}

static bool scan_keyword(const char *field, const char *yes, const char *no, bool *value)
{
	*value = !strcmp(field, yes);
	return *value || !strcmp(field, no);
}

/* True for a good record. Those for the kernel and those that are not the default are checked like the others. */
static bool check_fields(struct line *line, struct conf_record *record)
{
	DAT_PROVIDER_INFO *info = &record->info;
	bool is_user, is_default, is_safe;
	char **field = line->field;

	if (!field[0][0])
		return conf_complain(line, 0, "empty IA name");
	if (!name_is_valid(field[0]))
		return conf_complain(line, 0, "IA name longer than 255 bytes");
	is_user = field[1][0] == 'u';
	if ((!is_user && field[1][0] != 'k') ||
	    !scan_version(field[1] + 1, &info->dapl_version_major, &info->dapl_version_minor))
		return conf_complain(line, 1, "API version is not like u2.0");
	if (!scan_keyword(field[2], "threadsafe", "nonthreadsafe", &is_safe))
		return conf_complain(line, 2, "neither threadsafe nor nonthreadsafe");
	if (!scan_keyword(field[3], "default", "nondefault", &is_default))
		return conf_complain(line, 3, "neither default nor nondefault");
	if (!field[4][0])
		return conf_complain(line, 4, "empty library path");
	if (!provider_version_is_valid(field[5]))
		return conf_complain(line, 5, "provider version is not like dapl.2.0");

	strcpy(info->ia_name, field[0]);
	info->is_thread_safe = is_safe ? DAT_TRUE : DAT_FALSE;
	record->lib_path = field[4];
	record->ia_params = field[6];
	record->for_kernel = !is_user;
	record->nondefault = !is_default;
	return true;
}

static void parse_line(struct line *line, const struct conf_sink *sink)
{
	struct conf_record record = { .lib_path = NULL };

	if (!scan_fields(line) || !line->count)
		return;
	if (line->count < CONF_FIELDS - 1) {
		conf_complain(line, line->count, "missing");
		return;
	}
	if (!check_fields(line, &record))
		return;
	if (!record.for_kernel && !record.nondefault)
		sink->keep(sink->arg, &record);
	else if (sink->pass)
		sink->pass(sink->arg, &record);
}

void conf_parse(char *text, size_t len, const char *source, const struct conf_sink *sink)
{
	char *end = text + len, *feed;
	unsigned number = 0;

	for (; text < end; text = feed + 1) {
		struct line line = { .source = source, .number = ++number, .at = text };

		feed = memchr(text, '\n', (size_t)(end - text));
		if (!feed)
			feed = end;
		line.end = feed > text && feed[-1] == '\r' ? feed - 1 : feed;
		parse_line(&line, sink);
	}
}
