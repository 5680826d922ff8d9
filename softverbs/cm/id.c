/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* Identifiers: creation and destruction, and the channel that an identifier uses. */
#include <stdlib.h>
#include "softverbs/cm/cm.h"

static unsigned ids; /* that programs own; the cm lock */

struct cm_id *sv_cm_id_new(struct cm_channel *channel, void *context, enum rdma_port_space space)
{
	struct cm_id *id = calloc(1, sizeof(*id));

	if (!id)
		return NULL;
	id->id.channel = &channel->channel;
	id->id.context = context;
	id->id.ps = space;
	id->id.qp_type = space == RDMA_PS_TCP ? IBV_QPT_RC : IBV_QPT_UD;
	id->alive = channel->alive;
	pthread_cond_init(&id->all_acked, NULL);
	TAILQ_INIT(&id->parked);
	TAILQ_INIT(&id->reserve);
	if (sv_cm_event_reserve(id)) {
		sv_cm_id_free(id);
		return NULL;
	}
	return id;
}

int sv_cm_id_own(struct cm_id *id)
{
	int error = sv_cm_device_hold();

	if (error)
		return error;
	id->owned = true;
	sv_cm_lock();
	ids++;
	sv_cm_unlock();
	return 0;
}

static void disown(void)
{
	sv_cm_lock();
	if (!--ids) {
		sv_cm_port_idle_locked();
		sv_cm_numbers_end_locked();
	}
	sv_cm_unlock();
	sv_cm_device_release();
}

void sv_cm_id_free(struct cm_id *id)
{
	sv_engine_timer_cancel(&id->timer);
	if (id->peer)
		sv_peer_put(id->peer);
	sv_cm_device_unbind(id);
	if (id->owned)
		disown();
	sv_cm_event_unreserve(id);
	pthread_cond_destroy(&id->all_acked);
	free(id->request);
	free(id->ep_attr);
	free(id);
}

/* ---- calls ---- */

int rdma_create_id(struct rdma_event_channel *channel, struct rdma_cm_id **out, void *context,
		   enum rdma_port_space space)
{
	struct rdma_event_channel *own = NULL;
	struct cm_id *id;
	int error;

	if (space != RDMA_PS_TCP && space != RDMA_PS_UDP)
		return sv_cm_fail(EINVAL);
	if (channel && !sv_cm_channel_is_ours(channel))
		return sv_cm_fail(ENODEV);
	if (!channel) {
		own = rdma_create_event_channel();
		if (!own)
			return -1;
	}
	id = sv_cm_id_new((struct cm_channel *)(void *)(channel ? channel : own), context, space);
	error = id ? sv_cm_id_own(id) : ENOMEM;
	if (error) {
		if (id)
			sv_cm_id_free(id);
		if (own)
			rdma_destroy_event_channel(own);
		return sv_cm_fail(error);
	}
	id->sync = own;
	*out = &id->id;
	return 0;
}

/* Blocks until the program has acknowledged all delivered events, then frees the identifier. */
int rdma_destroy_id(struct rdma_cm_id *public)
{
	struct cm_id *id = cm_id_of(public);
	struct rdma_event_channel *own = id->sync ? public->channel : NULL;

	if (!sv_cm_id_is_ours(id))
		return sv_cm_fail(ENODEV);
	if (public->event)
		rdma_ack_cm_event(public->event);
	sv_cm_lock();
	sv_cm_abandon_locked(id);
	sv_cm_event_discard_locked(id);
	while (id->acked != id->delivered)
		sv_cm_wait(&id->all_acked);
	sv_cm_unlock();
	sv_cm_id_free(id);
	if (own)
		rdma_destroy_event_channel(own);
	return 0;
}

/* Without a channel, the identifier gets one of its own, and calls wait for their event. */
int rdma_migrate_id(struct rdma_cm_id *public, struct rdma_event_channel *channel)
{
	struct cm_id *id = cm_id_of(public);
	struct rdma_event_channel *old = public->channel, *own = NULL;
	bool old_is_own = id->sync;
	unsigned fetched;

	if (!sv_cm_id_is_ours(id) || (channel && !sv_cm_channel_is_ours(channel)))
		return sv_cm_fail(ENODEV);
	if (!channel) {
		own = rdma_create_event_channel();
		if (!own)
			return -1;
	}
	if (old_is_own && public->event) {
		rdma_ack_cm_event(public->event);
		public->event = NULL;
	}
	sv_cm_lock();
	sv_cm_event_move_locked(id, (struct cm_channel *)(void *)(channel ? channel : own));
	public->channel = channel ? channel : own;
	id->sync = own;
	fetched = id->delivered; /* from the old channel; later ones are from the new */
	while ((int)(id->acked - fetched) < 0)
		sv_cm_wait(&id->all_acked);
	sv_cm_unlock();
	if (old_is_own)
		rdma_destroy_event_channel(old);
	return 0;
}

/* ---- fork ---- */

void sv_cm_ids_fork_prepare(void)
{
	sv_cm_lock();
}

void sv_cm_ids_fork_parent(void)
{
	sv_cm_unlock();
}

/* The identifiers remain in the program's memory; each refuses every call. */
void sv_cm_ids_fork_child(void)
{
	sv_cm_port_fork_child();
	sv_cm_numbers_fork_child_locked();
	ids = 0;
	sv_cm_unlock();
}
