/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* Values of command line options; an invalid one ends the program. */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "adapter.h"

void option_usage(const char *usage)
{
	fputs(usage, stdout);
	fflush(stdout);
	exit(EXIT_BAD_OPTION);
}

void option_help(const char *usage)
{
	fputs(usage, stdout);
	exit(EXIT_SUCCESS);
}

long long option_number(const char *text, long long least, long long most, const char *usage)
{
	char *end;
	long long value;

	errno = 0;
	value = strtoll(text, &end, 10);
	if (errno || end == text || *end || value < least || value > most) {
		fprintf(stderr, "%s: %s is not a number from %lld to %lld\n",
			program_invocation_short_name, text, least, most);
		option_usage(usage);
	}
	return value;
}

double option_seconds(const char *text, const char *usage)
{
	char *end;
	double value = strtod(text, &end);

	if (end == text || *end || !(value > 0 && value <= 1e6)) {
		fprintf(stderr, "%s: %s is not a number of seconds\n",
			program_invocation_short_name, text);
		option_usage(usage);
	}
	return value;
}

const char *option_provider(const char *text, const char *usage)
{
	if (!text[0] || strlen(text) >= PROVIDER_SIZE) {
		fprintf(stderr, "%s: a provider name has 1 to %d characters\n",
			program_invocation_short_name, PROVIDER_SIZE - 1);
		option_usage(usage);
	}
	return text;
}
