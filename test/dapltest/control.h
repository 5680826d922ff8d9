/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* The connection over which a test is asked for, and the tests behind it. */

#ifndef CONTROL_H
#define CONTROL_H

#include "wire.h"

enum { CONTROL_RECVS = 2 };

struct control {
	DAT_PZ_HANDLE pz;
	struct link link;
	struct region memory; /* CONTROL_RECVS messages to be received, one to be sent */
	DAT_EP_ATTR attr;     /* what the adapter gives to an EP by default */
	bool armed;	      /* receives are posted */
	int next;	      /* the one that the next message will fill */
};

/* control.c */
bool control_create(struct control *c, DAT_IA_HANDLE ia, int events, bool passive);
bool control_free(struct control *c);
bool control_arm(struct control *c, int recvs);
unsigned char *control_message(struct control *c); /* cleared, to be filled and sent */
bool control_send(struct control *c, const char *what);
const unsigned char *control_receive(struct control *c, bool patiently, const char *what);
bool control_reset(struct control *c);

/* A test in the view of one side. */
struct place {
	DAT_IA_HANDLE ia;
	bool server;
	bool peer_little;	      /* the order in which the peer writes numbers */
	struct sockaddr_storage peer; /* the client: where the server is */
	uint32_t port;		      /* the first one for EPs of the test */
	DAT_QOS qos;
	DAT_EP_ATTR attr;
	struct gate *ready; /* the server: clients can connect, or never will */
};

/* transaction.c, performance.c: the whole test, on either side */
bool transaction_run(const struct place *place, const struct transaction *t);
bool performance_run(const struct place *place, const struct performance *p);

#endif
