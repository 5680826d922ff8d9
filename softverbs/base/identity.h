/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* Whether a process or a file belongs to the user of this process, across user namespaces. The kernel shows
 * all users that this process's namespace does not map as one number, the overflow uid (65534). If that
 * number is this process's own uid too, it proves nothing. */
#ifndef SV_BASE_IDENTITY_H
#define SV_BASE_IDENTITY_H

#include <stdbool.h>
#include <sys/socket.h>
#include "softverbs/base/shared.h"

/* Fills `peer` with the kernel's credentials of the process at the other end of a connected socket. Returns 0
 * if it belongs to this user, else an errno: EACCES if it belongs to another user or may do so. */
SV_SHARED int sv_identity_of_peer(int fd, struct ucred *peer);

/* The same for the owner of an open file or folder; an O_PATH descriptor is enough. 0, or errno as above. */
int sv_identity_of_owner(int fd);

#endif
