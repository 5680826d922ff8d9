/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/*
 * Room `base`: what has nothing to do with RDMA: the environment and limits of the log, system calls that not every kernel
 * has, the identity of users, and what an unknown descriptor is.
 *
 * One header for each: settings.h, log_from.h, os.h, identity.h, foreign.h. api.h includes the headers of verbs, lock_rank.h has
 * the order of the short locks. This header marks the functions that the connection manager calls: in the drop-in that is
 * another library.
 * Locks: none that a caller sees.
 */
#ifndef SV_BASE_SHARED_H
#define SV_BASE_SHARED_H

#define SV_SHARED __attribute__((visibility("default")))

#endif
