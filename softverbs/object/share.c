/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* Files under regions: found at registration, counted, and described to the peers that ask. */
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
	struct sv_file *file = files->file + 1; /* no file has number 0 */
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

static uint32_t file_hold_locked(struct sv_files *files, const struct region_entry *entry,
				 const struct mapping *at)
{
	struct sv_file *file = file_known_locked(files, at);

	if (at->is_segment && !segment_holds(at, entry->length))
		return 0;
	if (!file)
		file = file_new_locked(files, at, entry->length);
	if (!file)
		return 0;
	file->users++;
	file->writers += lets_write(entry);
	return file->generation << 8 | (uint32_t)(file - files->file);
}

void sv_file_find(struct region_entry *entry)
{
	struct sv_files *files = &sv_area_own()->files;
	const unsigned by_peers = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
				  IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_MW_BIND;
	struct mapping at;
	int cancel;

	entry->file = 0;
	entry->at = 0;
	if (files->off || !(entry->access & by_peers) ||
	    !sv_mapping_may_be_shared(files->pages, entry->addr))
		return;
	cancel = cancel_off();
	if (sv_mapping_find(entry->addr, entry->length, &at)) {
		pthread_mutex_lock(&files->lock);
		entry->file = file_hold_locked(files, entry, &at);
		pthread_mutex_unlock(&files->lock);
		entry->at = at.offset;
	}
	cancel_restore(cancel);
}

/* ---- the end of a file ---- */

static void gone_tell_locked(const struct sv_file *file, uint32_t id)
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

void sv_file_release(const struct region_entry *entry)
{
	struct sv_files *files = &sv_area_own()->files;
	struct sv_file *file = &files->file[FILE_NUMBER(entry->file)];
	int cancel;

	if (!entry->file)
		return;
	cancel = cancel_off();
	pthread_mutex_lock(&files->lock);
	file->writers -= lets_write(entry);
	if (!--file->users) {
		gone_tell_locked(file, entry->file);
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

/* A descriptor for the peer, which lets it write only if some region does; negative if there is none. */
static int descriptor_for(const struct sv_file *file, bool writes)
{
	char path[32];
	int fd = -1;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", file->fd);
	if (writes && file->writers)
		fd = open(path, O_RDWR | O_CLOEXEC);
	return fd >= 0 ? fd : open(path, O_RDONLY | O_CLOEXEC);
}

static bool answer_fill_locked(const struct sv_file *file, struct share_text *text, int *fd)
{
	text->kind = file->kind;
	text->writes = text->writes && file->writers;
	text->shmid = file->ino;
	if (file->kind == SHARE_SYSV)
		return ipc_namespace(text->ipc);
	*fd = descriptor_for(file, text->writes);
	return *fd >= 0;
}

/* The answer is sent with the lock held, so that it precedes the end of the file. */
void sv_file_answer(struct sv_peer *peer, const struct share_text *ask)
{
	struct sv_files *files = &sv_area_own()->files;
	struct sv_file *file = &files->file[FILE_NUMBER(ask->file)];
	struct share_text text = *ask;
	int fd = -1;

	text.verb = SHARE_NOT;
	pthread_mutex_lock(&files->lock);
	if (file->users && file->generation << 8 == (ask->file & ~0xffu) &&
	    answer_fill_locked(file, &text, &fd)) {
		text.verb = SHARE_HERE;
		file->asked[peer->slot / 64] |= 1ull << peer->slot % 64;
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
#endif
	files->pages = files->off ? -1 : open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
}

void sv_files_close(struct sv_files *files)
{
	for (uint32_t i = 0; i < SV_FILES; i++)
		if (files->file[i].fd >= 0)
			close(files->file[i].fd);
	if (files->pages >= 0)
		close(files->pages);
	pthread_mutex_destroy(&files->lock);
}
