/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* Modifying and querying a queue pair: the rules first, then the state is entered. */
#include <errno.h>
#include "softverbs/elsewhere.h"
#include "softverbs/qp_rules.h"
#include "softverbs/sv.h"

int ibv_modify_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask)
{
	enum ibv_qp_state now, next;
	int error;

	if (!context_is_ours(qp->context))
		return ENODEV;
	do {
		now = qp_state(qp);
		error = qp_rules_check(qp->qp_type, now, attr, mask, &next);
		if (!error)
			error = qp_enter_state(qp, now, next, attr, mask);
	} while (error == EINVAL && qp_state(qp) != now); /* an error came between */
	if (!error && next == IBV_QPS_RTR && mask & IBV_QP_AV)
		sv_elsewhere_note(&attr->ah_attr.grh.dgid);
	return error;
}

/* Gives every attribute, asked for or not. */
int ibv_query_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask,
		 struct ibv_qp_init_attr *init)
{
	(void)mask;
	if (!context_is_ours(qp->context))
		return ENODEV;
	qp_attributes(qp, attr, init);
	return 0;
}
