/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/*
 * A reliable QP whose peer is on another host: the calls of the data path into softverbs/fabric.
 *
 * Such a QP sends messages (fabric/data.h). The peer's requests are executed here by a second QP of this process,
 * the proxy: it is connected to the QP as a local initiator would be, so that rights, receives, RNR, SRQ, windows
 * and events are those of any local connection.
 */
#ifndef SV_OBJECT_FAR_H
#define SV_OBJECT_FAR_H

#include "softverbs/link/ip.h"
#include "softverbs/object/qp.h"

struct sv_far;

/* Whether the address is one of another host, with the fabric on; stores it. */
bool sv_far_host(const union ibv_gid *gid, struct sv_ip *host);

/* State RTR: makes qp->far and the proxy if the destination is on another host. `modify` is held. 0 or errno. */
int sv_far_open(struct sv_qp *qp);
/* State RESET, after the QP was quiesced; accepts a QP without qp->far. `modify` is held. */
void sv_far_close(struct sv_qp *qp);
/* The QPN of the only initiator that may place messages in this process. */
uint32_t sv_far_proxy(const struct sv_far *far);

/* The SQ lock is held. As sv_remote_rq_bind_locked: SQ_FAR if the link is there. */
int sv_far_bind_locked(struct sv_qp *qp);
/* Whether requests were sent and not answered. */
bool sv_far_is_begun_locked(const struct sv_qp *qp);
/* Sends the requests that wait, as far as the window allows: EXEC_WAIT(SQ_FAR), or the status with which the
 * oldest one fails. */
int sv_far_push_locked(struct sv_qp *qp);

/* A poll found nothing: reads what such QPs' peers sent. False if nothing was there, or another thread reads. The caller
 * holds no lock. */
bool sv_far_progress(void);

#endif
