/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* The responder's side of a QP whose peer is on another host: collects its requests, has a proxy execute them, and
 * answers. */
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include "softverbs/fabric/proxy.h"
#include "softverbs/link/runtime.h"
#include "softverbs/rc/rc.h"
#include "softverbs/rc/request.h"
#include "util/log.h"

#define POLLED	      32
#define LONGEST_DELAY 16u /* requests, a quarter of what an initiator sends without an answer */

struct far_work {
	STAILQ_ENTRY(far_work) entry;
	struct sv_far *far;
	struct far_request request;
	uint32_t have; /* bytes that have come */
	uint8_t data[];
};

/* Of all QPs; the data lock. */
static struct {
	unsigned count; /* posted to proxies */
	uint64_t bytes; /* of these, and of those that are coming in */
} works;

/*
 * An answer that says that a short request was executed, and no more, waits until what has arrived was read: it is that of all
 * requests before it, too. The QPs to which one is due; the data lock.
 */
static LIST_HEAD(, sv_far) dues = LIST_HEAD_INITIALIZER(dues);
static atomic_bool any_due;

void sv_far_fork_child(void)
{
	memset(&works, 0, sizeof(works)); /* the parent's */
	LIST_INIT(&dues);
	atomic_store_explicit(&any_due, false, memory_order_relaxed);
	sv_far_proxies_fork_child();
	sv_far_lock_renew();
}

/* ---- works ---- */

static void work_free_locked(struct far_work *work)
{
	if (!work)
		return;
	works.bytes -= work->request.length;
	free(work);
}

/* ---- answers ---- */

static void answer_post(struct sv_peer *to, struct far_done *done, const uint8_t *data)
{
	struct fabric_out *out;
	uint32_t part;

	do {
		part = done->length - done->offset < FAR_FRAGMENT ? done->length - done->offset
								  : FAR_FRAGMENT;
		out = sv_fabric_out_new(WIRE_DONE, FAR_DONE_SIZE + part);
		if (!out) {
			log_at(LOG_ERROR, "softverbs: an answer is lost: out of memory");
			return;
		}
		sv_far_done_write(fabric_out_payload(out), done);
		if (part)
			memcpy(fabric_out_payload(out) + FAR_DONE_SIZE, data + done->offset, part);
		sv_fabric_out_send(to, out);
		done->offset += part;
	} while (done->offset < done->length);
}

static struct far_done done_to(const struct far_request *request, unsigned status)
{
	return (struct far_done){ .dest = request->source,
				  .source = request->dest,
				  .connection = request->connection,
				  .number = request->number,
				  .status = (uint8_t)status };
}

static void not_ready_post(struct sv_peer *to, const struct far_request *request)
{
	struct far_done done = done_to(request, FAR_NOT_READY);

	answer_post(to, &done, NULL);
}

/* ---- what is due ---- */

static void executing_set(struct sv_far *far, bool on)
{
	struct sv_qp *qp = far->qp;

	if (far->executing == on)
		return; /* written with the data lock alone */
	lock_acquire(&qp->sq.lock);
	far->executing = on;
	if (!on && far->held_back) {
		sv_sq_run_locked(qp, 0);
		sv_sq_notify_locked(qp);
	}
	lock_release(&qp->sq.lock);
}

static void due_send_locked(struct sv_far *far)
{
	if (!far->due.count)
		return;
	far->due.count = 0;
	LIST_REMOVE(far, due_entry);
	answer_post(far->peer, &far->due.done, NULL);
}

static void due_locked(struct sv_far *far, const struct far_request *request)
{
	if (!far->due.count++)
		LIST_INSERT_HEAD(&dues, far, due_entry);
	atomic_store_explicit(&any_due, true, memory_order_relaxed);
	far->due.done = done_to(request, IBV_WC_SUCCESS);
	if (far->due.count == LONGEST_DELAY)
		due_send_locked(far);
}

static void answer_locked(struct sv_far *far, const struct far_request *request,
			  enum ibv_wc_status status, const uint8_t *data)
{
	struct far_done done = done_to(request, status);

	if (status == IBV_WC_SUCCESS && !data && request->length <= SQ_SHORT) {
		due_locked(far, request);
		return;
	}
	due_send_locked(far);
	done.length = data ? request->length : 0;
	answer_post(far->peer, &done, data);
}

static void dues_send_locked(void)
{
	struct sv_far *far;

	while ((far = LIST_FIRST(&dues))) {
		due_send_locked(far);
		executing_set(far, false);
	}
	atomic_store_explicit(&any_due, false, memory_order_relaxed);
}

void sv_far_dues_send(void)
{
	if (!atomic_load_explicit(&any_due, memory_order_relaxed))
		return;
	sv_far_lock();
	dues_send_locked();
	sv_far_unlock();
}

/* ---- completions ---- */

static void work_done_locked(struct far_work *work, enum ibv_wc_status status)
{
	struct sv_far *far = work->far;
	bool data = status == IBV_WC_SUCCESS && far_brings_data(work->request.opcode);

	STAILQ_REMOVE(&far->works, work, far_work, entry);
	far->pending--;
	works.count--;
	answer_locked(far, &work->request, status, data ? work->data : NULL);
	work_free_locked(work);
}

static void completions_poll_locked(void)
{
	struct ibv_wc wc[POLLED];
	int count;

	while ((count = ibv_poll_cq(sv_far_proxies_cq_locked(), POLLED, wc)) > 0)
		for (int i = 0; i < count; i++)
			work_done_locked((struct far_work *)(uintptr_t)wc[i].wr_id, wc[i].status);
}

/* Most works are done when their post returns. The engine is to hear of those that are not. */
static void completions_take_locked(void)
{
	completions_poll_locked();
	if (works.count && sv_far_proxies_arm_locked())
		completions_poll_locked();
}

static void proxies_ready_locked(void)
{
	completions_take_locked();
	dues_send_locked();
}

/* ---- open and close ---- */

int sv_far_serve_open_locked(struct sv_far *far, struct sv_qp *qp)
{
	return sv_far_proxy_open_locked(far, qp, proxies_ready_locked);
}

void sv_far_serve_close_locked(struct sv_far *far)
{
	struct far_work *work;

	due_send_locked(far);
	sv_far_proxy_close_locked(far); /* it uses the memory of the works */
	while ((work = STAILQ_FIRST(&far->works))) {
		STAILQ_REMOVE_HEAD(&far->works, entry);
		works.count--;
		work_free_locked(work);
	}
	work_free_locked(far->coming);
	far->coming = NULL;
}

/* ---- requests ---- */

/* That of the initiator. Another thread may be executing the proxy's requests. */
static void patience_set(struct sv_qp *proxy, const struct far_request *request)
{
	lock_acquire(&proxy->sq.lock);
	proxy->attr.rnr_retry = request->rnr_retry;
	proxy->attr.retry_cnt = request->retry;
	proxy->attr.timeout = request->timeout;
	lock_release(&proxy->sq.lock);
}

static void work_post_locked(struct far_work *work)
{
	const struct far_request *request = &work->request;
	struct sv_far *far = work->far;
	struct ibv_sge sge = { (uintptr_t)work->data, request->length,
			       sv_far_proxies_key_locked() };
	struct ibv_send_wr wr = { .wr_id = (uintptr_t)work,
				  .sg_list = &sge,
				  .num_sge = request->length ? 1 : 0,
				  .opcode = (enum ibv_wr_opcode)request->opcode,
				  .imm_data = request->imm },
			   *bad;

	if (request->flags & FAR_SOLICITED)
		wr.send_flags = IBV_SEND_SOLICITED;
	if (request->opcode == IBV_WR_SEND_WITH_INV)
		wr.invalidate_rkey = be32toh(request->imm);
	if (request->opcode == IBV_WR_ATOMIC_CMP_AND_SWP ||
	    request->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
		wr.wr.atomic.remote_addr = request->addr;
		wr.wr.atomic.rkey = request->rkey;
		wr.wr.atomic.compare_add = request->args[0];
		wr.wr.atomic.swap = request->args[1];
	} else {
		wr.wr.rdma.remote_addr = request->addr;
		wr.wr.rdma.rkey = request->rkey;
	}
	patience_set(far->proxy, request);
	STAILQ_INSERT_TAIL(&far->works, work, entry);
	far->pending++;
	works.count++;
	far->expected++;
	if (ibv_post_send(&far->proxy->ibv, &wr, &bad))
		work_done_locked(work, IBV_WC_REM_OP_ERR);
	completions_take_locked();
}

static struct far_work *work_new_locked(struct sv_far *far, const struct far_request *request)
{
	struct far_work *work = NULL;

	if (works.bytes + request->length <= FAR_BUFFERS)
		work = malloc(sizeof(*work) + request->length);
	if (!work)
		return NULL;
	*work = (struct far_work){ .far = far, .request = *request };
	works.bytes += request->length;
	return work;
}

/* Whether this is the connection whose requests the QP executes; a new one begins with number 0. */
static bool connection_is(struct sv_far *far, const struct far_request *request)
{
	if (request->connection != far->their_connection && !request->number && !request->offset &&
	    !far->pending) {
		due_send_locked(far);
		far->their_connection = request->connection;
		far->expected = 0;
		work_free_locked(far->coming);
		far->coming = NULL;
	}
	return request->connection == far->their_connection;
}

/* False if the peer violates the protocol. */
static bool request_take_locked(struct sv_far *far, const struct far_request *request,
				const uint8_t *data, uint32_t size)
{
	struct far_work *work = far->coming;

	if (request->number != far->expected || (!work && request->offset))
		return true; /* after one that was not taken: it comes again */
	if (far->pending >= FAR_WINDOW)
		return false;
	if (!work) {
		work = work_new_locked(far, request);
		if (!work) {
			due_send_locked(far);
			not_ready_post(far->peer, request);
			return true;
		}
		far->coming = work;
	}
	if (request->offset != work->have || request->length != work->request.length ||
	    request->opcode != work->request.opcode)
		return false;
	memcpy(work->data + work->have, data, size);
	work->have += size;
	if (work->have < request->length && !far_brings_data(request->opcode))
		return true;
	far->coming = NULL;
	work_post_locked(work);
	return true;
}

/* The QP that takes requests of this peer's QP; its link may be known only now. */
static struct sv_far *far_find_locked(struct sv_qp *qp, struct fabric_peer *from,
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

bool sv_far_request(struct fabric_peer *from, const uint8_t *bytes, size_t size)
{
	struct far_request request;
	struct sv_far *far = NULL;
	bool sound = true;
	struct sv_qp *qp;

	if (!sv_far_request_read(bytes, size, &request) ||
	    qp_peer_id_of(request.dest) != sv_runtime_peer_id())
		return false;
	qp = sv_qp_pin(qp_index_of(request.dest));
	sv_far_lock();
	if (qp)
		far = far_find_locked(qp, from, &request);
	if (far && connection_is(far, &request)) {
		executing_set(far, true);
		sound = request_take_locked(far, &request, bytes + FAR_REQUEST_SIZE,
					    (uint32_t)(size - FAR_REQUEST_SIZE));
		if (!far->due.count)
			executing_set(far, false);
	} else if (!request.offset)
		not_ready_post(&from->peer, &request);
	sv_far_unlock();
	if (qp)
		sv_qp_unpin(qp);
	return sound;
}
