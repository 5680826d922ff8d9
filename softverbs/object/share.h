/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/*
 * Files: memory under regions of this process that a peer can reach by a descriptor of its own, or map, if its size cannot
 * shrink, so that the peer's stores raise no signal. This is the owner's side; rc/direct.h is the peer's.
 *
 * The owner looks for the file of a region when a peer asks that has used the key some times, so that a registration costs
 * nothing.
 */
#ifndef SV_OBJECT_SHARE_H
#define SV_OBJECT_SHARE_H

#include <pthread.h>
#include <sys/types.h>
#include "softverbs/object/shm.h"

/* In a region's entry, instead of the number of its file, which is generation:24 | index:8. */
enum {
	FILE_UNKNOWN = 0,
	FILE_NONE = 1,
};

/* Limit of files in use; regions in others are reached as private memory is. */
#define SV_FILES 256u

enum share_kind {
	SHARE_SYSV = 1, /* a segment of shmget(2) */
	SHARE_MEMFD,	/* sealed against shrinking */
	SHARE_FILE,	/* may shrink: read and written by its descriptor */
	SHARE_POOL,	/* pool.h: the region's whole pages only */
};

struct sv_file {
	uint32_t users; /* regions in it; 0: free */
	uint32_t generation;
	enum share_kind kind;
	dev_t dev;
	ino_t ino; /* of a segment its shmid */
	int fd;	   /* not of a segment: this process's own, as writable as the program's */
	uint64_t asked[SV_WORDS(SV_PEERS)]; /* the peers that asked */
};

#define SHARE_ASKS 64u

struct sv_files {
	pthread_mutex_t lock; /* guards `file`; acquired before the links lock */
	bool off;	      /* constant, as is the next */
	bool swaps;	      /* private memory may move into the pool */
	struct sv_file file[SV_FILES];
	/* Engine only: the peers that have an answer when that was tried. */
	struct {
		uint16_t peer;
		uint32_t key, lkey; /* lkey: that of the region */
	} ask[SHARE_ASKS];
	uint32_t asks, tries;
	struct sv_timer again;
	_Atomic(bool) due; /* a poll is to let the engine try */
};

enum share_verb {
	SHARE_ASK = 16, /* what lies under this key? */
	SHARE_HERE,	/* the answer; it carries a descriptor, but for a segment */
	SHARE_NOT,	/* the answer: no file, or the key is none any more */
	SHARE_GONE,	/* the last region in the file is gone */
};

struct share_text {
	uint32_t verb, key; /* an answer repeats the key */
	uint32_t file, kind;
	uint64_t begin, end; /* bytes of the file that the region lies in, as far as it does */
	uint64_t shmid;
	uint64_t ipc[2]; /* device and inode of the owner's IPC namespace */
	uint32_t writes; /* peers may write there */
	uint32_t unused;
};

void sv_files_open(struct sv_files *files);
void sv_files_close(struct sv_files *files);

/* What to publish of a region with this access. */
uint32_t sv_file_of_new(unsigned access);
/*
 * Finds what lies under the region, unless it is known or the key is none any more. A file is held until sv_file_release.
 * Returns the region's entry if it lies in a file, else NULL.
 */
const struct region_entry *sv_file_find(uint32_t lkey);
/* The same, for a region that did not lie in a file before. */
void sv_file_find_again(uint32_t lkey);
/* Whether a region lies in the pool (pool.h), as far as it is known. */
bool sv_file_is_pool(const struct region_entry *region);
/* Of a region whose key is withdrawn: no peer is about to use it. */
void sv_file_release(uint32_t lkey);

/* Engine: answers a peer that asked for a key of this region, which lies in a file; or of none (NULL). */
void sv_file_answer(struct sv_peer *peer, uint32_t key, const struct region_entry *region);

#endif
