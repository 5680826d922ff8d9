/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* What ibv_modify_qp allows, as a pure function of state, type, attributes and mask. */
#ifndef SV_QP_RULES_H
#define SV_QP_RULES_H

#include "softverbs/api.h"

/* 0 and the state to enter (which may be `now`), or EINVAL. */
int qp_rules_check(enum ibv_qp_type type, enum ibv_qp_state now, const struct ibv_qp_attr *attr,
		   int mask, enum ibv_qp_state *next);

#endif
