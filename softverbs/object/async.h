/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* Asynchronous events: posted by the data path and the engine, read by ibv_get_async_event. */
#ifndef SV_OBJECT_ASYNC_H
#define SV_OBJECT_ASYNC_H

#include "softverbs/base/api.h"

/*
 * Queues one event for each call. Any thread may call these, with any lock held except a
 * context's mutex.
 */
void sv_async_post_qp(struct ibv_qp *qp, enum ibv_event_type type);
void sv_async_post_cq(struct ibv_cq *cq, enum ibv_event_type type);
void sv_async_post_srq(struct ibv_srq *srq, enum ibv_event_type type);
void sv_async_post_port(struct ibv_context *context, enum ibv_event_type type);

/*
 * For the thread that destroys the object, after the last post and with no lock held: drops the
 * object's unread events, and waits until the consumer has acknowledged each event that it read.
 */
void sv_async_retire_qp(struct ibv_qp *qp);
void sv_async_retire_cq(struct ibv_cq *cq);
void sv_async_retire_srq(struct ibv_srq *srq);

#endif
