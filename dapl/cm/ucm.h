/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* What the files of the UD CM share: the QP of a channel, and connections, which outlive their identifiers. */
#ifndef CM_UCM_H
#define CM_UCM_H

#include "dapl/cm/id.h"

#define UCM_GRH	      40u
#define UCM_RECV      (UCM_GRH + CM_MESSAGE_MAX) /* old peers send messages of this size */
#define UCM_SEND      (CM_HEADER + CM_DATA)
#define UCM_EXCESS    4096u   /* the largest MTU: no datagram is longer */
#define UCM_UNICAST   0xc000u /* first LID of a multicast group */
#define UCM_PORTS     65536u
#define UCM_CONNS_MAX (1u << 20)

enum ucm_state {
	UCM_REQUESTING, /* REQ sent and repeated */
	UCM_ANSWERED,	/* REP received; the caller is to send the RTU */
	UCM_REQUESTED,	/* REQ received; the caller is to answer */
	UCM_ACCEPTED,	/* REP sent and repeated */
	UCM_CONNECTED,
	UCM_PARTING, /* DREQ sent and repeated */
	UCM_TIMEWAIT, /* ended; a repeated message of the peer is answered with the last message sent */
};

/* A connection as the peers know it. It keeps its number and its port until none of its messages can be in
 * flight. */
struct ucm_conn {
	struct cm_channel *channel;
	struct cm_id *id; /* NULL after the identifier was destroyed */
	LIST_ENTRY(ucm_conn) entry;
	enum ucm_state state;
	uint16_t lid;		/* the peer's */
	struct cm_message head; /* header of the messages that this side sends */
	bool holds_port;	/* active side: head.sport belongs to this connection alone */
	struct cm_timer timer;
	unsigned repeated; /* number of repetitions */
	/* the last message sent */
	unsigned char frame[CM_MESSAGE_MAX]; /* at most UCM_SEND bytes are used */
	size_t frame_size;
};

struct ucm {
	struct ibv_pd *pd;
	struct ibv_comp_channel *completions;
	struct ibv_cq *recv_cq, *send_cq;
	struct ibv_qp *qp;
	struct ibv_mr *mr;
	/* receive buffers, send buffers, and one buffer for what follows the longest message in a datagram */
	unsigned char *memory;
	unsigned depth; /* number of each of the former two */
	unsigned next_send, sending;
	struct cm_source arrivals;
	struct ibv_ah **ahs; /* indexed by LID */
	LIST_HEAD(, ucm_conn) conns;
	struct ucm_conn **by_id; /* indexed by s_id - 1 */
	uint32_t by_id_size, next_id;
	struct ucm_conn **by_port; /* connections of the active side */
	uint16_t next_port;
};

struct ucm_id {
	struct cm_id cm; /* first */
	struct ucm_conn *conn;
};

static inline struct ucm_id *ucm_id_of(struct cm_id *id)
{
	return (struct ucm_id *)id;
}

/* ucm_qp.c */
int ucm_open(struct cm_channel *channel);
void ucm_close(struct cm_channel *channel);
/* Sends a datagram to the CM behind this LID. The datagram is lost if the send queue is full, as it can be
 * lost on the wire. */
void ucm_send(struct cm_channel *channel, uint16_t lid, uint32_t qpn, const void *bytes,
	      size_t size);

/* ucm_conn.c */
struct ucm_conn *ucm_conn_new(struct cm_channel *channel, struct cm_id *id, bool wants_port);
void ucm_conn_free(struct ucm_conn *conn); /* detaches its identifier */
struct ucm_conn *ucm_conn_find(struct cm_channel *channel, const struct cm_message *message);
struct ucm_conn *ucm_conn_of_request(struct cm_channel *channel, const struct cm_message *request);
void ucm_say(struct ucm_conn *conn, enum cm_op op, const void *data, uint16_t size);
void ucm_repeat(struct ucm_conn *conn);
/* Enters `state` and repeats the last message until the peer answers; at the limit `timer.call` ends the
 * connection. */
void ucm_expect(struct ucm_conn *conn, enum ucm_state state);
/* enters `state`; ends the repetition */
void ucm_settle(struct ucm_conn *conn, enum ucm_state state);
void ucm_time_wait(struct ucm_conn *conn);

/* ucm_receive.c */
void ucm_receive(struct cm_channel *channel, const unsigned char *bytes, size_t size);
/* ucm.c: the endings */
void ucm_disconnected(struct ucm_conn *conn);
void ucm_given_up(struct ucm_conn *conn);

#endif
