/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* Waits until no thread and no peer uses an object that was just withdrawn. */
#ifndef SV_OBJECT_QUIESCE_H
#define SV_OBJECT_QUIESCE_H

#include <stdbool.h>
#include <stdint.h>

/* Nanoseconds that a process which stopped in the middle of a copy may delay its peers. */
#define QUIESCE_LIMIT (2 * NSEC_PER_SEC)

/*
 * After sv_area_barrier: true if the initiator connected to QP `index` of this process is not
 * between epoch_enter and epoch_leave, or its process is dead. Each later epoch_enter sees the
 * withdrawal that preceded the barrier.
 */
bool sv_quiesce_is_done(uint32_t index);
/* Waits until that is true. False after QUIESCE_LIMIT. */
bool sv_quiesce_one(uint32_t index);
/*
 * The same for all QPs of this process, with the barrier. A QP fails if its initiator does not
 * leave in time.
 */
void sv_quiesce_all(void);
/* Waits for the polls that run now. The caller holds no lock. */
void sv_quiesce_polls(void);

#endif
