/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* Internal header of dapl/openib: the structs that ib.h declares. */
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

/*
 * An extension of rdma_cm that a user-space device may have; NULL elsewhere. Until this thread unholds the channel it reads the
 * events that its own calls cause, without a system call for each.
 */
#define RDMA_MAY_HAVE __attribute__((weak, visibility("hidden")))
void rdma_hold_events(struct rdma_event_channel *channel) RDMA_MAY_HAVE;
void rdma_unhold_events(void) RDMA_MAY_HAVE;
int rdma_begin_progress(void) RDMA_MAY_HAVE;
void rdma_progress(void) RDMA_MAY_HAVE;
bool rdma_progresses(void) RDMA_MAY_HAVE;
void rdma_end_progress(bool returns) RDMA_MAY_HAVE;
/* An extension of verbs that such a device may have: a thread sleeps on a CQ, without its channel. */
bool ibv_block_begin(struct ibv_cq *cq) RDMA_MAY_HAVE;
int ibv_block(struct ibv_cq *cq, const struct timespec *timeout) RDMA_MAY_HAVE;
void ibv_block_interrupt(struct ibv_cq *cq) RDMA_MAY_HAVE;
bool ibv_block_end(struct ibv_cq *cq) RDMA_MAY_HAVE;

#define IB_UD_HEADER 28	 /* see ud.c; its size is part of the CM's limits */
#define IB_CONN_DATA 256 /* bytes of private data kept while a connect resolves its route */

/* A local address, and the verbs device and port where the address does not identify them. */
struct ib_place {
	struct sockaddr_storage address;
	char device[64];
	unsigned port;
};

/*
 * An open device: its address, a verbs context of its own (so that no other user of the CM reads its async events), one
 * CM event channel, one event thread.
 */
struct ib_device {
	LIST_ENTRY(ib_device) entry; /* open devices (device.c) */
	unsigned opens;
	struct ib_place place;		 /* the place that was opened */
	struct sockaddr_storage address; /* the address of `place`, or one that the CM assigned */
	struct ib_attr attr;
	struct ibv_context *verbs;
	struct rdma_event_channel *channel;
	struct rdma_cm_id *bound; /* CM id bound to `address` */
	struct ib_upcalls upcalls;
	bool gone; /* removed, and reported to the owners; event thread only */

	pthread_t thread;
	pthread_mutex_t upcalling;  /* held while making upcalls; outermost lock */
	atomic_bool upcalls_turned; /* the event thread holds it, not a reader */
	int epoll;
	struct wakefd wake;
	atomic_bool stopping;

	pthread_mutex_t lock; /* guards all below, and `dead` of connections and listeners */
	pthread_cond_t upcall_done;
	const void *current;	 /* the object whose upcall runs; NULL: none */
	struct deadlines timers; /* each an ib_timer */
	uint64_t wakes_at;	 /* the event thread's next timeout, or CLOCK_NEVER */
	/* of the CM channel, see event_reader.c */
	bool read_elsewhere;	  /* a reader has it */
	bool reader_away;	  /* that reader left events unread */
	bool reader_stays;	  /* it stays with a reader that returned and is expected again */
	uint64_t reader_returned; /* when a reader last returned */
	bool reader_shared;	  /* not all that await CM events can read them */
	unsigned reader_waiters;  /* threads that wait while another one reads */
	bool check_armed;	  /* `check` is armed */
	struct ib_timer check;
	LIST_HEAD(, ib_conn) draining; /* conn_drain.c */
	pthread_cond_t left;	       /* signalled when one leaves `draining`; CLOCK_MONOTONIC */
	struct ib_alarm *alarms;
	SLIST_HEAD(, ib_cq_tag) free_tags;
};

/*
 * The epoll tag of a registered CQ. It outlives the CQ, since epoll may have returned it just before the CQ is unregistered;
 * so it is reused for another CQ, and freed with the device.
 */
struct ib_cq_tag {
	SLIST_ENTRY(ib_cq_tag) entry; /* guarded by the device's lock, like `cq` */
	struct ib_cq *cq;	      /* NULL: unregistered */
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
	uint32_t key; /* type 2: the key of the last bind */
};

struct ib_cq {
	struct ib_cq_store store; /* must be first: ib.h casts to it */
	struct ibv_cq *cq;
	struct ibv_comp_channel *channel;
	_Atomic unsigned unacked;    /* channel events read but not yet acknowledged */
	_Atomic uint32_t moderation; /* completions until the CQ fires */
	struct ib_device *device;
	/* serialised by the callers of ib_cq_register and ib_cq_unregister */
	struct ib_cq_tag *tag;
	void *owner;
};

struct ib_srq {
	struct ibv_srq *srq;
	void *owner;
};

struct ib_qp {
	struct ib_qp_posts posts; /* must be first: ib.h casts to it */
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
	CONN_ENDED, /* the final event was reported */
};

/*
 * The context of a CM id is a struct ib_conn or a struct ib_listener, whose first member `listens` tells them apart, or
 * NULL for the id that holds the device (ib_device.bound).
 */
struct ib_conn {
	bool listens; /* false */
	struct ib_device *device;
	struct rdma_cm_id *id;
	/* NULL until a request is accepted: its events are not reported before */
	_Atomic(void *) owner;
	struct ib_qp *qp;
	bool dead;  /* being destroyed: no more upcalls; device lock */
	bool reads; /* see struct ib_conn_param */
	/* DREQ sent; the drain waits for the reply. Written by the owner only. */
	bool dreq_sent, awaits_reply;
	/* destroyed by its owner, and on the list `draining` of the device; device lock */
	bool drains;
	LIST_ENTRY(ib_conn) draining;
	/* written in upcalls, and by the calls that start an attempt or answer a request */
	_Atomic enum conn_step step;
	long tries;
	struct rdma_conn_param param;
	struct sockaddr_storage remote;
	bool datagrams;
	/* datagrams: number and key of the peer's QP, once known */
	uint32_t peer_qp;
	uint32_t peer_qkey;
	struct ibv_ah_attr peer_address;
	unsigned char data[IB_CONN_DATA];
};

struct ib_listener {
	bool listens; /* true */
	struct ib_device *device;
	struct rdma_cm_id *id;
	struct rdma_cm_id
		*datagrams; /* the id for datagrams on the same port; NULL: not supported */
	void *owner;
	bool dead; /* device lock */
};

/* events.c: the event thread. */
DAT_RETURN events_start(struct ib_device *device);
void events_stop(struct ib_device *device);
/* The same as ib_timer_arm; true: the caller must raise `wake`, unless it is the event thread. */
bool events_timer_arm_locked(struct ib_device *device, struct ib_timer *timer, uint64_t deadline,
			     void (*call)(struct ib_timer *timer));
/* event_reader.c, called by the event thread: whether it must leave pending events to the reader. */
bool reader_has_channel(struct ib_device *device);
/* upcall.c: acquire (blocking or not) and release the lock that serialises upcalls. */
void upcalls_turn(struct ib_device *device);
bool upcalls_try(struct ib_device *device); /* false: another thread has it, or in an upcall */
void upcalls_over(struct ib_device *device);
bool upcalls_in_reader(const struct ib_device *device); /* a thread that failed to get it asks */
/* Makes `object` the current one; false if it is dead, and no upcall may be made. */
bool upcall_begin(struct ib_device *device, const void *object, const bool *dead);
void upcall_end(struct ib_device *device);
/* Sets `dead` and waits until no upcall runs for the object, unless it is called from one. */
void upcall_forbid(struct ib_device *device, const void *object, bool *dead);

/* conn_event.c, listen.c, async.c: read events and make their upcalls; the caller holds `upcalling`. */
void conn_read_channel(struct ib_device *device);
void listener_request(struct ib_listener *listener, struct rdma_cm_id *id,
		      const struct rdma_conn_param *param, const struct rdma_ud_param *ud,
		      const void *data, uint32_t size);
void async_read(struct ib_device *device);
/* Reports the removal of the device, once: the CM and the async events both announce it. */
void async_device_gone(struct ib_device *device);
/* ud.c: requests and answers of datagram endpoints. */
void ud_request_write(struct ib_conn *conn, const void *data, uint32_t size);
void ud_request_address(struct ib_conn *conn); /* once the route is resolved: the requester's */
/* false: the request was not made by this provider */
bool ud_request_read(struct ib_conn *conn, const struct rdma_ud_param *ud,
		     struct ib_request *request);
void ud_peer_read(struct ib_conn *conn, const struct rdma_ud_param *param);
/* qp.c */
DAT_RETURN qp_create(struct ib_pd *pd, enum ibv_qp_type type, struct ib_cq *send_cq,
		     struct ib_cq *recv_cq, struct ib_srq *srq, struct ib_qp_caps *caps,
		     int (*start)(const struct ib_device *device, struct ibv_qp *qp), void *owner,
		     struct ib_qp **qp);
/* conn.c: the steps of a connection. Each returns 0 or an errno. */
int conn_resolve_address(struct ib_conn *conn);
int conn_resolve_route(struct ib_conn *conn);
int conn_bring_up(struct ib_conn *conn, bool passive);
void conn_set_tos(struct ib_conn *conn);
struct ib_conn *conn_new(struct ib_device *device, struct rdma_cm_id *id);
void conn_free(struct ib_conn *conn);
/* conn_drain.c: true if a dead connection must be kept until the peer answers its disconnect request. */
bool conn_drain_begin(struct ib_conn *conn);
/* Handles an event that is not yet acknowledged; true if the caller must free `conn` after the acknowledgement. */
bool conn_drain_ends(struct ib_conn *conn, enum rdma_cm_event_type type);
void conn_drain_drop(struct ib_device *device); /* frees those that remain; no event thread runs */

bool device_is_opened_once(const struct ib_device *device);

/* What is used of a limit of the device. */
static inline uint32_t sge_granted(uint32_t count)
{
	return count < IB_SGE_MAX ? count : IB_SGE_MAX;
}

static inline uint32_t wr_granted(uint32_t count)
{
	return count < IB_WR_MAX ? count : IB_WR_MAX;
}

/* attr.c: fills `attr` of the device. Returns 0 or an errno. */
int attr_read(struct ib_device *device, uint8_t port);

/*
 * status.c: true if the errno means that a resource has run out: memory, address space, threads, descriptors, or a
 * limited resource of the device or the kernel. A missing device is no shortage.
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
