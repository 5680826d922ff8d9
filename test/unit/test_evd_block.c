/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* Waits on a device that lets a thread sleep on a CQ without its channel. */
#define EVD_BLOCKS true
#include "test/unit/evd_waits.h"

UNIT_MAIN("evd_block", evd_waits)
