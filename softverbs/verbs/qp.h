/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* Queue pairs inside this room: their creation and their changes of state. */
#ifndef SV_VERBS_QP_H
#define SV_VERBS_QP_H

#include "softverbs/object/qp.h"

/* qp.c */
struct sv_qp *sv_qp_make(struct ibv_pd *pd, struct ibv_qp_init_attr *init); /* NULL with errno */

/* qp_ex.c */
void sv_qp_close_ex(struct sv_qp *qp); /* accepts a QP without an extended part */

/* qp_state.c */
/*
 * Drops everything posted or completed, and releases the peer. The QP is unpublished and
 * quiesced; `modify` is held.
 */
void sv_qp_clear_locked(struct sv_qp *qp);
/* Unpublishes the QP, quiesces it, and publishes it with its present rings. `modify` is held. */
void sv_qp_publish_again_locked(struct sv_qp *qp);
/* Enters RESET from any other state; the queues stay as they are. `modify` is held. */
void sv_qp_leave_locked(struct sv_qp *qp);
/* The same, and clears the queues. */
void sv_qp_reset_locked(struct sv_qp *qp);

#endif
