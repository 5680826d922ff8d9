/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* What datinfo prints, as text to read or as JSON: names and values, in groups and lists. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include "tools/datinfo.h"

enum { INDENT = 4, COLUMN = 46, VALUE_MAX = 4096 };

/* The length of the UTF-8 character that begins here, 0 if none does. */
static size_t utf8_len(const unsigned char *at)
{
	size_t len = 0, i;

	if (at[0] < 0x80)
		return 1;
	if (at[0] >= 0xc2 && at[0] < 0xf5)
		len = at[0] < 0xe0 ? 2 : at[0] < 0xf0 ? 3 : 4;
	for (i = 1; i < len; i++)
		if ((at[i] & 0xc0) != 0x80)
			return 0;
	/* overlong forms, surrogates, and what is beyond Unicode */
	if ((at[0] == 0xe0 && at[1] < 0xa0) || (at[0] == 0xed && at[1] > 0x9f) ||
	    (at[0] == 0xf0 && at[1] < 0x90) || (at[0] == 0xf4 && at[1] > 0x8f))
		return 0;
	return len;
}

/* Names come from files: none of their bytes may steer a terminal or break the JSON. */
static void put(const struct out *out, const char *text)
{
	const unsigned char *at = (const unsigned char *)text;
	size_t len;

	for (; *at; at += len ? len : 1) {
		len = utf8_len(at);
		if (!len)
			fputs(out->json ? "\\ufffd" : "?", stdout);
		else if (*at < 0x20 || *at == 0x7f)
			printf(out->json ? "\\u%04x" : "\\x%02x", *at);
		else if (out->json && (*at == '"' || *at == '\\'))
			printf("\\%c", *at);
		else
			fwrite(at, 1, len, stdout);
	}
}

static void put_quoted(const struct out *out, const char *text)
{
	fputs(out->json ? "\"" : "", stdout);
	put(out, text);
	fputs(out->json ? "\"" : "", stdout);
}

/* Up to where the value comes; `name` is NULL in a list. */
static void put_name(struct out *out, const char *name)
{
	if (!out->json) {
		printf("%*s", INDENT * (int)out->depth, "");
		if (name) {
			put(out, name);
			putchar(':');
		}
		return;
	}
	printf("%s%s%*s", out->more ? "," : "", out->depth ? "\n" : "", 2 * (int)out->depth, "");
	if (name) {
		put_quoted(out, name);
		fputs(": ", stdout);
	}
}

static void put_value(struct out *out, const char *name, const char *text, bool quoted)
{
	int pad = COLUMN - 2 - INDENT * (int)out->depth - (name ? (int)strlen(name) : 0);

	put_name(out, name);
	if (out->json) {
		quoted ? put_quoted(out, text) : put(out, text);
		out->more = true;
		return;
	}
	if (name && *text)
		printf(" %*s", pad > 0 ? pad : 0, "");
	put(out, text);
	putchar('\n');
}

static void begin(struct out *out, const char *name, char bracket)
{
	put_name(out, name);
	if (out->json)
		putchar(bracket);
	else if (name)
		putchar('\n');
	out->depth++;
	out->more = false;
}

static void end(struct out *out, char bracket)
{
	out->depth--;
	if (out->json)
		printf("%s%*s%c%s", out->more ? "\n" : "", out->more ? 2 * (int)out->depth : 0, "",
		       bracket, out->depth ? "" : "\n");
	out->more = true;
}

void out_document(struct out *out)
{
	if (out->json)
		begin(out, NULL, '{');
}

void out_document_end(struct out *out)
{
	if (out->json)
		end(out, '}');
}

void out_group(struct out *out, const char *name)
{
	begin(out, name, '{');
}

void out_group_end(struct out *out)
{
	end(out, '}');
}

void out_list(struct out *out, const char *name)
{
	if (out->json)
		begin(out, name, '[');
}

void out_list_end(struct out *out)
{
	if (out->json)
		end(out, ']');
}

void out_item(struct out *out, const char *key, const char *value)
{
	if (out->json) {
		begin(out, NULL, '{');
		out_text(out, key, "%s", value);
		return;
	}
	printf("%*s", INDENT * (int)out->depth, "");
	put(out, value);
	putchar('\n');
	out->depth++;
}

void out_item_end(struct out *out)
{
	end(out, '}');
}

void out_text(struct out *out, const char *name, const char *format, ...)
{
	char text[VALUE_MAX + 1];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	put_value(out, name, text, true);
}

void out_signed(struct out *out, const char *name, int64_t value)
{
	char text[24];

	snprintf(text, sizeof(text), "%" PRId64, value);
	put_value(out, name, text, false);
}

void out_unsigned(struct out *out, const char *name, uint64_t value)
{
	char text[24];

	snprintf(text, sizeof(text), "%" PRIu64, value);
	put_value(out, name, text, false);
}

void out_bool(struct out *out, const char *name, bool value)
{
	const char *yes = out->json ? "true" : "yes", *no = out->json ? "false" : "no";

	put_value(out, name, value ? yes : no, false);
}

void out_words(struct out *out, const char *name, const char *const *words, size_t count)
{
	char line[VALUE_MAX + 1] = "";
	size_t len = 0, i;

	if (!out->json) {
		for (i = 0; i < count && len < sizeof(line); i++)
			len += (size_t)snprintf(line + len, sizeof(line) - len, "%s%s",
						i ? " " : "", words[i]);
		put_value(out, name, line, true);
		return;
	}
	begin(out, name, '[');
	for (i = 0; i < count; i++)
		put_value(out, NULL, words[i], true);
	end(out, ']');
}
