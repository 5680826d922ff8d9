/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* Sends of unreliable services: what does not arrive is lost, and the sender is none the wiser. */
#include "softverbs/ud.h"

/* What a connected one would report of the other side. */
static bool is_lost(int status)
{
	return status == EXEC_WAIT(SQ_RNR) || status == EXEC_WAIT(SQ_SILENT) ||
	       status == IBV_WC_REM_INV_REQ_ERR || status == IBV_WC_REM_ACCESS_ERR ||
	       status == IBV_WC_REM_OP_ERR;
}

int unreliable_execute_locked(struct sv_qp *qp, const struct ibv_send_wr *wr, uint32_t length)
{
	int status = qp->ud ? ud_send_locked(qp, wr, length)
			    : sq_execute_connected_locked(qp, wr, length);

	return is_lost(status) ? IBV_WC_SUCCESS : status;
}
