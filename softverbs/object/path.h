/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/*
 * The way of a reliable QP to a peer that shared memory does not reach: what a transport (link/transport.h) puts at the QP.
 *
 * The transport sends the requests of the queue and completes each, in order, when its answer comes. The peer's requests are
 * executed in this process by an initiator that belongs to the transport and is connected to the QP as any local one is, so
 * that rights, receives, RNR, SRQ, windows and events are those of a local connection.
 */
#ifndef SV_OBJECT_PATH_H
#define SV_OBJECT_PATH_H

#include "softverbs/object/qp.h"

struct sv_path_ops {
	/* State RESET, after the QP was quiesced: frees the path, and clears qp->path. `modify` is held. */
	void (*close)(struct sv_qp *qp);
	/* The QPN of the only initiator that may place messages in this process. */
	uint32_t (*initiator)(const struct sv_qp *qp);

	/* The rest with the SQ lock. */

	/* As sv_remote_rq_bind_locked: SQ_SENT if requests can be sent; SQ_LINKING; SQ_SILENT if the peer is gone. */
	int (*bind_locked)(struct sv_qp *qp);
	/* Whether requests were sent and not answered. */
	bool (*is_begun_locked)(const struct sv_qp *qp);
	/*
	 * State RTS: sends the requests that wait, as far as the path allows: EXEC_WAIT(SQ_SENT), or the status with which the oldest
	 * one fails. Answers complete them later (sv_sq_answered_locked).
	 */
	int (*push_locked)(struct sv_qp *qp);
};

/* The first member of the transport's own struct. */
struct sv_path {
	const struct sv_path_ops *ops;
};

static inline bool path_is_begun_locked(const struct sv_qp *qp)
{
	return qp->path && qp->path->ops->is_begun_locked(qp);
}

#endif
