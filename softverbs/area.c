/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* The areas shared between processes: making and sealing the own ones, mapping a peer's. */
#include <errno.h>
#include <fcntl.h>
#include <linux/membarrier.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "softverbs/area.h"
#include "softverbs/foreign.h"
#include "softverbs/settings.h"
#include "softverbs/stripe.h"
#include "util/log.h"

#define AREA_MB_MAX 16384u
#define PAGE	    4096u

static struct area *own;

struct area *area_own(void)
{
	return own;
}

void area_unpin(unsigned *pins)
{
	struct area *area = area_own();

	pthread_mutex_lock(&area->table_lock);
	if (!--*pins)
		pthread_cond_broadcast(&area->unpinned);
	pthread_mutex_unlock(&area->table_lock);
}

const uint32_t *area_alive(void)
{
	return own->alive;
}

void area_barrier(void)
{
	fence_full();
	if (own->expedited && syscall(SYS_membarrier, MEMBARRIER_CMD_GLOBAL_EXPEDITED, 0, 0))
		log_at(LOG_ERROR, "softverbs: membarrier: %s", strerror(errno));
}

/*
 * A larger file would bring SIGXFSZ, whose default is to end the program. 0, or EFBIG with the
 * reason on the log.
 */
static int file_size_check(uint64_t size)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_FSIZE, &limit) || limit.rlim_cur >= size)
		return 0;
	log_at(LOG_ERROR,
	       "softverbs: the limit of a file's size (RLIMIT_FSIZE) is %llu bytes; an area in"
	       " shared memory needs %llu (SOFTVERBS_AREA_MB)",
	       (unsigned long long)limit.rlim_cur, (unsigned long long)size);
	return EFBIG;
}

/*
 * A memfd of fixed size, mapped for writing; with `reader_only` nobody else can map it so. NULL
 * with errno.
 */
static void *memfd_map(const char *name, uint64_t size, bool reader_only, int *fd)
{
	int seals =
		F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL | (reader_only ? F_SEAL_FUTURE_WRITE : 0);
	void *map;

	*fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (*fd < 0 || ftruncate(*fd, (off_t)size))
		return NULL;
	map = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, *fd, 0);
	if (map == MAP_FAILED)
		return NULL;
	if (fcntl(*fd, F_ADD_SEALS, seals) || madvise(map, size, MADV_DONTFORK)) {
		int err = errno;

		munmap(map, size);
		errno = err;
		return NULL;
	}
	return map;
}

/* A page that a forked child finds zeroed. */
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
	uint8_t *private = mmap(NULL, size, PROT_READ | PROT_WRITE,
				MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (private == MAP_FAILED)
		return errno;
	area->heap[HEAP_RO].base = (uint8_t *)area->ro;
	area->heap[HEAP_RO].next = sizeof(*area->ro);
	area->heap[HEAP_RW].base = (uint8_t *)area->rw;
	area->heap[HEAP_RW].next = sizeof(*area->rw);
	area->heap[HEAP_OWN].base = private;
	for (int i = 0; i < HEAPS; i++) {
		area->heap[i].size = size;
		pthread_mutex_init(&area->heap[i].lock, NULL);
	}
	return 0;
}

static int tables_open(struct area *area)
{
	int err;

	pthread_mutex_init(&area->table_lock, NULL);
	pthread_mutex_init(&area->wake_lock, NULL);
	pthread_mutex_init(&area->mw_lock, NULL);
	pthread_rwlock_init(&area->serve_lock, NULL);
	pthread_cond_init(&area->unpinned, NULL);
	err = ids_open(&area->regions, 1, SV_REGIONS);
	if (!err)
		err = ids_open(&area->qps, 1, SV_QPS + 1);
	if (!err)
		err = ids_open(&area->cqs, 1, SV_CQS + 1);
	if (!err)
		err = ids_open(&area->srqs, 1, SV_SRQS + 1);
	if (!err)
		err = ids_open(&area->channels, 1, SV_CQS);
	return err;
}

static int area_make(struct area *area, uint64_t size)
{
	area->ro = memfd_map("softverbs-ro", size, true, &area->ro_fd);
	if (!area->ro)
		return errno;
	area->rw = memfd_map("softverbs-rw", size, false, &area->rw_fd);
	if (!area->rw)
		return errno;
	area->alive = alive_map();
	if (!area->alive)
		return errno;
	area->expedited = !syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED, 0, 0);
	return heaps_open(area, size);
}

int area_open(struct sv_peer *self)
{
	uint64_t size = (uint64_t)sv_setting(SV_SET_AREA_MB) << 20;
	int err = file_size_check(size);
	struct area *area;

	if (err)
		return err;
	area = calloc(1, sizeof(*area));
	if (!area)
		return ENOMEM;
	area->ro_fd = area->rw_fd = -1;
	area->eager = (uint32_t)sv_setting(SV_SET_EAGER);
	self->ro_size = self->rw_size = size;
	own = area; /* a forked child leaves its parent's behind */
	err = area_make(area, size);
	if (!err)
		err = tables_open(area);
	self->ro = area->ro;
	self->rw = area->rw;
	if (err) {
		log_at(LOG_ERROR, "softverbs: shared areas of %llu bytes: %s",
		       (unsigned long long)size, strerror(err));
		area_close(self);
		return err;
	}
	area->ro->layout = SV_LAYOUT;
	area->ro->expedited = area->expedited;
	area->ro->ro_size = area->ro->rw_size = size;
	memcpy(area->ro->nonce, self->nonce, sizeof(self->nonce));
	area->ro->pid = getpid();
	area->holder = stripe_holder(self->slot);
	area->ro->magic = SV_MAGIC;
	return 0;
}

void area_close(struct sv_peer *self)
{
	struct area *area = own;

	own = NULL;
	if (area->ro)
		munmap(area->ro, self->ro_size);
	if (area->rw)
		munmap(area->rw, self->rw_size);
	if (area->heap[HEAP_OWN].base)
		munmap(area->heap[HEAP_OWN].base, self->ro_size);
	if (area->alive)
		munmap(area->alive, PAGE);
	if (area->ro_fd >= 0)
		close(area->ro_fd);
	if (area->rw_fd >= 0)
		close(area->rw_fd);
	for (int i = 0; i < HEAPS; i++)
		heap_close(&area->heap[i]);
	ids_close(&area->regions);
	ids_close(&area->qps);
	ids_close(&area->cqs);
	ids_close(&area->srqs);
	ids_close(&area->channels);
	free(area);
	self->ro = NULL;
	self->rw = NULL;
}

void area_offer(struct sv_area_offer *offer, int fds[2])
{
	offer->ro_size = own->ro->ro_size;
	offer->rw_size = own->ro->rw_size;
	fds[0] = own->ro_fd;
	fds[1] = own->rw_fd;
}

static bool size_is_sound(uint64_t size, uint64_t least)
{
	return size >= least && size <= (uint64_t)AREA_MB_MAX << 20 && !(size % PAGE);
}

int area_map(struct sv_peer *peer, const struct sv_area_offer *offer, const int fds[2])
{
	void *ro, *rw;

	if (!size_is_sound(offer->ro_size, sizeof(struct sv_ro)) ||
	    !size_is_sound(offer->rw_size, sizeof(struct sv_rw)) ||
	    !sv_foreign_is_memfd(fds[0], offer->ro_size) ||
	    !sv_foreign_is_memfd(fds[1], offer->rw_size))
		return EPROTO;
	peer->ro = NULL;
	peer->rw = NULL;
	peer->ro_size = offer->ro_size;
	peer->rw_size = offer->rw_size;
	ro = mmap(NULL, offer->ro_size, PROT_READ, MAP_SHARED | MAP_NORESERVE, fds[0], 0);
	if (ro == MAP_FAILED)
		return errno;
	peer->ro = ro;
	rw = mmap(NULL, offer->rw_size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fds[1],
		  0);
	if (rw == MAP_FAILED) {
		int err = errno;

		area_unmap(peer);
		return err;
	}
	peer->rw = rw;
	madvise(ro, offer->ro_size, MADV_DONTFORK);
	madvise(rw, offer->rw_size, MADV_DONTFORK);
	if (peer->ro->magic != SV_MAGIC || peer->ro->layout != SV_LAYOUT ||
	    peer->ro->ro_size != offer->ro_size || peer->ro->rw_size != offer->rw_size) {
		area_unmap(peer);
		return EPROTO;
	}
	return 0;
}

void area_unmap(struct sv_peer *peer)
{
	if (peer->ro)
		munmap((void *)(uintptr_t)peer->ro, peer->ro_size);
	if (peer->rw)
		munmap(peer->rw, peer->rw_size);
	peer->ro = NULL;
	peer->rw = NULL;
}
