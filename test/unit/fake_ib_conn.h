/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* Connections and listeners of the device of fake_ib.h. */
#ifndef FAKE_IB_CONN_H
#define FAKE_IB_CONN_H

#include "test/unit/fake_ib.h"

DAT_RETURN ib_conn_connect(struct ib_device *device, struct ib_qp *qp,
			   const struct sockaddr *remote, const struct ib_conn_param *param,
			   void *owner, struct ib_conn **conn)
{
	DAT_RETURN status = fake_refused();

	(void)device;
	(void)qp;
	(void)remote;
	if (status != DAT_SUCCESS)
		return status;
	*conn = fake.conn = fake_new(sizeof(**conn), &fake.conns);
	fake.conn->owner = owner;
	fake.conn->param = *param;
	return DAT_SUCCESS;
}

DAT_RETURN ib_conn_resolve(struct ib_device *device, struct ib_qp *qp,
			   const struct sockaddr *remote, const void *data, uint32_t size,
			   void *owner, struct ib_conn **conn)
{
	const struct ib_conn_param param = { .data = data, .size = size };

	return ib_conn_connect(device, qp, remote, &param, owner, conn);
}

DAT_RETURN ib_ah_create(struct ib_conn *conn, struct ib_pd *pd, struct ib_ah **ah, uint32_t *qp_num)
{
	DAT_RETURN status = fake_refused();

	(void)conn;
	(void)pd;
	if (status != DAT_SUCCESS)
		return status;
	*ah = fake_new(sizeof(**ah), &fake.ahs);
	*qp_num = FAKE_PEER_QP;
	return DAT_SUCCESS;
}

void ib_ah_destroy(struct ib_ah *ah)
{
	if (ah)
		fake.ahs--;
	free(ah);
}

DAT_RETURN ib_conn_accept(struct ib_conn *conn, struct ib_qp *qp, const struct ib_conn_param *param,
			  void *owner)
{
	(void)qp;
	conn->owner = owner;
	conn->param = *param;
	if (fake.accepting)
		fake.accepting();
	return fake_refused();
}

DAT_RETURN ib_conn_reject(struct ib_conn *conn, const void *data, uint32_t size)
{
	(void)conn;
	(void)data;
	(void)size;
	return fake_refused();
}

void ib_conn_disconnect(struct ib_conn *conn, bool awaits_reply)
{
	(void)conn;
	(void)awaits_reply;
}

void ib_conn_destroy(struct ib_conn *conn)
{
	if (conn)
		fake.conns--;
	free(conn);
}

uint16_t ib_conn_local_port(const struct ib_conn *conn)
{
	return conn ? 4711 : 0;
}
uint16_t ib_conn_remote_port(const struct ib_conn *conn)
{
	return conn ? 4712 : 0;
}

void ib_conn_depths(const struct ib_conn *conn, uint8_t *responder_resources,
		    uint8_t *initiator_depth)
{
	*responder_resources = conn->param.responder_resources;
	*initiator_depth = conn->param.initiator_depth;
}

DAT_RETURN ib_listen(struct ib_device *device, uint16_t port, void *owner,
		     struct ib_listener **listener)
{
	DAT_RETURN status = fake_refused();

	(void)device;
	if (status != DAT_SUCCESS)
		return status;
	*listener = calloc(1, sizeof(**listener));
	(*listener)->owner = owner;
	(*listener)->port = port;
	return DAT_SUCCESS;
}

void ib_listener_address(const struct ib_listener *listener, struct sockaddr_storage *address)
{
	memset(address, 0, sizeof(*address));
	((struct sockaddr_in *)address)->sin_family = AF_INET;
	((struct sockaddr_in *)address)->sin_port = htons(listener->port);
}

void ib_listener_destroy(struct ib_listener *listener)
{
	free(listener);
}

#endif
