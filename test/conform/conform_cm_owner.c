/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/*
 * A port moves between processes of one host while another process, which may be on another host (remote.h), connects to it
 * again and again: each request reaches the process that listens then.
 */
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
#include "test/conform/con.h"
#include "test/conform/other.h"

#define ROUNDS 6

/* ---- an owner: rejects what comes, with its own name ---- */

/* Of a word that it is sent, with the port that it is to listen on; 0: it chooses one. Then it reports the port, or TAKEN. */
#define LISTEN 0x10000u
#define CLOSE  0x20000u
#define TAKEN  UINT16_MAX

static struct rdma_cm_id *listener_new(struct rdma_event_channel *channel, uint16_t port)
{
	struct sockaddr_storage address = con_address(port);
	struct rdma_cm_id *id = NULL;

	if (rdma_create_id(channel, &id, NULL, RDMA_PS_TCP))
		exit(3);
	if (!rdma_bind_addr(id, (struct sockaddr *)&address) && !rdma_listen(id, 4))
		return id;
	rdma_destroy_id(id);
	return NULL;
}

static void reject(struct rdma_event_channel *channel, uint8_t name)
{
	struct rdma_cm_event *event;
	struct rdma_cm_id *id;
	bool requests;

	if (rdma_get_cm_event(channel, &event))
		exit(4);
	requests = event->event == RDMA_CM_EVENT_CONNECT_REQUEST;
	id = event->id;
	if (requests && rdma_reject(id, &name, 1))
		exit(5);
	rdma_ack_cm_event(event);
	if (requests)
		rdma_destroy_id(id);
}

static void obey(struct rdma_event_channel *channel, struct rdma_cm_id **listener)
{
	uint32_t order = 0;

	if (read(STDIN_FILENO, &order, sizeof(order)) != sizeof(order))
		exit(0); /* the other process has ended */
	if (order & CLOSE) {
		if (rdma_destroy_id(*listener))
			exit(6);
		other_report(1);
	} else {
		*listener = listener_new(channel, (uint16_t)order);
		other_report(*listener ? ntohs(rdma_get_src_port(*listener)) : TAKEN);
	}
}

/* An identifier stays open, so that the close of the listener does not end the process's use of the device. */
static void act(int argc, char **argv)
{
	struct rdma_event_channel *channel;
	struct rdma_cm_id *listener = NULL, *stays;

	if (argc < 5 || strcmp(argv[1], "--act"))
		return;
	if (!conform_open() || !(channel = rdma_create_event_channel()) ||
	    rdma_create_id(channel, &stays, NULL, RDMA_PS_TCP))
		exit(2);
	for (;;) {
		struct pollfd fds[] = { { .fd = STDIN_FILENO, .events = POLLIN },
					{ .fd = channel->fd, .events = POLLIN } };

		poll(fds, 2, -1);
		if (fds[1].revents)
			reject(channel, (uint8_t)atoi(argv[3]));
		if (fds[0].revents)
			obey(channel, &listener);
	}
}

/* ---- this process ---- */

struct owner {
	struct other other;
	uint8_t name;
	uint16_t port; /* to listen on */
};

static void owner_start(struct owner *owner, uint8_t name)
{
	owner->name = name;
	CU_ASSERT_TRUE_FATAL(other_start(&owner->other, "own", name));
}

static uint16_t obeys(struct owner *owner, uint32_t order)
{
	CU_ASSERT_EQUAL_FATAL(write(owner->other.fd, &order, sizeof(order)), sizeof(order));
	return other_reported(&owner->other);
}

static bool listens(void *arg)
{
	struct owner *owner = arg;
	uint16_t port = obeys(owner, LISTEN | owner->port);

	CU_ASSERT_NOT_EQUAL_FATAL(port, 0);
	return port == owner->port;
}

/* The kernel frees a port a little after its owner has gone. */
static void take_over(struct owner *owner, uint16_t port)
{
	owner->port = port;
	CU_ASSERT_TRUE_FATAL(unit_wait_for(listens, owner, PATIENCE));
}

static void request(struct con *con, const union ibv_gid *gid, uint16_t port)
{
	struct rdma_conn_param param = con_param(NULL, 0);

	CU_ASSERT_TRUE_FATAL(con_resolve_at(con, &con->active, gid, port) &&
			     con_make_qp(con->active));
	CU_ASSERT_EQUAL(rdma_connect(con->active, &param), 0);
}

/* The name of the owner that rejects the request; 0 if none listens. */
static uint8_t rejection(struct con *con)
{
	struct rdma_cm_event *event = con_wait(con->client, RDMA_CM_EVENT_REJECTED);
	uint8_t name = 0;

	CU_ASSERT_PTR_NOT_NULL_FATAL(event);
	if (event->status != 8) {
		name = *(const uint8_t *)event->param.conn.private_data;
		CU_ASSERT_TRUE(name && event->status == 28);
	}
	CU_ASSERT_EQUAL(rdma_ack_cm_event(event), 0);
	con_destroy(&con->active);
	return name;
}

static uint8_t rejected_by(struct con *con, const union ibv_gid *gid, uint16_t port)
{
	request(con, gid, port);
	return rejection(con);
}

/* The TCP connections that this network namespace has begun. */
static unsigned long tcp_opens(void)
{
	FILE *file = fopen("/proc/net/snmp", "re");
	unsigned long opens = 0;
	char line[512];

	while (file && fgets(line, sizeof(line), file) &&
	       sscanf(line, "Tcp: %*d %*d %*d %*d %lu", &opens) != 1)
		continue;
	if (file)
		fclose(file);
	return opens;
}

/* The process listened there before and is linked, so that its link is enough. */
static void rejected_over_the_link(struct con *con, const struct owner *owner, uint16_t port)
{
	const char *fabric = getenv("CONFORM_PEER_NET") ? getenv("SOFTVERBS_FABRIC") : NULL;
	unsigned long before = tcp_opens();

	CU_ASSERT_EQUAL(rejected_by(con, &owner->other.gid, port), owner->name);
	if (fabric && !strcmp(fabric, "link")) /* a provider of libfabric connects when it likes */
		CU_ASSERT_EQUAL(tcp_opens(), before);
}

static void both_live(void)
{
	struct owner owners[2];
	struct con con;
	uint16_t port;

	if (!con_open(&con, 4))
		return;
	owner_start(&owners[0], 1);
	owner_start(&owners[1], 2);
	port = obeys(&owners[0], LISTEN);
	for (unsigned i = 0; i < ROUNDS; i++) {
		struct owner *owner = &owners[i % 2];
		const union ibv_gid gid = owner->other.gid;

		CU_ASSERT_EQUAL(rejected_by(&con, &gid, port), owner->name);
		rejected_over_the_link(&con, owner, port);
		CU_ASSERT_EQUAL(obeys(owner, CLOSE), 1);
		if (i % 4 > 1)
			CU_ASSERT_EQUAL(rejected_by(&con, &gid, port), 0);
		take_over(&owners[(i + 1) % 2], port);
	}
	other_kill(&owners[0].other);
	other_kill(&owners[1].other);
	con_close(&con);
}

/* The next owner may listen before this process has noticed the death of the last one. */
static void one_dies(void)
{
	struct owner owners[ROUNDS];
	struct con con;
	uint16_t port;

	if (!con_open(&con, 4))
		return;
	for (unsigned i = 0; i < ROUNDS; i++)
		owner_start(&owners[i], (uint8_t)(i + 1));
	port = obeys(&owners[0], LISTEN);
	for (unsigned i = 0; i < ROUNDS; i++) {
		CU_ASSERT_EQUAL(rejected_by(&con, &owners[i].other.gid, port), owners[i].name);
		other_kill(&owners[i].other);
		if (i + 1 < ROUNDS)
			take_over(&owners[i + 1], port);
	}
	CU_ASSERT_EQUAL(rejected_by(&con, &owners[ROUNDS - 1].other.gid, port), 0);
	con_close(&con);
}

/* The owner is killed while it is stopped and has not seen the request. */
static void one_dies_with_the_request(void)
{
	struct owner owner;
	struct con con;
	uint16_t port;
	int status;

	if (device_is_rxe) {
		skip("the kernel listens for the process");
		return;
	}
	if (!con_open(&con, 4))
		return;
	owner_start(&owner, 1);
	port = obeys(&owner, LISTEN);
	CU_ASSERT_EQUAL(rejected_by(&con, &owner.other.gid, port), owner.name);
	CU_ASSERT_EQUAL(kill(owner.other.pid, SIGSTOP), 0);
	CU_ASSERT_EQUAL(waitpid(owner.other.pid, &status, WUNTRACED), owner.other.pid);
	request(&con, &owner.other.gid, port);
	CU_ASSERT_FALSE(con_readable(con.client, 10));
	other_kill(&owner.other);
	CU_ASSERT_EQUAL(rejection(&con), 0);
	con_close(&con);
}

static const struct unit_test tests[] = {
	{ "a port moves between two processes that live", both_live },
	{ "a port moves on when its process is killed", one_dies },
	{ "a process that dies with the request counts as none", one_dies_with_the_request },
};

int main(int argc, char **argv)
{
	act(argc, argv);
	return conform_open() ? unit_main("conform_cm_owner", tests, COUNT(tests), argc, argv) : 77;
}
