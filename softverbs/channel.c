/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* Completion channels: an eventfd that counts like a semaphore, known to all who complete. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>
#include "softverbs/channel.h"
#include "softverbs/os.h"
#include "util/log.h"

#define ID_INDEX(id) ((id) >> 16)

/* What a peer's channels are to this process; one for each peer that has any. */
struct peer_channels {
	uint32_t count;
	struct {
		uint32_t id; /* 0: none */
		bool asked;
		int fd; /* -1: not here yet. Replaced in place, never closed while the peer is used
			 */
	} at[];
};

enum channel_verb {
	CHANNEL_ASK = 1,
	CHANNEL_HERE, /* with the descriptor */
};

struct channel_text {
	uint32_t verb, id, cq_index, unused;
};

/* ---- the program's side ---- */

struct ibv_comp_channel *ibv_create_comp_channel(struct ibv_context *context)
{
	struct area *area = area_own();
	struct sv_channel *channel;
	static atomic_uint round;
	uint32_t index;

	if (!context_is_ours(context)) {
		errno = ENODEV;
		return NULL;
	}
	channel = calloc(1, sizeof(*channel));
	if (!channel)
		return NULL;
	channel->ibv.fd = eventfd(0, EFD_CLOEXEC | EFD_SEMAPHORE);
	index = channel->ibv.fd < 0 ? 0 : ids_take(&area->channels);
	if (!index) {
		int err = channel->ibv.fd < 0 ? errno : ENOMEM;

		if (channel->ibv.fd >= 0)
			close(channel->ibv.fd);
		free(channel);
		errno = err;
		return NULL;
	}
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
	struct sv_channel *channel = channel_of(ibv);
	struct area *area = area_own();
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
	close(ibv->fd);
	pthread_mutex_unlock(&area->wake_lock);
	ids_give(&area->channels, ID_INDEX(channel->id));
	pthread_mutex_destroy(&channel->lock);
	atomic_fetch_sub_explicit(&context_of(ibv->context)->users, 1,
				  memory_order_release); /* release: see ibv_dealloc_pd */
	free(channel);
	return 0;
}

void channel_join(struct sv_channel *channel, struct sv_cq *cq)
{
	struct area *area = area_own();

	pthread_mutex_lock(&channel->lock);
	TAILQ_INSERT_TAIL(&channel->cqs, cq, entry);
	channel->ibv.refcnt++;
	pthread_mutex_unlock(&channel->lock);
	pthread_mutex_lock(&area->wake_lock);
	area->cq_channel[cq->index] = channel;
	pthread_mutex_unlock(&area->wake_lock);
	/* release: peers that see the id may ask for the descriptor */
	atomic_store_explicit(&cq->ro->channel, channel->id, memory_order_release);
}

/* Without blocking: a reader may have taken it already, and will find no event and read on. */
static void token_take_back(int fd)
{
	int error = os_token_take(fd);

	if (error && error != EAGAIN)
		log_at(LOG_TRACE, "softverbs: completion channel keeps a token: %s",
		       strerror(error));
}

void channel_leave(struct sv_channel *channel, struct sv_cq *cq)
{
	struct area *area = area_own();

	atomic_store_explicit(&cq->ro->channel, 0, memory_order_relaxed);
	pthread_mutex_lock(&area->wake_lock);
	area->cq_channel[cq->index] = NULL;
	pthread_mutex_unlock(&area->wake_lock);
	pthread_mutex_lock(&channel->lock);
	while (cq_take_event(cq)) {
		cq->consumed--;
		cq->fired--;
		token_take_back(channel->ibv.fd);
	}
	TAILQ_REMOVE(&channel->cqs, cq, entry);
	channel->ibv.refcnt--;
	pthread_mutex_unlock(&channel->lock);
}

/* The CQ that a token stands for; the next one of those with events goes first the next time. */
static struct sv_cq *channel_next_event(struct sv_channel *channel)
{
	struct sv_cq *cq;

	pthread_mutex_lock(&channel->lock);
	TAILQ_FOREACH(cq, &channel->cqs, entry)
		if (cq_take_event(cq))
			break;
	if (!cq) {
		TAILQ_FOREACH(cq, &channel->cqs, entry)
			if (cq_take_repair(cq))
				break;
	}
	if (cq && TAILQ_NEXT(cq, entry)) {
		TAILQ_REMOVE(&channel->cqs, cq, entry);
		TAILQ_INSERT_TAIL(&channel->cqs, cq, entry);
	}
	pthread_mutex_unlock(&channel->lock);
	return cq;
}

/* Blocks in the read and nowhere else, with no lock held: the thread may be cancelled there. */
int ibv_get_cq_event(struct ibv_comp_channel *ibv, struct ibv_cq **cq, void **cq_context)
{
	struct sv_cq *found;
	uint64_t token;

	if (!context_is_ours(ibv->context)) {
		errno = ENODEV;
		return -1;
	}
	do {
		if (read(ibv->fd, &token, sizeof(token)) < 0)
			return -1;
		found = channel_next_event(channel_of(ibv));
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

/* ---- the side of those who complete ---- */

static void token_write(int fd)
{
	/* the count cannot overflow, so this does not block */
	if (eventfd_write(fd, 1))
		log_at(LOG_ERROR, "softverbs: completion channel: %s", strerror(errno));
}

static void channel_wake_own(uint32_t cq_index)
{
	struct area *area = area_own();

	pthread_mutex_lock(&area->wake_lock);
	if (area->cq_channel[cq_index])
		token_write(area->cq_channel[cq_index]->ibv.fd);
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

/* -1 when it is not here; then it is asked for. */
static int channel_fd(struct sv_peer *owner, uint32_t id, uint32_t cq_index)
{
	struct area *area = area_own();
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

		peer_send(owner, SV_MSG_DATA, &text, sizeof(text), -1);
	}
	return fd;
}

void channel_ask(struct sv_peer *owner, uint32_t cq_index)
{
	if (owner != peer_self())
		channel_fd(owner,
			   atomic_load_explicit(&owner->ro->cq[cq_index].channel,
						memory_order_relaxed),
			   cq_index);
}

void channel_wake(struct sv_peer *owner, uint32_t cq_index)
{
	int fd;

	if (owner == peer_self()) {
		channel_wake_own(cq_index);
		return;
	}
	fd = channel_fd(owner,
			atomic_load_explicit(&owner->ro->cq[cq_index].channel,
					     memory_order_relaxed),
			cq_index);
	if (fd >= 0) {
		token_write(fd);
		return;
	}
	atomic_store_explicit(&owner->rw->cq[cq_index].due, 1, memory_order_release);
	attention_set(owner->rw->attention.cq, cq_index);
	peer_ring(owner);
}

/* Somebody wants to write into a channel of ours. */
static void channel_answer(struct sv_peer *peer, const struct channel_text *ask)
{
	struct channel_text text = { .verb = CHANNEL_HERE,
				     .id = ask->id,
				     .cq_index = ask->cq_index };
	struct area *area = area_own();
	struct sv_channel *channel;

	pthread_mutex_lock(&area->wake_lock);
	channel = ID_INDEX(ask->id) < SV_CQS ? area->channel[ID_INDEX(ask->id)] : NULL;
	if (channel && channel->id == ask->id)
		peer_send(peer, SV_MSG_DATA, &text, sizeof(text), channel->ibv.fd);
	pthread_mutex_unlock(&area->wake_lock);
}

static void channel_keep(struct sv_peer *peer, uint32_t id, int fd)
{
	struct area *area = area_own();
	uint32_t index = ID_INDEX(id);
	struct peer_channels *channels;

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
			     O_CLOEXEC); /* the number may be in use at this moment */
		}
	}
	pthread_mutex_unlock(&area->wake_lock);
	if (fd >= 0)
		close(fd);
}

void channel_message(struct sv_peer *peer, const void *payload, size_t size, int fd)
{
	struct channel_text text;

	if (size != sizeof(text)) {
		log_at(LOG_WARN, "softverbs: process %d: a message of %zu bytes makes no sense",
		       (int)peer->pid, size);
		if (fd >= 0)
			close(fd);
		return;
	}
	memcpy(&text, payload, sizeof(text));
	if (text.verb == CHANNEL_HERE && fd >= 0) {
		channel_keep(peer, text.id, fd);
		return;
	}
	if (text.verb == CHANNEL_ASK)
		channel_answer(peer, &text);
	if (fd >= 0)
		close(fd);
}

void channel_forget_peer(struct sv_peer *peer)
{
	struct peer_channels *channels = peer->data;

	for (uint32_t i = 0; channels && i < channels->count; i++)
		if (channels->at[i].fd >= 0)
			close(channels->at[i].fd);
	free(channels);
	peer->data = NULL;
}
