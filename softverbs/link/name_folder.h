/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* Names as sockets in a folder (SOFTVERBS_DIR). Unlike an abstract name, such a name remains when its process
 * is killed; the next process that claims, connects to or lists the name removes it. */
#ifndef SV_LINK_NAME_FOLDER_H
#define SV_LINK_NAME_FOLDER_H

#include <stdbool.h>
#include <sys/socket.h>
#include <sys/un.h>

/* Opens and checks the folder, and removes the names of killed processes. 0 or errno; the reason is logged
 * once. */
int sv_folder_open(const char *path);
void sv_folder_close(void);
bool sv_folder_is_open(void);
void sv_folder_fork_child(void); /* the parent keeps the names */

/* Stores the address of a name and returns its size, or 0 if it is too long. */
socklen_t sv_folder_address(struct sockaddr_un *address, const char *name);
/* Binds the socket to the name; replaces one that a killed process left. 0, or -1 with errno. */
int sv_folder_bind(int fd, const char *name);
/* Called after ECONNREFUSED: removes the name if its process was killed. */
void sv_folder_refused(const char *name);
/* Removes the name of the socket `fd`, which must still be open. */
void sv_folder_release(int fd);
/* Like sv_name_scan; also removes the names of killed processes. `visit` may be NULL. */
void sv_folder_scan(const char *prefix, void (*visit)(void *arg, const char *rest), void *arg);

#endif
