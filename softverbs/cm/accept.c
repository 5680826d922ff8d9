/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* The passive side's answer: accept, reject, and the message that completes an accepted connection. */
#include <errno.h>
#include <string.h>
#include "softverbs/cm/cm.h"
#include "util/log.h"

/* Sends a reject if the peer waits for a message in this state. */
void sv_cm_reject_send_locked(struct cm_id *id, enum cm_reason reason, const void *data,
			      size_t size)
{
	struct cm_message message = { .kind = CM_MSG_REJ, .reason = reason };

	if (id->state != CM_REQUESTED && id->state != CM_ANSWERED && id->state != CM_ACCEPTED)
		return;
	if (size)
		memcpy(message.data, data, size);
	id->state = CM_CLOSED;
	if (sv_cm_message_send_data_locked(id, &message))
		log_at(LOG_TRACE, "rdma_cm: id %p: the requester is gone, no rejection is sent",
		       (void *)&id->id);
}

static int accept_failed(struct cm_id *id, int error)
{
	sv_cm_qp_error(id);
	sv_cm_lock();
	sv_cm_reject_send_locked(id, CM_CONSUMER, NULL, 0);
	sv_cm_unlock();
	return sv_cm_fail(error);
}

static int accept_send_locked(struct cm_id *id, const struct rdma_conn_param *param)
{
	struct cm_message reply = { .kind = CM_MSG_REP, .params = id->local };

	if (id->state != CM_REQUESTED)
		return EINVAL;	      /* withdrawn */
	reply.params.retry_count = 0; /* the requester's count applies */
	if (param && param->private_data && param->private_data_len)
		memcpy(reply.data, param->private_data, param->private_data_len);
	id->state = CM_ACCEPTED;
	if (sv_cm_message_send_data_locked(id, &reply))
		sv_cm_disconnect_lost_locked(id);
	return 0;
}

int rdma_accept(struct rdma_cm_id *public, struct rdma_conn_param *param)
{
	struct cm_id *id = cm_id_of(public);
	int error;

	if (!sv_cm_id_is_ours(id))
		return sv_cm_fail(ENODEV);
	if (id_is_datagram(id))
		return sv_cm_datagram_accept(id, param);
	sv_cm_lock();
	error = id->state == CM_REQUESTED ? sv_cm_params_copy(id, param) : EINVAL;
	sv_cm_unlock();
	if (error)
		return sv_cm_fail(error);
	if (param && param->private_data_len > CM_REP_DATA)
		return accept_failed(id, EINVAL);
	error = sv_cm_qp_connect(id);
	if (error)
		return accept_failed(id, error);
	sv_cm_lock();
	error = accept_send_locked(id, param);
	sv_cm_unlock();
	if (error)
		return accept_failed(id, error);
	return sv_cm_sync_finish(id);
}

int rdma_reject(struct rdma_cm_id *public, const void *data, uint8_t size)
{
	struct cm_id *id = cm_id_of(public);
	bool waited;

	if (!sv_cm_id_is_ours(id))
		return sv_cm_fail(ENODEV);
	if (size > (id_is_datagram(id) ? CM_SIDR_REP_DATA : CM_REJ_DATA))
		return sv_cm_fail(EINVAL);
	sv_cm_lock();
	waited = id->state == CM_REQUESTED || id->state == CM_ANSWERED;
	if (waited)
		sv_cm_reject_send_locked(id, CM_CONSUMER, data, data ? size : 0);
	sv_cm_unlock();
	return waited ? 0 : sv_cm_fail(EINVAL);
}

int rdma_reject_ece(struct rdma_cm_id *public, const void *data, uint8_t size)
{
	return rdma_reject(public, data, size);
}

void sv_cm_accept_complete_locked(struct cm_id *id)
{
	if (id->state != CM_ACCEPTED)
		return;
	id->state = CM_ESTABLISHED;
	sv_cm_event_post_new_locked(id, RDMA_CM_EVENT_ESTABLISHED, 0);
}

/* Data arrived before the RTU: the program confirms that the connection is established. */
int rdma_notify(struct rdma_cm_id *public, enum ibv_event_type type)
{
	struct cm_id *id = cm_id_of(public);
	int error = 0;

	if (!sv_cm_id_is_ours(id))
		return sv_cm_fail(ENODEV);
	if (type != IBV_EVENT_COMM_EST)
		return sv_cm_fail(EINVAL);
	sv_cm_lock();
	if (id->state == CM_ACCEPTED)
		sv_cm_accept_complete_locked(id);
	else if (id->state != CM_ESTABLISHED)
		error = EINVAL;
	sv_cm_unlock();
	return error ? sv_cm_fail(error) : 0;
}
