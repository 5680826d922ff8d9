/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/*
 * The software device's connection manager between two processes, one of which dies, stops, forks
 * or lacks resources.
 */
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include "softverbs/cm/cm.h"
#include "softverbs/link/cm_calls.h"
#include "softverbs/link/runtime.h"
#include "test/unit/cm.h"
#include "test/unit/process.h"
#include "util/log.h"

/*
 * Steps of the other process. It reports each step when it is done, and waits for a number before
 * the next.
 */
enum step {
	STEP_LISTEN,  /* sends its port */
	STEP_REQUEST, /* has fetched a request */
	STEP_ACCEPT,  /* has accepted */
	STEP_ESTABLISHED,
	STEP_DISCONNECTED,
	STEP_CONNECT, /* of a client: the request is sent */
	STEP_RESPONSE,
};

static struct ibv_qp_init_attr qp_wish(void)
{
	return (struct ibv_qp_init_attr){
		.qp_type = IBV_QPT_RC,
		.cap = { .max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1 }
	};
}

static int serve(int fd, void *arg)
{
	struct rdma_event_channel *channel = rdma_create_event_channel();
	struct rdma_cm_id *listener = channel ? cm_listener(channel, 0) : NULL, *id;
	struct ibv_qp_init_attr wish = qp_wish();
	struct rdma_conn_param param = cm_param(0x77);
	bool with_qp = arg;
	struct seen seen;

	if (!listener || !process_say(fd, ntohs(rdma_get_src_port(listener))))
		return 1;
	if (!cm_expect(channel, RDMA_CM_EVENT_CONNECT_REQUEST, &seen))
		return 2;
	id = seen.event.id;
	process_say(fd, STEP_REQUEST);
	if (!process_sync(fd))
		return 3;
	if ((with_qp && rdma_create_qp(id, NULL, &wish)) || rdma_accept(id, &param))
		return 4;
	process_say(fd, STEP_ACCEPT);
	if (!cm_expect(channel, RDMA_CM_EVENT_ESTABLISHED, NULL))
		return 5;
	process_say(fd, STEP_ESTABLISHED);
	if (!cm_expect(channel, RDMA_CM_EVENT_DISCONNECTED, NULL))
		return 6;
	process_say(fd, STEP_DISCONNECTED);
	if (rdma_disconnect(id) || !cm_expect(channel, RDMA_CM_EVENT_TIMEWAIT_EXIT, NULL))
		return 7;
	if (with_qp)
		rdma_destroy_qp(id);
	rdma_destroy_id(id);
	rdma_destroy_id(listener);
	rdma_destroy_event_channel(channel);
	return 0;
}

static bool reaches(struct process *process, enum step step)
{
	uint64_t value;

	return process_hear(process->fd, &value) && value == step;
}

struct client {
	struct process server;
	struct rdma_event_channel *channel;
	struct rdma_cm_id *id;
};

static bool client_start(struct client *client, bool with_qp)
{
	uint64_t port;

	memset(client, 0, sizeof(*client));
	if (!process_start(&client->server, serve, with_qp ? client : NULL) ||
	    !process_hear(client->server.fd, &port))
		return false;
	client->channel = rdma_create_event_channel();
	client->id = client->channel ? cm_client(client->channel, (uint16_t)port) : NULL;
	return client->id;
}

static bool client_connect(struct client *client)
{
	struct rdma_conn_param param = cm_param(0x88);

	return !rdma_connect(client->id, &param) && reaches(&client->server, STEP_REQUEST);
}

static bool client_establish(struct client *client)
{
	return process_say(client->server.fd, 0) && reaches(&client->server, STEP_ACCEPT) &&
	       cm_expect(client->channel, RDMA_CM_EVENT_CONNECT_RESPONSE, NULL) &&
	       !rdma_establish(client->id) && reaches(&client->server, STEP_ESTABLISHED);
}

static void client_free(struct client *client)
{
	CU_ASSERT_EQUAL(rdma_destroy_id(client->id), 0);
	rdma_destroy_event_channel(client->channel);
}

static void rejected(struct rdma_event_channel *channel, int status)
{
	struct seen seen;

	CU_ASSERT(cm_expect(channel, RDMA_CM_EVENT_REJECTED, &seen));
	CU_ASSERT_EQUAL(seen.event.status, status);
	CU_ASSERT_EQUAL(seen.event.param.conn.private_data_len, 148);
	CU_ASSERT(is_zero(seen.data, 148));
}

/* ---- without failures ---- */

static void whole_course(void)
{
	struct client client;

	CU_ASSERT_FATAL(client_start(&client, false));
	CU_ASSERT_FATAL(client_connect(&client));
	CU_ASSERT_FATAL(client_establish(&client));
	CU_ASSERT_EQUAL(rdma_disconnect(client.id), 0);
	CU_ASSERT(cm_expect(client.channel, RDMA_CM_EVENT_DISCONNECTED, NULL));
	CU_ASSERT(reaches(&client.server, STEP_DISCONNECTED));
	CU_ASSERT(cm_expect(client.channel, RDMA_CM_EVENT_TIMEWAIT_EXIT, NULL));
	CU_ASSERT_EQUAL(process_end(&client.server), 0);
	client_free(&client);
}

static void leaving_without_a_word_disconnects(void)
{
	struct client client;

	CU_ASSERT_FATAL(client_start(&client, false));
	CU_ASSERT_FATAL(client_connect(&client));
	CU_ASSERT_FATAL(client_establish(&client));
	client_free(&client); /* ends the runtime and its link */
	CU_ASSERT(reaches(&client.server, STEP_DISCONNECTED));
	CU_ASSERT_EQUAL(process_end(&client.server), 0);
}

/* ---- the listening side dies ---- */

static void server_dies_before_the_request(void)
{
	struct rdma_conn_param param = cm_param(1);
	struct client client;

	CU_ASSERT_FATAL(client_start(&client, false));
	process_kill(&client.server);
	CU_ASSERT_EQUAL(rdma_connect(client.id, &param), 0);
	rejected(client.channel, 8);
	client_free(&client);
}

static void server_dies_with_the_request(void)
{
	struct client client;

	CU_ASSERT_FATAL(client_start(&client, false));
	CU_ASSERT_FATAL(client_connect(&client));
	process_kill(&client.server);
	rejected(client.channel, 28);
	client_free(&client);
}

static void server_dies_before_the_connection_stands(void)
{
	struct client client;

	CU_ASSERT_FATAL(client_start(&client, false));
	CU_ASSERT_FATAL(client_connect(&client));
	process_say(client.server.fd, 0);
	CU_ASSERT(reaches(&client.server, STEP_ACCEPT));
	CU_ASSERT(cm_expect(client.channel, RDMA_CM_EVENT_CONNECT_RESPONSE, NULL));
	process_kill(&client.server);
	rejected(client.channel, 28);
	CU_ASSERT_EQUAL(rdma_establish(client.id), -1);
	CU_ASSERT_EQUAL(errno, EINVAL);
	client_free(&client);
}

/* Returns how long the client took to notice. */
static uint64_t kill_connected_server(void *arg)
{
	struct ibv_qp_init_attr wish = qp_wish();
	struct ibv_qp_attr attr;
	struct client client;
	uint64_t begin, took;
	struct seen seen;

	(void)arg;
	CU_ASSERT_FATAL(client_start(&client, true));
	CU_ASSERT_EQUAL_FATAL(rdma_create_qp(client.id, NULL, &wish), 0);
	CU_ASSERT_FATAL(client_connect(&client));
	process_say(client.server.fd, 0);
	CU_ASSERT(reaches(&client.server, STEP_ACCEPT));
	CU_ASSERT_FATAL(cm_expect(client.channel, RDMA_CM_EVENT_ESTABLISHED, NULL));
	CU_ASSERT(reaches(&client.server, STEP_ESTABLISHED));
	begin = clock_now();
	process_kill(&client.server);
	CU_ASSERT(cm_expect(client.channel, RDMA_CM_EVENT_DISCONNECTED, &seen));
	took = clock_now() - begin;
	CU_ASSERT_EQUAL(seen.event.status, 0);
	CU_ASSERT_EQUAL(ibv_query_qp(client.id->qp, &attr, IBV_QP_STATE, &wish), 0);
	CU_ASSERT_EQUAL(attr.qp_state, IBV_QPS_RTS);
	CU_ASSERT_EQUAL(rdma_disconnect(client.id), 0);
	CU_ASSERT_FALSE(cm_ready(client.channel, 250)); /* a dead peer causes no time wait */
	rdma_destroy_qp(client.id);
	client_free(&client);
	return took;
}

static void server_dies_connected(void)
{
	CU_ASSERT(unit_is_soon(kill_connected_server, NULL, NSEC_PER_SEC));
}

/* ---- the connecting side dies ---- */

static int connect_out(int fd, void *arg)
{
	struct rdma_event_channel *channel = rdma_create_event_channel();
	struct rdma_conn_param param = cm_param(0x99);
	struct rdma_cm_id *id;
	uint64_t port;

	(void)arg;
	if (!channel || !process_hear(fd, &port))
		return 1;
	id = cm_client(channel, (uint16_t)port);
	if (!id || rdma_connect(id, &param))
		return 1;
	process_say(fd, STEP_CONNECT);
	if (!cm_expect(channel, RDMA_CM_EVENT_CONNECT_RESPONSE, NULL))
		return 2;
	process_say(fd, STEP_RESPONSE);
	if (!process_sync(fd) || rdma_establish(id))
		return 3;
	process_sync(fd);
	exit(0); /* without destroying its objects */
}

struct server {
	struct rdma_event_channel *channel;
	struct rdma_cm_id *listener, *id;
	struct process client;
};

static bool server_start(struct server *server)
{
	struct seen seen;

	if (!process_start(&server->client, connect_out, NULL))
		return false;
	server->channel = rdma_create_event_channel();
	server->listener = server->channel ? cm_listener(server->channel, 0) : NULL;
	if (!server->listener ||
	    !process_say(server->client.fd, ntohs(rdma_get_src_port(server->listener))) ||
	    !reaches(&server->client, STEP_CONNECT) ||
	    !cm_expect(server->channel, RDMA_CM_EVENT_CONNECT_REQUEST, &seen))
		return false;
	server->id = seen.event.id;
	return true;
}

static void server_free(struct server *server)
{
	CU_ASSERT_EQUAL(rdma_destroy_id(server->id), 0);
	CU_ASSERT_EQUAL(rdma_destroy_id(server->listener), 0);
	rdma_destroy_event_channel(server->channel);
}

static bool is_withdrawn(void *arg)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_RTR };
	int mask;

	return rdma_init_qp_attr(arg, &attr, &mask) == -1;
}

static void client_dies_before_the_answer(void)
{
	struct rdma_conn_param param = cm_param(1);
	struct server server;

	CU_ASSERT_FATAL(server_start(&server));
	process_kill(&server.client);
	CU_ASSERT(unit_wait_for(is_withdrawn, server.id, UNIT_PATIENCE));
	CU_ASSERT_FALSE(cm_ready(server.channel, 0));
	CU_ASSERT_EQUAL(rdma_accept(server.id, &param), -1);
	CU_ASSERT_EQUAL(errno, EINVAL);
	server_free(&server);
}

static void client_dies_before_the_connection_stands(void)
{
	struct rdma_conn_param param = cm_param(1);
	struct server server;

	CU_ASSERT_FATAL(server_start(&server));
	CU_ASSERT_EQUAL(rdma_accept(server.id, &param), 0);
	CU_ASSERT(reaches(&server.client, STEP_RESPONSE));
	process_kill(&server.client);
	rejected(server.channel, 28);
	server_free(&server);
}

static void client_exits_connected(void)
{
	struct rdma_conn_param param = cm_param(1);
	struct server server;
	struct seen seen;

	CU_ASSERT_FATAL(server_start(&server));
	CU_ASSERT_EQUAL(rdma_accept(server.id, &param), 0);
	CU_ASSERT(reaches(&server.client, STEP_RESPONSE));
	process_say(server.client.fd, 0);
	CU_ASSERT(cm_expect(server.channel, RDMA_CM_EVENT_ESTABLISHED, NULL));
	process_say(server.client.fd, 0);
	CU_ASSERT(cm_expect(server.channel, RDMA_CM_EVENT_DISCONNECTED, &seen));
	CU_ASSERT_EQUAL(seen.event.status, 0);
	CU_ASSERT_EQUAL(rdma_disconnect(server.id), 0);
	CU_ASSERT_EQUAL(process_end(&server.client), 0);
	server_free(&server);
}

/* ---- a listener that does not respond ---- */

static void stopped_listener_is_waited_for(void)
{
	struct rdma_conn_param param = cm_param(1);
	struct client client;
	int status;

	CU_ASSERT_FATAL(client_start(&client, false));
	CU_ASSERT_EQUAL(kill(client.server.pid, SIGSTOP), 0);
	CU_ASSERT_EQUAL(waitpid(client.server.pid, &status, WUNTRACED), client.server.pid);
	CU_ASSERT_EQUAL(rdma_connect(client.id, &param), 0);
	CU_ASSERT_FALSE(cm_ready(client.channel, 100));
	CU_ASSERT_EQUAL(kill(client.server.pid, SIGCONT), 0);
	CU_ASSERT(reaches(&client.server, STEP_REQUEST));
	CU_ASSERT(client_establish(&client));
	CU_ASSERT_EQUAL(rdma_disconnect(client.id), 0);
	CU_ASSERT(reaches(&client.server, STEP_DISCONNECTED));
	CU_ASSERT_EQUAL(process_end(&client.server), 0);
	client_free(&client);
}

/*
 * This process's engine answers that a listener exists, but makes no link while this thread holds
 * the lock.
 */
static int serve_slowly(int fd, void *arg)
{
	struct rdma_event_channel *channel = rdma_create_event_channel();
	struct rdma_cm_id *listener = channel ? cm_listener(channel, 0) : NULL;
	bool notified;

	(void)arg;
	if (!listener)
		return 1;
	sv_links_lock();
	notified = process_say(fd, ntohs(rdma_get_src_port(listener))) && process_sync(fd);
	sv_links_unlock();
	return notified && cm_expect(channel, RDMA_CM_EVENT_CONNECT_REQUEST, NULL) ? 0 : 2;
}

static bool waits_for_link(void *arg)
{
	struct cm_id *id = arg;
	bool waits;

	sv_cm_lock();
	waits = id->wants_link;
	sv_cm_unlock();
	return waits;
}

static bool waits_no_more(void *arg)
{
	return !waits_for_link(arg);
}

/* An attempt to link is given up after seconds, a request after a minute. */
static void slow_listener_is_waited_for(void)
{
	struct rdma_conn_param param = cm_param(1);
	struct client client;
	uint64_t port = 0;

	memset(&client, 0, sizeof(client));
	CU_ASSERT_FATAL(process_start(&client.server, serve_slowly, NULL) &&
			process_hear(client.server.fd, &port));
	client.channel = rdma_create_event_channel();
	client.id = cm_client(client.channel, (uint16_t)port);
	CU_ASSERT_PTR_NOT_NULL_FATAL(client.id);
	CU_ASSERT_EQUAL(rdma_connect(client.id, &param), 0);
	CU_ASSERT(unit_wait_for(waits_for_link, cm_id_of(client.id), UNIT_PATIENCE));
	CU_ASSERT(unit_wait_for(waits_no_more, cm_id_of(client.id), UNIT_PATIENCE));
	CU_ASSERT_FALSE(cm_ready(client.channel, 0));
	process_say(client.server.fd, 0);
	CU_ASSERT_EQUAL(process_end(&client.server), 0);
	client_free(&client);
}

/* ---- ports ---- */

static int try_ports(int fd, void *arg)
{
	struct rdma_event_channel *channel = rdma_create_event_channel();
	struct sockaddr_in wild = { .sin_family = AF_INET };
	struct rdma_cm_id *id = cm_new(channel), *others[40];
	uint64_t port;
	unsigned i;

	(void)arg;
	if (!process_hear(fd, &port) || cm_bound(channel, (uint16_t)port) || errno != EADDRINUSE)
		return 1;
	wild.sin_port = htons((uint16_t)port);
	if (!rdma_bind_addr(id, (struct sockaddr *)&wild) || errno != EADDRINUSE)
		return 2;
	for (i = 0; i < 40; i++) {
		others[i] = cm_bound(channel, 0);
		if (!others[i] || rdma_get_src_port(others[i]) == wild.sin_port)
			return 3;
	}
	for (i = 0; i < 40; i++)
		rdma_destroy_id(others[i]);
	rdma_destroy_id(id);
	rdma_destroy_event_channel(channel);
	return 0;
}

static void ports_are_claimed(void)
{
	struct rdma_event_channel *channel;
	struct rdma_cm_id *id;
	struct process process;

	CU_ASSERT_FATAL(process_start(&process, try_ports, NULL));
	channel = rdma_create_event_channel();
	id = cm_listener(channel, 0);
	CU_ASSERT_PTR_NOT_NULL_FATAL(id);
	CU_ASSERT(process_say(process.fd, ntohs(rdma_get_src_port(id))));
	CU_ASSERT_EQUAL(process_end(&process), 0);
	CU_ASSERT_EQUAL(rdma_destroy_id(id), 0);
	rdma_destroy_event_channel(channel);
}

/* ---- fork ---- */

static int use_inherited(int fd, void *arg)
{
	struct pair *pair = arg;
	struct rdma_conn_param param = cm_param(1);
	struct rdma_cm_event *event;
	struct sockaddr_in addr = cm_loopback(0);
	struct rdma_cm_id *id;

	(void)fd;
	if (rdma_disconnect(pair->active) != -1 || errno != ENODEV)
		return 1;
	if (rdma_get_cm_event(pair->near, &event) != -1 || errno != ENODEV)
		return 2;
	if (rdma_create_id(pair->near, &id, NULL, RDMA_PS_TCP) != -1 || errno != ENODEV)
		return 3;
	if (rdma_connect(pair->active, &param) != -1 || rdma_accept(pair->passive, &param) != -1 ||
	    rdma_listen(pair->listener, 1) != -1 ||
	    rdma_bind_addr(pair->listener, (struct sockaddr *)&addr) != -1)
		return 4;
	if (rdma_destroy_id(pair->active) != -1 || errno != ENODEV)
		return 5;
	rdma_destroy_event_channel(pair->near);
	return 0;
}

static void forked_child_leaves_it_alone(void)
{
	struct process process;
	struct pair pair;

	CU_ASSERT_FATAL(pair_connect(&pair));
	CU_ASSERT_FATAL(process_start(&process, use_inherited, &pair));
	CU_ASSERT_EQUAL(process_end(&process), 0);
	CU_ASSERT_EQUAL(rdma_disconnect(pair.passive), 0);
	CU_ASSERT(cm_expect(pair.near, RDMA_CM_EVENT_DISCONNECTED, NULL));
	pair_free(&pair);
}

/* ---- no descriptors ---- */

static void too_many_files(void)
{
	struct rdma_conn_param param = cm_param(1);
	struct rlimit limit, less;
	struct client client;
	int first;

	CU_ASSERT_FATAL(client_start(&client, false));
	first = dup(0);
	close(first);
	getrlimit(RLIMIT_NOFILE, &limit);
	less = limit;
	less.rlim_cur = (rlim_t)first;
	setrlimit(RLIMIT_NOFILE, &less);
	errno = 0;
	CU_ASSERT_EQUAL(rdma_connect(client.id, &param), -1);
	CU_ASSERT_EQUAL(errno, EMFILE);
	setrlimit(RLIMIT_NOFILE, &limit);
	CU_ASSERT_FATAL(client_connect(&client)); /* works as before */
	CU_ASSERT(client_establish(&client));
	CU_ASSERT_EQUAL(rdma_disconnect(client.id), 0);
	CU_ASSERT_EQUAL(process_end(&client.server), 0);
	client_free(&client);
}

/* ---- malformed messages ---- */

static void nonsense_is_survived(void)
{
	struct cm_message message;
	uint8_t *bytes = (uint8_t *)&message;
	unsigned round, i, random = 12345;
	struct pair pair;

	log_open(NULL, 0, LOG_TO_STDERR);
	CU_ASSERT_FATAL(pair_connect(&pair));
	for (round = 0; round < 20000; round++) {
		for (i = 0; i < sizeof(message); i++) {
			random = random * 1103515245u + 12345u;
			bytes[i] = (uint8_t)(random >> 16);
		}
		message.kind %= 10;
		message.reason %= 40;
		message.space = round % 3 ? RDMA_PS_TCP : message.space;
		/*
		 * half of them reach an identifier, and some of these seem to come from its other
		 * side
		 */
		message.from = random % 3
				       ? cm_id_of(random % 2 ? pair.active : pair.passive)->number
				       : message.from;
		message.to = random % 4 > 1
				     ? cm_id_of(random % 2 ? pair.passive : pair.active)->number
			     : random % 4 ? 0
					  : message.to;
		if (round % 2) { /* a well-formed request */
			message.target = message.source =
				(struct sockaddr_in6){ .sin6_family = AF_INET };
			memcpy(&message.target, rdma_get_local_addr(pair.listener),
			       sizeof(struct sockaddr_in));
		}
		sv_cm_message(sv_peer_self(), &message,
			      round % 11 ? sizeof(message) : round % sizeof(message));
	}
	pair_free(&pair);
	log_open(NULL, LOG_ERROR, LOG_TO_STDERR);
	CU_ASSERT_FATAL(pair_connect(&pair));
	pair_free(&pair);
}

static const struct unit_test tests[] = {
	{ "a connection between two processes passes its steps", whole_course },
	{ "a process that exits without a call disconnects", leaving_without_a_word_disconnects },
	{ "a listener that dies before the request: REJECTED", server_dies_before_the_request },
	{ "a listener that dies with the request rejects it", server_dies_with_the_request },
	{ "a listener that dies before ESTABLISHED ends the connection",
	  server_dies_before_the_connection_stands },
	{ "a connected listener that dies is reported", server_dies_connected },
	{ "a client that dies before the reply makes no event", client_dies_before_the_answer },
	{ "a client that dies before ESTABLISHED: REJECTED",
	  client_dies_before_the_connection_stands },
	{ "a connected client that exits is reported", client_exits_connected },
	{ "a connect waits for a stopped listener", stopped_listener_is_waited_for },
	{ "a connect waits for a listener that is slow to link", slow_listener_is_waited_for },
	{ "a port that another process has claimed is refused", ports_are_claimed },
	{ "a forked child leaves inherited identifiers alone", forked_child_leaves_it_alone },
	{ "without descriptors a connect fails, and later works again", too_many_files },
	{ "malformed messages are dropped", nonsense_is_survived },
};

UNIT_MAIN("softverbs_cm_process", tests)
