/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* Helpers for suites of endpoints and connections: an open IA, two ends, and checks of events. */
#ifndef EP_UTIL_H
#define EP_UTIL_H

#include <netinet/in.h>
#include <dat2/udat.h>
#include "test/unit/unit.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
/* An error status with a subtype, and one without. */
#define E(type, subtype) \
	((DAT_RETURN)(DAT_CLASS_ERROR | (DAT_RETURN)DAT_##type | (DAT_RETURN)DAT_##subtype))
#define E0(type) ((DAT_RETURN)(DAT_CLASS_ERROR | (DAT_RETURN)DAT_##type))

/*
 * OK: the call succeeds. MUST: the same, and a failure ends the test. IS: the call returns
 * `status`.
 */
#define OK(call)	 CU_ASSERT_EQUAL(call, DAT_SUCCESS)
#define MUST(call)	 CU_ASSERT_EQUAL_FATAL(call, DAT_SUCCESS)
#define IS(call, status) CU_ASSERT_EQUAL(call, (DAT_RETURN)(status))

#define PATIENCE (UNIT_PATIENCE * 1000u) /* in microseconds */
#define BUFFER	 65536

struct env {
	DAT_IA_HANDLE ia;
	DAT_EVD_HANDLE async, cr;
	DAT_PZ_HANDLE pz;
	DAT_IA_ADDRESS_PTR address;
	DAT_PSP_HANDLE psp; /* set by env_listen */
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

/*
 * env_close closes with DAT_CLOSE_GRACEFUL_FLAG, which fails if the test has left an object open.
 */
void env_open(struct env *env);
void env_close(struct env *env);
/* Listens on a connection qualifier that no other process uses. */
void env_listen(struct env *env);
DAT_EVD_HANDLE evd_open(struct env *env, DAT_COUNT qlen, DAT_EVD_FLAGS flags);
void evd_close(DAT_EVD_HANDLE evd);

/* Creates the end's EVDs and EP; a NULL `attr` means the default attributes. */
void end_open(struct env *env, struct end *end, const DAT_EP_ATTR *attr);
void end_close(struct end *end);
/* Frees the EP alone, so that the test can check what the EVDs still hold. */
void end_free_ep(struct end *end);

/*
 * Waits for the next event of the EVD; returns false and fails the test if there is none within the
 * deadline.
 */
bool event_next(DAT_EVD_HANDLE evd, DAT_EVENT *event);
/* The next event has this number and this EP, and carries no private data. */
void expect(DAT_EVD_HANDLE evd, DAT_EVENT_NUMBER number, DAT_EP_HANDLE ep);
/* The EVD is empty. The test first frees or resets the EP, so that no later event can arrive. */
void expect_quiet(DAT_EVD_HANDLE evd);
/* The next event is a DTO completion of this EP with this cookie and status. */
void expect_dto(DAT_EVD_HANDLE evd, DAT_EP_HANDLE ep, uint64_t cookie,
		DAT_DTO_COMPLETION_STATUS status);
DAT_EP_STATE state_of(DAT_EP_HANDLE ep);

/* Connection steps; except for try_connect, each fails the test if it does not succeed. */
DAT_RETURN try_connect(struct end *end, DAT_TIMEOUT timeout);
void start_connect(struct end *end);
DAT_CR_HANDLE request_next(struct env *env);
void connect_pair(struct end *active, struct end *passive);
/* also takes both DISCONNECTED events */
void disconnect_pair(struct end *first, struct end *second);

/* Events of DAT 1.2 do not name their operation. */
static inline bool is_operation(const DAT_DTO_COMPLETION_EVENT_DATA *dto, DAT_DTOS operation)
{
#ifdef TEST_ONE
	(void)dto;
	(void)operation;
	return true;
#else
	return dto->operation == operation;
#endif
}

DAT_LMR_TRIPLET segment(struct env *env, size_t offset, DAT_SEG_LENGTH length);
DAT_RETURN try_recv(struct end *end, uint64_t cookie);
DAT_RETURN try_send(struct end *end, uint64_t cookie, DAT_COMPLETION_FLAGS flags);
DAT_RETURN try_write(struct end *end, uint64_t cookie, DAT_RMR_CONTEXT rkey);
void post_recvs(struct end *end, unsigned count);      /* with cookies 0, 1, ... */
void message_passes(struct end *from, struct end *to); /* into a receive that the call posts */

#endif
