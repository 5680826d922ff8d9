/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/*
 * In front of a device's library: connecting and ending cost nothing there, so that of a connection manager above it all
 * that is its own is measured. No data can pass.
 */
#include <infiniband/verbs.h>

int ibv_modify_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask)
{
	if (mask & IBV_QP_STATE)
		qp->state = attr->qp_state;
	return 0;
}
