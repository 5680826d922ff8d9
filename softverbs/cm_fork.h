/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/*
 * What the connection manager does around fork: the runtime's one interest in it besides messages.
 */
#ifndef SV_CM_FORK_H
#define SV_CM_FORK_H

/* Before the runtime's lock is taken, and after it is given back on either side. */
void cm_device_fork_prepare(void);
void cm_device_fork_end(void);

/*
 * In the thread that forks, between the runtime's lock and the links lock. The child forgets ids,
 * ports and channels.
 */
void cm_fork_prepare(void);
void cm_fork_parent(void);
void cm_fork_child(void);

#endif
