/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* Sends datagrams to other hosts, and delivers theirs. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include "softverbs/fabric/data.h"
#include "softverbs/fabric/ud.h"
#include "softverbs/fabric/transport.h"
#include "softverbs/rc/rc.h"
#include "util/clock.h"
#include "util/log.h"

#define LEAVE_TIME (20 * NSEC_PER_MSEC)

enum wire_flag {
	WIRE_IMM = 1,
	WIRE_SOLICITED = 2,
	WIRE_FLAGS = 3,
};

/* ---- losses ---- */

static _Atomic(uint64_t) lost[FAR_LOSSES];

void sv_ud_lose(enum far_loss why)
{
	atomic_fetch_add_explicit(&lost[why], 1, memory_order_relaxed);
}

uint64_t sv_ud_lost(enum far_loss why)
{
	return atomic_load_explicit(&lost[why], memory_order_relaxed);
}

void sv_ud_losses_log(void)
{
	uint64_t sent = sv_ud_lost(FAR_NOT_SENT), received = sv_ud_lost(FAR_NOT_RECEIVED);

	if (sent || received)
		log_at(LOG_NOTE,
		       "softverbs: datagrams lost: %" PRIu64 " to other hosts, %" PRIu64
		       " from them",
		       sent, received);
}

void sv_ud_losses_forget(void)
{
	for (unsigned why = 0; why < FAR_LOSSES; why++)
		atomic_store_explicit(&lost[why], 0, memory_order_relaxed);
}

/* ---- frames ---- */

void sv_far_datagram_write(uint8_t bytes[static FAR_DATAGRAM_SIZE],
			   const struct ud_ring_record *head, bool solicited)
{
	uint8_t *at = wire_put(bytes, head->dest, 4);
	unsigned flags =
		(head->flags & DATAGRAM_IMM ? WIRE_IMM : 0) | (solicited ? WIRE_SOLICITED : 0);

	at = wire_put(at, head->source, 4);
	at = wire_put(at, head->qkey, 4);
	memcpy(at, &head->imm, 4);
	at = wire_put(at + 4, flags, 4);
	memcpy(at, head->dgid, sizeof(head->dgid));
}

bool sv_far_datagram_read(const uint8_t *bytes, size_t size, struct ud_ring_record *head,
			  bool *solicited)
{
	const uint8_t *at = bytes;
	uint64_t flags;

	if (size < FAR_DATAGRAM_SIZE || size - FAR_DATAGRAM_SIZE > DATAGRAM_MAX)
		return false;
	*head = (struct ud_ring_record){ .kind = UD_RING_DATAGRAM,
					 .length = (uint32_t)(size - FAR_DATAGRAM_SIZE) };
	head->dest = (uint32_t)wire_get(&at, 4);
	head->source = (uint32_t)wire_get(&at, 4);
	head->qkey = (uint32_t)wire_get(&at, 4);
	memcpy(&head->imm, at, 4);
	at += 4;
	flags = wire_get(&at, 4);
	head->flags = flags & WIRE_IMM ? DATAGRAM_IMM : 0;
	*solicited = flags & WIRE_SOLICITED;
	memcpy(head->dgid, at, sizeof(head->dgid));
	return !(flags & ~(uint64_t)WIRE_FLAGS);
}

/* ---- a QP ---- */

/* From its first datagram to or from another host on. The SQ lock, or that of struct ud_ring, is held. */
static void polls_lead(struct sv_qp *qp)
{
	if (!atomic_load_explicit(&qp->ud->leads, memory_order_relaxed) &&
	    !atomic_exchange(&qp->ud->leads, true)) {
		sv_far_polls_lead(qp->send_cq, true);
		sv_far_polls_lead(qp->recv_cq, true);
	}
}

void sv_ud_far_close(struct sv_qp *qp)
{
	struct sv_peer *peer;

	lock_acquire(&qp->sq.lock);
	peer = qp->ud->far;
	qp->ud->far = NULL;
	qp->ud->far_mark = 0;
	qp->ud->far_stuck = false;
	if (atomic_exchange(&qp->ud->leads, false)) {
		sv_far_polls_lead(qp->send_cq, false);
		sv_far_polls_lead(qp->recv_cq, false);
	}
	lock_release(&qp->sq.lock);
	if (peer)
		sv_peer_put(peer);
}

void sv_ud_far_peer_gone(struct sv_qp *qp, const struct sv_peer *peer)
{
	struct sv_peer *kept = NULL;

	lock_acquire(&qp->sq.lock);
	if (qp->ud->far == peer) {
		kept = qp->ud->far;
		qp->ud->far = NULL;
		sv_sq_run_locked(qp, 0);
		sv_sq_notify_locked(qp);
	}
	lock_release(&qp->sq.lock);
	if (kept)
		sv_peer_put(kept);
}

/* ---- send ---- */

static struct fabric_out *frame_new(const struct ud_ring_record *head, const struct iovec *iov,
				    unsigned count, bool solicited)
{
	struct fabric_out *out = sv_fabric_out_new(WIRE_DATAGRAM, FAR_DATAGRAM_SIZE + head->length);
	uint8_t *at;

	if (!out)
		return NULL;
	sv_far_datagram_write(fabric_out_payload(out), head, solicited);
	at = fabric_out_payload(out) + FAR_DATAGRAM_SIZE;
	for (unsigned i = 0; i < count; i++) {
		if (iov[i].iov_len)
			memcpy(at, iov[i].iov_base, iov[i].iov_len);
		at += iov[i].iov_len;
	}
	return out;
}

/* Whether the process of the last datagram is the one of this. */
static bool is_linked_locked(const struct sv_ud *ud, const struct sv_ip *host, uint16_t slot)
{
	return ud->far && ud->far->slot == slot && sv_ip_same(&ud->far_host, host) &&
	       !atomic_load_explicit(&ud->far->dead, memory_order_relaxed);
}

/* False: the datagram waits for a link, or is lost; `out` is not the caller's any more. */
static bool link_find_locked(struct sv_ud *ud, const struct sv_ip *host, uint16_t slot,
			     struct fabric_out *out)
{
	struct sv_peer *last = ud->far;

	if (is_linked_locked(ud, host, slot))
		return true;
	ud->far = sv_ud_link_for(host, slot, out);
	ud->far_host = *host;
	if (last)
		sv_peer_put(last);
	return ud->far;
}

/*
 * The request completes when the datagram has left the process, which may end after that. As within a host, a sender
 * that is too fast waits a little, and does not wait a second time for a process that has stopped.
 */
static int leave_locked(struct sv_qp *qp)
{
	struct sv_ud *ud = qp->ud;
	bool left = !ud->far || sv_fabric_out_has_left(ud->far, &ud->far_mark), waits;

	if (left)
		ud->far_stuck = false;
	else if (ud->far_until <= clock_now())
		ud->far_stuck = true;
	waits = !left && !ud->far_stuck;
	if (waits)
		sv_sq_retry_at_locked(qp, ud->far_until);
	else
		ud->far_mark = 0;
	return waits ? EXEC_WAIT(SQ_SENT) : IBV_WC_SUCCESS;
}

static int hand_over_locked(struct sv_qp *qp, struct fabric_out *out)
{
	struct sv_ud *ud = qp->ud;

	if (sv_fabric_out_is_full(ud->far)) {
		free(out);
		sv_ud_lose(FAR_NOT_SENT);
		return IBV_WC_SUCCESS;
	}
	if (sv_fabric_out_send(ud->far, out)) {
		sv_ud_lose(FAR_NOT_SENT);
		return IBV_WC_SUCCESS;
	}
	ud->far_mark = 0;
	ud->far_exec = qp->sq.exec;
	ud->far_until = ud->far_stuck ? 0 : clock_now() + LEAVE_TIME;
	return leave_locked(qp);
}

int sv_ud_far_send_locked(struct sv_qp *qp, const struct sv_ip *host,
			  const struct ud_ring_record *head, const struct iovec *iov,
			  unsigned count, bool solicited)
{
	struct sv_ud *ud = qp->ud;
	struct fabric_out *out;

	if (ud->far_mark && ud->far_exec == qp->sq.exec)
		return leave_locked(qp);
	out = frame_new(head, iov, count, solicited);
	polls_lead(qp);
	if (!out)
		sv_ud_lose(FAR_NOT_SENT);
	else if (link_find_locked(ud, host, (uint16_t)qp_peer_id_of(head->dest), out))
		return hand_over_locked(qp, out);
	return IBV_WC_SUCCESS;
}

/* ---- receive ---- */

/* The address of the sender, for a reply: of the kind that it used for this host, if it is known by one. */
static union ibv_gid source_of(const struct fabric_peer *from, const union ibv_gid *dgid)
{
	bool four = IN6_IS_ADDR_V4MAPPED((const struct in6_addr *)(const void *)dgid);
	const struct sv_ip *source = &from->address[0];
	union ibv_gid gid;

	sv_fabric_lock();
	for (unsigned i = from->address_count; i--;)
		if ((from->address[i].families == SV_IPV4) == four)
			source = &from->address[i];
	gid = sv_ip_gid(source);
	sv_fabric_unlock();
	return gid;
}

static bool datagram_deliver(const struct ud_ring_record *head, const uint8_t *data, bool solicited)
{
	struct iovec iov = { (void *)(uintptr_t)data, head->length };
	struct area *area = sv_area_own();
	struct sv_qp *qp;

	lock_acquire(&area->ud_ring.lock);
	pthread_rwlock_rdlock(&area->serve_lock); /* see sv_region_quiesce */
	qp = sv_ud_deliver_locked(head, &iov, 1, true, solicited);
	if (qp)
		polls_lead(qp);
	pthread_rwlock_unlock(&area->serve_lock);
	lock_release(&area->ud_ring.lock);
	return qp;
}

bool sv_far_datagram(struct fabric_peer *from, const uint8_t *bytes, size_t size)
{
	struct ud_ring_record head;
	union ibv_gid dgid, sgid;
	bool solicited;

	if (!sv_far_datagram_read(bytes, size, &head, &solicited) ||
	    qp_peer_id_of(head.dest) != sv_runtime_peer_id() ||
	    qp_peer_id_of(head.source) != from->peer.slot)
		return false;
	memcpy(&dgid, head.dgid, sizeof(dgid));
	sgid = source_of(from, &dgid);
	memcpy(head.sgid, &sgid, sizeof(head.sgid));
	/* without such an address, no reply could be sent */
	if (sv_gid_index(&dgid) < 0 ||
	    !datagram_deliver(&head, bytes + FAR_DATAGRAM_SIZE, solicited))
		sv_ud_lose(FAR_NOT_RECEIVED);
	return true;
}
