/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/*
 * One EP under several threads: they post sends, writes and receives of every size, one disconnects at random, and peers are
 * killed while data flow. Each accepted post completes once, before the EP is reset and connected to the next peer.
 */
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include "test/unit/ep_util.h"
#include "test/unit/process.h"
#include "test/unit/storm.h"

#define PEERS	 4u
#define POSTERS	 3u
#define LONGEST	 (2u << 20) /* twice a chunk, after which an executor lets others go first */
#define DEPTH	 32
#define QUEUE	 (4 * DEPTH)
#define ROUND_MS 30u /* at most, until a connected EP is disconnected */

/* ---- the peer: accepts, receives, answers ---- */

struct big {
	void *memory;
	DAT_LMR_HANDLE lmr;
	DAT_LMR_CONTEXT lkey;
	DAT_RMR_CONTEXT rkey;
};

static void big_open(struct env *env, struct big *big)
{
	DAT_REGION_DESCRIPTION region;

	big->memory = calloc(1, LONGEST);
	CU_ASSERT_PTR_NOT_NULL_FATAL(big->memory);
	region.for_va = big->memory;
	MUST(dat_lmr_create(env->ia, DAT_MEM_TYPE_VIRTUAL, region, LONGEST, env->pz,
			    DAT_MEM_PRIV_ALL_FLAG, DAT_VA_TYPE_VA, &big->lmr, &big->lkey,
			    &big->rkey, NULL, NULL));
}

static void big_close(struct big *big)
{
	MUST(dat_lmr_free(big->lmr));
	free(big->memory);
}

static DAT_LMR_TRIPLET big_part(const struct big *big, DAT_SEG_LENGTH length)
{
	return (DAT_LMR_TRIPLET){ .virtual_address = (uintptr_t)big->memory,
				  .segment_length = length,
				  .lmr_context = big->lkey };
}

static DAT_EP_ATTR attr_of(void)
{
	return (DAT_EP_ATTR){ .service_type = DAT_SERVICE_TYPE_RC,
			      .max_message_size = LONGEST,
			      .max_rdma_size = LONGEST,
			      .qos = DAT_QOS_BEST_EFFORT,
			      .max_recv_dtos = DEPTH,
			      .max_request_dtos = DEPTH,
			      .max_recv_iov = 1,
			      .max_request_iov = 1,
			      .max_rdma_write_iov = 1,
			      .max_rdma_read_iov = 1 };
}

static bool is_ended(atomic_bool *ends)
{
	return ends && atomic_load(ends);
}

/* Receives, and answers each message, until the connection ends. */
static void peer_serve(struct end *end, const struct big *big, atomic_bool *ends)
{
	DAT_LMR_TRIPLET where = big_part(big, LONGEST);
	DAT_DTO_COOKIE none = { .as_64 = 0 };
	DAT_EVENT event;
	DAT_COUNT more;

	while (!is_ended(ends) && (dat_evd_dequeue(end->conn, &event) == DAT_QUEUE_EMPTY ||
				   event.event_number == DAT_CONNECTION_EVENT_ESTABLISHED)) {
		if (dat_evd_wait(end->recv, 1000, 1, &event, &more) != DAT_SUCCESS)
			continue;
		dat_ep_post_recv(end->ep, 1, &where, none, DAT_COMPLETION_DEFAULT_FLAG);
		while (dat_evd_dequeue(end->request, &event) == DAT_SUCCESS)
			;
		try_send(end, 0, DAT_COMPLETION_DEFAULT_FLAG);
	}
}

/* In a process of its own, which lives until it is killed, or in a thread until `ends`, an atomic_bool, is set. */
static int peer_run(int fd, void *ends)
{
	DAT_EP_ATTR attr = attr_of();
	DAT_LMR_TRIPLET where;
	struct env env;
	struct end end;
	struct big big;

	env_open(&env);
	env_listen(&env);
	big_open(&env, &big);
	where = big_part(&big, LONGEST);
	process_say(fd, env.qual);
	process_say(fd, (uintptr_t)big.memory);
	process_say(fd, big.rkey);
	while (!is_ended(ends)) {
		DAT_EVENT request;
		DAT_COUNT more;

		if (dat_evd_wait(env.cr, 100000, 1, &request, &more) != DAT_SUCCESS)
			continue;
		end_open(&env, &end, &attr);
		for (unsigned i = 0; i < DEPTH; i++)
			MUST(dat_ep_post_recv(end.ep, 1, &where, (DAT_DTO_COOKIE){ .as_64 = i },
					      DAT_COMPLETION_DEFAULT_FLAG));
		if (dat_cr_accept(request.event_data.cr_arrival_event_data.cr_handle, end.ep, 0,
				  NULL) == DAT_SUCCESS)
			peer_serve(&end, &big, ends);
		if (is_ended(ends))
			break; /* it leaves its EP to the adapter */
		end_close(&end);
	}
	OK(dat_ia_close(env.ia, DAT_CLOSE_ABRUPT_FLAG));
	free(big.memory);
	free(env.memory);
	return 0;
}

/* ---- the peers, as the test sees them ---- */

static struct peer {
	struct process process;
	pthread_t thread;
	int fd; /* the thread's end of the socket */
	atomic_bool ends;
	uint64_t qual, address, rkey;
	bool dead;
} peers[PEERS], *peer;

static void *peer_thread(void *arg)
{
	struct peer *p = arg;

	peer_run(p->fd, &p->ends);
	return NULL;
}

/*
 * Under the thread sanitizer a peer is a thread: a receive passes from the thread that posts it through the peer to the thread
 * that polls, and the sanitizer does not see that order where the peer is a process.
 */
static bool peer_start(struct peer *p)
{
	int fds[2];

	if (!PROCESS_TSAN)
		return process_start(&p->process, peer_run, NULL);
	if (socketpair(AF_UNIX, SOCK_SEQPACKET, 0, fds))
		return false;
	p->process.fd = fds[0];
	p->fd = fds[1];
	return !pthread_create(&p->thread, NULL, peer_thread, p);
}

static void peer_end(struct peer *p)
{
	p->dead = true;
	if (!PROCESS_TSAN) {
		process_kill(&p->process);
		return;
	}
	atomic_store(&p->ends, true);
	CU_ASSERT_TRUE(unit_join(p->thread));
	close(p->process.fd);
	close(p->fd);
}

/* ---- this process ---- */

static struct env env;
static struct end end;
static struct big from, into; /* of sends and writes; of receives */
static DAT_RMR_TRIPLET target;
/* Readers post; the writer has stopped all posts. */
static pthread_rwlock_t gate = PTHREAD_RWLOCK_INITIALIZER;
static atomic_bool over;
static atomic_ulong posted, completed, strange;
static unsigned long connections, kills;

static DAT_RETURN post_one(unsigned *seed)
{
	unsigned bits = storm_next(seed), most = 1u << bits % 22;
	DAT_SEG_LENGTH length = (bits >> 6) % (most + 1);
	DAT_LMR_TRIPLET part = big_part(&from, length), where = big_part(&into, length);
	DAT_DTO_COOKIE cookie = { .as_64 = bits };
	DAT_RMR_TRIPLET to = target;

	switch (storm_next(seed) % 3) {
	case 0: return dat_ep_post_recv(end.ep, 1, &where, cookie, DAT_COMPLETION_DEFAULT_FLAG);
	case 1:
		to.segment_length = length;
		return dat_ep_post_rdma_write(end.ep, 1, &part, cookie, &to,
					      DAT_COMPLETION_DEFAULT_FLAG);
	default: return dat_ep_post_send(end.ep, 1, &part, cookie, DAT_COMPLETION_DEFAULT_FLAG);
	}
}

static void *poster(void *arg)
{
	unsigned seed = *(unsigned *)arg;

	while (!atomic_load(&over)) {
		DAT_RETURN status;

		pthread_rwlock_rdlock(&gate);
		status = post_one(&seed);
		if (status == DAT_SUCCESS)
			atomic_fetch_add(&posted, 1);
		else if (DAT_GET_TYPE(status) != DAT_INSUFFICIENT_RESOURCES &&
			 DAT_GET_TYPE(status) != DAT_INVALID_STATE)
			atomic_store(&strange, status);
		pthread_rwlock_unlock(&gate);
		if (status != DAT_SUCCESS)
			sched_yield();
	}
	return NULL;
}

static void drain(void)
{
	DAT_EVENT event;

	while (dat_evd_dequeue(end.recv, &event) == DAT_SUCCESS ||
	       dat_evd_dequeue(end.request, &event) == DAT_SUCCESS)
		atomic_fetch_add(&completed, 1);
}

static bool all_is_completed(void *unused)
{
	(void)unused;
	drain();
	return atomic_load(&completed) == atomic_load(&posted);
}

/* Drains until the connect EVD has an event, which it returns; 0 at the deadline. */
static DAT_EVENT_NUMBER next_event(unsigned milliseconds)
{
	uint64_t until = clock_now() + milliseconds * NSEC_PER_MSEC;
	DAT_EVENT event;

	do {
		drain();
		if (dat_evd_dequeue(end.conn, &event) == DAT_SUCCESS)
			return event.event_number;
		sched_yield();
	} while (clock_now() < until);
	return 0;
}

/* Connects to a living peer, while the threads post. */
static bool connect_next(unsigned *seed)
{
	do
		peer = &peers[storm_next(seed) % PEERS];
	while (peer->dead);
	/* Before a connection no thread reads it: requests are refused in that state. */
	target = (DAT_RMR_TRIPLET){ .virtual_address = peer->address,
				    .rmr_context = (DAT_RMR_CONTEXT)peer->rkey };
	pthread_rwlock_unlock(&gate);
	OK(dat_ep_connect(end.ep, env.address, peer->qual, PATIENCE, 0, NULL, DAT_QOS_BEST_EFFORT,
			  DAT_CONNECT_DEFAULT_FLAG));
	return next_event(UNIT_PATIENCE) == DAT_CONNECTION_EVENT_ESTABLISHED;
}

/* The last peer lives. */
static bool kill_peer(unsigned *seed)
{
	if (kills == PEERS - 1 || storm_next(seed) % 16)
		return false;
	peer_end(peer);
	kills++;
	return true;
}

/* Ends the connection in one of three ways, while the threads post; then with all posts stopped, resets. */
static void end_one(unsigned *seed)
{
	DAT_EVENT_NUMBER number = next_event(storm_next(seed) % ROUND_MS);

	if (!number) {
		if (!kill_peer(seed))
			dat_ep_disconnect(end.ep, storm_next(seed) % 2 ? DAT_CLOSE_ABRUPT_FLAG
								       : DAT_CLOSE_GRACEFUL_FLAG);
		number = next_event(UNIT_PATIENCE);
	}
	CU_ASSERT_TRUE(number == DAT_CONNECTION_EVENT_DISCONNECTED ||
		       number == DAT_CONNECTION_EVENT_BROKEN);
	pthread_rwlock_wrlock(&gate);
	CU_ASSERT_TRUE(unit_wait_for(all_is_completed, NULL, UNIT_PATIENCE));
	OK(dat_ep_reset(end.ep));
	CU_ASSERT_TRUE(all_is_completed(NULL));
}

static void ends_open(void)
{
	DAT_EP_ATTR attr = attr_of();

	end.env = &env;
	end.conn = evd_open(&env, 8, DAT_EVD_CONNECTION_FLAG);
	end.recv = evd_open(&env, QUEUE, DAT_EVD_DTO_FLAG);
	end.request = evd_open(&env, QUEUE, DAT_EVD_DTO_FLAG);
	MUST(dat_ep_create(env.ia, env.pz, end.recv, end.request, end.conn, &attr, &end.ep));
}

static void test_posts(void)
{
	unsigned seed = storm_seed("posts by several threads"), seeds[POSTERS];
	uint64_t until = clock_now() + 2 * storm_seconds() * NSEC_PER_SEC;
	pthread_t threads[POSTERS];

	/* before this process has threads */
	for (unsigned i = 0; i < PEERS; i++)
		CU_ASSERT_TRUE_FATAL(peer_start(&peers[i]));
	for (unsigned i = 0; i < PEERS; i++)
		CU_ASSERT_TRUE_FATAL(process_hear(peers[i].process.fd, &peers[i].qual) &&
				     process_hear(peers[i].process.fd, &peers[i].address) &&
				     process_hear(peers[i].process.fd, &peers[i].rkey));
	env_open(&env);
	big_open(&env, &from);
	big_open(&env, &into);
	ends_open();
	pthread_rwlock_wrlock(&gate);
	for (unsigned i = 0; i < POSTERS; i++) {
		seeds[i] = storm_next(&seed);
		CU_ASSERT_EQUAL_FATAL(pthread_create(&threads[i], NULL, poster, &seeds[i]), 0);
	}
	for (; clock_now() < until && !CU_get_number_of_failures(); connections++) {
		CU_ASSERT_TRUE(connect_next(&seed));
		end_one(&seed);
	}
	atomic_store(&over, true);
	pthread_rwlock_unlock(&gate);
	for (unsigned i = 0; i < POSTERS; i++)
		CU_ASSERT_TRUE(unit_join(threads[i]));
	CU_ASSERT_EQUAL(atomic_load(&strange), 0);
	end_free_ep(&end); /* with receives that are posted */
	end_close(&end);
	big_close(&from);
	big_close(&into);
	env_close(&env);
	for (unsigned i = 0; i < PEERS; i++)
		if (!peers[i].dead)
			peer_end(&peers[i]);
	printf("%lu connections, %lu posts, %lu peers killed\n", connections, atomic_load(&posted),
	       kills);
}

static const struct unit_test tests[] = {
	{ "each post of several threads completes once, whatever ends the connection", test_posts },
};

UNIT_MAIN("hammer_post", tests)
