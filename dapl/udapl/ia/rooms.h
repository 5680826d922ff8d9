/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/*
 * Room `ia`: the adapter itself, above all others: open and close, queries, fork, and what libdat2 calls through.
 *
 * provider.c has the table of the DAT calls, ext_table.c that of the extension operations, wrapped.c the calls of the data
 * path for a process that asks for traces or asynchronous cancellation. rooms.c opens the pool of each kind of object, and fills
 * in the calls upward; it is called once, when the provider is loaded. Closing an IA abruptly frees its objects in the order
 * in which they depend on each other.
 * Locks: the IA's mutex and that of all IAs (base/ia.h); the names that the registry announced have one.
 */
#ifndef DAPL_ROOMS_H
#define DAPL_ROOMS_H

void rooms_open(void);

#endif
