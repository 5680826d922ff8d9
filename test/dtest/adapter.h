/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/*
 * Common parts of dtestsrq, dtestx and dtestcm: options, an open adapter, requests and connections.
 */

#ifndef ADAPTER_H
#define ADAPTER_H

#include "tool.h"

enum {
	SERVER_SECONDS = 600, /* seconds that a server waits for its first client */
	CONNECT_SECONDS_MAX = 100,
	PART_SECONDS = 60, /* seconds for any other wait, unless --timeout is given */
	GRH_SIZE = 40,	   /* precedes every datagram */
};

/* option.c: an invalid command line ends the program with its usage */
void option_usage(const char *usage) __attribute__((noreturn));
/* usage was asked for, so the exit status is 0 */
void option_help(const char *usage) __attribute__((noreturn));
long long option_number(const char *text, long long least, long long most, const char *usage);
double option_seconds(const char *text, const char *usage);
const char *option_provider(const char *text, const char *usage);

enum call_kind {
	CALL_OPEN,
	CALL_CLOSE,
	CALL_PZ_CREATE,
	CALL_PZ_FREE,
	CALL_LMR_CREATE,
	CALL_LMR_FREE,
	CALL_EVD_CREATE,
	CALL_EVD_FREE,
	CALL_EP_CREATE,
	CALL_EP_FREE,
	CALL_KINDS,
};

/* An open IA and its PZ, the duration of calls, and whether all objects could be freed. */
struct adapter {
	char provider[PROVIDER_SIZE];
	double limit; /* seconds that one wait may take; 0 for the default */
	bool verbose;
	DAT_IA_HANDLE ia;
	DAT_EVD_HANDLE async_evd;
	DAT_PZ_HANDLE pz;
	struct sockaddr_storage addr;
	DAT_IA_ATTR attr;
	const DAT_NAMED_ATTR *named; /* the provider's, valid while the IA is open */
	int named_count;
	double took_us[CALL_KINDS];
	int calls[CALL_KINDS];
	bool failed; /* something could not be freed */
};

/* Registered memory. */
struct memory {
	unsigned char *base;
	DAT_LMR_HANDLE lmr;
	DAT_LMR_CONTEXT lkey;
	DAT_RMR_CONTEXT rkey;
};

/* adapter.c */
void adapter_name(struct adapter *a, const char *provider);
bool adapter_open(struct adapter *a, uint64_t qual);
void adapter_close(struct adapter *a);
double adapter_limit(const struct adapter *a, double usual);
void adapter_tell(const struct adapter *a, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
bool adapter_did(struct adapter *a, enum call_kind kind, uint64_t start, DAT_RETURN ret,
		 const char *call);
void adapter_freed(struct adapter *a, DAT_RETURN ret, const char *call);
const char *named_find(const DAT_NAMED_ATTR *named, int count, const char *name);
bool adapter_has(const struct adapter *a, const char *name);
bool evd_create(struct adapter *a, int qlen, DAT_EVD_FLAGS flags, DAT_EVD_HANDLE *evd);
void evd_free(struct adapter *a, DAT_EVD_HANDLE *evd);
bool memory_create(struct adapter *a, struct memory *m, size_t size, int privileges);
void memory_free(struct adapter *a, struct memory *m);
DAT_LMR_TRIPLET memory_part(const struct memory *m, size_t offset, uint32_t length);
void ep_free(struct adapter *a, DAT_EP_HANDLE *ep);
void psp_free(struct adapter *a, DAT_PSP_HANDLE *psp);
void async_check(struct adapter *a);

/* meet.c: two programs find each other, connect and disconnect */
enum met { MET_FAILED, MET_CHANNEL, MET_REQUEST };

struct meeting {
	const char *said; /* the line that scripts wait for */
	DAT_EVD_HANDLE cr_evd;
	bool both_ways; /* the client sends its address, too */
	struct channel_news client;
};

enum met meet_client(struct adapter *a, struct meeting *m, DAT_EVENT *event);
bool request_check(const DAT_EVENT *event, bool ud, DAT_CONN_QUAL qual, DAT_PSP_HANDLE psp);
bool established_check(const DAT_EVENT *event, bool ud);
bool disconnected_check(const DAT_EVENT *event);
bool index_read(const void *data, int size, int limit, int *index);

/* The connections of a run, with the EVD that reports their end. */
struct connections {
	DAT_EVD_HANDLE evd;
	const DAT_EP_HANDLE *eps;
	bool *connected;
	int count;
};

bool transfer_await(struct adapter *a, struct waiter *w, DAT_EVD_HANDLE evd,
		    const struct connections *c, const char *what, DAT_EVENT *event);
void connections_end(struct adapter *a, const struct connections *c);

/* pattern.c: contents that identify a peer of this make */
enum pattern_verdict { PATTERN_SAME, PATTERN_OTHER, PATTERN_WRONG };

void pattern_fill(unsigned char *to, uint32_t length, unsigned int seed);
enum pattern_verdict pattern_check(const unsigned char *got, uint32_t length, unsigned int seed);

#endif
