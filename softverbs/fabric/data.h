/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/*
 * Requests of reliable QPs between hosts.
 *
 * The initiator sends its requests in order, each in one frame or several, and keeps at most FAR_WINDOW of them
 * unanswered. The responder executes them one after the other by a proxy, the initiator of object/path.h, and answers: a
 * success without data is that of all requests up to its number, and may go with a request of the other direction; any other
 * answer is that of one. A request that comes before its QP is ready is answered FAR_NOT_READY; the responder then drops what follows it,
 * and the initiator sends again from that number on.
 */
#ifndef SV_FABRIC_DATA_H
#define SV_FABRIC_DATA_H

#include "softverbs/fabric/peers.h"
#include "softverbs/object/path.h"

#define FAR_WINDOW   64u	  /* requests of a QP that are not answered */
#define FAR_BYTES    (1u << 20)	  /* or of so many bytes, if there is more than one */
#define FAR_FRAGMENT (64u << 10)  /* bytes of payload in a frame */
#define FAR_BUFFERS  (2ull << 30) /* bytes of a process for requests of others */

enum far_flag {
	FAR_SOLICITED = 1,
	FAR_ANSWERS = 2, /* it is an answer, too: a success, to what `answer` says */
	FAR_FLAGS = 3,
};

struct far_request {	       /* WIRE_REQUEST; payload of sends, writes follows */
	uint32_t dest, source; /* QPNs */
	uint32_t connection;   /* of the initiator's QP: a random number, the same from RTR on */
	uint32_t number;
	uint8_t opcode; /* enum ibv_wr_opcode */
	uint8_t flags;	/* enum far_flag */
	uint8_t rnr_retry, retry, timeout;
	uint32_t imm; /* bytes as the consumer gave them; or a key */
	uint32_t rkey;
	uint32_t length, offset; /* of the whole payload; of this frame's part */
	uint64_t addr, args[2];
	struct {
		uint32_t connection, number;
	} answer; /* of the other direction */
};
#define FAR_REQUEST_SIZE 72u

#define FAR_NOT_READY 0xffu

struct far_done { /* WIRE_DONE; payload of reads and atomic operations follows */
	uint32_t dest, source;
	uint32_t connection, number;
	uint8_t status; /* enum ibv_wc_status, or FAR_NOT_READY */
	uint32_t length, offset;
};
#define FAR_DONE_SIZE 32u

void sv_far_request_write(uint8_t bytes[static FAR_REQUEST_SIZE],
			  const struct far_request *request);
/* False if it is malformed: an opcode that is none of a reliable QP's, parts beyond the whole. `size`: with the
 * payload. */
bool sv_far_request_read(const uint8_t *bytes, size_t size, struct far_request *request);
void sv_far_done_write(uint8_t bytes[static FAR_DONE_SIZE], const struct far_done *done);
bool sv_far_done_read(const uint8_t *bytes, size_t size, struct far_done *done);

static inline bool far_brings_data(unsigned opcode)
{
	return opcode == IBV_WR_RDMA_READ || opcode == IBV_WR_ATOMIC_CMP_AND_SWP ||
	       opcode == IBV_WR_ATOMIC_FETCH_AND_ADD;
}

struct far_work; /* serve.c: a request of the peer */

struct sv_far {
	struct sv_path path;
	struct sv_qp *qp;
	struct sv_qp *proxy;
	struct sv_ip host;
	uint32_t qpn; /* of the peer */
	/* inside the SQ lock */
	struct sv_peer *peer; /* held; NULL until it is linked */
	bool searching, failed, gone;
	uint32_t connection;
	uint32_t sent;	     /* of the SQ: the next request to send */
	uint32_t wire, done; /* numbers of the next request to send, and to be answered */
	uint64_t again_at;   /* FAR_NOT_READY: when to send again; 0: now */
	uint64_t give_up_at; /* and when to stop that */
	/*
	 * A request of the peer is executed: own requests wait for its answer, as on a wire, where the
	 * acknowledgement leaves before anything that the receiver sends in return. Programs rely on it that
	 * wait for both completions at one channel. Written inside the data lock, too.
	 */
	bool executing;
	bool held_back; /* own requests wait for that */
	struct {
		unsigned count; /* requests that have been executed and not been answered */
		bool recent;	/* the last one since threads that poll were last here */
		uint32_t connection, number;
	} due;
	/* inside the data lock */
	uint32_t their_connection, expected;
	unsigned pending;
	bool due_listed; /* it is if due.count is not 0 */
	LIST_ENTRY(sv_far) due_entry;
	struct far_work *coming;       /* the request whose frames are coming in */
	STAILQ_HEAD(, far_work) works; /* posted to the proxy */
};

/* NULL: the QP's peer is on this host. */
static inline struct sv_far *far_of(const struct sv_qp *qp)
{
	return (struct sv_far *)qp->path;
}

int sv_far_push_locked(struct sv_qp *qp); /* as in struct sv_path_ops */

/* Guards the proxies, and what is said so above. Acquired after a QP's modify, before the short locks. */
void sv_far_lock(void);
void sv_far_unlock(void);
void sv_far_lock_renew(void); /* in a forked child */
void sv_far_fork_child(void);

/* Empty polls of the CQ let the engine run, one call for each that turned it on. */
void sv_far_polls_lead(struct sv_cq *cq, bool on);

/* What takes a request of that peer's QP; its link may be known only now. With the data lock. NULL: nothing. */
struct sv_far *sv_far_find_locked(struct sv_qp *qp, struct fabric_peer *from,
				  const struct far_request *request);

/* Frames of a peer, one at a time. False if the peer violates the protocol. */
bool sv_far_request(struct fabric_peer *from, const uint8_t *bytes, size_t size);
bool sv_far_answer(struct fabric_peer *from, const uint8_t *bytes, size_t size);
bool sv_far_answer_in(struct fabric_peer *from, const struct far_request *request);
/*
 * After those that have arrived: sends the answers that waited for that. With `polled` those stay that have not waited for one
 * more poll: the program may be about to post a request that they go with.
 */
void sv_far_dues_send(bool polled);
bool sv_far_any_due(void);
void sv_far_dues_stop(void); /* no QP is left */
/* Engine: the link has ended. */
void sv_far_peer_gone(struct sv_peer *peer);

/* serve.c, with the data lock: the QP executes requests of its peer. 0, or an errno with a log line. */
int sv_far_serve_open_locked(struct sv_far *far, struct sv_qp *qp);
void sv_far_serve_close_locked(struct sv_far *far);

/* peers.c */
/* Sends a request or an answer, by the endpoint or over the link. Takes ownership. 0 or errno. */
int sv_fabric_out_send(struct sv_peer *peer, struct fabric_out *out);
/* Whether so much waits for the link that messages which may be lost are. */
bool sv_fabric_out_is_full(struct sv_peer *peer);
/*
 * Whether all that was handed over has left the process, or never will. *mark: 0, or of an earlier call: all that had
 * been handed over then. If not, the doorbell is called when there is progress.
 */
bool sv_fabric_out_has_left(struct sv_peer *peer, uint64_t *mark);
/* The linked process of a slot of a host, held; or NULL. */
struct sv_peer *sv_fabric_peer_at(const struct sv_ip *host, uint16_t slot);
int sv_fabric_find_slot(const struct sv_ip *host, uint16_t slot, uint32_t cookie,
			sv_fabric_found *found);

#endif
