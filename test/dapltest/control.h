/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* The connection over which a client requests a test, and the tests behind it. */

#ifndef CONTROL_H
#define CONTROL_H

#include "wire.h"

enum { CONTROL_RECVS = 2 };

struct control {
	DAT_PZ_HANDLE pz;
	struct link link;
	struct region memory; /* CONTROL_RECVS receive buffers and one send buffer */
	DAT_EP_ATTR attr;     /* the adapter's default attributes of an EP */
	bool armed;	      /* receives are posted */
	int next;	      /* the buffer of the next message */
};

/* control.c */
bool control_create(struct control *c, DAT_IA_HANDLE ia, int events, bool passive);
bool control_free(struct control *c);
bool control_arm(struct control *c, int recvs);
/* returns a cleared message, to be filled and sent */
unsigned char *control_message(struct control *c);
bool control_send(struct control *c, const char *what);
const unsigned char *control_receive(struct control *c, bool patiently, const char *what);
bool control_reset(struct control *c);

/* A test as one side sees it. */
struct place {
	DAT_IA_HANDLE ia;
	bool server;
	bool peer_little;	      /* the byte order of the peer's numbers */
	struct sockaddr_storage peer; /* the client: the server's address */
	uint32_t port;		      /* the port of the test's first EP */
	DAT_QOS qos;
	DAT_EP_ATTR attr;
	struct gate *ready; /* the server calls it when clients can connect, or after a failure */
};

/* transaction.c, performance.c: the whole test, on either side */
bool transaction_run(const struct place *place, const struct transaction *t);
bool performance_run(const struct place *place, const struct performance *p);

#endif
