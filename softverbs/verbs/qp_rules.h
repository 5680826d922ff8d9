/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* The transitions that ibv_modify_qp allows, as a pure function of state, type, attributes and mask. */
#ifndef SV_VERBS_QP_RULES_H
#define SV_VERBS_QP_RULES_H

#include "softverbs/base/api.h"

/* Returns 0 and stores the state to enter, which may be `now`; or EINVAL. */
int sv_qp_rules_check(enum ibv_qp_type type, enum ibv_qp_state now, const struct ibv_qp_attr *attr,
		      int mask, enum ibv_qp_state *next);

#endif
