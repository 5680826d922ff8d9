/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/*
 * A hint for programs that use an address of another network namespace, where this process cannot
 * reach a peer.
 */
#ifndef SV_OBJECT_ELSEWHERE_H
#define SV_OBJECT_ELSEWHERE_H

#include "softverbs/base/shared.h"
#include "softverbs/base/api.h"

/*
 * Writes one line to the log, once in a process: when the address is not one of this network
 * namespace and names are not in a folder (SOFTVERBS_DIR). Keeps errno.
 */
SV_SHARED void sv_elsewhere_note(const union ibv_gid *gid);

#endif
