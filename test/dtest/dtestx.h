/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* One run of dtestx: its options, its objects, and its knowledge of the peer. */

#ifndef DTESTX_H
#define DTESTX_H

#include "adapter.h"

enum {
	X_SERVER_QUAL = 31112,
	X_CLIENT_QUAL = 31111, /* with datagrams the client listens as well */
	X_CONNECT_SECONDS = 30,
	X_MAX_EPS = 1000,
	X_UD_EPS = 4,
	IMMED_SERVER = 0x1111,
	IMMED_CLIENT = 0x7777,
	COOKIE_WRITE = 0x9999,
	COOKIE_CAS = 0xd05,
	COOKIE_ADD = 0x7777,
	COOKIE_SEND = 0xaaaa,
	UD_FREE_SINCE = 209, /* the edition with dat_ib_ud_cm_free() and its relatives */
};

/* The buffers of one connection. */
enum buffer {
	BUF_WRITE_FROM,
	BUF_WRITE_TO,
	BUF_MESSAGE,
	BUF_FIRST_RECV,
	BUF_COUNT = 10,
};

struct x_options {
	const char *host;
	const char *provider;
	bool client, ud, many, query, counters, verbose, channel;
	int eps; /* connections */
	uint32_t length;
	double limit;
};

/* Describes a side's buffer to the peer, in network order. */
struct description {
	uint64_t address;
	uint32_t length;
	uint32_t context;
};

struct x_test {
	struct x_options opt;
	struct adapter a;
	struct sockaddr_storage peer_addr; /* family 0: not known yet */
	DAT_EVD_HANDLE cr_evd, conn_evd, dto_evd;
	DAT_PSP_HANDLE psp;
	int ep_count;
	DAT_EP_HANDLE *eps;
	bool *connected;
	struct memory *buffers; /* BUF_COUNT for each connection */
	struct memory atomic;	/* receives the original values of atomics */
	uint32_t buffer_size;
	DAT_IB_ADDR_HANDLE *ahs; /* the peer's datagram endpoints */
	bool *has_ah;
	struct waiter wait;
	DAT_EVENT first; /* a request that came too early */
	bool first_came;
	bool ended; /* the peer has disconnected */

	DAT_RMR_TRIPLET peer; /* the peer's target buffer */
	bool same_make;	      /* the peer is a program of this make */
	bool word_came;	      /* the peer's message for x_barrier */
	int next_recv;	      /* the buffer of the next message */
	uint64_t immed_ns;    /* when the immediate data of both sides had arrived */
};

/* dtestx_options.c */
void x_options_parse(int argc, char **argv, struct x_options *opt);

static inline bool x_is_server(const struct x_test *t)
{
	return !t->opt.client;
}

static inline const char *x_role(const struct x_test *t)
{
	return x_is_server(t) ? "Server" : "Client";
}

static inline struct memory *x_buffer(const struct x_test *t, int connection, int which)
{
	return &t->buffers[connection * BUF_COUNT + which];
}

/* Without -m all datagrams go through one endpoint, on either side. */
static inline int x_index(const struct x_test *t, int connection)
{
	return connection < t->ep_count ? connection : 0;
}

static inline DAT_EP_HANDLE x_ep(const struct x_test *t, int connection)
{
	return t->eps[x_index(t, connection)];
}

/* The number of endpoints that disconnect: datagram endpoints do not. */
static inline struct connections x_connections(struct x_test *t)
{
	return (struct connections){ t->conn_evd, t->eps, t->connected,
				     t->opt.ud ? 0 : t->ep_count };
}

/* dtestx_query.c */
bool x_query(struct x_test *t);

/* dtestx_open.c: the objects of a run */
bool x_open(struct x_test *t);
void x_close(struct x_test *t);
bool x_receives_post(struct x_test *t);
bool x_await(struct x_test *t, DAT_EVD_HANDLE evd, const char *what, double seconds,
	     DAT_EVENT *event);
bool x_transfer_await(struct x_test *t, const char *what, DAT_EVENT *event);

/* dtestx_connect.c */
bool x_meet_server(struct x_test *t);
bool x_listen(struct x_test *t);
bool x_request_await(struct x_test *t, DAT_EVENT *event);
bool x_request_accept(struct x_test *t, DAT_CR_HANDLE cr, int *index);
bool x_connect_one(struct x_test *t, int connection, DAT_CONN_QUAL qual);
bool x_connect(struct x_test *t);
bool x_disconnect(struct x_test *t);

/* dtestx_immed.c */
const DAT_IB_EXTENSION_EVENT_DATA *x_extension(const DAT_EVENT *event);
bool x_completion_check(const DAT_EVENT *event, int type, uint32_t length, uint64_t cookie);
void x_describe(struct x_test *t, int connection);
bool x_descriptions_exchange(struct x_test *t);
bool x_immed(struct x_test *t);
bool x_barrier(struct x_test *t);
bool x_word_came(struct x_test *t, const DAT_EVENT *event);

/* dtestx_atomic.c */
bool x_cmp_swap(struct x_test *t);
bool x_fetch_add(struct x_test *t);

/* dtestx_ud.c */
bool x_ud_connect(struct x_test *t);
bool x_ud_exchange(struct x_test *t);
void x_ud_close(struct x_test *t);

/* dtestx_counters.c */
bool x_counters(struct x_test *t, DAT_HANDLE handle, const char *what, int count);

#endif
