/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* What a peer says of its memory, and what the kernel says: answers that are not true map nothing. */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/shm.h>
#include <sys/stat.h>
#include "softverbs/rc/direct.h"
#include "softverbs/rc/direct_map.h"
#include "test/unit/memory_kind.h"
#include "test/unit/node.h"

static bool is_refused(struct share_text *text, int fd)
{
	struct direct_map *map = sv_direct_map(text, fd);

	if (map)
		sv_direct_unmap(map);
	return !map;
}

static struct share_text answer(enum share_kind kind)
{
	struct share_text text = {
		.verb = SHARE_HERE, .file = 0x101, .kind = kind, .end = PART, .writes = 1
	};
	struct stat st;

	if (!stat("/proc/self/ns/ipc", &st)) {
		text.ipc[0] = st.st_dev;
		text.ipc[1] = st.st_ino;
	}
	return text;
}

static void false_memfds(void)
{
	struct memory good = sealed(), shrinks = unsealed(), plain = file_of_a_folder();
	struct share_text text = answer(SHARE_MEMFD);
	struct direct_map *map;
	char path[32];
	int fd;

	CU_ASSERT_FALSE(is_refused(&text, good.fd));
	CU_ASSERT_TRUE(is_refused(&text, shrinks.fd));
	CU_ASSERT_TRUE(is_refused(&text, plain.fd));
	CU_ASSERT_TRUE(is_refused(&text, -1));
	CU_ASSERT_TRUE(is_refused(&text, 0));
	text.begin = 4 * PART; /* the file ends there */
	text.end = 5 * PART;
	CU_ASSERT_TRUE(is_refused(&text, good.fd));
	text.begin = 2 * PART;
	text.end = PART;
	CU_ASSERT_TRUE(is_refused(&text, good.fd));
	text.end = UINT64_MAX;
	CU_ASSERT_TRUE(is_refused(&text, good.fd));
	/* no further than the file */
	text.end = 3 * PART;
	map = sv_direct_map(&text, good.fd);
	CU_ASSERT_PTR_NOT_NULL_FATAL(map);
	CU_ASSERT_EQUAL(map->begin, 0);
	CU_ASSERT_EQUAL(map->end, 4 * PART);
	memset(map->base, 3, map->end - map->begin);
	sv_direct_unmap(map);
	/* a descriptor for reading makes a mapping for reading */
	snprintf(path, sizeof(path), "/proc/self/fd/%d", good.fd);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	map = sv_direct_map(&text, fd);
	CU_ASSERT_PTR_NOT_NULL_FATAL(map);
	CU_ASSERT_FALSE(map->writable);
	sv_direct_unmap(map);
	close(fd);
	text.kind = 77;
	CU_ASSERT_TRUE(is_refused(&text, good.fd));
	close(good.fd);
	close(shrinks.fd);
	close(plain.fd);
	munmap(good.at, PART);
	munmap(shrinks.at, PART);
	munmap(plain.at, PART);
}

/* A file that may shrink is not mapped, whatever the peer says; its descriptor is used, if it is for writing and not for appending. */
static void false_files(void)
{
	int disk = open("/proc/self/exe", O_RDONLY | O_CLOEXEC), fd;
	struct share_text text = answer(SHARE_FILE);
	struct memory good = unsealed();
	struct direct_map *map;
	char path[32];

	CU_ASSERT_TRUE(is_refused(&text, disk));
	CU_ASSERT_TRUE(is_refused(&text, -1));
	map = sv_direct_map(&text, good.fd);
	CU_ASSERT_PTR_NOT_NULL_FATAL(map);
	CU_ASSERT_TRUE(map->writable && !map->base && map->file_fd >= 0);
	sv_direct_unmap(map);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", good.fd);
	for (unsigned i = 0; i < 2; i++) {
		fd = open(path, (i ? O_RDONLY : O_RDWR | O_APPEND) | O_CLOEXEC);
		map = sv_direct_map(&text, fd);
		CU_ASSERT_PTR_NOT_NULL_FATAL(map);
		CU_ASSERT_FALSE(map->writable);
		sv_direct_unmap(map);
		close(fd);
	}
	close(disk);
	close(good.fd);
	munmap(good.at, PART);
}

static void false_segments(void)
{
	struct share_text text = answer(SHARE_SYSV);
	const struct node_options options = { .memory = 4096 };
	int id = shmget(IPC_PRIVATE, PART, 0600);
	struct shmid_ds segment_of;
	struct node node;

	CU_ASSERT_TRUE_FATAL(node_open(&node, &options));
	text.shmid = (uint64_t)id;
	CU_ASSERT_FALSE(is_refused(&text, -1));
	CU_ASSERT_EQUAL(shmctl(id, IPC_STAT, &segment_of), 0);
	CU_ASSERT_EQUAL(segment_of.shm_nattch, 0);
	text.ipc[1]++;
	CU_ASSERT_TRUE(is_refused(&text, -1));
	text.ipc[1]--;
	if (!geteuid()) { /* one of another user, which this process may attach */
		segment_of.shm_perm.uid = 65534;
		CU_ASSERT_EQUAL(shmctl(id, IPC_SET, &segment_of), 0);
		CU_ASSERT_TRUE(is_refused(&text, -1));
	}
	CU_ASSERT_EQUAL(shmctl(id, IPC_RMID, NULL), 0);
	CU_ASSERT_TRUE(is_refused(&text, -1));
	CU_ASSERT_EQUAL(node_close(&node), 0);
}

/* Only what was asked for is mapped: the end of a file finds its mappings by the keys that were. */
static void unasked(void)
{
	const struct node_options options = { .memory = 4096 };
	struct share_text text = answer(SHARE_MEMFD);
	struct region_entry region = { .length = PART };
	static struct sv_peer peer;
	struct memory good = sealed();
	struct direct_place place;
	struct node node;

	CU_ASSERT_TRUE_FATAL(node_open(&node, &options));
	text.key = 0x50000;
	sv_direct_message(&peer, &text, good.fd);
	CU_ASSERT_FALSE(sv_direct_find(&peer, &region, 0x10000, 0, 8, false, &place));
	sv_direct_message(&peer, &text, good.fd);
	CU_ASSERT_EQUAL(sv_direct_count(), 0);
	text.key = 0;
	sv_direct_message(&peer, &text, good.fd);
	CU_ASSERT_EQUAL(sv_direct_count(), 0);
	sv_direct_forget(&peer);
	CU_ASSERT_EQUAL(node_close(&node), 0);
	close(good.fd);
	munmap(good.at, PART);
}

static const struct unit_test tests[] = {
	{ "answers that were not asked for", unasked },
	{ "answers that lie about a memfd", false_memfds },
	{ "answers that lie about a file that may shrink", false_files },
	{ "answers that lie about a segment", false_segments },
};

UNIT_MAIN("softverbs_direct_answer", tests)
