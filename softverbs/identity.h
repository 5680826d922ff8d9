/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/*
 * Whether a process or a file belongs to the user of this process, across user namespaces. The
 * kernel shows every user that this process's namespace does not map under one number, the overflow
 * uid (65534); where that number is this process's own too, it proves nothing.
 */
#ifndef SV_IDENTITY_H
#define SV_IDENTITY_H

#include <stdbool.h>
#include <sys/socket.h>

/*
 * The process at the other end of a connected socket: what the kernel says of it, and whether it is
 * of this user. 0, or errno: EACCES when it is another user's or cannot be told from one.
 */
int sv_identity_of_peer(int fd, struct ucred *peer);

/* The same for the owner of an open file or folder (O_PATH will do). 0, or errno as above. */
int sv_identity_of_owner(int fd);

#endif
