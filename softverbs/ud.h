/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/*
 * Datagrams. Whoever sends one to another process writes it into a ring of its own, which that process
 * only reads; it is matched with a posted receive by the reader, in a poll or in its engine. Within a
 * process the sender does that itself.
 */
#ifndef SV_UD_H
#define SV_UD_H

#include "softverbs/qp.h"

#define GRH_SIZE 40u

struct sv_ah {
	struct ibv_ah ibv;
	struct ibv_ah_attr attr;
	union ibv_gid source; /* what sgid_index stood for */
	/* the destination may be an address of this host, or of the folder of names */
	bool is_here;
};

struct ud_done { /* a completed receive, until polled */
	uint64_t wr_id;
	uint32_t byte_len, imm, source;
	uint8_t status; /* enum ibv_wc_status */
	bool has_imm;
};

struct sv_ud {
	_Atomic(uint32_t) qkey;
	/* receives completed, the mail lock; `done` from rx.head up to here waits to be polled */
	_Atomic(uint32_t) taken;
	struct ud_done *done;
	uint32_t mask;	      /* of done; of an SRQ, which may grow, for the longest */
	struct sv_peer *peer; /* of the last datagram, with a reference; SQ lock */
	/* slot + 1 that a link is being made to; written under SQ lock */
	_Atomic(uint32_t) wants;
};

static inline struct sv_ah *ah_of(struct ibv_ah *ibv)
{
	return container(sv_ah, ibv, ibv);
}

/* ud.c */
int ud_open(struct sv_qp *qp);	   /* the receive queue is open; 0 or ENOMEM */
void ud_close(struct sv_qp *qp);   /* accepts one without */
void ud_receive(struct sv_qp *qp); /* state RTR: datagrams find it from now on */
void ud_clear(struct sv_qp *qp);   /* nobody finds it, everything received is forgotten */

/* ud_send.c */
/* The work request says where to. */
bool ud_is_addressed(const struct sv_qp *qp, const struct ibv_send_wr *wr);
int ud_send_locked(struct sv_qp *qp, const struct ibv_send_wr *wr, uint32_t length);
bool ud_waits_for(const struct sv_qp *qp, uint16_t slot);
void ud_peer_gone(struct sv_qp *qp, const struct sv_peer *peer);

/* ud_recv.c */
/* Completions into wc; the receive CQ's lock held. */
int ud_poll_locked(struct sv_qp *qp, int count, struct ibv_wc *wc);
bool ud_arrived(const struct sv_qp *qp, uint32_t n);
/*
 * A datagram for a QP of this process, mail lock held: into the receive posted next, or lost. `tell`:
 * its CQ has the event, for the sender does not care for that.
 */
void ud_deliver_locked(const struct mail_record *head, const struct iovec *iov, unsigned count,
		       bool tell, bool solicited);

/* mail_out.c */
/* A datagram for another process; lost when its ring stays full. */
void mail_post(struct sv_peer *peer, const struct mail_record *head, const struct iovec *iov,
	       unsigned count, bool solicited);

/* mail_in.c */
bool mail_is_there(void); /* something may have come that nobody has read */
/* Reads what has come until the QP has `want` completions. */
void mail_read(const struct sv_qp *qp, uint32_t want);
void mail_peer_ready(struct sv_peer *peer);
void mail_peer_gone(struct sv_peer *peer); /* what it wrote before still counts */
void mail_peer_free(struct sv_peer *peer);
void mail_attend(void); /* engine: reads everything if somebody asked for that */

/* grh.c */
void grh_write(uint8_t grh[GRH_SIZE], const struct mail_record *head);

#endif
