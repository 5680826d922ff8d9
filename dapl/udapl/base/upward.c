/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* The calls from a room to one above it. */
#include "dapl/udapl/base/upward.h"

struct upward upward;
