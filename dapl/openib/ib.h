/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* The seam between DAT's rules (dapl/udapl) and the verbs that keep them (dapl/openib). */
#ifndef IB_H
#define IB_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <netinet/in.h>
#include <sys/queue.h>
#include <dat2/udat.h>
#include "util/deadlines.h"

/* A return value of class ERROR. Results that are no failure (an empty queue, a timeout) have no class. */
#ifndef DAT_ERROR
#define DAT_ERROR(type, subtype) \
	((DAT_RETURN)(DAT_CLASS_ERROR | (DAT_UINT32)(type) | (DAT_UINT32)(subtype)))
#endif

/*
 * These types are opaque to udapl; an `owner` is opaque to openib, which only passes it to upcalls.
 *
 * A function that fails returns an error DAT_RETURN, leaves its outputs untouched, and has logged the failing call and
 * its errno. Functions named _destroy accept NULL and cannot fail, except those where the device may refuse
 * (ib_pd_destroy, ib_mr_destroy, ib_cq_destroy, ib_srq_destroy): on failure they leave the object usable.
 *
 * Threads: each open device has one background thread, the event thread, which makes the upcalls. A thread that reads
 * CM events in its place (ib_cm_read) makes the upcalls of those events. Upcalls are serialised, and the lock that
 * serialises them is the only one held during an upcall. Any function may be called from an upcall unless noted.
 */
struct ib_device; /* an open verbs device, the address it was found by, its event thread */
struct ib_pd;
struct ib_mr;
struct ib_mw; /* a memory window */
struct ib_cq; /* a CQ with a completion channel of its own */
struct ib_qp;
struct ib_srq;
/* one side of one connection: a CM id, from request or connect until destroyed */
struct ib_conn;
struct ib_listener;
struct ib_ah; /* an address handle: the destination of datagrams */

/*
 * Verbs structs are opaque here. Three structs below have the layout of a verbs struct (openib asserts it), so that
 * requests and completions cross this interface without a copy. The same memory is then accessed through two types.
 */
#define IB_MAY_ALIAS __attribute__((__may_alias__))

/* ---- connection manager ------------------------------------------------------------------ */

struct ib_attr;
struct ib_place; /* the device and port that the ia_params of dat.conf name */
struct rdma_event_channel;

/* The properties of a connection manager. A provider library contains exactly one. */
struct ib_cm_kind {
	const char *name; /* value of OFED's attribute DAT_IB_PROVIDER_NAME */
	/* Maps a connection qualifier to a port; both sides must compute the same one. 0: no such port. */
	uint16_t (*qual_port)(DAT_CONN_QUAL qual);
	DAT_CONN_QUAL (*port_qual)(uint16_t port); /* the lowest qualifier of the port */
	/* Read and write the port of a CM address, in host order. */
	uint16_t (*port_get)(const struct sockaddr_storage *address);
	void (*port_set)(struct sockaddr_storage *address, uint16_t port);
	/* Bytes before reject data that mark a reject as the consumer's; 0: the CM marks it itself. */
	uint32_t reject_header;
	/*
	 * Bytes before a datagram request's private data that hold the requester's QP number and path; 0: the CM's
	 * message has them.
	 */
	uint32_t ud_header;
	uint32_t ud_qkey; /* of datagram QPs */
	/* Sets the private data sizes in `attr` to those of the CM; the transport in `attr` is set already. */
	void (*limits)(struct ib_attr *attr);
	/* Returns 0 or a logged errno; for ENODEV, ib_device_open returns `unknown`. */
	int (*find)(const char *params, struct ib_place *place);
	DAT_RETURN unknown;
	/* Ties a new channel to its port; NULL if addresses identify the port. Returns 0 or a logged errno. */
	int (*attach)(struct rdma_event_channel *channel, const struct ib_place *place);
};

extern const struct ib_cm_kind ib_cm;

/* ---- device ------------------------------------------------------------------------------ */

/* Attributes and limits of the device, all of them read from it. */
struct ib_attr {
	char device_name[64];
	char transport[16]; /* "infiniband", "roce", "iwarp" or "software" */
	uint64_t guid;	    /* host order */
	char gid[46];	    /* the port's first GID, in IPv6 notation */
	uint32_t vendor_id, vendor_part_id, hw_version;
	uint64_t fw_version;		/* four 16-bit parts, most significant first */
	unsigned port, port_state, mtu; /* port_state as ibv_port_state; mtu in bytes */
	uint64_t max_mr_size, max_message;
	uint32_t max_qp, max_wr, max_sge, max_sge_read, max_cq, max_cqe, max_mr, max_pd, max_mw;
	uint32_t max_read_in, max_read_out, max_read_in_device;
	uint32_t max_srq, max_srq_wr, max_srq_sge;
	/* private data sizes of the CM, in bytes */
	uint32_t max_private_connect, max_private_accept, max_private_reject;
	uint32_t max_private_resolve, max_private_resolved; /* of datagram endpoints */
	uint32_t max_cq_moderation, max_cq_moderation_us;   /* 0: CQs report each completion */
	bool iwarp, atomics, srq_resize, mw_type1, mw_type2, mem_extensions, zero_based;
	bool datagrams; /* of up to `mtu` bytes */
};

enum ib_async_kind {			    /* object of the upcall */
		     IB_ASYNC_CQ_ERROR,	    /* owner of the CQ */
		     IB_ASYNC_QP_ERROR,	    /* owner of the QP */
		     IB_ASYNC_QP_LAST_WQE,  /* owner of the QP */
		     IB_ASYNC_SRQ_ERROR,    /* owner of the SRQ */
		     IB_ASYNC_SRQ_LIMIT,    /* owner of the SRQ */
		     IB_ASYNC_DEVICE_FATAL, /* owner NULL */
		     IB_ASYNC_PORT_ERROR,   /* owner NULL */
};

enum ib_conn_event {
	/* The QP is in RTS. data: the peer's accept data (active side only). */
	IB_CONN_ESTABLISHED,
	/* The peer's program rejected the request, or died (then data is all zero). */
	IB_CONN_REJECTED_BY_PEER,
	IB_CONN_REJECTED,    /* no listener, stale connection, CM reject */
	IB_CONN_UNREACHABLE, /* no address, route or reply */
	IB_CONN_ERROR,	     /* a local step failed */
	/* The peer disconnected or died, or the local disconnect has completed. */
	IB_CONN_DISCONNECTED,
	IB_CONN_DEVICE_REMOVED,
};

struct ib_request {	  /* a connection request; valid during the upcall only */
	const void *data; /* padded by the CM to its capacity */
	uint32_t size;
	uint8_t responder_resources, initiator_depth; /* seen from this side */
	struct sockaddr_storage remote, local;
	bool datagrams; /* asks for a datagram endpoint */
};

/* Upcalls, serialised; made by the event thread or by ib_cm_read. `owner`: as given when the object was created. */
struct ib_upcalls {
	/* A connection request for a listener. The callee owns `conn` and must accept, reject or destroy it. */
	void (*request)(void *listener_owner, struct ib_conn *conn,
			const struct ib_request *request);
	void (*conn)(void *owner, struct ib_conn *conn, enum ib_conn_event event, const void *data,
		     uint32_t size);
	/* The outcome of ib_conn_resolve: exactly one event. */
	void (*resolved)(void *owner, struct ib_conn *conn, enum ib_conn_event event,
			 const void *data, uint32_t size);
	/* Destroying the object waits until this upcall has returned, so must not be done in it. */
	void (*async)(struct ib_device *device, enum ib_async_kind kind, void *owner);
	/* An armed, registered CQ has fired; it is no longer armed. */
	void (*completion)(void *cq_owner);
};

/*
 * Opens the device that `params`, the ia_params of dat.conf, names: "<netdev | address | host> <port>" or
 * "<verbs device> <port>", depending on the connection manager. Opening an open device again returns the same struct
 * with one more reference. E(INVALID_ADDRESS): no such interface, address or device; E(PROVIDER_NOT_FOUND): no such
 * device, for a connection manager that takes device names only.
 */
DAT_RETURN ib_device_open(const char *params, const struct ib_upcalls *upcalls,
			  struct ib_device **device);
void ib_device_close(struct ib_device *device); /* drops a reference; not from an upcall */
void ib_fork_child(void); /* to be called first in a child of fork(2): forgets all open devices */
/*
 * Waits until the peers of destroyed connections have answered their disconnect requests, where the disconnect asked
 * for that, or until `deadline` (CLOCK_MONOTONIC ns). To be called before the last close of the device, after which
 * the CM no longer repeats those requests. Does nothing if the device is open more than once, or in an upcall.
 */
void ib_device_drain(struct ib_device *device, uint64_t deadline);
const struct ib_attr *ib_device_attr(const struct ib_device *device);
const struct sockaddr *ib_device_address(const struct ib_device *device);
/* Runs `call` once in the event thread at `deadline` (CLOCK_MONOTONIC ns, see util/clock.h). */
struct ib_timer {
	struct deadline due; /* first; all members are guarded by the device's lock */
	void (*call)(struct ib_timer *timer);
};
void ib_timer_arm(struct ib_device *device, struct ib_timer *timer, uint64_t deadline,
		  void (*call)(struct ib_timer *timer));
/* Prevents a call that has not begun; does not wait for a running one. */
void ib_timer_disarm(struct ib_device *device, struct ib_timer *timer);
/* Disarms, and waits for a running call, unless called from an upcall. */
void ib_timer_cancel(struct ib_device *device, struct ib_timer *timer);
/* A call in the event thread that a signal handler can request; several requests may result in one call. */
struct ib_alarm {
	void (*call)(struct ib_alarm *alarm);
	atomic_bool raised;
	struct ib_alarm *next; /* guarded by the device's lock */
};
void ib_alarm_add(struct ib_device *device, struct ib_alarm *alarm,
		  void (*call)(struct ib_alarm *alarm));
/* Waits for a running call, unless called from an upcall; no call follows. */
void ib_alarm_remove(struct ib_device *device, struct ib_alarm *alarm);
void ib_alarm_raise(struct ib_device *device, struct ib_alarm *alarm); /* async-signal-safe */
bool ib_in_upcall(const struct ib_device *device); /* true in the thread that makes it */

/*
 * A thread that is about to block until a CM event arrives, or to start an operation that may cause one at once, may
 * read CM events in place of the event thread. It may block on the descriptor, and calls ib_cm_read when that is
 * readable. The event thread reads events that stay unread for some time (see event_reader.c).
 */
/* Returns the descriptor; -1 if another thread reads, or in an upcall. */
int ib_cm_acquire(struct ib_device *device);
/*
 * A thread that has acquired the channel and will block: another descriptor that it may block on, for what leads to CM events;
 * until ib_cm_release. -1: there is none.
 */
int ib_cm_begin_progress(void);
/* After ib_cm_read: whether that descriptor is still to be waited for. */
bool ib_cm_progresses(void);
/*
 * The event thread reads again: at once, or a moment later if a thread has acquired the channel twice within such a
 * moment, and may do so again.
 */
void ib_cm_release(struct ib_device *device);
/* Counts a thread that waits for CM events which another thread reads: none stays unread while it waits. */
void ib_cm_await(struct ib_device *device);
void ib_cm_unawait(struct ib_device *device);
/* From now on the event thread reads at once: consumers wait for CM events where they cannot read them. */
void ib_cm_share(struct ib_device *device);
/*
 * Reads pending CM events and makes their upcalls, unless another reader is doing so; the caller holds no lock.
 * Returns false, without blocking, if the event thread is making upcalls, which may take any time, or if the caller is
 * in an upcall.
 */
bool ib_cm_read(struct ib_device *device);
/*
 * The same for a thread that polls: true if it read events. One system call if none is pending; yields the processor if
 * another thread has to read them. The caller cannot be cancelled.
 */
bool ib_cm_poll(struct ib_device *device);

/* Groups of per-device counters of the kernel. */
enum ib_kernel_group { IB_KERNEL_CM, IB_KERNEL_LINK, IB_KERNEL_DIAGNOSTICS };
#define IB_KERNEL_CM_MESSAGES 9 /* req, mra, rej, rep, rtu, dreq, drep, lap, apr */
enum ib_kernel_cm { IB_CM_SENT, IB_CM_RECEIVED, IB_CM_SENT_AGAIN, IB_CM_DUPLICATES, IB_CM_KINDS };
#define IB_KERNEL_MOST (IB_KERNEL_CM_MESSAGES * IB_CM_KINDS)
/*
 * Reads the counters of a group; one that this kernel lacks is 0. IB_KERNEL_CM: the messages, once for each of
 * IB_CM_KINDS; the other groups: in the order of DCNT_IA_LNK_* and DCNT_IA_DIAG_*. Returns the number of values.
 */
unsigned ib_kernel_counters(const struct ib_device *device, enum ib_kernel_group group,
			    uint64_t values[IB_KERNEL_MOST]);

/* ---- memory ------------------------------------------------------------------------------ */

DAT_RETURN ib_pd_create(struct ib_device *device, struct ib_pd **pd);
DAT_RETURN ib_pd_destroy(struct ib_pd *pd);
/* Privileges are DAT_MEM_PRIV_* bits, including the IB extension for atomics. */
DAT_RETURN ib_mr_create(struct ib_pd *pd, void *address, uint64_t length, uint32_t privileges,
			bool zero_based, struct ib_mr **mr, uint32_t *lkey, uint32_t *rkey);
DAT_RETURN ib_mr_destroy(struct ib_mr *mr);
/*
 * Creates an unbound window. Type 1: usable through all QPs of the PD; type 2: by the peer of one QP, which can
 * invalidate it.
 */
DAT_RETURN ib_mw_create(struct ib_pd *pd, bool type2, struct ib_mw **mw);
void ib_mw_destroy(struct ib_mw *mw); /* bound or not */

/* ---- completion queues ------------------------------------------------------------------- */

enum ib_completion_flags { /* as verbs have them; openib asserts it */
			   IB_WITH_IMMEDIATE = 2,
			   IB_WITH_INVALIDATE = 8,
};

#define IB_RECV_WRITE 129u /* opcode of a receive consumed by a write with immediate data */

/*
 * A work completion, with the layout of struct ibv_wc, so that the device's record is used in place. After a failure
 * only wr_id, status and qp_num are defined; ib_completion_translate sets all other members to 0.
 */
struct IB_MAY_ALIAS ib_completion {
	uint64_t wr_id;
	/* 0: success; after translation DAT_DTO_COMPLETION_STATUS or DAT_RMR_OPERATION_FAILED */
	uint32_t status;
	uint32_t opcode, vendor_error; /* as the device has them; see IB_RECV_WRITE */
	uint32_t byte_len;	       /* receives and reads */
	/* immediate data in the byte order of the sender's memory, or the invalidated rkey */
	uint32_t immediate;
	uint32_t qp_num;
	uint32_t source_qp;
	uint32_t flags;
	uint32_t path[2];
};

DAT_RETURN ib_cq_create(struct ib_device *device, int entries, void *owner, struct ib_cq **cq);
DAT_RETURN ib_cq_destroy(struct ib_cq *cq);
DAT_RETURN ib_cq_resize(struct ib_cq *cq, int entries);
int ib_cq_entries(const struct ib_cq *cq);

#define IB_CQ_STORE 16 /* completions polled at once */

struct ibv_cq;
struct ibv_wc;

/*
 * The first member of struct ib_cq: a store of completions polled but not yet taken, and the device's poll and arm
 * functions, so that each costs one indirect call.
 */
struct ib_cq_store {
	const struct ib_completion *next;
	uint32_t left; /* from `next` on */
	bool failed;
	int (*poll)(struct ibv_cq *cq, int count, struct ibv_wc *completions);
	int (*notify)(struct ibv_cq *cq, int solicited_only);
	struct ibv_cq *cq;
	struct ib_completion completions[IB_CQ_STORE];
};

static inline struct ib_cq_store *ib_cq_store(struct ib_cq *cq)
{
	return (struct ib_cq_store *)cq;
}

static inline bool ib_cq_failed(struct ib_cq *cq)
{
	return ib_cq_store(cq)->failed;
}

static inline bool ib_cq_store_is_empty(struct ib_cq *cq)
{
	return !ib_cq_store(cq)->left;
}

/*
 * Polls the device and takes the first completion; the store must be empty. NULL: no completion, or the CQ has failed.
 * The completion is valid until the next poll. The caller holds the EVD's lock, as for all functions of the store.
 */
static inline const struct ib_completion *ib_cq_poll(struct ib_cq *cq)
{
	struct ib_cq_store *store = ib_cq_store(cq);
	int polled = store->poll(store->cq, IB_CQ_STORE, (struct ibv_wc *)store->completions);

	if (__builtin_expect(polled <= 0, 0)) {
		store->failed |= polled < 0;
		return NULL;
	}
	store->next = store->completions + 1;
	store->left = (uint32_t)polled - 1;
	return store->completions;
}

/* The two steps of ib_cq_fill: poll the device into an empty store, and record the result of the poll. */
static inline int ib_cq_ask(struct ib_cq *cq)
{
	struct ib_cq_store *store = ib_cq_store(cq);

	return store->poll(store->cq, IB_CQ_STORE, (struct ibv_wc *)store->completions);
}

static inline void ib_cq_keep(struct ib_cq *cq, int polled)
{
	struct ib_cq_store *store = ib_cq_store(cq);

	store->failed |= polled < 0;
	if (polled > 0) {
		store->next = store->completions;
		store->left = (uint32_t)polled;
	}
}

/* Polls the device into an empty store. Returns whether the store now has completions; takes none. */
static inline bool ib_cq_fill(struct ib_cq *cq)
{
	ib_cq_keep(cq, ib_cq_ask(cq));
	return !ib_cq_store_is_empty(cq);
}

/* Takes the next completion; the store must not be empty. */
static inline const struct ib_completion *ib_cq_take(struct ib_cq *cq)
{
	ib_cq_store(cq)->left--;
	return ib_cq_store(cq)->next++;
}

/* Puts into the store, which must be empty, the completion of a work request that its QP did not return. */
void ib_cq_put_flushed(struct ib_cq *cq, uint64_t wr_id, uint32_t qp_num);

/* The completion taken last. */
static inline const struct ib_completion *ib_cq_last(struct ib_cq *cq)
{
	return ib_cq_store(cq)->next - 1;
}

/* True if the last poll returned exactly one completion, now taken: the CQ had no other. */
static inline bool ib_cq_was_last(struct ib_cq *cq)
{
	return ib_cq_store_is_empty(cq) &&
	       ib_cq_store(cq)->next == ib_cq_store(cq)->completions + 1;
}

/* Translates a failed completion's status to DAT's; once per completion. `read`: the request was an RDMA read. */
void ib_completion_translate(struct ib_completion *completion, bool read);

/*
 * ib_cq_is_untouched: no completion was polled since the last ib_cq_mark. A mark has no effect while the store is not
 * empty. Polls need no extra work for this, since they set `next`.
 */
static inline void ib_cq_mark(struct ib_cq *cq)
{
	if (ib_cq_store_is_empty(cq))
		ib_cq_store(cq)->next = NULL;
}

static inline bool ib_cq_is_untouched(struct ib_cq *cq)
{
	return !ib_cq_store(cq)->next;
}

DAT_RETURN ib_cq_arm(struct ib_cq *cq, bool solicited_only);
/* The store must be empty. Marks the CQ and arms it; returns false on failure, without logging it. */
static inline bool ib_cq_notify(struct ib_cq *cq, bool solicited_only)
{
	ib_cq_store(cq)->next = NULL;
	return !ib_cq_store(cq)->notify(ib_cq_store(cq)->cq, solicited_only);
}

/* The descriptor of the completion channel, readable after an armed CQ has fired. */
int ib_cq_fd(const struct ib_cq *cq);
/* Reads one event from the channel; false if there is none. */
bool ib_cq_collect(struct ib_cq *cq);
/*
 * For one thread that sleeps until the CQ fires, without its channel, if the device has that. True: until ib_cq_block_end
 * the event of the present arming is for this thread. False: the channel has the event, or will have it.
 */
bool ib_cq_block_begin(struct ib_cq *cq);
/* A cancellation point. 0, also if it returns early, or errno: EINTR if a signal handler has run. `timeout` NULL: no limit. */
int ib_cq_block(struct ib_cq *cq, const struct timespec *timeout);
void ib_cq_block_interrupt(struct ib_cq *cq); /* for any thread and signal handler */
bool ib_cq_block_end(struct ib_cq *cq);	      /* true if the CQ has fired */
/*
 * Asks that an armed CQ fire after `count` completions, or at most MODERATION_US microseconds after the first of them.
 * A hint: a device without moderation fires after each completion. May make a system call.
 */
#define IB_CQ_MODERATION_US 100
void ib_cq_moderate(struct ib_cq *cq, uint32_t count);
/* From now on the event thread reads the channel, too, and makes the `completion` upcall. */
DAT_RETURN ib_cq_register(struct ib_cq *cq);
void ib_cq_unregister(
	struct
	ib_cq *cq); /* a no-op if not registered; waits for a running upcall, unless called from one */

/* ---- queue pairs ------------------------------------------------------------------------- */

struct ib_qp_caps {
	uint32_t send_wr, recv_wr, send_sge, recv_sge, inline_data;
};

/*
 * Creates an RC QP and moves it to INIT. `caps` holds the requested sizes and receives the granted ones. If the device
 * refuses the inline size, the call retries without inline data. With an SRQ the recv members are ignored.
 */
DAT_RETURN ib_qp_create(struct ib_pd *pd, struct ib_cq *send_cq, struct ib_cq *recv_cq,
			struct ib_srq *srq, struct ib_qp_caps *caps, void *owner,
			struct ib_qp **qp);
/* Creates a UD QP in RTS, ready to send and receive. */
DAT_RETURN ib_qp_create_datagram(struct ib_pd *pd, struct ib_cq *send_cq, struct ib_cq *recv_cq,
				 struct ib_srq *srq, struct ib_qp_caps *caps, void *owner,
				 struct ib_qp **qp);
void ib_qp_destroy(struct ib_qp *qp);
void ib_qp_error(struct ib_qp *qp); /* moves the QP to ERR, which flushes posted requests */
/* Queries the device; true if the QP is in ERR, for whatever reason. */
bool ib_qp_is_broken(const struct ib_qp *qp);
uint32_t ib_qp_num(const struct ib_qp *qp);

DAT_RETURN ib_srq_create(struct ib_pd *pd, uint32_t *max_wr, uint32_t *max_sge, void *owner,
			 struct ib_srq **srq); /* sizes: in requested, out granted */
DAT_RETURN ib_srq_destroy(struct ib_srq *srq);
/* E(INSUFFICIENT_RESOURCES, RESOURCE_SRQ): the device refuses; the SRQ is unchanged. */
DAT_RETURN ib_srq_resize(struct ib_srq *srq, uint32_t *max_wr); /* in: requested, out: granted */
/*
 * Requests one IB_ASYNC_SRQ_LIMIT event when fewer than `limit` receives are on the SRQ; 0: none. A device may check
 * the limit only when the SRQ's next receive is consumed. E(MODEL_NOT_SUPPORTED): the device has no such event.
 */
DAT_RETURN ib_srq_limit(struct ib_srq *srq, uint32_t limit);

/* ---- data path: does not allocate, lock or copy the segment list --------------------------- */

/*
 * The most segments of a list, and the most work requests of a queue. A device that allows more is used up to these, in
 * its attributes and in what a QP or an SRQ is granted.
 */
#define IB_SGE_MAX 128u
#define IB_WR_MAX  (1u << 24)

/* Operations and flags have the values of verbs (openib asserts it), so that no translation is needed. */
#define IB_OP_WRITE	0u
#define IB_OP_WRITE_IMM 1u
#define IB_OP_SEND	2u
#define IB_OP_READ	4u
#define IB_OP_SWAP	5u
#define IB_OP_ADD	6u
#define IB_OP_INV	7u
#define IB_OP_BIND	8u
#define IB_OP_SEND_INV	9u

#define IB_POST_FENCE	  0x1u
#define IB_POST_SIGNALED  0x2u
#define IB_POST_SOLICITED 0x4u
#define IB_POST_INLINE	  0x8u

/*
 * A send work request, with the layout of struct ibv_send_wr. Segments must not have length 0, which some devices take
 * as 2^31.
 */
struct IB_MAY_ALIAS ib_send_work {
	uint64_t wr_id;
	struct ib_send_work *next;
	const DAT_LMR_TRIPLET *segments;
	int count;
	uint32_t op, flags; /* IB_OP_*, IB_POST_* */
	uint32_t word;	    /* immediate data of IB_OP_WRITE_IMM, or the key to invalidate */
	union {
		struct {
			uint64_t remote_address;
			uint32_t remote_key;
		};
		struct { /* of 8 bytes, like the one segment */
			uint64_t remote_address;
			uint64_t operand; /* IB_OP_SWAP: to compare with; IB_OP_ADD: to add */
			uint64_t swap;
			uint32_t remote_key;
		} atomic;
		uint32_t rest[22]; /* for a datagram, see ib_work_address */
	};
};

struct IB_MAY_ALIAS ib_recv_work { /* has the layout of struct ibv_recv_wr */
	uint64_t wr_id;
	struct ib_recv_work *next;
	const DAT_LMR_TRIPLET *segments;
	int count;
};

struct ibv_qp;
struct ibv_send_wr;
struct ibv_recv_wr;

/* The first member of struct ib_qp: the device's post functions. An EP keeps a copy, and posts by one indirect call. */
struct ib_qp_posts {
	struct ibv_qp *qp;
	int (*send)(struct ibv_qp *qp, struct ibv_send_wr *work, struct ibv_send_wr **bad);
	int (*recv)(struct ibv_qp *qp, struct ibv_recv_wr *work, struct ibv_recv_wr **bad);
};

static inline struct ib_qp_posts ib_qp_posts(const struct ib_qp *qp)
{
	return *(const struct ib_qp_posts *)qp;
}

/* Both return 0, or an errno that ib_post_refused translates. */
static inline int ib_post_send_work(const struct ib_qp_posts *posts, struct ib_send_work *work)
{
	struct ibv_send_wr *bad;

	return posts->send(posts->qp, (struct ibv_send_wr *)work, &bad);
}

static inline int ib_post_recv_work(const struct ib_qp_posts *posts, struct ib_recv_work *work)
{
	struct ibv_recv_wr *bad;

	return posts->recv(posts->qp, (struct ibv_recv_wr *)work, &bad);
}

/*
 * E(INSUFFICIENT_RESOURCES, RESOURCE_MEMORY) if the queue is full, E(INVALID_PARAMETER) or E(INTERNAL_ERROR).
 */
DAT_RETURN ib_post_refused(int error);

/* Addresses an IB_OP_SEND of a datagram QP to QP `qp_num` at `ah`. */
void ib_work_address(struct ib_send_work *work, const struct ib_ah *ah, uint32_t qp_num);

struct ib_bind {
	struct ib_mw *mw;
	struct ib_mr *mr;
	uint64_t address, length; /* length 0: unbinds a window of type 1 */
	uint32_t privileges;	  /* only remote privileges apply */
	bool zero_based;
	uint32_t key; /* out: valid once the request has completed */
};
/*
 * Posts a bind with the id and the flags of `work`, and returns as ib_post_send_work. A window of type 2 must be
 * unbound when this is called.
 */
int ib_post_bind(struct ib_qp *qp, const struct ib_send_work *work, struct ib_bind *bind);
DAT_RETURN ib_post_srq_recv(struct ib_srq *srq, uint64_t wr_id, const DAT_LMR_TRIPLET *segments,
			    unsigned count);

/* ---- connections ------------------------------------------------------------------------- */

struct ib_conn_param {
	/* RDMA reads outstanding from the peer, and from this side */
	uint8_t responder_resources, initiator_depth;
	bool reads; /* this side may post reads, whatever depth the peer offers */
	/* no receive is ever posted: a message of the peer must fail, not be retried for ever */
	bool never_receives;
	const void *data; /* copied */
	uint32_t size;
};

/*
 * Starts to connect `qp` to `remote` (with its port, in network order): resolves address and route with the retries of
 * the settings, connects, and moves the QP to RTS with the CM's attributes. The `conn` upcall reports ESTABLISHED at
 * most once, and then, or instead, exactly one final event. If the call itself fails, no upcall follows.
 */
DAT_RETURN ib_conn_connect(struct ib_device *device, struct ib_qp *qp,
			   const struct sockaddr *remote, const struct ib_conn_param *param,
			   void *owner, struct ib_conn **conn);
/*
 * Accepts a request with `qp`; `owner` is passed to later upcalls. On failure the request has been rejected without
 * private data, and the caller must still destroy `conn`. E(INVALID_STATE): the requester has given up.
 */
DAT_RETURN ib_conn_accept(struct ib_conn *conn, struct ib_qp *qp, const struct ib_conn_param *param,
			  void *owner);
DAT_RETURN ib_conn_reject(struct ib_conn *conn, const void *data, uint32_t size);
/*
 * Disconnects, or answers the peer's disconnect request; DISCONNECTED is reported when that is complete. Does not
 * block. `awaits_reply`: ib_device_drain waits for the peer's answer.
 */
void ib_conn_disconnect(struct ib_conn *conn, bool awaits_reply);
/*
 * Destroys the connection: no upcall for it follows. Waits for a running one, unless called from an upcall. A request
 * not yet answered is rejected. A disconnect in progress continues until the peer has answered.
 */
void ib_conn_destroy(struct ib_conn *conn);
/*
 * Starts to request, for the datagram QP `qp`, the address of the datagram endpoint at `remote`; the `resolved` upcall
 * reports the outcome. The other side answers with ib_conn_accept, which for datagrams causes no upcall.
 */
DAT_RETURN ib_conn_resolve(struct ib_device *device, struct ib_qp *qp,
			   const struct sockaddr *remote, const void *data, uint32_t size,
			   void *owner, struct ib_conn **conn);
/* Creates the address handle of the peer of a resolved or accepted `conn`, and returns the number of its QP. */
DAT_RETURN ib_ah_create(struct ib_conn *conn, struct ib_pd *pd, struct ib_ah **ah,
			uint32_t *qp_num);
void ib_ah_destroy(struct ib_ah *ah);
uint16_t ib_conn_local_port(const struct ib_conn *conn); /* host order */
uint16_t ib_conn_remote_port(const struct ib_conn *conn);
/* The depths requested; once the connection is established, limited to those of the peer. */
void ib_conn_depths(const struct ib_conn *conn, uint8_t *responder_resources,
		    uint8_t *initiator_depth);

/*
 * Listens on the device's address for connections and, if the device supports them, for datagram requests. `port` is in
 * host order; 0: any free one. E(CONN_QUAL_IN_USE): the port is in use.
 */
DAT_RETURN ib_listen(struct ib_device *device, uint16_t port, void *owner,
		     struct ib_listener **listener);
void ib_listener_address(const struct ib_listener *listener, struct sockaddr_storage *address);
/* Stops listening and frees the listener; no upcall for it follows. */
void ib_listener_destroy(struct ib_listener *listener);

#endif
