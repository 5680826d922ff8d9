/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* Traces refused calls of the data path. */
#ifndef DAPL_TRACED_H
#define DAPL_TRACED_H

#include <dat2/udat.h>
#include <dat2/dat_registry.h>

/*
 * Puts functions into a provider's table that call the data path's own and log what is refused. Without traces the
 * table keeps the data path's own functions, which so cost nothing more.
 */
void traced_put(DAT_PROVIDER *table);

#endif
