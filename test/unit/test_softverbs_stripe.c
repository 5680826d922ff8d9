/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/*
 * Stripes whose holder is killed: in this pid name space, where its process id says so, and in another, where the
 * link does. A holder is made to look like one of another name space by another number for that.
 */
#include <pthread.h>
#include <stdatomic.h>
#include "softverbs/stripe.h"
#include "test/unit/linked.h"

#define ELSEWHERE  (1ull << 22) /* changes the name space */
#define PID_MASK   ((1ull << 22) - 1)
#define SPACE_MASK (((1ull << 18) - 1) << 22)
#define SLOT_AT	   52
#define WHERE	   0x1000 /* an address; its stripe is */
#define STRIPE	   8u
#define NOBODY	   7u /* a QP */

static _Atomic(uint64_t) *holder_in(const struct sv_peer *owner)
{
	return &owner->rw->stripe[STRIPE].holder;
}

struct waiter {
	const struct sv_peer *owner;
	pthread_t thread;
	atomic_bool done;
};

static void *waits(void *arg)
{
	struct waiter *waiter = arg;

	stripe_give(stripe_take(waiter->owner, WHERE, NOBODY), NOBODY);
	atomic_store(&waiter->done, true);
	return NULL;
}

static bool is_done(void *arg)
{
	return atomic_load(&((struct waiter *)arg)->done);
}

static void begin(struct waiter *waiter, const struct sv_peer *owner)
{
	*waiter = (struct waiter){ .owner = owner };
	CU_ASSERT_EQUAL_FATAL(pthread_create(&waiter->thread, NULL, waits, waiter), 0);
}

/* Long enough for many doubts. */
static void still_waits(struct waiter *waiter)
{
	CU_ASSERT_FALSE(unit_wait_for(is_done, waiter, 50));
}

static void gets_it(struct waiter *waiter)
{
	CU_ASSERT_TRUE_FATAL(unit_wait_for(is_done, waiter, UNIT_PATIENCE));
	pthread_join(waiter->thread, NULL);
}

static int just_ends(int fd, void *arg)
{
	(void)fd;
	(void)arg;
	return 0;
}

static void in_this_name_space(void)
{
	struct process process;
	struct waiter waiter;
	uint64_t self;
	pid_t gone;

	CU_ASSERT_TRUE_FATAL(process_start(&process, just_ends, NULL));
	gone = process.pid;
	CU_ASSERT_EQUAL(process_end(&process), 0);
	CU_ASSERT_EQUAL(runtime_hold(), 0);
	self = area_own()->holder;
	CU_ASSERT_EQUAL(self & PID_MASK, (uint64_t)getpid());

	atomic_store(holder_in(peer_self()), (self & ~PID_MASK) | (uint64_t)gone);
	begin(&waiter, peer_self());
	gets_it(&waiter);

	atomic_store(holder_in(peer_self()), self);
	begin(&waiter, peer_self());
	still_waits(&waiter);
	atomic_store(holder_in(peer_self()), 0);
	gets_it(&waiter);
	CU_ASSERT_EQUAL(atomic_load(holder_in(peer_self())), 0);
	runtime_release();
}

/* The holder's number is a living process's here, and a dead one's there, or the other way round. */
static void in_another_name_space(void)
{
	struct process process;
	struct waiter waiter;
	struct sv_peer *peer;
	uint64_t slot = 0, there;

	CU_ASSERT_TRUE_FATAL(process_start(&process, reside, NULL));
	CU_ASSERT_TRUE(process_hear(process.fd, &slot));
	CU_ASSERT_EQUAL(runtime_hold(), 0);
	peer = link_to(slot);
	CU_ASSERT_PTR_NOT_NULL_FATAL(peer);
	there = slot << SLOT_AT | ((area_own()->holder ^ ELSEWHERE) & SPACE_MASK);

	atomic_store(holder_in(peer_self()), there | PID_MASK); /* nobody's number here */
	begin(&waiter, peer_self());
	still_waits(&waiter);
	process_kill(&process);
	gets_it(&waiter);

	/* our own number, in a slot where nobody is any more */
	atomic_store(holder_in(peer_self()), there | (uint64_t)getpid());
	begin(&waiter, peer_self());
	gets_it(&waiter);
	CU_ASSERT_TRUE(unit_wait_for(is_dead, peer, UNIT_PATIENCE));
	peer_put(peer);
	runtime_release();
}

static void of_another_owner(void)
{
	struct process process;
	struct waiter waiter;
	struct sv_peer *peer;
	uint64_t slot = 0;

	CU_ASSERT_TRUE_FATAL(process_start(&process, reside, NULL));
	CU_ASSERT_TRUE(process_hear(process.fd, &slot));
	CU_ASSERT_EQUAL(runtime_hold(), 0);
	peer = link_to(slot);
	CU_ASSERT_PTR_NOT_NULL_FATAL(peer);
	atomic_store(holder_in(peer), (area_own()->holder ^ ELSEWHERE) | PID_MASK);
	begin(&waiter, peer);
	still_waits(&waiter); /* only the owner knows */
	process_kill(&process);
	gets_it(&waiter);
	peer_put(peer);
	runtime_release();
}

/* Takes the stripe of the process in the slot that it hears, as one of another name space, and is killed. */
static int takes(int fd, void *arg)
{
	uint64_t slot = 0;
	struct sv_peer *peer;

	(void)arg;
	if (!process_hear(fd, &slot) || runtime_hold() || !(peer = link_to(slot)))
		return 1;
	atomic_store(holder_in(peer), area_own()->holder ^ ELSEWHERE);
	process_say(fd, 1);
	pause();
	return 2;
}

static bool is_free(void *arg)
{
	(void)arg;
	return !atomic_load(holder_in(peer_self()));
}

static void nobody_waits(void)
{
	struct process process;

	CU_ASSERT_TRUE_FATAL(process_start(&process, takes, NULL));
	CU_ASSERT_EQUAL(runtime_hold(), 0);
	CU_ASSERT_TRUE(process_say(process.fd, runtime_slot()));
	CU_ASSERT_TRUE(process_sync(process.fd));
	CU_ASSERT_FALSE(is_free(NULL));
	process_kill(&process);
	CU_ASSERT_TRUE(unit_wait_for(is_free, NULL, UNIT_PATIENCE));
	runtime_release();
}

static const struct unit_test tests[] = {
	{ "a holder of this pid name space: gone with its process", in_this_name_space },
	{ "a holder of another pid name space: gone with its link", in_another_name_space },
	{ "another process's stripe: its owner says who is gone, or is gone itself",
	  of_another_owner },
	{ "the owner frees what a killed process held", nobody_waits },
};

int main(int argc, char **argv)
{
	return unit_main("test_softverbs_stripe", tests, sizeof(tests) / sizeof(tests[0]), argc,
			 argv);
}
