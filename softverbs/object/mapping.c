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
#include "softverbs/object/pool.h"

#define FOLDER "/dev/shm/" /* of shm_open */

static bool line_parse(char *text, struct map_line *line)
{
	unsigned major, minor;
	char rights[5];
	int path = 0;

	if (sscanf(text, "%" SCNx64 "-%" SCNx64 " %4s %" SCNx64 " %x:%x %" SCNu64 " %n",
		   &line->begin, &line->end, rights, &line->offset, &major, &minor, &line->ino,
		   &path) != 7)
		return false;
	text[strcspn(text, "\n")] = 0;
	line->dev = makedev(major, minor);
	line->accessible = rights[0] == 'r' && rights[1] == 'w';
	line->shared = rights[3] == 's';
	line->path = text + path;
	return true;
}

bool sv_mapping_each(bool (*each)(const struct map_line *line, void *arg), void *arg)
{
	FILE *maps = fopen("/proc/self/maps", "re");
	char text[PATH_MAX + 128];
	struct map_line line;
	bool good;

	if (!maps)
		return false;
	while (fgets(text, sizeof(text), maps))
		if (line_parse(text, &line) && !each(&line, arg))
			break;
	good = !ferror(maps);
	fclose(maps);
	return good;
}

/* ---- one file under a range ---- */

/* The kernel's own files, which have no name in any folder, are on the file system of the areas. */
static bool is_of_kernel(const struct map_line *line)
{
	struct stat st;

	return !fstat(sv_area_own()->by_owner_fd, &st) && st.st_dev == line->dev;
}

static bool is_segment(const struct map_line *line)
{
	return !strncmp(line->path, "/SYSV", 5);
}

/* The pool of another copy of this library may take its pages back at any time. */
static bool is_foreign_pool(const struct map_line *line)
{
	return pool_is_named(line->path) && !sv_pool_is(line->dev, line->ino);
}

/* True for a file of a kind that sv_mapping_open may open. */
static bool line_read(const struct map_line *line, uint64_t addr, struct mapping *at)
{
	bool named = !strncmp(line->path, FOLDER, strlen(FOLDER)) &&
		     strlen(line->path) < sizeof(at->path);

	if (!line->shared || line->begin > addr || !(named || is_of_kernel(line)) ||
	    is_foreign_pool(line))
		return false;
	at->dev = line->dev;
	at->ino = line->ino;
	at->offset = line->offset + (addr - line->begin);
	at->is_segment = is_segment(line) && !named;
	strcpy(at->path, named ? line->path : "");
	return true;
}

struct search {
	uint64_t addr, end;
	struct mapping *at;
	struct map_line before; /* but for its path */
	bool begun, found;
};

static bool follows(const struct map_line *line, const struct map_line *before)
{
	return line->shared && line->begin == before->end && line->ino == before->ino &&
	       line->dev == before->dev &&
	       line->offset - before->offset == before->end - before->begin;
}

static bool search_line(const struct map_line *line, void *arg)
{
	struct search *search = arg;

	if (line->end <= search->addr)
		return true;
	if (search->begun ? !follows(line, &search->before)
			  : !line_read(line, search->addr, search->at))
		return false;
	search->begun = true;
	search->before = *line;
	search->found = line->end >= search->end;
	return !search->found;
}

bool sv_mapping_find(uint64_t addr, uint64_t length, struct mapping *at)
{
	struct search search = { .addr = addr, .end = addr + length, .at = at };

	return sv_mapping_each(search_line, &search) && search.found;
}

/* ---- private memory ---- */

struct cover {
	uint64_t addr, end; /* the part that no line has covered yet */
};

/* Huge pages have a file, too. There may be none left when one is accessed first, which raises a signal. */
static bool cover_line(const struct map_line *line, void *arg)
{
	struct cover *cover = arg;

	if (line->end <= cover->addr)
		return true;
	if (line->begin > cover->addr || line->shared || line->ino || !line->accessible)
		return false;
	cover->addr = line->end;
	return cover->addr < cover->end;
}

bool sv_mapping_is_own(uint64_t addr, uint64_t length)
{
	struct cover cover = { addr, addr + length };

	return sv_mapping_each(cover_line, &cover) && cover.addr >= cover.end;
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

bool sv_mapping_has_object(const char *name)
{
	DIR *folder = opendir("/proc/self/fd");
	const struct dirent *entry;
	bool has = false;

	while (folder && !has && (entry = readdir(folder))) {
		char target[64] = "";

		has = readlinkat(dirfd(folder), entry->d_name, target, sizeof(target) - 1) > 0 &&
		      !strncmp(target, "anon_inode:", 11) && !strcmp(target + 11, name);
	}
	if (folder)
		closedir(folder);
	return has;
}

/* ---- locked memory ---- */

bool sv_mapping_is_locked(void)
{
	FILE *status = fopen("/proc/self/status", "re");
	unsigned long locked = 1;
	char line[256];

	while (status && fgets(line, sizeof(line), status))
		if (sscanf(line, "VmLck: %lu", &locked) == 1)
			break;
	if (status)
		fclose(status);
	return locked;
}
