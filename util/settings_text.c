/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/*
 * Checks the text of dapl.conf before libconfig 1.5 reads it, which truncates numbers to 32 bits without an error,
 * leaks the memory of an unterminated string, and ends the process if an included path is a folder.
 */
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "util/log.h"
#include "util/settings.h"

/* Returns the end of the comment that begins here, or NULL if none does. */
static const char *skip_comment(const char *at)
{
	const char *end;

	if (*at == '#' || (at[0] == '/' && at[1] == '/'))
		return at + strcspn(at, "\n");
	if (at[0] != '/' || at[1] != '*')
		return NULL;
	end = strstr(at + 2, "*/");
	return end ? end + 2 : at + strlen(at);
}

/* At a quote: returns the place behind the string, or NULL if it has no end. */
static const char *skip_string(const char *at)
{
	for (at++; *at && *at != '"'; at++)
		if (*at == '\\' && at[1])
			at++;
	return *at ? at + 1 : NULL;
}

static bool is_in_name(char c)
{
	return isalnum((unsigned char)c) || c == '_' || c == '-' || c == '*';
}

/*
 * At a digit: returns the place behind the number, or NULL if libconfig would not keep all of it.
 */
static const char *skip_number(const char *at, bool negative)
{
	bool hex = at[0] == '0' && (at[1] == 'x' || at[1] == 'X');
	unsigned long long most = hex ? UINT_MAX : (unsigned long long)INT_MAX + negative;
	unsigned long long value;
	char *end;

	errno = 0;
	value = strtoull(at, &end, hex ? 16 : 10);
	if (*end == 'L') {
		end += strspn(end, "L");
		return errno ? NULL : end;
	}
	if (!hex && *end && strchr(".eE", *end)) /* no integer, so it is not checked */
		return end + strspn(end, ".eE+-0123456789");
	return errno || value > most ? NULL : end;
}

static const char *skip_name(const char *at)
{
	while (is_in_name(*at))
		at++;
	return at;
}

/*
 * Returns the place behind the item that begins here; or NULL, with *wrong set, if the file cannot
 * be read with it.
 */
static const char *skip_token(const char *at, bool negative, const char **wrong)
{
	const char *next = skip_comment(at);

	if (next)
		return next;
	if (*at == '@') {
		*wrong = "@include is not supported";
		return NULL;
	}
	if (*at == '"') {
		*wrong = "a string without an end";
		return skip_string(at);
	}
	if (isdigit((unsigned char)*at)) {
		*wrong = "a number that does not fit";
		return skip_number(at, negative);
	}
	return isalpha((unsigned char)*at) || *at == '*' ? skip_name(at) : at + 1;
}

bool settings_text_check(const char *path, const char *text)
{
	const char *at = text, *next, *wrong = NULL;
	unsigned line = 1;

	for (; *at; at = next) {
		next = skip_token(at, at > text && at[-1] == '-', &wrong);
		if (!next) {
			log_at(LOG_ERROR, "%s:%u: %s; the file is ignored", path, line, wrong);
			return false;
		}
		for (; at < next; at++)
			line += *at == '\n';
	}
	return true;
}
