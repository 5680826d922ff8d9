/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* The calls of the data path in wrappers, for a process that asks for what they do. */
#ifndef DAPL_WRAPPED_H
#define DAPL_WRAPPED_H

#include <dat2/udat.h>
#include <dat2/dat_registry.h>

/*
 * Puts functions into a provider's table that call the data path's own, defer cancellation for the length of the call, and
 * log what is refused. Without it the table keeps the data path's own functions, which so cost nothing more.
 */
void wrapped_put(DAT_PROVIDER *table);

#endif
