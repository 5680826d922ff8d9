/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* The state transitions of a queue pair: what each requires and allows (IBTA vol. 1, 11.2.5.2). */
#include <errno.h>
#include <stdbool.h>
#include "softverbs/object/device.h"
#include "softverbs/verbs/qp_rules.h"
#include "softverbs/base/settings.h"

#define INIT_MASK (IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS)
#define INIT_UD	  (IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY)
#define RTR_UC	  (IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN)
#define RTR_RC	  (RTR_UC | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER)
#define RTR_MAY	  (IBV_QP_ACCESS_FLAGS | IBV_QP_PKEY_INDEX)
#define RTS_RC                                                                  \
	(IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | \
	 IBV_QP_MAX_QP_RD_ATOMIC)
#define MAY_UC (IBV_QP_CUR_STATE | IBV_QP_ACCESS_FLAGS | IBV_QP_PATH_MIG_STATE)
#define MAY_RC (MAY_UC | IBV_QP_MIN_RNR_TIMER)
#define MAY_UD (IBV_QP_CUR_STATE | IBV_QP_QKEY)
#define SQD_RC                                                                                \
	(IBV_QP_AV | IBV_QP_PORT | IBV_QP_PKEY_INDEX | IBV_QP_ACCESS_FLAGS | IBV_QP_TIMEOUT | \
	 IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC |                      \
	 IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER | IBV_QP_PATH_MIG_STATE)

enum service { RC, UC, UD, SERVICES };

struct transition {
	bool possible[SERVICES];
	int must[SERVICES], may[SERVICES];
};

#define ALL_TYPES                \
	{                        \
		true, true, true \
	}

static const struct transition table[IBV_QPS_ERR + 1][IBV_QPS_ERR + 1] = {
	[IBV_QPS_RESET] = {
		[IBV_QPS_RESET] = { ALL_TYPES, { 0 }, { 0 } },
		[IBV_QPS_INIT] = { ALL_TYPES, { INIT_MASK, INIT_MASK, INIT_UD }, { 0 } },
	},
	[IBV_QPS_INIT] = {
		[IBV_QPS_RESET] = { ALL_TYPES, { 0 }, { 0 } },
		[IBV_QPS_INIT] = { ALL_TYPES, { 0 }, { INIT_MASK, INIT_MASK, INIT_UD } },
		[IBV_QPS_RTR] = { ALL_TYPES, { RTR_RC, RTR_UC, 0 },
				  { RTR_MAY, RTR_MAY, IBV_QP_QKEY | IBV_QP_PKEY_INDEX } },
		[IBV_QPS_ERR] = { ALL_TYPES, { 0 }, { 0 } },
	},
	[IBV_QPS_RTR] = {
		[IBV_QPS_RESET] = { ALL_TYPES, { 0 }, { 0 } },
		[IBV_QPS_RTS] = { ALL_TYPES, { RTS_RC, IBV_QP_SQ_PSN, IBV_QP_SQ_PSN },
				  { MAY_RC, MAY_UC, MAY_UD } },
		[IBV_QPS_ERR] = { ALL_TYPES, { 0 }, { 0 } },
	},
	[IBV_QPS_RTS] = {
		[IBV_QPS_RESET] = { ALL_TYPES, { 0 }, { 0 } },
		[IBV_QPS_RTS] = { ALL_TYPES, { 0 }, { MAY_RC, MAY_UC, MAY_UD } },
		[IBV_QPS_SQD] = { ALL_TYPES, { 0 },
				  { IBV_QP_EN_SQD_ASYNC_NOTIFY, IBV_QP_EN_SQD_ASYNC_NOTIFY,
				    IBV_QP_EN_SQD_ASYNC_NOTIFY } },
		[IBV_QPS_ERR] = { ALL_TYPES, { 0 }, { 0 } },
	},
	[IBV_QPS_SQD] = {
		[IBV_QPS_RESET] = { ALL_TYPES, { 0 }, { 0 } },
		[IBV_QPS_RTS] = { ALL_TYPES, { 0 }, { MAY_RC, MAY_UC, MAY_UD } },
		[IBV_QPS_SQD] = { ALL_TYPES, { 0 },
				  { SQD_RC, RTR_MAY, IBV_QP_PKEY_INDEX | IBV_QP_QKEY } },
		[IBV_QPS_ERR] = { ALL_TYPES, { 0 }, { 0 } },
	},
	[IBV_QPS_SQE] = {
		[IBV_QPS_RESET] = { ALL_TYPES, { 0 }, { 0 } },
		[IBV_QPS_RTS] = { { false, true, true }, { 0 },
				  { 0, IBV_QP_CUR_STATE | IBV_QP_ACCESS_FLAGS, MAY_UD } },
		[IBV_QPS_ERR] = { ALL_TYPES, { 0 }, { 0 } },
	},
	[IBV_QPS_ERR] = {
		[IBV_QPS_RESET] = { ALL_TYPES, { 0 }, { 0 } },
		[IBV_QPS_ERR] = { ALL_TYPES, { 0 }, { 0 } },
	},
};

static enum service service_of(enum ibv_qp_type type)
{
	return type == IBV_QPT_RC ? RC : type == IBV_QPT_UC ? UC : UD;
}

static bool path_is_good(const struct ibv_ah_attr *av)
{
	bool by_lid = sv_lid();
	union ibv_gid gid;
	uint32_t interface;

	/* LID 0 is reserved, also beside a GRH; whether the destination exists is seen in use */
	if (av->port_num != SV_PORT || (by_lid && !av->dlid))
		return false;
	if (!av->is_global)
		return by_lid;
	return sv_gid_at(av->grh.sgid_index, &gid, &interface);
}

static bool values_are_good(const struct ibv_qp_attr *attr, int mask)
{
	return !(
		(mask & IBV_QP_PORT && attr->port_num != SV_PORT) ||
		(mask & IBV_QP_PKEY_INDEX && attr->pkey_index) ||
		(mask & IBV_QP_AV && !path_is_good(&attr->ah_attr)) ||
		(mask & IBV_QP_PATH_MTU &&
		 (attr->path_mtu < IBV_MTU_256 || attr->path_mtu > IBV_MTU_4096)) ||
		(mask & IBV_QP_DEST_QPN && attr->dest_qp_num >= 1 << 24) ||
		(mask & IBV_QP_MAX_QP_RD_ATOMIC && attr->max_rd_atomic > SV_MAX_RD_ATOMIC) ||
		(mask & IBV_QP_MAX_DEST_RD_ATOMIC && attr->max_dest_rd_atomic > SV_MAX_RD_ATOMIC) ||
		(mask & IBV_QP_MIN_RNR_TIMER && attr->min_rnr_timer > 31) ||
		(mask & IBV_QP_TIMEOUT && attr->timeout > 31) ||
		(mask & IBV_QP_RETRY_CNT && attr->retry_cnt > 7) ||
		(mask & IBV_QP_RNR_RETRY && attr->rnr_retry > 7) ||
		(mask & IBV_QP_PATH_MIG_STATE && attr->path_mig_state != IBV_MIG_MIGRATED));
}

int sv_qp_rules_check(enum ibv_qp_type type, enum ibv_qp_state now, const struct ibv_qp_attr *attr,
		      int mask, enum ibv_qp_state *next)
{
	enum ibv_qp_state to = mask & IBV_QP_STATE ? attr->qp_state : now;
	enum service service = service_of(type);
	const struct transition *rule;

	if (now > IBV_QPS_ERR || to > IBV_QPS_ERR)
		return EINVAL;
	if (mask & IBV_QP_CUR_STATE && attr->cur_qp_state != now)
		return EINVAL;
	rule = &table[now][to];
	if (!rule->possible[service] || rule->must[service] & ~mask ||
	    mask & ~(IBV_QP_STATE | rule->must[service] | rule->may[service]))
		return EINVAL;
	if (!values_are_good(attr, mask))
		return EINVAL;
	*next = to;
	return 0;
}
