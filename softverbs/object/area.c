/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* The shared areas: creates and seals those of this process, maps those of a peer. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "softverbs/object/area.h"
#include "softverbs/object/qp.h"
#include "softverbs/base/foreign.h"
#include "softverbs/base/kernel.h"
#include "softverbs/base/os.h"
#include "softverbs/base/lock_rank.h"
#include "softverbs/base/settings.h"
#include "util/log.h"

#define AREA_MOST  (8ull << 30)
#define AREA_LEAST (32ull << 20)
#define PAGE	   4096u

static struct area *own;

struct area *sv_area_own(void)
{
	return own;
}

void sv_area_unpin(unsigned *pins)
{
	struct area *area = sv_area_own();

	pthread_mutex_lock(&area->table_lock);
	if (!--*pins)
		pthread_cond_broadcast(&area->unpinned);
	pthread_mutex_unlock(&area->table_lock);
}

const uint32_t *sv_area_alive(void)
{
	return own->alive;
}

void sv_area_barrier(void)
{
	fence_full();
	if (own->expedited && syscall(SYS_membarrier, MEMBARRIER_CMD_GLOBAL_EXPEDITED, 0, 0))
		log_at(LOG_ERROR, "softverbs: membarrier: %s", strerror(errno));
}

/*
 * The size of each area, in bytes: enough for as many queues as the device announces. These are
 * addresses; memory is allocated when it is touched. The size is less if this process has a limit
 * on addresses (it also maps its peers' areas) or on the size of a file.
 */
static uint64_t area_size(void)
{
	static const struct {
		int which;
		unsigned shares;
	} limits[] = { { RLIMIT_AS, 16 }, { RLIMIT_FSIZE, 1 } };
	uint64_t size = AREA_MOST;

	for (size_t i = 0; i < sizeof(limits) / sizeof(limits[0]); i++) {
		struct rlimit limit;

		if (!getrlimit(limits[i].which, &limit) && limit.rlim_cur / limits[i].shares < size)
			size = limit.rlim_cur / limits[i].shares;
	}
	return size < AREA_LEAST ? AREA_LEAST : size / AREA_STEP * AREA_STEP;
}

/*
 * A larger file would raise SIGXFSZ, which ends the program by default. 0, or EFBIG with a line
 * on the log.
 */
static int file_size_check(uint64_t size)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_FSIZE, &limit) || limit.rlim_cur >= size)
		return 0;
	log_at(LOG_ERROR,
	       "softverbs: the limit of a file's size (RLIMIT_FSIZE) is %llu bytes; an area in"
	       " shared memory needs %llu",
	       (unsigned long long)limit.rlim_cur, (unsigned long long)size);
	return EFBIG;
}

/*
 * Creates a memfd of fixed size and maps it without access; sv_heap_reach adds access in steps.
 * With `reader_only`, no other process can map it for writing, from Linux 5.1 on. NULL with errno.
 */
static void *memfd_map(const char *name, uint64_t size, bool reader_only, int *fd)
{
	void *map;

	*fd = sv_os_memfd(name);
	if (*fd < 0 || ftruncate(*fd, (off_t)size))
		return NULL;
	map = mmap(NULL, size, PROT_NONE, MAP_SHARED | MAP_NORESERVE, *fd, 0);
	if (map == MAP_FAILED)
		return NULL;
	if (sv_os_seal(*fd, reader_only) || madvise(map, size, MADV_DONTFORK)) {
		int err = errno;

		munmap(map, size);
		errno = err;
		return NULL;
	}
	return map;
}

/* Maps a page that is zero in a forked child. */
static uint32_t *alive_map(void)
{
	uint32_t *page =
		mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (page == MAP_FAILED)
		return NULL;
	*page = 1;
	if (madvise(page, PAGE, MADV_WIPEONFORK))
		log_at(LOG_WARN,
		       "softverbs: MADV_WIPEONFORK: %s; forked children must not use inherited "
		       "objects",
		       strerror(errno));
	return page;
}

static int heaps_open(struct area *area, uint64_t size)
{
	uint8_t *private =
		mmap(NULL, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	int err = 0;

	if (private == MAP_FAILED)
		return errno;
	for (int i = 0; i < HEAPS; i++)
		area->heap[i].fd = -1;
	area->heap[HEAP_BY_OWNER].base = (uint8_t *)area->by_owner;
	area->heap[HEAP_BY_OWNER].next = sizeof(*area->by_owner);
	area->heap[HEAP_BY_PEERS].base = (uint8_t *)area->by_peers;
	area->heap[HEAP_BY_PEERS].next = sizeof(*area->by_peers);
	area->heap[HEAP_OWN].base = private;
	if (sv_os_promises_strictly()) {
		area->heap[HEAP_BY_OWNER].fd = area->by_owner_fd;
		area->heap[HEAP_BY_PEERS].fd = area->by_peers_fd;
	}
	for (int i = 0; i < HEAPS; i++) {
		area->heap[i].size = size;
		pthread_mutex_init(&area->heap[i].lock, NULL);
		if (!err)
			err = sv_heap_reach(&area->heap[i], area->heap[i].next);
	}
	return err;
}

static int tables_open(struct area *area)
{
	int err;

	pthread_mutex_init(&area->table_lock, NULL);
	pthread_mutex_init(&area->wake_lock, NULL);
	pthread_mutex_init(&area->mw_lock, NULL);
	pthread_rwlock_init(&area->serve_lock, NULL);
	pthread_cond_init(&area->unpinned, NULL);
	err = sv_ids_open(&area->regions, 1, SV_REGIONS);
	if (!err)
		err = sv_ids_open(&area->qps, 1, SV_QPS + 1);
	if (!err)
		err = sv_ids_open(&area->cqs, 1, SV_CQS + 1);
	if (!err)
		err = sv_ids_open(&area->srqs, 1, SV_SRQS + 1);
	if (!err)
		err = sv_ids_open(&area->channels, 1, SV_CQS);
	return err;
}

static int area_make(struct area *area, uint64_t size)
{
	area->by_owner = memfd_map("softverbs-ro", size, true, &area->by_owner_fd);
	if (!area->by_owner)
		return errno;
	area->by_peers = memfd_map("softverbs-rw", size, false, &area->by_peers_fd);
	if (!area->by_peers)
		return errno;
	area->alive = alive_map();
	if (!area->alive)
		return errno;
	lock_bias_open();
	area->expedited = !syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED, 0, 0);
	return heaps_open(area, size);
}

int sv_area_open(struct sv_peer *self)
{
	uint64_t size = area_size();
	int err = file_size_check(size);
	struct area *area;

	if (err)
		return err;
	area = calloc(1, sizeof(*area));
	if (!area)
		return ENOMEM;
	lock_init(&area->ud_ring.lock, SV_RANK_UD_RING);
	area->by_owner_fd = area->by_peers_fd = -1;
	area->eager = (uint32_t)sv_setting(SV_SET_EAGER);
	sv_files_open(&area->files);
	self->by_owner_size = self->by_peers_size = size;
	own = area; /* a forked child drops its parent's pointer */
	err = area_make(area, size);
	if (!err)
		err = tables_open(area);
	self->by_owner = area->by_owner;
	self->by_peers = area->by_peers;
	if (err) {
		log_at(LOG_ERROR, "softverbs: shared areas of up to %llu bytes: %s",
		       (unsigned long long)size, strerror(err));
		sv_area_close(self);
		return err;
	}
	area->by_owner->layout = SV_LAYOUT;
	area->by_owner->expedited = area->expedited;
	area->by_owner->by_owner_size = area->by_owner->by_peers_size = size;
	memcpy(area->by_owner->nonce, self->nonce, sizeof(self->nonce));
	area->by_owner->pid = getpid();
	area->by_owner->magic = SV_MAGIC;
	return 0;
}

void sv_area_close(struct sv_peer *self)
{
	struct area *area = own;

	own = NULL;
	if (area->by_owner)
		munmap(area->by_owner, self->by_owner_size);
	if (area->by_peers)
		munmap(area->by_peers, self->by_peers_size);
	if (area->heap[HEAP_OWN].base)
		munmap(area->heap[HEAP_OWN].base, self->by_owner_size);
	if (area->alive)
		munmap(area->alive, PAGE);
	if (area->by_owner_fd >= 0)
		close(area->by_owner_fd);
	if (area->by_peers_fd >= 0)
		close(area->by_peers_fd);
	sv_files_close(&area->files);
	for (int i = 0; i < HEAPS; i++)
		sv_heap_close(&area->heap[i]);
	sv_ids_close(&area->regions);
	sv_ids_close(&area->qps);
	sv_ids_close(&area->cqs);
	sv_ids_close(&area->srqs);
	sv_ids_close(&area->channels);
	sv_qp_memory_close(&area->qp_memory);
	free(area);
	self->by_owner = NULL;
	self->by_peers = NULL;
}

void sv_area_offer(struct sv_area_offer *offer, int fds[2])
{
	offer->by_owner_size = own->by_owner->by_owner_size;
	offer->by_peers_size = own->by_owner->by_peers_size;
	fds[0] = own->by_owner_fd;
	fds[1] = own->by_peers_fd;
}

static bool size_is_sound(uint64_t size, uint64_t least)
{
	return size >= least && size <= AREA_MOST && !(size % AREA_STEP);
}

/*
 * Makes a peer's area accessible up to `end`. Two threads may do so at once: the thread that
 * reached less may store `opened` last, and then a later call makes the rest accessible again.
 */
static bool peer_reach(struct sv_peer *peer, enum area_heap which, uint64_t end)
{
	uint64_t to = (end + AREA_STEP - 1) / AREA_STEP * AREA_STEP;
	void *base = which == HEAP_BY_OWNER ? (void *)(uintptr_t)peer->by_owner : peer->by_peers;

	if (end <= atomic_load_explicit(&peer->opened[which], memory_order_relaxed))
		return true;
	if (mprotect(base, to, which == HEAP_BY_OWNER ? PROT_READ : PROT_READ | PROT_WRITE)) {
		log_at(LOG_ERROR, "softverbs: %llu bytes of the area of slot %u: %s",
		       (unsigned long long)to, peer->slot, strerror(errno));
		return false;
	}
	atomic_store_explicit(&peer->opened[which], to, memory_order_relaxed);
	return true;
}

void *sv_area_at(struct sv_peer *peer, enum area_heap which, uint64_t offset, uint64_t size)
{
	uint64_t whole = which == HEAP_BY_OWNER ? peer->by_owner_size : peer->by_peers_size;
	void *base = which == HEAP_BY_OWNER ? (void *)(uintptr_t)peer->by_owner : peer->by_peers;

	if (offset % SV_LINE || offset > whole || size > whole - offset ||
	    (peer->copy != SV_COPY_SELF && !peer_reach(peer, which, offset + size)))
		return NULL;
	return (uint8_t *)base + offset;
}

int sv_area_map(struct sv_peer *peer, const struct sv_area_offer *offer, const int fds[2])
{
	void *by_owner, *by_peers;

	if (!size_is_sound(offer->by_owner_size, sizeof(struct area_by_owner)) ||
	    !size_is_sound(offer->by_peers_size, sizeof(struct area_by_peers)) ||
	    !sv_foreign_is_memfd(fds[0], offer->by_owner_size) ||
	    !sv_foreign_is_memfd(fds[1], offer->by_peers_size))
		return EPROTO;
	peer->by_owner = NULL;
	peer->by_peers = NULL;
	peer->by_owner_size = offer->by_owner_size;
	peer->by_peers_size = offer->by_peers_size;
	by_owner =
		mmap(NULL, offer->by_owner_size, PROT_NONE, MAP_SHARED | MAP_NORESERVE, fds[0], 0);
	if (by_owner == MAP_FAILED)
		return errno;
	peer->by_owner = by_owner;
	by_peers =
		mmap(NULL, offer->by_peers_size, PROT_NONE, MAP_SHARED | MAP_NORESERVE, fds[1], 0);
	if (by_peers == MAP_FAILED) {
		int err = errno;

		sv_area_unmap(peer);
		return err;
	}
	peer->by_peers = by_peers;
	madvise(by_owner, offer->by_owner_size, MADV_DONTFORK);
	madvise(by_peers, offer->by_peers_size, MADV_DONTFORK);
	atomic_init(&peer->opened[HEAP_BY_OWNER], 0);
	atomic_init(&peer->opened[HEAP_BY_PEERS], 0);
	if (!peer_reach(peer, HEAP_BY_OWNER, sizeof(*peer->by_owner)) ||
	    !peer_reach(peer, HEAP_BY_PEERS, sizeof(*peer->by_peers))) {
		sv_area_unmap(peer);
		return ENOMEM;
	}
	if (peer->by_owner->magic != SV_MAGIC || peer->by_owner->layout != SV_LAYOUT ||
	    peer->by_owner->by_owner_size != offer->by_owner_size ||
	    peer->by_owner->by_peers_size != offer->by_peers_size) {
		sv_area_unmap(peer);
		return EPROTO;
	}
	return 0;
}

void sv_area_unmap(struct sv_peer *peer)
{
	if (peer->by_owner)
		munmap((void *)(uintptr_t)peer->by_owner, peer->by_owner_size);
	if (peer->by_peers)
		munmap(peer->by_peers, peer->by_peers_size);
	peer->by_owner = NULL;
	peer->by_peers = NULL;
}
