/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* Another process of a suite of rdma_cm, which plays a role: in the network namespace of CONFORM_PEER_NET, if set (remote.h). */
#ifndef CONFORM_OTHER_H
#define CONFORM_OTHER_H

#include <sys/types.h>
#include "test/conform/conform.h"

struct other {
	pid_t pid;
	int fd;		   /* a socket; the process has its end as standard input and output */
	union ibv_gid gid; /* by which the process was reached when it reported last */
};

/* Starts this program as `other --act ROLE NUMBER ADDRESS`, the address that of this process's device. */
bool other_start(struct other *other, const char *role, uint16_t number);
/* Returns what the process reports next, or 0 if nothing comes. */
uint16_t other_reported(struct other *other);
void other_kill(struct other *other);

/* In the process: reports that value, or ends. */
void other_report(uint16_t value);

#endif
