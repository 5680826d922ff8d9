/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* For suites of endpoints and connections: an open IA, two ends, and what is expected of events. */
#ifndef EP_UTIL_H
#define EP_UTIL_H

#include <netinet/in.h>
#include <dat2/udat.h>
#include "test/unit/unit.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
/* A failure with a subtype, and one without. */
#define E(type, subtype) \
	((DAT_RETURN)(DAT_CLASS_ERROR | (DAT_RETURN)DAT_##type | (DAT_RETURN)DAT_##subtype))
#define E0(type) ((DAT_RETURN)(DAT_CLASS_ERROR | (DAT_RETURN)DAT_##type))

/* The call succeeds; the rest of the test is pointless if it does not; it returns this. */
#define OK(call)	 CU_ASSERT_EQUAL(call, DAT_SUCCESS)
#define MUST(call)	 CU_ASSERT_EQUAL_FATAL(call, DAT_SUCCESS)
#define IS(call, status) CU_ASSERT_EQUAL(call, (DAT_RETURN)(status))

#define PATIENCE (UNIT_PATIENCE * 1000u) /* microseconds: for what must happen */
#define BUFFER	 65536

struct env {
	DAT_IA_HANDLE ia;
	DAT_EVD_HANDLE async, cr;
	DAT_PZ_HANDLE pz;
	DAT_IA_ADDRESS_PTR address;
	DAT_PSP_HANDLE psp; /* after env_listen */
	DAT_CONN_QUAL qual;
	char *memory; /* BUFFER bytes, registered */
	DAT_LMR_HANDLE lmr;
	DAT_LMR_CONTEXT lkey;
	DAT_RMR_CONTEXT rkey;
};

struct end {
	struct env *env;
	DAT_EVD_HANDLE conn, recv, request;
	DAT_EP_HANDLE ep;
};

/* Everything that is opened is closed, gracefully: what a test leaves behind fails it. */
void env_open(struct env *env);
void env_close(struct env *env);
void env_listen(struct env *env); /* on a qualifier that nobody else has */
DAT_EVD_HANDLE evd_open(struct env *env, DAT_COUNT qlen, DAT_EVD_FLAGS flags);
void evd_close(DAT_EVD_HANDLE evd);

/* EVDs of its own, an EP with default attributes unless `attr` says other ones. */
void end_open(struct env *env, struct end *end, const DAT_EP_ATTR *attr);
void end_close(struct end *end);
void end_free_ep(struct end *end); /* before the EVDs, to look at what they hold then */

/* Waits for the next event; false with a failure noted when none comes. */
bool event_next(DAT_EVD_HANDLE evd, DAT_EVENT *event);
/* The next event is this one, of this EP, and carries no private data. */
void expect(DAT_EVD_HANDLE evd, DAT_EVENT_NUMBER number, DAT_EP_HANDLE ep);
/* Nothing is queued. What could still come is kept out by freeing or resetting the EP first. */
void expect_quiet(DAT_EVD_HANDLE evd);
/* The completion that comes next. */
void expect_dto(DAT_EVD_HANDLE evd, DAT_EP_HANDLE ep, uint64_t cookie,
		DAT_DTO_COMPLETION_STATUS status);
DAT_EP_STATE state_of(DAT_EP_HANDLE ep);

/* Connection steps; each fails the test when it does not succeed. */
DAT_RETURN try_connect(struct end *end, DAT_TIMEOUT timeout);
void start_connect(struct end *end);
DAT_CR_HANDLE request_next(struct env *env);
void connect_pair(struct end *active, struct end *passive);
void disconnect_pair(struct end *first, struct end *second); /* both endings are taken */

DAT_LMR_TRIPLET segment(struct env *env, size_t offset, DAT_SEG_LENGTH length);
DAT_RETURN try_recv(struct end *end, uint64_t cookie);
DAT_RETURN try_send(struct end *end, uint64_t cookie, DAT_COMPLETION_FLAGS flags);
DAT_RETURN try_write(struct end *end, uint64_t cookie, DAT_RMR_CONTEXT rkey);
void post_recvs(struct end *end, unsigned count);      /* cookies 0, 1, ... */
void message_passes(struct end *from, struct end *to); /* to a receive of its own */

#endif
