/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/*
 * The connection manager: identifiers, event channels, ports, and the messages that identifiers
 * exchange.
 */
#ifndef SV_CM_H
#define SV_CM_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>
/*
 * The calls that the header declares are the ones to be exported; hidden stays what only our
 * headers know.
 */
#pragma GCC visibility push(default)
#include <rdma/rdma_cma.h>
#include <rdma/rdma_verbs.h>

/* For the drop-in, which exports it by a private name: the device is not closed any more. */
void rdma_keep_devices_open(void);
#pragma GCC visibility pop
#include "softverbs/engine.h"
#include "softverbs/peer.h"

#define CM_BACKLOG	1024 /* most unfetched requests of a listener, and the default */
#define CM_PARKED	4096 /* most requests that wait for room there */
#define CM_RESERVE	3    /* events that an identifier has in reserve */
#define CM_CONNECT_TIME (64 * NSEC_PER_SEC)   /* until the listener has the request */
#define CM_LINGER_TIME	(100 * NSEC_PER_MSEC) /* disconnect to TIMEWAIT_EXIT */

/* IBTA, reasons of a REJ */
enum cm_reason {
	CM_NO_RESOURCES = 3,
	CM_GONE = 4, /* timeout: the sender does not wait any longer */
	CM_UNKNOWN_ID = 6,
	CM_NO_LISTENER = 8,
	CM_CONSUMER = 28,
};

enum cm_private { /* bytes that the receiver sees, whatever was sent */
		  CM_REQ_DATA = 56,
		  CM_REP_DATA = 196,
		  CM_REJ_DATA = 148,
		  CM_SIDR_REQ_DATA = 180, /* of a datagram identifier, as the next */
		  CM_SIDR_REP_DATA = 136,
};

enum cm_sidr { /* IBTA, why a datagram identifier was not resolved */
	       CM_SIDR_NO_SERVICE = 1,
	       CM_SIDR_REJECTED = 2,
	       CM_SIDR_NO_QP = 3,
};

enum cm_state {
	CM_IDLE,
	CM_BOUND,
	CM_ADDR_RESOLVED,
	CM_ROUTE_RESOLVED,
	CM_LISTENING,
	CM_CONNECTING, /* active: looking for the listener, or REQ sent */
	CM_REQUESTED,  /* passive: REQ here, not answered */
	CM_ANSWERED,   /* active: REP here, RTU not sent */
	CM_ACCEPTED,   /* passive: REP sent, RTU not here */
	CM_ESTABLISHED,
	CM_DISCONNECTING, /* DREQ sent */
	CM_DISCONNECTED,  /* DREQ here, the program has not disconnected yet */
	CM_CLOSED,	  /* rejected, withdrawn, or disconnected on both sides */
};

/*
 * An IP address; IPv4 ones mapped. Wildcards have a family for each kind of address that they stand
 * for.
 */
struct cm_ip {
	struct in6_addr addr;
	uint32_t scope;
	uint8_t families; /* CM_IPV4, CM_IPV6 */
	bool any;
};
#define CM_IPV4 1
#define CM_IPV6 2

/* What two identifiers agree on; from one side's point of view. */
struct cm_params {
	uint32_t qpn, psn;
	uint32_t qkey; /* of a datagram identifier */
	uint8_t responder_resources, initiator_depth;
	uint8_t retry_count, rnr_retry_count;
	uint8_t flow_control, srq;
};

enum cm_kind {
	CM_MSG_REQ = 1,
	/* the program has the request and takes its time: no more timeout */
	CM_MSG_MRA,
	CM_MSG_REP,
	CM_MSG_RTU,
	CM_MSG_REJ,
	CM_MSG_DREQ,
	CM_MSG_DREP,
};

/* On the wire between processes of one host, hence native byte order. */
struct cm_message {
	uint32_t kind, reason;
	uint32_t from, to;		    /* numbers of the identifiers; `to` is 0 in a REQ */
	uint32_t space;			    /* of REQ, as the addresses */
	struct sockaddr_in6 source, target; /* IPv4 addresses lie in the same room */
	struct cm_params params;
	uint8_t data[CM_REP_DATA];
};

struct cm_channel {
	/* fd: an eventfd that counts while an event is queued: the token */
	struct rdma_event_channel channel;
	/* threads that wait for the token, or are between it and the event */
	unsigned readers;
	/* it is there, comes at once, or a reader has just taken it */
	bool token;
	/* perhaps there is one more: a reader was cancelled */
	bool loose;
	atomic_uint writing; /* threads that write one, without the lock */
	bool closed;	     /* destroyed; the last reader frees it */
	/* closed, and remembered for a reader that comes late */
	bool kept;
	TAILQ_HEAD(, cm_event) events;
	const uint32_t *alive;
};

struct cm_event {
	struct rdma_cm_event event;
	struct cm_id *owner; /* whose destruction waits for the acknowledgement */
	TAILQ_ENTRY(cm_event) entry;
	uint8_t data[CM_REP_DATA];
};

struct cm_lookup; /* cm_lookup.c: the question who listens on a port */

/* A bound port. */
struct cm_port {
	struct engine_watch watch; /* listening: accepts connections that ask who is here */
	struct engine_job job;
	struct cm_ip ip;
	uint16_t space, number;
	int fd;		/* the claimed name, until it listens; -1: none */
	bool ephemeral; /* out of a block; claimed by name only if it listens */
	bool shared;	/* REUSEADDR: likewise */
	struct cm_id *listener;
	LIST_ENTRY(cm_port) entry;
};

struct cm_id {
	struct rdma_cm_id id;
	const uint32_t *alive;
	enum cm_state state;
	bool sync; /* made without a channel: calls wait for their event */
	/* by the program; false: a request that it has not fetched */
	bool owned;
	bool has_device;
	bool reuse_addr, addr_family_only;
	uint8_t tos, ack_timeout;
	struct cm_port *port;
	struct ibv_sa_path_rec path;

	/*
	 * For want of memory: an attempt's outcome, its end and TIMEWAIT_EXIT, which nobody asks
	 * for and somebody waits for.
	 */
	TAILQ_HEAD(, cm_event) reserve;

	/* what rdma_get_cm_event has given out and rdma_ack_cm_event got back */
	unsigned delivered, acked;
	pthread_cond_t all_acked;

	/* made by rdma_create_ep to listen: what its requests get */
	struct ibv_qp_init_attr *ep_attr;
	struct ibv_pd *ep_pd;

	/* a listener */
	unsigned backlog, queued;
	bool telling; /* the timer runs for requests that are not told */
	unsigned parked_count;
	TAILQ_HEAD(, cm_id) parked;

	/* a connection */
	bool active;
	struct cm_id *listener; /* of a request that is not owned yet */
	/* of a request that waits for room in the listener's queue */
	struct cm_event *parked_event;
	TAILQ_ENTRY(cm_id) parked_entry;
	uint32_t number, remote;
	uint16_t slot; /* CM_CONNECTING: waits for a link to it */
	bool wants_link;
	uint64_t nonce[2]; /* of the process that listens there */
	struct cm_lookup *lookup;
	struct sv_peer *peer;
	struct sv_timer timer;
	struct cm_params local, theirs;
	uint64_t deadline; /* CM_CONNECTING */
	/* CM_CONNECTING: not sent yet, or sent to a process of which `known` holds */
	struct cm_message *request;
	bool known; /* it listened there before, and has not said a word now */
	bool told;  /* passive: the other side waits as long as it takes */
};

/* It resolves queue pairs that take datagrams; nothing is connected. */
static inline bool id_is_datagram(const struct cm_id *id)
{
	return id->id.ps != RDMA_PS_TCP;
}

static inline struct cm_id *cm_id_of(struct rdma_cm_id *id)
{
	return (struct cm_id *)(void *)((char *)id - offsetof(struct cm_id, id));
}

/*
 * One lock for all of the connection manager, between the runtime's and the links lock. Never held
 * while a queue pair is modified, a device opened or closed, or a timer waited for.
 */
void cm_lock(void);
void cm_unlock(void);
void cm_wait(pthread_cond_t *cond);
int cm_fail(int error); /* sets errno, returns -1 */

/* ---- cm_device.c: the internal open of the device, with a default PD ---- */
int cm_device_hold(void); /* for a channel or an identifier; 0 or errno */
void cm_device_release(void);
/* fills verbs, pd, port_num; 0 or errno. The cm lock is not held */
int cm_device_bind(struct cm_id *id);
void cm_device_unbind(struct cm_id *id);
uint8_t cm_max_responder(void);
uint8_t cm_max_initiator(void);

/* ---- cm_channel.c ---- */
struct cm_channel *channel_from(struct rdma_event_channel *channel);
struct cm_channel *channel_of_id(struct cm_id *id);
bool channel_is_ours(const struct rdma_event_channel *channel);
/*
 * A destroyed one, when no thread waits in it any more and it is not among those that were closed
 * last.
 */
void channel_free_locked(struct cm_channel *channel);
/*
 * From now on there is a token: written after the lock was given back, so that who waits for it does
 * not wake up only to wait for the lock.
 */
void token_promise_locked(struct cm_channel *channel);
void token_take_locked(struct cm_channel *channel); /* nobody reads, and no event is queued */
void token_forget_promises(void);		    /* forked child */
struct cm_channel *token_due_locked(void);	    /* NULL, or one for token_write */
void token_write(struct cm_channel *channel);	    /* the lock is not held */
void token_write_locked(void);			    /* what is due */
/*
 * A token, at a cancellation point and without any lock; the reader counts until the caller has
 * looked at the queue. 0 or errno.
 */
int token_read(struct cm_channel *channel, bool closed);
/* A reader goes. It leaves the token as the queue wants it, whether it has taken it or not. */
void channel_leave_locked(struct cm_channel *channel);

/* ---- cm_event.c ---- */
/* 0 or ENOMEM; event_unreserve in any case */
int event_reserve(struct cm_id *id);
void event_unreserve(struct cm_id *id);
/* NULL: no memory; the call that wants it fails */
struct cm_event *event_new(struct cm_id *owner, enum rdma_cm_event_type type, int status);
/* for what happens without a call: out of the reserve if need be */
struct cm_event *event_new_locked(struct cm_id *owner, enum rdma_cm_event_type type, int status);
/* to the channel of its owner; accepts NULL */
void event_post_locked(struct cm_event *event);
void event_post_new_locked(struct cm_id *owner, enum rdma_cm_event_type type, int status);
void event_set_params(struct cm_event *event, const struct cm_params *theirs, const uint8_t *data,
		      unsigned size);
void event_discard_locked(struct cm_id *id); /* what nobody fetched */
void event_move_locked(struct cm_id *id, struct cm_channel *to);

/* ---- cm_id.c ---- */
struct cm_id *id_new(struct cm_channel *channel, void *context, enum rdma_port_space space);
int id_own(struct cm_id *id); /* handed to the program: it holds the device; 0 or errno */
/* unknown to everyone else; the cm lock is not held if it is owned */
void id_free(struct cm_id *id);
int id_number_locked(struct cm_id *id); /* 0 or ENOMEM */
void id_unnumber_locked(struct cm_id *id);
struct cm_id *id_by_number_locked(uint32_t number);
struct cm_id *id_next_locked(uint32_t *cursor); /* each one with a number; start with 0 */
bool id_is_ours(const struct cm_id *id);
enum cm_state id_state(const struct cm_id *id); /* the cm lock is not held */

/* ---- cm_ip.c ---- */
/* 0 or EAFNOSUPPORT */
int ip_from_sockaddr(struct cm_ip *ip, uint16_t *port, const struct sockaddr *addr);
socklen_t ip_sockaddr_size(const struct sockaddr *addr);
void ip_set_port(struct sockaddr *addr, uint16_t port);
void ip_text(const struct cm_ip *ip, char text[static 64]);
bool ip_parse(struct cm_ip *ip, const char *text);
bool ip_overlaps(const struct cm_ip *a, const struct cm_ip *b);
bool ip_same(const struct cm_ip *a, const struct cm_ip *b);
union ibv_gid ip_gid(const struct cm_ip *ip);
/* 0, EADDRNOTAVAIL, or why nobody can tell */
int ip_is_local(const struct sockaddr *addr);
/* Where processes of other hosts' addresses may be: the rest of the folder that names are in. As ip_is_local. */
int ip_is_reachable(const struct sockaddr *addr);
/* 0 or errno */
int ip_route(const struct sockaddr *target, struct sockaddr_storage *source);

/* ---- cm_addr.c ---- */
void route_fill(struct cm_id *id); /* paths and GIDs from the two addresses */

/* ---- cm_port.c ---- */
/* 0 or errno */
int port_bind_locked(struct cm_id *id, const struct cm_ip *ip, uint16_t number);
int port_listen_locked(struct cm_id *id);
void port_release_locked(struct cm_id *id);
struct cm_id *port_listener_locked(uint32_t space, uint16_t number, const struct cm_ip *ip);
void port_name(char name[static 96], uint32_t space, uint16_t number, const struct cm_ip *ip);
/* no identifier is left: gives up what was kept for the next */
void port_idle_locked(void);
void port_fork_child(void);

/* ---- cm_lookup.c ---- */
/*
 * 0 and a lookup that ends in connect_found_locked or connect_refused_locked, or in
 * connect_known_locked at once, or an errno (ECONNREFUSED: nobody listens).
 */
int lookup_start_locked(struct cm_id *id, uint32_t space, uint16_t number, const struct cm_ip *ip);
/* The same, and what was known is forgotten. */
int lookup_ask_locked(struct cm_id *id, uint32_t space, uint16_t number, const struct cm_ip *ip);
void lookup_stop_locked(struct cm_id *id);
void lookup_answer(int fd); /* engine: tells the other side who listens here; owns fd */

/* ---- cm_connect.c ---- */
int params_take(struct cm_id *id, const struct rdma_conn_param *param);
void connect_found_locked(struct cm_id *id, uint16_t slot, const uint64_t nonce[2]);
/* `peer`, a reference that becomes the identifier's, listened there when it was asked last. */
void connect_known_locked(struct cm_id *id, struct sv_peer *peer);
void connect_mistaken_locked(struct cm_id *id); /* it does not listen there any more */
void connect_heard_locked(struct cm_id *id);	/* it does */
void connect_refused_locked(struct cm_id *id, int error);
void connect_retry_locked(struct cm_id *id); /* asks again who listens */
void connect_link_ready_locked(struct cm_id *id, struct sv_peer *peer);
void connect_reply_locked(struct cm_id *id, const struct cm_message *reply);
/*
 * The program takes the answer: brings the queue pair up. False when the event is void. The cm lock
 * is not held.
 */
bool connect_finish(struct cm_event *event);

/* ---- cm_datagram.c ---- */
/* the private data of a request that a program may give, and that its listener sees */
unsigned request_room(const struct cm_id *id);
void datagram_set_params(const struct cm_id *id, struct cm_event *event,
			 const struct cm_params *theirs, const uint8_t *data, unsigned size);
void datagram_resolved_locked(struct cm_id *id, const struct cm_message *reply);
/* `status`: enum cm_sidr or a negative errno; data may be NULL */
void datagram_refused_locked(struct cm_id *id, int status, const uint8_t *data);
int datagram_accept(struct cm_id *id, const struct rdma_conn_param *param);

/* ---- cm_listen.c ---- */
void listen_request_locked(struct sv_peer *peer, const struct cm_message *request);
/* the program fetched a request: room for the next */
void listen_fetched_locked(struct cm_event *event);
/* one that the program has not fetched */
void listen_drop_locked(struct cm_id *request, enum cm_reason reason);
void listen_stop_locked(struct cm_id *listener);
/* the rest of it, with no lock held; false: the event is void */
bool listen_hand_over(struct cm_event *event);
void listen_unpark_locked(struct cm_id *request); /* withdrawn while parked: frees it */

/* ---- cm_accept.c ---- */
void reject_send_locked(struct cm_id *id, enum cm_reason reason, const void *data, size_t size);
void accept_complete_locked(struct cm_id *id); /* RTU */

/* ---- cm_disconnect.c ---- */
void disconnect_request_locked(struct cm_id *id); /* DREQ */
void disconnect_reply_locked(struct cm_id *id);	  /* DREP */
void disconnect_lost_locked(struct cm_id *id);	  /* the other process is gone */
void rejected_locked(struct cm_id *id, const struct cm_message *reject);
/* its owner destroys it: tells the other side */
void abandon_locked(struct cm_id *id);

/* ---- cm_message.c ---- */
int message_send_locked(struct cm_id *id, enum cm_kind kind); /* without data; 0 or errno */
int message_send_data_locked(struct cm_id *id, struct cm_message *message);
void message_reject_locked(struct sv_peer *peer, uint32_t from, uint32_t to, enum cm_reason reason);

/* ---- cm_qp.c ---- */
/* the way to the other side */
void address_fill(const struct cm_id *id, struct ibv_ah_attr *ah);
/* 0 or errno; the next two too; accept an identifier without a queue pair */
int qp_error(struct cm_id *id);
int qp_connect(struct cm_id *id);

/* ---- cm_sync.c ---- */
/* an identifier without a channel waits for its event: 0, or -1 and errno */
int sync_finish(struct cm_id *id);

#endif
