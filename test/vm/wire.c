/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/*
 * One end of one connection, for tests between two hosts and between two stacks: it uses nothing that is not in OFED's
 * libdat2 as well.
 *
 *	wire [-P name] [-t seconds] [-n rounds] [-b bytes] CASE		server
 *	wire [-P name] [-t seconds] [-n rounds] [-b bytes] -h HOST CASE	client
 *
 * Both sides know what the other does in a case. Exit status 0: all was as it should be; 3: the connection of `flow`
 * ended, with a line that tells how and how long after the last answer.
 */
#include <netdb.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <dat2/udat.h>

#define CONNECT_DATA 56		/* the most that each transport and stack can carry */
#define ACCEPT_DATA  160
#define REJECT_DATA  64
#define NOBODY 47001		/* a qualifier without a listener */
#define DEPTH 4

static char default_provider[] = "ofa-v2-ib0";
static struct {
	char *provider;
	const char *host;
	unsigned seconds, rounds, bytes;
} option = { .provider = default_provider, .seconds = 60, .rounds = 200, .bytes = 4096 };

static DAT_IA_HANDLE ia;
static DAT_PZ_HANDLE pz;
static DAT_EVD_HANDLE async_evd = DAT_HANDLE_NULL, conn_evd, cr_evd, recv_evd, request_evd;
static DAT_EP_HANDLE ep;
static DAT_PSP_HANDLE psp[8];
static unsigned psps;
static DAT_LMR_HANDLE lmr;
static DAT_LMR_CONTEXT lkey;
static unsigned char *memory;		/* DEPTH receives, then what is sent */
static double last_answer;

static double now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

static void must(DAT_RETURN status, const char *call)
{
	const char *type, *detail;

	if (status == DAT_SUCCESS)
		return;
	dat_strerror(status, &type, &detail);
	printf("%.*s: %s %s\n", (int)strcspn(call, "("), call, type, detail);
	exit(1);
}
#define MUST(call) must(call, #call)	/* what is before the parenthesis is printed */

static void wrong(const char *what, unsigned long long seen, unsigned long long expected)
{
	printf("%s is 0x%llx, not 0x%llx\n", what, seen, expected);
	exit(1);
}

static const char *event_name(DAT_EVENT_NUMBER number)
{
	switch ((int)number) {
	case DAT_CONNECTION_EVENT_ESTABLISHED: return "ESTABLISHED";
	case DAT_CONNECTION_EVENT_PEER_REJECTED: return "PEER_REJECTED";
	case DAT_CONNECTION_EVENT_NON_PEER_REJECTED: return "NON_PEER_REJECTED";
	case DAT_CONNECTION_EVENT_ACCEPT_COMPLETION_ERROR: return "ACCEPT_COMPLETION_ERROR";
	case DAT_CONNECTION_EVENT_DISCONNECTED: return "DISCONNECTED";
	case DAT_CONNECTION_EVENT_BROKEN: return "BROKEN";
	case DAT_CONNECTION_EVENT_TIMED_OUT: return "TIMED_OUT";
	case DAT_CONNECTION_EVENT_UNREACHABLE: return "UNREACHABLE";
	default: return "another event";
	}
}

static DAT_EVENT next(DAT_EVD_HANDLE evd)
{
	DAT_EVENT event;
	DAT_COUNT more;

	MUST(dat_evd_wait(evd, option.seconds * 1000000, 1, &event, &more));
	return event;
}

static DAT_EVENT expect(DAT_EVENT_NUMBER number)
{
	DAT_EVENT event = next(conn_evd);

	if (event.event_number != number) {
		printf("%s instead of %s\n", event_name(event.event_number), event_name(number));
		exit(1);
	}
	return event;
}

/* --- private data: bytes that differ by place and by message; what the CM adds as padding is not looked at ------ */

static unsigned char *pattern(unsigned char *data, unsigned size, unsigned seed)
{
	unsigned i;

	for (i = 0; i < size; i++)
		data[i] = (unsigned char)(seed + i * 3);
	return data;
}

static void compare(const char *what, const void *data, DAT_COUNT size, unsigned expected, unsigned seed)
{
	unsigned char wanted[256];

	if (size < (DAT_COUNT)expected || !data)
		wrong(what, (unsigned)size, expected);
	if (memcmp(data, pattern(wanted, expected, seed), expected)) {
		printf("%s has other bytes\n", what);
		exit(1);
	}
}

/* --- objects --------------------------------------------------------------------------------------------------- */

static void ep_open(void)
{
	MUST(dat_ep_create(ia, pz, recv_evd, request_evd, conn_evd, NULL, &ep));
}

static void open_all(void)
{
	size_t size = (size_t)option.bytes * (DEPTH + 1);
	DAT_REGION_DESCRIPTION region;
	DAT_RMR_CONTEXT rkey;
	DAT_VLEN length;
	DAT_VADDR address;

	memory = calloc(1, size);
	region.for_va = memory;
	MUST(dat_ia_open(option.provider, 8, &async_evd, &ia));
	MUST(dat_pz_create(ia, &pz));
	MUST(dat_evd_create(ia, 8, DAT_HANDLE_NULL, DAT_EVD_CR_FLAG, &cr_evd));
	MUST(dat_evd_create(ia, 8, DAT_HANDLE_NULL, DAT_EVD_CONNECTION_FLAG, &conn_evd));
	MUST(dat_evd_create(ia, 4 * DEPTH, DAT_HANDLE_NULL, DAT_EVD_DTO_FLAG, &recv_evd));
	MUST(dat_evd_create(ia, 4 * DEPTH, DAT_HANDLE_NULL, DAT_EVD_DTO_FLAG, &request_evd));
	MUST(dat_lmr_create(ia, DAT_MEM_TYPE_VIRTUAL, region, size, pz, DAT_MEM_PRIV_ALL_FLAG, DAT_VA_TYPE_VA,
			    &lmr, &lkey, &rkey, &length, &address));
	ep_open();
}

/* What cannot be freed one by one is a failure, too. */
static void close_all(void)
{
	DAT_EVENT event;

	while (psps)
		MUST(dat_psp_free(psp[--psps]));
	MUST(dat_ep_free(ep));
	while (dat_evd_dequeue(recv_evd, &event) == DAT_SUCCESS)
		;
	while (dat_evd_dequeue(request_evd, &event) == DAT_SUCCESS)
		;
	MUST(dat_lmr_free(lmr));
	MUST(dat_evd_free(recv_evd));
	MUST(dat_evd_free(request_evd));
	MUST(dat_evd_free(conn_evd));
	MUST(dat_evd_free(cr_evd));
	MUST(dat_pz_free(pz));
	MUST(dat_ia_close(ia, DAT_CLOSE_GRACEFUL_FLAG));
	free(memory);
}

static DAT_LMR_TRIPLET place(unsigned index)
{
	return (DAT_LMR_TRIPLET){ .lmr_context = lkey, .segment_length = option.bytes,
				  .virtual_address = (DAT_VADDR)(uintptr_t)(memory + (size_t)index * option.bytes) };
}

static void post_recv(unsigned index)
{
	DAT_DTO_COOKIE cookie = { .as_64 = index };
	DAT_LMR_TRIPLET iov = place(index);

	MUST(dat_ep_post_recv(ep, 1, &iov, cookie, DAT_COMPLETION_DEFAULT_FLAG));
}

/* --- the two halves of a connection ---------------------------------------------------------------------------- */

static void listen_on(DAT_CONN_QUAL qual)
{
	MUST(dat_psp_create(ia, qual, cr_evd, DAT_PSP_CONSUMER_FLAG, &psp[psps]));
	psps++;
}

static void ready(void)
{
	printf("ready\n");
	fflush(stdout);
}

/* A request with the right data for the right qualifier. */
static DAT_CR_HANDLE requested(DAT_CONN_QUAL qual)
{
	DAT_CR_ARRIVAL_EVENT_DATA arrival = next(cr_evd).event_data.cr_arrival_event_data;
	DAT_CR_PARAM param;

	if (arrival.conn_qual != qual)
		wrong("qualifier", arrival.conn_qual, qual);
	MUST(dat_cr_query(arrival.cr_handle, DAT_CR_FIELD_ALL, &param));
	compare("request's data", param.private_data, param.private_data_size, CONNECT_DATA, (unsigned)qual);
	return arrival.cr_handle;
}

static void accept_one(DAT_CONN_QUAL qual)
{
	unsigned char data[ACCEPT_DATA];

	MUST(dat_cr_accept(requested(qual), ep, ACCEPT_DATA, pattern(data, ACCEPT_DATA, 5)));
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
	MUST(dat_ep_connect(ep, (DAT_IA_ADDRESS_PTR)found->ai_addr, qual, option.seconds * 1000000, CONNECT_DATA,
			    pattern(data, CONNECT_DATA, (unsigned)qual), DAT_QOS_BEST_EFFORT,
			    DAT_CONNECT_DEFAULT_FLAG));
	freeaddrinfo(found);
}

static void connect_to(DAT_CONN_QUAL qual)
{
	DAT_CONNECTION_EVENT_DATA data;

	start_connect(qual);
	data = expect(DAT_CONNECTION_EVENT_ESTABLISHED).event_data.connect_event_data;
	compare("answer's data", data.private_data, data.private_data_size, ACCEPT_DATA, 5);
}

static void disconnect(bool first)
{
	if (first)
		MUST(dat_ep_disconnect(ep, DAT_CLOSE_ABRUPT_FLAG));
	expect(DAT_CONNECTION_EVENT_DISCONNECTED);
}

/* --- cases ----------------------------------------------------------------------------------------------------- */

#define QUAL 47000

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

/* Small ones are ports, large ones are mapped to ports the same way by both stacks. */
static void case_quals(void)
{
	static const DAT_CONN_QUAL quals[] = { 45248, 65535, 65536, 0x0AFFAB1E, (1ull << 63) + 5, ~0ull };
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
		MUST(dat_ep_free(ep));
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

/* The server is there, but listens elsewhere; the client's second connection tells it that it may go. */
static void case_nobody(void)
{
	if (!option.host) {
		case_client_ends();
		return;
	}
	start_connect(NOBODY);
	expect(DAT_CONNECTION_EVENT_NON_PEER_REJECTED);
	MUST(dat_ep_reset(ep));
	case_client_ends();
}

/* A connection that cannot come to be: what comes of it, and when. */
static void case_connect(void)
{
	double start = now();
	DAT_EVENT event;

	start_connect(QUAL);
	option.seconds += 20;	/* the event is due when the time is over */
	event = next(conn_evd);
	printf("%s after %.1f s\n", event_name(event.event_number), now() - start);
}

/* --- flow: each message is answered with itself; both sides check every byte -------------------------------------- */

static void ended(DAT_EVENT_NUMBER number)
{
	printf("ended: %s %.1f s after the last answer\n", event_name(number), now() - last_answer);
	close_all();
	printf("closed\n");
	exit(3);
}

/*
 * A host that is gone is missed by those who send to it, not by those who wait: a write of nothing, for which the peer
 * needs no memory.
 */
static void probe(void)
{
	DAT_RMR_TRIPLET nowhere = { .segment_length = 0 };
	DAT_DTO_COOKIE cookie = { .as_64 = 0 };

	MUST(dat_ep_post_rdma_write(ep, 0, NULL, cookie, &nowhere, DAT_COMPLETION_DEFAULT_FLAG));
}

/* A stack may learn of a failed request only from its completion, so these are taken before an end is waited for. */
static void reap_requests(void)
{
	DAT_EVENT event;

	while (dat_evd_dequeue(request_evd, &event) == DAT_SUCCESS)
		;
}

/* The next message. A device that is gone completes nothing, but the connection has an end. */
static unsigned received(void)
{
	double start = now();
	bool probed = false;
	DAT_DTO_COMPLETION_EVENT_DATA done;
	DAT_RETURN status;
	DAT_EVENT event;
	DAT_COUNT more;

	while ((status = dat_evd_wait(recv_evd, 200000, 1, &event, &more)) != DAT_SUCCESS) {
		if (DAT_GET_TYPE(status) != DAT_TIMEOUT_EXPIRED || now() >= start + option.seconds)
			must(status, "dat_evd_wait");
		reap_requests();
		if (dat_evd_dequeue(conn_evd, &event) == DAT_SUCCESS)
			ended(event.event_number);
		if (!probed && now() >= start + 1) {
			probe();
			probed = true;
		}
	}
	done = event.event_data.dto_completion_event_data;
	reap_requests();
	if (done.status != DAT_DTO_SUCCESS)
		ended(next(conn_evd).event_number);
	if (done.transfered_length != option.bytes)
		wrong("length", done.transfered_length, option.bytes);
	return (unsigned)done.user_cookie.as_64;
}

static void send_round(unsigned round)
{
	DAT_LMR_TRIPLET iov = place(DEPTH);
	DAT_DTO_COOKIE cookie = { .as_64 = round };

	pattern(memory + (size_t)DEPTH * option.bytes, option.bytes, round);
	MUST(dat_ep_post_send(ep, 1, &iov, cookie, DAT_COMPLETION_DEFAULT_FLAG));
}

static void receive_round(unsigned round)
{
	unsigned index = received(), i;
	const unsigned char *data = memory + (size_t)index * option.bytes;

	for (i = 0; i < option.bytes; i++)
		if (data[i] != (unsigned char)(round + i * 3))
			wrong("a byte", data[i], (unsigned char)(round + i * 3));
	last_answer = now();
	post_recv(index);
}

static void case_flow(void)
{
	unsigned round;

	for (round = 0; round < DEPTH; round++)
		post_recv(round);
	if (option.host) {
		connect_to(QUAL);
	} else {
		listen_on(QUAL);
		ready();
		accept_one(QUAL);
	}
	last_answer = now();
	for (round = 0; round < option.rounds; round++) {
		if (option.host)
			send_round(round);
		receive_round(round);
		if (!option.host)
			send_round(round);
		if (round == 10) {
			printf("flowing\n");
			fflush(stdout);
		}
	}
	disconnect(option.host != NULL);
	printf("%u rounds\n", round);
}

static const struct {
	const char *name;
	void (*run)(void);
} cases[] = {
	{ "server-ends", case_server_ends }, { "client-ends", case_client_ends }, { "quals", case_quals },
	{ "reject", case_reject }, { "nobody", case_nobody }, { "connect", case_connect }, { "flow", case_flow },
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
	fprintf(stderr, "usage: wire [-P name] [-h host] [-t seconds] [-n rounds] [-b bytes] case\n");
	return 2;
}
