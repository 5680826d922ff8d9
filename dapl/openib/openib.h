/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* What the files of dapl/openib share: the structs behind the names of ib.h. */
#ifndef OPENIB_H
#define OPENIB_H

#include <pthread.h>
#include <stdatomic.h>
#include <sys/queue.h>
#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>
#include "dapl/openib/ib.h"
#include "util/log.h"
#include "util/settings.h"
#include "util/wakefd.h"

#define IB_CONN_DATA 256 /* private data kept for a connect that waits for its route */

/*
 * An open device: the address it was found by, a verbs context of its own (so that its async events are not read by
 * another user of the CM), one CM event channel, one event thread.
 */
struct ib_device {
	LIST_ENTRY(ib_device) entry; /* open devices (device.c) */
	unsigned opens;
	struct sockaddr_storage address;
	struct ib_attr attr;
	struct ibv_context *verbs;
	struct rdma_event_channel *channel;
	struct rdma_cm_id *bound; /* holds the address's device for the CM */
	struct ib_upcalls upcalls;
	bool gone; /* and its users were told; event thread */

	pthread_t thread;
	pthread_mutex_t upcalling; /* of who makes upcalls; outermost of all that those take */
	int epoll;
	struct wakefd wake;
	atomic_bool stopping;

	pthread_mutex_t lock; /* all below, and `dead` of connections and listeners */
	pthread_cond_t upcall_done;
	const void *current; /* connection, listener or timer an upcall runs for */
	TAILQ_HEAD(ib_timers, ib_timer) timers; /* by deadline */
	uint64_t wakes_at;	      /* when the event thread looks at them; CLOCK_NEVER */
	bool read_elsewhere;	      /* the CM channel: by a thread that waits */
	LIST_HEAD(, ib_conn) leaving; /* farewell.c */
	pthread_cond_t left;	      /* one of them did; CLOCK_MONOTONIC */
	struct ib_alarm *alarms;
	SLIST_HEAD(, ib_watch) free_watches;
};

/*
 * What epoll knows a watched CQ by. It outlives the CQ, since the event thread may have been told of it just before the
 * CQ's end: reused, and freed with the device.
 */
struct ib_watch {
	SLIST_ENTRY(ib_watch) entry; /* all here is guarded by the device's lock */
	struct ib_cq *cq;	     /* NULL: unwatched */
};

struct ib_pd {
	struct ib_device *device;
	struct ibv_pd *pd;
};

struct ib_mr {
	struct ibv_mr *mr;
};

struct ib_mw {
	struct ibv_mw *mw;
	uint32_t key; /* of type 2: the last that was bound */
};

struct ib_cq {
	struct ib_cq_store store; /* first: ib.h knows it */
	struct ibv_cq *cq;
	struct ibv_comp_channel *channel;
	_Atomic unsigned unacked;    /* channel events read but not yet acknowledged */
	_Atomic uint32_t moderation; /* completions before it fires */
	struct ib_device *device;
	struct ib_watch *watch; /* of those who begin and end it, one at a time */
	void *owner;
};

struct ib_srq {
	struct ibv_srq *srq;
	void *owner;
};

struct ib_qp {
	struct ib_qp_posts posts; /* first: ib.h knows it */
	struct ibv_qp *qp;
	void *owner;
};

enum conn_step {
	CONN_REQUESTED, /* passive, not yet answered */
	CONN_RESOLVING_ADDRESS,
	CONN_RESOLVING_ROUTE,
	CONN_CONNECTING,
	CONN_ACCEPTED,
	CONN_ESTABLISHED,
	CONN_ENDED, /* the ending was reported */
};

/*
 * The context of a CM id is a struct ib_conn or a struct ib_listener, or NULL for the id that holds the device. Both begin
 * with what tells them apart.
 */
struct ib_conn {
	bool listens; /* false */
	struct ib_device *device;
	struct rdma_cm_id *id;
	/* NULL until a request is accepted: its events concern nobody */
	_Atomic(void *) owner;
	struct ib_qp *qp;
	bool dead; /* being destroyed: no more upcalls; device lock */
	/* the peer was, of the end, and may answer; of those who disconnect and destroy it */
	bool told, hopeful;
	/* destroyed by its owner, and in the device's list; device lock */
	bool leaves;
	LIST_ENTRY(ib_conn) leaving;
	/* event thread, but for the calls that begin an attempt or answer a request */
	_Atomic enum conn_step step;
	long tries;
	struct rdma_conn_param param;
	struct sockaddr_storage remote;
	bool datagrams;
	/* of datagrams: the other side's QP and its key, once known */
	uint32_t peer_qp;
	uint32_t peer_qkey;
	struct ibv_ah_attr peer_address;
	unsigned char data[IB_CONN_DATA];
};

struct ib_listener {
	bool listens; /* true */
	struct ib_device *device;
	struct rdma_cm_id *id;
	struct rdma_cm_id *datagrams; /* on the same port; NULL: the device has none */
	void *owner;
	bool dead; /* device lock */
};

/*
 * Before the private data of a request for a datagram endpoint, whose message does not say who asks:
 * a version and the QP number in network order.
 */
#define UD_REQUEST_HEADER 8

/* events.c: the event thread. */
DAT_RETURN events_start(struct ib_device *device);
void events_stop(struct ib_device *device);
/* upcall.c: the right to make upcalls, waited for or tried for. */
void upcalls_turn(struct ib_device *device);
bool upcalls_try(struct ib_device *device); /* false: another thread makes upcalls now */
void upcalls_over(struct ib_device *device);
/* Marks an object as the one an upcall runs for; false when it is dead. */
bool upcall_begin(struct ib_device *device, const void *object, const bool *dead);
void upcall_end(struct ib_device *device);
/* Sets `dead` and waits until no upcall runs for the object, unless it is called from one. */
void upcall_forbid(struct ib_device *device, const void *object, bool *dead);

/* conn_event.c, listen.c, async.c: what is read, with the right to make upcalls. */
void conn_read_channel(struct ib_device *device);
void listener_request(struct ib_listener *listener, struct rdma_cm_id *id,
		      const struct rdma_conn_param *param, const void *data, uint32_t size);
void async_read(struct ib_device *device);
/* told once, by whichever way it is heard */
void async_device_gone(struct ib_device *device);
/* ud.c: requests and answers of datagram endpoints. */
void ud_request_write(struct ib_conn *conn, const void *data, uint32_t size);
/* false: it is none of ours */
bool ud_request_read(struct ib_conn *conn, struct ib_request *request);
void ud_peer_read(struct ib_conn *conn, const struct rdma_ud_param *param);
/* qp.c */
DAT_RETURN qp_create(struct ib_pd *pd, enum ibv_qp_type type, struct ib_cq *send_cq,
		     struct ib_cq *recv_cq, struct ib_srq *srq, struct ib_qp_caps *caps,
		     int (*start)(const struct ib_device *device, struct ibv_qp *qp), void *owner,
		     struct ib_qp **qp);
/* conn.c: the steps of a connection. 0 or errno. */
int conn_resolve_address(struct ib_conn *conn);
int conn_resolve_route(struct ib_conn *conn);
int conn_bring_up(struct ib_conn *conn, bool passive);
void conn_set_tos(struct ib_conn *conn);
struct ib_conn *conn_new(struct ib_device *device, struct rdma_cm_id *id);
void conn_free(struct ib_conn *conn);
/* farewell.c: of a dead connection. Whether it is to be kept until the peer's answer. */
bool farewell_begin(struct ib_conn *conn);
/* An event of it, not yet acknowledged: whether the caller is to free it now. */
bool farewell_ends(struct ib_conn *conn, enum rdma_cm_event_type type);
void farewell_drop(struct ib_device *device); /* frees those that are left */

bool device_is_opened_once(const struct ib_device *device);

/* attr.c: reads what the device can do. 0 or errno. */
int attr_read(struct ib_device *device, uint8_t port);

/* post.c: what ibv_post_send and its like answered. */
DAT_RETURN post_result(int error);

/*
 * status.c: whether an errno says that something has run out: memory, address space, threads, descriptors, or what the
 * device or the kernel has so many of. A device that is not there is another matter.
 */
bool error_is_shortage(int error);
/* Logs "<call> failed for <object>" and translates the errno. */
DAT_RETURN ib_error(int error, const char *call, const char *object);

static inline long device_setting(const struct ib_device *device, enum setting which)
{
	return setting_for(device->attr.device_name, which);
}

static inline socklen_t sockaddr_size(const struct sockaddr *address)
{
	return address->sa_family == AF_INET6 ? sizeof(struct sockaddr_in6)
					      : sizeof(struct sockaddr_in);
}

#endif
