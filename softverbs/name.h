/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/*
 * Names of this user. Binding one is an atomic claim. In the abstract socket namespace, closing the last
 * descriptor gives it up, and the scope is the network namespace, like that of IP addresses. With
 * SOFTVERBS_DIR names are sockets in that folder, which is their scope then.
 */
#ifndef SV_NAME_H
#define SV_NAME_H

#include <stdbool.h>
#include <sys/socket.h>

int name_open(void); /* decides where names are, until name_close. 0 or errno */
void name_close(void);
void name_fork_child(void);   /* what is claimed stays the parent's */
bool name_is_in_folder(void); /* peers may be in other network namespaces */

/*
 * A SEQPACKET socket bound to the name, not yet listening; -1 with errno (EADDRINUSE: somebody has
 * it).
 */
int name_claim(const char *name);
/* After EADDRINUSE: a line on the log if the name is another user's. */
void name_log_holder(const char *name);
/* Before the claimed socket is closed. */
void name_give(int fd);

/*
 * A connected non-blocking socket and who listens at the other end; -1 with errno (ECONNREFUSED:
 * nobody of this user listens there; EAGAIN: its queue is full).
 */
int name_connect(const char *name, struct ucred *peer);

/*
 * Calls `visit` with what follows `prefix` for each name in use that starts so. Best effort: /proc
 * may be absent.
 */
void name_scan(const char *prefix, void (*visit)(void *arg, const char *rest), void *arg);

#endif
