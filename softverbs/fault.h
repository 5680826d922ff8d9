/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* Faults that SOFTVERBS_FAULT asks for, so that programs can be tested with them. */
#ifndef SV_FAULT_H
#define SV_FAULT_H

#include "softverbs/qp.h"

/* For a new QP: NULL in *fault when none is asked for. 0 or ENOMEM. */
int fault_open(struct sv_fault **fault, struct sv_qp *qp);
void fault_cancel(struct sv_fault *fault); /* no timer runs after it; accepts NULL */
void fault_close(struct sv_fault *fault);

/* sq_execute_locked of a QP that has faults. */
int fault_execute_locked(struct sv_qp *qp, const struct ibv_send_wr *wr, uint32_t length);

#endif
