/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* A QP whose peer is on another host: from RTR to RESET, and the way to its peer. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include "softverbs/fabric/data.h"
#include "softverbs/fabric/transport.h"
#include "softverbs/fabric/ud.h"
#include "softverbs/rc/rc.h"
#include "util/clock.h"
#include "util/log.h"

#define SEARCH_PAUSE (100 * NSEC_PER_MSEC)

/* ---- open and close ---- */

bool sv_far_host(const union ibv_gid *gid, struct sv_ip *host)
{
	struct sockaddr_storage address;

	if (!sv_fabric_is_on() || sv_gid_index(gid) >= 0)
		return false;
	memset(host, 0, sizeof(*host));
	memcpy(&host->addr, gid, sizeof(host->addr));
	host->families = IN6_IS_ADDR_V4MAPPED(&host->addr) ? SV_IPV4 : SV_IPV6;
	if (IN6_IS_ADDR_UNSPECIFIED(&host->addr))
		return false;
	sv_ip_sockaddr(host, 0, &address);
	return !sv_ip_is_multicast((struct sockaddr *)&address) &&
	       sv_ip_is_local((struct sockaddr *)&address) == EADDRNOTAVAIL;
}

/* Whether the QP's destination is an address of another host. */
static bool is_far(const struct sv_qp *qp, struct sv_ip *host)
{
	const struct ibv_ah_attr *ah = &qp->attr.ah_attr;

	return qp->sq.service != SERVICE_UD && ah->is_global && sv_far_host(&ah->grh.dgid, host);
}

/* `served` leads polls there. */
void sv_far_polls_lead(struct sv_cq *cq, bool on)
{
	uint32_t change = on ? 1 : UINT32_MAX;

	atomic_fetch_add_explicit(&cq->far, change, memory_order_relaxed);
	atomic_fetch_add_explicit(&cq->served, change, memory_order_relaxed);
}

static const struct sv_path_ops far_ops;

int sv_far_open(struct sv_qp *qp)
{
	struct sv_ip host;
	struct sv_far *far;
	int error;

	if (!is_far(qp, &host))
		return 0;
	far = calloc(1, sizeof(*far));
	if (!far)
		return ENOMEM;
	far->path.ops = &far_ops;
	far->qp = qp;
	far->host = host;
	far->qpn = qp->attr.dest_qp_num;
	STAILQ_INIT(&far->works);
	if (getrandom(&far->connection, sizeof(far->connection), 0) != sizeof(far->connection)) {
		free(far);
		return EIO;
	}
	far->peer = sv_fabric_peer_at(&host, (uint16_t)qp_peer_id_of(far->qpn));
	sv_far_lock();
	error = sv_far_serve_open_locked(far, qp);
	if (!error) {
		/* initiators of this process are woken for the proxy */
		atomic_store_explicit(&qp->peer, sv_peer_self(), memory_order_release);
		lock_acquire(&qp->sq.lock);
		qp->path = &far->path;
		lock_release(&qp->sq.lock);
		sv_far_polls_lead(qp->send_cq, true);
		sv_far_polls_lead(qp->recv_cq, true);
	}
	sv_far_unlock();
	if (!error)
		return 0;
	if (far->peer)
		sv_peer_put(far->peer);
	free(far);
	return error;
}

static void far_close(struct sv_qp *qp)
{
	struct sv_far *far = far_of(qp);

	sv_far_lock();
	lock_acquire(&qp->sq.lock);
	qp->path = NULL;
	lock_release(&qp->sq.lock);
	sv_far_polls_lead(qp->send_cq, false);
	sv_far_polls_lead(qp->recv_cq, false);
	sv_far_serve_close_locked(far);
	sv_far_unlock();
	if (far->peer)
		sv_peer_put(far->peer);
	free(far);
}

static uint32_t far_initiator(const struct sv_qp *qp)
{
	return far_of(qp)->proxy->ibv.qp_num;
}

/* ---- the link ---- */

/* Whether a link has failed in a way that says nothing of the process it was for. */
static bool is_passing(int error)
{
	return error == ECONNRESET || error == EPIPE || error == EAGAIN || error == ETIMEDOUT;
}

/* The retries of a QP may be many seconds apart. */
static void search_again_soon(struct sv_qp *qp)
{
	lock_acquire(&qp->sq.lock);
	if (qp->sq.wait == SQ_SILENT && qp->sq.deadline > clock_now() + SEARCH_PAUSE)
		sv_sq_retry_at_locked(qp, clock_now() + SEARCH_PAUSE);
	lock_release(&qp->sq.lock);
}

/* The index may be another QP's by now, so the peer is taken from the list. */
static void far_found(uint32_t index, struct sv_peer *peer, int error)
{
	struct sv_qp *qp = sv_qp_pin(index);
	struct sv_far *far;

	if (peer)
		sv_peer_put(peer);
	if (!qp)
		return;
	lock_acquire(&qp->sq.lock);
	far = far_of(qp);
	if (far && far->searching) {
		far->searching = false;
		far->failed = error;
		if (!far->peer)
			far->peer =
				sv_fabric_peer_at(&far->host, (uint16_t)qp_peer_id_of(far->qpn));
	}
	lock_release(&qp->sq.lock);
	if (error)
		log_at(LOG_NOTE, "softverbs: qp 0x%x: no link: %s", qp->ibv.qp_num,
		       strerror(error));
	if (error)
		sv_sq_unreachable(qp);
	else
		sv_sq_run(qp);
	if (is_passing(error))
		search_again_soon(qp);
	sv_qp_unpin(qp);
}

struct sv_far *sv_far_find_locked(struct sv_qp *qp, struct fabric_peer *from,
				  const struct far_request *request)
{
	struct sv_far *far = far_of(qp);

	if (!far || far->qpn != request->source || from->peer.slot != qp_peer_id_of(far->qpn))
		return NULL;
	lock_acquire(&qp->sq.lock);
	if (!far->peer) {
		struct sv_peer *peer = sv_fabric_peer_at(&far->host, from->peer.slot);

		if (peer != &from->peer && peer)
			sv_peer_put(peer);
		else
			far->peer = peer;
	}
	lock_release(&qp->sq.lock);
	return far->peer == &from->peer ? far : NULL;
}

static int far_bind_locked(struct sv_qp *qp)
{
	struct sv_far *far = far_of(qp);
	uint16_t slot = (uint16_t)qp_peer_id_of(far->qpn);

	qp->sq.gone = far->gone;
	if (far->gone)
		return SQ_SILENT;
	if (far->peer)
		return SQ_SENT;
	far->peer = sv_fabric_peer_at(&far->host, slot);
	if (far->peer)
		return SQ_SENT;
	if (!far->searching) {
		int error = sv_fabric_find_slot(&far->host, slot, qp->index, far_found);

		far->searching = !error;
		far->failed |= error;
	}
	return far->failed ? SQ_SILENT : SQ_LINKING;
}

static bool far_is_begun_locked(const struct sv_qp *qp)
{
	return far_of(qp)->wire != far_of(qp)->done;
}

static const struct sv_path_ops far_ops = {
	.close = far_close,
	.initiator = far_initiator,
	.bind_locked = far_bind_locked,
	.is_begun_locked = far_is_begun_locked,
	.push_locked = sv_far_push_locked,
};

static void peer_gone(struct sv_qp *qp, const struct sv_peer *peer)
{
	if (qp->ud) {
		sv_ud_far_peer_gone(qp, peer);
		return;
	}
	lock_acquire(&qp->sq.lock);
	if (far_of(qp) && far_of(qp)->peer == peer) {
		far_of(qp)->gone = true;
		sv_sq_run_locked(qp, 0);
		sv_sq_notify_locked(qp);
	}
	lock_release(&qp->sq.lock);
}

void sv_far_peer_gone(struct sv_peer *peer)
{
	struct sv_qp *qp;

	for (uint32_t index = 0; index < SV_QPS; index++) {
		qp = sv_qp_pin(index);
		if (!qp)
			continue;
		peer_gone(qp, peer);
		sv_qp_unpin(qp);
	}
}
