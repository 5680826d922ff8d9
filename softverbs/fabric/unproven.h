/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* Links that other hosts began, and that have not proven the key: they may be of strangers. All in the engine. */
#ifndef SV_FABRIC_UNPROVEN_H
#define SV_FABRIC_UNPROVEN_H

#include "softverbs/fabric/link.h"

void sv_unproven_add(struct fabric_link *link);
void sv_unproven_remove(struct fabric_link *link);
bool sv_unproven_has_room(void); /* for one more */
/* One that has said nothing for so long that a peer would have; NULL if there is none. */
struct fabric_link *sv_unproven_silent(void);
void sv_unproven_forget(void); /* in the child of a fork */

#endif
