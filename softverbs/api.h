/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* The verbs API: what its header declares is exported, everything else of ours is hidden. */
#ifndef SV_API_H
#define SV_API_H

#pragma GCC visibility push(default)
#include <infiniband/verbs.h>
#pragma GCC visibility pop

#endif
