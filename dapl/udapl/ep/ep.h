/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/*
 * Room `ep`: the endpoint and the shared receive queue: states, attributes, the QP, the connection.
 *
 * state.c has the table of states; conn.c alone decides the one event that ends a connection; task.c acts on failed requests,
 * errors of the QP and deadlines, in the event thread; request.h has the path in which each post ends.
 * Locks: the EP's mutex guards state and connection; its rules stand at the top of conn.c. Two short locks, one a side, guard the
 * rings of posted requests, and may be acquired with the mutex held. An SRQ has a short lock for its slots.
 */
#ifndef DAPL_EP_H
#define DAPL_EP_H

#include <pthread.h>
#include <stddef.h>
#include "dapl/udapl/evd/dto.h"
#include "dapl/udapl/evd/evd.h"
#include "dapl/udapl/mem/mem.h"
#include "dapl/udapl/ep/srq.h"
#include "dapl/udapl/base/task.h"

#define EP_PRIVATE_DATA_MAX 256

struct dapl_cr;

struct dapl_ep {
	struct obj obj;
	/* data path: set at creation and reset, when no thread posts */
	struct ib_qp *qp;
	struct ib_qp_posts posts; /* post functions of `qp` */
	struct ib_qp_caps caps;	  /* as granted; `attr` has the depths at which a queue is full */
	uint32_t longest;	  /* bytes of the longest segment that the device takes; constant */
	_Atomic DAT_EP_STATE state; /* written under lock by ep_set_state_locked only */
	atomic_bool accepted;	    /* dat_cr_accept brought the QP up; see ep_accepts_requests */
	struct dto_end end;	    /* what the conversion of completions reads */

	struct dapl_pz *pz; /* lock, as all below */
	struct dapl_evd *recv_evd, *request_evd;
	struct dapl_srq *srq; /* constant */
	DAT_EP_ATTR attr;     /* what dat_ep_query answers */
	/*
	 * The consumer left the RDMA read depths at their defaults: `attr` shows those of the
	 * connection, and read_in and read_out are the defaults that the next connection starts with.
	 */
	bool default_depths;
	DAT_COUNT read_in, read_out;

	TAILQ_HEAD(ud_peers, dapl_ud_peer) peers; /* of an EP of datagrams */

	pthread_mutex_t lock;
	pthread_cond_t idle; /* `busy` was cleared, or `leaving` fell */
	/* A reset, change or free is in progress, partly without the lock. No other one begins, nor a connection. */
	bool busy;
	/* connections detached from the EP that may still use its QP */
	unsigned leaving;
	struct ib_conn *conn; /* the current attempt or connection */
	struct dapl_cr
		*cr; /* the request that the EP is reserved for; compared, never dereferenced */
	DAT_CONN_QUAL qual; /* as the consumer gave it, for dup_connect */
	DAT_COMM comm;	    /* of the common service point it is connected through */
	struct sockaddr_storage remote, local;
	DAT_PORT_QUAL remote_port, local_port;
	unsigned char private_data[EP_PRIVATE_DATA_MAX];
	uint32_t private_size;
	struct task
		task; /* EP_DUE_*, EP_FACT_*; its deadline is that of the next step of the present state */
	uint32_t retired_seen; /* in CONNECTED: completions at the last poll (ep/task.c) */
	bool flushed_seen;     /* likewise: whether one was flushed */
	uint32_t posted_seen;  /* in DISCONNECTED: posts when the flush was put off (ep/task.c) */
	/* In DISCONNECT_PENDING, or if peer_disconnected: outstanding requests are awaited until then. */
	uint64_t give_up;
	bool flush_expected; /* by recv_evd, as long as this QP may flush receives: evd_flush_expect */
	bool peer_disconnected; /* the peer has disconnected, and requests are outstanding */
	bool dreq_sent;		/* in DISCONNECT_PENDING: the CM was asked to disconnect */
	bool marker_posted;	/* the graceful part's marker is posted */
	uint64_t error_since;	/* when the QP went to error */
	bool was_up;		/* was connected, or nearly: this QP may hold buffers of the SRQ */
	bool pending_terminal; /* the connect EVD was full: `terminal` is posted when it has room */
	DAT_EVENT_NUMBER terminal;
	/* An SRQ EP is or was connected: a last-WQE notice follows, or followed, the terminal event. */
	bool notice_owed;
	/*
	 * An EP whose connection ended first waits for room in the connect EVD. Then it is among the notices of the IA
	 * (ep/notice.c), guarded by notices_lock.
	 */
	struct evd_room_waiter room;
	TAILQ_ENTRY(dapl_ep) notice;
	bool notice_queued;
};

_Static_assert(offsetof(struct dapl_ep, end) == DTO_END_AT, "dto_end_of");

static inline struct dapl_ep *ep_from(DAT_EP_HANDLE handle)
{
	return obj_from(handle, OBJ_EP);
}

/*
 * Posts read attributes without a lock while a change of the EP may store another value, so both
 * accesses are atomic.
 */
#define EP_ATTR(ep, name)	     __atomic_load_n(&(ep)->attr.name, __ATOMIC_RELAXED)
#define EP_INLINE(ep)		     __atomic_load_n(&(ep)->caps.inline_data, __ATOMIC_RELAXED)
#define EP_ATTR_SET(ep, name, value) __atomic_store_n(&(ep)->attr.name, value, __ATOMIC_RELAXED)

/*
 * Holds and locks the EP for a DAT call, until ep_unlock. false: the EP is being freed, and the
 * handle is invalid. Only such calls hold EPs.
 */
static inline bool ep_lock(struct dapl_ep *ep)
{
	if (!obj_hold(&ep->obj))
		return false;
	pthread_mutex_lock(&ep->lock);
	return true;
}

static inline void ep_unlock(struct dapl_ep *ep)
{
	pthread_mutex_unlock(&ep->lock);
	obj_release(&ep->obj);
}

static inline void ep_count_locked(struct dapl_ep *ep, DAT_EP_COUNTERS which, uint64_t more)
{
	ep->end.counters.value[ep_counter_at(which)] += more;
}

static inline enum evd_stream ep_recv_stream(const struct dapl_ep *ep)
{
	return ep->srq ? EVD_STREAM_SRQ_RECV : EVD_STREAM_RECV;
}

/* The events of the DAT 2.0 endpoint state diagram. ep_next is a pure function. */
enum ep_event {
	EP_CONNECT,	    /* dat_ep_connect */
	EP_CONNECT_REFUSED, /* dat_ep_connect failed at once */
	EP_RESERVE,
	EP_UNRESERVE,
	EP_REQUEST, /* RESERVE, UNRESERVE: an RSP is created, freed. REQUEST: its request arrived */
	EP_TENTATIVE,	 /* the EP was created for a request that arrived */
	EP_REQUEST_LOST, /* the event of that request could not be posted */
	EP_ACCEPT,
	EP_ACCEPT_REFUSED, /* dat_cr_accept was called (ACCEPT), and failed at once (ACCEPT_REFUSED) */
	EP_REJECT,	   /* its request was rejected, or could not be accepted */
	EP_ESTABLISHED,
	EP_DISCONNECT, /* dat_ep_disconnect on a connected EP */
	EP_ENDED,      /* attempt or connection is over, whatever the reason */
	EP_RESET,
};
bool ep_next(DAT_EP_STATE now, enum ep_event event, DAT_EP_STATE *next);
/* E(INVALID_STATE, <subtype of this state>) */
DAT_RETURN ep_state_error(DAT_EP_STATE state);

/* Attribute rules (ep/attr.c). */
void ep_attr_default(const struct dapl_ia *ia, const struct dapl_evd *recv,
		     const struct dapl_evd *request, DAT_EP_ATTR *attr);
bool ep_attr_valid(const struct dapl_ia *ia, const DAT_EP_ATTR *attr, bool recv, bool request,
		   bool srq);
bool ep_attr_type_known(const DAT_EP_ATTR *attr);
bool ep_attr_supported(const struct dapl_ia *ia, const DAT_EP_ATTR *attr);
bool ep_attr_is_datagram(const DAT_EP_ATTR *attr);
/* Fills in what the consumer left open: the RDMA segment counts, and the SRQ attributes if there is no SRQ. */
void ep_attr_complete(const struct dapl_ia *ia, bool srq, DAT_EP_ATTR *attr);
/*
 * The bits of request flags that decide which streams may share an EVD; the others are valid in each
 * post.
 */
DAT_COMPLETION_FLAGS ep_request_class(DAT_COMPLETION_FLAGS flags);

/*
 * Recompute the credits of the fast path (post/post.h): those of the queue if the EP's state and QP
 * permit posts, else 0. The caller holds the post lock of that side.
 */
void ep_send_credits_update_locked(struct dapl_ep *ep);
void ep_recv_credits_update_locked(struct dapl_ep *ep);

/*
 * True if requests may be posted: when connected, and when disconnected, to be flushed. The passive side may post as
 * soon as dat_cr_accept has returned, which leaves the QP ready to send: the peer's answer may arrive after its first
 * message, and the consumer need not wait for either.
 */
static inline bool ep_accepts_requests(struct dapl_ep *ep, DAT_EP_STATE state)
{
	return state == DAT_EP_STATE_CONNECTED || state == DAT_EP_STATE_DISCONNECTED ||
	       /* acquire: pairs with ep_accepted_locked; the QP is seen as dat_cr_accept left it */
	       (state == DAT_EP_STATE_COMPLETION_PENDING &&
		atomic_load_explicit(&ep->accepted, memory_order_acquire));
}
/* Records that the EP's request was accepted and its QP can send. */
void ep_accepted_locked(struct dapl_ep *ep);
/* The only function that stores a state. false: the present state has no transition for the event. */
bool ep_set_state_locked(struct dapl_ep *ep, enum ep_event event);

/* What dat_ep_modify changes of an EP. */
struct ep_config {
	struct dapl_pz *pz;
	struct dapl_evd *recv_evd, *request_evd, *connect_evd;
	DAT_EP_ATTR attr;
};
struct ep_config ep_config_of(const struct dapl_ep *ep);
void ep_config_set_locked(struct dapl_ep *ep, const struct ep_config *config);
/* A NULL handle gives a NULL EVD. false: not a live EVD with `flag`, or a DTO EVD of another IA. */
bool ep_evd_find(const struct dapl_ia *ia, DAT_EVD_HANDLE handle, DAT_EVD_FLAGS flag,
		 struct dapl_evd **evd);

/*
 * The streams of an EP on its EVDs (ep/streams.c). Joins and moves are made under this lock, so that
 * a move can be undone before another thread changes an agreement. Order: after EP locks, before EVD
 * locks.
 */
extern pthread_mutex_t ep_streams_lock;
/* false: the flags do not agree with those of other streams, and nothing has changed. */
bool ep_streams_join_locked(const struct dapl_ep *ep, const struct ep_config *config);
bool ep_streams_move_locked(const struct dapl_ep *ep, const struct ep_config *from,
			    const struct ep_config *to);
void ep_streams_leave(const struct dapl_ep *ep, const struct ep_config *config);

/* A QP with the rings of its work requests, before it is installed in the EP. */
struct ep_qp_parts {
	struct ib_qp *qp; /* NULL: there is no PZ */
	struct ib_qp_caps caps;
	struct dto_ring request, recv;
	struct rmr_flight_list flights;
};
DAT_RETURN ep_qp_prepare(struct dapl_ep *ep, const struct ep_config *config,
			 struct ep_qp_parts *parts);
void ep_qp_discard(struct dapl_ep *ep, struct ep_qp_parts *parts);
/*
 * The three steps of a change of the EP, which the caller has made busy. take detaches the QP, so that nothing is posted
 * to it. flush moves the completions of its flushed requests to the EVDs; it may take a second and is called without a
 * lock. swap configures the EP as `config`, with the QP of `parts`, and returns the old QP, which the caller destroys
 * without a lock.
 */
struct ib_qp *ep_qp_detach_locked(struct dapl_ep *ep);
void ep_qp_flush(struct dapl_ep *ep, struct ib_qp *old);
void ep_qp_swap_locked(struct dapl_ep *ep, struct ib_qp *old, const struct ep_config *config,
		       const struct ep_qp_parts *parts);

/*
 * Creation and destruction of QPs (ep/qp.c). The caller holds the EP's lock for a `_locked` function;
 * for the others it has made the EP busy.
 */
DAT_RETURN ep_qp_create_locked(struct dapl_ep *ep);
/* Replaces the QP. The flushed requests of the old one are drained to the EVDs first, within about a second. */
DAT_RETURN ep_qp_renew(struct dapl_ep *ep, struct ep_qp_parts *parts);
/* Installs the new QP, once the EP's state matches that of the QP. */
void ep_qp_install_locked(struct dapl_ep *ep, const struct ep_qp_parts *parts);
void ep_qp_destroy(struct dapl_ep *ep); /* drops completions that are still in the CQs */
/*
 * The address of an inline segment is a virtual address, and its key is ignored (ibv_post_send(3)). A segment of a
 * zero-based region has an offset instead, so an IA that has had such a region posts nothing inline. The creation of
 * such a region calls ep_inline_end before its key is known; ep_inline_update is called for an EP that is newly listed.
 */
void ep_inline_update(struct dapl_ep *ep);
void ep_inline_end(struct dapl_ia *ia);			  /* upward.h */
void ep_flights_land(struct dapl_ia *ia, bool task_ends); /* upward.h */
/* Drains the CQs of the EP into its EVDs. false: one EVD has no room for all completions. */
bool ep_drain(struct dapl_ep *ep);

/*
 * Bits that other threads set in the EP's task, possibly with locks held. The event thread acts on them (ep/task.c).
 * Facts stay set until the QP is replaced.
 */
#define EP_DUE_FACTS	   0x1u	 /* EP_FACT_DTO_FAILED, QP_FAILED or LAST_WQE is new */
#define EP_DUE_ROOM	   0x2u	 /* the connect EVD, which was full, has room */
#define EP_DUE_DEVICE	   0x4u	 /* EP_FACT_DEVICE is new */
#define EP_DUE_FLIGHTS	   0x8u	 /* a bind's slot has retired */
#define EP_DUE_FLUSH	   0x10u /* a work request was posted that the device may not return */
#define EP_FACT_DTO_FAILED (TASK_FACT << 0)
#define EP_FACT_QP_FAILED  (TASK_FACT << 1)
#define EP_FACT_DEVICE	   (TASK_FACT << 2) /* the device reported an error of the QP */
#define EP_FACT_LAST_WQE   (TASK_FACT << 3) /* the QP holds no buffer of the SRQ any more */
#define EP_FACT_FLUSHED	   (TASK_FACT << 4) /* the device returned a flushed request while CONNECTED */
void ep_task_run(struct task *task, unsigned mask);
/* upward.h */
void ep_dto_failed(struct obj *ep);
void ep_dto_flushed(struct obj *ep);
/* Called by the event thread for async events of the device (ia/async_upcall.c). */
void ep_qp_failed(struct dapl_ep *ep);
void ep_device_error(struct dapl_ep *ep);
void ep_last_wqe(struct dapl_ep *ep);
/*
 * Stops the EP's task: it does not run after return. The caller has made the EP busy and holds no lock.
 */
void ep_silence(struct dapl_ep *ep);
/* The next step of the present state is due at `deadline` (CLOCK_MONOTONIC ns). */
void ep_deadline_set_locked(struct dapl_ep *ep, uint64_t deadline);
/* Starts the timer that polls for failed completions while the consumer takes none. */
void ep_poll_begin_locked(struct dapl_ep *ep);

/* Work requests that the device does not return after the end of a connection (ep/flush.c). */
#define EP_FLUSH_WAIT (1 * NSEC_PER_SEC) /* in which a QP in error returns what it holds */
/* True if it may keep, or refuse, what is posted in the present state. */
bool ep_may_lose(struct dapl_ep *ep);
/*
 * The device refused a post. True if the post stays, to be flushed: the connection has ended, or the QP is in error and the CM
 * has not reported the end yet. The caller holds the post lock of that side.
 */
bool ep_takes_refused(struct dapl_ep *ep);
/* After a post, which the device may have refused. The caller may hold short locks. */
void ep_flush_due(struct dapl_ep *ep);
/* Flushes what is outstanding, now. false: an EVD has no room for all of it. */
bool ep_flush(struct dapl_ep *ep, uint32_t qp_num);
/* ep/task.c, at the end of the connection: flushes it when the device has had its time. */
void ep_flush_begin_locked(struct dapl_ep *ep);

/* A reset, change or free waits until no other one is in progress, and marks the EP busy (ep/ep.c). */
void ep_busy_begin_locked(struct dapl_ep *ep);
void ep_busy_end_locked(struct dapl_ep *ep);
/* Connections (ep/conn.c, which begins with the locking rules). */
/*
 * Calls ib_conn_destroy for a connection detached from the EP, or does nothing for NULL. Not for the event thread. It
 * releases the EP's lock during the call; `leaving` keeps resets and frees from the QP that an upcall of the connection
 * may be bringing up.
 */
void ep_conn_destroy_locked(struct dapl_ep *ep, struct ib_conn *conn);
void ep_conn_upcall(void *owner, struct ib_conn *conn, enum ib_conn_event event, const void *data,
		    uint32_t size);
/*
 * Ends the attempt or connection: sets the state, flushes, and posts the one terminal event. Does
 * nothing if it has already ended. Returns the connection, which the caller destroys after it has
 * released the lock, or NULL.
 */
struct ib_conn *ep_end_locked(struct dapl_ep *ep, DAT_EVENT_NUMBER event, const void *data,
			      uint32_t size);
void ep_post_terminal_locked(struct dapl_ep *ep);
bool ep_evds_live(const struct dapl_ep *ep);
/* The parameters that the EP passes to the CM; the depths fit its 8-bit fields. */
struct ib_conn_param ep_conn_param(const struct dapl_ep *ep, const void *data, DAT_COUNT size);

/*
 * True if the private data of a reject is from the peer's consumer: then it begins with the version of DAT, if it has a
 * header. The rejects of the CM itself carry zeros or nothing.
 */
bool ep_reject_is_consumers(const void *data, uint32_t size);
/* Stores the RDMA read depths agreed with the peer in `attr`, if the consumer left them at their defaults. */
void ep_depths_agreed_locked(struct dapl_ep *ep, uint8_t in, uint8_t out);
/* Disconnects (ep/disconnect.c). Each connection begins with a reset. */
void ep_disconnect_reset_locked(struct dapl_ep *ep);
void ep_abort_locked(struct dapl_ep *ep);
/* Each returns what ep_end_locked does if the connection ends, and NULL if it ends later. */
struct ib_conn *ep_disconnect_step_locked(struct dapl_ep *ep);
/* The peer's disconnect was answered: the connection ends when no request is outstanding, or 20 ms later. */
struct ib_conn *ep_peer_disconnected_locked(struct dapl_ep *ep);

/* Last-WQE notices, in the order of the terminal events (ep/notice.c). */
void ep_notice_queue_locked(struct dapl_ep *ep);
void ep_notice_cancel(struct dapl_ep *ep);
/* Runs in the task of the IA. */
void ep_notices_post(struct dapl_ia *ia);
/* The time (CLOCK_MONOTONIC ns) after which no report of the last WQE is expected from the device. */
uint64_t ep_last_wqe_deadline(const struct dapl_ep *ep);

/*
 * Assigns a request to the EP of an RSP, or to the EP created for it. false: the EP's state does not
 * take one.
 */
bool ep_request_locked(struct dapl_ep *ep, struct dapl_cr *cr);
void ep_request_over_locked(struct dapl_ep *ep, enum ep_event event);
/* Copies the peer's address from the request. */
void ep_peer_locked(struct dapl_ep *ep, const struct dapl_cr *cr);
void ep_forget_peer_locked(struct dapl_ep *ep);
/* An EP with default attributes, without PZ and EVDs, for a request. */
DAT_RETURN ep_create_tentative(struct dapl_ia *ia, struct dapl_ep **ep);

/* Undoes the effect of a failed dat_cr_accept on the EP. The caller does not hold the EP's lock. */
void ep_accept_refused(struct dapl_ep *ep);
/* Frees the EP, which may be half-built. No task or upcall of the EP runs any more. */
void ep_dispose(struct dapl_ep *ep);
/* Ends the EP's connection, if any, at once, and frees the EP. For dat_ep_free and abrupt close. */
void ep_destroy(struct dapl_ep *ep);

#endif
