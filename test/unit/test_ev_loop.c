/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* The loop of dat_events(7): a flood of events starves neither a timer nor another EVD. */
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include "test/unit/ev_rig.h"

enum { TURNS = 8, BATCH = 32, TICKS = 20, TICK_MS = 2 };

struct loop {
	DAT_CNO_HANDLE cno;
	DAT_EVD_HANDLE flood, quiet;
	int set, timer;
	bool flooding; /* each event of the flood posts the next */
	uint64_t ticks, flooded, quiets, slept;
};

static void post(DAT_EVD_HANDLE evd)
{
	DAT_EVENT event = { .event_number = DAT_SOFTWARE_EVENT };

	MUST(dat_evd_post_se(evd, &event));
}

static void handle(struct loop *loop, DAT_EVD_HANDLE evd, DAT_COUNT n)
{
	for (DAT_COUNT i = 0; i < n; i++) {
		if (evd == loop->quiet) {
			loop->quiets++;
			continue;
		}
		loop->flooded++;
		if (loop->flooding)
			post(evd);
	}
}

static void watch(struct loop *loop, int fd)
{
	struct epoll_event event = { .events = EPOLLIN, .data.fd = fd };

	CU_ASSERT_EQUAL_FATAL(epoll_ctl(loop->set, EPOLL_CTL_ADD, fd, &event), 0);
}

/* Each tick posts an event on the quiet EVD. */
static void tick(struct loop *loop)
{
	uint64_t times;

	CU_ASSERT_EQUAL(read(loop->timer, &times, sizeof(times)), sizeof(times));
	loop->ticks++;
	post(loop->quiet);
}

/* One iteration of the loop of dat_events(7). */
static void go_round(struct loop *loop)
{
	struct epoll_event ready[2];
	DAT_EVD_HANDLE evds[2];
	DAT_EVENT events[BATCH];
	DAT_COUNT k = 1, n;
	DAT_RETURN status;
	int found;

	for (int turn = 0; turn < TURNS && k; turn++)
		if (DAT_CNO_POLL(loop->cno, 2, evds, &k) == DAT_SUCCESS)
			for (int i = 0; i < k; i++)
				if (DAT_EVD_DEQUEUE_N(evds[i], BATCH, events, &n) == DAT_SUCCESS)
					handle(loop, evds[i], n);
	status = k ? DAT_EV_BUSY : DAT_CNO_ARM(loop->cno, 0);
	CU_ASSERT_TRUE_FATAL(status == DAT_SUCCESS || status == DAT_EV_BUSY);
	loop->slept += status == DAT_SUCCESS;
	found = epoll_wait(loop->set, ready, 2, status == DAT_SUCCESS ? UNIT_PATIENCE : 0);
	CU_ASSERT_TRUE_FATAL(found > 0 || status == DAT_EV_BUSY);
	for (int i = 0; i < found; i++)
		if (ready[i].data.fd == loop->timer)
			tick(loop);
}

static void loop_open(struct loop *loop, struct rig *rig)
{
	struct itimerspec every = { { 0, TICK_MS * 1000000L }, { 0, TICK_MS * 1000000L } };

	*loop = (struct loop){ .flooding = true };
	rig_open_ep(rig);
	MUST(dat_cno_create(rig->ia, DAT_OS_WAIT_PROXY_AGENT_NULL, &loop->cno));
	MUST(dat_evd_create(rig->ia, 64, loop->cno, DAT_EVD_SOFTWARE_FLAG, &loop->flood));
	MUST(dat_evd_create(rig->ia, 2 * TICKS, loop->cno, DAT_EVD_SOFTWARE_FLAG, &loop->quiet));
	loop->set = epoll_create1(EPOLL_CLOEXEC);
	loop->timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC);
	CU_ASSERT_TRUE_FATAL(loop->set >= 0 && loop->timer >= 0);
	watch(loop, rig_cno_fd(loop->cno));
	watch(loop, loop->timer);
	CU_ASSERT_EQUAL_FATAL(timerfd_settime(loop->timer, 0, &every, NULL), 0);
}

static void loop_close(struct loop *loop, struct rig *rig)
{
	close(loop->timer);
	close(loop->set);
	MUST(dat_evd_free(loop->flood));
	MUST(dat_evd_free(loop->quiet));
	MUST(dat_cno_free(loop->cno));
	rig_close(rig);
}

static void test_flood(void)
{
	struct loop loop;
	struct rig rig;
	uint64_t flooded;

	loop_open(&loop, &rig);
	for (int i = 0; i < BATCH; i++)
		post(loop.flood);
	while (loop.ticks < TICKS)
		go_round(&loop);
	CU_ASSERT_EQUAL(loop.slept, 0);		       /* the loop never blocked during the flood */
	CU_ASSERT_TRUE(loop.quiets + 1 >= loop.ticks); /* the last may be queued */
	CU_ASSERT_TRUE(loop.flooded > TICKS * BATCH);

	/* After the flood the loop takes the rest, blocks, and later events wake it. */
	loop.flooding = false;
	while (loop.slept < 3)
		go_round(&loop);
	flooded = loop.flooded;
	post(loop.flood);
	while (loop.flooded == flooded)
		go_round(&loop);
	CU_ASSERT_EQUAL(loop.flooded, flooded + 1);
	CU_ASSERT_TRUE(loop.quiets + 1 >= loop.ticks);
	loop_close(&loop, &rig);
}

static const struct unit_test tests[] = {
	{ "a flood of events starves neither a timer nor another EVD", test_flood },
};

UNIT_MAIN("ev_loop", tests)
