/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/*
 * Room `cm`: the connection manager: identifiers, event channels, ports, and the messages that identifiers exchange.
 *
 * connect.c and accept.c are the two sides of a connection, disconnect.c its end, lookup.c the search for a listener, far.c
 * that on another host, known.c what the last ones found, message.c what goes over a link. No call blocks but those that
 * rdma-core's block in. In the drop-in it is a library of its own, which knows the rooms below by the functions marked SV_SHARED.
 * Locks: one for all of it (lock.c), acquired after the runtime's and before the links lock. It is not held while a QP changes.
 */
#ifndef SV_CM_CM_H
#define SV_CM_CM_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>
/* The calls that these headers declare are exported; all others are hidden. */
#pragma GCC visibility push(default)
#include <rdma/rdma_cma.h>
#include <rdma/rdma_verbs.h>

/* Declarations that the headers of an older rdma-core lack. */
int rdma_resolve_addrinfo(struct rdma_cm_id *id, const char *node, const char *service,
			  const struct rdma_addrinfo *hints);
int rdma_query_addrinfo(struct rdma_cm_id *id, struct rdma_addrinfo **info);
int rdma_write_cm_event(struct rdma_cm_id *id, enum rdma_cm_event_type event, int status,
			uint64_t arg);

/* Not part of rdma-core; called by the constructor of the drop-in. The device stays open from here on. */
void sv_cm_keep_devices_open(void);
#pragma GCC visibility pop
#include "softverbs/link/engine.h"
#include "softverbs/link/ip.h"
#include "softverbs/link/peer.h"

#define CM_BACKLOG	1024 /* limit and default of unfetched requests per listener */
#define CM_PARKED	4096 /* limit of requests that wait for room in that queue */
#define CM_RESERVE	3    /* events that an identifier reserves */
#define CM_CONNECT_TIME (64 * NSEC_PER_SEC)   /* time until the listener has the request */
#define CM_LINGER_TIME	(100 * NSEC_PER_MSEC) /* time from disconnect to TIMEWAIT_EXIT */
#define CM_REPORT_TIME \
	(20 * NSEC_PER_MSEC) /* limit of the time from a peer's disconnect to its event */
#define CM_ANSWER_TIME \
	(100 * NSEC_PER_MSEC) /* the same, if requests were sent to another host and not answered */

/* Events that older headers lack. */
enum {
	CM_EVENT_ADDRINFO_RESOLVED = RDMA_CM_EVENT_TIMEWAIT_EXIT + 1,
	CM_EVENT_ADDRINFO_ERROR,
	CM_EVENT_USER,
};

/* IBTA, reasons of a REJ */
enum cm_reason {
	CM_NO_RESOURCES = 3,
	CM_GONE = 4, /* the timeout of the sender: it does not wait any more */
	CM_UNKNOWN_ID = 6,
	CM_NO_LISTENER = 8,
	CM_CONSUMER = 28,
};

enum cm_private { /* bytes of private data that the receiver sees, however many were sent */
		  CM_REQ_DATA = 56,
		  CM_REP_DATA = 196,
		  CM_REJ_DATA = 148,
		  CM_SIDR_REQ_DATA = 180, /* of a datagram identifier, like the next */
		  CM_SIDR_REP_DATA = 136,
};

enum cm_sidr { /* IBTA: reasons why a datagram identifier was not resolved */
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
	CM_CONNECTING, /* active: lookup of the listener, or REQ sent */
	CM_REQUESTED,  /* passive: REQ received, not answered */
	CM_ANSWERED,   /* active: REP received, RTU not sent */
	CM_ACCEPTED,   /* passive: REP sent, RTU not received */
	CM_ESTABLISHED,
	CM_DISCONNECTING, /* DREQ sent */
	CM_DISCONNECTED,  /* DREQ received, the program has not disconnected yet */
	CM_CLOSED,	  /* rejected, withdrawn, or disconnected on both sides */
};

/* What two identifiers agree on, as one side sees it. */
struct cm_params {
	uint32_t qpn, psn;
	uint32_t qkey; /* of a datagram identifier */
	uint8_t responder_resources, initiator_depth;
	uint8_t retry_count, rnr_retry_count;
	uint8_t flow_control, srq;
};

enum cm_kind {
	CM_MSG_REQ = 1,
	/* The program has the request, so the active side stops its timeout. */
	CM_MSG_MRA,
	CM_MSG_REP,
	CM_MSG_RTU,
	CM_MSG_REJ,
	CM_MSG_DREQ,
	CM_MSG_DREP,
};

/* The format on a link between processes of one host, hence in native byte order. */
struct cm_message {
	uint32_t kind, reason;
	uint32_t from, to;		    /* numbers of the identifiers; `to` is 0 in a REQ */
	uint32_t space;			    /* of a REQ, like the addresses */
	struct sockaddr_in6 source, target; /* an IPv4 address uses the same space */
	struct cm_params params;
	uint8_t data[CM_REP_DATA];
};

struct cm_channel {
	/* fd: an eventfd that holds a token while an event is queued */
	struct rdma_event_channel channel;
	/* threads that wait for the token, or have read it and not yet taken the event */
	unsigned readers;
	/* The token is in the eventfd, is about to be written, or was just read by a reader. */
	bool token;
	/* the eventfd may hold a token too many: a reader was cancelled */
	bool loose;
	/* An event is queued without a token: the thread that holds the channel reads it or writes one (rdma_hold_events). */
	bool owes_token;
	bool closed; /* destroyed; the last reader frees the memory */
	/* closed, and kept for a reader that enters late */
	bool kept;
	TAILQ_HEAD(, cm_event) events;
	const uint32_t *alive;
};

struct cm_event {
	struct rdma_cm_event event;
	struct cm_id *owner; /* its destruction waits until this event is acknowledged */
	TAILQ_ENTRY(cm_event) entry;
	uint8_t data[CM_REP_DATA];
};

struct cm_lookup; /* lookup.c: the query for the process that listens on a port */

/* A bound port. */
struct cm_port {
	struct engine_fd handler; /* listening: accepts the connections of lookups */
	struct engine_job job;
	struct sv_ip ip;
	uint16_t space, number;
	int fd;		/* the claimed name until the port listens; -1: none */
	bool ephemeral; /* a number from a block; it has a name of its own only while it listens */
	bool shared;	/* REUSEADDR; it has a name of its own only while it listens */
	struct cm_id *listener;
	LIST_ENTRY(cm_port) entry;
};

struct cm_id {
	struct rdma_cm_id id;
	const uint32_t *alive;
	enum cm_state state;
	bool sync; /* created without a channel: calls wait for their event */
	/* owned by the program; false for a request that it has not fetched */
	bool owned;
	bool has_device;
	bool reuse_addr, addr_family_only;
	uint8_t tos, ack_timeout;
	struct cm_port *port;
	struct ibv_sa_path_rec path;

	/* Events allocated in advance, so that memory for them is never missing: the outcome of a connection attempt, its end, and
	 * TIMEWAIT_EXIT. No call produces them, and the program may wait for them. */
	TAILQ_HEAD(, cm_event) reserve;

	/* events returned by rdma_get_cm_event, and acknowledged by rdma_ack_cm_event */
	unsigned delivered, acked;
	pthread_cond_t all_acked;

	/* of a listener made by rdma_create_ep: attributes and PD for the QPs of its requests */
	struct ibv_qp_init_attr *ep_attr;
	struct ibv_pd *ep_pd;

	/* members of a listener */
	unsigned backlog, queued;
	bool mra_armed; /* the timer runs for requests that were not reported yet */
	unsigned parked_count;
	TAILQ_HEAD(, cm_id) parked;

	/* members of a connection */
	bool active;
	struct cm_id *listener; /* of a request that the program has not fetched */
	/* of a request that waits for room in the listener's queue */
	struct cm_event *parked_event;
	TAILQ_ENTRY(cm_id) parked_entry;
	uint32_t number, remote;
	uint16_t slot; /* CM_CONNECTING: the peer whose link it waits for */
	bool wants_link;
	bool is_far;	   /* the target is on another host */
	bool wants_far;	   /* CM_CONNECTING: a search there is under way */
	uint64_t nonce[2]; /* of the process that listens there */
	struct cm_lookup *lookup;
	struct sv_peer *peer;
	struct sv_timer timer;
	struct cm_params local, theirs;
	uint64_t deadline; /* CM_CONNECTING; also while `unreported` */
	bool unreported;   /* the peer disconnected; the event waits for polls */
	/* CM_CONNECTING: not sent yet, or sent to a peer while `known` is set */
	struct cm_message *request;
	bool known;    /* the peer was the listener before and has not confirmed it yet */
	bool notified; /* passive: the active side has stopped its timeout */
};

/* A datagram identifier resolves a remote QP; it has no connection. */
static inline bool id_is_datagram(const struct cm_id *id)
{
	return id->id.ps != RDMA_PS_TCP;
}

static inline struct cm_id *cm_id_of(struct rdma_cm_id *id)
{
	return (struct cm_id *)(void *)((char *)id - offsetof(struct cm_id, id));
}

/* ---- lock.c ---- */
/* One lock for the whole connection manager, acquired after the runtime's lock and before the links lock. It
 * is not held while a QP is modified, a device is opened or closed, or a timer is waited for. */
void sv_cm_lock(void);
void sv_cm_unlock(void);
void sv_cm_wait(pthread_cond_t *cond);
int sv_cm_fail(int error);			      /* sets errno, returns -1 */
bool sv_cm_id_is_ours(const struct cm_id *id);	      /* false: the parent's, before a fork */
enum cm_state sv_cm_id_state(const struct cm_id *id); /* the caller does not hold the cm lock */

/* ---- device.c: the internal open of the device, with a default PD ---- */
int sv_cm_device_hold(void); /* for a channel or an identifier; 0 or errno */
void sv_cm_device_release(void);
/* Fills in verbs, pd and port_num; 0 or errno. The caller does not hold the cm lock. */
int sv_cm_device_bind(struct cm_id *id);
void sv_cm_device_unbind(struct cm_id *id);
uint8_t sv_cm_max_responder(void);
uint8_t sv_cm_max_initiator(void);

/* ---- channel.c ---- */
struct cm_channel *sv_cm_channel_from(struct rdma_event_channel *channel);
struct cm_channel *sv_cm_channel_of_id(struct cm_id *id);
bool sv_cm_channel_is_ours(const struct rdma_event_channel *channel);
/*
 * For a library that reads a channel itself. Until the calling thread unholds the channel, events that its own calls post need
 * no token, so no system call; other threads' events have one. rdma_get_cm_event then returns EAGAIN for an empty queue, without
 * a system call, whether or not the descriptor may block. The unhold writes the token if the thread has not read all of them.
 */
void rdma_hold_events(struct rdma_event_channel *channel);
void rdma_unhold_events(void); /* no effect if the thread holds none */
bool sv_cm_channel_is_held(const struct cm_channel *channel); /* by the calling thread */
/*
 * For a thread that waits for CM events: it handles what other processes send, in place of the engine, which would only wake
 * it. Between begin and end it may block on the descriptor that begin returns, with others, and calls rdma_progress when that
 * is readable; events are then in their channels. -1: there is such a thread already. Some channel
 * must be open. If what came is for the engine, or the engine was first, rdma_progress ends the progress of its thread;
 * rdma_progresses tells.
 */
int rdma_begin_progress(void);
void rdma_progress(void);
bool rdma_progresses(void);
/* Has no effect if the thread has not begun. `returns`: see sv_link_reader_end. */
void rdma_end_progress(bool returns);
/* Frees a destroyed channel if no thread waits in it and it is not among those kept after their destruction. */
void sv_cm_channel_free_locked(struct cm_channel *channel);
void sv_cm_token_put_locked(struct cm_channel *channel); /* writes the token if there is none */
/* reads the token, which no reader and no queued event needs */
void sv_cm_token_take_locked(struct cm_channel *channel);
/* Reads a token. A cancellation point, without any lock. The caller is counted in `readers` until it has
 * checked the queue. 0 or errno. */
int sv_cm_token_read(struct cm_channel *channel, bool closed);
/* Ends a reader's use of the channel. Sets the token to the state that the queue requires, whether or not the
 * reader has read it. */
void sv_cm_channel_leave_locked(struct cm_channel *channel);

/* ---- event.c ---- */
/* 0 or ENOMEM; call sv_cm_event_unreserve either way */
int sv_cm_event_reserve(struct cm_id *id);
void sv_cm_event_unreserve(struct cm_id *id);
/* returns NULL without memory; the caller then returns an error */
struct cm_event *sv_cm_event_new(struct cm_id *owner, enum rdma_cm_event_type type, int status);
/* for events that no call produces: takes one of the reserve */
struct cm_event *sv_cm_event_new_locked(struct cm_id *owner, enum rdma_cm_event_type type,
					int status);
/* queues it on the channel of its owner; accepts NULL */
void sv_cm_event_post_locked(struct cm_event *event);
void sv_cm_event_post_new_locked(struct cm_id *owner, enum rdma_cm_event_type type, int status);
void sv_cm_event_set_params(struct cm_event *event, const struct cm_params *theirs,
			    const uint8_t *data, unsigned size);
void sv_cm_event_discard_locked(struct cm_id *id); /* discards unfetched events */
void sv_cm_event_move_locked(struct cm_id *id, struct cm_channel *to);

/* ---- id.c ---- */
struct cm_id *sv_cm_id_new(struct cm_channel *channel, void *context, enum rdma_port_space space);
int sv_cm_id_own(struct cm_id *id); /* hands it to the program: it holds the device; 0 or errno */
/* No other reference may exist. If it is owned, the caller does not hold the cm lock. */
void sv_cm_id_free(struct cm_id *id);

/* ---- number.c ---- */
int sv_cm_id_number_locked(struct cm_id *id); /* 0 or ENOMEM */
void sv_cm_id_unnumber_locked(struct cm_id *id);
struct cm_id *sv_cm_id_by_number_locked(uint32_t number);
/* iterates over identifiers with a number; start with 0 */
struct cm_id *sv_cm_id_next_locked(uint32_t *cursor);
void sv_cm_numbers_end_locked(void); /* no identifier is left */
void sv_cm_numbers_fork_child_locked(void);

/* ---- addr.c ---- */
void sv_cm_route_fill(struct cm_id *id); /* sets paths and GIDs from the two addresses */

/* ---- port.c ---- */
/* returns 0 or an errno */
int sv_cm_port_bind_locked(struct cm_id *id, const struct sv_ip *ip, uint16_t number);
int sv_cm_port_listen_locked(struct cm_id *id);
void sv_cm_port_release_locked(struct cm_id *id);
struct cm_id *sv_cm_port_listener_locked(uint32_t space, uint16_t number, const struct sv_ip *ip);
/* No identifier is left: frees the blocks kept for the next one. */
void sv_cm_port_idle_locked(void);
void sv_cm_port_fork_child(void);

/* ---- known.c ---- */
struct cm_known {
	uint16_t slot;
	uint64_t nonce[2];
};
/* A search for the target of `id` ended at that process. */
void sv_cm_known_keep_locked(const struct cm_id *id, uint16_t slot, const uint64_t nonce[2]);
/* At which the last one ended; NULL: unknown. Valid until the next of these calls. */
const struct cm_known *sv_cm_known_find_locked(uint32_t space, uint16_t number,
					       const struct sv_ip *ip);
void sv_cm_known_drop_locked(uint32_t space, uint16_t number);

/* ---- lookup.c ---- */
/* Starts a lookup; returns 0 or an errno (ECONNREFUSED: no process listens). The lookup ends in
 * sv_cm_connect_found_locked or sv_cm_connect_refused_locked. If the listener is known from before,
 * sv_cm_connect_known_locked is called at once. */
int sv_cm_lookup_start_locked(struct cm_id *id, uint32_t space, uint16_t number,
			      const struct sv_ip *ip);
/* The same, without the known listener, which is dropped. */
int sv_cm_lookup_ask_locked(struct cm_id *id, uint32_t space, uint16_t number,
			    const struct sv_ip *ip);
void sv_cm_lookup_stop_locked(struct cm_id *id);
/* engine: sends this process's slot to the peer; takes ownership of fd */
void sv_cm_lookup_answer(int fd);

/* ---- far.c ---- */
/* Whether an address that is none of this host may be one of another host's. */
bool sv_cm_far_reaches(const struct sockaddr *target);
/* Starts a search on the other host; 0 or an errno. It ends as a lookup does, and begins with the known listener. */
int sv_cm_far_lookup_locked(struct cm_id *id, uint32_t space, uint16_t number,
			    const struct sv_ip *ip);
int sv_cm_far_ask_locked(struct cm_id *id, uint32_t space, uint16_t number, const struct sv_ip *ip);

/* ---- wire.c ---- */
#define CM_WIRE_SIZE (20u + 2 * 20 + 18 + CM_REP_DATA)
void sv_cm_wire_write(uint8_t bytes[static CM_WIRE_SIZE], const struct cm_message *message);
bool sv_cm_wire_read(const uint8_t *bytes, size_t size, struct cm_message *message);

/* ---- connect.c ---- */
int sv_cm_params_copy(struct cm_id *id, const struct rdma_conn_param *param);
void sv_cm_connect_found_locked(struct cm_id *id, uint16_t slot, const uint64_t nonce[2]);
/* `peer` was the listener at the last lookup. Takes over the caller's reference. */
void sv_cm_connect_known_locked(struct cm_id *id, struct sv_peer *peer);
void sv_cm_connect_mistaken_locked(struct cm_id *id); /* called when that peer no longer listens */
void sv_cm_connect_answered_locked(struct cm_id *id); /* called when that peer listens */
void sv_cm_connect_refused_locked(struct cm_id *id, int error);
void sv_cm_connect_retry_locked(struct cm_id *id); /* starts the lookup again */
void sv_cm_connect_link_ready_locked(struct cm_id *id, struct sv_peer *peer);
void sv_cm_connect_reply_locked(struct cm_id *id, const struct cm_message *reply);
/* Called when the program fetches the answer: brings the queue pair up. False if the event is void. The
 * caller does not hold the cm lock. */
bool sv_cm_connect_finish(struct cm_event *event);

/* ---- datagram.c ---- */
/* The number of bytes of private data in a request that a program may give and its listener sees. */
unsigned sv_cm_request_room(const struct cm_id *id);
void sv_cm_datagram_set_params(const struct cm_id *id, struct cm_event *event,
			       const struct cm_params *theirs, const uint8_t *data, unsigned size);
void sv_cm_datagram_resolved_locked(struct cm_id *id, const struct cm_message *reply);
/* `status`: enum cm_sidr or a negative errno; data may be NULL */
void sv_cm_datagram_refused_locked(struct cm_id *id, int status, const uint8_t *data);
int sv_cm_datagram_accept(struct cm_id *id, const struct rdma_conn_param *param);

/* ---- listen.c ---- */
void sv_cm_listen_request_locked(struct sv_peer *peer, const struct cm_message *request);
/* The program fetched a request: makes room for the next. */
void sv_cm_listen_fetched_locked(struct cm_event *event);
/* drops a request that the program has not fetched */
void sv_cm_listen_drop_locked(struct cm_id *request, enum cm_reason reason);
void sv_cm_listen_stop_locked(struct cm_id *listener);
/* Finishes the request for the program, without any lock held; false if the event is void. */
bool sv_cm_listen_hand_over(struct cm_event *event);
/* withdrawn while it waits for room: frees it */
void sv_cm_listen_unpark_locked(struct cm_id *request);

/* ---- accept.c ---- */
void sv_cm_reject_send_locked(struct cm_id *id, enum cm_reason reason, const void *data,
			      size_t size);
void sv_cm_accept_complete_locked(struct cm_id *id); /* an RTU came */

/* ---- disconnect.c ---- */
void sv_cm_disconnect_request_locked(struct cm_id *id); /* a DREQ came */
void sv_cm_disconnect_reply_locked(struct cm_id *id);	/* a DREP came */
void sv_cm_disconnect_lost_locked(struct cm_id *id);	/* the other process has ended */
void sv_cm_rejected_locked(struct cm_id *id, const struct cm_message *reject);
/* the owner destroys it: notifies the peer */
void sv_cm_abandon_locked(struct cm_id *id);

/* ---- message.c ---- */
int sv_cm_message_send_locked(struct cm_id *id, enum cm_kind kind); /* without data; 0 or errno */
int sv_cm_message_send_data_locked(struct cm_id *id, struct cm_message *message);
void sv_cm_message_reject_locked(struct sv_peer *peer, uint32_t from, uint32_t to,
				 enum cm_reason reason);

/* ---- qp.c ---- */
/* Fills in the address of the peer. */
void sv_cm_address_fill(const struct cm_id *id, struct ibv_ah_attr *ah);
/* These return 0 or errno and accept an identifier without a queue pair. */
int sv_cm_qp_error(struct cm_id *id);
int sv_cm_qp_connect(struct cm_id *id);

/* ---- sync.c ---- */
/* Waits for the event of an identifier without a channel: 0, or -1 with errno. */
int sv_cm_sync_finish(struct cm_id *id);

/* ---- called through link/cm_calls.h ---- */
void sv_cm_device_fork_prepare(void); /* device.c */
void sv_cm_device_fork_end(void);
void sv_cm_ids_fork_prepare(void); /* id.c */
void sv_cm_ids_fork_parent(void);
void sv_cm_ids_fork_child(void);

#endif
