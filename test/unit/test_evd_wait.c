/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* Waits on a device whose CQs have channels alone. */
#define EVD_BLOCKS false
#include "test/unit/evd_waits.h"

UNIT_MAIN("evd_wait", evd_waits)
