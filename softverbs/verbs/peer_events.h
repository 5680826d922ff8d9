/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* What links and the runtime call of the data path. */
#ifndef SV_VERBS_PEER_EVENTS_H
#define SV_VERBS_PEER_EVENTS_H

#include "softverbs/link/client.h"

extern const struct sv_link_client sv_data_client;
void sv_data_doorbell(void); /* also for links to other hosts */

#endif
