/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* The code of a running program: which file an address belongs to, and how to decode an instruction. */
#ifndef EXACT_TEXT_H
#define EXACT_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct text {
	uint64_t start, end;
	unsigned char *bytes;
	bool driver; /* of libibverbs, librdmacm or a device's library */
	char path[256];
};

struct texts {
	struct text *list;
	size_t count;
};

/* Copies the executable mappings of the program. */
bool texts_read(struct texts *texts, pid_t pid);
void texts_free(struct texts *texts);
/* Returns NULL if the address is in no file. */
const struct text *texts_at(const struct texts *texts, uint64_t address);
/* Returns the first file whose name begins like this, or NULL. */
const char *texts_file(const struct texts *texts, const char *name);

struct instruction {
	bool locked; /* a lock prefix, or xchg with memory, which locks by itself */
	bool system_call;
	bool repeated; /* a string instruction, each round of which is a step */
};

struct instruction text_decode(const struct text *text, uint64_t address);

#endif
