/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* Common to all tests of dapltest: output, time, events, registered memory, connections. */

#ifndef TOOL_H
#define TOOL_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "test/common/common.h"

/* output.c: progress goes to stdout, failures, by complain(), to stderr, one whole line at a time */
void output_verbose(int level);
void say(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
void detail(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* clock.c */
void wait_limit_set(double seconds);
double wait_limit(void);
void watchdog_start(void);
void watchdog_feed(void);
void watchdog_stop(void);

/* A gate at which threads wait for each other; one that failed fails all. */
struct gate {
	pthread_mutex_t lock;
	pthread_cond_t cond;
	int missing;
	bool broken;
};

void gate_init(struct gate *g, int threads);
void gate_destroy(struct gate *g);
bool gate_pass(struct gate *g, bool ok);

/* event.c */
struct dto {
	DAT_EP_HANDLE ep;
	uint64_t cookie;
	uint32_t length;
	const char *what;
};

bool event_await(DAT_EVD_HANDLE evd, bool poll, const char *what, DAT_EVENT *event);
bool event_await_for_ever(DAT_EVD_HANDLE evd, DAT_EVENT *event);
bool dto_await(DAT_EVD_HANDLE evd, bool poll, const struct dto *want);
bool dto_await_patiently(DAT_EVD_HANDLE evd, const struct dto *want);
bool evd_drain(DAT_EVD_HANDLE evd, int *taken);

/* region.c: registered memory */
struct region {
	unsigned char *base;
	size_t size;
	DAT_LMR_HANDLE lmr;
	DAT_LMR_CONTEXT lkey;
	DAT_RMR_CONTEXT rkey;
};

bool region_create(struct region *r, DAT_IA_HANDLE ia, DAT_PZ_HANDLE pz, size_t size);
bool region_free(struct region *r);
DAT_LMR_TRIPLET region_part(const struct region *r, size_t offset, uint32_t length);

/* link.c, connect.c: an EP with EVDs of its own, and its connection */
struct link {
	DAT_IA_HANDLE ia;
	DAT_EP_HANDLE ep;
	DAT_EVD_HANDLE recv_evd, request_evd, conn_evd, cr_evd;
	DAT_PSP_HANDLE psp;
	DAT_RSP_HANDLE rsp;
	bool poll;	/* poll for completions instead of blocking */
	bool connected; /* after ESTABLISHED and before the end */
};

struct link_shape {
	int recv_events, request_events, other_events;
	bool passive; /* has an EVD for connection requests */
	bool poll;
	const DAT_EP_ATTR *attr;
};

struct target {
	struct sockaddr_storage addr;
	DAT_CONN_QUAL qual;
	DAT_QOS qos;
	const char *greeting; /* private data, or NULL */
	size_t greeting_size;
};

bool link_create(struct link *l, DAT_IA_HANDLE ia, DAT_PZ_HANDLE pz,
		 const struct link_shape *shape);
bool link_free(struct link *l);
bool link_recv(struct link *l, DAT_COUNT segments, DAT_LMR_TRIPLET *iov, uint64_t cookie);
bool link_send(struct link *l, DAT_COUNT segments, DAT_LMR_TRIPLET *iov, uint64_t cookie);
bool link_sent(struct link *l, uint32_t length, uint64_t cookie, const char *what);
bool link_received(struct link *l, uint32_t length, uint64_t cookie, const char *what);

bool link_listen(struct link *l, DAT_CONN_QUAL qual, bool reserved);
bool link_unlisten(struct link *l);
bool link_accept(struct link *l, const DAT_EVENT *request, const char *greeting, size_t size);
bool link_connect(struct link *l, const struct target *to, DAT_EVENT_NUMBER *outcome);
bool link_disconnect(struct link *l, DAT_CLOSE_FLAGS how);

#endif
