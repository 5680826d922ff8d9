/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* One run of dtestcm: many connections made in bursts, then all of them ended. */

#ifndef DTESTCM_H
#define DTESTCM_H

#include "adapter.h"

enum {
	CM_QUAL = 45248,
	CM_PRIVATE_SIZE = 48,
	CM_MAX = 100000,
};

struct cm_options {
	const char *host; /* NULL in the server */
	const char *provider;
	bool provider_given;
	int connections, burst, delay, qual;
	bool many_ports, ud, verbose, channel;
	enum wait_mode wait;
	double limit;
};

struct cm_test {
	struct cm_options opt;
	struct adapter a;
	struct sockaddr_storage server;
	DAT_EVD_HANDLE cr_evd, conn_evd, request_evd, recv_evd;
	DAT_PSP_HANDLE *psps; /* one, or one for each connection of a burst */
	int psp_count;
	DAT_EP_HANDLE *eps;
	bool *connected;
	struct waiter wait;
	DAT_EVENT first; /* a request that came too early */
	bool first_came;
	double connect_us; /* the time from request to established, over all bursts */
};

/* dtestcm_options.c */
void cm_options_parse(int argc, char **argv, struct cm_options *opt);

static inline bool cm_is_server(const struct cm_test *t)
{
	return !t->opt.host;
}

/* dtestcm_open.c: the objects of a run */
bool cm_open(struct cm_test *t);
void cm_close(struct cm_test *t);
int cm_ep_find(const struct cm_test *t, DAT_EP_HANDLE ep);

/* dtestcm_connect.c */
bool cm_listen(struct cm_test *t);
bool cm_accept_all(struct cm_test *t);
bool cm_connect_all(struct cm_test *t);
bool cm_disconnect_all(struct cm_test *t);

#endif
