/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/*
 * Access to the payload of a message that has arrived: in its receive slot, or in the eager ring.
 */
#ifndef SV_RC_LAND_H
#define SV_RC_LAND_H

#include <string.h>
#include "softverbs/rc/copy.h"
#include "softverbs/object/qp.h"

/*
 * Copies the payload out of a receive slot, and out of its rx_slot_ext what exceeds
 * SV_SLOT_INLINE.
 */
static inline void land_copy(const struct sv_wq *wq, uint32_t slot, void *to, uint32_t length)
{
	const uint8_t *from = wq->rx_slot[slot].data;

	if (likely(length <= SV_SLOT_INLINE)) {
		copy_small(to, from, length);
		return;
	}
	memcpy(to, from, SV_SLOT_INLINE);
	memcpy((uint8_t *)to + SV_SLOT_INLINE, rx_slot_ext(wq->rx_slot, wq->mask, slot)->data,
	       length - SV_SLOT_INLINE);
}

/* The address of a message in the eager ring; NULL if the sender's numbers are impossible. */
static inline const uint8_t *land_eager(const struct sv_rx *rx, uint32_t at, uint32_t length)
{
	uint32_t skipped = at - rx->eager_cons, offset = at & (rx->eager_size - 1);

	if (skipped >= rx->eager_size || length > rx->eager_size - skipped ||
	    length > rx->eager_size - offset)
		return NULL;
	return rx->eager + offset;
}

/* Returns the bytes of the eager ring, up to the end of that message, to the sender. */
static inline void land_eager_done(struct sv_qp *qp, uint32_t at, uint32_t length)
{
	qp->rx.eager_cons = at + ((length + SV_LINE - 1) & ~(SV_LINE - 1u));
	/* release: the bytes were read before; pairs with eager_reserve */
	atomic_store_explicit(&sv_area_own()->by_owner->rx[qp->index].eager_cons, qp->rx.eager_cons,
			      memory_order_release);
}

#endif
