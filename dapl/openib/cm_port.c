/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* Common to both connection managers of dapl/cm: finding a port by its verbs device and number, private data sizes. */
#include <errno.h>
#include <stdio.h>
#include "dapl/openib/cm_port.h"

int cm_port_parse(const char *params, struct ib_place *place)
{
	int end = 0;

	if (sscanf(params, "%63s %i %n", place->device, (int *)&place->port, &end) == 2 &&
	    !params[end])
		return 0;
	log_at(LOG_ERROR,
	       "'%s': parameters are a verbs device, a blank, and the number of its port", params);
	return ENODEV;
}

void cm_port_limits(struct ib_attr *attr)
{
	attr->max_private_connect = CM_DATA;
	attr->max_private_accept = CM_DATA;
	attr->max_private_reject = CM_DATA;
	attr->max_private_resolve = attr->datagrams ? CM_DATA : 0;
	attr->max_private_resolved = attr->max_private_resolve;
}
