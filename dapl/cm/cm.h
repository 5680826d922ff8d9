/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* A connection manager in the place of librdmacm: the calls of <rdma/rdma_cma.h> that the provider makes,
 * over TCP or over a UD QP, as the socket CM and the UD CM of OFED's dapl do it. It names a port of a verbs
 * device by device and number, and needs no IP over InfiniBand. Addresses are IPv4 addresses, or endpoints as
 * in a message, whose port is that of a service.
 *
 * It differs from librdmacm in this:
 *
 * - A channel belongs to one port; cm_attach sets it before the first identifier is bound. All identifiers of
 *   the channel use that port.
 * - rdma_get_cm_event does the work of the channel and never blocks: EAGAIN if that work produced no event.
 *   The channel's descriptor is readable while there is work or an event.
 * - An identifier owns no QP. The program answers CONNECT_RESPONSE with rdma_establish, as with librdmacm for
 *   such identifiers.
 * - rdma_reject with private data, even of size 0, is a refusal by the program; with NULL it is one by the
 *   connection manager.
 * - If two identifiers listen on one port, the one of RDMA_PS_TCP gets the requests for RC QPs, and the one
 *   of RDMA_PS_UDP, which must be the second, those for UD QPs. The `ud` of the event of such a request holds
 *   the requester's QP and address.
 *
 * Several threads may make calls at once. */
#ifndef CM_CM_H
#define CM_CM_H

#include <netinet/in.h>
#include <stdint.h>
#include <sys/socket.h>
#include <rdma/rdma_cma.h>
#include "dapl/cm/message.h"

#define CM_UD_QKEY	   0x78654321u /* of all UD QPs */
#define CM_DEPTH_UNKNOWN   255	       /* depth of RDMA reads: the peer does not send it */
#define CM_REJECTED_BY_CM  8	       /* status of RDMA_CM_EVENT_REJECTED */
#define CM_REJECTED_BY_APP 28

/* Sets the port of the verbs device behind this channel and the address of its identifiers; `address` is NULL
 * for the UD CM, which makes one. Returns 0 or errno, logged: ENODEV if there is no such device, ENXIO if the
 * device has no such port or, for the UD CM, the port has no LID. */
int cm_attach(struct rdma_event_channel *channel, const char *device, unsigned port,
	      const struct sockaddr *address);

/* Stores the IPv4 address by which the peers of a host know it: that of the interface `netdev`; or, if
 * `netdev` is empty, of the first interface that is up, not the loopback one, and preferably not one of
 * InfiniBand. Returns 0, or EADDRNOTAVAIL or another error, logged. */
int scm_address(const char *netdev, struct sockaddr_storage *address);

#endif
