/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* Checks at build time that the public structures have the layout that compiled programs expect. Only the
 * size of a mutex differs between 64-bit machines and C libraries: M is the excess over the 40 bytes of
 * x86-64 (glibc on arm64 has 48). */
#include <pthread.h>
#include <stddef.h>
#include <rdma/rdma_cma.h>
#include "softverbs/base/api.h"

#define M ((int)sizeof(pthread_mutex_t) - 40)

#define SIZE(type, bytes) _Static_assert(sizeof(struct type) == (bytes), "size of " #type)
#define AT(type, field, bytes) \
	_Static_assert(offsetof(struct type, field) == (bytes), #type "." #field)
/* The last field that all headers have: newer ones append to these structures. */
#define ENDS(type, field, bytes)                                                              \
	_Static_assert(offsetof(struct type, field) + sizeof(((struct type *)NULL)->field) == \
			       (bytes),                                                       \
		       "end of " #type)

SIZE(ibv_device, 664);
AT(ibv_device, _ops, 0);
AT(ibv_device, node_type, 16);
AT(ibv_device, transport_type, 20);
AT(ibv_device, name, 24);
AT(ibv_device, dev_name, 88);
AT(ibv_device, dev_path, 152);
AT(ibv_device, ibdev_path, 408);

SIZE(ibv_context, 328 + M);
AT(ibv_context, device, 0);
AT(ibv_context, ops, 8);
AT(ibv_context, cmd_fd, 264);
AT(ibv_context, async_fd, 268);
AT(ibv_context, num_comp_vectors, 272);
AT(ibv_context, mutex, 280);
AT(ibv_context, abi_compat, 320 + M);

SIZE(ibv_context_ops, 256);
AT(ibv_context_ops, _compat_query_device, 0);
AT(ibv_context_ops, _compat_query_port, 8);
AT(ibv_context_ops, alloc_mw, 56);
AT(ibv_context_ops, bind_mw, 64);
AT(ibv_context_ops, dealloc_mw, 72);
AT(ibv_context_ops, poll_cq, 88);
AT(ibv_context_ops, req_notify_cq, 96);
AT(ibv_context_ops, post_srq_recv, 160);
AT(ibv_context_ops, post_send, 200);
AT(ibv_context_ops, post_recv, 208);

/* Newer headers add slots at the front, so the distance to `context` is checked. */
#define SLOT(field, bytes)                                                      \
	_Static_assert(offsetof(struct verbs_context, context) -                \
				       offsetof(struct verbs_context, field) == \
			       320 - (bytes),                                   \
		       "slot " #field)
SLOT(query_port, 0);
SLOT(advise_mr, 8);
SLOT(alloc_null_mr, 16);
SLOT(read_counters, 24);
SLOT(destroy_counters, 48);
SLOT(reg_dm_mr, 56);
SLOT(alloc_dm, 64);
SLOT(free_dm, 72);
SLOT(modify_qp_rate_limit, 104);
SLOT(alloc_parent_domain, 112);
SLOT(dealloc_td, 120);
SLOT(alloc_td, 128);
SLOT(modify_cq, 136);
SLOT(post_srq_ops, 144);
SLOT(create_wq, 184);
SLOT(query_rt_values, 192);
SLOT(create_cq_ex, 200);
SLOT(priv, 208);
SLOT(query_device_ex, 216);
SLOT(ibv_destroy_flow, 224);
SLOT(ibv_create_flow, 240);
SLOT(open_qp, 256);
SLOT(create_qp_ex, 264);
SLOT(get_srq_num, 272);
SLOT(create_srq_ex, 280);
SLOT(open_xrcd, 288);
SLOT(close_xrcd, 296);
SLOT(sz, 312);

SIZE(ibv_pd, 16);
AT(ibv_pd, context, 0);
AT(ibv_pd, handle, 8);
SIZE(ibv_ah, 24);
AT(ibv_ah, context, 0);

SIZE(ibv_mr, 48);
AT(ibv_mr, context, 0);
AT(ibv_mr, pd, 8);
AT(ibv_mr, addr, 16);
AT(ibv_mr, length, 24);
AT(ibv_mr, handle, 32);
AT(ibv_mr, lkey, 36);
AT(ibv_mr, rkey, 40);

SIZE(ibv_mw, 32);
AT(ibv_mw, context, 0);
AT(ibv_mw, pd, 8);
AT(ibv_mw, rkey, 16);
AT(ibv_mw, handle, 20);
AT(ibv_mw, type, 24);

SIZE(ibv_comp_channel, 16);
AT(ibv_comp_channel, context, 0);
AT(ibv_comp_channel, fd, 8);
AT(ibv_comp_channel, refcnt, 12);

SIZE(ibv_cq, 128 + M);
AT(ibv_cq, context, 0);
AT(ibv_cq, channel, 8);
AT(ibv_cq, cq_context, 16);
AT(ibv_cq, handle, 24);
AT(ibv_cq, cqe, 28);
AT(ibv_cq, mutex, 32);
AT(ibv_cq, cond, 72 + M);
AT(ibv_cq, comp_events_completed, 120 + M);
AT(ibv_cq, async_events_completed, 124 + M);

ENDS(ibv_cq_ex, read_completion_wallclock_ns, 288 + M);
AT(ibv_cq_ex, comp_mask, 128 + M);
AT(ibv_cq_ex, status, 132 + M);
AT(ibv_cq_ex, wr_id, 136 + M);
AT(ibv_cq_ex, start_poll, 144 + M);

SIZE(ibv_srq, 128 + M);
AT(ibv_srq, context, 0);
AT(ibv_srq, srq_context, 8);
AT(ibv_srq, pd, 16);
AT(ibv_srq, handle, 24);
AT(ibv_srq, mutex, 32);
AT(ibv_srq, cond, 72 + M);
AT(ibv_srq, events_completed, 120 + M);

SIZE(ibv_qp, 160 + M);
AT(ibv_qp, context, 0);
AT(ibv_qp, qp_context, 8);
AT(ibv_qp, pd, 16);
AT(ibv_qp, send_cq, 24);
AT(ibv_qp, recv_cq, 32);
AT(ibv_qp, srq, 40);
AT(ibv_qp, handle, 48);
AT(ibv_qp, qp_num, 52);
AT(ibv_qp, state, 56);
AT(ibv_qp, qp_type, 60);
AT(ibv_qp, mutex, 64);
AT(ibv_qp, cond, 104 + M);
AT(ibv_qp, events_completed, 152 + M);

AT(ibv_qp_ex, qp_base, 0);
AT(ibv_qp_ex, comp_mask, 160 + M);
AT(ibv_qp_ex, wr_id, 168 + M);
AT(ibv_qp_ex, wr_flags, 176 + M);
AT(ibv_qp_ex, wr_atomic_cmp_swp, 184 + M);
ENDS(ibv_qp_ex, wr_abort, 344 + M);

SIZE(ibv_wc, 48);
SIZE(ibv_send_wr, 128);
SIZE(ibv_recv_wr, 32);
SIZE(ibv_sge, 16);
SIZE(ibv_qp_attr, 144);
SIZE(ibv_qp_init_attr, 64);
ENDS(ibv_qp_init_attr_ex, send_ops_flags, 136);
SIZE(ibv_srq_init_attr, 24);
ENDS(ibv_srq_init_attr_ex, tm_cap, 64);
SIZE(ibv_device_attr, 232);
ENDS(ibv_device_attr_ex, xrc_odp_caps, 396);
ENDS(ibv_port_attr, port_cap_flags2, 50);
SIZE(ibv_gid_entry, 32);
SIZE(ibv_async_event, 16);
SIZE(ibv_mw_bind, 48);

SIZE(rdma_route, 312);
AT(rdma_route, addr.src_addr, 0);
AT(rdma_route, addr.dst_addr, 128);
AT(rdma_route, addr.addr.ibaddr, 256);
AT(rdma_route, path_rec, 296);
AT(rdma_route, num_paths, 304);

SIZE(rdma_cm_id, 416);
AT(rdma_cm_id, verbs, 0);
AT(rdma_cm_id, channel, 8);
AT(rdma_cm_id, context, 16);
AT(rdma_cm_id, qp, 24);
AT(rdma_cm_id, route, 32);
AT(rdma_cm_id, ps, 344);
AT(rdma_cm_id, port_num, 348);
AT(rdma_cm_id, event, 352);
AT(rdma_cm_id, send_cq_channel, 360);
AT(rdma_cm_id, send_cq, 368);
AT(rdma_cm_id, recv_cq_channel, 376);
AT(rdma_cm_id, recv_cq, 384);
AT(rdma_cm_id, srq, 392);
AT(rdma_cm_id, pd, 400);
AT(rdma_cm_id, qp_type, 408);

SIZE(rdma_event_channel, 4);
AT(rdma_event_channel, fd, 0);

SIZE(rdma_cm_event, 80);
AT(rdma_cm_event, id, 0);
AT(rdma_cm_event, listen_id, 8);
AT(rdma_cm_event, event, 16);
AT(rdma_cm_event, status, 20);
AT(rdma_cm_event, param, 24);

SIZE(rdma_conn_param, 24);
AT(rdma_conn_param, private_data, 0);
AT(rdma_conn_param, private_data_len, 8);
AT(rdma_conn_param, responder_resources, 9);
AT(rdma_conn_param, initiator_depth, 10);
AT(rdma_conn_param, flow_control, 11);
AT(rdma_conn_param, retry_count, 12);
AT(rdma_conn_param, rnr_retry_count, 13);
AT(rdma_conn_param, srq, 14);
AT(rdma_conn_param, qp_num, 16);
