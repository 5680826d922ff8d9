/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* UC and UD: drops are not reported to the sender, whose request succeeds. */
#include "softverbs/rc/rc.h"
#include "softverbs/ud/ud.h"

/* Whether RC would report the status as a fault of the responder or a lack of answer. */
static bool is_lost(int status)
{
	return status == EXEC_WAIT(SQ_RNR) || status == EXEC_WAIT(SQ_SILENT) ||
	       status == IBV_WC_REM_INV_REQ_ERR || status == IBV_WC_REM_ACCESS_ERR ||
	       status == IBV_WC_REM_OP_ERR;
}

static int unreliable_execute(struct sv_qp *qp, const struct ibv_send_wr *wr, uint32_t length)
{
	int status = qp->ud ? sv_ud_send_locked(qp, wr, length)
			    : sv_sq_execute_connected(qp, wr, length);

	return is_lost(status) ? IBV_WC_SUCCESS : status;
}

const struct sv_service_ops sv_uc_ops = {
	.execute = unreliable_execute,
};

const struct sv_service_ops sv_ud_ops = {
	.execute = unreliable_execute,
	.is_addressed = sv_ud_is_addressed,
	.poll_locked = sv_ud_poll_locked,
	.has_arrived = sv_ud_arrived,
	.is_filled = sv_ud_ring_is_filled,
};
