/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* The InfiniBand extensions: atomics, immediate data, datagrams, counters, collectives. */
#ifndef _DAT_IB_EXTENSIONS_H_
#define _DAT_IB_EXTENSIONS_H_

#include <netinet/in.h>
#include <dat2/udat.h>

/*
 * An IA has these extensions if its extension_supported is DAT_EXTENSION_IB; extension_version
 * says up to which edition: 209 added the functions that free what UD connections leave behind,
 * and the context of their events.
 */
#define DAT_IB_EXTENSION_VERSION 209

/*
 * Names among the provider_specific_attr of dat_ia_query(): an extension is there if its name is,
 * with the value "TRUE".
 */
#define DAT_IB_ATTR_COUNTERS	  "DAT_COUNTERS"
#define DAT_IB_ATTR_FETCH_AND_ADD "DAT_IB_FETCH_AND_ADD"
#define DAT_IB_ATTR_CMP_AND_SWAP  "DAT_IB_CMP_AND_SWAP"
#define DAT_IB_ATTR_IMMED_DATA	  "DAT_IB_IMMED_DATA"
#define DAT_IB_ATTR_UD		  "DAT_IB_UD"

#define DAT_ATTR_COUNTERS DAT_IB_ATTR_COUNTERS

/* Likewise for collectives. */
#define DAT_IB_COLL_SET_CLOCK	   "DAT_COLL_SET_CLOCK"
#define DAT_IB_COLL_READ_CLOCK	   "DAT_COLL_READ_CLOCK"
#define DAT_IB_COLL_BROADCAST	   "DAT_COLL_BROADCAST"
#define DAT_IB_COLL_BARRIER	   "DAT_COLL_BARRIER"
#define DAT_IB_COLL_SCATTER	   "DAT_COLL_SCATTER"
#define DAT_IB_COLL_SCATTERV	   "DAT_COLL_SCATTERV"
#define DAT_IB_COLL_GATHER	   "DAT_COLL_GATHER"
#define DAT_IB_COLL_GATHERV	   "DAT_COLL_GATHERV"
#define DAT_IB_COLL_ALLGATHER	   "DAT_COLL_ALLGATHER"
#define DAT_IB_COLL_ALLGATHERV	   "DAT_COLL_ALLGATHERV"
#define DAT_IB_COLL_ALLTOALL	   "DAT_COLL_ALLTOALL"
#define DAT_IB_COLL_ALLTOALLV	   "DAT_COLL_ALLTOALLV"
#define DAT_IB_COLL_REDUCE	   "DAT_COLL_REDUCE"
#define DAT_IB_COLL_ALLREDUCE	   "DAT_COLL_ALLREDUCE"
#define DAT_IB_COLL_REDUCE_SCATTER "DAT_COLL_REDUCE_SCATTER"
#define DAT_IB_COLL_SCAN	   "DAT_COLL_SCAN"

/* ---- Values added to the enums of dat.h ---- */

/*
 * All of them bring a DAT_IB_EXTENSION_EVENT_DATA in event_extension_data.  In event_data,
 * DTO_EVENT has what DAT_DTO_COMPLETION_EVENT has, the UD events what their namesakes have.
 */
typedef enum dat_ib_event_number {
	DAT_IB_DTO_EVENT = DAT_IB_EXTENSION_RANGE_BASE,
	DAT_IB_UD_CONNECTION_REQUEST_EVENT,
	DAT_IB_UD_CONNECTION_EVENT_ESTABLISHED,
	DAT_IB_UD_CONNECTION_REJECT_EVENT,
	DAT_IB_UD_CONNECTION_ERROR_EVENT,
	DAT_IB_COLLECTIVE_EVENT
} DAT_IB_EVENT_NUMBER;

/* Operations of dat_extension_op(); the numbers are frozen. */
typedef enum dat_ib_op {
	DAT_IB_FETCH_AND_ADD_OP = 0,
	DAT_IB_CMP_AND_SWAP_OP = 1,
	DAT_IB_RDMA_WRITE_IMMED_OP = 2,
	DAT_IB_UD_SEND_OP = 3,
	DAT_IB_QUERY_COUNTERS_OP = 4,
	DAT_IB_PRINT_COUNTERS_OP = 5,
	DAT_IB_COLLECTIVE_CREATE_MEMBER_OP = 6,
	DAT_IB_COLLECTIVE_FREE_MEMBER_OP = 7,
	DAT_IB_COLLECTIVE_CREATE_GROUP_OP = 8,
	DAT_IB_COLLECTIVE_FREE_GROUP_OP = 9,
	DAT_IB_COLLECTIVE_SET_CLOCK_OP = 10,
	DAT_IB_COLLECTIVE_READ_CLOCK_OP = 11,
	DAT_IB_COLLECTIVE_SCATTER_OP = 12,
	DAT_IB_COLLECTIVE_SCATTERV_OP = 13,
	DAT_IB_COLLECTIVE_GATHER_OP = 14,
	DAT_IB_COLLECTIVE_GATHERV_OP = 15,
	DAT_IB_COLLECTIVE_ALLGATHER_OP = 16,
	DAT_IB_COLLECTIVE_ALLGATHERV_OP = 17,
	DAT_IB_COLLECTIVE_ALLTOALL_OP = 18,
	DAT_IB_COLLECTIVE_ALLTOALLV_OP = 19,
	DAT_IB_COLLECTIVE_REDUCE_OP = 20,
	DAT_IB_COLLECTIVE_ALLREDUCE_OP = 21,
	DAT_IB_COLLECTIVE_REDUCE_SCATTER_OP = 22,
	DAT_IB_COLLECTIVE_SCAN_OP = 23,
	DAT_IB_COLLECTIVE_BROADCAST_OP = 24,
	DAT_IB_COLLECTIVE_BARRIER_OP = 25,
	DAT_IB_START_COUNTERS_OP = 26,
	DAT_IB_STOP_COUNTERS_OP = 27,
	DAT_IB_UD_CM_FREE_OP = 28,
	DAT_IB_UD_AH_FREE_OP = 29,
	DAT_IB_OPEN_QUERY_OP = DAT_OPEN_EXTENSION_BASE,
	DAT_IB_CLOSE_QUERY_OP = DAT_CLOSE_EXTENSION_BASE
} DAT_IB_OP;

#define DAT_QUERY_COUNTERS_OP DAT_IB_QUERY_COUNTERS_OP
#define DAT_PRINT_COUNTERS_OP DAT_IB_PRINT_COUNTERS_OP

/* Of DAT_DTO_COMPLETION_EVENT_DATA. */
typedef enum dat_ib_dtos {
	DAT_IB_DTO_RDMA_WRITE_IMMED = DAT_DTO_EXTENSION_BASE,
	DAT_IB_DTO_RECV_IMMED, /* used up by a write with immediate data */
	DAT_IB_DTO_FETCH_ADD,
	DAT_IB_DTO_CMP_SWAP,
	DAT_IB_DTO_RECV_MSG_IMMED, /* a message with immediate data */
	DAT_IB_DTO_SEND_UD,
	DAT_IB_DTO_RECV_UD,
	DAT_IB_DTO_RECV_UD_IMMED,
	DAT_IB_DTO_COLLECTIVES
} DAT_IB_DTOS;

typedef enum dat_ib_handle_type {
	DAT_IB_HANDLE_TYPE_EXT = DAT_HANDLE_TYPE_EXTENSION_BASE,
	DAT_IB_HANDLE_TYPE_COLLECTIVE
} DAT_IB_HANDLE_TYPE;

typedef enum dat_ib_evd_extension_flags {
	DAT_IB_EVD_EXTENSION_FLAG = DAT_EVD_EXTENSION_BASE
} DAT_IB_EVD_EXTENSION_FLAGS;

/* Asked of an LMR or RMR that peers may use for atomics. */
typedef enum dat_ib_mem_priv_flags {
	DAT_IB_MEM_PRIV_REMOTE_ATOMIC = DAT_MEM_PRIV_EXTENSION_BASE
} DAT_IB_MEM_PRIV_FLAGS;

/* An EP for unreliable datagrams: MODEL_NOT_SUPPORTED where DAT_IB_ATTR_UD is not listed. */
typedef enum dat_ib_service_type {
	DAT_IB_SERVICE_TYPE_UD = DAT_SERVICE_TYPE_EXTENSION_BASE
} DAT_IB_SERVICE_TYPE;

#if defined(__cplusplus) && !defined(DAT_NO_FLAG_OPERATORS)
extern "C++" {
DAT_FLAG_OPERATORS(DAT_EVD_FLAGS, DAT_IB_EVD_EXTENSION_FLAGS)
DAT_FLAG_OPERATORS(DAT_MEM_PRIV_FLAGS, DAT_IB_MEM_PRIV_FLAGS)
}
#endif

typedef enum dat_ib_return { DAT_IB_ERR = DAT_EXTENSION_BASE, DAT_IB_COLLECTIVE_ERR } DAT_IB_RETURN;

/* ---- Events ---- */

/* What an extension event is about. */
typedef enum dat_ib_ext_type {
	DAT_IB_FETCH_AND_ADD,
	DAT_IB_CMP_AND_SWAP,
	DAT_IB_RDMA_WRITE_IMMED,      /* at the writer */
	DAT_IB_RDMA_WRITE_IMMED_DATA, /* at its peer, with immed */
	DAT_IB_RECV_IMMED_DATA,	      /* with immed */
	DAT_IB_UD_CONNECT_REQUEST,
	DAT_IB_UD_REMOTE_AH,	     /* at the connecting side, with remote_ah */
	DAT_IB_UD_PASSIVE_REMOTE_AH, /* at the accepting side, with remote_ah */
	DAT_IB_UD_SEND,
	DAT_IB_UD_RECV,
	DAT_IB_UD_CONNECT_REJECT,
	DAT_IB_UD_CONNECT_ERROR,
	DAT_IB_COLLECTIVE_CREATE_STATUS,
	DAT_IB_COLLECTIVE_CREATE_DATA,
	DAT_IB_COLLECTIVE_CLOCK_SET_STATUS,
	DAT_IB_COLLECTIVE_SCATTER_STATUS,
	DAT_IB_COLLECTIVE_SCATTERV_STATUS,
	DAT_IB_COLLECTIVE_GATHER_STATUS,
	DAT_IB_COLLECTIVE_GATHERV_STATUS,
	DAT_IB_COLLECTIVE_ALLGATHER_STATUS,
	DAT_IB_COLLECTIVE_ALLGATHERV_STATUS,
	DAT_IB_COLLECTIVE_ALLTOALL_STATUS,
	DAT_IB_COLLECTIVE_ALLTOALLV_STATUS,
	DAT_IB_COLLECTIVE_REDUCE_STATUS,
	DAT_IB_COLLECTIVE_ALLREDUCE_STATUS,
	DAT_IB_COLLECTIVE_REDUCE_SCATTER_STATUS,
	DAT_IB_COLLECTIVE_SCAN_STATUS,
	DAT_IB_COLLECTIVE_BROADCAST_STATUS,
	DAT_IB_COLLECTIVE_BARRIER_STATUS
} DAT_IB_EXT_TYPE;

typedef enum dat_ib_status {
	DAT_OP_SUCCESS,
	DAT_IB_OP_ERR, /* see the status in event_data */
	DAT_IB_COLL_COMP_ERR
} DAT_IB_STATUS;

/* Where to send a datagram.  It belongs to the EP and is valid until freed, or the EP is. */
typedef struct dat_ib_addr_handle {
	struct ibv_ah *ah;
	DAT_UINT32 qpn;		/* of the peer's EP */
	DAT_SOCK_ADDR6 ia_addr; /* of the peer */
} DAT_IB_ADDR_HANDLE;

/* 32 bits as the sender has them in memory; their byte order is not changed. */
typedef struct dat_ib_immed_data {
	DAT_UINT32 data;
} DAT_IB_IMMED_DATA;

typedef DAT_HANDLE DAT_IB_COLLECTIVE_HANDLE;

typedef struct dat_ib_collective_event_data {
	DAT_HANDLE handle;
	DAT_CONTEXT context;
} DAT_IB_COLLECTIVE_EVENT_DATA;

/* Of the same size as event_extension_data of DAT_EVENT, which is to be read as this. */
typedef struct dat_ib_extension_event_data {
	DAT_IB_EXT_TYPE type;
	DAT_IB_STATUS status;
	union {
		DAT_IB_IMMED_DATA immed;
	} val;
	__extension__ union {
		DAT_IB_ADDR_HANDLE remote_ah;
		DAT_IB_COLLECTIVE_EVENT_DATA coll;
	};
	DAT_CONTEXT context; /* for dat_ib_ud_cm_free() */
} DAT_IB_EXTENSION_EVENT_DATA;

/* ---- Counters ---- */

/* The order is frozen, and so is the spelling.  _DATA counts bytes. */
typedef enum dat_ia_counters {
	/* Calls. */
	DCNT_IA_PZ_CREATE,
	DCNT_IA_PZ_FREE,
	DCNT_IA_LMR_CREATE,
	DCNT_IA_LMR_FREE,
	DCNT_IA_RMR_CREATE,
	DCNT_IA_RMR_FREE,
	DCNT_IA_PSP_CREATE,
	DCNT_IA_PSP_CREATE_ANY,
	DCNT_IA_PSP_FREE,
	DCNT_IA_RSP_CREATE,
	DCNT_IA_RSP_FREE,
	DCNT_IA_EVD_CREATE,
	DCNT_IA_EVD_FREE,
	DCNT_IA_EP_CREATE,
	DCNT_IA_EP_FREE,
	DCNT_IA_SRQ_CREATE,
	DCNT_IA_SRQ_FREE,

	/* Connection requests seen and answered. */
	DCNT_IA_SP_CR,
	DCNT_IA_SP_CR_ACCEPTED,
	DCNT_IA_SP_CR_REJECTED,

	/* Memory of the provider. */
	DCNT_IA_MEM_ALLOC,
	DCNT_IA_MEM_ALLOC_DATA,
	DCNT_IA_MEM_FREE,

	/* Asynchronous errors. */
	DCNT_IA_ASYNC_ERROR,
	DCNT_IA_ASYNC_QP_ERROR,
	DCNT_IA_ASYNC_CQ_ERROR,

	/* Messages of the connection manager. */
	DCNT_IA_CM_LISTEN,
	DCNT_IA_CM_REQ_TX,
	DCNT_IA_CM_REQ_RX,
	DCNT_IA_CM_REP_TX,
	DCNT_IA_CM_REP_RX,
	DCNT_IA_CM_RTU_TX,
	DCNT_IA_CM_RTU_RX,
	DCNT_IA_CM_USER_REJ_TX,
	DCNT_IA_CM_USER_REJ_RX,
	DCNT_IA_CM_ACTIVE_EST,
	DCNT_IA_CM_PASSIVE_EST,
	DCNT_IA_CM_AH_REQ_TX,
	DCNT_IA_CM_AH_REQ_RX,
	DCNT_IA_CM_AH_RESOLVED,
	DCNT_IA_CM_DREQ_TX,
	DCNT_IA_CM_DREQ_RX,
	DCNT_IA_CM_DREP_TX,
	DCNT_IA_CM_DREP_RX,
	DCNT_IA_CM_MRA_TX,
	DCNT_IA_CM_MRA_RX,
	DCNT_IA_CM_REQ_FULLQ_POLL,

	/* What went wrong there. */
	DCNT_IA_CM_ERR,
	DCNT_IA_CM_ERR_REQ_FULLQ,
	DCNT_IA_CM_ERR_REQ_DUP,
	DCNT_IA_CM_ERR_REQ_RETRY,
	DCNT_IA_CM_ERR_REP_DUP,
	DCNT_IA_CM_ERR_REP_RETRY,
	DCNT_IA_CM_ERR_RTU_DUP,
	DCNT_IA_CM_ERR_RTU_RETRY,
	DCNT_IA_CM_ERR_REFUSED,
	DCNT_IA_CM_ERR_RESET,
	DCNT_IA_CM_ERR_TIMEOUT,
	DCNT_IA_CM_ERR_REJ_TX,
	DCNT_IA_CM_ERR_REJ_RX,
	DCNT_IA_CM_ERR_DREQ_DUP,
	DCNT_IA_CM_ERR_DREQ_RETRY,
	DCNT_IA_CM_ERR_DREP_DUP,
	DCNT_IA_CM_ERR_DREP_RETRY,
	DCNT_IA_CM_ERR_MRA_DUP,
	DCNT_IA_CM_ERR_MRA_RETRY,
	DCNT_IA_CM_ERR_UNEXPECTED,

	/* The port, between dat_ib_start_counter() and dat_ib_stop_counter(). */
	DCNT_IA_LNK_ERR_RCV,
	DCNT_IA_LNK_ERR_RCV_REM_PHYS,
	DCNT_IA_LNK_ERR_RCV_CONSTRAINT,
	DCNT_IA_LNK_ERR_XMT_DISCARDS,
	DCNT_IA_LNK_ERR_XMT_CONTRAINT,
	DCNT_IA_LNK_ERR_INTEGRITY,
	DCNT_IA_LNK_ERR_EXC_BUF_OVERRUN,
	DCNT_IA_LNK_WARN_RCV_SW_RELAY,
	DCNT_IA_LNK_WARN_XMT_WAIT,

	/* The device, likewise: receive side (RQ) and send side (SQ). */
	DCNT_IA_DIAG_ERR_RQ_RAE,
	DCNT_IA_DIAG_ERR_RQ_OOS,
	DCNT_IA_DIAG_ERR_RQ_RIRE,
	DCNT_IA_DIAG_ERR_RQ_UDSDPRD,
	DCNT_IA_DIAG_ERR_SQ_RAE,
	DCNT_IA_DIAG_ERR_SQ_OOS,
	DCNT_IA_DIAG_ERR_SQ_RIRE,
	DCNT_IA_DIAG_ERR_SQ_RREE,
	DCNT_IA_DIAG_ERR_SQ_TREE,

	/* How many there are. */
	DCNT_IA_ALL_COUNTERS
} DAT_IA_COUNTERS;

typedef enum dat_ep_counters {
	DCNT_EP_CONNECT,
	DCNT_EP_DISCONNECT,
	DCNT_EP_POST_SEND,
	DCNT_EP_POST_SEND_DATA,
	DCNT_EP_POST_SEND_UD,
	DCNT_EP_POST_SEND_UD_DATA,
	DCNT_EP_POST_RECV,
	DCNT_EP_POST_RECV_DATA,
	DCNT_EP_POST_WRITE,
	DCNT_EP_POST_WRITE_DATA,
	DCNT_EP_POST_WRITE_IMM,
	DCNT_EP_POST_WRITE_IMM_DATA,
	DCNT_EP_POST_READ,
	DCNT_EP_POST_READ_DATA,
	DCNT_EP_POST_CMP_SWAP,
	DCNT_EP_POST_FETCH_ADD,
	DCNT_EP_RECV,
	DCNT_EP_RECV_DATA,
	DCNT_EP_RECV_UD,
	DCNT_EP_RECV_UD_DATA,
	DCNT_EP_RECV_IMM,
	DCNT_EP_RECV_IMM_DATA,
	DCNT_EP_RECV_RDMA_IMM,
	DCNT_EP_RECV_RDMA_IMM_DATA,
	DCNT_EP_ALL_COUNTERS /* how many there are */
} DAT_EP_COUNTERS;

typedef enum dat_evd_counters {
	DCNT_EVD_WAIT,
	DCNT_EVD_WAIT_BLOCKED, /* waits that slept */
	DCNT_EVD_WAIT_NOTIFY,
	DCNT_EVD_DEQUEUE,
	DCNT_EVD_DEQUEUE_FOUND,
	DCNT_EVD_DEQUEUE_NOT_FOUND,
	DCNT_EVD_DEQUEUE_POLL, /* polls of the device's queue */
	DCNT_EVD_DEQUEUE_POLL_FOUND,
	DCNT_EVD_CONN_CALLBACK,
	DCNT_EVD_DTO_CALLBACK,
	DCNT_EVD_ALL_COUNTERS /* how many there are */
} DAT_EVD_COUNTERS;

/* What dat_ib_start_counter() takes. */
typedef enum dat_ia_counter_type { DCNT_IA_CM, DCNT_IA_LNK, DCNT_IA_DIAG } DAT_IA_COUNTER_TYPE;

/* ---- Posting ---- */

/*
 * From here on, macros over dat_extension_op() that cast each argument to what the provider reads.
 * ARGn counts the parameters of the macro.  NOT_IMPLEMENTED: the provider does not have it.
 *
 * Posts follow the rules under "Posting on an EP" in dat.h, and complete with a DAT_IB_DTO_EVENT.
 * The cookie must be a DAT_DTO_COOKIE, as it is not cast.  If one fails, status is DAT_IB_OP_ERR
 * and type that of the post; a failed receive comes as a DAT_DTO_COMPLETION_EVENT, but that of an
 * EP of datagrams as a DAT_IB_DTO_EVENT.
 */

/*
 * Adds add_val to 64 bits of the peer's memory, in one step with regard to its other atomics; the
 * value before the addition comes to lbuf, one segment of at least 8 bytes.  Values are in host
 * byte order.  Counts as an RDMA read.  Completes with DAT_DTO_ERR_REMOTE_ACCESS if the peer's
 * region lacks DAT_IB_MEM_PRIV_REMOTE_ATOMIC.  [IB atomics]
 * - ARG3: less than 8 bytes; ARG5: an address that is not a multiple of 8
 */
#define dat_ib_post_fetch_and_add(ep, add_val, lbuf, cookie, rbuf, flgs)                      \
	dat_extension_op((DAT_EP_HANDLE)(ep), DAT_IB_FETCH_AND_ADD_OP, (DAT_UINT64)(add_val), \
			 (DAT_LMR_TRIPLET *)(lbuf), (cookie), (DAT_RMR_TRIPLET *)(rbuf),      \
			 (DAT_COMPLETION_FLAGS)(flgs))

/*
 * Replaces 64 bits of the peer's memory by swap_val if they are equal to cmp_val; in any case what
 * was there comes to lbuf.  Otherwise as dat_ib_post_fetch_and_add().  [IB atomics]
 * - ARG4: less than 8 bytes; ARG6: an address that is not a multiple of 8
 */
#define dat_ib_post_cmp_and_swap(ep, cmp_val, swap_val, lbuf, cookie, rbuf, flgs)            \
	dat_extension_op((DAT_EP_HANDLE)(ep), DAT_IB_CMP_AND_SWAP_OP, (DAT_UINT64)(cmp_val), \
			 (DAT_UINT64)(swap_val), (DAT_LMR_TRIPLET *)(lbuf), (cookie),        \
			 (DAT_RMR_TRIPLET *)(rbuf), (DAT_COMPLETION_FLAGS)(flgs))

/*
 * Writes like dat_ep_post_rdma_write(), perhaps nothing at all, then uses up a receive of the peer
 * without touching its buffer: that completes as DAT_IB_RDMA_WRITE_IMMED_DATA with the number of
 * bytes written and idata, 32 bits that keep their byte order.  DAT_COMPLETION_SOLICITED_WAIT_FLAG
 * means something here.  [IB immediate data]
 */
#define dat_ib_post_rdma_write_immed(ep, size, lbuf, cookie, rbuf, idata, flgs)              \
	dat_extension_op((DAT_EP_HANDLE)(ep), DAT_IB_RDMA_WRITE_IMMED_OP, (DAT_COUNT)(size), \
			 (DAT_LMR_TRIPLET *)(lbuf), (cookie), (DAT_RMR_TRIPLET *)(rbuf),     \
			 (DAT_UINT32)(idata), (DAT_COMPLETION_FLAGS)(flgs))

/*
 * Sends a datagram, no longer than the port's MTU, to where ah_ptr says; the EP's service type must
 * be DAT_IB_SERVICE_TYPE_UD.  ah_ptr is from the remote_ah of an event.  [IB datagrams]
 * - INVALID_HANDLE/EP: an EP of connections
 * - ARG4: no address handle of the EP's PZ
 * - LENGTH_ERROR: longer than that
 */
#define dat_ib_post_send_ud(ep, segments, lbuf, ah_ptr, cookie, flgs)                         \
	dat_extension_op((DAT_EP_HANDLE)(ep), DAT_IB_UD_SEND_OP, (DAT_COUNT)(segments),       \
			 (DAT_LMR_TRIPLET *)(lbuf), (DAT_IB_ADDR_HANDLE *)(ah_ptr), (cookie), \
			 (DAT_COMPLETION_FLAGS)(flgs))

/* A received datagram begins with 40 bytes of routing header, and they count. */
#define dat_ib_post_recv_ud dat_ep_post_recv

/* ---- Datagram peers ---- */

/*
 * An EP of datagrams meets its peers through dat_ep_connect() and dat_cr_accept(), any number of
 * them, and its state does not follow.  Each is a DAT_IB_UD_CONNECTION_EVENT_ESTABLISHED that
 * brings remote_ah and context.
 */

/*
 * Frees what the connection manager keeps for a peer: cm is the context of the established event.
 * The address handle stays.  [IB datagrams]
 * - ARG2: not of this EP, or freed already
 */
#define dat_ib_ud_cm_free(ep, cm) \
	dat_extension_op((DAT_EP_HANDLE)(ep), DAT_IB_UD_CM_FREE_OP, (DAT_CONTEXT)(cm))

/*
 * Frees the address handle of a peer, as freeing the EP does otherwise.  [IB datagrams]
 * - ARG2: not of this EP, or freed already
 */
#define dat_ib_ud_ah_free(ep, ah) \
	dat_extension_op((DAT_EP_HANDLE)(ep), DAT_IB_UD_AH_FREE_OP, (DAT_IB_ADDR_HANDLE *)(ah))

/* ---- Counters: functions ---- */

/*
 * Reads one counter of an IA, EP or EVD into the element of p_cntrs_out that has its number, or
 * with DCNT_*_ALL_COUNTERS all of them; the array needs room for all in either case.  If reset is
 * not 0, what was read becomes 0 in the same step.  [IB counters]
 * - INVALID_HANDLE: another kind of object
 * - ARG2: no such counter
 */
#define dat_ib_query_counters(dat_handle, cntr, p_cntrs_out, reset)                       \
	dat_extension_op((DAT_HANDLE)(dat_handle), DAT_IB_QUERY_COUNTERS_OP, (int)(cntr), \
			 (DAT_UINT64 *)(p_cntrs_out), (int)(reset))

/* The same onto standard output, a line for each: host, process, name and value. */
#define dat_ib_print_counters(dat_handle, cntr, reset)                                    \
	dat_extension_op((DAT_HANDLE)(dat_handle), DAT_IB_PRINT_COUNTERS_OP, (int)(cntr), \
			 (int)(reset))

#define dat_query_counters dat_ib_query_counters
#define dat_print_counters dat_ib_print_counters

/*
 * Starts to count what the kernel counts for the IA's port; type is a DAT_IA_COUNTER_TYPE.
 * [IB counters]
 */
#define dat_ib_start_counter(dat_handle, type)                               \
	dat_extension_op((DAT_HANDLE)(dat_handle), DAT_IB_START_COUNTERS_OP, \
			 (DAT_IA_COUNTER_TYPE)(type))

/*
 * Ends it: the IA's counters get the differences.  [IB counters]
 * - INVALID_STATE: it was not started
 */
#define dat_ib_stop_counter(dat_handle, type)                               \
	dat_extension_op((DAT_HANDLE)(dat_handle), DAT_IB_STOP_COUNTERS_OP, \
			 (DAT_IA_COUNTER_TYPE)(type))

/* ---- Attributes without opening ---- */

/*
 * The attributes of an IA by name, without opening it for use.  Either structure may be null.
 * *ia_handle is good only for dat_ib_close_query(), until which what the attributes point to is
 * valid.  [IB query]
 * - PROVIDER_NOT_FOUND: as dat_ia_openv()
 * - INVALID_PARAMETER: both structures are null
 */
#define dat_ib_open_query(name, ia_handle, ia_mask, ia_attr, prov_mask, prov_attr)           \
	dat_extension_op((DAT_HANDLE)NULL, DAT_IB_OPEN_QUERY_OP, (const DAT_NAME_PTR)(name), \
			 (DAT_HANDLE *)(ia_handle), (DAT_IA_ATTR_MASK)(ia_mask),             \
			 (DAT_IA_ATTR *)(ia_attr), (DAT_PROVIDER_ATTR_MASK)(prov_mask),      \
			 (DAT_PROVIDER_ATTR *)(prov_attr))

/* Frees what dat_ib_open_query() made.  [IB query] */
#define dat_ib_close_query(ia_handle) \
	dat_extension_op((DAT_HANDLE)(ia_handle), DAT_IB_CLOSE_QUERY_OP)

/* ---- Collectives ---- */

/*
 * Operations of all members of a group, on sendbuf and recvbuf; sizes are bytes, root is a rank.
 * They complete with a DAT_IB_COLLECTIVE_EVENT that has user_context.  No provider here has them:
 * NOT_IMPLEMENTED.  The interface is complete so that programs compile, and the names of the
 * operations tell what they do.
 */
typedef enum dat_ib_collective_data_type {
	DAT_IB_COLLECTIVE_TYPE_INT8,
	DAT_IB_COLLECTIVE_TYPE_UINT8,
	DAT_IB_COLLECTIVE_TYPE_INT16,
	DAT_IB_COLLECTIVE_TYPE_UINT16,
	DAT_IB_COLLECTIVE_TYPE_INT32,
	DAT_IB_COLLECTIVE_TYPE_UINT32,
	DAT_IB_COLLECTIVE_TYPE_INT64,
	DAT_IB_COLLECTIVE_TYPE_UINT64,
	DAT_IB_COLLECTIVE_TYPE_FLOAT,
	DAT_IB_COLLECTIVE_TYPE_DOUBLE,
	DAT_IB_COLLECTIVE_TYPE_LONG_DOUBLE,
	DAT_IB_COLLECTIVE_TYPE_SHORT_INT, /* from here on pairs: a value and its index */
	DAT_IB_COLLECTIVE_TYPE_2INT,
	DAT_IB_COLLECTIVE_TYPE_FLOAT_INT,
	DAT_IB_COLLECTIVE_TYPE_LONG_INT,
	DAT_IB_COLLECTIVE_TYPE_DOUBLE_INT
} DAT_IB_COLLECTIVE_DATA_TYPE;

typedef enum dat_ib_collective_reduce_data_op {
	DAT_IB_COLLECTIVE_REDUCE_OP_MAX,
	DAT_IB_COLLECTIVE_REDUCE_OP_MIN,
	DAT_IB_COLLECTIVE_REDUCE_OP_SUM,
	DAT_IB_COLLECTIVE_REDUCE_OP_PROD,
	DAT_IB_COLLECTIVE_REDUCE_OP_LAND, /* logical */
	DAT_IB_COLLECTIVE_REDUCE_OP_BAND, /* bitwise */
	DAT_IB_COLLECTIVE_REDUCE_OP_LOR,
	DAT_IB_COLLECTIVE_REDUCE_OP_BOR,
	DAT_IB_COLLECTIVE_REDUCE_OP_LXOR,
	DAT_IB_COLLECTIVE_REDUCE_OP_BXOR,
	DAT_IB_COLLECTIVE_REDUCE_OP_MAXLOC, /* of pairs */
	DAT_IB_COLLECTIVE_REDUCE_OP_MINLOC  /* of pairs */
} DAT_IB_COLLECTIVE_REDUCE_DATA_OP;

typedef unsigned int DAT_IB_COLLECTIVE_RANK;
typedef unsigned int DAT_IB_COLLECTIVE_ID;
typedef void *DAT_IB_COLLECTIVE_MEMBER;

typedef struct dat_ib_collective_group {
	int local_size;
	int local_rank;
	int *local_ranks;
	int external_size;
	int external_rank;
	int *external_ranks;
	int *intranode_table;
	int *internode_table;
	int is_comm_world;
} DAT_IB_COLLECTIVE_GROUP;

#define dat_ib_collective_create_member(ia_handle, progress_func, member, member_size)   \
	dat_extension_op((DAT_IA_HANDLE)(ia_handle), DAT_IB_COLLECTIVE_CREATE_MEMBER_OP, \
			 (void *)(progress_func), (DAT_IB_COLLECTIVE_MEMBER *)(member),  \
			 (DAT_UINT32 *)(member_size))

#define dat_ib_collective_free_member(ia_handle, member)                               \
	dat_extension_op((DAT_IA_HANDLE)(ia_handle), DAT_IB_COLLECTIVE_FREE_MEMBER_OP, \
			 (DAT_IB_COLLECTIVE_MEMBER)(member))

#define dat_ib_collective_create_group(members, group_size, self, group_id, group_info, evd, pd, \
				       user_context)                                             \
	dat_extension_op((DAT_EVD_HANDLE)(evd), DAT_IB_COLLECTIVE_CREATE_GROUP_OP,               \
			 (DAT_IB_COLLECTIVE_MEMBER *)(members), (DAT_COUNT)(group_size),         \
			 (DAT_IB_COLLECTIVE_RANK)(self), (DAT_IB_COLLECTIVE_ID)(group_id),       \
			 (DAT_IB_COLLECTIVE_GROUP *)(group_info), (DAT_PZ_HANDLE)(pd),           \
			 (DAT_CONTEXT)(user_context))

#define dat_ib_collective_free_group(coll_handle) \
	dat_extension_op((DAT_IB_COLLECTIVE_HANDLE)(coll_handle), DAT_IB_COLLECTIVE_FREE_GROUP_OP)

#define dat_ib_collective_set_clock(coll_handle, clock_value, user_context)                       \
	dat_extension_op((DAT_IB_COLLECTIVE_HANDLE)(coll_handle), DAT_IB_COLLECTIVE_SET_CLOCK_OP, \
			 (DAT_UINT64)(clock_value), (DAT_CONTEXT)(user_context))

#define dat_ib_collective_read_clock(coll_handle, clock_value)                                     \
	dat_extension_op((DAT_IB_COLLECTIVE_HANDLE)(coll_handle), DAT_IB_COLLECTIVE_READ_CLOCK_OP, \
			 (DAT_UINT64 *)(clock_value))

#define dat_ib_collective_scatter(coll_handle, sendbuf, sendsize, recvbuf, recvsize, root,      \
				  user_context, flags)                                          \
	dat_extension_op((DAT_IB_COLLECTIVE_HANDLE)(coll_handle), DAT_IB_COLLECTIVE_SCATTER_OP, \
			 (DAT_PVOID)(sendbuf), (DAT_COUNT)(sendsize), (DAT_PVOID)(recvbuf),     \
			 (DAT_COUNT)(recvsize), (DAT_IB_COLLECTIVE_RANK)(root),                 \
			 (DAT_CONTEXT)(user_context), (DAT_COMPLETION_FLAGS)(flags))

#define dat_ib_collective_scatterv(coll_handle, sendbuf, sendsizes, displs, recvbuf, recvsize,   \
				   root, user_context, flags)                                    \
	dat_extension_op((DAT_IB_COLLECTIVE_HANDLE)(coll_handle), DAT_IB_COLLECTIVE_SCATTERV_OP, \
			 (DAT_PVOID)(sendbuf), (DAT_COUNT *)(sendsizes), (DAT_COUNT *)(displs),  \
			 (DAT_PVOID)(recvbuf), (DAT_COUNT)(recvsize),                            \
			 (DAT_IB_COLLECTIVE_RANK)(root), (DAT_CONTEXT)(user_context),            \
			 (DAT_COMPLETION_FLAGS)(flags))

#define dat_ib_collective_gather(coll_handle, sendbuf, sendsize, recvbuf, recvsize, root,      \
				 user_context, flags)                                          \
	dat_extension_op((DAT_IB_COLLECTIVE_HANDLE)(coll_handle), DAT_IB_COLLECTIVE_GATHER_OP, \
			 (DAT_PVOID)(sendbuf), (DAT_COUNT)(sendsize), (DAT_PVOID)(recvbuf),    \
			 (DAT_COUNT)(recvsize), (DAT_IB_COLLECTIVE_RANK)(root),                \
			 (DAT_CONTEXT)(user_context), (DAT_COMPLETION_FLAGS)(flags))

#define dat_ib_collective_gatherv(coll_handle, sendbuf, sendsize, recvbufs, recvsizes, displs,  \
				  root, user_context, flags)                                    \
	dat_extension_op((DAT_IB_COLLECTIVE_HANDLE)(coll_handle), DAT_IB_COLLECTIVE_GATHERV_OP, \
			 (DAT_PVOID)(sendbuf), (DAT_COUNT)(sendsize), (DAT_PVOID)(recvbufs),    \
			 (DAT_COUNT *)(recvsizes), (DAT_COUNT *)(displs),                       \
			 (DAT_IB_COLLECTIVE_RANK)(root), (DAT_CONTEXT)(user_context),           \
			 (DAT_COMPLETION_FLAGS)(flags))

#define dat_ib_collective_allgather(coll_handle, sendbuf, sendsize, recvbuf, recvsize,            \
				    user_context, flags)                                          \
	dat_extension_op((DAT_IB_COLLECTIVE_HANDLE)(coll_handle), DAT_IB_COLLECTIVE_ALLGATHER_OP, \
			 (DAT_PVOID)(sendbuf), (DAT_COUNT)(sendsize), (DAT_PVOID)(recvbuf),       \
			 (DAT_COUNT)(recvsize), (DAT_CONTEXT)(user_context),                      \
			 (DAT_COMPLETION_FLAGS)(flags))

#define dat_ib_collective_allgatherv(coll_handle, sendbuf, sendsize, recvbuf, recvsizes, displs,   \
				     user_context, flags)                                          \
	dat_extension_op((DAT_IB_COLLECTIVE_HANDLE)(coll_handle), DAT_IB_COLLECTIVE_ALLGATHERV_OP, \
			 (DAT_PVOID)(sendbuf), (DAT_COUNT)(sendsize), (DAT_PVOID)(recvbuf),        \
			 (DAT_COUNT *)(recvsizes), (DAT_COUNT *)(displs),                          \
			 (DAT_CONTEXT)(user_context), (DAT_COMPLETION_FLAGS)(flags))

#define dat_ib_collective_alltoall(coll_handle, sendbuf, sendsize, recvbuf, recvsize,            \
				   user_context, flags)                                          \
	dat_extension_op((DAT_IB_COLLECTIVE_HANDLE)(coll_handle), DAT_IB_COLLECTIVE_ALLTOALL_OP, \
			 (DAT_PVOID)(sendbuf), (DAT_COUNT)(sendsize), (DAT_PVOID)(recvbuf),      \
			 (DAT_COUNT)(recvsize), (DAT_CONTEXT)(user_context),                     \
			 (DAT_COMPLETION_FLAGS)(flags))

#define dat_ib_collective_alltoallv(coll_handle, sendbuf, sendsizes, senddspls, recvbuf,           \
				    recvsizes, recvdispls, user_context, flags)                    \
	dat_extension_op((DAT_IB_COLLECTIVE_HANDLE)(coll_handle), DAT_IB_COLLECTIVE_ALLTOALLV_OP,  \
			 (DAT_PVOID)(sendbuf), (DAT_COUNT *)(sendsizes), (DAT_COUNT *)(senddspls), \
			 (DAT_PVOID)(recvbuf), (DAT_COUNT *)(recvsizes),                           \
			 (DAT_COUNT *)(recvdispls), (DAT_CONTEXT)(user_context),                   \
			 (DAT_COMPLETION_FLAGS)(flags))

#define dat_ib_collective_reduce(coll_handle, sendbuf, sendsize, recvbuf, recvsize, op, type,  \
				 root, user_context, flags)                                    \
	dat_extension_op((DAT_IB_COLLECTIVE_HANDLE)(coll_handle), DAT_IB_COLLECTIVE_REDUCE_OP, \
			 (DAT_PVOID)(sendbuf), (DAT_COUNT)(sendsize), (DAT_PVOID)(recvbuf),    \
			 (DAT_COUNT)(recvsize), (DAT_IB_COLLECTIVE_REDUCE_DATA_OP)(op),        \
			 (DAT_IB_COLLECTIVE_DATA_TYPE)(type), (DAT_IB_COLLECTIVE_RANK)(root),  \
			 (DAT_CONTEXT)(user_context), (DAT_COMPLETION_FLAGS)(flags))

#define dat_ib_collective_allreduce(coll_handle, sendbuf, sendsize, recvbuf, recvsize, op, type,  \
				    user_context, flags)                                          \
	dat_extension_op((DAT_IB_COLLECTIVE_HANDLE)(coll_handle), DAT_IB_COLLECTIVE_ALLREDUCE_OP, \
			 (DAT_PVOID)(sendbuf), (DAT_COUNT)(sendsize), (DAT_PVOID)(recvbuf),       \
			 (DAT_COUNT)(recvsize), (DAT_IB_COLLECTIVE_REDUCE_DATA_OP)(op),           \
			 (DAT_IB_COLLECTIVE_DATA_TYPE)(type), (DAT_CONTEXT)(user_context),        \
			 (DAT_COMPLETION_FLAGS)(flags))

#define dat_ib_collective_reduce_scatter(coll_handle, sendbuf, sendsize, recvbuf, recvsizes, op, \
					 type, user_context, flags)                              \
	dat_extension_op((DAT_IB_COLLECTIVE_HANDLE)(coll_handle),                                \
			 DAT_IB_COLLECTIVE_REDUCE_SCATTER_OP, (DAT_PVOID)(sendbuf),              \
			 (DAT_COUNT)(sendsize), (DAT_PVOID)(recvbuf), (DAT_COUNT *)(recvsizes),  \
			 (DAT_IB_COLLECTIVE_REDUCE_DATA_OP)(op),                                 \
			 (DAT_IB_COLLECTIVE_DATA_TYPE)(type), (DAT_CONTEXT)(user_context),       \
			 (DAT_COMPLETION_FLAGS)(flags))

#define dat_ib_collective_scan(coll_handle, sendbuf, sendsize, recvbuf, recvsize, op, type,  \
			       user_context, flags)                                          \
	dat_extension_op((DAT_IB_COLLECTIVE_HANDLE)(coll_handle), DAT_IB_COLLECTIVE_SCAN_OP, \
			 (DAT_PVOID)(sendbuf), (DAT_COUNT)(sendsize), (DAT_PVOID)(recvbuf),  \
			 (DAT_COUNT)(recvsize), (DAT_IB_COLLECTIVE_REDUCE_DATA_OP)(op),      \
			 (DAT_IB_COLLECTIVE_DATA_TYPE)(type), (DAT_CONTEXT)(user_context),   \
			 (DAT_COMPLETION_FLAGS)(flags))

#define dat_ib_collective_broadcast(coll_handle, buf, size, root, user_context, flags)            \
	dat_extension_op((DAT_IB_COLLECTIVE_HANDLE)(coll_handle), DAT_IB_COLLECTIVE_BROADCAST_OP, \
			 (DAT_PVOID)(buf), (DAT_COUNT)(size), (DAT_IB_COLLECTIVE_RANK)(root),     \
			 (DAT_CONTEXT)(user_context), (DAT_COMPLETION_FLAGS)(flags))

#define dat_ib_collective_barrier(coll_handle, user_context, flags)                             \
	dat_extension_op((DAT_IB_COLLECTIVE_HANDLE)(coll_handle), DAT_IB_COLLECTIVE_BARRIER_OP, \
			 (DAT_CONTEXT)(user_context), (DAT_COMPLETION_FLAGS)(flags))

/* ---- Names of codes ---- */

/*
 * The name of the type of a DAT_RETURN, the extensions' own included.  As dat_strerror() for all
 * that is not an extension's.
 */
static __inline__ DAT_RETURN dat_strerror_extension(DAT_IB_RETURN value, const char **message)
{
	switch ((DAT_UINT32)value & ~(DAT_CLASS_ERROR | DAT_CLASS_WARNING)) {
	case DAT_IB_ERR: *message = "DAT_IB_ERR"; return DAT_SUCCESS;
	case DAT_IB_COLLECTIVE_ERR: *message = "DAT_IB_COLLECTIVE_ERR"; return DAT_SUCCESS;
	default: return dat_strerror((DAT_RETURN)value, message, NULL);
	}
}

/* The name of the status of an extension event.  ARG1: there is no such status. */
static __inline__ DAT_RETURN dat_strerror_ext_status(DAT_IB_STATUS value, const char **message)
{
	switch (value) {
	case DAT_OP_SUCCESS: *message = "DAT_OP_SUCCESS"; return DAT_SUCCESS;
	case DAT_IB_OP_ERR: *message = "DAT_IB_OP_ERR"; return DAT_SUCCESS;
	case DAT_IB_COLL_COMP_ERR: *message = "DAT_IB_COLL_COMP_ERR"; return DAT_SUCCESS;
	}
	*message = "unknown status";
	return DAT_CLASS_ERROR | DAT_INVALID_PARAMETER | DAT_INVALID_ARG1;
}

#endif /* _DAT_IB_EXTENSIONS_H_ */
