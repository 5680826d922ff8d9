/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* Common to the connection managers of dapl/cm: they name a port of a verbs device, and use the same messages. */
#ifndef OPENIB_CM_PORT_H
#define OPENIB_CM_PORT_H

#include "dapl/cm/cm.h"
#include "dapl/openib/openib.h"

/* Parses "<verbs device> <port>" into `place`, except for the address. Returns 0, or ENODEV, logged. */
int cm_port_parse(const char *params, struct ib_place *place);
void cm_port_limits(struct ib_attr *attr);

#endif
