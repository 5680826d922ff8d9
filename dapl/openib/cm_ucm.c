/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* The UD CM (dapl/cm): names a port by its verbs device; the port's address is that of the CM's QP. */
#include "dapl/openib/cm_port.h"

/* Compatible with OFED's dapl, modulo 2^16. */
static uint16_t qual_port(DAT_CONN_QUAL qual)
{
	return (uint16_t)qual;
}

static DAT_CONN_QUAL port_qual(uint16_t port)
{
	return port;
}

static uint16_t port_get(const struct sockaddr_storage *address)
{
	struct cm_endpoint endpoint;

	cm_endpoint_read(&endpoint, (const unsigned char *)address);
	return endpoint.port;
}

static void port_set(struct sockaddr_storage *address, uint16_t port)
{
	struct cm_endpoint endpoint;

	cm_endpoint_read(&endpoint, (const unsigned char *)address);
	endpoint.port = port;
	cm_endpoint_write(&endpoint, (unsigned char *)address);
}

static int attach(struct rdma_event_channel *channel, const struct ib_place *place)
{
	return cm_attach(channel, place->device, place->port, NULL);
}

const struct ib_cm_kind ib_cm = {
	.name = "UCM",
	.qual_port = qual_port,
	.port_qual = port_qual,
	.port_get = port_get,
	.port_set = port_set,
	.ud_qkey = CM_UD_QKEY,
	.limits = cm_port_limits,
	.find = cm_port_parse,
	.unknown = DAT_ERROR(DAT_PROVIDER_NOT_FOUND, 0),
	.attach = attach,
};
