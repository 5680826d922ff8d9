/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* A hint for programs that name an address where no process can be reached from here. */
#ifndef SV_ELSEWHERE_H
#define SV_ELSEWHERE_H

#include "softverbs/api.h"

/*
 * One line on the log, the first time that the address is none of this network namespace and names
 * are not in a folder.
 */
void sv_elsewhere_note(const union ibv_gid *gid);

#endif
