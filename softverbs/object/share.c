/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* Files under regions: found when a peer asks, counted, and described to it. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/shm.h>
#include <sys/stat.h>
#include <unistd.h>
#include "softverbs/base/foreign.h"
#include "softverbs/base/settings.h"
#include "softverbs/object/area.h"
#include "softverbs/object/mapping.h"
#include "softverbs/object/pool.h"
#include "softverbs/object/share.h"
#include "util/cancel.h"
#include "util/log.h"

#define FILE_NUMBER(file) ((file)&0xff)

/* ---- which file ---- */

static bool segment_holds(const struct mapping *at, uint64_t length)
{
	struct shmid_ds segment;

	return !shmctl((int)at->ino, IPC_STAT, &segment) && segment.shm_segsz >= at->offset &&
	       segment.shm_segsz - at->offset >= length;
}

static struct sv_file *file_known_locked(struct sv_files *files, const struct mapping *at)
{
	for (uint32_t i = 0; i < SV_FILES; i++)
		if (files->file[i].users && files->file[i].dev == at->dev &&
		    files->file[i].ino == at->ino)
			return &files->file[i];
	return NULL;
}

static struct sv_file *file_new_locked(struct sv_files *files, const struct mapping *at,
				       uint64_t length)
{
	struct sv_file *file = files->file + FILE_NONE + 1;
	int fd = -1;

	while (file < files->file + SV_FILES && file->users)
		file++;
	if (file == files->file + SV_FILES)
		return NULL;
	if (!at->is_segment) {
		fd = sv_mapping_open(at);
		if (fd < 0 || !sv_foreign_is_file(fd, at->offset + length)) {
			sv_foreign_close(&fd, 1);
			return NULL;
		}
	}
	memset(file->asked, 0, sizeof(file->asked));
	file->generation++;
	file->kind = at->is_segment				    ? SHARE_SYSV
		     : sv_pool_is(at->dev, at->ino)		    ? SHARE_POOL
		     : sv_foreign_is_whole(fd, at->offset + length) ? SHARE_MEMFD
								    : SHARE_FILE;
	file->dev = at->dev;
	file->ino = at->ino;
	file->fd = fd;
	return file;
}

static bool lets_write(const struct region_entry *entry)
{
	return entry->access & IBV_ACCESS_LOCAL_WRITE &&
	       entry->access &
		       (IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_MW_BIND);
}

static uint32_t file_hold_locked(struct sv_files *files, const struct region_entry *region,
				 const struct mapping *at)
{
	struct sv_file *file = file_known_locked(files, at);

	if (at->is_segment && !segment_holds(at, region->length))
		return FILE_NONE;
	if (!file)
		file = file_new_locked(files, at, region->length);
	if (!file)
		return FILE_NONE;
	file->users++;
	return file->generation << 8 | (uint32_t)(file - files->file);
}

/* The whole pages of a region that was swapped are in the pool, and its edges are not. */
static bool pool_find(const struct region_entry *region, struct mapping *at)
{
	struct pool_range pages = pool_pages(region->addr, region->length);

	if (pages.begin == pages.end ||
	    !sv_mapping_find(pages.begin, pages.end - pages.begin, at) ||
	    !sv_pool_is(at->dev, at->ino))
		return false;
	at->offset -= pages.begin - region->addr;
	return true;
}

static void find_locked(struct sv_files *files, struct region_entry *region)
{
	uint32_t file = FILE_NONE;
	struct mapping at;

	if (files->swaps && pool_find(region, &at)) {
		file = file_hold_locked(files, region, &at);
		atomic_store_explicit(&region->at, at.offset, memory_order_relaxed);
	} else if (sv_mapping_find(region->addr, region->length, &at)) {
		file = file_hold_locked(files, region, &at);
		atomic_store_explicit(&region->at, at.offset, memory_order_relaxed);
	}
	/* release: the offset before the number; pairs with sv_direct_find */
	atomic_store_explicit(&region->file, file, memory_order_release);
}

uint32_t sv_file_of_new(unsigned access)
{
	const unsigned by_peers = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
				  IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_MW_BIND;

	return sv_area_own()->files.off || !(access & by_peers) ? FILE_NONE : FILE_UNKNOWN;
}

/* A region that is being withdrawn has no key; sv_file_release comes after that, so it meets what is found here. */
const struct region_entry *sv_file_find(uint32_t lkey)
{
	struct region_entry *region = &sv_area_own()->by_owner->region[lkey >> 16];
	struct sv_files *files = &sv_area_own()->files;
	uint32_t file = FILE_NONE;

	pthread_mutex_lock(&files->lock);
	/* acquire: pairs with sv_region_publish */
	if (lkey && atomic_load_explicit(&region->key, memory_order_acquire) == lkey) {
		if (atomic_load_explicit(&region->file, memory_order_relaxed) == FILE_UNKNOWN)
			find_locked(files, region);
		file = atomic_load_explicit(&region->file, memory_order_relaxed);
	}
	pthread_mutex_unlock(&files->lock);
	return file == FILE_NONE ? NULL : region;
}

void sv_file_find_again(uint32_t lkey)
{
	struct region_entry *region = &sv_area_own()->by_owner->region[lkey >> 16];
	struct sv_files *files = &sv_area_own()->files;
	uint32_t none = FILE_NONE;

	pthread_mutex_lock(&files->lock);
	atomic_compare_exchange_strong_explicit(&region->file, &none, FILE_UNKNOWN,
						memory_order_relaxed, memory_order_relaxed);
	pthread_mutex_unlock(&files->lock);
	sv_file_find(lkey);
}

bool sv_file_is_pool(const struct region_entry *region)
{
	struct sv_files *files = &sv_area_own()->files;
	const struct sv_file *file;
	bool is = false;
	uint32_t id;

	if (!files->swaps)
		return false;
	pthread_mutex_lock(&files->lock);
	id = atomic_load_explicit(&region->file, memory_order_relaxed);
	file = &files->file[FILE_NUMBER(id)];
	if (id != FILE_UNKNOWN && id != FILE_NONE)
		is = sv_pool_is(file->dev, file->ino);
	pthread_mutex_unlock(&files->lock);
	return is;
}

/* ---- the end of a file ---- */

static void gone_report_locked(const struct sv_file *file, uint32_t id)
{
	struct share_text text = { .verb = SHARE_GONE, .file = id };

	for (uint32_t w = 0; w < SV_WORDS(SV_PEERS); w++) {
		for (uint64_t bits = file->asked[w]; bits; bits &= bits - 1) {
			struct sv_peer *peer = sv_peer_linked(
				(uint16_t)(w * 64 + (unsigned)__builtin_ctzll(bits)));

			if (!peer)
				continue;
			sv_peer_send(peer, SV_MSG_DATA, &text, sizeof(text), -1);
			sv_peer_put(peer);
		}
	}
}

void sv_file_release(uint32_t lkey)
{
	struct region_entry *region = &sv_area_own()->by_owner->region[lkey >> 16];
	struct sv_files *files = &sv_area_own()->files;
	int cancel = cancel_off();
	struct sv_file *file;
	uint32_t id;

	pthread_mutex_lock(&files->lock);
	id = atomic_load_explicit(&region->file, memory_order_relaxed);
	file = &files->file[FILE_NUMBER(id)];
	atomic_store_explicit(&region->file, FILE_NONE, memory_order_relaxed);
	if (id != FILE_UNKNOWN && id != FILE_NONE && !--file->users) {
		gone_report_locked(file, id);
		if (file->fd >= 0)
			close(file->fd);
		file->fd = -1;
	}
	pthread_mutex_unlock(&files->lock);
	cancel_restore(cancel);
}

/* ---- answers ---- */

static bool ipc_namespace(uint64_t ipc[2])
{
	struct stat st;

	if (stat("/proc/self/ns/ipc", &st))
		return false;
	ipc[0] = st.st_dev;
	ipc[1] = st.st_ino;
	return true;
}

/* A descriptor for the peer, which lets it write only if the region does; negative if there is none. */
static int descriptor_for(const struct sv_file *file, bool writes)
{
	char path[32];
	int fd = -1;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", file->fd);
	if (writes)
		fd = open(path, O_RDWR | O_CLOEXEC);
	return fd >= 0 ? fd : open(path, O_RDONLY | O_CLOEXEC);
}

static bool answer_fill_locked(const struct sv_file *file, const struct region_entry *region,
			       struct share_text *text, int *fd)
{
	uint64_t at = atomic_load_explicit(&region->at, memory_order_relaxed);

	text->kind = file->kind;
	text->begin = at;
	text->end = at + region->length;
	text->writes = lets_write(region);
	text->shmid = file->ino;
	if (file->kind == SHARE_POOL) {
		struct pool_range pages = pool_pages(at, region->length);

		text->begin = pages.begin;
		text->end = pages.end;
	}
	if (file->kind == SHARE_SYSV)
		return ipc_namespace(text->ipc);
	*fd = descriptor_for(file, text->writes);
	return *fd >= 0;
}

/* The answer is sent with the lock held, so that it precedes the end of the file. */
void sv_file_answer(struct sv_peer *peer, uint32_t key, const struct region_entry *region)
{
	struct sv_files *files = &sv_area_own()->files;
	struct share_text text = { .verb = SHARE_NOT, .key = key };
	struct sv_file *file;
	int fd = -1;

	pthread_mutex_lock(&files->lock);
	text.file = region ? atomic_load_explicit(&region->file, memory_order_relaxed) : FILE_NONE;
	file = &files->file[FILE_NUMBER(text.file)];
	if (text.file != FILE_UNKNOWN && text.file != FILE_NONE &&
	    answer_fill_locked(file, region, &text, &fd)) {
		text.verb = SHARE_HERE;
		file->asked[peer->slot / 64] |= 1ull << peer->slot % 64;
	} else {
		log_at(LOG_NOTE,
		       "softverbs: key 0x%x: its memory is in no file that peers can reach", key);
	}
	sv_peer_send(peer, SV_MSG_DATA, &text, sizeof(text), fd);
	pthread_mutex_unlock(&files->lock);
	if (fd >= 0)
		close(fd);
}

/* ---- of the process ---- */

void sv_files_open(struct sv_files *files)
{
	pthread_mutex_init(&files->lock, NULL);
	for (uint32_t i = 0; i < SV_FILES; i++)
		files->file[i].fd = -1;
#if defined(__SANITIZE_THREAD__)
	files->off = true; /* it cannot see that two addresses are one word */
#else
	files->off = sv_setting(SV_SET_DIRECT) == SV_DIRECT_OFF;
	/* an adapter may hold on to pages */
	files->swaps = sv_setting(SV_SET_DIRECT) == SV_DIRECT_PRIVATE &&
		       !strcmp(sv_setting_text(SV_SET_FABRIC), "off");
#endif
}

void sv_files_close(struct sv_files *files)
{
	sv_engine_timer_cancel(&files->again);
	for (uint32_t i = 0; i < SV_FILES; i++)
		if (files->file[i].fd >= 0)
			close(files->file[i].fd);
	pthread_mutex_destroy(&files->lock);
	sv_pool_close();
}
