/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* The attributes of an EP for datagrams. */
#ifndef DATAGRAM_EP_H
#define DATAGRAM_EP_H

#include <dat2/dat_ib_extensions.h>

static inline DAT_EP_ATTR datagram_attr(void)
{
	return (DAT_EP_ATTR){
		.service_type = (DAT_SERVICE_TYPE)DAT_IB_SERVICE_TYPE_UD,
		.max_message_size = 4096,
		.qos = DAT_QOS_BEST_EFFORT,
		.recv_completion_flags = DAT_COMPLETION_EVD_THRESHOLD_FLAG,
		.request_completion_flags = DAT_COMPLETION_EVD_THRESHOLD_FLAG,
		.max_recv_dtos = 8,
		.max_request_dtos = 8,
		.max_recv_iov = 2,
		.max_request_iov = 2,
	};
}

#endif
