/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* The attributes of the device and of its port. */
#include <errno.h>
#include <string.h>
#include "softverbs/base/settings.h"
#include "softverbs/object/device.h"

#undef ibv_query_port

enum {
	VENDOR = 0x534f, /* in no known program's device table */
	PART = 1,
	WIDTH_4X = 2,	/* SV_LANES */
	SPEED_25G = 32, /* SV_LANE_GBPS */
};

int ibv_query_device(struct ibv_context *context, struct ibv_device_attr *attr)
{
	*attr = (struct ibv_device_attr){
		.fw_ver = "1.0",
		.node_guid = ibv_get_device_guid(context->device),
		.sys_image_guid = ibv_get_device_guid(context->device),
		.max_mr_size = UINT64_MAX,
		.page_size_cap = 0xfffff000,
		.vendor_id = VENDOR,
		.vendor_part_id = PART,
		.max_qp = SV_MAX_QP,
		.max_qp_wr = SV_MAX_WR,
		.device_cap_flags = IBV_DEVICE_SYS_IMAGE_GUID | IBV_DEVICE_RC_RNR_NAK_GEN |
				    IBV_DEVICE_SRQ_RESIZE | IBV_DEVICE_PORT_ACTIVE_EVENT |
				    IBV_DEVICE_CURR_QP_STATE_MOD | IBV_DEVICE_MEM_WINDOW |
				    IBV_DEVICE_MEM_MGT_EXTENSIONS | IBV_DEVICE_MEM_WINDOW_TYPE_2B,
		.max_sge = SV_MAX_SGE,
		.max_sge_rd = SV_MAX_SGE,
		.max_cq = SV_MAX_CQ,
		.max_cqe = SV_MAX_CQE,
		.max_mr = SV_MAX_REGION,
		.max_pd = SV_MAX_PD,
		.max_qp_rd_atom = SV_MAX_RD_ATOMIC,
		.max_res_rd_atom = SV_MAX_RD_ATOMIC * SV_MAX_QP,
		.max_qp_init_rd_atom = SV_MAX_RD_ATOMIC,
		.atomic_cap = IBV_ATOMIC_GLOB,
		.max_mw = SV_MAX_REGION,
		.max_ah = SV_MAX_REGION,
		.max_srq = SV_MAX_SRQ,
		.max_srq_wr = SV_MAX_WR,
		.max_srq_sge = SV_MAX_SGE,
		.max_pkeys = SV_PKEY_TABLE,
		.phys_port_cnt = SV_PORT,
	};
	return 0;
}

int sv_device_query_ex(struct ibv_context *context, const struct ibv_query_device_ex_input *input,
		       struct ibv_device_attr_ex *attr, size_t size)
{
#if VERBS_HAVE_PHYS_PORT_CNT_EX
	struct ibv_device_attr_ex ours = { .phys_port_cnt_ex = SV_PORT };
#else
	struct ibv_device_attr_ex ours = { .comp_mask = 0 };
#endif

	if ((input && input->comp_mask) || size < sizeof(ours.orig_attr))
		return EINVAL;
	ibv_query_device(context, &ours.orig_attr);
	memset(attr, 0, size);
	memcpy(attr, &ours, size < sizeof(ours) ? size : sizeof(ours));
	return 0;
}

int sv_device_query_port(struct ibv_context *context, uint8_t port, struct ibv_port_attr *attr,
			 size_t size)
{
	struct ibv_port_attr ours = {
		.state = IBV_PORT_ACTIVE,
		.max_mtu = IBV_MTU_4096,
		.active_mtu = IBV_MTU_4096,
		.gid_tbl_len = SV_GID_TABLE,
		.port_cap_flags = IBV_PORT_CM_SUP,
		.max_msg_sz = SV_MAX_MSG,
		.pkey_tbl_len = SV_PKEY_TABLE,
		.max_vl_num = 1,
		.active_width = WIDTH_4X,
		.active_speed = SPEED_25G,
#if VERBS_HAVE_ACTIVE_SPEED_EX
		.active_speed_ex = SPEED_25G,
#endif
		.phys_state = SV_PHYS_LINK_UP,
		.link_layer = IBV_LINK_LAYER_ETHERNET,
		.flags = IBV_QPF_GRH_REQUIRED,
	};

	(void)context;
	if (port != SV_PORT)
		return EINVAL;
	ours.lid = ours.sm_lid = sv_lid();
	if (ours.lid) {
		ours.link_layer = IBV_LINK_LAYER_INFINIBAND;
		ours.flags = 0;
	}
	memset(attr, 0, size);
	memcpy(attr, &ours, size < sizeof(ours) ? size : sizeof(ours));
	return 0;
}

/* In units of 100 Mbit/s. */
int ibv_query_port_speed(struct ibv_context *context, uint32_t port, uint64_t *speed)
{
	(void)context;
	if (port != SV_PORT)
		return EINVAL;
	*speed = SV_LANES * SV_LANE_GBPS * 10;
	return 0;
}

/* For old programs, whose structure ends before port_cap_flags2. */
int ibv_query_port(struct ibv_context *context, uint8_t port, struct _compat_ibv_port_attr *attr)
{
	return sv_device_query_port(context, port, (struct ibv_port_attr *)(void *)attr,
				    offsetof(struct ibv_port_attr, port_cap_flags2));
}

int ibv_query_pkey(struct ibv_context *context, uint8_t port, int index, __be16 *pkey)
{
	(void)context;
	if (port != SV_PORT || index) {
		errno = EINVAL;
		return -1;
	}
	*pkey = 0xffff;
	return 0;
}

int ibv_get_pkey_index(struct ibv_context *context, uint8_t port, __be16 pkey)
{
	(void)context;
	if (port != SV_PORT || pkey != 0xffff) {
		errno = EINVAL;
		return -1;
	}
	return 0;
}
