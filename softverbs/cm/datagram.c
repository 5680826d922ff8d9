/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* Datagram identifiers: a request asks for the queue pair behind a port, and the answer names it. There is no
 * connection that could end (IBTA, service ID resolution). */
#include <errno.h>
#include <string.h>
#include "softverbs/cm/cm.h"

unsigned sv_cm_request_room(const struct cm_id *id)
{
	return id_is_datagram(id) ? CM_SIDR_REQ_DATA : CM_REQ_DATA;
}

void sv_cm_datagram_set_params(const struct cm_id *id, struct cm_event *event,
			       const struct cm_params *theirs, const uint8_t *data, unsigned size)
{
	struct rdma_ud_param *param = &event->event.param.ud;

	if (theirs) {
		sv_cm_address_fill(id, &param->ah_attr);
		param->qp_num = theirs->qpn;
		param->qkey = theirs->qkey;
	}
	if (size) {
		memcpy(event->data, data, size);
		param->private_data = event->data;
		param->private_data_len = (uint8_t)size;
	}
}

void sv_cm_datagram_resolved_locked(struct cm_id *id, const struct cm_message *reply)
{
	struct cm_event *event = sv_cm_event_new_locked(id, RDMA_CM_EVENT_ESTABLISHED, 0);

	sv_engine_timer_disarm(&id->timer);
	id->state = CM_CLOSED;
	if (event)
		sv_cm_datagram_set_params(id, event, &reply->params, reply->data, CM_SIDR_REP_DATA);
	sv_cm_event_post_locked(event);
}

void sv_cm_datagram_refused_locked(struct cm_id *id, int status, const uint8_t *data)
{
	static const uint8_t nothing[CM_SIDR_REP_DATA];
	struct cm_event *event = sv_cm_event_new_locked(id, RDMA_CM_EVENT_UNREACHABLE, status);

	if (event && status > 0)
		sv_cm_datagram_set_params(id, event, NULL, data ? data : nothing, CM_SIDR_REP_DATA);
	sv_cm_event_post_locked(event);
}

int sv_cm_datagram_accept(struct cm_id *id, const struct rdma_conn_param *param)
{
	struct cm_message reply = { .kind = CM_MSG_REP };
	struct ibv_qp *qp = id->id.qp;
	int error = 0;

	if (!qp && !param)
		return sv_cm_fail(EINVAL);
	if (param && param->private_data_len > CM_SIDR_REP_DATA) {
		sv_cm_lock();
		sv_cm_reject_send_locked(id, CM_CONSUMER, NULL, 0);
		sv_cm_unlock();
		return sv_cm_fail(EINVAL);
	}
	if (param && param->private_data && param->private_data_len)
		memcpy(reply.data, param->private_data, param->private_data_len);
	reply.params.qpn = qp ? qp->qp_num : param->qp_num & 0xffffff;
	reply.params.qkey = RDMA_UDP_QKEY;
	sv_cm_lock();
	if (id->state == CM_REQUESTED) {
		id->state = CM_CLOSED;
		/* the peer may have ended; no state here depends on it */
		sv_cm_message_send_data_locked(id, &reply);
	} else {
		error = EINVAL; /* withdrawn, or answered */
	}
	sv_cm_unlock();
	return error ? sv_cm_fail(error) : 0;
}
