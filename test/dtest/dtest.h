/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* One run of dtest: its options, its DAT objects, and its measurements. */

#ifndef DTEST_H
#define DTEST_H

#include "tool.h"

enum {
	CONN_QUAL = 45248,
	PRIVATE_SIZE = 48,
	MESSAGE_COUNT = 3,
	PING_COUNT = 100,
	READ_COUNT = 4,
	CONNECT_SECONDS = 100,
	IMMEDIATE = 0x7777,
	COOKIE_MESSAGE = 0xaaaa,
	COOKIE_READ = 0x9999,
};

enum kind {
	KIND_FULL,     /* writes, reads and messages */
	KIND_STREAM,   /* -w: writes only */
	KIND_PINGPONG, /* -W, -D: RDMA write ping-pong */
};

struct options {
	enum kind kind;
	const char *host; /* NULL in the server */
	const char *provider;
	bool provider_given;
	uint32_t length;
	int burst, rate, delay, step;
	bool one_way, check, all_sizes, times, verbose;
	enum wait_mode wait;
	int rounds;   /* messages each way */
	int cpu;      /* -1: no processor is chosen */
	double limit; /* seconds that one wait may take; 0: by the amount of data */
	bool channel;
	uint16_t channel_port;
	uint64_t qual;
};

/* Registered memory. */
struct region {
	unsigned char *base;
	size_t size;
	DAT_LMR_HANDLE lmr;
	DAT_LMR_CONTEXT lkey;
	DAT_RMR_CONTEXT rkey;
};

/* Describes to the peer, in network order, the memory that it may write and read. */
struct message {
	uint64_t address;
	uint32_t length;
	uint32_t context;
};

enum timing {
	TIME_OPEN,
	TIME_CLOSE,
	TIME_PZ_CREATE,
	TIME_PZ_FREE,
	TIME_LMR_CREATE,
	TIME_LMR_FREE,
	TIME_EVD_CREATE,
	TIME_EVD_FREE,
	TIME_CNO_CREATE,
	TIME_CNO_FREE,
	TIME_EP_CREATE,
	TIME_EP_FREE,
	TIME_COUNT,
};

struct measured {
	double api_us[TIME_COUNT];
	double connect_us;
	double read_us[READ_COUNT];
	int reads;
	double write_us;
	double ping_us;
	bool wrote, pinged;
	uint32_t *rounds_ns; /* each round trip of the last ping-pong */
	unsigned long connect_polls, write_polls, read_polls;
};

struct session {
	const struct options *opt;
	char provider[PROVIDER_SIZE];
	struct sockaddr_storage server; /* the address for the client; family 0: not known yet */

	DAT_IA_HANDLE ia;
	DAT_EVD_HANDLE async_evd;
	DAT_PZ_HANDLE pz;
	DAT_CNO_HANDLE cno;
	DAT_EVD_HANDLE cr_evd, conn_evd, request_evd, recv_evd;
	DAT_EP_HANDLE ep;
	DAT_PSP_HANDLE psp;
	struct region recv_data, send_data, recv_msg, send_msg;
	unsigned char *want[3]; /* contents to compare with, each twice the length */

	struct sockaddr_storage ia_addr;
	int max_evd_qlen;
	bool has_ib, has_read;
	bool same_make; /* the peer fills its buffers like this program */
	int recv_depth, request_depth;

	struct waiter dto_wait, conn_wait, spin;
	struct message greeting; /* the first message of the peer, which all later ones equal */
	DAT_RMR_TRIPLET peer;
	int next_msg;	/* the message buffer of the next arrival */
	bool connected; /* ESTABLISHED has come */
	bool ended;	/* the end has come */
	bool teardown_failed;

	struct measured m;
};

/* options.c */
void options_parse(int argc, char **argv, struct options *opt);

static inline bool is_server(const struct session *s)
{
	return !s->opt->host;
}

static inline const char *role(const struct session *s)
{
	return is_server(s) ? "SERVER" : "CLIENT";
}

/* session.c: the objects that exist before and after the connection */
bool session_open(struct session *s);
void session_close(struct session *s);
double session_limit(const struct session *s, double bytes);

/* connect.c */
bool session_meet(struct session *s);
bool session_connect(struct session *s);
void session_disconnect(struct session *s, bool failed);
bool session_lost(struct session *s);

/* exchange.c: messages and completions */
bool region_create(struct session *s, struct region *r, size_t size, DAT_MEM_PRIV_FLAGS priv);
void region_free(struct session *s, struct region *r);
bool messages_post(struct session *s);
bool greeting_exchange(struct session *s);
bool message_send(struct session *s);
bool message_await(struct session *s, double bytes);
bool recv_await(struct session *s, uint32_t length, uint64_t cookie, double bytes);
bool request_await(struct session *s, struct waiter *w, uint32_t length, uint64_t cookie);
DAT_LMR_TRIPLET region_part(const struct region *r, size_t offset, uint32_t length);

/* content.c: fills and checks the data areas */
struct content {
	const char *text;
	unsigned int seed;
	int last; /* the value of the last byte, or -1 for that of the others */
};

void content_make(unsigned char *to, uint32_t length, const struct content *c, bool plain);
bool content_same(const unsigned char *got, const unsigned char *want, uint32_t length,
		  const char *what);
bool content_check(struct session *s, const unsigned char *got, const struct content *c,
		   const char *what);
void content_show(const struct session *s, const char *what, const unsigned char *data);
const char *write_text(bool server);
const char *read_text(bool server);
unsigned int write_seed(bool server);
unsigned int read_seed(bool server);

/* transfer.c, read.c, ping.c, pingpong.c: the tests */
bool test_writes(struct session *s);
bool test_writes_immed(struct session *s);
void read_prepare(struct session *s);
bool test_reads(struct session *s);
bool ping_post(struct session *s);
bool test_ping(struct session *s);
bool test_pingpong(struct session *s);

/* report.c */
void report_rounds(const struct session *s, const char *what, uint32_t length, int count,
		   double total_us);
void report_writes(const struct session *s);
void report_times(const struct session *s);

#endif
