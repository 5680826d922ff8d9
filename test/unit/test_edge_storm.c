/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/*
 * Edge-triggered polling while several senders, threads or processes, send at their own pace: the
 * loop of dat_events(7) drains, arms and blocks, and never blocks with an event pending.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>
#include <dat2/dat_event_extensions.h>
#include "dapl/udapl/ep/ep.h"
#include "test/unit/announce.h"
#include "test/unit/ep_util.h"
#include "test/unit/process.h"
#include "test/unit/storm.h"
#include "util/clock.h"

#define SENDERS 3
#define DEPTH	16u
#define BATCH	32

/*
 * The poll for failed completions of idle connections would also find lost events two seconds
 * later, so it is counted.
 */
static atomic_uint watches;

void __wrap_ep_poll_begin_locked(struct dapl_ep *ep);
void __wrap_ep_poll_begin_locked(struct dapl_ep *ep)
{
	(void)ep;
	atomic_fetch_add(&watches, 1);
}

struct sender {
	struct end end;
	pthread_t thread;
	struct process process;
	unsigned seed;
	atomic_bool *ended;
};

/*
 * Sends a message, takes its completion and sometimes pauses; returns false at the end, or when the
 * peer has gone.
 */
static bool send_one(struct sender *sender, uint64_t cookie)
{
	DAT_EVENT event;
	DAT_COUNT more;

	if (try_send(&sender->end, cookie, DAT_COMPLETION_DEFAULT_FLAG) != DAT_SUCCESS ||
	    dat_evd_wait(sender->end.request, PATIENCE, 1, &event, &more) != DAT_SUCCESS ||
	    event.event_data.dto_completion_event_data.status != DAT_DTO_SUCCESS)
		return false;
	if (!(storm_next(&sender->seed) & 7))
		usleep(storm_next(&sender->seed) % 60);
	return true;
}

static void *run_thread(void *arg)
{
	struct sender *sender = arg;
	uint64_t sent = 0;

	while (!atomic_load(sender->ended) && send_one(sender, sent))
		sent++;
	return NULL;
}

/* Receives the qualifier to connect to, and sends until the process is killed. */
static int run_process(int fd, void *arg)
{
	struct sender *sender = arg;
	uint64_t qual, sent = 0;
	struct env env;

	if (!process_hear(fd, &qual))
		return 1;
	env_open(&env);
	env.qual = qual;
	end_open(&env, &sender->end, NULL);
	start_connect(&sender->end);
	expect(sender->end.conn, DAT_CONNECTION_EVENT_ESTABLISHED, sender->end.ep);
	while (send_one(sender, sent))
		sent++;
	return 2;
}

struct storm {
	struct env env;
	struct end ends[SENDERS]; /* the receiving ends */
	struct sender senders[SENDERS];
	DAT_EVD_HANDLE evd; /* of all receives */
	DAT_CNO_HANDLE cno; /* or DAT_HANDLE_NULL */
	atomic_bool ended;
	long received, sleeps;
};

static void receiver_open(struct storm *storm, struct end *end)
{
	unsigned i;

	end->env = &storm->env;
	end->recv = storm->evd;
	end->conn = evd_open(&storm->env, 8, DAT_EVD_CONNECTION_FLAG);
	end->request = evd_open(&storm->env, 8, DAT_EVD_DTO_FLAG);
	MUST(dat_ep_create(storm->env.ia, storm->env.pz, end->recv, end->request, end->conn, NULL,
			   &end->ep));
	for (i = 0; i < DEPTH; i++)
		MUST(try_recv(end, i));
}

static void storm_connect(struct storm *storm, struct sender *sender, struct end *end,
			  bool processes)
{
	receiver_open(storm, end);
	if (processes) {
		CU_ASSERT_TRUE(process_say(sender->process.fd, storm->env.qual));
		MUST(dat_cr_accept(request_next(&storm->env), end->ep, 0, NULL));
		expect(end->conn, DAT_CONNECTION_EVENT_ESTABLISHED, end->ep);
		return;
	}
	end_open(&storm->env, &sender->end, NULL);
	connect_pair(&sender->end, end);
	sender->ended = &storm->ended;
	CU_ASSERT_EQUAL_FATAL(pthread_create(&sender->thread, NULL, run_thread, sender), 0);
}

/* Posts a receive on the same EP for each that completed. */
static void storm_drain(struct storm *storm)
{
	DAT_EVENT events[BATCH];
	DAT_COUNT n, i;
	unsigned k;

	while (DAT_EVD_DEQUEUE_N(storm->evd, BATCH, events, &n) == DAT_SUCCESS) {
		for (i = 0; i < n; i++) {
			for (k = 0; k < SENDERS; k++)
				if (events[i].event_data.dto_completion_event_data.ep_handle ==
				    storm->ends[k].ep)
					try_recv(&storm->ends[k], 0);
		}
		storm->received += n;
	}
}

/* Runs until the time is over. A wake-up that takes longer than UNIT_PATIENCE is lost. */
static void storm_receive(struct storm *storm, int loop, unsigned seconds)
{
	uint64_t end = clock_now() + seconds * NSEC_PER_SEC;
	struct epoll_event event;
	DAT_RETURN status;

	while (clock_now() < end) {
		storm_drain(storm);
		status = storm->cno ? DAT_CNO_ARM(storm->cno, 0) : DAT_EVD_ARM(storm->evd, 0, 1);
		if (status == DAT_EV_BUSY)
			continue;
		MUST(status);
		storm->sleeps++;
		CU_ASSERT_EQUAL_FATAL(epoll_wait(loop, &event, 1, (int)UNIT_PATIENCE), 1);
	}
}

static void storm_close(struct storm *storm, bool processes)
{
	unsigned i;

	atomic_store(&storm->ended, true);
	for (i = 0; i < SENDERS; i++) {
		struct sender *sender = &storm->senders[i];

		if (processes)
			process_kill(&sender->process);
		else
			while (pthread_tryjoin_np(sender->thread, NULL))
				storm_drain(storm);
	}
	MUST(dat_ia_close(storm->env.ia, DAT_CLOSE_ABRUPT_FLAG));
	free(storm->env.memory);
}

static void run(const char *what, bool processes, bool on_cno)
{
	struct epoll_event event = { .events = EPOLLIN | EPOLLET };
	unsigned seed = storm_seed(what), seconds = storm_seconds(), i;
	int loop = epoll_create1(EPOLL_CLOEXEC);
	static struct storm storm;
	DAT_FD fd;

	announce();
	memset(&storm, 0, sizeof(storm));
	for (i = 0; i < SENDERS; i++) {
		storm.senders[i].seed = seed + i;
		if (processes)
			CU_ASSERT_TRUE_FATAL(process_start(&storm.senders[i].process, run_process,
							   &storm.senders[i]));
	}
	env_open(&storm.env);
	env_listen(&storm.env);
	if (on_cno)
		MUST(dat_cno_create(storm.env.ia, DAT_OS_WAIT_PROXY_AGENT_NULL, &storm.cno));
	MUST(dat_evd_create(storm.env.ia, 256, storm.cno, DAT_EVD_DTO_FLAG, &storm.evd));
	if (on_cno)
		MUST(DAT_CNO_GET_FD(storm.cno, &fd));
	else
		MUST(DAT_EVD_GET_FD(storm.evd, &fd));
	CU_ASSERT_EQUAL_FATAL(epoll_ctl(loop, EPOLL_CTL_ADD, fd, &event), 0);
	for (i = 0; i < SENDERS; i++)
		storm_connect(&storm, &storm.senders[i], &storm.ends[i], processes);
	storm_receive(&storm, loop, seconds);
	close(loop);
	storm_close(&storm, processes);
	CU_ASSERT_TRUE(storm.received > 0);
	CU_ASSERT_TRUE(watches > 0);
	printf("%s: %ld received, %ld sleeps in %u s\n", what, storm.received, storm.sleeps,
	       seconds);
}

static void test_evd_processes(void)
{
	if (!PROCESS_TSAN)
		run("edges of an EVD, processes", true, false);
}

static void test_cno_processes(void)
{
	if (!PROCESS_TSAN)
		run("edges of a CNO, processes", true, true);
}

static void test_evd_threads(void)
{
	run("edges of an EVD, threads", false, false);
}

static void test_cno_threads(void)
{
	run("edges of a CNO, threads", false, true);
}

static const struct unit_test tests[] = {
	{ "no edge of an EVD's descriptor is lost, senders are processes", test_evd_processes },
	{ "no edge of a CNO's descriptor is lost, senders are processes", test_cno_processes },
	{ "no edge of an EVD's descriptor is lost, senders are threads", test_evd_threads },
	{ "no edge of a CNO's descriptor is lost, senders are threads", test_cno_threads },
};

UNIT_MAIN("edge_storm", tests)
