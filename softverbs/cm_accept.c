/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* Answering a request: accept, reject, and the message that completes an accepted connection. */
#include <errno.h>
#include <string.h>
#include "softverbs/cm.h"
#include "util/log.h"

/* Ends what the other side waits for, if it waits. */
void reject_send_locked(struct cm_id *id, enum cm_reason reason, const void *data, size_t size)
{
	struct cm_message message = { .kind = CM_MSG_REJ, .reason = reason };

	if (id->state != CM_REQUESTED && id->state != CM_ANSWERED && id->state != CM_ACCEPTED)
		return;
	if (size)
		memcpy(message.data, data, size);
	id->state = CM_CLOSED;
	if (message_send_data_locked(id, &message))
		log_at(LOG_TRACE, "rdma_cm: id %p: nobody is left to reject", (void *)&id->id);
}

static int accept_failed(struct cm_id *id, int error)
{
	qp_error(id);
	cm_lock();
	reject_send_locked(id, CM_CONSUMER, NULL, 0);
	cm_unlock();
	return cm_fail(error);
}

static int accept_send_locked(struct cm_id *id, const struct rdma_conn_param *param)
{
	struct cm_message reply = { .kind = CM_MSG_REP, .params = id->local };

	if (id->state != CM_REQUESTED)
		return EINVAL;	      /* withdrawn */
	reply.params.retry_count = 0; /* the requester's counts */
	if (param && param->private_data && param->private_data_len)
		memcpy(reply.data, param->private_data, param->private_data_len);
	id->state = CM_ACCEPTED;
	if (message_send_data_locked(id, &reply))
		disconnect_lost_locked(id);
	return 0;
}

int rdma_accept(struct rdma_cm_id *public, struct rdma_conn_param *param)
{
	struct cm_id *id = cm_id_of(public);
	int error;

	if (!id_is_ours(id))
		return cm_fail(ENODEV);
	if (id_is_datagram(id))
		return datagram_accept(id, param);
	cm_lock();
	error = id->state == CM_REQUESTED ? params_take(id, param) : EINVAL;
	cm_unlock();
	if (error)
		return cm_fail(error);
	if (param && param->private_data_len > CM_REP_DATA)
		return accept_failed(id, EINVAL);
	error = qp_connect(id);
	if (error)
		return accept_failed(id, error);
	cm_lock();
	error = accept_send_locked(id, param);
	cm_unlock();
	if (error)
		return accept_failed(id, error);
	return sync_finish(id);
}

int rdma_reject(struct rdma_cm_id *public, const void *data, uint8_t size)
{
	struct cm_id *id = cm_id_of(public);
	bool waited;

	if (!id_is_ours(id))
		return cm_fail(ENODEV);
	if (size > (id_is_datagram(id) ? CM_SIDR_REP_DATA : CM_REJ_DATA))
		return cm_fail(EINVAL);
	cm_lock();
	waited = id->state == CM_REQUESTED || id->state == CM_ANSWERED;
	if (waited)
		reject_send_locked(id, CM_CONSUMER, data, data ? size : 0);
	cm_unlock();
	return waited ? 0 : cm_fail(EINVAL);
}

int rdma_reject_ece(struct rdma_cm_id *public, const void *data, uint8_t size)
{
	return rdma_reject(public, data, size);
}

void accept_complete_locked(struct cm_id *id)
{
	if (id->state != CM_ACCEPTED)
		return;
	id->state = CM_ESTABLISHED;
	event_post_new_locked(id, RDMA_CM_EVENT_ESTABLISHED, 0);
}

/* Data came before the message that completes the connection: the program says that it stands. */
int rdma_notify(struct rdma_cm_id *public, enum ibv_event_type type)
{
	struct cm_id *id = cm_id_of(public);
	int error = 0;

	if (!id_is_ours(id))
		return cm_fail(ENODEV);
	if (type != IBV_EVENT_COMM_EST)
		return cm_fail(EINVAL);
	cm_lock();
	if (id->state == CM_ACCEPTED)
		accept_complete_locked(id);
	else if (id->state != CM_ESTABLISHED)
		error = EINVAL;
	cm_unlock();
	return error ? cm_fail(error) : 0;
}
