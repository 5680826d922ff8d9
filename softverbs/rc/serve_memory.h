/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/*
 * How this process copies to and from its own regions for a peer. The kernel copies, or populates the pages first, so that
 * a page that is not there is an error and no signal. That takes longer than the copy, so for a region that is used often
 * the engine finds out whether it is memory of this process alone, which no peer can truncate. Then a copy only asks
 * whether the range is still mapped, once for several parts of a transfer.
 *
 * The caller holds the serve lock of the area for reading, and has found the key valid.
 */
#ifndef SV_RC_SERVE_MEMORY_H
#define SV_RC_SERVE_MEMORY_H

#include <sys/uio.h>
#include "softverbs/object/qp.h"

/* Copies between a range of the region of `key` and `data`; `write`: into the range. False as sv_memory_copy. */
bool sv_serve_copy_locked(struct sv_qp *qp, uint32_t key, const struct iovec *at, uint8_t *data,
			  bool write);
/* Copies into the range; the bytes that a program may poll (memory_polled) come last and at once. */
bool sv_serve_write_locked(struct sv_qp *qp, uint32_t key, const struct iovec *at, uint8_t *data);
/* Engine, with the QP's serve.lock only: finds out what memory the region is that this QP's copies have used often. */
void sv_serve_learn_locked(struct sv_qp *qp);
/* The QP ends, before the engine has done so: the copies are counted anew. */
void sv_serve_forget_locked(struct sv_qp *qp);

#endif
