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
	for (word = strtok_r(line, " \t\r\n", &place); word;
	     word = strtok_r(NULL, " \t\r\n", &place)) {
		if (*count > WORDS_MAX) {
			complain("Error: more than %d words in the script", WORDS_MAX);
			return false;
		}
		words[*count] = strdup(word);
		if (!words[*count])
			return false;
		++*count;
	}
	return true;
}

/* The words live as long as the program, as arguments do. */
char **script_words(const char *path, const char *program, int *count)
{
	static char *words[WORDS_MAX + 2];
	FILE *file = fopen(path, "r");
	size_t size = 0;
	char *line = NULL;
	bool ok = true;

	if (!file) {
		complain("Error: cannot open %s: %s", path, strerror(errno));
		return NULL;
	}
	words[0] = (char *)(uintptr_t)program;
	*count = 1;
	while (ok && getline(&line, &size, file) >= 0)
		ok = line_split(line, words, count);
	if (ferror(file)) {
		complain("Error: cannot read %s", path);
		ok = false;
	}
	free(line);
	fclose(file);
	return ok ? words : NULL;
}
