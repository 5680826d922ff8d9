/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/*
 * A port moves from one process to another while a third connects to it again and again: each
 * request reaches the current listener.
 */
#include <semaphore.h>
#include "softverbs/link/engine.h"
#include "test/unit/cm.h"
#include "test/unit/process.h"

#define ROUNDS 20
#define DEATHS 8

enum order {
	ORDER_LISTEN, /* argument: a port, 0 for any; answers with the port, or 0 if it is taken */
	ORDER_CLOSE,
	ORDER_REJECT, /* rejects a request; the reason is the owner's name */
	ORDER_END,
};

static uint64_t order(enum order what, uint16_t port)
{
	return (uint64_t)what << 32 | port;
}

/*
 * Waits without a deadline, because the last owner is idle until all others are done. It dies with
 * its parent.
 */
static bool next_order(int fd, uint64_t *what)
{
	return recv(fd, what, sizeof(*what), 0) == sizeof(*what);
}

/* Keeps one identifier open, so that closing the listener does not end the process's runtime. */
static int own(int fd, void *arg)
{
	struct rdma_event_channel *channel = rdma_create_event_channel();
	struct rdma_cm_id *listener = NULL, *stays = cm_new(channel);
	uint8_t name = *(const uint8_t *)arg;
	struct seen seen;
	uint64_t what;

	if (!stays)
		return 1;
	while (next_order(fd, &what)) {
		switch ((enum order)(what >> 32)) {
		case ORDER_LISTEN:
			listener = cm_bound(channel, (uint16_t)what);
			if (listener && rdma_listen(listener, 0))
				return 2;
			what = listener ? ntohs(rdma_get_src_port(listener)) : 0;
			break;
		case ORDER_CLOSE:
			if (rdma_destroy_id(listener))
				return 3;
			break;
		case ORDER_REJECT:
			if (!cm_expect(channel, RDMA_CM_EVENT_CONNECT_REQUEST, &seen))
				return 4;
			if (rdma_reject(seen.event.id, &name, 1) || rdma_destroy_id(seen.event.id))
				return 5;
			break;
		case ORDER_END:
			rdma_destroy_id(stays);
			rdma_destroy_event_channel(channel);
			return 0;
		}
		process_say(fd, what);
	}
	return 6;
}

static const uint8_t names[] = { 1, 2 };

static bool obeys(struct process *owner, enum order what, uint16_t port, uint64_t *answer)
{
	uint64_t ignored;

	return process_say(owner->fd, order(what, port)) &&
	       process_hear(owner->fd, answer ? answer : &ignored);
}

struct takeover {
	struct process *owner;
	uint16_t port;
};

static bool listens(void *arg)
{
	struct takeover *takeover = arg;
	uint64_t port;

	return obeys(takeover->owner, ORDER_LISTEN, takeover->port, &port) && port;
}

static bool take_over(struct process *owner, uint16_t port)
{
	struct takeover takeover = { owner, port };

	return unit_wait_for(listens, &takeover, UNIT_PATIENCE);
}

/*
 * Connects and expects a rejection; returns the name of the owner that rejected it, from the
 * private data, or 0 if no listener had the port.
 */
static uint8_t rejected_by(struct rdma_event_channel *channel, uint16_t port, struct process *owner)
{
	struct rdma_conn_param param = cm_param(1);
	struct rdma_cm_id *id = cm_client(channel, port);
	struct seen seen;

	CU_ASSERT_PTR_NOT_NULL_FATAL(id);
	CU_ASSERT_EQUAL(rdma_connect(id, &param), 0);
	if (owner)
		CU_ASSERT(obeys(owner, ORDER_REJECT, 0, NULL));
	CU_ASSERT(cm_expect(channel, RDMA_CM_EVENT_REJECTED, &seen));
	CU_ASSERT_EQUAL(seen.event.status, owner ? 28 : 8);
	CU_ASSERT_EQUAL(rdma_destroy_id(id), 0);
	return seen.data[0];
}

static void both_live(void)
{
	struct rdma_event_channel *channel;
	struct process owners[2];
	uint64_t port;
	int i;

	CU_ASSERT_FATAL(process_start(&owners[0], own, (void *)(uintptr_t)&names[0]));
	CU_ASSERT_FATAL(process_start(&owners[1], own, (void *)(uintptr_t)&names[1]));
	channel = rdma_create_event_channel();
	CU_ASSERT_FATAL(obeys(&owners[0], ORDER_LISTEN, 0, &port) && port);
	for (i = 0; i < ROUNDS; i++) {
		struct process *owner = &owners[i % 2];

		CU_ASSERT_EQUAL(rejected_by(channel, (uint16_t)port, owner), names[i % 2]);
		CU_ASSERT_EQUAL(rejected_by(channel, (uint16_t)port, owner), names[i % 2]);
		CU_ASSERT(obeys(owner, ORDER_CLOSE, 0, NULL));
		if (i % 4 > 1)
			CU_ASSERT_EQUAL(rejected_by(channel, (uint16_t)port, NULL), 0);
		CU_ASSERT_FATAL(take_over(&owners[(i + 1) % 2], (uint16_t)port));
	}
	for (i = 0; i < 2; i++) {
		CU_ASSERT(process_say(owners[i].fd, order(ORDER_END, 0)));
		CU_ASSERT_EQUAL(process_end(&owners[i]), 0);
	}
	rdma_destroy_event_channel(channel);
}

/* The next owner may listen before any process has noticed the death of the last one. */
static void one_dies(void)
{
	struct process owners[DEATHS + 1]; /* forked while this process has only one thread */
	struct rdma_event_channel *channel;
	uint64_t port;
	int i;

	for (i = 0; i <= DEATHS; i++)
		CU_ASSERT_FATAL(process_start(&owners[i], own, (void *)(uintptr_t)&names[i % 2]));
	channel = rdma_create_event_channel();
	CU_ASSERT_FATAL(obeys(&owners[0], ORDER_LISTEN, 0, &port) && port);
	for (i = 0; i <= DEATHS; i++) {
		CU_ASSERT_EQUAL(rejected_by(channel, (uint16_t)port, &owners[i]), names[i % 2]);
		process_kill(&owners[i]);
		if (i < DEATHS)
			CU_ASSERT_FATAL(take_over(&owners[i + 1], (uint16_t)port));
	}
	CU_ASSERT_EQUAL(rejected_by(channel, (uint16_t)port, NULL), 0);
	rdma_destroy_event_channel(channel);
}

/*
 * The owner is killed while it is stopped and has not seen the request: the result is the same as
 * without a listener.
 */
static void one_dies_with_the_request(void)
{
	struct rdma_conn_param param = cm_param(1);
	struct rdma_event_channel *channel;
	struct process owner;
	struct rdma_cm_id *id;
	struct seen seen;
	uint64_t port;
	int status;

	CU_ASSERT_FATAL(process_start(&owner, own, (void *)(uintptr_t)&names[0]));
	channel = rdma_create_event_channel();
	CU_ASSERT_FATAL(obeys(&owner, ORDER_LISTEN, 0, &port) && port);
	CU_ASSERT_EQUAL(rejected_by(channel, (uint16_t)port, &owner), names[0]);
	CU_ASSERT_EQUAL(kill(owner.pid, SIGSTOP), 0);
	CU_ASSERT_EQUAL(waitpid(owner.pid, &status, WUNTRACED), owner.pid);
	id = cm_client(channel, (uint16_t)port);
	CU_ASSERT_PTR_NOT_NULL_FATAL(id);
	CU_ASSERT_EQUAL(rdma_connect(id, &param), 0);
	CU_ASSERT_FALSE(cm_ready(channel, 10));
	process_kill(&owner);
	CU_ASSERT(cm_expect(channel, RDMA_CM_EVENT_REJECTED, &seen));
	CU_ASSERT_EQUAL(seen.event.status, 8);
	CU_ASSERT_FALSE(cm_ready(channel, 0));
	CU_ASSERT_EQUAL(rdma_destroy_id(id), 0);
	rdma_destroy_event_channel(channel);
}

/* Stops this process's engine, so that the death is not known here when the request is sent. */
static sem_t stands, goes;

static void stand_still(struct sv_timer *timer)
{
	(void)timer;
	sem_post(&stands);
	while (sem_wait(&goes))
		;
}

static void death_is_not_known(void)
{
	struct rdma_conn_param param = cm_param(1);
	struct rdma_event_channel *channel;
	struct sv_timer timer = { .fire = NULL };
	struct process owners[2];
	struct rdma_cm_id *id;
	struct seen seen;
	uint64_t port;

	sem_init(&stands, 0, 0);
	sem_init(&goes, 0, 0);
	CU_ASSERT_FATAL(process_start(&owners[0], own, (void *)(uintptr_t)&names[0]));
	CU_ASSERT_FATAL(process_start(&owners[1], own, (void *)(uintptr_t)&names[1]));
	channel = rdma_create_event_channel();
	CU_ASSERT_FATAL(obeys(&owners[0], ORDER_LISTEN, 0, &port) && port);
	CU_ASSERT_EQUAL(rejected_by(channel, (uint16_t)port, &owners[0]), names[0]);
	id = cm_client(channel, (uint16_t)port);
	CU_ASSERT_PTR_NOT_NULL_FATAL(id);
	sv_engine_timer_arm(&timer, clock_now(), stand_still);
	while (sem_wait(&stands))
		;
	process_kill(&owners[0]);
	CU_ASSERT(take_over(&owners[1], (uint16_t)port));
	CU_ASSERT_EQUAL(rdma_connect(id, &param), 0);
	sem_post(&goes);
	CU_ASSERT(obeys(&owners[1], ORDER_REJECT, 0, NULL));
	CU_ASSERT(cm_expect(channel, RDMA_CM_EVENT_REJECTED, &seen));
	CU_ASSERT_EQUAL(seen.data[0], names[1]);
	CU_ASSERT_EQUAL(rdma_destroy_id(id), 0);
	sv_engine_timer_cancel(&timer);
	CU_ASSERT(process_say(owners[1].fd, order(ORDER_END, 0)));
	CU_ASSERT_EQUAL(process_end(&owners[1]), 0);
	rdma_destroy_event_channel(channel);
	sem_destroy(&stands);
	sem_destroy(&goes);
}

static const struct unit_test tests[] = {
	{ "a port moves between two live owners", both_live },
	{ "a port moves on when its owner is killed", one_dies },
	{ "a listener that dies with the request counts as none", one_dies_with_the_request },
	{ "a request reaches the next owner before the death of the last one is known",
	  death_is_not_known },
};

UNIT_MAIN("softverbs_cm_owner", tests)
