/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/*
 * More connections from other hosts at once than may be unproven. Links have a limited time, and the machine may be busy, so
 * that one try of five counts.
 */
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include "softverbs/attend.h"
#include "softverbs/fabric/data.h"
#include "softverbs/fabric/transport.h"
#include "softverbs/link/engine.h"
#include "test/unit/fabric_rig.h"
#include "util/clock.h"

#define CROWD 200u
#define TRIES 5u

static bool is_answered(int fd)
{
	struct wire_target target = { .kind = WIRE_TO_CHECK, .end = rig_end };
	struct wire_answer answer;

	return rig_target(fd, &target, &answer) == WIRE_LINKED;
}

/* Seconds from the first connection of strangers to the welcome of a peer that comes after them. */
static double after_strangers(uint16_t port)
{
	struct pollfd oldest = { .events = POLLIN };
	uint64_t begin = clock_now(), end;
	int fds[CROWD], fd;

	for (unsigned i = 0; i < CROWD; i++)
		fds[i] = rig_dial(port);
	oldest.fd = fds[0];
	fd = rig_dial(port);
	CU_ASSERT_EQUAL(rig_prove(fd, ""), WIRE_WELCOME);
	end = clock_now();
	CU_ASSERT_EQUAL(poll(&oldest, 1, 0), 1); /* it was closed, to make room */
	CU_ASSERT_TRUE(is_answered(fd));
	close(fd);
	for (unsigned i = 0; i < CROWD; i++) {
		CU_ASSERT_TRUE(rig_is_closed(fds[i]));
		close(fds[i]);
	}
	return (double)(end - begin) / NSEC_PER_SEC;
}

/* They make room long before the 2 s that a link may take are over. */
static void silent_strangers(void)
{
	uint16_t port = rig_on();
	bool soon = false;

	for (unsigned i = 0; i < TRIES && !soon; i++)
		soon = after_strangers(port) < 1.5;
	CU_ASSERT_TRUE(soon);
	sv_runtime_release();
}

static bool all_are_welcome(uint16_t port)
{
	unsigned welcome = 0;
	int fds[CROWD];

	for (unsigned i = 0; i < CROWD; i++) {
		fds[i] = rig_dial(port);
		rig_prelude(fds[i]);
	}
	for (unsigned i = 0; i < CROWD; i++)
		welcome += rig_proof(fds[i], "") == WIRE_WELCOME && is_answered(fds[i]);
	for (unsigned i = 0; i < CROWD; i++)
		close(fds[i]);
	return welcome == CROWD;
}

/* None is refused: those for which there is no room wait. */
static void many_peers(void)
{
	uint16_t port = rig_on();
	bool all = false;

	for (unsigned i = 0; i < TRIES && !all; i++)
		all = all_are_welcome(port);
	CU_ASSERT_TRUE(all);
	sv_runtime_release();
}

/* ---- an engine that is late ---- */

static uint64_t stall_end;

static void stall(void)
{
	while (clock_now() < stall_end)
		poll(NULL, 0, 1);
}

/* The engine reads what has come before it fires the timer of the link. */
static void stall_in_job(struct engine_job *job)
{
	(void)job;
	stall();
}

static void stall_in_ready(struct engine_fd *watch, uint32_t events)
{
	uint64_t count;

	(void)events;
	CU_ASSERT_EQUAL(read(watch->fd, &count, sizeof(count)), (ssize_t)sizeof(count));
	stall();
}

static void fire_nothing(struct sv_timer *timer)
{
	(void)timer;
}

static struct engine_fd stalling = { .fd = -1 };

/* The engine fires the timer of the link before it reads: a timer is due when it enters what stalls it. */
static void stall_before_timers(struct engine_job *job)
{
	static struct sv_timer timer;
	uint64_t one = 1;

	(void)job;
	CU_ASSERT_EQUAL(write(stalling.fd, &one, sizeof(one)), (ssize_t)sizeof(one));
	sv_engine_timer_arm(&timer, clock_now(), fire_nothing);
}

static atomic_bool reached;

static void reach(struct engine_job *job)
{
	(void)job;
	atomic_store(&reached, true);
}

static bool is_reached(void *unused)
{
	(void)unused;
	return atomic_load(&reached);
}

/* The engine has fired the timers that were due with what it read last. */
static void engine_passes(struct engine_job *job)
{
	atomic_store(&reached, false);
	sv_engine_defer(job, reach);
	CU_ASSERT_TRUE(unit_wait_for(is_reached, NULL, UNIT_PATIENCE));
}

/* The proof arrives in time, while the engine of this process is busy beyond the time of the link. */
static void is_welcome(uint16_t port, struct engine_job jobs[2], void (*run)(struct engine_job *))
{
	int fd = rig_dial(port);
	struct pollfd poll_fd = { .fd = fd, .events = POLLIN };

	rig_prelude(fd);
	CU_ASSERT_EQUAL(poll(&poll_fd, 1, (int)UNIT_PATIENCE), 1);
	stall_end = clock_now() + 2500 * NSEC_PER_MSEC;
	sv_engine_defer(&jobs[0], run);
	CU_ASSERT_EQUAL(rig_proof(fd, ""), WIRE_WELCOME);
	engine_passes(&jobs[1]);
	CU_ASSERT_TRUE(is_answered(fd));
	close(fd);
}

static void busy_engine(void)
{
	static struct engine_job jobs[4];
	uint16_t port = rig_on();

	is_welcome(port, jobs, stall_in_job);
	CU_ASSERT_EQUAL_FATAL(sv_engine_fd_add(&stalling, eventfd(0, EFD_CLOEXEC), EPOLLIN,
					       stall_in_ready),
			      0);
	is_welcome(port, jobs + 2, stall_before_timers);
	sv_engine_fd_remove(&stalling);
	sv_runtime_release();
}

static const struct unit_test tests[] = {
	{ "strangers that say nothing delay a peer, but not for long", silent_strangers },
	{ "many peers at once are let in, one after the other", many_peers },
	{ "a busy process does not take a peer for a late one", busy_engine },
};

int main(int argc, char **argv)
{
	return rig_can() ? unit_main("softverbs fabric crowd", tests, 3, argc, argv) : 77;
}
