/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/*
 * Many endpoints of one process against the echo server: each sends a message, all wait for the
 * answers and compare them, round after round. Plain DAT 2.0, without any extension.
 */
#include <getopt.h>
#include <netdb.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <dat2/udat.h>

enum { MESSAGE = 64, BURST = 64, PATIENCE = 60000000 /* us */ };

struct end {
	DAT_EP_HANDLE ep;
	char sent[MESSAGE], got[MESSAGE];
};

struct client {
	DAT_IA_HANDLE ia;
	DAT_PZ_HANDLE pz;
	DAT_EVD_HANDLE connections, transfers;
	DAT_LMR_HANDLE lmr;
	DAT_LMR_CONTEXT key;
	struct sockaddr_storage server;
	DAT_CONN_QUAL qual;
	struct end *end;
	int ends;
};

static bool ok(DAT_RETURN status, const char *call)
{
	const char *type = "", *detail = "";

	if (status == DAT_SUCCESS)
		return true;
	dat_strerror(status, &type, &detail);
	fprintf(stderr, "%s: %s %s\n", call, type, detail);
	return false;
}
#define OK(call) ok(call, #call)

static bool client_open(struct client *c, char *name)
{
	DAT_REGION_DESCRIPTION region = { .for_va = c->end };
	DAT_EVD_HANDLE async = DAT_HANDLE_NULL;
	int i;

	if (!OK(dat_ia_open(name, 8, &async, &c->ia)) || !OK(dat_pz_create(c->ia, &c->pz)) ||
	    !OK(dat_evd_create(c->ia, 2 * c->ends, DAT_HANDLE_NULL, DAT_EVD_CONNECTION_FLAG,
			       &c->connections)) ||
	    !OK(dat_evd_create(c->ia, 4 * c->ends, DAT_HANDLE_NULL, DAT_EVD_DTO_FLAG,
			       &c->transfers)) ||
	    !OK(dat_lmr_create(c->ia, DAT_MEM_TYPE_VIRTUAL, region,
			       (DAT_VLEN)c->ends * sizeof(*c->end), c->pz,
			       DAT_MEM_PRIV_LOCAL_READ_FLAG | DAT_MEM_PRIV_LOCAL_WRITE_FLAG,
			       DAT_VA_TYPE_VA, &c->lmr, &c->key, NULL, NULL, NULL)))
		return false;
	for (i = 0; i < c->ends; i++)
		if (!OK(dat_ep_create(c->ia, c->pz, c->transfers, c->transfers, c->connections,
				      NULL, &c->end[i].ep)))
			return false;
	return true;
}

static bool next(DAT_EVD_HANDLE evd, DAT_EVENT *event)
{
	DAT_RETURN status;
	DAT_COUNT more;

	do
		status = dat_evd_wait(evd, PATIENCE, 1, event, &more);
	while (status == DAT_INTERRUPTED_CALL);
	return ok(status, "dat_evd_wait");
}

/* The next connection event must be this one. */
static bool expect(struct client *c, DAT_EVENT_NUMBER number)
{
	DAT_EVENT event;

	if (!next(c->connections, &event))
		return false;
	if (event.event_number != number)
		fprintf(stderr, "connection event 0x%x\n", (unsigned)event.event_number);
	return event.event_number == number;
}

/* A bounded number at a time, because servers have a bounded backlog. */
static bool client_connect(struct client *c)
{
	int asked = 0, there = 0;

	while (there < c->ends) {
		if (asked < c->ends && asked - there < BURST) {
			if (!OK(dat_ep_connect(c->end[asked].ep, (DAT_IA_ADDRESS_PTR)&c->server,
					       c->qual, PATIENCE, 0, NULL, DAT_QOS_BEST_EFFORT,
					       DAT_CONNECT_DEFAULT_FLAG)))
				return false;
			asked++;
		} else {
			if (!expect(c, DAT_CONNECTION_EVENT_ESTABLISHED))
				return false;
			there++;
		}
	}
	return true;
}

static DAT_LMR_TRIPLET segment(const struct client *c, const char *message)
{
	return (DAT_LMR_TRIPLET){
		.virtual_address = (DAT_VADDR)(uintptr_t)message,
		.segment_length = MESSAGE,
		.lmr_context = c->key,
	};
}

static bool exchange(struct client *c, int round)
{
	int pending = 2 * c->ends;
	DAT_LMR_TRIPLET to, from;
	DAT_DTO_COOKIE cookie;
	DAT_EVENT event;

	for (int i = 0; i < c->ends; i++) {
		struct end *end = &c->end[i];

		snprintf(end->sent, MESSAGE, "endpoint %d, round %d", i, round);
		memset(end->got, 0, MESSAGE);
		from = segment(c, end->got);
		to = segment(c, end->sent);
		cookie.as_64 = (DAT_UINT64)i;
		if (!OK(dat_ep_post_recv(end->ep, 1, &from, cookie, DAT_COMPLETION_DEFAULT_FLAG)) ||
		    !OK(dat_ep_post_send(end->ep, 1, &to, cookie, DAT_COMPLETION_DEFAULT_FLAG)))
			return false;
	}
	for (; pending; pending--) {
		if (!next(c->transfers, &event))
			return false;
		if (event.event_data.dto_completion_event_data.status != DAT_DTO_SUCCESS) {
			fprintf(stderr, "a transfer failed\n");
			return false;
		}
	}
	for (int i = 0; i < c->ends; i++) {
		if (memcmp(c->end[i].sent, c->end[i].got, MESSAGE)) {
			fprintf(stderr, "endpoint %d got \"%.*s\"\n", i, MESSAGE, c->end[i].got);
			return false;
		}
	}
	return true;
}

static bool client_disconnect(struct client *c)
{
	for (int i = 0; i < c->ends; i++)
		if (!OK(dat_ep_disconnect(c->end[i].ep, DAT_CLOSE_DEFAULT)))
			return false;
	for (int i = 0; i < c->ends; i++)
		if (!expect(c, DAT_CONNECTION_EVENT_DISCONNECTED))
			return false;
	return true;
}

static bool resolve(struct client *c, const char *host)
{
	struct addrinfo *found;
	int error = getaddrinfo(host, NULL, NULL, &found);

	if (error) {
		fprintf(stderr, "%s: %s\n", host, gai_strerror(error));
		return false;
	}
	memcpy(&c->server, found->ai_addr, found->ai_addrlen);
	freeaddrinfo(found);
	return true;
}

static bool run(struct client *c, char *name, int rounds)
{
	bool good = client_open(c, name) && client_connect(c);

	for (int i = 0; good && i < rounds; i++)
		good = exchange(c, i);
	good = good && client_disconnect(c);
	if (c->ia)
		good = OK(dat_ia_close(c->ia, DAT_CLOSE_ABRUPT_FLAG)) && good;
	return good;
}

int main(int argc, char **argv)
{
	static char soft[] = "ofa-v2-soft", local[] = "127.0.0.1";
	char *name = soft, *host = local;
	struct client c = { .qual = 45300, .ends = 1000 };
	int rounds = 10, option;
	bool good;

	while ((option = getopt(argc, argv, "P:p:h:m:r:")) != -1) {
		switch (option) {
		case 'P': name = optarg; break;
		case 'p': c.qual = strtoull(optarg, NULL, 0); break;
		case 'h': host = optarg; break;
		case 'm': c.ends = (int)strtol(optarg, NULL, 0); break;
		case 'r': rounds = (int)strtol(optarg, NULL, 0); break;
		default: c.ends = 0;
		}
	}
	if (optind != argc || c.ends < 1 || rounds < 0) {
		fprintf(stderr,
			"usage: %s [-P provider] [-p port] [-h host] [-m endpoints] [-r rounds]\n",
			argv[0]);
		return EXIT_FAILURE;
	}
	c.end = calloc((size_t)c.ends, sizeof(*c.end));
	good = c.end && resolve(&c, host) && run(&c, name, rounds);
	if (good)
		printf("%d endpoints, %d rounds: every answer right\n", c.ends, rounds);
	free(c.end);
	return good ? EXIT_SUCCESS : EXIT_FAILURE;
}
