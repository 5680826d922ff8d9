/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* Messages that have arrived and were not polled yet. */
#ifndef SV_RC_ARRIVAL_H
#define SV_RC_ARRIVAL_H

#include <stdbool.h>
#include <stdint.h>
#include "softverbs/base/shared.h"

struct sv_qp;

/*
 * The number of the first message that has not arrived. The lock of the receive CQ is held if the
 * QP has an SRQ.
 */
uint32_t sv_arrivals_end_locked(const struct sv_qp *qp);

/* Whether a message of this QP has arrived that no poll has returned. False if there is no such QP. */
SV_SHARED bool sv_arrivals_wait(uint32_t qpn);

/* Whether this QP has sent requests to another host that are not answered. False if there is no such QP. */
SV_SHARED bool sv_answers_wait(uint32_t qpn);

/*
 * Copies the payload of `most` arrived messages at most, for which that was not done yet; returns their number. The lock of
 * the receive CQ is held.
 */
uint32_t sv_arrivals_land_locked(struct sv_qp *qp, uint32_t most);

/*
 * Copies the payload of arrived messages into the receives of this PD; polls return the
 * completions later. The caller has called sv_region_retire, so that later messages fail, and
 * holds no lock.
 */
void sv_arrivals_land(uint32_t pd);

#endif
