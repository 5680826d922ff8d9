/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* The messages between client and server, protocol version 6. */

#ifndef WIRE_H
#define WIRE_H

#include "dapltest.h"

enum {
	MESSAGE_SIZE = 8192, /* of every message on the control connection */
	TABLE_ENTRY = 12,    /* one buffer: its RMR context and address */
	TABLE_SIZE = OPS_MAX * TABLE_ENTRY,
};

struct client_info {
	bool little_endian; /* the byte order of the client's numbers */
	enum test_type type;
	uint32_t eps; /* of all threads */
};

struct server_info {
	bool little_endian;
	uint32_t port; /* the port of the test's first EP */
};

void wire_put_client_info(unsigned char *msg, const struct client_info *info);
bool wire_get_client_info(const unsigned char *msg, struct client_info *info);
void wire_put_server_info(unsigned char *msg, uint32_t port);
bool wire_get_server_info(const unsigned char *msg, struct server_info *info);

void wire_put_transaction(unsigned char *msg, const struct options *opt);
bool wire_get_transaction(const unsigned char *msg, bool little, struct transaction *t);
void wire_put_performance(unsigned char *msg, const struct options *opt);
bool wire_get_performance(const unsigned char *msg, bool little, struct performance *p);
void wire_put_quit(unsigned char *msg, const struct options *opt);

void wire_put_buffer(unsigned char *entry, DAT_RMR_CONTEXT context, DAT_VADDR address);
void wire_get_buffer(const unsigned char *entry, bool little, DAT_RMR_TRIPLET *where);

#endif
