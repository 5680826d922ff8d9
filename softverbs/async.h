/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* Asynchronous events: posted by the data path and the engine, read by ibv_get_async_event. */
#ifndef SV_ASYNC_H
#define SV_ASYNC_H

#include "softverbs/api.h"

/* Any thread, any lock held but a context's; each event is queued once for each call. */
void async_post_qp(struct ibv_qp *qp, enum ibv_event_type type);
void async_post_cq(struct ibv_cq *cq, enum ibv_event_type type);
void async_post_srq(struct ibv_srq *srq, enum ibv_event_type type);
void async_post_port(struct ibv_context *context, enum ibv_event_type type);

/*
 * For the destroyer, with no lock held and after the last post: drops the object's events that
 * nobody has read, and waits until each one that was read is acknowledged.
 */
void async_retire_qp(struct ibv_qp *qp);
void async_retire_cq(struct ibv_cq *cq);
void async_retire_srq(struct ibv_srq *srq);

#endif
