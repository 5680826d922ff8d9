/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* The private symbols of libibverbs, for vendors' provider libraries that a program is linked with. These
 * load and register, but have no effect: there is no kernel device to command, and no context to pass to
 * them. Since their headers are private, each symbol is an alias of a function that returns a suitable error;
 * none reads its arguments. */
#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include "softverbs/dropin/dropin.h"

#define ANSWER(name, answer) extern EXPORT typeof(answer) name __attribute__((alias(#answer)))

EXPORT bool verbs_allow_disassociate_destroy;

static int command(void)
{
	return EOPNOTSUPP;
}

/* Fails where a positive return value would be a number of completions. */
static int command_poll(void)
{
	errno = EOPNOTSUPP;
	return -1;
}

static void *allocate(void)
{
	errno = EOPNOTSUPP;
	return NULL;
}

static unsigned int attributes_count(void)
{
	return 0;
}

static void ignore(void)
{
}

ANSWER(__ioctl_final_num_attrs, attributes_count);
ANSWER(__verbs_log, ignore);
#define DRIVER_OF(private)	 verbs_register_driver_##private
#define REGISTER_DRIVER(private) ANSWER(DRIVER_OF(private), ignore)
REGISTER_DRIVER(VERBS_PRIVATE);
ANSWER(verbs_init_cq, ignore);
ANSWER(verbs_set_ops, ignore);
ANSWER(verbs_uninit_context, ignore);
ANSWER(_verbs_init_and_alloc_context, allocate);
ANSWER(verbs_open_device, allocate);
ANSWER(execute_ioctl, command);
ANSWER(ibv_cmd_poll_cq, command_poll);
ANSWER(ibv_cmd_advise_mr, command);
ANSWER(ibv_cmd_alloc_dm, command);
ANSWER(ibv_cmd_alloc_dmah, command);
ANSWER(ibv_cmd_alloc_mw, command);
ANSWER(ibv_cmd_alloc_pd, command);
ANSWER(ibv_cmd_attach_mcast, command);
ANSWER(ibv_cmd_close_xrcd, command);
ANSWER(ibv_cmd_create_ah, command);
ANSWER(ibv_cmd_create_comp_cntr, command);
ANSWER(ibv_cmd_create_counters, command);
ANSWER(ibv_cmd_create_cq, command);
ANSWER(ibv_cmd_create_cq_ex, command);
ANSWER(ibv_cmd_create_cq_ex2, command);
ANSWER(ibv_cmd_create_flow, command);
ANSWER(ibv_cmd_create_flow_action_esp, command);
ANSWER(ibv_cmd_create_qp, command);
ANSWER(ibv_cmd_create_qp_ex, command);
ANSWER(ibv_cmd_create_qp_ex2, command);
ANSWER(ibv_cmd_create_rwq_ind_table, command);
ANSWER(ibv_cmd_create_srq, command);
ANSWER(ibv_cmd_create_srq_ex, command);
ANSWER(ibv_cmd_create_wq, command);
ANSWER(ibv_cmd_dealloc_mw, command);
ANSWER(ibv_cmd_dealloc_pd, command);
ANSWER(ibv_cmd_dereg_mr, command);
ANSWER(ibv_cmd_destroy_ah, command);
ANSWER(ibv_cmd_destroy_comp_cntr, command);
ANSWER(ibv_cmd_destroy_counters, command);
ANSWER(ibv_cmd_destroy_cq, command);
ANSWER(ibv_cmd_destroy_flow, command);
ANSWER(ibv_cmd_destroy_flow_action, command);
ANSWER(ibv_cmd_destroy_qp, command);
ANSWER(ibv_cmd_destroy_rwq_ind_table, command);
ANSWER(ibv_cmd_destroy_srq, command);
ANSWER(ibv_cmd_destroy_wq, command);
ANSWER(ibv_cmd_detach_mcast, command);
ANSWER(ibv_cmd_export_dmabuf_fd, command);
ANSWER(ibv_cmd_free_dm, command);
ANSWER(ibv_cmd_free_dmah, command);
ANSWER(ibv_cmd_get_context, command);
ANSWER(ibv_cmd_inc_comp_cntr, command);
ANSWER(ibv_cmd_inc_err_comp_cntr, command);
ANSWER(ibv_cmd_modify_cq, command);
ANSWER(ibv_cmd_modify_flow_action_esp, command);
ANSWER(ibv_cmd_modify_qp, command);
ANSWER(ibv_cmd_modify_qp_ex, command);
ANSWER(ibv_cmd_modify_srq, command);
ANSWER(ibv_cmd_modify_wq, command);
ANSWER(ibv_cmd_open_qp, command);
ANSWER(ibv_cmd_open_xrcd, command);
ANSWER(ibv_cmd_post_recv, command);
ANSWER(ibv_cmd_post_send, command);
ANSWER(ibv_cmd_post_srq_recv, command);
ANSWER(ibv_cmd_qp_attach_comp_cntr, command);
ANSWER(ibv_cmd_query_comp_cntr_caps, command);
ANSWER(ibv_cmd_query_context, command);
ANSWER(ibv_cmd_query_device_any, command);
ANSWER(ibv_cmd_query_mr, command);
ANSWER(ibv_cmd_query_port, command);
ANSWER(ibv_cmd_query_port_speed, command);
ANSWER(ibv_cmd_query_qp, command);
ANSWER(ibv_cmd_query_srq, command);
ANSWER(ibv_cmd_read_comp_cntr, command);
ANSWER(ibv_cmd_read_counters, command);
ANSWER(ibv_cmd_read_err_comp_cntr, command);
ANSWER(ibv_cmd_reg_dm_mr, command);
ANSWER(ibv_cmd_reg_dmabuf_mr, command);
ANSWER(ibv_cmd_reg_mr, command);
ANSWER(ibv_cmd_reg_mr_ex, command);
ANSWER(ibv_cmd_req_notify_cq, command);
ANSWER(ibv_cmd_rereg_mr, command);
ANSWER(ibv_cmd_resize_cq, command);
ANSWER(ibv_cmd_set_comp_cntr, command);
ANSWER(ibv_cmd_set_err_comp_cntr, command);
ANSWER(ibv_dmabuf_heap_alloc, allocate);
ANSWER(ibv_dmabuf_heap_cc_shared_init, allocate);
ANSWER(ibv_dmabuf_heap_destroy, ignore);
ANSWER(ibv_dmabuf_heap_free, ignore);
