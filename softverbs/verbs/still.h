/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/*
 * Stillness: for a moment no peer and no thread of this process accesses registered memory through the device. Peers wait, as
 * for a receive queue that is being resized; posts leave their requests in the queue; polls find nothing, and where the CQ is
 * armed, the event of what they missed follows.
 */
#ifndef SV_VERBS_STILL_H
#define SV_VERBS_STILL_H

#include <stdbool.h>

/* Engine. False, and all goes on, if something does not stop within a millisecond: a peer that copies may be stopped itself. */
bool sv_still_begin(void);
void sv_still_end(void);

#endif
