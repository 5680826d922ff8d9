/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* The connection manager of rdma-core (rdma_cm): addresses and ports are those of IP. */
#include <arpa/inet.h>
#include "dapl/openib/address.h"
#include "dapl/openib/openib.h"

/* Compatible with OFED's dapl. */
static uint16_t cm_rdmacm_qual_port(DAT_CONN_QUAL qual)
{
	return (uint16_t)(qual > 65535 ? qual % 32001 + 33534 : qual);
}

static DAT_CONN_QUAL cm_rdmacm_port_qual(uint16_t port)
{
	return port;
}

static uint16_t cm_rdmacm_port_get(const struct sockaddr_storage *address)
{
	if (address->ss_family == AF_INET6)
		return ntohs(((const struct sockaddr_in6 *)address)->sin6_port);
	return ntohs(((const struct sockaddr_in *)address)->sin_port);
}

static void cm_rdmacm_port_set(struct sockaddr_storage *address, uint16_t port)
{
	if (address->ss_family == AF_INET6)
		((struct sockaddr_in6 *)address)->sin6_port = htons(port);
	else
		((struct sockaddr_in *)address)->sin_port = htons(port);
}

/* InfiniBand CM messages less rdma_cm's own header; iWARP has 8-bit lengths. */
static void cm_rdmacm_limits(struct ib_attr *attr)
{
	attr->max_private_connect = attr->iwarp ? 255 : 56;
	attr->max_private_accept = attr->iwarp ? 255 : 196;
	attr->max_private_reject = attr->iwarp ? 255 : 148;
	if (!attr->datagrams)
		return;
	attr->max_private_resolve = 180 - IB_UD_HEADER;
	attr->max_private_resolved = 136;
}

static int cm_rdmacm_find(const char *params, struct ib_place *place)
{
	return address_find(params, &place->address);
}

const struct ib_cm_kind ib_cm = {
	.name = "CMA",
	.qual_port = cm_rdmacm_qual_port,
	.port_qual = cm_rdmacm_port_qual,
	.port_get = cm_rdmacm_port_get,
	.port_set = cm_rdmacm_port_set,
	.reject_header = 4,
	.ud_header = IB_UD_HEADER,
	.ud_qkey = RDMA_UDP_QKEY,
	.limits = cm_rdmacm_limits,
	.find = cm_rdmacm_find,
	.unknown = DAT_ERROR(DAT_INVALID_ADDRESS, 0),
};
