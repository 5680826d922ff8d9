/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* A descriptor that is readable although there is nothing to read: the test is the clock, the engine and the source. */
#include <errno.h>
#include <sys/eventfd.h>
#include <unistd.h>
#include "softverbs/fabric/progress.h"
#include "softverbs/fabric/transport.h"
#include "softverbs/link/engine.h"
#include "test/unit/unit.h"
#include "util/clock.h"

#define OFTEN 10000u

static struct engine_fd *watched; /* NULL: none */
static bool masked;
static void (*pace)(struct sv_timer *timer);
static unsigned messages, pieces;	  /* to read; of the next message */
static bool sticks;			  /* the descriptor stays readable */
static uint64_t now = NSEC_PER_SEC, turn; /* how long a turn of the engine takes */

int __wrap_clock_gettime(clockid_t id, struct timespec *time);
int __wrap_clock_gettime(clockid_t id, struct timespec *time)
{
	(void)id;
	*time = (struct timespec){ .tv_sec = (time_t)(now / NSEC_PER_SEC),
				   .tv_nsec = (long)(now % NSEC_PER_SEC) };
	return 0;
}

int __wrap_sv_engine_fd_add(struct engine_fd *handler, int fd, uint32_t events,
			    void (*ready)(struct engine_fd *handler, uint32_t events));
int __wrap_sv_engine_fd_add(struct engine_fd *handler, int fd, uint32_t events,
			    void (*ready)(struct engine_fd *handler, uint32_t events))
{
	(void)events;
	handler->fd = fd;
	handler->ready = ready;
	watched = handler;
	return 0;
}

void __wrap_sv_engine_fd_remove(struct engine_fd *handler);
void __wrap_sv_engine_fd_remove(struct engine_fd *handler)
{
	if (watched)
		close(handler->fd);
	handler->fd = -1;
	watched = NULL;
}

void __wrap_sv_engine_fd_modify(struct engine_fd *handler, uint32_t events);
void __wrap_sv_engine_fd_modify(struct engine_fd *handler, uint32_t events)
{
	CU_ASSERT_PTR_NOT_NULL(watched);
	(void)handler;
	masked = !events;
}

void __wrap_sv_engine_timer_arm(struct sv_timer *timer, uint64_t deadline,
				void (*fire)(struct sv_timer *timer));
void __wrap_sv_engine_timer_arm(struct sv_timer *timer, uint64_t deadline,
				void (*fire)(struct sv_timer *timer))
{
	(void)timer;
	(void)deadline;
	pace = fire;
}

void __wrap_sv_engine_timer_cancel(struct sv_timer *timer);
void __wrap_sv_engine_timer_cancel(struct sv_timer *timer)
{
	(void)timer;
}

/* ---- the source ---- */

static struct fabric_source source;

static void readable(bool is)
{
	uint64_t value = 1;

	if (is)
		CU_ASSERT_EQUAL_FATAL(write(source.fd, &value, sizeof(value)), sizeof(value));
	else if (read(source.fd, &value, sizeof(value)) < 0)
		CU_ASSERT_EQUAL(errno, EAGAIN);
}

static unsigned source_read(void)
{
	unsigned count = pieces ? 0 : messages;

	if (pieces)
		pieces--;
	messages -= count;
	if (!messages && !sticks)
		readable(false);
	return count;
}

static void source_read_over(bool polled)
{
	(void)polled;
}

static bool source_is_paced(void)
{
	return !sv_fabric_progress_is_woken();
}

static void rig_open(bool stuck)
{
	messages = pieces = 0;
	turn = NSEC_PER_MSEC;
	masked = false;
	sticks = stuck;
	source = (struct fabric_source){ .fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK),
					 .read = source_read,
					 .read_over = source_read_over,
					 .is_paced = source_is_paced };
	CU_ASSERT_EQUAL_FATAL(sv_fabric_progress_open(&source), 0);
	CU_ASSERT_TRUE(sv_fabric_progress_is_woken());
}

static void rig_close(void)
{
	sv_fabric_progress_close();
	close(source.fd);
}

static void engine_turns(unsigned count)
{
	for (unsigned i = 0; i < count && !masked; i++, now += turn)
		watched->ready(watched, 0);
}

/* ---- tests ---- */

static void masked_while_vain(void)
{
	rig_open(true);
	readable(true);
	messages = 1;
	pace = NULL;
	engine_turns(OFTEN);
	CU_ASSERT_TRUE(masked);
	CU_ASSERT_FALSE(sv_fabric_progress_is_woken());
	for (unsigned i = 0; i < 3; i++) {
		CU_ASSERT_PTR_NOT_NULL_FATAL(pace);
		pace(NULL);
		messages = 1;
		pace(NULL);
		CU_ASSERT_EQUAL(messages, 0);
		CU_ASSERT_TRUE(masked);
	}
	readable(false);
	pace(NULL);
	CU_ASSERT_FALSE(masked);
	CU_ASSERT_TRUE(sv_fabric_progress_is_woken());
	rig_close();
}

/* Threads that poll have read what the engine was woken for. */
static void others_read(void)
{
	rig_open(false);
	engine_turns(OFTEN);
	CU_ASSERT_TRUE(sv_fabric_progress_is_woken());
	rig_close();
}

static void in_pieces(void)
{
	rig_open(false);
	for (unsigned i = 0; i < 100; i++) {
		readable(true);
		messages = 1;
		pieces = 400;
		engine_turns(401);
		CU_ASSERT_EQUAL(messages, 0);
	}
	CU_ASSERT_TRUE(sv_fabric_progress_is_woken());
	rig_close();
}

/* A provider that looks at its connections now and then. */
static void for_a_while(void)
{
	rig_open(true);
	turn = NSEC_PER_USEC;
	for (unsigned i = 0; i < 100; i++) {
		readable(true);
		engine_turns(OFTEN);
		readable(false);
		engine_turns(1);
	}
	CU_ASSERT_TRUE(sv_fabric_progress_is_woken());
	rig_close();
}

static const struct unit_test tests[] = {
	{ "a descriptor that is readable for nothing is not waited for", masked_while_vain },
	{ "one whose messages other threads have read is waited for", others_read },
	{ "one whose messages come in pieces is waited for", in_pieces },
	{ "one that is readable for nothing for 10 ms is waited for", for_a_while },
};

UNIT_MAIN("softverbs_fabric_vain", tests)
