/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* A file of arguments: words, with comments from # to the end of the line. */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dapltest.h"

enum { WORDS_MAX = 499 };

static bool line_split(char *line, char **words, int *count)
{
	char *comment = strchr(line, '#'), *place, *word;

	if (comment)
		*comment = '\0';
	for (word = strtok_r(line, " \t\r", &place); word; word = strtok_r(NULL, " \t\r", &place)) {
		if (*count > WORDS_MAX) {
			complain("Error: more than %d words in the script", WORDS_MAX);
			return false;
		}
		words[(*count)++] = word;
	}
	return true;
}

static bool text_read(const char *path, char **text)
{
	FILE *file = fopen(path, "r");
	size_t size = 0;
	ssize_t length;
	bool ok;

	if (!file) {
		complain("Error: cannot open %s: %s", path, strerror(errno));
		return false;
	}
	/* reads the whole file, because no word contains this byte */
	length = getdelim(text, &size, '\0', file);
	if (length < 0 && *text)
		**text = '\0';
	ok = !ferror(file);
	if (!ok)
		complain("Error: cannot read %s: %s", path, strerror(errno));
	fclose(file);
	return ok;
}

/*
 * The words point into the text of the file, which lives as long as the program, like its
 * arguments.
 */
char **script_words(const char *path, const char *program, int *count)
{
	static char *words[WORDS_MAX + 2], *text;
	char *line, *place;

	if (!text_read(path, &text))
		return NULL;
	words[0] = (char *)(uintptr_t)program;
	*count = 1;
	for (line = text ? strtok_r(text, "\n", &place) : NULL; line;
	     line = strtok_r(NULL, "\n", &place))
		if (!line_split(line, words, count))
			return NULL;
	return words;
}
