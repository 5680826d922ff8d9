/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/*
 * Files: memory under regions of this process that a peer can reach by a descriptor of its own, or map, if its size cannot
 * shrink, so that the peer's stores raise no signal. This is the owner's side; rc/direct.h is the peer's.
 */
#ifndef SV_OBJECT_SHARE_H
#define SV_OBJECT_SHARE_H

#include <pthread.h>
#include <sys/types.h>
#include "softverbs/object/shm.h"

#define SV_FILES \
	256u /* limit of files in use; regions in others are reached as private memory is */

enum share_kind {
	SHARE_SYSV = 1, /* a segment of shmget(2) */
	SHARE_MEMFD,	/* sealed against shrinking */
	SHARE_FILE,	/* may shrink: read and written by its descriptor */
};

struct sv_file {
	uint32_t users, writers; /* regions in it, and those that let peers write; 0 users: free */
	uint32_t generation;
	enum share_kind kind;
	dev_t dev;
	ino_t ino; /* of a segment its shmid */
	int fd;	   /* not of a segment: this process's own, as writable as the program's */
	uint64_t asked[SV_WORDS(SV_PEERS)]; /* the peers that asked */
};

struct sv_files {
	pthread_mutex_t lock; /* guards all members; acquired before the links lock */
	bool off;
	int pages; /* /proc/self/pagemap; negative if the kernel refused it */
	struct sv_file file[SV_FILES];
};

enum share_verb {
	SHARE_ASK = 16, /* what is this file? */
	SHARE_HERE,	/* the answer; it carries a descriptor, but for a segment */
	SHARE_NOT,	/* the answer: such a file is not, or not any more */
	SHARE_GONE,	/* the last region in the file is gone */
};

struct share_text {
	uint32_t verb, file, key, kind;
	uint64_t begin,
		end; /* bytes of the file that the initiator has use for; an answer repeats them */
	uint64_t shmid;
	uint64_t ipc[2]; /* SHARE_HERE: device and inode of the owner's IPC namespace */
	uint32_t writes, unused;
};

void sv_files_open(struct sv_files *files);
void sv_files_close(struct sv_files *files);

/* Finds what lies under the entry's range: sets its `file` and `at`. A file is held until sv_file_release. */
void sv_file_find(struct region_entry *entry);
/* Of a region whose key is withdrawn: no peer is about to use it. */
void sv_file_release(const struct region_entry *entry);

/* Engine: answers a peer. */
void sv_file_answer(struct sv_peer *peer, const struct share_text *ask);

#endif
