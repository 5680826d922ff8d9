/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/*
 * Completion channels: a descriptor that holds a token for each event. Any process that completes
 * work writes it.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "softverbs/object/channel.h"
#include "softverbs/base/foreign.h"
#include "softverbs/base/log_from.h"
#include "util/cancel.h"

#define ID_INDEX(id) ((id) >> 16)
#define DUE_MAX	     1024u /* tokens at once; a peer counts what is due */

/* The channels of one peer, as far as this process has asked for them. */
struct peer_channels {
	uint32_t count;
	struct {
		uint32_t id; /* 0 if there is none */
		bool asked;
		/*
		 * -1: this process has no descriptor yet. Replaced in place by dup3, and closed
		 * only when the peer is forgotten.
		 */
		int fd;
	} at[];
};

enum channel_verb {
	CHANNEL_ASK = 1,
	CHANNEL_HERE, /* the message carries the descriptor */
};

struct channel_text {
	uint32_t verb, id, cq_index, unused;
};

/* ---- consumer ---- */

struct ibv_comp_channel *ibv_create_comp_channel(struct ibv_context *context)
{
	CANCEL_OFF_HERE;
	struct area *area = sv_area_own();
	struct sv_channel *channel;
	static atomic_uint round;
	uint32_t index;
	int error;

	if (!context_is_ours(context)) {
		errno = ENODEV;
		return NULL;
	}
	channel = calloc(1, sizeof(*channel));
	if (!channel)
		return NULL;
	error = sv_tokens_open(&channel->tokens);
	index = error ? 0 : sv_ids_alloc(&area->channels);
	if (!index) {
		if (!error)
			sv_tokens_close(&channel->tokens);
		free(channel);
		errno = error ? error : ENOMEM;
		return NULL;
	}
	channel->ibv.fd = channel->tokens.fd;
	channel->ibv.context = context;
	channel->id =
		index << 16 | (atomic_fetch_add_explicit(&round, 1, memory_order_relaxed) & 0xffff);
	pthread_mutex_init(&channel->lock, NULL);
	TAILQ_INIT(&channel->cqs);
	pthread_mutex_lock(&area->wake_lock);
	area->channel[index] = channel;
	pthread_mutex_unlock(&area->wake_lock);
	atomic_fetch_add_explicit(&context_of(context)->users, 1, memory_order_relaxed);
	return &channel->ibv;
}

int ibv_destroy_comp_channel(struct ibv_comp_channel *ibv)
{
	CANCEL_OFF_HERE;
	struct sv_channel *channel = channel_of(ibv);
	struct area *area = sv_area_own();
	bool used;

	if (!context_is_ours(ibv->context))
		return ENODEV;
	pthread_mutex_lock(&channel->lock);
	used = !TAILQ_EMPTY(&channel->cqs);
	pthread_mutex_unlock(&channel->lock);
	if (used)
		return EBUSY;
	pthread_mutex_lock(&area->wake_lock);
	area->channel[ID_INDEX(channel->id)] = NULL;
	sv_tokens_close(&channel->tokens);
	pthread_mutex_unlock(&area->wake_lock);
	sv_ids_free(&area->channels, ID_INDEX(channel->id));
	pthread_mutex_destroy(&channel->lock);
	atomic_fetch_sub_explicit(&context_of(ibv->context)->users, 1,
				  memory_order_release); /* release: see ibv_dealloc_pd */
	free(channel);
	return 0;
}

void sv_channel_join(struct sv_channel *channel, struct sv_cq *cq)
{
	struct area *area = sv_area_own();

	pthread_mutex_lock(&channel->lock);
	TAILQ_INSERT_TAIL(&channel->cqs, cq, entry);
	channel->ibv.refcnt++;
	pthread_mutex_unlock(&channel->lock);
	pthread_mutex_lock(&area->wake_lock);
	area->cq_channel[cq->index] = channel;
	pthread_mutex_unlock(&area->wake_lock);
	/* release: peers that see the id may ask for the descriptor */
	atomic_store_explicit(&cq->by_owner->channel, channel->id, memory_order_release);
}

void sv_channel_leave(struct sv_channel *channel, struct sv_cq *cq)
{
	struct area *area = sv_area_own();

	atomic_store_explicit(&cq->by_owner->channel, 0, memory_order_relaxed);
	pthread_mutex_lock(&area->wake_lock);
	area->cq_channel[cq->index] = NULL;
	pthread_mutex_unlock(&area->wake_lock);
	pthread_mutex_lock(&channel->lock);
	while (sv_cq_event_consume(cq)) {
		cq->consumed--;
		cq->fired--;
		sv_token_drop(&channel->tokens);
	}
	TAILQ_REMOVE(&channel->cqs, cq, entry);
	channel->ibv.refcnt--;
	pthread_mutex_unlock(&channel->lock);
}

static struct sv_cq *channel_find_locked(struct sv_channel *channel,
					 bool (*consume)(struct sv_cq *))
{
	struct sv_cq *cq;

	TAILQ_FOREACH(cq, &channel->cqs, entry)
		if (consume(cq))
			break;
	return cq;
}

/*
 * A token is owed if it could not be written because the pipe was full of others. While events
 * are left, each reader writes a token, so that no event stays without one.
 */
static void channel_repay_locked(struct sv_channel *channel)
{
	if (!atomic_exchange(&channel->owed, false) ||
	    !channel_find_locked(channel, sv_cq_has_event))
		return;
	atomic_store(&channel->owed, true);
	sv_token_put(channel->tokens.writer);
}

/*
 * The CQ whose event a token announces. The CQ moves to the end of the list, so that CQs with
 * events take turns. A token without an event gets one: programs do not expect that a channel
 * which poll(2) found readable has none. NULL if the channel has no CQ.
 */
static struct sv_cq *channel_next_event(struct sv_channel *channel)
{
	struct sv_cq *cq;

	pthread_mutex_lock(&channel->lock);
	cq = channel_find_locked(channel, sv_cq_event_consume);
	if (!cq) {
		cq = TAILQ_FIRST(&channel->cqs);
		if (cq)
			sv_cq_event_add_consumed(cq);
	}
	if (cq && TAILQ_NEXT(cq, entry)) {
		TAILQ_REMOVE(&channel->cqs, cq, entry);
		TAILQ_INSERT_TAIL(&channel->cqs, cq, entry);
	}
	if (unlikely(atomic_load_explicit(&channel->owed, memory_order_relaxed)))
		channel_repay_locked(channel);
	pthread_mutex_unlock(&channel->lock);
	return cq;
}

/* Blocks only in the read, with no lock held: the thread may be cancelled there. */
int ibv_get_cq_event(struct ibv_comp_channel *ibv, struct ibv_cq **cq, void **cq_context)
{
	struct sv_channel *channel = channel_of(ibv);
	struct sv_cq *found;

	if (!context_is_ours(ibv->context)) {
		errno = ENODEV;
		return -1;
	}
	do {
		if (sv_token_take(&channel->tokens))
			return -1;
		found = channel_next_event(channel);
	} while (!found);
	*cq = &found->ibv;
	*cq_context = found->ibv.cq_context;
	return 0;
}

void ibv_ack_cq_events(struct ibv_cq *cq, unsigned int count)
{
	if (!context_is_ours(cq->context))
		return;
	pthread_mutex_lock(&cq->mutex);
	cq->comp_events_completed += count;
	pthread_cond_signal(&cq->cond);
	pthread_mutex_unlock(&cq->mutex);
}

/* ---- completing threads ---- */

/*
 * Writes a token. It is owed when the pipe is full; `owed` is set before the second try, because
 * readers that run before it is set do not see it.
 */
static bool channel_put(struct sv_channel *channel)
{
	if (sv_token_put(channel->tokens.writer))
		return true;
	atomic_store(&channel->owed, true);
	return sv_token_put(channel->tokens.writer);
}

static void channel_wake_own(uint32_t cq_index, uint32_t count)
{
	struct area *area = sv_area_own();
	struct sv_channel *channel;

	pthread_mutex_lock(&area->wake_lock);
	channel = area->cq_channel[cq_index];
	while (channel && count-- && channel_put(channel))
		;
	pthread_mutex_unlock(&area->wake_lock);
}

static struct peer_channels *channels_of_locked(struct sv_peer *peer, uint32_t index)
{
	struct peer_channels *channels = peer->data;
	uint32_t count = channels ? channels->count : 0, need = (index | 15) + 1;

	if (index < count)
		return channels;
	channels = realloc(channels, sizeof(*channels) + need * sizeof(channels->at[0]));
	if (!channels)
		return NULL;
	for (uint32_t i = count; i < need; i++) {
		channels->at[i].id = 0;
		channels->at[i].asked = false;
		channels->at[i].fd = -1;
	}
	channels->count = need;
	peer->data = channels;
	return channels;
}

/*
 * This process's descriptor for the channel of the owner's CQ. -1 if there is none; then requests
 * it.
 */
static int channel_writer(struct sv_peer *owner, uint32_t cq_index)
{
	struct area *area = sv_area_own();
	/* relaxed: an old channel does no harm */
	uint32_t id =
		atomic_load_explicit(&owner->by_owner->cq[cq_index].channel, memory_order_relaxed);
	uint32_t index = ID_INDEX(id);
	struct peer_channels *channels;
	bool ask = false;
	int fd = -1;

	pthread_mutex_lock(&area->wake_lock);
	channels = index && index < SV_CQS ? channels_of_locked(owner, index) : NULL;
	if (channels && channels->at[index].id == id) {
		fd = channels->at[index].fd;
	} else if (channels && !channels->at[index].asked) {
		channels->at[index].asked = ask = true;
	}
	pthread_mutex_unlock(&area->wake_lock);
	if (ask) {
		struct channel_text text = { .verb = CHANNEL_ASK, .id = id, .cq_index = cq_index };

		sv_peer_send(owner, SV_MSG_DATA, &text, sizeof(text), -1);
	}
	return fd;
}

void sv_channel_ask(struct sv_peer *owner, uint32_t cq_index)
{
	if (owner != sv_peer_self())
		channel_writer(owner, cq_index);
}

void sv_channel_wake(struct sv_peer *owner, uint32_t cq_index)
{
	int fd;

	if (owner == sv_peer_self()) {
		channel_wake_own(cq_index, 1);
		return;
	}
	fd = channel_writer(owner, cq_index);
	if (fd >= 0 && sv_token_put(fd))
		return;
	atomic_fetch_add_explicit(&owner->by_peers->cq[cq_index].due, 1, memory_order_release);
	sv_attention_set(owner->by_peers->attention.cq, cq_index);
	sv_peer_ring(owner);
}

void sv_channel_wake_due(uint32_t cq_index, uint32_t count)
{
	channel_wake_own(cq_index, count < DUE_MAX ? count : DUE_MAX);
}

/* Sends a descriptor to a peer that asked for a channel of this process. */
static void channel_answer(struct sv_peer *peer, const struct channel_text *ask)
{
	struct channel_text text = { .verb = CHANNEL_HERE,
				     .id = ask->id,
				     .cq_index = ask->cq_index };
	struct area *area = sv_area_own();
	struct sv_channel *channel;
	int fd = -1;

	pthread_mutex_lock(&area->wake_lock);
	channel = ID_INDEX(ask->id) < SV_CQS ? area->channel[ID_INDEX(ask->id)] : NULL;
	if (channel && channel->id == ask->id)
		fd = sv_tokens_invite(&channel->tokens);
	pthread_mutex_unlock(&area->wake_lock);
	if (fd < 0)
		return;
	sv_peer_send(peer, SV_MSG_DATA, &text, sizeof(text), fd);
	close(fd);
}

/*
 * Stores the descriptor that the owner passed. On failure the owner's engine keeps writing the
 * tokens.
 */
static void channel_keep(struct sv_peer *peer, uint32_t id, int passed)
{
	struct area *area = sv_area_own();
	uint32_t index = ID_INDEX(id);
	struct peer_channels *channels;
	int fd = sv_tokens_join(passed);

	if (fd < 0) {
		sv_log_from(sv_source_process(peer->pid), LOG_WARN,
			    "softverbs: process %d: a channel's descriptor is not used",
			    (int)peer->pid);
		return;
	}
	pthread_mutex_lock(&area->wake_lock);
	channels = index && index < SV_CQS ? channels_of_locked(peer, index) : NULL;
	if (channels && channels->at[index].asked) {
		channels->at[index].asked = false;
		channels->at[index].id = id;
		if (channels->at[index].fd < 0) {
			channels->at[index].fd = fd;
			fd = -1;
		} else {
			dup3(fd, channels->at[index].fd,
			     O_CLOEXEC); /* another thread may write to this number now */
		}
	}
	pthread_mutex_unlock(&area->wake_lock);
	if (fd >= 0)
		close(fd);
}

void sv_channel_message(struct sv_peer *peer, const void *payload, size_t size, int fd)
{
	struct channel_text text;

	if (size != sizeof(text)) {
		sv_log_from(sv_source_process(peer->pid), LOG_WARN,
			    "softverbs: process %d: malformed message of %zu bytes", (int)peer->pid,
			    size);
		sv_foreign_close(&fd, 1);
		return;
	}
	memcpy(&text, payload, sizeof(text));
	if (text.verb == CHANNEL_HERE && fd >= 0)
		channel_keep(peer, text.id, fd);
	else if (text.verb == CHANNEL_ASK)
		channel_answer(peer, &text);
	sv_foreign_close(&fd, 1);
}

void sv_channel_forget_peer(struct sv_peer *peer)
{
	struct peer_channels *channels = peer->data;

	for (uint32_t i = 0; channels && i < channels->count; i++)
		if (channels->at[i].fd >= 0)
			close(channels->at[i].fd);
	free(channels);
	peer->data = NULL;
}
