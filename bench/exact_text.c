/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "bench/exact_text.h"

#define LONGEST 15 /* bytes of an instruction */

static bool begins(const char *path, const char *name)
{
	const char *file = strrchr(path, '/');

	return file && !strncmp(file + 1, name, strlen(name));
}

static bool is_driver(const char *path)
{
	return begins(path, "libibverbs.so") || begins(path, "librdmacm.so") ||
	       strstr(path, "-rdmav");
}

static bool copy(struct text *text, int memory)
{
	size_t size = text->end - text->start;

	text->bytes = calloc(1, size + LONGEST);
	return text->bytes && pread(memory, text->bytes, size, (off_t)text->start) == (ssize_t)size;
}

static bool add(struct texts *texts, const char *line, int memory)
{
	struct text *more, text = { 0 };
	char rights[5];

	if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %4s %*s %*s %*s %255[^\n]", &text.start,
		   &text.end, rights, text.path) < 3)
		return false;
	if (rights[2] != 'x' || !strcmp(text.path, "[vsyscall]"))
		return true;
	text.driver = is_driver(text.path);
	more = realloc(texts->list, (texts->count + 1) * sizeof(*more));
	if (!more)
		return false;
	texts->list = more;
	texts->list[texts->count++] = text;
	return copy(&texts->list[texts->count - 1], memory);
}

bool texts_read(struct texts *texts, pid_t pid)
{
	char path[64], line[512];
	bool good = true;
	FILE *maps;
	int memory;

	texts_free(texts);
	snprintf(path, sizeof(path), "/proc/%d/mem", (int)pid);
	memory = open(path, O_RDONLY | O_CLOEXEC);
	snprintf(path, sizeof(path), "/proc/%d/maps", (int)pid);
	maps = fopen(path, "re");
	while (maps && memory >= 0 && good && fgets(line, sizeof(line), maps))
		good = add(texts, line, memory);
	good &= maps && memory >= 0;
	if (maps)
		fclose(maps);
	if (memory >= 0)
		close(memory);
	return good;
}

void texts_free(struct texts *texts)
{
	while (texts->count)
		free(texts->list[--texts->count].bytes);
	free(texts->list);
	texts->list = NULL;
}

const struct text *texts_at(const struct texts *texts, uint64_t address)
{
	size_t i;

	for (i = 0; i < texts->count; i++)
		if (address >= texts->list[i].start && address < texts->list[i].end)
			return &texts->list[i];
	return NULL;
}

const char *texts_file(const struct texts *texts, const char *name)
{
	size_t i;

	for (i = 0; i < texts->count; i++)
		if (begins(texts->list[i].path, name))
			return texts->list[i].path;
	return NULL;
}

/* Prefixes, opcode and the byte behind it are enough (Intel 64 manual, volume 2, chapter 2). */
struct instruction text_decode(const struct text *text, uint64_t address)
{
	const unsigned char *byte = text->bytes + (address - text->start);
	struct instruction is = { 0 };
	bool repeat = false;

	for (;; byte++) {
		if (*byte == 0xf0)
			is.locked = true;
		else if (*byte == 0xf2 || *byte == 0xf3)
			repeat = true;
		else if (!strchr("\x2e\x36\x3e\x26\x64\x65\x66\x67", *byte) || !*byte)
			break;
	}
	if ((*byte & 0xf0) == 0x40) /* REX */
		byte++;
	if ((*byte == 0x86 || *byte == 0x87) && byte[1] < 0xc0)
		is.locked = true; /* xchg with memory */
	is.system_call = *byte == 0x0f && (byte[1] == 0x05 || byte[1] == 0x34);
	is.system_call |= *byte == 0xcd && byte[1] == 0x80;
	is.repeated =
		repeat && ((*byte >= 0xa4 && *byte <= 0xa7) || (*byte >= 0xaa && *byte <= 0xaf) ||
			   (*byte >= 0x6c && *byte <= 0x6f));
	return is;
}
