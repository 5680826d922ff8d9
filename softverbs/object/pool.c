/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* Moves memory into the pool and back, and keeps it apart in a child. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "softverbs/base/os.h"
#include "softverbs/object/mapping.h"
#include "softverbs/object/pool.h"
#include "softverbs/object/pool_guard.h"
#include "util/log.h"

#define POOL_SIZE (1ull << 48) /* above all addresses; only pages in use cost memory */
#define PIECE	  (1ull << 20) /* bytes that are twice in memory while a range moves */

static struct {
	pthread_mutex_t lock; /* guards all members; held during fork */
	int fd;		      /* -1: there is no pool */
	dev_t dev;
	ino_t ino;
	/* during fork: what is in the pool, and a copy of each part */
	struct pool_copy {
		struct pool_range range;
		void *copy;
	} * copies;
	unsigned count, room;
} pool = { .lock = PTHREAD_MUTEX_INITIALIZER, .fd = -1 };

static bool is_pool_locked(const struct map_line *line)
{
	return pool.fd >= 0 && line->shared && line->dev == pool.dev && line->ino == pool.ino;
}

bool sv_pool_is(dev_t dev, ino_t ino)
{
	const struct map_line line = { .dev = dev, .ino = ino, .shared = true };
	bool is;

	pthread_mutex_lock(&pool.lock);
	is = is_pool_locked(&line);
	pthread_mutex_unlock(&pool.lock);
	return is;
}

/* Bytes in the pool. */
static uint64_t size_locked(void)
{
	struct stat st;

	return pool.fd < 0 || fstat(pool.fd, &st) ? 0 : (uint64_t)st.st_blocks * 512;
}

/* ---- bytes ---- */

/*
 * By the system call itself: the range is the program's, and a sanitizer may have marked parts of it. A page that the kernel
 * cannot give is an error, not a signal.
 */
static int bytes_move(long call, uint64_t at, void *memory, uint64_t length)
{
	for (uint64_t done = 0; done < length;) {
		long moved =
			syscall(call, pool.fd, (uint8_t *)memory + done, length - done, at + done);

		if (moved <= 0)
			return moved ? errno : EIO;
		done += (uint64_t)moved;
	}
	return 0;
}

static int bytes_put(const struct pool_range *part)
{
	return bytes_move(SYS_pwrite64, part->begin, (void *)(uintptr_t)part->begin,
			  part->end - part->begin);
}

static int bytes_get(const struct pool_range *part, void *to)
{
	return bytes_move(SYS_pread64, part->begin, to, part->end - part->begin);
}

static void *private_map(uint64_t length)
{
	void *at = mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	return at == MAP_FAILED ? NULL : at;
}

/* ---- fork ---- */

static bool copy_add(const struct map_line *line, void *arg)
{
	struct pool_range range = { line->begin, line->end };

	(void)arg;
	if (!is_pool_locked(line) || line->begin != line->offset)
		return true;
	if (pool.count == pool.room) {
		unsigned room = pool.room ? 2 * pool.room : 16;
		struct pool_copy *copies = realloc(pool.copies, room * sizeof(*copies));

		if (!copies)
			return false;
		pool.copies = copies;
		pool.room = room;
	}
	pool.copies[pool.count++] = (struct pool_copy){ range, NULL };
	return true;
}

/* The child would otherwise have holes there: the pages are not for it. */
void sv_pool_fork_prepare(void)
{
	pthread_mutex_lock(&pool.lock);
	pool.count = 0;
	if (!size_locked())
		return;
	sv_mapping_each(copy_add, NULL);
	for (unsigned i = 0; i < pool.count; i++) {
		struct pool_copy *copy = &pool.copies[i];

		copy->copy = private_map(copy->range.end - copy->range.begin);
		if (!copy->copy || bytes_get(&copy->range, copy->copy))
			log_at(LOG_ERROR, "softverbs: a child has no memory at %p: %s",
			       (void *)(uintptr_t)copy->range.begin, strerror(errno));
	}
}

void sv_pool_fork_parent(void)
{
	for (unsigned i = 0; i < pool.count; i++)
		if (pool.copies[i].copy)
			munmap(pool.copies[i].copy,
			       pool.copies[i].range.end - pool.copies[i].range.begin);
	pthread_mutex_unlock(&pool.lock);
}

void sv_pool_fork_child(void)
{
	for (unsigned i = 0; i < pool.count; i++) {
		const struct pool_copy *copy = &pool.copies[i];
		uint64_t length = copy->range.end - copy->range.begin;

		if (copy->copy)
			mremap(copy->copy, length, length, MREMAP_MAYMOVE | MREMAP_FIXED,
			       (void *)(uintptr_t)copy->range.begin);
	}
	if (pool.fd >= 0)
		close(pool.fd);
	pool.fd = -1;
	pthread_mutex_unlock(&pool.lock);
}

/* ---- the file ---- */

/* A larger file would raise SIGXFSZ. */
static bool size_is_allowed(void)
{
	struct rlimit limit;

	return !getrlimit(RLIMIT_FSIZE, &limit) && limit.rlim_cur >= POOL_SIZE;
}

static int pool_open_locked(void)
{
	struct stat st;
	int error;

	if (!size_is_allowed())
		return EFBIG;
	if (pool.fd >= 0)
		return 0;
	pool.fd = sv_os_memfd(POOL_NAME);
	if (pool.fd < 0)
		return errno;
	if (!ftruncate(pool.fd, (off_t)POOL_SIZE) && !sv_os_seal(pool.fd, false) &&
	    !fstat(pool.fd, &st)) {
		pool.dev = st.st_dev;
		pool.ino = st.st_ino;
		return 0;
	}
	error = errno;
	close(pool.fd);
	pool.fd = -1;
	return error;
}

static void pages_free(const struct pool_range *range)
{
	fallocate(pool.fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)range->begin,
		  (off_t)(range->end - range->begin));
}

void sv_pool_close(void)
{
	pthread_mutex_lock(&pool.lock);
	if (pool.fd >= 0 && !size_locked()) {
		close(pool.fd);
		pool.fd = -1;
	}
	pthread_mutex_unlock(&pool.lock);
}

/* ---- in and back ---- */

/* The next piece of a range; the first begins and ends at its begin. False at its end. */
static bool piece_next(const struct pool_range *range, uint64_t most, struct pool_range *piece)
{
	uint64_t rest = range->end - piece->end;

	piece->begin = piece->end;
	piece->end += rest < most ? rest : most;
	return rest;
}

static int piece_move_locked(const struct pool_range *piece)
{
	void *at = (void *)(uintptr_t)piece->begin;
	uint64_t length = piece->end - piece->begin;
	struct pool_guard guard;
	int error = sv_pool_guard_begin(&guard, piece->begin, piece->end, false);

	if (error)
		return error;
	error = bytes_put(piece);
	if (!error &&
	    mmap(at, length, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED | MAP_NORESERVE,
		 pool.fd, (off_t)piece->begin) == MAP_FAILED)
		error = errno;
	if (error) {
		pages_free(piece);
	} else {
		madvise(at, length, MADV_DONTFORK);
		sv_os_populate(piece->begin, piece->end, true);
	}
	sv_pool_guard_end(&guard);
	return error;
}

/* The copy takes the place of the mapping in one step. */
static int piece_return_locked(const struct pool_range *piece)
{
	uint64_t length = piece->end - piece->begin;
	struct pool_guard guard;
	int error = sv_pool_guard_begin(&guard, piece->begin, piece->end, true);
	void *copy;

	if (error)
		return error;
	copy = private_map(length);
	error = copy ? bytes_get(piece, copy) : ENOMEM;
	if (!error && mremap(copy, length, length, MREMAP_MAYMOVE | MREMAP_FIXED,
			     (void *)(uintptr_t)piece->begin) == MAP_FAILED)
		error = errno;
	if (error && copy)
		munmap(copy, length);
	sv_pool_guard_end(&guard);
	return error;
}

/* Where there is no memory for a copy of a piece, there may be some for a smaller one. */
static int range_return_locked(const struct pool_range *range)
{
	struct pool_range piece = { range->begin, range->begin };
	uint64_t most = PIECE;
	int error = 0;

	while (!error && piece_next(range, most, &piece)) {
		error = piece_return_locked(&piece);
		if (!error) {
			pages_free(&piece);
		} else if (error == ENOMEM && most > sv_os_page_size()) {
			piece.end = piece.begin;
			most /= 2;
			error = 0;
		}
	}
	return error;
}

static int range_move_locked(const struct pool_range *range)
{
	struct pool_range piece = { range->begin, range->begin };
	int error = range->end > POOL_SIZE ? EFBIG : 0;

	while (!error && piece_next(range, PIECE, &piece))
		error = piece_move_locked(&piece);
	if (error)
		range_return_locked(&(struct pool_range){ range->begin, piece.begin });
	return error;
}

static uint64_t parts_length(const struct pool_parts *parts)
{
	uint64_t length = 0;

	for (unsigned i = 0; i < parts->count; i++)
		length += parts->part[i].end - parts->part[i].begin;
	return length;
}

static int parts_move_locked(const struct pool_parts *parts)
{
	unsigned i;
	int error = 0;

	for (i = 0; i < parts->count && !error; i++)
		error = range_move_locked(&parts->part[i]);
	if (!error)
		return 0;
	for (i--; i; i--) /* all before the one that failed */
		range_return_locked(&parts->part[i - 1]);
	return error;
}

int sv_pool_move(const struct pool_parts *parts)
{
	int error;

	pthread_mutex_lock(&pool.lock);
	error = parts_length(parts) + size_locked() > POOL_MOST ? EDQUOT : pool_open_locked();
	if (!error)
		error = parts_move_locked(parts);
	pthread_mutex_unlock(&pool.lock);
	return error;
}

struct back {
	const struct pool_range *range;
	struct pool_range part; /* empty if there is none */
};

static bool back_line(const struct map_line *line, void *arg)
{
	struct back *back = arg;
	struct pool_range part = {
		line->begin > back->range->begin ? line->begin : back->range->begin,
		line->end < back->range->end ? line->end : back->range->end,
	};

	if (part.begin >= part.end || !is_pool_locked(line) || line->begin != line->offset)
		return true;
	back->part = part;
	return false;
}

/* What the program has unmapped meanwhile is freed, too. */
void sv_pool_return(const struct pool_range *range)
{
	struct back back = { .range = range };
	int error = 0;

	pthread_mutex_lock(&pool.lock);
	while (pool.fd >= 0 && !error) {
		back.part = (struct pool_range){ 0 };
		if (!sv_mapping_each(back_line, &back))
			error = EIO; /* the pages may be mapped, so they are kept */
		else if (back.part.begin == back.part.end)
			break;
		else
			error = range_return_locked(&back.part);
	}
	if (error)
		log_at(LOG_NOTE, "softverbs: memory at %p stays shared: %s",
		       (void *)(uintptr_t)range->begin, strerror(error));
	else if (pool.fd >= 0)
		pages_free(range);
	pthread_mutex_unlock(&pool.lock);
}
