/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* What the kernel says of this process's mappings. */
#ifndef SV_OBJECT_MAPPING_H
#define SV_OBJECT_MAPPING_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* A line of /proc/self/maps. */
struct map_line {
	uint64_t begin, end, offset;
	dev_t dev;
	ino_t ino;
	bool accessible; /* it can be read and written */
	bool shared;
	const char *path; /* "" if the mapping has no name */
};

/* Calls `each` with the lines in order, until it returns false. False if they cannot be read. */
bool sv_mapping_each(bool (*each)(const struct map_line *line, void *arg), void *arg);

/*
 * A range inside one file in memory: a segment of shmget(2), a memfd, shared anonymous memory, or a file of shm_open(3).
 */
struct mapping {
	dev_t dev;
	ino_t ino;	 /* of a segment its shmid */
	uint64_t offset; /* of the range in the file */
	bool is_segment;
	char path[256]; /* of a file of shm_open, else empty */
};

/* Fills `at` for a range that lies in one such file without a gap. False if it does not. */
bool sv_mapping_find(uint64_t addr, uint64_t length, struct mapping *at);

/* True if the range is private anonymous memory that can be read and written, without a gap and not of huge pages. */
bool sv_mapping_is_own(uint64_t addr, uint64_t length);

/* Opens the file once more, for writing where the program may: a descriptor, or -1 if the file cannot be reached. */
int sv_mapping_open(const struct mapping *at);

/* True if a descriptor of this process is one of the kernel's objects of this name ("[io_uring]"). */
bool sv_mapping_has_object(const char *name);

/* True if memory of this process is locked, or the kernel does not say. */
bool sv_mapping_is_locked(void);

#endif
