/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* What the files of dapl/cm share: channels, identifiers, their events and timers, and the interface of the
 * transport. */
#ifndef CM_ID_H
#define CM_ID_H

#include <pthread.h>
#include <stdbool.h>
#include <sys/epoll.h>
#include <sys/queue.h>
#include "dapl/cm/cm.h"
#include "util/clock.h"
#include "util/deadlines.h"
#include "util/settings.h"
#include "util/wakefd.h"

#define CM_REPORTS 16u

struct cm_channel;
struct cm_id;

/* A descriptor that the channel's epoll watches. */
struct cm_source {
	int fd; /* -1: none */
	void (*ready)(struct cm_channel *channel, struct cm_source *source, uint32_t events);
};

struct cm_timer {
	struct deadline due; /* first */
	void (*call)(struct cm_channel *channel, struct cm_timer *timer);
};

/* An identifier embeds one event for each of these, so that no event is lost for want of memory. Each event
 * occurs once in the life of the identifier, or again only after the last one was acknowledged. */
enum cm_slot { CM_SLOT_FIRST, CM_SLOT_ROUTE, CM_SLOT_ANSWER, CM_SLOT_END, CM_SLOTS };

struct cm_event {
	struct rdma_cm_event event; /* first: what rdma_get_cm_event returns */
	TAILQ_ENTRY(cm_event) entry;
};

enum cm_state {
	CM_IDLE,
	CM_BOUND,
	CM_LISTENING,
	CM_ADDRESS, /* resolved */
	CM_ROUTE,   /* resolved */
	CM_CONNECTING,
	CM_ANSWERED,  /* active: REP received, the caller is to send the RTU */
	CM_HALF_OPEN, /* passive: the request is incomplete and not reported */
	CM_REQUESTED,
	CM_ACCEPTED, /* REP sent, RTU not received */
	CM_CONNECTED,
	CM_OVER,
};

struct cm_id {
	struct rdma_cm_id id; /* first */
	struct cm_channel *channel;
	LIST_ENTRY(cm_id) entry; /* of the channel's listeners, in state CM_LISTENING */
	enum cm_state state;
	struct cm_event events[CM_SLOTS];
	/* events fetched and not acknowledged; a listener counts those of its requests */
	unsigned unacked;
	uint16_t local, remote; /* ports, in host order */
	struct cm_timer timer;
	/* the parameters that this side sent: QP, depths, retries */
	uint32_t qpn;
	uint8_t responder_resources, initiator_depth, retry_count, rnr_retry_count;
	uint8_t sent[CM_DATA]; /* private data of the request, which may be sent twice */
	uint16_t sent_size;
	/* the message that the peer sent */
	struct cm_message peer;
	struct cm_endpoint endpoint; /* decoded from the saddr of `peer` */
	uint8_t data[CM_DATA_OLD];
	uint8_t mtu; /* agreed, an enum ibv_mtu */
};

/* The attributes of the channel's port at the last query. */
struct cm_port {
	struct ibv_context *verbs;
	uint8_t num;
	bool ethernet;
	uint16_t lid;
	union ibv_gid gid; /* of index 0, sent to peers */
	uint8_t mtu;	   /* what this side offers */
	uint8_t ack_delay; /* of the device: the lower limit of a timeout */
	bool atomics;
	int max_wr, max_cqe; /* of the device's queues */
};

struct cm_channel {
	struct rdma_event_channel channel; /* first; its descriptor is the epoll */
	/* Protects all members below and all identifiers. No other lock is acquired under it. */
	pthread_mutex_t lock;
	/* The cancellation state of the lock's owner: cancellation is disabled, since a cancelled thread
	 * could not release the lock. */
	int cancel;
	pthread_cond_t acked;
	struct cm_source timers_due; /* a timerfd */
	uint64_t due;		     /* the time the timerfd is set to, or CLOCK_NEVER */
	/* raised if events are queued when the lock is released; cleared when a reader finds none */
	struct wakefd queued;
	/* What epoll_wait reported and event_serve has not served yet. */
	struct epoll_event reports[CM_REPORTS];
	unsigned reports_next, reports_count;
	TAILQ_HEAD(cm_events, cm_event) events;
	struct deadlines timers; /* each a cm_timer */
	LIST_HEAD(, cm_id) listeners;
	struct cm_port port;
	struct sockaddr_storage address;
	struct ucm *ucm; /* UD CM only */
};

/* The transport of messages. All calls run under the channel's lock. Those that can fail return 0 or errno
 * and, unless noted, leave the identifier as it was. */
struct cm_transport {
	sa_family_t family; /* family of addresses, and access to their port */
	socklen_t address_size;
	uint16_t (*port_get)(const struct sockaddr *address);
	void (*port_set)(struct sockaddr *address, uint16_t port);
	/* Opens the transport of an attached channel. NULL: nothing to do. */
	int (*open)(struct cm_channel *channel);
	void (*close)(struct cm_channel *channel);
	size_t id_size; /* size of an identifier, which begins with a struct cm_id */
	void (*id_init)(struct cm_id *id);
	int (*listen)(struct cm_id *id); /* on id->local; chooses a port if that is 0 */
	int (*connect)(struct cm_id *id);
	/* EINVAL: the requester is gone; the state of the identifier is CM_OVER. */
	int (*accept)(struct cm_id *id, const void *data, uint16_t size);
	void (*reject)(struct cm_id *id, enum cm_op op, const void *data, uint16_t size);
	int (*establish)(struct cm_id *id);
	int (*disconnect)(struct cm_id *id);
	void (*drop)(struct cm_id *id); /* on destruction: notifies a peer that waits */
};

extern const struct cm_transport cm_transport; /* defined once in each library */

static inline struct cm_id *cm_id_of(struct rdma_cm_id *id)
{
	return (struct cm_id *)id;
}

static inline struct cm_channel *cm_channel_of(struct rdma_event_channel *channel)
{
	return (struct cm_channel *)channel;
}

/* channel.c. The channel's lock. cm_unlock makes the channel's descriptor readable if events are queued. */
void cm_lock(struct cm_channel *channel);
void cm_unlock(struct cm_channel *channel);
int cm_source_add(struct cm_channel *channel, struct cm_source *source, uint32_t events);
void cm_source_change(struct cm_channel *channel, struct cm_source *source, uint32_t events);
void cm_source_ignore(struct cm_channel *channel, struct cm_source *source);
void cm_source_close(struct cm_channel *channel, struct cm_source *source);
void cm_timer_arm(struct cm_channel *channel, struct cm_timer *timer, uint64_t deadline);
void cm_timer_disarm(struct cm_channel *channel, struct cm_timer *timer);

/* id.c: finds the listener for QPs of type `qp_type`, or NULL. */
struct cm_id *cm_listener_find(struct cm_channel *channel, uint16_t port, uint8_t qp_type);
/* Copies to the identifier of a request what it inherits from its channel and listener. */
void cm_id_request(struct cm_id *id, const struct cm_id *listener);
/* Makes an identifier in the channel, under the lock; NULL with errno. */
struct cm_id *cm_id_new(struct cm_channel *channel, void *context, enum rdma_port_space space);
void cm_id_free(struct cm_id *id);

/* event.c: queues the event of `slot`; the caller fills in its parameters. */
struct rdma_cm_event *cm_event_post(struct cm_id *id, enum cm_slot slot,
				    enum rdma_cm_event_type type, int status);
/* Queues CONNECT_REQUEST on the listener; `id` is the new identifier of the request. */
void cm_event_request(struct cm_id *listener, struct cm_id *id);
/* Queues the event of the peer's answer, with its private data: CONNECT_RESPONSE, ESTABLISHED for datagrams,
 * or REJECTED. */
void cm_event_answer(struct cm_id *id);
void cm_event_rejected(struct cm_id *id, int status);
void cm_events_forget(struct cm_id *id); /* drops queued events; refuses queued requests */

/* port.c: queries the port. 0 or errno, logged. */
int cm_port_read(struct cm_channel *channel);
void cm_port_close(struct cm_channel *channel);
/* Encodes the endpoint of this side's QP. */
void cm_endpoint_here(const struct cm_id *id, unsigned char bytes[CM_ENDPOINT]);
/* Copies the parameters of a REQ or REP to the identifier; sets `mtu` to the agreed one. */
void cm_peer_copy(struct cm_id *id, const struct cm_message *message, const void *data);

/* qp_attr.c: the address vector of the path to an endpoint. */
void cm_path(const struct cm_channel *channel, const struct cm_endpoint *to,
	     struct ibv_ah_attr *attr);

static inline long cm_setting(const struct cm_channel *channel, enum setting which)
{
	return setting_for(ibv_get_device_name(channel->port.verbs->device), which);
}

static inline bool cm_is_datagram(const struct cm_id *id)
{
	return id->id.ps == RDMA_PS_UDP;
}

#endif
