/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* From the parameters in dat.conf to the local address that names a device. */
#ifndef OPENIB_ADDRESS_H
#define OPENIB_ADDRESS_H

#include "dapl/openib/openib.h"

/*
 * The local address behind "<netdev | verbs device | address | host> <port>". 0; else logged, and ENODEV when there is
 * none, or why nobody can tell.
 */
int address_find(const char *params, struct sockaddr_storage *address);

#endif
