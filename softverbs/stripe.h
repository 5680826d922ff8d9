/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* Stripes: one atomic operation at a time on some of a process's memory, whoever makes it. */
#ifndef SV_STRIPE_H
#define SV_STRIPE_H

#include "softverbs/area.h"

/* `who`: the QP that asks; one that was taken for dead does not free what another has taken since. */
struct rw_stripe *stripe_take(const struct sv_peer *owner, uint64_t va, uint32_t who);
void stripe_give(struct rw_stripe *stripe, uint32_t who);

/* This process as the holder of a stripe, without `who`. */
uint64_t stripe_holder(uint16_t slot);
/* Nobody lives in that slot any more: this process's stripes that it held are free. */
void stripes_forget(uint16_t slot);

#endif
