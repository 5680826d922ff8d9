/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* Reads /proc/self: which file lies under a range of memory, and which descriptor the program has for it. */
#include <dirent.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>
#include "softverbs/base/os.h"
#include "softverbs/object/area.h"
#include "softverbs/object/mapping.h"

#define PAGE_OF_FILE (1ull << 61) /* pagemap: the page belongs to a file or to shared memory */

/* A line of /proc/self/maps. */
struct line {
	uint64_t begin, end, offset;
	unsigned major, minor;
	uint64_t ino;
	bool shared, is_segment;
};

bool sv_mapping_may_be_shared(int pages, uint64_t addr)
{
	uint64_t page;
	struct iovec to = { &page, sizeof(page) };

	if (pages < 0)
		return true;
	return sv_os_move(pages, &to, 1, addr / sv_os_page_size() * sizeof(page), false) ==
		       sizeof(page) &&
	       page & PAGE_OF_FILE;
}

static bool line_parse(const char *text, struct line *line)
{
	char rights[5];
	int path = 0;

	if (sscanf(text, "%" SCNx64 "-%" SCNx64 " %4s %" SCNx64 " %x:%x %" SCNu64 " %n",
		   &line->begin, &line->end, rights, &line->offset, &line->major, &line->minor,
		   &line->ino, &path) != 7)
		return false;
	line->shared = rights[3] == 's';
	line->is_segment = !strncmp(text + path, "/SYSV", 5);
	return true;
}

/* The file system of the kernel's own files, on which no program can mount or name anything, has that of the areas. */
static bool is_of_kernel(const struct line *line)
{
	struct stat st;

	return !fstat(sv_area_own()->by_owner_fd, &st) &&
	       st.st_dev == makedev(line->major, line->minor);
}

static bool follows(const struct line *line, const struct line *before)
{
	return line->shared && line->begin == before->end && line->ino == before->ino &&
	       line->major == before->major && line->minor == before->minor &&
	       line->offset - before->offset == before->end - before->begin;
}

/* Whether the lines from the one that contains `addr` on are in one file, up to `end`. */
static bool lines_cover(FILE *maps, uint64_t addr, uint64_t end, struct line *first)
{
	struct line line, before = { 0 };
	char text[PATH_MAX + 128];
	bool found = false;

	while (fgets(text, sizeof(text), maps)) {
		if (!line_parse(text, &line) || line.end <= addr)
			continue;
		if (found ? !follows(&line, &before) : !line.shared || line.begin > addr)
			return false;
		if (!found)
			*first = line;
		found = true;
		if (line.end >= end)
			return true;
		before = line;
	}
	return false;
}

bool sv_mapping_find(uint64_t addr, uint64_t length, struct mapping *at)
{
	FILE *maps = fopen("/proc/self/maps", "re");
	struct line first;
	bool found;

	if (!maps)
		return false;
	found = lines_cover(maps, addr, addr + length, &first) && is_of_kernel(&first);
	fclose(maps);
	if (!found)
		return false;
	at->dev = makedev(first.major, first.minor);
	at->ino = first.ino;
	at->offset = first.offset + (addr - first.begin);
	at->is_segment = first.is_segment;
	return true;
}

/* ---- descriptors ---- */

/* Reads the link alone: a call on a descriptor of an unknown file system could block. */
static bool is_memfd(int folder, const char *number)
{
	char target[16] = "";

	return readlinkat(folder, number, target, sizeof(target) - 1) > 0 &&
	       !strncmp(target, "/memfd:", 7);
}

bool sv_mapping_is_of(const struct mapping *at, int fd)
{
	struct stat st;

	return !fstat(fd, &st) && st.st_dev == at->dev && st.st_ino == at->ino;
}

int sv_mapping_descriptor(const struct mapping *at)
{
	DIR *folder = opendir("/proc/self/fd");
	const struct dirent *entry;
	int fd = -1;

	while (folder && fd < 0 && (entry = readdir(folder)))
		if (is_memfd(dirfd(folder), entry->d_name) &&
		    sv_mapping_is_of(at, atoi(entry->d_name)))
			fd = atoi(entry->d_name);
	if (folder)
		closedir(folder);
	return fd;
}
