/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* The socket CM (dapl/cm): names a port by its verbs device; all ports share one address of the host. */
#include <arpa/inet.h>
#include "dapl/openib/cm_port.h"

/* Compatible with OFED's dapl, modulo 2^16. */
static uint16_t cm_scm_qual_port(DAT_CONN_QUAL qual)
{
	return (uint16_t)(qual + 1000);
}

static DAT_CONN_QUAL cm_scm_port_qual(uint16_t port)
{
	return (uint16_t)(port - 1000);
}

static uint16_t cm_scm_port_get(const struct sockaddr_storage *address)
{
	return ntohs(((const struct sockaddr_in *)address)->sin_port);
}

static void cm_scm_port_set(struct sockaddr_storage *address, uint16_t port)
{
	((struct sockaddr_in *)address)->sin_port = htons(port);
}

static int cm_scm_find(const char *params, struct ib_place *place)
{
	int error = cm_port_parse(params, place);

	return error ? error
		     : scm_address(setting_name_for(place->device, SET_SCM_NETDEV),
				   &place->address);
}

static int cm_scm_attach(struct rdma_event_channel *channel, const struct ib_place *place)
{
	return cm_attach(channel, place->device, place->port,
			 (const struct sockaddr *)&place->address);
}

const struct ib_cm_kind ib_cm = {
	.name = "SCM",
	.qual_port = cm_scm_qual_port,
	.port_qual = cm_scm_port_qual,
	.port_get = cm_scm_port_get,
	.port_set = cm_scm_port_set,
	.ud_qkey = CM_UD_QKEY,
	.limits = cm_port_limits,
	.find = cm_scm_find,
	.unknown = DAT_ERROR(DAT_PROVIDER_NOT_FOUND, 0),
	.attach = cm_scm_attach,
};
