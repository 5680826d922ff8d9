/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* The endpoint: its state, its QP, its connection. */
#ifndef DAPL_EP_H
#define DAPL_EP_H

#include <pthread.h>
#include "dapl/udapl/dto.h"
#include "dapl/udapl/evd.h"
#include "dapl/udapl/mem.h"
#include "dapl/udapl/srq.h"

#define EP_PRIVATE_DATA_MAX 256

struct dapl_cr;

struct dapl_ep {
	struct obj obj;
	/* data path: set at creation and reset, when nobody posts */
	struct ib_qp *qp;
	struct ib_qp_posts posts; /* of it */
	struct ib_qp_caps caps;	  /* granted; the queue-full boundary is attr's */
	struct dto_ring request, recv;
	uint32_t longest;		  /* segment that the device carries; constant */
	struct lock post_lock, recv_lock; /* serialise posts of one side */
	bool datagrams;			  /* service type UD: see ep_ud.h; constant */
	_Atomic DAT_EP_STATE state;	  /* written under lock by ep_set_state_locked only */
	atomic_bool accepted; /* dat_cr_accept brought the QP up; see ep_takes_requests */

	/*
	 * By the lock of the side that posts; of what was received, that of the EVD; the others,
	 * this EP's.
	 */
	struct ep_counters counters;

	struct dapl_pz *pz; /* lock, as all below */
	struct dapl_evd *recv_evd, *request_evd, *connect_evd;
	struct dapl_srq *srq; /* constant */
	DAT_EP_ATTR attr;     /* what dat_ep_query answers */
	/*
	 * Read depths that nobody asked for: `attr` shows those of the connection, these are the
	 * ones to begin with.
	 */
	bool default_depths;
	DAT_COUNT read_in, read_out;

	TAILQ_HEAD(ud_peers, dapl_ud_peer) peers; /* of datagrams */
	LIST_HEAD(, dapl_rmr) rmrs;		  /* bound through it, with its scope; rmr_lock */

	pthread_mutex_t lock;
	pthread_cond_t idle; /* `busy` or `leaving` went */
	bool busy;	     /* a reset or free has it, without the lock at times */
	/* connections that are not its own any more, but may still use its QP */
	unsigned leaving;
	struct ib_conn *conn; /* the current attempt or connection */
	struct dapl_cr *cr;   /* the request it is meant for, only to be compared */
	DAT_CONN_QUAL qual;   /* as the consumer gave it, for dup_connect */
	DAT_COMM comm;	      /* of the common service point it is connected through */
	struct sockaddr_storage remote, local;
	DAT_PORT_QUAL remote_port, local_port;
	unsigned char private_data[EP_PRIVATE_DATA_MAX];
	uint32_t private_size;
	struct ib_timer timer; /* the next step of the present state (ep_timer.c) */
	uint64_t deadline;     /* of `timer`: a call before it is stale */
	uint32_t looked;       /* in CONNECTED: see ep_watch.c */
	uint64_t give_up;      /* in DISCONNECT_PENDING: when the graceful part ends */
	bool cut;	       /* in DISCONNECT_PENDING: the CM was told */
	bool marked;	       /* the graceful part's marker is posted */
	uint64_t error_since;  /* when the QP went to error */
	bool was_up;	       /* or nearly so: this QP may hold buffers of the SRQ */
	bool pending_terminal; /* the connect EVD was full: deliver when it has room */
	DAT_EVENT_NUMBER terminal;
	bool pending_listed; /* in the list of ep_pending.c; its lock, like the entry */
	TAILQ_ENTRY(dapl_ep) pending;
	bool last_wqe_due;    /* SRQ EP: this connection owes a notice */
	bool last_wqe_queued; /* in the list of ep_notice.c; its lock, like the entry */
	TAILQ_ENTRY(dapl_ep) notice;
	TAILQ_ENTRY(dapl_ep) waiting_notice; /* for room (async.c); ia_all_lock */
	bool notice_waits;
	/*
	 * Connecting, and neither ESTABLISHED nor an ending is in the connect EVD yet: an EVD
	 * that carries both holds the EP's completions back (evd.h). Set by ep_set_state_locked
	 * on the way into ACTIVE_ and COMPLETION_PENDING, cleared by it on the way back to
	 * UNCONNECTED, and by evd_post with the connection event.
	 */
	atomic_bool unannounced;
	_Atomic unsigned reports;     /* EP_REPORT_* of this incarnation, from any thread */
	struct ib_timer report_timer; /* brings reports to the event thread */
};

static inline struct dapl_ep *ep_from(DAT_EP_HANDLE handle)
{
	return obj_from(handle, OBJ_EP);
}

/*
 * An attribute as posts read it: without a lock, while a change of the EP may store another value.
 */
#define EP_ATTR(ep, name)	     __atomic_load_n(&(ep)->attr.name, __ATOMIC_RELAXED)
#define EP_INLINE(ep)		     __atomic_load_n(&(ep)->caps.inline_data, __ATOMIC_RELAXED)
#define EP_ATTR_SET(ep, name, value) __atomic_store_n(&(ep)->attr.name, value, __ATOMIC_RELAXED)

/*
 * For a call on the EP: it stays, and is locked, until ep_unlock. false: it is being freed, and
 * the handle is none. Nothing but such calls holds EPs.
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
	ep->counters.value[which] += more;
}

static inline enum evd_stream ep_recv_stream(const struct dapl_ep *ep)
{
	return ep->srq ? EVD_STREAM_SRQ_RECV : EVD_STREAM_RECV;
}

/* What happens to an endpoint (DAT 2.0 endpoint state diagram). ep_next is pure. */
enum ep_event {
	EP_CONNECT,	    /* dat_ep_connect */
	EP_CONNECT_REFUSED, /* that call failed at once */
	EP_RESERVE,
	EP_UNRESERVE,
	EP_REQUEST,	 /* RSP create, free; its request arrived */
	EP_TENTATIVE,	 /* made for a request that arrived */
	EP_REQUEST_LOST, /* which could not be told */
	EP_ACCEPT,
	EP_ACCEPT_REFUSED, /* dat_cr_accept; it failed at once */
	EP_REJECT,	   /* its request was rejected, or could not be accepted */
	EP_ESTABLISHED,
	EP_DISCONNECT, /* dat_ep_disconnect on a connected EP */
	EP_ENDED,      /* attempt or connection is over, whatever the reason */
	EP_RESET,
};
bool ep_next(DAT_EP_STATE now, enum ep_event event, DAT_EP_STATE *next);
/* E(INVALID_STATE, <subtype of this state>) */
DAT_RETURN ep_state_error(DAT_EP_STATE state);

/* Attribute rules (ep_attr.c). */
void ep_attr_default(const struct dapl_ia *ia, const struct dapl_evd *recv,
		     const struct dapl_evd *request, DAT_EP_ATTR *attr);
bool ep_attr_valid(const struct dapl_ia *ia, const DAT_EP_ATTR *attr, bool recv, bool request,
		   bool srq);
bool ep_attr_type_known(const DAT_EP_ATTR *attr);
bool ep_attr_supported(const struct dapl_ia *ia, const DAT_EP_ATTR *attr);
bool ep_attr_is_datagram(const DAT_EP_ATTR *attr);
/* Fills in what was left to us: the RDMA segment counts, and what means nothing without an SRQ. */
void ep_attr_complete(const struct dapl_ia *ia, bool srq, DAT_EP_ATTR *attr);
/*
 * The bits of request flags that decide how an EVD may be shared; the others are always available
 * per post.
 */
DAT_COMPLETION_FLAGS ep_request_class(DAT_COMPLETION_FLAGS flags);

/*
 * How far posts may go the plain way (ep_post.h): as far as there is room, or nowhere, as state
 * and QP have it. Caller holds that side's post lock.
 */
void ep_requests_bound_locked(struct dapl_ep *ep);
void ep_recvs_bound_locked(struct dapl_ep *ep);

/*
 * Whether requests may be posted: when connected, and when disconnected, to be flushed. The passive side may post as
 * soon as dat_cr_accept has returned, which leaves the QP ready to send: the peer's answer is later than its first
 * message at times, and a consumer need not wait for either.
 */
static inline bool ep_takes_requests(struct dapl_ep *ep, DAT_EP_STATE state)
{
	return state == DAT_EP_STATE_CONNECTED || state == DAT_EP_STATE_DISCONNECTED ||
	       /* acquire: the QP is seen as dat_cr_accept left it */
	       (state == DAT_EP_STATE_COMPLETION_PENDING &&
		atomic_load_explicit(&ep->accepted, memory_order_acquire));
}
/* The EP's request was accepted, and its QP can send. */
void ep_accepted_locked(struct dapl_ep *ep);
/* The one place where a state is stored. false: the event means nothing in the present state. */
bool ep_set_state_locked(struct dapl_ep *ep, enum ep_event event);

/* What dat_ep_modify changes of an EP. */
struct ep_config {
	struct dapl_pz *pz;
	struct dapl_evd *recv_evd, *request_evd, *connect_evd;
	DAT_EP_ATTR attr;
};
struct ep_config ep_config_of(const struct dapl_ep *ep);
void ep_config_set_locked(struct dapl_ep *ep, const struct ep_config *config);
/* NULL is none; false: not a live EVD with the flag, or a DTO EVD of another IA. */
bool ep_evd_find(const struct dapl_ia *ia, DAT_EVD_HANDLE handle, DAT_EVD_FLAGS flag,
		 struct dapl_evd **evd);

/*
 * The streams of an EP on its EVDs (ep_streams.c). Who joins or moves holds the lock, so that a
 * move that is taken back finds each agreement as it was. Order: after EP locks, before those of
 * EVDs.
 */
extern pthread_mutex_t ep_streams_lock;
/* false: flags do not agree; nothing has changed. */
bool ep_streams_join_locked(const struct dapl_ep *ep, const struct ep_config *config);
bool ep_streams_move_locked(const struct dapl_ep *ep, const struct ep_config *from,
			    const struct ep_config *to);
void ep_streams_leave(const struct dapl_ep *ep, const struct ep_config *config);

/* A QP with the rings of its work requests, made and not yet the EP's. */
struct ep_qp_parts {
	struct ib_qp *qp; /* NULL: there is no PZ */
	struct ib_qp_caps caps;
	struct dto_ring request, recv;
};
DAT_RETURN ep_qp_prepare(struct dapl_ep *ep, const struct ep_config *config,
			 struct ep_qp_parts *parts);
void ep_qp_discard(struct dapl_ep *ep, struct ep_qp_parts *parts);
/*
 * The EP is as `config` says, with the QP of `parts`; what the old one flushes is in the old EVDs.
 * Returns the old one, to be destroyed without locks, or NULL.
 */
struct ib_qp *ep_qp_swap_locked(struct dapl_ep *ep, const struct ep_config *config,
				const struct ep_qp_parts *parts);

/*
 * QP life (ep_qp.c). Caller holds the EP's lock, or has made it busy where the name does not say
 * locked.
 */
DAT_RETURN ep_qp_create_locked(struct dapl_ep *ep);
/* What the old QP flushes reaches the EVDs first, within about a second. */
DAT_RETURN ep_qp_renew(struct dapl_ep *ep, struct ep_qp_parts *parts);
/* The new one, once the EP is in the state that its QP is in. */
void ep_qp_install_locked(struct dapl_ep *ep, const struct ep_qp_parts *parts);
void ep_qp_destroy(struct dapl_ep *ep); /* what was not yet taken from the CQs is dropped */
/*
 * An inline segment's address is one of the process, and its key is not looked at (ibv_post_send(3)). An offset into a
 * zero-based region is no such address, so an IA that has had such a region posts nothing inline. ep_inline_end is for
 * the creation of a region, before its key is known; ep_inline_update for an EP that is listed from now on.
 */
void ep_inline_end(struct dapl_ia *ia);
void ep_inline_update(struct dapl_ep *ep);
/* Moves what the CQs of the EP hold into its EVDs. false: one of them has no room for all of it. */
bool ep_drain(struct dapl_ep *ep);

/*
 * What others tell the EP, possibly with locks held: kept, and acted on by the event thread
 * (ep_report.c).
 */
#define EP_REPORT_DTO_FAILED 0x1u
#define EP_REPORT_QP_FAILED  0x2u
#define EP_REPORT_LAST_WQE   0x4u
#define EP_REPORT_ROOM	     0x8u
#define EP_REPORT_CLOSED     0x10u /* nothing is acted on any more */
void ep_report(struct dapl_ep *ep, unsigned what);
/* Reported by the data path with an EVD's lock held. */
void ep_dto_failed(struct dapl_ep *ep);
/* Reported by the device (async.c), in the event thread. */
void ep_qp_failed(struct dapl_ep *ep);
void ep_last_wqe(struct dapl_ep *ep);
/*
 * No report is acted on and no timer runs after return; caller has made the EP busy and holds no
 * lock.
 */
void ep_silence(struct dapl_ep *ep);

/* The step of the present state at `deadline` (ep_timer.c). */
void ep_timer_arm_locked(struct dapl_ep *ep, uint64_t deadline);
void ep_timer_disarm_locked(struct dapl_ep *ep); /* that state has none */

/* While it is CONNECTED (ep_watch.c). */
void ep_watch_begin_locked(struct dapl_ep *ep);
void ep_watch_step_locked(struct dapl_ep *ep);

/* Connections (ep_conn.c; the locking rules stand at its top). */
/*
 * ib_conn_destroy of one that was the EP's, or NULL, outside the event thread: the lock is given back meanwhile, and no
 * reset or free touches the QP that an upcall of the connection may be bringing up.
 */
void ep_conn_destroy_locked(struct dapl_ep *ep, struct ib_conn *conn);
void ep_conn_upcall(void *owner, struct ib_conn *conn, enum ib_conn_event event, const void *data,
		    uint32_t size);
/*
 * The attempt or connection is over: state, flush, and the one terminal event. Does nothing when
 * it was over before. Returns the connection that the caller destroys once it has given the lock
 * back, or NULL.
 */
struct ib_conn *ep_end_locked(struct dapl_ep *ep, DAT_EVENT_NUMBER event, const void *data,
			      uint32_t size);
void ep_post_terminal_locked(struct dapl_ep *ep);
bool ep_evds_live(const struct dapl_ep *ep);
/* What the EP asks of the CM; depths fit its 8-bit fields. */
struct ib_conn_param ep_conn_param(const struct dapl_ep *ep, const void *data, DAT_COUNT size);
/* What was agreed on with the peer: an EP whose depths nobody asked for shows it. */
void ep_depths_agreed_locked(struct dapl_ep *ep, uint8_t in, uint8_t out);
/* DISCONNECT_PENDING (ep_disconnect.c). */
void ep_cut_locked(struct dapl_ep *ep);
struct ib_conn *ep_disconnect_step_locked(struct dapl_ep *ep);

/* Terminal events that found the connect EVD full (ep_pending.c). */
void ep_pending_add_locked(struct dapl_ep *ep);
void ep_pending_remove(struct dapl_ep *ep);
/* An EVD that refused an event has room again; the caller holds no EVD lock. */
void ep_room(struct dapl_evd *evd);

/* Last-WQE notices, in the order of the terminal events (ep_notice.c). */
void ep_notice_queue_locked(struct dapl_ep *ep);
void ep_notice_cancel(struct dapl_ep *ep);
void ep_notice_run(struct dapl_ia *ia);
/* When a device that has said nothing until then is not expected to. */
uint64_t ep_last_wqe_deadline(const struct dapl_ep *ep);

/*
 * The request that an EP of an RSP is for, or that an EP was made for (ep_request.c). false: the
 * EP's state knows of none.
 */
bool ep_request_locked(struct dapl_ep *ep, struct dapl_cr *cr);
void ep_request_over_locked(struct dapl_ep *ep, enum ep_event event);
/* Where the peer of a request is. */
void ep_peer_locked(struct dapl_ep *ep, const struct dapl_cr *cr);
void ep_forget_peer_locked(struct dapl_ep *ep);
/* An EP with default attributes, without PZ and EVDs, for a request. */
DAT_RETURN ep_create_tentative(struct dapl_ia *ia, struct dapl_ep **ep);

/* The connection's entry into a failed dat_cr_accept is undone; the EP's lock is not held. */
void ep_accept_refused(struct dapl_ep *ep);
/* Gives everything back; accepts a half-built one. Nothing of the EP runs any more. */
void ep_dispose(struct dapl_ep *ep);
/* Ends whatever connection there is, at once, and frees the EP: dat_ep_free and abrupt close. */
void ep_destroy(struct dapl_ep *ep);

#endif
