/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* The engine leaves reading to threads that poll, and reads itself when there are none, or a CQ is armed. */
#include <pthread.h>
#include <stdatomic.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include "softverbs/fabric/pause.h"
#include "test/unit/node.h"

static struct {
	struct node node; /* holds the engine */
	struct engine_fd handler;
	atomic_uint ready, reads;
	atomic_bool over;
	pthread_t poller;
} rig;

/* The descriptor stays ready, as one whose messages nothing reads. */
static bool engine_reads(void)
{
	atomic_fetch_add(&rig.reads, 1);
	return false;
}

static void ready(struct engine_fd *handler, uint32_t events)
{
	(void)handler;
	(void)events;
	atomic_fetch_add(&rig.ready, 1);
	if (!sv_fabric_pause_begin())
		engine_reads();
}

static void *polls(void *arg)
{
	(void)arg;
	while (!atomic_load(&rig.over))
		sv_fabric_pause_polled();
	return NULL;
}

static void rig_open(bool with_poller)
{
	const struct node_options options = { .memory = 4096 };

	memset(&rig, 0, sizeof(rig));
	CU_ASSERT_TRUE_FATAL(node_open(&rig.node, &options));
	sv_fabric_pause_open(&rig.handler, engine_reads);
	if (with_poller)
		CU_ASSERT_EQUAL_FATAL(pthread_create(&rig.poller, NULL, polls, NULL), 0);
	CU_ASSERT_EQUAL_FATAL(sv_engine_fd_add(&rig.handler, eventfd(1, EFD_CLOEXEC), EPOLLIN,
					       ready),
			      0);
}

static void poller_end(void)
{
	atomic_store(&rig.over, true);
	CU_ASSERT_EQUAL(pthread_join(rig.poller, NULL), 0);
}

static void rig_close(void)
{
	sv_engine_fd_remove(&rig.handler);
	sv_fabric_pause_close();
	CU_ASSERT_EQUAL(node_close(&rig.node), 0);
}

static bool is_more(void *arg)
{
	return atomic_load(&rig.reads) > *(unsigned *)arg;
}

static bool reads_again(void)
{
	unsigned before = atomic_load(&rig.reads);

	return unit_wait_for(is_more, &before, UNIT_PATIENCE);
}

static void no_poll(void)
{
	rig_open(false);
	CU_ASSERT_TRUE(reads_again() && reads_again());
	rig_close();
}

static bool is_paused(void *arg)
{
	unsigned ready_before = atomic_load(&rig.ready), reads_before = atomic_load(&rig.reads);
	const struct timespec moment = { .tv_nsec = 5000000 };

	(void)arg;
	nanosleep(&moment, NULL);
	/* in a pause the engine looks at the polls, not at the descriptor */
	return atomic_load(&rig.ready) == ready_before && atomic_load(&rig.reads) == reads_before;
}

static void polls_go_on(void)
{
	rig_open(true);
	CU_ASSERT_TRUE(unit_wait_for(is_paused, NULL, UNIT_PATIENCE));
	poller_end();
	CU_ASSERT_TRUE(reads_again() && reads_again());
	rig_close();
}

#define TRIES 20u

/* In how many of the tries the engine reads within 5 ms. */
static unsigned reads_soon(void)
{
	unsigned soon = 0;

	for (unsigned i = 0; i < TRIES; i++) {
		unsigned before;

		CU_ASSERT_TRUE(unit_wait_for(is_paused, NULL, UNIT_PATIENCE));
		before = atomic_load(&rig.reads);
		sv_fabric_pause_end();
		soon += unit_wait_for(is_more, &before, 5);
	}
	return soon;
}

/* Where the poller loses its processor for a moment the engine reads, too: so most tries count, of one of several turns. */
static void cq_is_armed(void)
{
	unsigned turns = 50;

	rig_open(true);
	while (reads_soon() < TRIES * 3 / 4 && --turns)
		;
	CU_ASSERT_TRUE(turns);
	poller_end();
	rig_close();
}

static const struct unit_test tests[] = {
	{ "without polls the engine reads what comes", no_poll },
	{ "while a thread polls the engine pauses, and not longer", polls_go_on },
	{ "the engine reads when a CQ is armed, although threads poll", cq_is_armed },
};

UNIT_MAIN("softverbs_pause", tests)
