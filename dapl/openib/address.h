/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* From the parameters in dat.conf to the local address that names a device. */
#ifndef OPENIB_ADDRESS_H
#define OPENIB_ADDRESS_H

#include "dapl/openib/openib.h"

/*
 * The local address behind "<netdev | verbs device | address | host> <port>". Returns 0, or an error that it has logged:
 * ENODEV for an unknown name, ENXIO for a port that the device does not have, EADDRNOTAVAIL for a port without an IP
 * address, or what the system returned.
 */
int address_find(const char *params, struct sockaddr_storage *address);

#endif
