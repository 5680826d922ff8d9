/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* Names of arguments, for lines about refused calls. */
#ifndef UTIL_ARGUMENT_H
#define UTIL_ARGUMENT_H

#include <stdio.h>
#include <string.h>

#define ARGUMENT_NAME_SIZE 32

/*
 * Argument `number`, from 1, of a list as the preprocessor has it, "ia->object, pz, evd", as " (name)"; leaves `name` as
 * it is if the list has no such argument.
 */
static inline void argument_name(const char *list, unsigned number, char name[ARGUMENT_NAME_SIZE])
{
	const int longest = ARGUMENT_NAME_SIZE - (int)sizeof(" ()");
	size_t length;

	while (number-- > 1 && (list = strchr(list, ',')))
		list += strspn(list, ", ");
	length = list ? strcspn(list, ",") : 0;
	if (length)
		snprintf(name, ARGUMENT_NAME_SIZE, " (%.*s)",
			 length < (size_t)longest ? (int)length : longest, list);
}

#endif
