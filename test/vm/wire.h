/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* Common parts of `wire`: one connection, its objects, and how each side connects. */
#ifndef WIRE_H
#define WIRE_H

#include <stdbool.h>
#include <dat2/udat.h>

#define ACCEPT_DATA 160
#define DEPTH	    4
#define QUAL	    47000

extern struct wire_option {
	char *provider;
	const char *host; /* NULL in the server */
	unsigned seconds, rounds, bytes;
} option;

extern struct wire {
	DAT_IA_HANDLE ia;
	DAT_PZ_HANDLE pz;
	DAT_EVD_HANDLE async_evd, conn_evd, cr_evd, recv_evd, request_evd;
	DAT_EP_HANDLE ep;
	DAT_PSP_HANDLE psp[8];
	unsigned psps;
	DAT_LMR_HANDLE lmr;
	DAT_LMR_CONTEXT lkey;
	unsigned char *memory; /* DEPTH receives, then the sends */
} wire;

/* wire_objects.c. A failed expectation ends the program with 1. */
double now(void);
void must(DAT_RETURN status, const char *call);
#define MUST(call) must(call, #call) /* the text before the parenthesis is printed */
void wrong(const char *what, unsigned long long seen, unsigned long long expected);
const char *event_name(DAT_EVENT_NUMBER number);
DAT_EVENT next(DAT_EVD_HANDLE evd);
DAT_EVENT expect(DAT_EVENT_NUMBER number);
unsigned char *pattern(unsigned char *data, unsigned size, unsigned seed);
void compare(const char *what, const void *data, DAT_COUNT size, unsigned expected, unsigned seed);
void ep_open(void);
void open_all(void);
void close_all(void);
DAT_LMR_TRIPLET place(unsigned index);
void post_recv(unsigned index);

/* wire.c */
void listen_on(DAT_CONN_QUAL qual);
void ready(void);
void accept_one(DAT_CONN_QUAL qual);
void connect_to(DAT_CONN_QUAL qual);
void disconnect(bool first);

/* wire_flow.c */
void case_flow(void);
void case_unread(void);
void case_farewell(void);

#endif
