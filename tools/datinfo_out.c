/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* The output of datinfo, as text or JSON: names and values, in groups and lists. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include "tools/datinfo.h"

enum { INDENT = 4, COLUMN = 46, VALUE_MAX = 4096 };

/* Returns the length of the UTF-8 character that begins here, or 0 if none does. */
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
	/* overlong forms, surrogates, and codes beyond Unicode */
	if ((at[0] == 0xe0 && at[1] < 0xa0) || (at[0] == 0xed && at[1] > 0x9f) ||
	    (at[0] == 0xf0 && at[1] < 0x90) || (at[0] == 0xf4 && at[1] > 0x8f))
		return 0;
	return len;
}

/* Escapes names read from files, so that they cannot control a terminal or break the JSON. */
static void out_put(const struct out *out, const char *text)
{
	const unsigned char *at = (const unsigned char *)text;
	size_t len;

	for (; *at; at += len ? len : 1) {
		len = utf8_len(at);
		if (!len)
			fputs(out->json ? "\\ufffd" : "?", out->stream);
		else if (*at < 0x20 || *at == 0x7f)
			fprintf(out->stream, out->json ? "\\u%04x" : "\\x%02x", *at);
		else if (out->json && (*at == '"' || *at == '\\'))
			fprintf(out->stream, "\\%c", *at);
		else
			fwrite(at, 1, len, out->stream);
	}
}

static void out_put_quoted(const struct out *out, const char *text)
{
	fputs(out->json ? "\"" : "", out->stream);
	out_put(out, text);
	fputs(out->json ? "\"" : "", out->stream);
}

/* Writes everything before the value; `name` is NULL in a list. */
static void out_put_name(struct out *out, const char *name)
{
	if (!out->json) {
		fprintf(out->stream, "%*s", INDENT * (int)out->depth, "");
		if (name) {
			out_put(out, name);
			fputc(':', out->stream);
		}
		return;
	}
	fprintf(out->stream, "%s%s%*s", out->more ? "," : "", out->depth ? "\n" : "",
		2 * (int)out->depth, "");
	if (name) {
		out_put_quoted(out, name);
		fputs(": ", out->stream);
	}
}

static void out_put_value(struct out *out, const char *name, const char *text, bool quoted)
{
	int pad = COLUMN - 2 - INDENT * (int)out->depth - (name ? (int)strlen(name) : 0);

	out_put_name(out, name);
	if (out->json) {
		quoted ? out_put_quoted(out, text) : out_put(out, text);
		out->more = true;
		return;
	}
	if (name && *text)
		fprintf(out->stream, " %*s", pad > 0 ? pad : 0, "");
	out_put(out, text);
	fputc('\n', out->stream);
}

static void out_begin(struct out *out, const char *name, char bracket)
{
	out_put_name(out, name);
	if (out->json)
		fputc(bracket, out->stream);
	else if (name)
		fputc('\n', out->stream);
	out->depth++;
	out->more = false;
}

static void out_end(struct out *out, char bracket)
{
	out->depth--;
	if (out->json)
		fprintf(out->stream, "%s%*s%c%s", out->more ? "\n" : "",
			out->more ? 2 * (int)out->depth : 0, "", bracket, out->depth ? "" : "\n");
	out->more = true;
}

void out_document(struct out *out)
{
	if (out->json)
		out_begin(out, NULL, '{');
}

void out_document_end(struct out *out)
{
	if (out->json)
		out_end(out, '}');
}

void out_group(struct out *out, const char *name)
{
	out_begin(out, name, '{');
}

void out_group_end(struct out *out)
{
	out_end(out, '}');
}

void out_list(struct out *out, const char *name)
{
	if (out->json)
		out_begin(out, name, '[');
}

void out_list_end(struct out *out)
{
	if (out->json)
		out_end(out, ']');
}

void out_item(struct out *out, const char *key, const char *value)
{
	if (out->json) {
		out_begin(out, NULL, '{');
		out_text(out, key, "%s", value);
		return;
	}
	fprintf(out->stream, "%*s", INDENT * (int)out->depth, "");
	out_put(out, value);
	fputc('\n', out->stream);
	out->depth++;
}

void out_item_end(struct out *out)
{
	out_end(out, '}');
}

void out_text(struct out *out, const char *name, const char *format, ...)
{
	char text[VALUE_MAX + 1];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	out_put_value(out, name, text, true);
}

void out_signed(struct out *out, const char *name, int64_t value)
{
	char text[24];

	snprintf(text, sizeof(text), "%" PRId64, value);
	out_put_value(out, name, text, false);
}

void out_unsigned(struct out *out, const char *name, uint64_t value)
{
	char text[24];

	snprintf(text, sizeof(text), "%" PRIu64, value);
	out_put_value(out, name, text, false);
}

void out_bool(struct out *out, const char *name, bool value)
{
	const char *yes = out->json ? "true" : "yes", *no = out->json ? "false" : "no";

	out_put_value(out, name, value ? yes : no, false);
}

void out_words(struct out *out, const char *name, const char *const *words, size_t count)
{
	char line[VALUE_MAX + 1] = "";
	size_t len = 0, i;

	if (!out->json) {
		for (i = 0; i < count && len < sizeof(line); i++)
			len += (size_t)snprintf(line + len, sizeof(line) - len, "%s%s",
						i ? " " : "", words[i]);
		out_put_value(out, name, line, true);
		return;
	}
	out_begin(out, name, '[');
	for (i = 0; i < count; i++)
		out_put_value(out, NULL, words[i], true);
	out_end(out, ']');
}

/* Writes one line without its line end. */
static void out_line(struct out *out, const char *line, size_t len)
{
	char text[VALUE_MAX + 1];

	snprintf(text, sizeof(text), "%.*s", (int)(len < VALUE_MAX ? len : VALUE_MAX), line);
	out_put_value(out, NULL, text, true);
}

void out_lines(struct out *out, const char *name, const char *text)
{
	size_t len;

	out_begin(out, name, '[');
	for (; *text; text += len + (text[len] == '\n')) {
		len = strcspn(text, "\n");
		if (len)
			out_line(out, text, len);
	}
	out_end(out, ']');
}

void out_copy(struct out *out, const char *text, size_t len)
{
	fwrite(text, 1, len, out->stream);
	out->more = out->more || len;
}
