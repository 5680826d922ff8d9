/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/*
 * Asynchronous events: a queue for each context, and an eventfd that holds one token for each
 * event.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>
#include "softverbs/object/async.h"
#include "softverbs/object/context.h"
#include "softverbs/base/os.h"
#include "util/log.h"

struct async_entry {
	STAILQ_ENTRY(async_entry) next;
	struct ibv_async_event event;
	uint32_t *unacked; /* counter of the object: events read but not acknowledged; NULL: port */
};

const char *ibv_event_type_str(enum ibv_event_type event)
{
	static const char *const names[] = {
		[IBV_EVENT_CQ_ERR] = "CQ error",
		[IBV_EVENT_QP_FATAL] = "QP fatal error",
		[IBV_EVENT_QP_REQ_ERR] = "QP invalid request error",
		[IBV_EVENT_QP_ACCESS_ERR] = "QP access violation",
		[IBV_EVENT_COMM_EST] = "communication established",
		[IBV_EVENT_SQ_DRAINED] = "send queue drained",
		[IBV_EVENT_PATH_MIG] = "path migrated",
		[IBV_EVENT_PATH_MIG_ERR] = "path migration failed",
		[IBV_EVENT_DEVICE_FATAL] = "device fatal error",
		[IBV_EVENT_PORT_ACTIVE] = "port active",
		[IBV_EVENT_PORT_ERR] = "port error",
		[IBV_EVENT_LID_CHANGE] = "LID changed",
		[IBV_EVENT_PKEY_CHANGE] = "P_Key table changed",
		[IBV_EVENT_SM_CHANGE] = "subnet manager changed",
		[IBV_EVENT_SRQ_ERR] = "SRQ error",
		[IBV_EVENT_SRQ_LIMIT_REACHED] = "SRQ limit reached",
		[IBV_EVENT_QP_LAST_WQE_REACHED] = "last WQE reached",
		[IBV_EVENT_CLIENT_REREGISTER] = "client must register again",
		[IBV_EVENT_GID_CHANGE] = "GID table changed",
		[IBV_EVENT_WQ_FATAL] = "WQ fatal error",
	};

	return (unsigned)event < sizeof(names) / sizeof(*names) && names[event] ? names[event]
										: "unknown event";
}

int sv_async_open(struct sv_context *context)
{
	STAILQ_INIT(&context->events);
	pthread_cond_init(&context->acked, NULL);
	context->verbs.context.async_fd = eventfd(0, EFD_CLOEXEC | EFD_SEMAPHORE);
	return context->verbs.context.async_fd < 0 ? errno : 0;
}

void sv_async_close(struct sv_context *context)
{
	struct async_entry *entry;

	while ((entry = STAILQ_FIRST(&context->events))) {
		STAILQ_REMOVE_HEAD(&context->events, next);
		free(entry);
	}
	if (context->verbs.context.async_fd >= 0)
		close(context->verbs.context.async_fd);
	pthread_cond_destroy(&context->acked);
}

static void async_post(struct ibv_context *ibv, const struct ibv_async_event *event,
		       uint32_t *unacked)
{
	struct sv_context *context = context_of(ibv);
	struct async_entry *entry = malloc(sizeof(*entry));

	if (!entry) {
		log_at(LOG_ERROR, "soft0: no memory, '%s' is lost",
		       ibv_event_type_str(event->event_type));
		return;
	}
	entry->event = *event;
	entry->unacked = unacked;
	pthread_mutex_lock(&ibv->mutex);
	STAILQ_INSERT_TAIL(&context->events, entry, next);
	if (eventfd_write(ibv->async_fd, 1))
		log_at(LOG_ERROR, "soft0: async eventfd: %s", strerror(errno));
	pthread_mutex_unlock(&ibv->mutex);
}

void sv_async_post_qp(struct ibv_qp *qp, enum ibv_event_type type)
{
	async_post(qp->context, &(struct ibv_async_event){ .element.qp = qp, .event_type = type },
		   &qp->events_completed);
}

void sv_async_post_cq(struct ibv_cq *cq, enum ibv_event_type type)
{
	async_post(cq->context, &(struct ibv_async_event){ .element.cq = cq, .event_type = type },
		   &cq->async_events_completed);
}

void sv_async_post_srq(struct ibv_srq *srq, enum ibv_event_type type)
{
	async_post(srq->context,
		   &(struct ibv_async_event){ .element.srq = srq, .event_type = type },
		   &srq->events_completed);
}

void sv_async_post_port(struct ibv_context *context, enum ibv_event_type type)
{
	async_post(context, &(struct ibv_async_event){ .element.port_num = 1, .event_type = type },
		   NULL);
}

/*
 * Reads the token of a dropped event. It must not block, even if the descriptor does: a reader
 * may have read the token already; that reader then finds no event and reads again.
 */
static void token_take_back(int fd)
{
	int error = sv_os_token_read(fd);

	if (error && error != EAGAIN)
		log_at(LOG_TRACE, "soft0: the async eventfd cannot be read: %s", strerror(error));
}

static void retire(struct ibv_context *ibv, const uint32_t *unacked)
{
	struct sv_context *context = context_of(ibv);
	struct async_entry *entry, *next;

	pthread_mutex_lock(&ibv->mutex);
	for (entry = STAILQ_FIRST(&context->events); entry; entry = next) {
		next = STAILQ_NEXT(entry, next);
		if (entry->unacked != unacked)
			continue;
		STAILQ_REMOVE(&context->events, entry, async_entry, next);
		free(entry);
		token_take_back(ibv->async_fd);
	}
	while (*unacked)
		pthread_cond_wait(&context->acked, &ibv->mutex);
	pthread_mutex_unlock(&ibv->mutex);
}

void sv_async_retire_qp(struct ibv_qp *qp)
{
	retire(qp->context, &qp->events_completed);
}

void sv_async_retire_cq(struct ibv_cq *cq)
{
	retire(cq->context, &cq->async_events_completed);
}

void sv_async_retire_srq(struct ibv_srq *srq)
{
	retire(srq->context, &srq->events_completed);
}

static bool event_dequeue(struct ibv_context *ibv, struct ibv_async_event *event)
{
	struct sv_context *context = context_of(ibv);
	struct async_entry *entry;

	pthread_mutex_lock(&ibv->mutex);
	entry = STAILQ_FIRST(&context->events);
	if (entry) {
		STAILQ_REMOVE_HEAD(&context->events, next);
		if (entry->unacked)
			++*entry->unacked;
		*event = entry->event;
	}
	pthread_mutex_unlock(&ibv->mutex);
	free(entry);
	return entry;
}

/* Blocks only in the read, with no lock held: the thread may be cancelled there. */
int ibv_get_async_event(struct ibv_context *context, struct ibv_async_event *event)
{
	uint64_t token;

	if (!context_is_ours(context)) {
		errno = ENODEV;
		return -1;
	}
	do {
		if (read(context->async_fd, &token, sizeof(token)) < 0)
			return -1;
	} while (!event_dequeue(context, event));
	return 0;
}

static void ack(struct ibv_context *ibv, uint32_t *unacked)
{
	pthread_mutex_lock(&ibv->mutex);
	if (*unacked && !--*unacked)
		pthread_cond_broadcast(&context_of(ibv)->acked);
	pthread_mutex_unlock(&ibv->mutex);
}

void ibv_ack_async_event(struct ibv_async_event *event)
{
	switch (event->event_type) {
	case IBV_EVENT_CQ_ERR:
		ack(event->element.cq->context, &event->element.cq->async_events_completed);
		break;
	case IBV_EVENT_QP_FATAL:
	case IBV_EVENT_QP_REQ_ERR:
	case IBV_EVENT_QP_ACCESS_ERR:
	case IBV_EVENT_COMM_EST:
	case IBV_EVENT_SQ_DRAINED:
	case IBV_EVENT_PATH_MIG:
	case IBV_EVENT_PATH_MIG_ERR:
	case IBV_EVENT_QP_LAST_WQE_REACHED:
		ack(event->element.qp->context, &event->element.qp->events_completed);
		break;
	case IBV_EVENT_SRQ_ERR:
	case IBV_EVENT_SRQ_LIMIT_REACHED:
		ack(event->element.srq->context, &event->element.srq->events_completed);
		break;
	default: break;
	}
}
