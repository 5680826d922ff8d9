/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* ibv_modify_qp and ibv_query_qp: checks the rules, then enters the state. */
#include <errno.h>
#include "softverbs/object/elsewhere.h"
#include "softverbs/verbs/qp_rules.h"
#include "softverbs/object/object.h"
#include "util/cancel.h"

int ibv_modify_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask)
{
	CANCEL_OFF_HERE;
	enum ibv_qp_state now, next;
	int error;

	if (!context_is_ours(qp->context))
		return ENODEV;
	do {
		now = sv_qp_state(qp);
		error = sv_qp_rules_check(qp->qp_type, now, attr, mask, &next);
		if (!error)
			error = sv_qp_enter_state(qp, now, next, attr, mask);
	} while (error == EINVAL && sv_qp_state(qp) != now); /* an error changed it */
	if (!error && next == IBV_QPS_RTR && mask & IBV_QP_AV && attr->ah_attr.is_global)
		sv_elsewhere_note(&attr->ah_attr.grh.dgid);
	return error;
}

/* Fills in all attributes, whatever the mask. */
int ibv_query_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask,
		 struct ibv_qp_init_attr *init)
{
	(void)mask;
	if (!context_is_ours(qp->context))
		return ENODEV;
	sv_qp_attributes(qp, attr, init);
	return 0;
}
