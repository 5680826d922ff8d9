/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/*
 * librdmacm.so.1: the connection manager lives in libibverbs.so.1, beside the device that it knows from inside;
 * here are the names that programs call it by.
 */
#include "softverbs/api.h"
#pragma GCC visibility push(default)
#include <rdma/rdma_cma.h>
#include <rdma/rdma_verbs.h>

extern typeof(rdma_create_event_channel) softverbs_rdma_create_event_channel;
extern typeof(rdma_destroy_event_channel) softverbs_rdma_destroy_event_channel;
extern typeof(rdma_create_id) softverbs_rdma_create_id;
extern typeof(rdma_create_ep) softverbs_rdma_create_ep;
extern typeof(rdma_destroy_ep) softverbs_rdma_destroy_ep;
extern typeof(rdma_destroy_id) softverbs_rdma_destroy_id;
extern typeof(rdma_bind_addr) softverbs_rdma_bind_addr;
extern typeof(rdma_resolve_addr) softverbs_rdma_resolve_addr;
extern typeof(rdma_resolve_route) softverbs_rdma_resolve_route;
extern typeof(rdma_create_qp) softverbs_rdma_create_qp;
extern typeof(rdma_create_qp_ex) softverbs_rdma_create_qp_ex;
extern typeof(rdma_destroy_qp) softverbs_rdma_destroy_qp;
extern typeof(rdma_connect) softverbs_rdma_connect;
extern typeof(rdma_establish) softverbs_rdma_establish;
extern typeof(rdma_listen) softverbs_rdma_listen;
extern typeof(rdma_get_request) softverbs_rdma_get_request;
extern typeof(rdma_accept) softverbs_rdma_accept;
extern typeof(rdma_reject) softverbs_rdma_reject;
extern typeof(rdma_reject_ece) softverbs_rdma_reject_ece;
extern typeof(rdma_notify) softverbs_rdma_notify;
extern typeof(rdma_disconnect) softverbs_rdma_disconnect;
extern typeof(rdma_join_multicast) softverbs_rdma_join_multicast;
extern typeof(rdma_leave_multicast) softverbs_rdma_leave_multicast;
extern typeof(rdma_join_multicast_ex) softverbs_rdma_join_multicast_ex;
extern typeof(rdma_get_cm_event) softverbs_rdma_get_cm_event;
extern typeof(rdma_ack_cm_event) softverbs_rdma_ack_cm_event;
extern typeof(rdma_get_src_port) softverbs_rdma_get_src_port;
extern typeof(rdma_get_dst_port) softverbs_rdma_get_dst_port;
extern typeof(rdma_get_devices) softverbs_rdma_get_devices;
extern typeof(rdma_free_devices) softverbs_rdma_free_devices;
extern typeof(rdma_event_str) softverbs_rdma_event_str;
extern typeof(rdma_set_option) softverbs_rdma_set_option;
extern typeof(rdma_migrate_id) softverbs_rdma_migrate_id;
extern typeof(rdma_getaddrinfo) softverbs_rdma_getaddrinfo;
extern typeof(rdma_freeaddrinfo) softverbs_rdma_freeaddrinfo;
extern typeof(rdma_init_qp_attr) softverbs_rdma_init_qp_attr;
extern typeof(rdma_set_local_ece) softverbs_rdma_set_local_ece;
extern typeof(rdma_get_remote_ece) softverbs_rdma_get_remote_ece;
extern typeof(rdma_create_srq) softverbs_rdma_create_srq;
extern typeof(rdma_create_srq_ex) softverbs_rdma_create_srq_ex;
extern typeof(rdma_destroy_srq) softverbs_rdma_destroy_srq;
void softverbs_rdma_keep_devices_open(void);
#pragma GCC visibility pop

__attribute__((constructor)) static void librdmacm_begin(void)
{
	softverbs_rdma_keep_devices_open();
}

struct rdma_event_channel *rdma_create_event_channel(void)
{
	return softverbs_rdma_create_event_channel();
}

void rdma_destroy_event_channel(struct rdma_event_channel *channel)
{
	softverbs_rdma_destroy_event_channel(channel);
}

int rdma_create_id(struct rdma_event_channel *channel, struct rdma_cm_id **id, void *context,
		   enum rdma_port_space ps)
{
	return softverbs_rdma_create_id(channel, id, context, ps);
}

int rdma_create_ep(struct rdma_cm_id **id, struct rdma_addrinfo *res, struct ibv_pd *pd,
		   struct ibv_qp_init_attr *qp_init_attr)
{
	return softverbs_rdma_create_ep(id, res, pd, qp_init_attr);
}

void rdma_destroy_ep(struct rdma_cm_id *id)
{
	softverbs_rdma_destroy_ep(id);
}

int rdma_destroy_id(struct rdma_cm_id *id)
{
	return softverbs_rdma_destroy_id(id);
}

int rdma_bind_addr(struct rdma_cm_id *id, struct sockaddr *addr)
{
	return softverbs_rdma_bind_addr(id, addr);
}

int rdma_resolve_addr(struct rdma_cm_id *id, struct sockaddr *src_addr, struct sockaddr *dst_addr,
		      int timeout_ms)
{
	return softverbs_rdma_resolve_addr(id, src_addr, dst_addr, timeout_ms);
}

int rdma_resolve_route(struct rdma_cm_id *id, int timeout_ms)
{
	return softverbs_rdma_resolve_route(id, timeout_ms);
}

int rdma_create_qp(struct rdma_cm_id *id, struct ibv_pd *pd, struct ibv_qp_init_attr *qp_init_attr)
{
	return softverbs_rdma_create_qp(id, pd, qp_init_attr);
}

int rdma_create_qp_ex(struct rdma_cm_id *id, struct ibv_qp_init_attr_ex *qp_init_attr)
{
	return softverbs_rdma_create_qp_ex(id, qp_init_attr);
}

void rdma_destroy_qp(struct rdma_cm_id *id)
{
	softverbs_rdma_destroy_qp(id);
}

int rdma_connect(struct rdma_cm_id *id, struct rdma_conn_param *conn_param)
{
	return softverbs_rdma_connect(id, conn_param);
}

int rdma_establish(struct rdma_cm_id *id)
{
	return softverbs_rdma_establish(id);
}

int rdma_listen(struct rdma_cm_id *id, int backlog)
{
	return softverbs_rdma_listen(id, backlog);
}

int rdma_get_request(struct rdma_cm_id *listen, struct rdma_cm_id **id)
{
	return softverbs_rdma_get_request(listen, id);
}

int rdma_accept(struct rdma_cm_id *id, struct rdma_conn_param *conn_param)
{
	return softverbs_rdma_accept(id, conn_param);
}

int rdma_reject(struct rdma_cm_id *id, const void *private_data, uint8_t private_data_len)
{
	return softverbs_rdma_reject(id, private_data, private_data_len);
}

int rdma_reject_ece(struct rdma_cm_id *id, const void *private_data, uint8_t private_data_len)
{
	return softverbs_rdma_reject_ece(id, private_data, private_data_len);
}

int rdma_notify(struct rdma_cm_id *id, enum ibv_event_type event)
{
	return softverbs_rdma_notify(id, event);
}

int rdma_disconnect(struct rdma_cm_id *id)
{
	return softverbs_rdma_disconnect(id);
}

int rdma_join_multicast(struct rdma_cm_id *id, struct sockaddr *addr, void *context)
{
	return softverbs_rdma_join_multicast(id, addr, context);
}

int rdma_leave_multicast(struct rdma_cm_id *id, struct sockaddr *addr)
{
	return softverbs_rdma_leave_multicast(id, addr);
}

int rdma_join_multicast_ex(struct rdma_cm_id *id, struct rdma_cm_join_mc_attr_ex *mc_join_attr,
			   void *context)
{
	return softverbs_rdma_join_multicast_ex(id, mc_join_attr, context);
}

int rdma_get_cm_event(struct rdma_event_channel *channel, struct rdma_cm_event **event)
{
	return softverbs_rdma_get_cm_event(channel, event);
}

int rdma_ack_cm_event(struct rdma_cm_event *event)
{
	return softverbs_rdma_ack_cm_event(event);
}

__be16 rdma_get_src_port(struct rdma_cm_id *id)
{
	return softverbs_rdma_get_src_port(id);
}

__be16 rdma_get_dst_port(struct rdma_cm_id *id)
{
	return softverbs_rdma_get_dst_port(id);
}

struct ibv_context **rdma_get_devices(int *num_devices)
{
	return softverbs_rdma_get_devices(num_devices);
}

void rdma_free_devices(struct ibv_context **list)
{
	softverbs_rdma_free_devices(list);
}

const char *rdma_event_str(enum rdma_cm_event_type event)
{
	return softverbs_rdma_event_str(event);
}

int rdma_set_option(struct rdma_cm_id *id, int level, int optname, void *optval, size_t optlen)
{
	return softverbs_rdma_set_option(id, level, optname, optval, optlen);
}

int rdma_migrate_id(struct rdma_cm_id *id, struct rdma_event_channel *channel)
{
	return softverbs_rdma_migrate_id(id, channel);
}

int rdma_getaddrinfo(const char *node, const char *service, const struct rdma_addrinfo *hints,
		     struct rdma_addrinfo **res)
{
	return softverbs_rdma_getaddrinfo(node, service, hints, res);
}

void rdma_freeaddrinfo(struct rdma_addrinfo *res)
{
	softverbs_rdma_freeaddrinfo(res);
}

int rdma_init_qp_attr(struct rdma_cm_id *id, struct ibv_qp_attr *qp_attr, int *qp_attr_mask)
{
	return softverbs_rdma_init_qp_attr(id, qp_attr, qp_attr_mask);
}

int rdma_set_local_ece(struct rdma_cm_id *id, struct ibv_ece *ece)
{
	return softverbs_rdma_set_local_ece(id, ece);
}

int rdma_get_remote_ece(struct rdma_cm_id *id, struct ibv_ece *ece)
{
	return softverbs_rdma_get_remote_ece(id, ece);
}

int rdma_create_srq(struct rdma_cm_id *id, struct ibv_pd *pd, struct ibv_srq_init_attr *attr)
{
	return softverbs_rdma_create_srq(id, pd, attr);
}

int rdma_create_srq_ex(struct rdma_cm_id *id, struct ibv_srq_init_attr_ex *attr)
{
	return softverbs_rdma_create_srq_ex(id, attr);
}

void rdma_destroy_srq(struct rdma_cm_id *id)
{
	softverbs_rdma_destroy_srq(id);
}
