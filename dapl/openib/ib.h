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

/* A failure; what did nothing wrong (an empty queue, a timeout) carries no class. */
#ifndef DAT_ERROR
#define DAT_ERROR(type, subtype) \
	((DAT_RETURN)(DAT_CLASS_ERROR | (DAT_UINT32)(type) | (DAT_UINT32)(subtype)))
#endif

/*
 * udapl sees these types by name only; openib never looks into the `owner` it is handed back.
 * A function that can fail returns a DAT_RETURN with its outputs untouched; it has logged the
 * failing call and its errno. Functions named _destroy accept NULL and cannot fail, except where
 * the device may refuse (ib_pd_destroy, ib_mr_destroy, ib_cq_destroy, ib_srq_destroy), which
 * then leave the object usable.
 *
 * Threads: one background thread per open device (the event thread) makes the upcalls, but for those of
 * CM events that another thread reads in its place (ib_cm_read). They come one at a time, and no lock
 * is held besides the right to make them. Any function may be called from an upcall.
 */
struct ib_device; /* an open verbs device, the address it was found by, its event thread */
struct ib_pd;
struct ib_mr;
struct ib_mw; /* a memory window */
struct ib_cq; /* a CQ with a completion channel of its own */
struct ib_qp;
struct ib_srq;
/* one side of one connection: a CM id, before, while and after it is used */
struct ib_conn;
struct ib_listener;
struct ib_ah; /* where datagrams go to */

/* ---- device ------------------------------------------------------------------------------ */

/* What the device can do; every figure is read from the device. */
struct ib_attr {
	char device_name[64];
	char transport[16]; /* "infiniband", "roce", "iwarp" or "software" */
	uint64_t guid;	    /* host order */
	char gid[46];	    /* the port's first, as an IPv6 address is written */
	uint32_t vendor_id, vendor_part_id, hw_version;
	uint64_t fw_version;		/* four 16-bit parts, most significant first */
	unsigned port, port_state, mtu; /* port_state as ibv_port_state; mtu in bytes */
	uint64_t max_mr_size, max_message;
	uint32_t max_qp, max_wr, max_sge, max_sge_read, max_cq, max_cqe, max_mr, max_pd, max_mw;
	uint32_t max_read_in, max_read_out, max_read_in_device;
	uint32_t max_srq, max_srq_wr, max_srq_sge;
	/* bytes the CM carries */
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
	/* QP is in RTS; data: the peer's accept data (active side only) */
	IB_CONN_ESTABLISHED,
	/* the peer's program called reject (or died: data is all zero) */
	IB_CONN_REJECTED_BY_PEER,
	IB_CONN_REJECTED,    /* nobody listens, stale connection, CM refusal */
	IB_CONN_UNREACHABLE, /* address, route or answer could not be had */
	IB_CONN_ERROR,	     /* this side failed to go on */
	/* the peer disconnected or is gone, or our disconnect is done */
	IB_CONN_DISCONNECTED,
	IB_CONN_DEVICE_REMOVED,
};

struct ib_request {	  /* a connection request; lives for the time of the upcall */
	const void *data; /* padded by the CM to its capacity */
	uint32_t size;
	uint8_t responder_resources, initiator_depth; /* as this side would use them */
	struct sockaddr_storage remote, local;
	bool datagrams; /* asks for a datagram endpoint */
};

/* Upcalls, one at a time: by the event thread, or out of ib_cm_read. `owner` is what the object was created with. */
struct ib_upcalls {
	/* A request reached a listener. The callee owns `conn`: ib_conn_accept, _reject or _destroy. */
	void (*request)(void *listener_owner, struct ib_conn *conn,
			const struct ib_request *request);
	void (*conn)(void *owner, struct ib_conn *conn, enum ib_conn_event event, const void *data,
		     uint32_t size);
	/* Of ib_conn_resolve: ESTABLISHED, or one ending; never both. */
	void (*resolved)(void *owner, struct ib_conn *conn, enum ib_conn_event event,
			 const void *data, uint32_t size);
	/* The object's own destroy waits until an upcall that names it has returned; so not from that upcall. */
	void (*async)(struct ib_device *device, enum ib_async_kind kind, void *owner);
	/* A watched CQ that was armed fired. It is not armed now. */
	void (*completion)(void *cq_owner);
};

/*
 * Opens the device behind `params`, the ia_params of dat.conf: "<netdev | address | host> <port>" or
 * "<verbs device> <port>". The same device opened again is the same struct, counted.
 * E(INVALID_ADDRESS): no such interface, address or device.
 */
DAT_RETURN ib_device_open(const char *params, const struct ib_upcalls *upcalls,
			  struct ib_device **device);
void ib_device_close(struct ib_device *device); /* not from an upcall */
/*
 * Before the last close of the device, which leaves the peers of connections that were disconnected and destroyed
 * without another request: waits until those from whom an answer is hoped for have given it, or until `deadline`
 * (CLOCK_MONOTONIC ns). Elsewhere, and in an upcall, it does nothing.
 */
void ib_device_farewell(struct ib_device *device, uint64_t deadline);
const struct ib_attr *ib_device_attr(const struct ib_device *device);
const struct sockaddr *ib_device_address(const struct ib_device *device);
/* Runs `call` once in the event thread at `deadline` (CLOCK_MONOTONIC ns, see util/clock.h). */
struct ib_timer {
	uint64_t deadline; /* guarded by the device, like the rest */
	void (*call)(struct ib_timer *timer);
	TAILQ_ENTRY(ib_timer) entry;
	bool armed;
};
void ib_timer_arm(struct ib_device *device, struct ib_timer *timer, uint64_t deadline,
		  void (*call)(struct ib_timer *timer));
/* `call` may be running, and will not begin any more; waits for nothing. */
void ib_timer_disarm(struct ib_device *device, struct ib_timer *timer);
/* After return `call` neither runs nor will run, except when called by `call` itself. */
void ib_timer_cancel(struct ib_device *device, struct ib_timer *timer);
/* Something for the event thread to do that a signal handler may ask for; raised twice it may be called once. */
struct ib_alarm {
	void (*call)(struct ib_alarm *alarm);
	atomic_bool raised;
	struct ib_alarm *next; /* guarded by the device */
};
void ib_alarm_add(struct ib_device *device, struct ib_alarm *alarm,
		  void (*call)(struct ib_alarm *alarm));
/* no call after it, as of ib_timer_cancel */
void ib_alarm_remove(struct ib_device *device, struct ib_alarm *alarm);
void ib_alarm_raise(struct ib_device *device, struct ib_alarm *alarm); /* async-signal-safe */
bool ib_in_upcall(const struct ib_device *device);		       /* made by this thread */

/*
 * A thread that is about to sleep until an event of the CM has come, or to ask for some that may come at
 * once, may read those events itself, in place of the event thread: it reads when the descriptor is
 * readable, on which it may sleep.
 */
int ib_cm_take(struct ib_device *device);  /* the descriptor; -1: another thread has it */
void ib_cm_give(struct ib_device *device); /* back to the event thread */
/*
 * What has come, and its upcalls: the caller holds no lock. Never waits for another thread's upcalls:
 * false when there are some.
 */
bool ib_cm_read(struct ib_device *device);

/* What the kernel counts of a device, by group. */
enum ib_kernel_group { IB_KERNEL_CM, IB_KERNEL_LINK, IB_KERNEL_DIAGNOSTICS };
#define IB_KERNEL_CM_MESSAGES 9 /* req, mra, rej, rep, rtu, dreq, drep, lap, apr */
enum ib_kernel_cm { IB_CM_SENT, IB_CM_RECEIVED, IB_CM_SENT_AGAIN, IB_CM_DUPLICATES, IB_CM_KINDS };
#define IB_KERNEL_MOST (IB_KERNEL_CM_MESSAGES * IB_CM_KINDS)
/*
 * Reads a group; 0 stands for what this kernel does not count. IB_KERNEL_CM: IB_CM_KINDS times the
 * messages; the others: in the order of DCNT_IA_LNK_* and DCNT_IA_DIAG_*. Returns their number.
 */
unsigned ib_kernel_counters(const struct ib_device *device, enum ib_kernel_group group,
			    uint64_t values[IB_KERNEL_MOST]);

/* ---- memory ------------------------------------------------------------------------------ */

DAT_RETURN ib_pd_create(struct ib_device *device, struct ib_pd **pd);
DAT_RETURN ib_pd_destroy(struct ib_pd *pd);
/* Privileges are DAT_MEM_PRIV_* bits, IB atomic included. `remote` asks for nothing more. */
DAT_RETURN ib_mr_create(struct ib_pd *pd, void *address, uint64_t length, uint32_t privileges,
			bool zero_based, struct ib_mr **mr, uint32_t *lkey, uint32_t *rkey);
DAT_RETURN ib_mr_destroy(struct ib_mr *mr);
/* Type 2 is for the peer of one QP, and can be invalidated by it; type 1 is for all of the PD. Unbound. */
DAT_RETURN ib_mw_create(struct ib_pd *pd, bool type2, struct ib_mw **mw);
void ib_mw_destroy(struct ib_mw *mw); /* bound or not */

/* ---- completion queues ------------------------------------------------------------------- */

enum ib_completion_flags { /* as verbs have them; openib asserts it */
			   IB_WITH_IMMEDIATE = 2,
			   IB_WITH_INVALIDATE = 8,
};

#define IB_RECV_WRITE 129u /* opcode of a receive that a write with immediate data used up */

/*
 * One work completion, with the layout of struct ibv_wc, so that the device's own record stays where it is.
 * All but wr_id, status and qp_num are undefined after a failure until it is translated, and 0 from then on.
 */
struct ib_completion {
	uint64_t wr_id;
	/* 0: success. Translated: DAT_DTO_COMPLETION_STATUS or DAT_RMR_OPERATION_FAILED */
	uint32_t status;
	uint32_t opcode, vendor_error; /* the device's; see IB_RECV_WRITE */
	uint32_t byte_len;	       /* receives and reads */
	/* as the sender has it in memory; or the invalidated rkey */
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
 * How a struct ib_cq begins: completions polled but not yet taken, and the device's own functions
 * that poll and arm, so that each is one call.
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
 * Polls when the store is empty, and takes the first. NULL: nothing there, or the CQ is broken. What it points at
 * lasts until the next poll. One caller at a time (the EVD's lock), as for all of these.
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

/* The two steps of ib_cq_fill, for an empty store: asking the device, and keeping what it had. */
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

/* Polls when the store is empty, but takes nothing. */
static inline bool ib_cq_fill(struct ib_cq *cq)
{
	ib_cq_keep(cq, ib_cq_ask(cq));
	return !ib_cq_store_is_empty(cq);
}

/* Takes the next of a store that is not empty. */
static inline const struct ib_completion *ib_cq_take(struct ib_cq *cq)
{
	ib_cq_store(cq)->left--;
	return ib_cq_store(cq)->next++;
}

/* What was taken last. */
static inline const struct ib_completion *ib_cq_last(struct ib_cq *cq)
{
	return ib_cq_store(cq)->next - 1;
}

/* The last poll brought one completion, which is taken: the CQ had no other. */
static inline bool ib_cq_was_last(struct ib_cq *cq)
{
	return ib_cq_store_is_empty(cq) &&
	       ib_cq_store(cq)->next == ib_cq_store(cq)->completions + 1;
}

/* Makes a DAT status of the device's, after a failure; once for each completion. */
void ib_completion_translate(struct ib_completion *completion);

/*
 * Whether a completion was polled since the last ib_cq_mark, which is without effect while one is in
 * the store. Costs the polls nothing: they point `next` at the store.
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
/* With an empty store: that, a mark, and no word about a failure (false). */
static inline bool ib_cq_notify(struct ib_cq *cq, bool solicited_only)
{
	ib_cq_store(cq)->next = NULL;
	return !ib_cq_store(cq)->notify(ib_cq_store(cq)->cq, solicited_only);
}

/* the completion channel: polls readable when an armed CQ fired */
int ib_cq_fd(const struct ib_cq *cq);
/* reads one event off the channel; true if it held one */
bool ib_cq_collect(struct ib_cq *cq);
/*
 * Asks that an armed CQ fire after `count` completions, or some time (at most MODERATION_US) after the first of
 * them. A hint: where the device cannot, it fires after each. May be a system call.
 */
#define IB_CQ_MODERATION_US 100
void ib_cq_moderate(struct ib_cq *cq, uint32_t count);
/* From now on the event thread reads the channel, too, and makes the upcall `completion`. */
DAT_RETURN ib_cq_watch(struct ib_cq *cq);
void ib_cq_unwatch(struct ib_cq *cq); /* watched or not; no upcall after it, unless this is one */

/* ---- queue pairs ------------------------------------------------------------------------- */

struct ib_qp_caps {
	uint32_t send_wr, recv_wr, send_sge, recv_sge, inline_data;
};

/*
 * Creates an RC QP and moves it to INIT. `caps` says what is wanted and is filled with what was granted;
 * when the device refuses with the inline size asked, it is tried again without. With an SRQ the
 * recv fields are ignored.
 */
DAT_RETURN ib_qp_create(struct ib_pd *pd, struct ib_cq *send_cq, struct ib_cq *recv_cq,
			struct ib_srq *srq, struct ib_qp_caps *caps, void *owner,
			struct ib_qp **qp);
/* The same for datagrams; it can send and receive at once. */
DAT_RETURN ib_qp_create_datagram(struct ib_pd *pd, struct ib_cq *send_cq, struct ib_cq *recv_cq,
				 struct ib_srq *srq, struct ib_qp_caps *caps, void *owner,
				 struct ib_qp **qp);
void ib_qp_destroy(struct ib_qp *qp);
void ib_qp_error(struct ib_qp *qp); /* moves it to ERR: everything posted is flushed */
/* asks the device: it went to ERR by itself or was moved there */
bool ib_qp_is_broken(const struct ib_qp *qp);
uint32_t ib_qp_num(const struct ib_qp *qp);

DAT_RETURN ib_srq_create(struct ib_pd *pd, uint32_t *max_wr, uint32_t *max_sge, void *owner,
			 struct ib_srq **srq); /* in: wanted, out: granted */
DAT_RETURN ib_srq_destroy(struct ib_srq *srq);
/* E(INSUFFICIENT_RESOURCES, RESOURCE_SRQ): the device does not; the SRQ is as before. */
DAT_RETURN ib_srq_resize(struct ib_srq *srq, uint32_t *max_wr); /* in: wanted, out: granted */
/*
 * IB_ASYNC_SRQ_LIMIT once, when fewer than `limit` buffers are on the SRQ; 0: never. A device may tell only of
 * buffers taken after this. E(MODEL_NOT_SUPPORTED): it cannot.
 */
DAT_RETURN ib_srq_limit(struct ib_srq *srq, uint32_t limit);

/* ---- data path: no allocation, no lock of our own, no copy of the segment list ------------ */

/*
 * A request: one IB_OP_* with any IB_POST_*. Values as verbs have them, so that nothing has to be looked up; openib
 * asserts it.
 */
#define IB_OP_SHIFT	8
#define IB_OP_WRITE	(0u << IB_OP_SHIFT)
#define IB_OP_WRITE_IMM (1u << IB_OP_SHIFT)
#define IB_OP_SEND	(2u << IB_OP_SHIFT)
#define IB_OP_READ	(4u << IB_OP_SHIFT)
#define IB_OP_SWAP	(5u << IB_OP_SHIFT)
#define IB_OP_ADD	(6u << IB_OP_SHIFT)
#define IB_OP_INV	(7u << IB_OP_SHIFT)
#define IB_OP_BIND	(8u << IB_OP_SHIFT)
#define IB_OP_SEND_INV	(9u << IB_OP_SHIFT)

#define IB_POST_FENCE	  0x1u
#define IB_POST_SIGNALED  0x2u
#define IB_POST_SOLICITED 0x4u
#define IB_POST_INLINE	  0x8u

/*
 * A work request as the device takes it, with the layout of struct ibv_send_wr. `flags` are IB_POST_*, `opcode` is
 * an IB_OP_* without the shift.
 */
struct ib_send_work {
	uint64_t wr_id;
	struct ib_send_work *next;
	const DAT_LMR_TRIPLET *segments;
	int count;
	uint32_t opcode, flags, word;
	uint64_t remote_address;
	uint32_t remote_key;
	uint32_t unused[19];
};

struct ib_recv_work { /* struct ibv_recv_wr */
	uint64_t wr_id;
	struct ib_recv_work *next;
	const DAT_LMR_TRIPLET *segments;
	int count;
};

struct ibv_qp;
struct ibv_send_wr;
struct ibv_recv_wr;

/* How a struct ib_qp begins: the device's own functions. Whoever posts often has a copy, and posts by one call. */
struct ib_qp_posts {
	struct ibv_qp *qp;
	int (*send)(struct ibv_qp *qp, struct ibv_send_wr *work, struct ibv_send_wr **bad);
	int (*recv)(struct ibv_qp *qp, struct ibv_recv_wr *work, struct ibv_recv_wr **bad);
};

static inline struct ib_qp_posts ib_qp_posts(const struct ib_qp *qp)
{
	return *(const struct ib_qp_posts *)qp;
}

/* 0, or an error for ib_post_refused. */
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

/* What the posts below return for it. */
DAT_RETURN ib_post_refused(int error);

/*
 * `remote` may be NULL for a send. Returns DAT_SUCCESS, E(INSUFFICIENT_RESOURCES, RESOURCE_MEMORY)
 * when the queue is full, E(INVALID_PARAMETER), E(INTERNAL_ERROR). No segment has length 0: some devices take that as 2^31.
 */
DAT_RETURN ib_post_send(struct ib_qp *qp, unsigned request, uint64_t wr_id,
			const DAT_LMR_TRIPLET *segments, unsigned count,
			const DAT_RMR_TRIPLET *remote);
/* The same with one word more: the immediate data of IB_OP_WRITE_IMM, or the key that IB_OP_SEND_INV ends. */
DAT_RETURN ib_post_word(struct ib_qp *qp, unsigned request, uint64_t wr_id,
			const DAT_LMR_TRIPLET *segments, unsigned count,
			const DAT_RMR_TRIPLET *remote, uint32_t word);
/* IB_OP_SWAP: `operand` is what is compared; IB_OP_ADD: what is added. The segment has 8 bytes. */
DAT_RETURN ib_post_atomic(struct ib_qp *qp, unsigned request, uint64_t wr_id,
			  const DAT_LMR_TRIPLET *segment, const DAT_RMR_TRIPLET *remote,
			  uint64_t operand, uint64_t swap);
/* IB_OP_SEND of a datagram QP. */
DAT_RETURN ib_post_datagram(struct ib_qp *qp, unsigned request, uint64_t wr_id,
			    const DAT_LMR_TRIPLET *segments, unsigned count, const struct ib_ah *ah,
			    uint32_t qp_num);
struct ib_bind {
	struct ib_mw *mw;
	struct ib_mr *mr;
	uint64_t address, length; /* 0: a window of type 1 is unbound */
	uint32_t privileges;	  /* the remote ones count */
	bool zero_based;
};
/* The new key is valid once the request has completed; that of a window of type 2 must not be bound now. */
DAT_RETURN ib_post_bind(struct ib_qp *qp, unsigned flags, uint64_t wr_id,
			const struct ib_bind *bind, uint32_t *key);
/* Ends the key of a bound window of type 2. */
DAT_RETURN ib_post_invalidate(struct ib_qp *qp, unsigned flags, uint64_t wr_id, uint32_t key);
DAT_RETURN ib_post_recv(struct ib_qp *qp, uint64_t wr_id, const DAT_LMR_TRIPLET *segments,
			unsigned count);
DAT_RETURN ib_post_srq_recv(struct ib_srq *srq, uint64_t wr_id, const DAT_LMR_TRIPLET *segments,
			    unsigned count);

/* ---- connections ------------------------------------------------------------------------- */

struct ib_conn_param {
	/* reads the peer may, and we want to, have open */
	uint8_t responder_resources, initiator_depth;
	/* a message shall fail at its sender rather than wait for ever */
	bool never_receives;
	const void *data; /* copied */
	uint32_t size;
};

/*
 * Starts to connect `qp` to `remote` (its port field set, network order): resolves address and route with
 * the retries of the settings, connects, brings the QP to RTS with the CM's attributes, and reports
 * each outcome through the conn upcall, ESTABLISHED at most once and then exactly one ending, or one ending.
 * A failure at once is returned and no upcall follows.
 */
DAT_RETURN ib_conn_connect(struct ib_device *device, struct ib_qp *qp,
			   const struct sockaddr *remote, const struct ib_conn_param *param,
			   void *owner, struct ib_conn **conn);
/*
 * Answers a request with `qp`. Also takes over `owner` for later upcalls. On failure the request has been
 * refused without private data and the caller still destroys `conn`. E(INVALID_STATE): the requester is gone.
 */
DAT_RETURN ib_conn_accept(struct ib_conn *conn, struct ib_qp *qp, const struct ib_conn_param *param,
			  void *owner);
DAT_RETURN ib_conn_reject(struct ib_conn *conn, const void *data, uint32_t size);
/*
 * Disconnects or answers the peer's disconnect; DISCONNECTED follows when it is done. `hopeful`: ib_device_farewell is to
 * wait for the answer. Does not block.
 */
void ib_conn_disconnect(struct ib_conn *conn, bool hopeful);
/*
 * Ends the connection's life: after return no upcall names it. A request not yet answered is refused.
 * A disconnect goes on until the peer has answered. Waits for a running upcall, unless called from one.
 */
void ib_conn_destroy(struct ib_conn *conn);
/*
 * Starts to ask for the datagram endpoint behind `remote`, on behalf of `qp`; reports through the upcall
 * `resolved`. ib_conn_accept answers such a request, and no upcall follows from it.
 */
DAT_RETURN ib_conn_resolve(struct ib_device *device, struct ib_qp *qp,
			   const struct sockaddr *remote, const void *data, uint32_t size,
			   void *owner, struct ib_conn **conn);
/* The other side of one that is resolved, or was accepted: where its datagrams go, and its QP. */
DAT_RETURN ib_ah_create(struct ib_conn *conn, struct ib_pd *pd, struct ib_ah **ah,
			uint32_t *qp_num);
void ib_ah_destroy(struct ib_ah *ah);
uint16_t ib_conn_local_port(const struct ib_conn *conn); /* host order */
uint16_t ib_conn_remote_port(const struct ib_conn *conn);
/* The depths asked for, no more than the peer's once the connection is up. */
void ib_conn_depths(const struct ib_conn *conn, uint8_t *responder_resources,
		    uint8_t *initiator_depth);

/*
 * Listens on the device's address, for connections and, where the device has them, for datagrams; port in host order,
 * 0: any. E(CONN_QUAL_IN_USE): the port is taken.
 */
DAT_RETURN ib_listen(struct ib_device *device, uint16_t port, void *owner,
		     struct ib_listener **listener);
void ib_listener_address(const struct ib_listener *listener, struct sockaddr_storage *address);
/* closed when it returns; no upcall after it */
void ib_listener_destroy(struct ib_listener *listener);

#endif
