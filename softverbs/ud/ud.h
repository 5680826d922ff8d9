/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/*
 * Room `ud`: datagrams, and what is different for unreliable connections (unreliable.c).
 *
 * The sender writes a datagram for another process into a ring of its own (ud_ring_out.c), which that process only reads
 * (ud_ring_in.c). The reader matches it with a posted receive, in a poll or in its engine. Within a process the sender matches it;
 * from another host it comes over a link, to the engine. One that finds no receive is lost; no sender blocks another.
 * Locks: that of the rings that come in, for matching; an outbox has one, for its ring.
 */
#ifndef SV_UD_UD_H
#define SV_UD_UD_H

#include "softverbs/link/ip.h"
#include "softverbs/object/qp.h"

#define GRH_SIZE 40u

struct sv_ah {
	struct ibv_ah ibv;
	struct ibv_ah_attr attr;
	union ibv_gid source; /* the address that sgid_index named at creation */
	/* Whether the destination can be an address of this host, or one of the folder of names. */
	bool is_here;
	bool is_far; /* it is the address of another host: */
	struct sv_ip host;
};

struct ud_done { /* a completed receive, kept until it is polled */
	uint64_t wr_id;
	uint32_t byte_len, imm, source;
	uint8_t status; /* enum ibv_wc_status */
	uint8_t l3;	/* enum grh_l3 */
	bool has_imm;
};

struct sv_ud {
	_Atomic(uint32_t) qkey;
	/*
	 * Receives completed; written under the lock of struct ud_ring. `done` from rx.head up to
	 * here waits to be polled.
	 */
	_Atomic(uint32_t) taken;
	struct ud_done *done;
	uint32_t mask;	      /* of done; with an SRQ, which may be resized, for the largest */
	struct sv_peer *peer; /* of the last datagram, held; SQ lock */
	/* Process number + 1 to which a link is being set up; written under the SQ lock. */
	_Atomic(uint32_t) wants;
	/* The process of another host of the last datagram, held, and its address; SQ lock. */
	struct sv_peer *far;
	struct sv_ip far_host;
	/* Request `far_exec` was handed to its link, and waits until `far_until` for that to send it; 0: none waits. */
	uint64_t far_mark, far_until;
	uint32_t far_exec;
	bool far_stuck;	     /* one has waited in vain, and the link has not caught up since */
	_Atomic(bool) leads; /* polls of the CQs let the engine run */
	uint16_t lid;	     /* of the port, and so of each sender */
};

static inline struct sv_ah *ah_of(struct ibv_ah *ibv)
{
	return container_of(sv_ah, ibv, ibv);
}

/* unreliable.c */
extern const struct sv_service_ops sv_uc_ops, sv_ud_ops;

/* ud.c */
int sv_ud_open(struct sv_qp *qp);     /* after the receive queue is open; returns 0 or ENOMEM */
void sv_ud_close(struct sv_qp *qp);   /* accepts a QP without this part */
void sv_ud_receive(struct sv_qp *qp); /* state RTR: delivery to the QP begins */
void sv_ud_clear(struct sv_qp *qp);   /* ends delivery, drops what was received */

/* ud_send.c */
/* Whether the work request has a valid destination. */
bool sv_ud_is_addressed(const struct sv_qp *qp, const struct ibv_send_wr *wr);
int sv_ud_send_locked(struct sv_qp *qp, const struct ibv_send_wr *wr, uint32_t length);
bool sv_ud_waits_for(const struct sv_qp *qp, uint16_t slot);
void sv_ud_peer_gone(struct sv_qp *qp, const struct sv_peer *peer);

/* ud_recv.c */
/* Stores up to `count` completions in wc; returns their number. The receive CQ's lock is held. */
int sv_ud_poll_locked(struct sv_qp *qp, int count, struct ibv_wc *wc);
bool sv_ud_arrived(const struct sv_qp *qp, uint32_t n);
/*
 * Delivers a datagram to a QP of this process, into the next posted receive. Returns the QP, or
 * drops the datagram: NULL. The lock of struct ud_ring is held. `notify`: also send the event of
 * the CQ, since the sender does not.
 */
struct sv_qp *sv_ud_deliver_locked(const struct ud_ring_record *head, const struct iovec *iov,
				   unsigned count, bool notify, bool solicited);

/* ud_ring_out.c */
/* Sends a datagram to another process; drops it if the ring stays full. */
void sv_ud_ring_post(struct sv_peer *peer, const struct ud_ring_record *head,
		     const struct iovec *iov, unsigned count, bool solicited);

/* ud_ring_in.c */
bool sv_ud_ring_is_filled(void); /* datagrams may have come that were not read */
/* Reads the rings until they are empty or the QP has `want` completions. */
void sv_ud_ring_read(const struct sv_qp *qp, uint32_t want);
void sv_ud_ring_peer_ready(struct sv_peer *peer);
/* Reads what the peer had written before it ended. */
void sv_ud_ring_peer_gone(struct sv_peer *peer);
void sv_ud_ring_peer_free(struct sv_peer *peer);
void sv_ud_ring_attend(void); /* engine: reads all rings if a writer requested it */

/* grh.c */
/*
 * The kind of header before a datagram, in the numbers of mlx5, which reports them in the low
 * bits of wc.sl: RoCE has no service level there. UCX uses them to find the destination address;
 * with 0, as other devices report, it expects a GRH.
 */
enum grh_l3 { GRH_L3_IPV6 = 1, GRH_L3_IPV4 = 2 };
enum grh_l3 sv_grh_write(uint8_t grh[GRH_SIZE], const struct ud_ring_record *head);

#endif
