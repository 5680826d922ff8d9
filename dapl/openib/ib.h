/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* The seam between DAT's rules (dapl/udapl) and the verbs that keep them (dapl/openib). */
#ifndef IB_H
#define IB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <netinet/in.h>
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
 * Threads: one background thread per open device (the event thread) makes all upcalls. It holds
 * no lock of openib while it does. Any function may be called from an upcall.
 */
struct ib_device;	/* an open verbs device, the address it was found by, its event thread */
struct ib_pd;
struct ib_mr;
struct ib_mw;		/* a memory window */
struct ib_cq;		/* a CQ with a completion channel of its own */
struct ib_qp;
struct ib_srq;
struct ib_conn;		/* one side of one connection: a CM id, before, while and after it is used */
struct ib_listener;

/* ---- device ------------------------------------------------------------------------------ */

/* What the device can do; every figure is read from the device. */
struct ib_attr {
	char device_name[64];
	char transport[16];		/* "infiniband", "roce", "iwarp" or "software" */
	uint64_t guid;			/* host order */
	uint32_t vendor_id, vendor_part_id, hw_version;
	uint64_t fw_version;		/* four 16-bit parts, most significant first */
	unsigned port, port_state, mtu;	/* port_state as ibv_port_state; mtu in bytes */
	uint64_t max_mr_size, max_message;
	uint32_t max_qp, max_wr, max_sge, max_sge_read, max_cq, max_cqe, max_mr, max_pd, max_mw;
	uint32_t max_read_in, max_read_out, max_read_in_device;
	uint32_t max_srq, max_srq_wr, max_srq_sge;
	uint32_t max_private_connect, max_private_accept, max_private_reject;	/* bytes the CM carries */
	uint32_t max_cq_moderation, max_cq_moderation_us;	/* 0: CQs report each completion */
	bool iwarp, atomics, srq_resize, mw_type1, mw_type2, mem_extensions, zero_based;
};

enum ib_async_kind {		/* object of the upcall */
	IB_ASYNC_CQ_ERROR,		/* owner of the CQ */
	IB_ASYNC_QP_ERROR,		/* owner of the QP */
	IB_ASYNC_QP_LAST_WQE,		/* owner of the QP */
	IB_ASYNC_SRQ_ERROR,		/* owner of the SRQ */
	IB_ASYNC_SRQ_LIMIT,		/* owner of the SRQ */
	IB_ASYNC_DEVICE_FATAL,		/* owner NULL */
	IB_ASYNC_PORT_ERROR,		/* owner NULL */
};

enum ib_conn_event {
	IB_CONN_ESTABLISHED,		/* QP is in RTS; data: the peer's accept data (active side only) */
	IB_CONN_REJECTED_BY_PEER,	/* the peer's program called reject (or died: data is all zero) */
	IB_CONN_REJECTED,		/* nobody listens, stale connection, CM refusal */
	IB_CONN_UNREACHABLE,		/* address, route or answer could not be had */
	IB_CONN_ERROR,			/* this side failed to go on */
	IB_CONN_DISCONNECTED,		/* the peer disconnected or is gone, or our disconnect is done */
	IB_CONN_DEVICE_REMOVED,
};

struct ib_request {		/* a connection request; lives for the time of the upcall */
	const void *data;		/* padded by the CM to its capacity */
	uint32_t size;
	uint8_t responder_resources, initiator_depth;	/* as this side would use them */
	struct sockaddr_storage remote, local;
};

/* Upcalls, made by the event thread only. `owner` is what the object was created with. */
struct ib_upcalls {
	/* A request reached a listener. The callee owns `conn`: ib_conn_accept, _reject or _destroy. */
	void (*request)(void *listener_owner, struct ib_conn *conn, const struct ib_request *request);
	void (*conn)(void *owner, struct ib_conn *conn, enum ib_conn_event event,
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
void ib_device_close(struct ib_device *device);		/* not from an upcall */
const struct ib_attr *ib_device_attr(const struct ib_device *device);
const struct sockaddr *ib_device_address(const struct ib_device *device);
/* Runs `call` once in the event thread at `deadline` (CLOCK_MONOTONIC ns, see util/clock.h). */
struct ib_timer {
	uint64_t deadline;		/* guarded by the device, like the rest */
	void (*call)(struct ib_timer *timer);
	struct ib_timer *next;
	bool armed;
};
void ib_timer_arm(struct ib_device *device, struct ib_timer *timer, uint64_t deadline,
		  void (*call)(struct ib_timer *timer));
/* After return `call` neither runs nor will run, except when called by `call` itself. */
void ib_timer_cancel(struct ib_device *device, struct ib_timer *timer);
bool ib_in_event_thread(const struct ib_device *device);

/* ---- memory ------------------------------------------------------------------------------ */

DAT_RETURN ib_pd_create(struct ib_device *device, struct ib_pd **pd);
DAT_RETURN ib_pd_destroy(struct ib_pd *pd);
/* Privileges are DAT_MEM_PRIV_* bits, IB atomic included. `remote` asks for nothing more. */
DAT_RETURN ib_mr_create(struct ib_pd *pd, void *address, uint64_t length, uint32_t privileges,
			bool zero_based, struct ib_mr **mr, uint32_t *lkey, uint32_t *rkey);
DAT_RETURN ib_mr_destroy(struct ib_mr *mr);
/* Type 2 is for the peer of one QP, and can be invalidated by it; type 1 is for all of the PD. Unbound. */
DAT_RETURN ib_mw_create(struct ib_pd *pd, bool type2, struct ib_mw **mw);
void ib_mw_destroy(struct ib_mw *mw);	/* bound or not */

/* ---- completion queues ------------------------------------------------------------------- */

enum ib_completion_flags {	/* as verbs have them; openib asserts it */
	IB_WITH_IMMEDIATE = 2,
	IB_WITH_INVALIDATE = 8,
};

#define IB_RECV_WRITE 129u	/* opcode of a receive that a write with immediate data used up */

/*
 * One work completion, with the layout of struct ibv_wc, so that the device's own record is translated
 * where it lies. All but wr_id, status and qp_num are 0 or undefined after a failure.
 */
struct ib_completion {
	uint64_t wr_id;
	uint32_t status;		/* DAT_DTO_COMPLETION_STATUS, DAT_RMR_OPERATION_FAILED included */
	uint32_t opcode, vendor_error;	/* the device's; see IB_RECV_WRITE */
	uint32_t byte_len;		/* receives and reads */
	uint32_t immediate;		/* as the sender has it in memory; or the invalidated rkey */
	uint32_t qp_num;
	uint32_t source_qp;
	uint32_t flags;
	uint32_t path[2];
};

DAT_RETURN ib_cq_create(struct ib_device *device, int entries, void *owner, struct ib_cq **cq);
DAT_RETURN ib_cq_destroy(struct ib_cq *cq);
DAT_RETURN ib_cq_resize(struct ib_cq *cq, int entries);
int ib_cq_entries(const struct ib_cq *cq);

/* Completions polled but not yet taken: how a struct ib_cq begins. */
struct ib_cq_store {
	const struct ib_completion *next, *end;
	bool failed;
};

/* Fills the empty store. false: nothing there, or the CQ is broken. */
bool ib_cq_poll(struct ib_cq *cq);

static inline bool ib_cq_failed(const struct ib_cq *cq)
{
	return ((const struct ib_cq_store *)cq)->failed;
}

static inline bool ib_cq_store_is_empty(const struct ib_cq *cq)
{
	const struct ib_cq_store *store = (const struct ib_cq_store *)cq;

	return store->next == store->end;
}

/*
 * Takes the next completion; polls the CQ in batches when its store is empty. NULL: none, or ib_cq_failed. What it
 * points at lasts until the next call. One caller at a time (the EVD's lock).
 */
static inline const struct ib_completion *ib_cq_next(struct ib_cq *cq)
{
	struct ib_cq_store *store = (struct ib_cq_store *)cq;

	return store->next != store->end || ib_cq_poll(cq) ? store->next++ : NULL;
}

/* What ib_cq_next returned last, when it was not NULL. */
static inline const struct ib_completion *ib_cq_last(const struct ib_cq *cq)
{
	return ((const struct ib_cq_store *)cq)->next - 1;
}

DAT_RETURN ib_cq_arm(struct ib_cq *cq, bool solicited_only);
int ib_cq_fd(const struct ib_cq *cq);		/* the completion channel: polls readable when an armed CQ fired */
bool ib_cq_collect(struct ib_cq *cq);		/* reads one event off the channel; true if it held one */
/*
 * Asks that an armed CQ fire after `count` completions, or some time (at most MODERATION_US) after the first of
 * them. A hint: where the device cannot, it fires after each. May be a system call.
 */
#define IB_CQ_MODERATION_US 100
void ib_cq_moderate(struct ib_cq *cq, uint32_t count);
/* From now on the event thread reads the channel, too, and makes the upcall `completion`. */
DAT_RETURN ib_cq_watch(struct ib_cq *cq);
void ib_cq_unwatch(struct ib_cq *cq);	/* watched or not; no upcall after it, unless this is one */

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
			struct ib_srq *srq, struct ib_qp_caps *caps, void *owner, struct ib_qp **qp);
void ib_qp_destroy(struct ib_qp *qp);
void ib_qp_error(struct ib_qp *qp);		/* moves it to ERR: everything posted is flushed */
uint32_t ib_qp_num(const struct ib_qp *qp);

DAT_RETURN ib_srq_create(struct ib_pd *pd, uint32_t *max_wr, uint32_t *max_sge, void *owner,
			 struct ib_srq **srq);	/* in: wanted, out: granted */
DAT_RETURN ib_srq_destroy(struct ib_srq *srq);
/* E(INSUFFICIENT_RESOURCES, RESOURCE_SRQ): the device does not; the SRQ is as before. */
DAT_RETURN ib_srq_resize(struct ib_srq *srq, uint32_t *max_wr);	/* in: wanted, out: granted */
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
#define IB_OP_SHIFT 8
#define IB_OP_WRITE     (0u << IB_OP_SHIFT)
#define IB_OP_WRITE_IMM (1u << IB_OP_SHIFT)
#define IB_OP_SEND      (2u << IB_OP_SHIFT)
#define IB_OP_READ      (4u << IB_OP_SHIFT)
#define IB_OP_SWAP      (5u << IB_OP_SHIFT)
#define IB_OP_ADD       (6u << IB_OP_SHIFT)
#define IB_OP_INV       (7u << IB_OP_SHIFT)
#define IB_OP_BIND      (8u << IB_OP_SHIFT)
#define IB_OP_SEND_INV  (9u << IB_OP_SHIFT)

#define IB_POST_FENCE     0x1u
#define IB_POST_SIGNALED  0x2u
#define IB_POST_SOLICITED 0x4u
#define IB_POST_INLINE    0x8u

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
struct ib_bind {
	struct ib_mw *mw;
	struct ib_mr *mr;
	uint64_t address, length;	/* 0: a window of type 1 is unbound */
	uint32_t privileges;		/* the remote ones count */
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
	uint8_t responder_resources, initiator_depth;	/* reads the peer may, and we want to, have open */
	bool never_receives;		/* a message shall fail at its sender rather than wait for ever */
	const void *data;				/* copied */
	uint32_t size;
};

/*
 * Starts to connect `qp` to `remote` (its port field set, network order): resolves address and route with
 * the retries of the settings, connects, brings the QP to RTS with the CM's attributes, and reports
 * each outcome through the conn upcall, ESTABLISHED at most once and then exactly one ending, or one ending.
 * A failure at once is returned and no upcall follows.
 */
DAT_RETURN ib_conn_connect(struct ib_device *device, struct ib_qp *qp, const struct sockaddr *remote,
			   const struct ib_conn_param *param, void *owner, struct ib_conn **conn);
/*
 * Answers a request with `qp`. Also takes over `owner` for later upcalls. On failure the request has been
 * refused without private data and the caller still destroys `conn`. E(INVALID_STATE): the requester is gone.
 */
DAT_RETURN ib_conn_accept(struct ib_conn *conn, struct ib_qp *qp, const struct ib_conn_param *param,
			  void *owner);
DAT_RETURN ib_conn_reject(struct ib_conn *conn, const void *data, uint32_t size);
/* Disconnects or answers the peer's disconnect; DISCONNECTED follows when it is done. Does not block. */
void ib_conn_disconnect(struct ib_conn *conn);
/*
 * Ends the connection's life: after return no upcall names it. A request not yet answered is refused.
 * Waits for a running upcall, unless called from the event thread.
 */
void ib_conn_destroy(struct ib_conn *conn);
uint16_t ib_conn_local_port(const struct ib_conn *conn);	/* host order */
uint16_t ib_conn_remote_port(const struct ib_conn *conn);
/* The depths asked for, no more than the peer's once the connection is up. */
void ib_conn_depths(const struct ib_conn *conn, uint8_t *responder_resources,
		    uint8_t *initiator_depth);

/* Listens on the device's address; port in host order, 0: any. E(CONN_QUAL_IN_USE): the port is taken. */
DAT_RETURN ib_listen(struct ib_device *device, uint16_t port, void *owner,
		     struct ib_listener **listener);
void ib_listener_address(const struct ib_listener *listener, struct sockaddr_storage *address);
void ib_listener_destroy(struct ib_listener *listener);	/* closed when it returns; no upcall after it */

#endif
