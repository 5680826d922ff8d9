/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* A thread that sleeps on a CQ itself: what wakes it, and that the event is the channel's or the thread's, never lost. */
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include "softverbs/object/cq.h"
#include "test/unit/node.h"

#define ROUNDS 400u

static const struct node_options options = { .channel = true };

static bool channel_is_readable(const struct node *node)
{
	struct pollfd poll_fd = { .fd = node->channel->fd, .events = POLLIN };

	return poll(&poll_fd, 1, 0) > 0;
}

static void event_take(struct node *node)
{
	struct ibv_cq *cq;
	void *context;

	CU_ASSERT_EQUAL(ibv_get_cq_event(node->channel, &cq, &context), 0);
	ibv_ack_cq_events(cq, 1);
}

static _Atomic(uint32_t) *arm_word(const struct node *node)
{
	return &cq_of(node->cq)->by_peers->arm;
}

/* A node whose QP is connected with itself, and whose CQ is armed. */
static bool armed_open(struct node *node)
{
	return node_open(node, &options) &&
	       node_qp_connect(node->qp[0], node->qp[0]->qp_num, &node->options) &&
	       !ibv_req_notify_cq(node->cq, 0);
}

static void message_to_itself(struct node *node)
{
	CU_ASSERT_EQUAL_FATAL(node_recv(node, 0, 1, 0, 8), 0);
	CU_ASSERT_EQUAL_FATAL(node_send(node, 0, 2, 64, 8, 0), 0);
}

/* ---- the thread that sleeps ---- */

struct sleeper {
	struct node *node;
	pthread_t thread;
	atomic_int id;
	int error;
	bool fired;
};

static void *sleeper_run(void *arg)
{
	struct sleeper *self = arg;

	atomic_store(&self->id, gettid());
	self->error = ibv_block(self->node->cq, NULL);
	self->fired = ibv_block_end(self->node->cq);
	return arg;
}

static bool is_asleep(void *arg)
{
	struct sleeper *self = arg;

	return atomic_load(&self->id) && unit_is_asleep(atomic_load(&self->id));
}

static void sleeper_begin(struct sleeper *self, struct node *node)
{
	*self = (struct sleeper){ .node = node, .error = -1 };
	CU_ASSERT_TRUE_FATAL(ibv_block_begin(node->cq));
	CU_ASSERT_EQUAL_FATAL(pthread_create(&self->thread, NULL, sleeper_run, self), 0);
	CU_ASSERT_TRUE(unit_wait_for(is_asleep, self, UNIT_PATIENCE));
}

static void sleeper_end(struct sleeper *self, bool fired)
{
	CU_ASSERT_TRUE_FATAL(unit_join(self->thread));
	CU_ASSERT_EQUAL(self->error, 0);
	CU_ASSERT_EQUAL(self->fired, fired);
}

/* ---- whose event it is ---- */

static void thread_gets_the_event(void)
{
	struct sleeper sleeper;
	struct node node;
	struct ibv_wc wc;

	CU_ASSERT_TRUE_FATAL(armed_open(&node));
	sleeper_begin(&sleeper, &node);
	CU_ASSERT_FALSE(ibv_block_begin(node.cq)); /* one thread at a time */
	message_to_itself(&node);
	sleeper_end(&sleeper, true);
	CU_ASSERT_FALSE(channel_is_readable(&node));
	CU_ASSERT(node_poll(&node, &wc) && !wc.status);
	CU_ASSERT_FALSE(ibv_block_begin(node.cq)); /* it is not armed */
	CU_ASSERT_EQUAL(ibv_req_notify_cq(node.cq, 0), 0);
	CU_ASSERT_TRUE(ibv_block_begin(node.cq));
	CU_ASSERT_FALSE(ibv_block_end(node.cq)); /* the event counts once */
	CU_ASSERT_EQUAL(node_close(&node), 0);	 /* no event is left to be acknowledged */
}

static void channel_gets_what_came_before(void)
{
	struct node node;

	CU_ASSERT_TRUE_FATAL(armed_open(&node));
	message_to_itself(&node);
	CU_ASSERT_FALSE(ibv_block_begin(node.cq));
	CU_ASSERT_TRUE(channel_is_readable(&node));
	event_take(&node);
	CU_ASSERT_EQUAL(node_close(&node), 0);
}

static void channel_gets_what_comes_after(void)
{
	const struct timespec soon = { .tv_nsec = 2000000 };
	uint64_t begin = clock_now();
	struct node node;

	CU_ASSERT_TRUE_FATAL(armed_open(&node));
	CU_ASSERT_TRUE(ibv_block_begin(node.cq));
	CU_ASSERT_EQUAL(ibv_block(node.cq, &soon), 0);
	CU_ASSERT(clock_now() - begin >= 2000000);
	CU_ASSERT_FALSE(ibv_block_end(node.cq));
	message_to_itself(&node);
	CU_ASSERT_TRUE(channel_is_readable(&node));
	event_take(&node);
	CU_ASSERT_EQUAL(node_close(&node), 0);
}

/* The event comes between begin and the sleep, which ends at once. */
static void event_before_the_sleep(void)
{
	struct node node;

	CU_ASSERT_TRUE_FATAL(armed_open(&node));
	CU_ASSERT_TRUE(ibv_block_begin(node.cq));
	message_to_itself(&node);
	CU_ASSERT_EQUAL(ibv_block(node.cq, NULL), 0);
	CU_ASSERT_TRUE(ibv_block_end(node.cq));
	CU_ASSERT_FALSE(channel_is_readable(&node));
	CU_ASSERT_EQUAL(node_close(&node), 0);
}

/* Another thread polls the completion and arms the CQ again, before the one that slept is there. */
static void armed_again_before_the_sleep(void)
{
	struct node node;
	struct ibv_wc wc;

	CU_ASSERT_TRUE_FATAL(armed_open(&node));
	CU_ASSERT_TRUE(ibv_block_begin(node.cq));
	message_to_itself(&node);
	CU_ASSERT_EQUAL(ibv_poll_cq(node.cq, 1, &wc), 1);
	CU_ASSERT_EQUAL(ibv_req_notify_cq(node.cq, 0), 0);
	CU_ASSERT_EQUAL(ibv_block(node.cq, NULL), 0);
	message_to_itself(&node); /* this event is the thread's, too */
	CU_ASSERT_TRUE(ibv_block_end(node.cq));
	CU_ASSERT_FALSE(channel_is_readable(&node));
	CU_ASSERT_EQUAL(ibv_req_notify_cq(node.cq, 0), 0);
	message_to_itself(&node);
	CU_ASSERT_TRUE(channel_is_readable(&node));
	event_take(&node);
	CU_ASSERT_EQUAL(node_close(&node), 0);
}

/* ---- what else ends the sleep ---- */

static void interrupts(void)
{
	struct sleeper sleeper;
	struct node node;

	CU_ASSERT_TRUE_FATAL(armed_open(&node));
	ibv_block_interrupt(node.cq); /* without effect */
	sleeper_begin(&sleeper, &node);
	ibv_block_interrupt(node.cq);
	sleeper_end(&sleeper, false);
	CU_ASSERT_TRUE(ibv_block_begin(node.cq));
	ibv_block_interrupt(node.cq); /* before the sleep */
	CU_ASSERT_EQUAL(ibv_block(node.cq, NULL), 0);
	CU_ASSERT_FALSE(ibv_block_end(node.cq));
	sleeper_begin(&sleeper, &node); /* an interrupt counts once */
	message_to_itself(&node);
	sleeper_end(&sleeper, true);
	CU_ASSERT_EQUAL(node_close(&node), 0);
}

static void handler(int signal)
{
	(void)signal;
}

static void signal_interrupts(void)
{
	struct sigaction action = { .sa_handler = handler, .sa_flags = SA_RESTART }, before;
	struct sleeper sleeper;
	struct node node;

	CU_ASSERT_EQUAL(sigaction(SIGUSR1, &action, &before), 0);
	CU_ASSERT_TRUE_FATAL(armed_open(&node));
	sleeper_begin(&sleeper, &node);
	CU_ASSERT_EQUAL(pthread_kill(sleeper.thread, SIGUSR1), 0);
	CU_ASSERT_TRUE_FATAL(unit_join(sleeper.thread));
	CU_ASSERT_EQUAL(sleeper.error, EINTR);
	CU_ASSERT_FALSE(sleeper.fired);
	CU_ASSERT_EQUAL(node_close(&node), 0);
	sigaction(SIGUSR1, &before, NULL);
}

static void *cancelled_run(void *arg)
{
	struct sleeper *self = arg;

	pthread_cleanup_push(unit_forget_stack, NULL);
	atomic_store(&self->id, gettid());
	self->error = ibv_block(self->node->cq, NULL);
	pthread_cleanup_pop(0);
	return NULL;
}

static void cancellation_ends_it(void)
{
	struct sleeper sleeper = { .node = NULL };
	struct node node;
	void *result;

	CU_ASSERT_TRUE_FATAL(armed_open(&node));
	sleeper.node = &node;
	CU_ASSERT_TRUE(ibv_block_begin(node.cq));
	CU_ASSERT_EQUAL(pthread_create(&sleeper.thread, NULL, cancelled_run, &sleeper), 0);
	CU_ASSERT_TRUE(unit_wait_for(is_asleep, &sleeper, UNIT_PATIENCE));
	CU_ASSERT_EQUAL(pthread_cancel(sleeper.thread), 0);
	CU_ASSERT_EQUAL(pthread_join(sleeper.thread, &result), 0);
	CU_ASSERT_PTR_EQUAL(result, PTHREAD_CANCELED);
	CU_ASSERT_FALSE(ibv_block_end(node.cq));
	CU_ASSERT_EQUAL(node_close(&node), 0);
}

/* ---- another process ---- */

static int sender(int fd, void *arg)
{
	struct node node;
	struct ibv_wc wc;
	uint64_t round = 0;

	(void)arg;
	if (!node_open(&node, &options) || !node_connect(&node, 0, 1, fd))
		return 1;
	while (process_hear(fd, &round) && round) {
		/* up to some microseconds, and in each eighth round long enough for the other to sleep */
		for (volatile uint64_t i = round % 8 ? round * 40503 % 4096 : 300000; i; i--)
			;
		if (node_send(&node, 0, round, 0, 8, IBV_SEND_SIGNALED))
			return 2;
		if (!node_poll(&node, &wc) || wc.status)
			return 3;
	}
	return node_close(&node);
}

/* Arms, polls and sleeps, until the message is there. Returns the number of sleeps that its event ended. */
static unsigned receive(struct node *node)
{
	struct ibv_wc wc;
	unsigned fired = 0;

	for (;;) {
		CU_ASSERT_EQUAL_FATAL(ibv_req_notify_cq(node->cq, 0), 0);
		if (ibv_poll_cq(node->cq, 1, &wc) == 1)
			break;
		if (ibv_block_begin(node->cq)) {
			CU_ASSERT_EQUAL_FATAL(ibv_block(node->cq, NULL), 0);
			fired += ibv_block_end(node->cq);
		} else {
			event_take(node);
		}
	}
	CU_ASSERT(!wc.status && wc.opcode == IBV_WC_RECV);
	return fired;
}

static void no_wake_up_is_lost(void)
{
	struct process process;
	unsigned fired = 0;
	struct node node;

	CU_ASSERT_FATAL(process_start(&process, sender, NULL));
	CU_ASSERT_FATAL(node_open(&node, &options));
	CU_ASSERT_FATAL(node_connect(&node, 0, 1, process.fd));
	for (uint32_t round = 1; round <= ROUNDS; round++) {
		CU_ASSERT_EQUAL_FATAL(node_recv(&node, 0, round, 0, 8), 0);
		process_say(process.fd, round);
		fired += receive(&node);
	}
	CU_ASSERT(fired > 0);
	process_say(process.fd, 0);
	CU_ASSERT_EQUAL(process_end(&process), 0);
	CU_ASSERT_EQUAL(node_close(&node), 0);
}

/* The sender has disarmed the CQ, and is killed before it wakes the thread. */
static void sender_is_killed(void)
{
	struct process process;
	struct sleeper sleeper;
	struct node node;

	CU_ASSERT_FATAL(process_start(&process, sender, NULL));
	CU_ASSERT_FATAL(node_open(&node, &options));
	CU_ASSERT_FATAL(node_connect(&node, 0, 1, process.fd));
	CU_ASSERT_EQUAL_FATAL(node_recv(&node, 0, 1, 0, 8), 0);
	process_say(process.fd, 1);
	receive(&node); /* the two have met */
	CU_ASSERT_EQUAL(ibv_req_notify_cq(node.cq, 0), 0);
	sleeper_begin(&sleeper, &node);
	atomic_fetch_and(arm_word(&node), ~(uint32_t)ARM_TYPE);
	process_kill(&process);
	sleeper_end(&sleeper, true);
	CU_ASSERT_EQUAL(node_close(&node), 0);
}

static const struct unit_test tests[] = {
	{ "the event of an armed CQ is the thread's, and not the channel's",
	  thread_gets_the_event },
	{ "an event before is the channel's", channel_gets_what_came_before },
	{ "an event after is the channel's", channel_gets_what_comes_after },
	{ "an event before the sleep ends it at once", event_before_the_sleep },
	{ "a CQ that another thread arms again", armed_again_before_the_sleep },
	{ "an interrupt ends one sleep", interrupts },
	{ "a signal handler ends it, also with SA_RESTART", signal_interrupts },
	{ "it is a cancellation point", cancellation_ends_it },
	{ "no wake-up of another process is lost", no_wake_up_is_lost },
	{ "a sender that dies between disarming and waking", sender_is_killed },
};

UNIT_MAIN("softverbs_block", tests)
