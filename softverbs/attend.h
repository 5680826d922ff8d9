/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* What links and the runtime call of the rooms above them. */
#ifndef SV_ATTEND_H
#define SV_ATTEND_H

#include "softverbs/link/client.h"

extern const struct sv_link_client sv_data_client;

#endif
