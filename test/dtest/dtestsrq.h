/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* One run of dtestsrq: bursts of messages over several connections that share a receive queue. */

#ifndef DTESTSRQ_H
#define DTESTSRQ_H

#include "adapter.h"

enum {
	SRQ_QUAL = 45248,
	SRQ_MAX = 100, /* connections, messages in a burst */
	HEADER_SIZE = 12,
	HEADER_CLIENT = 0x55,
	HEADER_SERVER = 0xaa,
};

struct srq_options {
	const char *host; /* NULL without a lid: in the server */
	const char *provider;
	int connections, burst, bursts, qual;
	uint32_t length; /* 0: the path's MTU */
	bool srq, ud, verbose;
	uint32_t qpn, lid; /* address of the server in place of a host */
	double limit;
};

/* The header of a message, in network order; a message may be shorter. */
struct header {
	unsigned char kind, unused[3];
	uint32_t ep, number;
};

enum peer_make { MAKE_UNKNOWN, MAKE_SAME, MAKE_OTHER };

struct srq_test {
	struct srq_options opt;
	struct adapter a;
	struct sockaddr_storage server;
	DAT_EVD_HANDLE cr_evd, conn_evd, request_evd, recv_evd;
	DAT_SRQ_HANDLE srq;
	DAT_PSP_HANDLE psp;
	int ep_count; /* the datagram client needs only one endpoint */
	DAT_EP_HANDLE eps[SRQ_MAX];
	bool connected[SRQ_MAX];
	DAT_IB_ADDR_HANDLE ahs[SRQ_MAX];
	uint32_t received[SRQ_MAX]; /* number of the last message of each connection */
	struct memory recv, send;
	uint32_t recv_size; /* bytes of one receive buffer */
	bool sending[SRQ_MAX * SRQ_MAX];
	enum peer_make make;
	struct waiter wait;
};

/* dtestsrq_options.c */
void srq_options_parse(int argc, char **argv, struct srq_options *opt);

static inline bool srq_is_server(const struct srq_test *t)
{
	return !t->opt.host && !t->opt.lid;
}

static inline const char *srq_role(const struct srq_test *t)
{
	return srq_is_server(t) ? "SERVER" : "CLIENT";
}

static inline int srq_slots(const struct srq_test *t)
{
	return t->opt.connections * t->opt.burst;
}

/* Connection i on this side: datagrams of all connections go through one endpoint. */
static inline DAT_EP_HANDLE srq_ep(const struct srq_test *t, int i)
{
	return t->eps[i < t->ep_count ? i : 0];
}

/* The number of endpoints that disconnect: datagram endpoints do not. */
static inline struct connections srq_connections(struct srq_test *t)
{
	return (struct connections){ t->conn_evd, t->eps, t->connected,
				     t->opt.ud ? 0 : t->ep_count };
}

/* dtestsrq_open.c: the objects of a run */
bool srq_open(struct srq_test *t);
void srq_close(struct srq_test *t);
bool recv_post(struct srq_test *t, DAT_EP_HANDLE ep, int slot);

/* dtestsrq_connect.c */
bool srq_accept_all(struct srq_test *t);
bool srq_connect_all(struct srq_test *t);
bool srq_disconnect_all(struct srq_test *t);

/* dtestsrq_exchange.c */
bool srq_exchange(struct srq_test *t);

#endif
