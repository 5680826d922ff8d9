/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/*
 * One end of one connection, for tests between two hosts and between two stacks: it uses only what
 * OFED's libdat2 has, too.
 *
 *	wire [-P name] [-t seconds] [-n rounds] [-b bytes] CASE		server
 *	wire [-P name] [-t seconds] [-n rounds] [-b bytes] -h HOST CASE	client
 *
 * Both sides know what the other does in a case. Exit status 0: passed; 3: the connection of `flow`
 * ended; a line then says how, and how long after the last answer.
 */
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "test/vm/wire.h"

#define CONNECT_DATA 56 /* the most that each transport and stack can carry */
#define REJECT_DATA  64
#define NO_LISTENER  47001 /* a qualifier without a listener */

static char default_provider[] = "ofa-v2-ib0";
struct wire_option option = {
	.provider = default_provider, .seconds = 60, .rounds = 200, .bytes = 4096
};

/* --- the two halves of a connection ---------------------------------------------------------------------------- */

void listen_on(DAT_CONN_QUAL qual)
{
	MUST(dat_psp_create(wire.ia, qual, wire.cr_evd, DAT_PSP_CONSUMER_FLAG,
			    &wire.psp[wire.psps]));
	wire.psps++;
}

void ready(void)
{
	printf("ready\n");
	fflush(stdout);
}

/* Takes a request, which has the right data and the right qualifier. */
static DAT_CR_HANDLE requested(DAT_CONN_QUAL qual)
{
	DAT_CR_ARRIVAL_EVENT_DATA arrival = next(wire.cr_evd).event_data.cr_arrival_event_data;
	DAT_CR_PARAM param;

	if (arrival.conn_qual != qual)
		wrong("qualifier", arrival.conn_qual, qual);
	MUST(dat_cr_query(arrival.cr_handle, DAT_CR_FIELD_ALL, &param));
	compare("request's data", param.private_data, param.private_data_size, CONNECT_DATA,
		(unsigned)qual);
	return arrival.cr_handle;
}

void accept_one(DAT_CONN_QUAL qual)
{
	unsigned char data[ACCEPT_DATA];

	MUST(dat_cr_accept(requested(qual), wire.ep, ACCEPT_DATA, pattern(data, ACCEPT_DATA, 5)));
	expect(DAT_CONNECTION_EVENT_ESTABLISHED);
}

static void start_connect(DAT_CONN_QUAL qual)
{
	unsigned char data[CONNECT_DATA];
	struct addrinfo *found;

	if (getaddrinfo(option.host, NULL, NULL, &found)) {
		printf("no host %s\n", option.host);
		exit(1);
	}
	MUST(dat_ep_connect(wire.ep, (DAT_IA_ADDRESS_PTR)found->ai_addr, qual,
			    option.seconds * 1000000, CONNECT_DATA,
			    pattern(data, CONNECT_DATA, (unsigned)qual), DAT_QOS_BEST_EFFORT,
			    DAT_CONNECT_DEFAULT_FLAG));
	freeaddrinfo(found);
}

void connect_to(DAT_CONN_QUAL qual)
{
	DAT_CONNECTION_EVENT_DATA data;

	start_connect(qual);
	data = expect(DAT_CONNECTION_EVENT_ESTABLISHED).event_data.connect_event_data;
	compare("answer's data", data.private_data, data.private_data_size, ACCEPT_DATA, 5);
}

void disconnect(bool first)
{
	if (first)
		MUST(dat_ep_disconnect(wire.ep, DAT_CLOSE_ABRUPT_FLAG));
	expect(DAT_CONNECTION_EVENT_DISCONNECTED);
}

/* --- cases ----------------------------------------------------------------------------------------------------- */

static void case_ends(bool server_first)
{
	if (option.host) {
		connect_to(QUAL);
		disconnect(!server_first);
		return;
	}
	listen_on(QUAL);
	ready();
	accept_one(QUAL);
	disconnect(server_first);
}

static void case_server_ends(void)
{
	case_ends(true);
}

static void case_client_ends(void)
{
	case_ends(false);
}

/* Small qualifiers are ports; both stacks map large ones to ports in the same way. */
static void case_quals(void)
{
	static const DAT_CONN_QUAL quals[] = { 45248, 65535, 65536, 0x0AFFAB1E, (1ull << 63) + 5,
					       ~0ull };
	size_t i, count = sizeof(quals) / sizeof(quals[0]);

	for (i = 0; i < count && !option.host; i++)
		listen_on(quals[i]);
	if (!option.host)
		ready();
	for (i = 0; i < count; i++) {
		if (option.host)
			connect_to(quals[i]);
		else
			accept_one(quals[i]);
		disconnect(option.host != NULL);
		MUST(dat_ep_free(wire.ep));
		ep_open();
	}
}

static void case_reject(void)
{
	DAT_CONNECTION_EVENT_DATA data;
	unsigned char bytes[REJECT_DATA];

	if (!option.host) {
		listen_on(QUAL);
		ready();
		MUST(dat_cr_reject(requested(QUAL), REJECT_DATA, pattern(bytes, REJECT_DATA, 9)));
		return;
	}
	start_connect(QUAL);
	data = expect(DAT_CONNECTION_EVENT_PEER_REJECTED).event_data.connect_event_data;
	compare("refusal's data", data.private_data, data.private_data_size, REJECT_DATA, 9);
}

/* The server runs, but listens elsewhere; the client's second connection lets it end. */
static void case_no_listener(void)
{
	if (!option.host) {
		case_client_ends();
		return;
	}
	start_connect(NO_LISTENER);
	expect(DAT_CONNECTION_EVENT_NON_PEER_REJECTED);
	MUST(dat_ep_reset(wire.ep));
	case_client_ends();
}

/* Connects where that must fail; prints the event and its time. */
static void case_connect(void)
{
	double start = now();
	DAT_EVENT event;

	start_connect(QUAL);
	option.seconds += 20; /* the event is due when the time is over */
	event = next(wire.conn_evd);
	printf("%s after %.1f s\n", event_name(event.event_number), now() - start);
}

/* The server waits for the end of its device, and can then close everything. */
static void case_removed(void)
{
	double start = now();
	DAT_EVENT event;

	listen_on(QUAL);
	ready();
	event = next(wire.async_evd);
	if (event.event_number != DAT_ASYNC_ERROR_IA_CATASTROPHIC)
		wrong("the async event", event.event_number, DAT_ASYNC_ERROR_IA_CATASTROPHIC);
	printf("told after %.1f s\n", now() - start);
}

static const struct {
	const char *name;
	void (*run)(void);
} cases[] = {
	{ "server-ends", case_server_ends },
	{ "client-ends", case_client_ends },
	{ "quals", case_quals },
	{ "reject", case_reject },
	{ "no-listener", case_no_listener },
	{ "connect", case_connect },
	{ "flow", case_flow },
	{ "unread", case_unread },
	{ "farewell", case_farewell },
	{ "removed", case_removed },
};

int main(int argc, char **argv)
{
	size_t i;
	int c;

	while ((c = getopt(argc, argv, "P:h:t:n:b:")) != -1) {
		switch (c) {
		case 'P': option.provider = optarg; break;
		case 'h': option.host = optarg; break;
		case 't': option.seconds = (unsigned)atoi(optarg); break;
		case 'n': option.rounds = (unsigned)atoi(optarg); break;
		case 'b': option.bytes = (unsigned)atoi(optarg); break;
		default: return 2;
		}
	}
	for (i = 0; optind + 1 == argc && i < sizeof(cases) / sizeof(cases[0]); i++) {
		if (strcmp(cases[i].name, argv[optind]))
			continue;
		open_all();
		cases[i].run();
		close_all();
		printf("passed\n");
		return 0;
	}
	fprintf(stderr,
		"usage: wire [-P name] [-h host] [-t seconds] [-n rounds] [-b bytes] case\n");
	return 2;
}
