/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/*
 * Names as sockets in a folder (SOFTVERBS_DIR). Unlike abstract ones they stay behind when their process is
 * killed; the next process that claims, asks for or lists such a name removes it.
 */
#ifndef SV_NAME_FOLDER_H
#define SV_NAME_FOLDER_H

#include <stdbool.h>
#include <sys/socket.h>
#include <sys/un.h>

/* Opens and checks the folder, and removes what killed processes left there. 0 or errno; the reason is logged once. */
int folder_open(const char *path);
void folder_close(void);
bool folder_is_open(void);
void folder_fork_child(void); /* the names stay the parent's */

/* The address of a name and its size; 0 when it is too long. */
socklen_t folder_address(struct sockaddr_un *address, const char *name);
/* Binds the socket to the name, in place of one that a killed process left. 0, or -1 with errno. */
int folder_bind(int fd, const char *name);
/* No process listens there: removes the name if that is because its process was killed. */
void folder_refused(const char *name);
/* Removes the name that the socket is bound to. The descriptor is still open. */
void folder_give(int fd);
/* As name_scan; removes what killed processes left. `visit` may be NULL. */
void folder_scan(const char *prefix, void (*visit)(void *arg, const char *rest), void *arg);

#endif
