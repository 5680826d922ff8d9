/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* Reads /proc/self: which file lies under a range of memory, and how it can be opened. */
#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>
#include "softverbs/object/area.h"
#include "softverbs/object/mapping.h"

#define FOLDER "/dev/shm/" /* of shm_open */

/* A line of /proc/self/maps. */
struct line {
	uint64_t begin, end, offset;
	unsigned major, minor;
	uint64_t ino;
	bool shared, is_segment;
	const char *path; /* in the text of the line, up to its end */
};

static bool line_parse(const char *text, struct line *line)
{
	char rights[5];
	int path = 0;

	if (sscanf(text, "%" SCNx64 "-%" SCNx64 " %4s %" SCNx64 " %x:%x %" SCNu64 " %n",
		   &line->begin, &line->end, rights, &line->offset, &line->major, &line->minor,
		   &line->ino, &path) != 7)
		return false;
	line->shared = rights[3] == 's';
	line->path = text + path;
	line->is_segment = !strncmp(line->path, "/SYSV", 5);
	return true;
}

/* The kernel's own files, which have no name in any folder, are on the file system of the areas. */
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

/* True for a file of a kind that sv_mapping_open may open. */
static bool take(const struct line *line, uint64_t addr, struct mapping *at)
{
	size_t length = strcspn(line->path, "\n");
	bool named = !strncmp(line->path, FOLDER, strlen(FOLDER)) && length < sizeof(at->path);

	if (!line->shared || line->begin > addr || !(named || is_of_kernel(line)))
		return false;
	at->dev = makedev(line->major, line->minor);
	at->ino = line->ino;
	at->offset = line->offset + (addr - line->begin);
	at->is_segment = line->is_segment && !named;
	at->path[0] = 0;
	if (named)
		strncat(at->path, line->path, length);
	return true;
}

/* Whether the lines from the one that contains `addr` on are in one file, up to `end`. */
static bool lines_cover(FILE *maps, uint64_t addr, uint64_t end, struct mapping *at)
{
	struct line line, before = { 0 };
	char text[PATH_MAX + 128];
	bool found = false;

	while (fgets(text, sizeof(text), maps)) {
		if (!line_parse(text, &line) || line.end <= addr)
			continue;
		if (found ? !follows(&line, &before) : !take(&line, addr, at))
			return false;
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
	bool found;

	if (!maps)
		return false;
	found = lines_cover(maps, addr, addr + length, at);
	fclose(maps);
	return found;
}

/* ---- descriptors ---- */

/* Reads the link alone: a call on a descriptor of an unknown file system could block. */
static bool is_in_memory(int folder, const char *number)
{
	char target[16] = "";

	return readlinkat(folder, number, target, sizeof(target) - 1) > 0 &&
	       (!strncmp(target, "/memfd:", 7) || !strncmp(target, FOLDER, strlen(FOLDER)));
}

static bool is_of(const struct mapping *at, int fd)
{
	struct stat st;

	return !fstat(fd, &st) && st.st_dev == at->dev && st.st_ino == at->ino;
}

/* A descriptor of the program for the file, which it may close at any time; -1 if it has none. */
static int descriptor(const struct mapping *at)
{
	DIR *folder = opendir("/proc/self/fd");
	const struct dirent *entry;
	int fd = -1;

	while (folder && fd < 0 && (entry = readdir(folder)))
		if (is_in_memory(dirfd(folder), entry->d_name) && is_of(at, atoi(entry->d_name)))
			fd = atoi(entry->d_name);
	if (folder)
		closedir(folder);
	return fd;
}

/* Another file may have the name, or the number of a descriptor, by now. */
static int open_checked(const struct mapping *at, const char *path, int flags)
{
	int fd = open(path, O_RDWR | O_CLOEXEC | O_NONBLOCK | flags);

	if (fd < 0)
		fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | flags);
	if (fd >= 0 && !is_of(at, fd)) {
		close(fd);
		fd = -1;
	}
	return fd;
}

/* A passed descriptor would have its position and flags in common with the program's, so the file is opened again. */
int sv_mapping_open(const struct mapping *at)
{
	int theirs = descriptor(at);
	char path[32];

	if (theirs < 0)
		return at->path[0] ? open_checked(at, at->path, O_NOFOLLOW) : -1;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", theirs);
	return open_checked(at, path, 0);
}
