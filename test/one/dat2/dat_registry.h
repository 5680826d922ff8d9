/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* Used in the place of <dat2/dat_registry.h>; see udat.h. */
#include <dat/dat_registry.h>
