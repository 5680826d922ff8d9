/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/*
 * A client process is killed during a transfer: the server is notified, leaks nothing and serves
 * the next client.
 */
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <netinet/in.h>
#include <dat2/udat.h>
#include "test/unit/unit.h"
#include "util/clock.h"

#define LENGTH	 (1 << 20)
#define RECEIVES 8
#define PATIENCE (UNIT_PATIENCE * 1000u) /* in microseconds */

extern char **environ;

struct side {
	DAT_IA_HANDLE ia;
	DAT_IA_ATTR attr;
	DAT_PZ_HANDLE pz;
	DAT_EVD_HANDLE async, requests, events, transfers;
	DAT_LMR_HANDLE lmr;
	DAT_LMR_TRIPLET local;
	DAT_RMR_TRIPLET shown;
	DAT_EP_HANDLE ep;
	char *memory;
};

static DAT_EVENT event;
static DAT_COUNT more;

static bool side_open(struct side *side)
{
	static char name[] = "ofa-v2-soft";
	DAT_REGION_DESCRIPTION region;

	memset(side, 0, sizeof(*side));
	side->memory = calloc(2, LENGTH);
	region.for_va = side->memory;
	side->local.virtual_address = (DAT_VADDR)(uintptr_t)side->memory;
	side->local.segment_length = LENGTH;
	side->shown.virtual_address = side->local.virtual_address + LENGTH;
	side->shown.segment_length = LENGTH;
	return !dat_ia_open(name, 8, &side->async, &side->ia) &&
	       !dat_ia_query(side->ia, NULL, DAT_IA_FIELD_ALL, &side->attr, 0, NULL) &&
	       !dat_pz_create(side->ia, &side->pz) &&
	       !dat_evd_create(side->ia, 8, DAT_HANDLE_NULL, DAT_EVD_CR_FLAG, &side->requests) &&
	       !dat_evd_create(side->ia, 8, DAT_HANDLE_NULL, DAT_EVD_CONNECTION_FLAG,
			       &side->events) &&
	       !dat_evd_create(side->ia, 64, DAT_HANDLE_NULL, DAT_EVD_DTO_FLAG, &side->transfers) &&
	       !dat_lmr_create(side->ia, DAT_MEM_TYPE_VIRTUAL, region, 2 * LENGTH, side->pz,
			       DAT_MEM_PRIV_ALL_FLAG, DAT_VA_TYPE_VA, &side->lmr,
			       &side->local.lmr_context, &side->shown.rmr_context, NULL, NULL);
}

static bool side_add_ep(struct side *side)
{
	DAT_LMR_TRIPLET small = side->local;
	DAT_DTO_COOKIE cookie = { .as_64 = 0 };
	int i;

	small.segment_length = sizeof(DAT_RMR_TRIPLET);
	if (dat_ep_create(side->ia, side->pz, side->transfers, side->transfers, side->events, NULL,
			  &side->ep))
		return false;
	for (i = 0; i < RECEIVES; i++)
		if (dat_ep_post_recv(side->ep, 1, &small, cookie, DAT_COMPLETION_DEFAULT_FLAG))
			return false;
	return true;
}

static bool side_close(struct side *side)
{
	bool closed = !dat_ia_close(side->ia, DAT_CLOSE_ABRUPT_FLAG);

	free(side->memory);
	return closed;
}

static bool next_is(DAT_EVD_HANDLE evd, DAT_EVENT_NUMBER number)
{
	return !dat_evd_wait(evd, PATIENCE, 1, &event, &more) && event.event_number == number;
}

/*
 * The client: connects, learns the server's memory from its first message, and writes to it until
 * it is killed.
 */
static int client(DAT_CONN_QUAL qual)
{
	DAT_DTO_COOKIE cookie = { .as_64 = 1 };
	DAT_RMR_TRIPLET target;
	struct side side;

	if (!side_open(&side) || !side_add_ep(&side) ||
	    dat_ep_connect(side.ep, side.attr.ia_address_ptr, qual, PATIENCE, 0, NULL,
			   DAT_QOS_BEST_EFFORT, DAT_CONNECT_DEFAULT_FLAG) ||
	    !next_is(side.events, DAT_CONNECTION_EVENT_ESTABLISHED) ||
	    !next_is(side.transfers, DAT_DTO_COMPLETION_EVENT))
		return 1;
	memcpy(&target, side.memory, sizeof(target));
	for (;;) {
		if (dat_ep_post_rdma_write(side.ep, 1, &side.local, cookie, &target,
					   DAT_COMPLETION_DEFAULT_FLAG) ||
		    !next_is(side.transfers, DAT_DTO_COMPLETION_EVENT))
			return 1;
		if (write(STDOUT_FILENO, "w", 1) != 1)
			return 1;
	}
}

/* Number of shared mappings of the software device (memfds). */
static int mappings(void)
{
	FILE *maps = fopen("/proc/self/maps", "r");
	char line[512];
	int n = 0;

	while (maps && fgets(line, sizeof(line), maps))
		n += strstr(line, "/memfd:") != NULL;
	if (maps)
		fclose(maps);
	return n;
}

static unsigned fds_before;
static int maps_before;

static bool nothing_left(void *arg)
{
	(void)arg;
	return unit_entries("/proc/self/fd") <= fds_before && mappings() <= maps_before;
}

static pid_t spawn_client(DAT_CONN_QUAL qual, int *output)
{
	char number[32];
	char *argv[] = { (char[]){ "client" }, (char[]){ "--client" }, number, NULL };
	posix_spawn_file_actions_t actions;
	int ends[2];
	pid_t pid;

	snprintf(number, sizeof(number), "%llu", (unsigned long long)qual);
	CU_ASSERT_FATAL(!pipe2(ends, O_CLOEXEC));
	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
	CU_ASSERT_FATAL(!posix_spawn(&pid, "/proc/self/exe", &actions, NULL, argv, environ));
	posix_spawn_file_actions_destroy(&actions);
	close(ends[1]);
	*output = ends[0];
	return pid;
}

static DAT_PSP_HANDLE listen_somewhere(struct side *side, DAT_CONN_QUAL *qual)
{
	DAT_PSP_HANDLE psp = DAT_HANDLE_NULL;

	for (*qual = 20000 + (DAT_CONN_QUAL)getpid() % 12000;; ++*qual) {
		DAT_RETURN status = dat_psp_create(side->ia, *qual, side->requests,
						   DAT_PSP_CONSUMER_FLAG, &psp);

		if (DAT_GET_TYPE(status) != DAT_CONN_QUAL_IN_USE)
			return psp;
	}
}

/* Returns how long the server took to notice. */
static uint64_t serve_and_kill(struct side *server, DAT_CONN_QUAL qual)
{
	DAT_LMR_TRIPLET message = server->local;
	DAT_DTO_COOKIE cookie = { .as_64 = 2 };
	uint64_t killed, heard;
	int output;
	pid_t pid;
	char c;

	CU_ASSERT_FATAL(side_add_ep(server));
	pid = spawn_client(qual, &output);
	CU_ASSERT_FATAL(next_is(server->requests, DAT_CONNECTION_REQUEST_EVENT));
	CU_ASSERT_EQUAL_FATAL(dat_cr_accept(event.event_data.cr_arrival_event_data.cr_handle,
					    server->ep, 0, NULL),
			      DAT_SUCCESS);
	CU_ASSERT_FATAL(next_is(server->events, DAT_CONNECTION_EVENT_ESTABLISHED));
	memcpy(server->memory, &server->shown, sizeof(server->shown));
	message.segment_length = sizeof(server->shown);
	CU_ASSERT_EQUAL_FATAL(dat_ep_post_send(server->ep, 1, &message, cookie,
					       DAT_COMPLETION_DEFAULT_FLAG),
			      DAT_SUCCESS);
	CU_ASSERT_FATAL(next_is(server->transfers, DAT_DTO_COMPLETION_EVENT));
	CU_ASSERT_EQUAL_FATAL(read(output, &c, 1), 1); /* the client is writing */

	kill(pid, SIGKILL);
	killed = clock_now();
	CU_ASSERT_FATAL(!dat_evd_wait(server->events, PATIENCE, 1, &event, &more));
	heard = clock_now();
	CU_ASSERT(event.event_number == DAT_CONNECTION_EVENT_DISCONNECTED ||
		  event.event_number == DAT_CONNECTION_EVENT_BROKEN);
	CU_ASSERT_EQUAL(more, 0);

	CU_ASSERT_EQUAL(dat_ep_free(server->ep), DAT_SUCCESS);
	while (dat_evd_dequeue(server->transfers, &event) == DAT_SUCCESS)
		; /* takes flushed receives */
	close(output);
	CU_ASSERT_EQUAL(waitpid(pid, NULL, 0), pid);
	CU_ASSERT(unit_wait_for(nothing_left, NULL, UNIT_PATIENCE));
	return heard - killed;
}

struct service {
	struct side server;
	DAT_CONN_QUAL qual;
};

static uint64_t next_client(void *arg)
{
	struct service *service = arg;

	return serve_and_kill(&service->server, service->qual);
}

/* An EVD gets its wake descriptor when a thread first blocks on it, which the first client may not bring about. */
static void block_once(DAT_EVD_HANDLE evd)
{
	CU_ASSERT_EQUAL(DAT_GET_TYPE(dat_evd_wait(evd, 1000, 1, &event, &more)),
			DAT_TIMEOUT_EXPIRED);
}

static void killed_client(void)
{
	struct service service;
	struct side *server = &service.server;
	DAT_PSP_HANDLE psp;
	int i;

	CU_ASSERT_FATAL(side_open(server));
	psp = listen_somewhere(server, &service.qual);
	CU_ASSERT_PTR_NOT_NULL_FATAL(psp);
	block_once(server->requests);
	block_once(server->events);
	block_once(server->transfers);
	/* the first client may cause objects that stay for later ones, such as a table */
	fds_before = maps_before = 1 << 20;
	next_client(&service);
	fds_before = unit_entries("/proc/self/fd");
	maps_before = mappings();
	for (i = 0; i < 3; i++)
		CU_ASSERT(unit_is_soon(next_client, &service, NSEC_PER_SEC));
	CU_ASSERT_EQUAL(dat_psp_free(psp), DAT_SUCCESS);
	CU_ASSERT(side_close(server));
	maps_before = 0;
	CU_ASSERT(unit_wait_for(nothing_left, NULL, UNIT_PATIENCE));
}

static const struct unit_test tests[] = {
	{ "a client is killed during a transfer: one end within 1 s, nothing "
	  "left, and the next is served",
	  killed_client },
};

int main(int argc, char **argv)
{
	if (argc == 3 && !strcmp(argv[1], "--client"))
		return client(strtoull(argv[2], NULL, 10));
	setenv("DAT_OVERRIDE", "build/dat.conf", 0);
	return unit_main("peer_death", tests, 1, argc, argv);
}
