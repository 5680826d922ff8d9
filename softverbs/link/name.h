/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* Names of this user's processes. To bind a name is an atomic claim. In the abstract socket namespace the
 * close of the last descriptor releases a name, and the scope is the network namespace, as for IP addresses.
 * With SOFTVERBS_DIR names are sockets in that folder, which is their scope. */
#ifndef SV_LINK_NAME_H
#define SV_LINK_NAME_H

#include <stdbool.h>
#include <sys/socket.h>
#include "softverbs/base/shared.h"

int sv_name_open(void); /* Decides where names are, until sv_name_close. 0 or errno. */
void sv_name_close(void);
void sv_name_fork_child(void);		   /* the parent keeps its claims */
SV_SHARED bool sv_name_is_in_folder(void); /* peers may be in other network namespaces */

/* Returns a SEQPACKET socket bound to the name and not yet listening, or -1 with errno: EADDRINUSE if the
 * name is in use. */
SV_SHARED int sv_name_claim(const char *name);
/* Called after EADDRINUSE: logs one line if the name belongs to another user. */
SV_SHARED void sv_name_log_holder(const char *name);
/* Called before the claimed socket is closed. */
SV_SHARED void sv_name_release(int fd);

/* Returns a connected non-blocking socket and fills `peer` with the credentials of the listener; or -1 with
 * errno: ECONNREFUSED if no process of this user listens, EAGAIN if the listener's queue is full. */
SV_SHARED int sv_name_connect(const char *name, struct ucred *peer);

/* Calls `visit` for each name in use that begins with `prefix`, with the rest of the name. Best effort: /proc
 * may be absent. */
SV_SHARED void sv_name_scan(const char *prefix, void (*visit)(void *arg, const char *rest),
			    void *arg);

#endif
