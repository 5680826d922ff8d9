/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* Waiting until nobody uses what was just withdrawn. */
#ifndef SV_QUIESCE_H
#define SV_QUIESCE_H

#include <stdbool.h>
#include <stdint.h>

/* How long a process stopped in the middle of a copy may hold up its peers. */
#define QUIESCE_LIMIT (2 * NSEC_PER_SEC)

/*
 * After area_barrier: the initiator connected to QP `index` of this process is not inside a window,
 * or its process is gone. The windows that it enters from now on see what was withdrawn before the
 * barrier.
 */
bool quiesce_is_quiet(uint32_t index);
/* Waits for that; false after QUIESCE_LIMIT. */
bool quiesce_one(uint32_t index);
/* After a withdrawal that concerns all QPs of this process. A QP whose initiator is stuck fails. */
void quiesce_all(void);

#endif
