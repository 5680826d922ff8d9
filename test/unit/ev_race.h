/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/*
 * A consumer that blocks on a descriptor's edge after each event, and a producer on another
 * processor that makes the next event as soon as the consumer has taken the last one, so that every
 * arming races with an event.
 */
#ifndef EV_RACE_H
#define EV_RACE_H

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <unistd.h>
#include <dat2/dat_event_extensions.h>
#include "test/unit/ep_util.h"
#include "test/unit/storm.h"
#include "util/clock.h"

#define RACE_PATIENCE 60000 /* in ms; a longer sleep is a lost wake-up */
#define RACE_PAUSE    300
#define RACE_SECONDS  6u

#if defined(__SANITIZE_THREAD__)
#define RACE_ROUNDS 100000u
#elif defined(__SANITIZE_ADDRESS__)
#define RACE_ROUNDS 1000000u
#else
#define RACE_ROUNDS 10000000u
#endif

struct race {
	DAT_EVD_HANDLE evd;
	int fd;
	int loop; /* epoll, edge-triggered */
	unsigned rounds;
	bool (*produce)(struct race *race, unsigned round); /* called in the producer's thread */
	bool (*taken)(struct race *race, unsigned round, const DAT_EVENT *event);
	DAT_RETURN (*arm)(struct race *race);
	void *arg;
	atomic_uint wanted; /* number of events that the producer may have made */
	atomic_bool ended, failed;
	unsigned sleeps, busy, spurious;
};

static inline void *race_produce(void *arg)
{
	struct race *race = arg;
	unsigned round, looks;

	for (round = 0;; round++) {
		for (looks = 0; atomic_load(&race->wanted) <= round; looks++) {
			if (atomic_load(&race->ended))
				return NULL;
			if (looks > 1000)
				sched_yield();
		}
		if (!race->produce(race, round)) {
			atomic_store(&race->failed, true);
			return NULL;
		}
	}
}

/*
 * Pauses for a varying short time, so that the next event occurs before, during and after the
 * arming.
 */
static inline void race_pause(const struct race *race, unsigned round)
{
	unsigned looks = (round * 2654435761u >> 16) % RACE_PAUSE;

	while (looks--)
		atomic_load(&race->failed);
}

static inline DAT_RETURN race_arm_evd(struct race *race)
{
	return DAT_EVD_ARM(race->evd, 0, 1);
}

/*
 * Arms and, unless arming reports an event, blocks. Returns false if a call failed or a wake-up was
 * lost.
 */
static inline bool race_sleep(struct race *race)
{
	struct epoll_event event;
	DAT_RETURN status;

	race_pause(race, atomic_load(&race->wanted));
	status = race->arm(race);

	if (status == DAT_EV_BUSY) {
		race->busy++;
		return true;
	}
	race->sleeps++;
	return status == DAT_SUCCESS && epoll_wait(race->loop, &event, 1, RACE_PATIENCE) == 1;
}

/* Returns false if the event is not that of this round. */
static inline bool race_took(struct race *race, unsigned round, const DAT_EVENT *event)
{
	if (!race->taken(race, round, event))
		return false;
	if (round + 1 < race->rounds)
		atomic_store(&race->wanted, round + 2);
	return true;
}

static inline unsigned race_consume(struct race *race, uint64_t deadline)
{
	bool woken = false;
	unsigned round = 0;
	DAT_EVENT event;
	DAT_COUNT n;

	atomic_store(&race->wanted, 1);
	while (round < race->rounds && !atomic_load(&race->failed)) {
		DAT_RETURN status = DAT_EVD_DEQUEUE_N(race->evd, 1, &event, &n);

		if (status == DAT_SUCCESS) {
			if (!race_took(race, round, &event))
				break;
			woken = false;
			if (++round % 4096 == 0 && clock_now() > deadline)
				race->rounds = round + 1; /* counts the current round */
		} else {
			race->spurious += woken;
			woken = round > 0;
			if (status != DAT_QUEUE_EMPTY || !race_sleep(race))
				break;
		}
	}
	return round;
}

/*
 * Runs `rounds` rounds, fewer if they do not fit into RACE_SECONDS, or LONG_SECONDS of the
 * environment. EV_ROUNDS sets the number of rounds and removes the time limit.
 */
static inline void race_run(struct race *race, const char *what, unsigned rounds)
{
	struct epoll_event event = { .events = EPOLLIN | EPOLLET };
	const char *text = getenv("EV_ROUNDS");
	uint64_t deadline = clock_now() + storm_number("LONG_SECONDS", RACE_SECONDS) * NSEC_PER_SEC;
	pthread_t thread;
	unsigned round;

	race->loop = epoll_create1(EPOLL_CLOEXEC);
	CU_ASSERT_EQUAL_FATAL(epoll_ctl(race->loop, EPOLL_CTL_ADD, race->fd, &event), 0);
	race->rounds = text ? (unsigned)strtoul(text, NULL, 10) : rounds;
	CU_ASSERT_EQUAL_FATAL(pthread_create(&thread, NULL, race_produce, race), 0);
	round = race_consume(race, text ? CLOCK_NEVER : deadline);
	CU_ASSERT_EQUAL(round, race->rounds);
	atomic_store(&race->ended, true);
	CU_ASSERT_EQUAL(pthread_join(thread, NULL), 0);
	CU_ASSERT_FALSE(race->failed);
	close(race->loop);
	printf("%s: %u rounds, %u sleeps, %u found busy, %u spurious wake-ups\n", what, round,
	       race->sleeps, race->busy, race->spurious);
}

#endif
