/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* A connection request: what an endpoint that is reserved or created for it reads of it. The calls are in room sp. */
#ifndef DAPL_CR_H
#define DAPL_CR_H

#include "dapl/udapl/ep/ep.h"

struct dapl_cr {
	struct obj obj;
	struct ib_conn *conn; /* owned until accepted, rejected or destroyed */
	/* the attributes that dat_cr_query returns; points into this object */
	DAT_CR_PARAM param;
	struct dapl_ep *ep; /* the EP that came with the request; valid while ep->cr is this CR */
	bool tentative;	    /* that EP was created for this request */
	bool datagrams;	    /* the requester is an endpoint for datagrams */
	DAT_COMM comm;	    /* the address of its CSP */
	struct sockaddr_storage remote;
	uint8_t responder_resources, initiator_depth;
	unsigned char private_data[EP_PRIVATE_DATA_MAX]; /* the consumer may write into it */
};

#endif
