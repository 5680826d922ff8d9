/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* The engine leaves reading to threads that poll. */
#include <stdatomic.h>
#include <sys/epoll.h>
#include "softverbs/fabric/pause.h"
#include "util/clock.h"

/* The last poll is that long ago at most. */
#define POLLED (200 * NSEC_PER_USEC)
/* No CQ was armed for so long: a thread that is about to block polls a few times before. */
#define SETTLED NSEC_PER_MSEC
/* Of a pause, before the engine checks whether threads still poll. */
#define LENGTH NSEC_PER_MSEC
/* Without a pause after one that something waited for: twice as long each time, until a pause does what it is for. */
#define LEAST_GAP (10 * NSEC_PER_MSEC)
#define MOST_GAP  NSEC_PER_SEC

static struct {
	struct engine_fd *handler; /* NULL: there is no descriptor, and no pause */
	bool (*read)(void);
	struct sv_timer timer;
	uint64_t gap, gap_ends;	  /* the engine's; 0: none */
	_Atomic(uint64_t) polled; /* when a thread polled last; 0: never */
	_Atomic(uint64_t) armed;  /* when a CQ was armed */
	atomic_bool on;
} pause_state;

static void pause_check(struct sv_timer *timer);

static bool is_armed(uint64_t now)
{
	return now <= atomic_load(&pause_state.armed) + SETTLED;
}

static bool threads_poll(void)
{
	uint64_t polled = atomic_load(&pause_state.polled), now = clock_now();

	return polled && now < polled + POLLED && !is_armed(now);
}

static void timer_arm(uint64_t wait)
{
	sv_engine_timer_arm(&pause_state.timer, clock_now() + wait, pause_check);
}

/* The engine reads once, since what has come is not reported again. */
static void pause_over(void)
{
	bool waited, armed = is_armed(clock_now());

	if (!atomic_exchange(&pause_state.on, false))
		return;
	sv_engine_fd_modify(pause_state.handler, EPOLLIN);
	waited = pause_state.read() && !armed;
	if (!waited)
		return;
	pause_state.gap = pause_state.gap ? 2 * pause_state.gap : LEAST_GAP;
	if (pause_state.gap > MOST_GAP)
		pause_state.gap = MOST_GAP;
	pause_state.gap_ends = clock_now() + pause_state.gap;
}

static void pause_check(struct sv_timer *timer)
{
	(void)timer;
	if (!atomic_load(&pause_state.on) || !threads_poll()) {
		pause_over();
		return;
	}
	pause_state.gap = 0;
	timer_arm(LENGTH);
}

bool sv_fabric_pause_begin(void)
{
	if (!threads_poll() || clock_now() < pause_state.gap_ends)
		return false;
	sv_engine_fd_modify(pause_state.handler, 0);
	atomic_store(&pause_state.on, true);
	/* after `on`, which sv_fabric_pause_end loads after it has stored `armed` */
	timer_arm(threads_poll() ? LENGTH : 0);
	return true;
}

void sv_fabric_pause_polled(void)
{
	atomic_store_explicit(&pause_state.polled, clock_now(), memory_order_relaxed);
}

void sv_fabric_pause_end(void)
{
	atomic_store(&pause_state.armed, clock_now());
	if (atomic_load(&pause_state.on))
		timer_arm(0);
}

void sv_fabric_pause_open(struct engine_fd *handler, bool (*read)(void))
{
	pause_state.read = read;
	pause_state.handler = handler;
	pause_state.gap = pause_state.gap_ends = 0;
}

void sv_fabric_pause_close(void)
{
	sv_engine_timer_cancel(&pause_state.timer);
	atomic_store(&pause_state.on, false);
	atomic_store(&pause_state.polled, 0);
}

void sv_fabric_pause_fork_child(void)
{
	pause_state.timer = (struct sv_timer){ .fire = NULL };
	atomic_store(&pause_state.on, false);
	atomic_store(&pause_state.polled, 0);
}
