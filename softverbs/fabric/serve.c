/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* The responder's side of a QP whose peer is on another host: collects its requests, has a proxy execute them, and
 * answers. */
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include "softverbs/fabric/proxy.h"
#include "softverbs/fabric/works.h"
#include "softverbs/link/runtime.h"
#include "softverbs/rc/rc.h"
#include "softverbs/rc/request.h"
#include "util/clock.h"
#include "util/log.h"

#define POLLED	      32
#define TICK	      (200 * NSEC_PER_USEC)
#define LONGEST_DELAY 16u /* requests, a quarter of what an initiator sends without an answer */

static unsigned posted; /* works of all QPs at proxies; the data lock */

/*
 * An answer that says that a short request was executed, and no more, waits until what has arrived was read: it is that of all
 * requests before it, too. If threads poll, it waits for the next request of its QP, for one more poll, or for the tick of the
 * engine. The QPs to which one is due, and what says that without the data lock.
 */
static LIST_HEAD(, sv_far) dues = LIST_HEAD_INITIALIZER(dues);
static atomic_bool any_due;
static struct {
	struct sv_timer timer;
	bool on;
} tick;

void sv_far_fork_child(void)
{
	posted = 0; /* this and the following are the parent's */
	sv_far_works_fork_child();
	LIST_INIT(&dues);
	atomic_store_explicit(&any_due, false, memory_order_relaxed);
	memset(&tick, 0, sizeof(tick));
	sv_far_proxies_fork_child();
	sv_far_lock_renew();
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

static void executing_begin(struct sv_far *far)
{
	lock_acquire(&far->qp->sq.lock);
	far->executing = true;
	lock_release(&far->qp->sq.lock);
}

/* Own requests that were held back go on, and take along what is due. */
static void executing_end(struct sv_far *far)
{
	struct sv_qp *qp = far->qp;

	lock_acquire(&qp->sq.lock);
	far->executing = false;
	if (far->held_back) {
		sv_sq_run_locked(qp, 0);
		sv_sq_notify_locked(qp);
	}
	lock_release(&qp->sq.lock);
}

/* Inside the SQ lock, so that no own request overtakes it. */
static void due_post(struct sv_far *far)
{
	struct far_done done = { .dest = far->qpn,
				 .source = far->qp->ibv.qp_num,
				 .connection = far->due.connection,
				 .number = far->due.number };

	if (!far->due.count)
		return;
	far->due.count = 0;
	answer_post(far->peer, &done, NULL);
}

static void due_send_locked(struct sv_far *far)
{
	if (!far->due_listed)
		return;
	far->due_listed = false;
	LIST_REMOVE(far, due_entry);
	lock_acquire(&far->qp->sq.lock);
	due_post(far);
	lock_release(&far->qp->sq.lock);
}

static void due_add_locked(struct sv_far *far, const struct far_request *request)
{
	if (!far->due_listed)
		LIST_INSERT_HEAD(&dues, far, due_entry);
	far->due_listed = true;
	atomic_store_explicit(&any_due, true, memory_order_relaxed);
	lock_acquire(&far->qp->sq.lock);
	far->due.connection = request->connection;
	far->due.number = request->number;
	far->due.recent = true;
	if (++far->due.count == LONGEST_DELAY)
		due_post(far);
	lock_release(&far->qp->sq.lock);
}

static void answer_locked(struct sv_far *far, const struct far_request *request,
			  enum ibv_wc_status status, const uint8_t *data)
{
	struct far_done done = done_to(request, status);

	if (status == IBV_WC_SUCCESS && !data && request->length <= SQ_SHORT) {
		due_add_locked(far, request);
		return;
	}
	due_send_locked(far);
	done.length = data ? request->length : 0;
	answer_post(far->peer, &done, data);
}

/* True if it is to wait for one more poll. */
static bool due_stays(struct sv_far *far)
{
	bool recent;

	lock_acquire(&far->qp->sq.lock);
	recent = far->due.recent && far->due.count;
	far->due.recent = false;
	lock_release(&far->qp->sq.lock);
	return recent;
}

static void tick_fire(struct sv_timer *timer);

static void dues_send_locked(bool polled)
{
	struct sv_far *far, *next;
	bool any = false;

	for (far = LIST_FIRST(&dues); far; far = next) {
		next = LIST_NEXT(far, due_entry);
		if (polled && due_stays(far))
			any = true;
		else
			due_send_locked(far);
	}
	atomic_store_explicit(&any_due, any, memory_order_relaxed);
	if (any && !tick.on)
		sv_engine_timer_arm(&tick.timer, clock_now() + TICK, tick_fire);
	tick.on |= any;
}

static void tick_fire(struct sv_timer *timer)
{
	(void)timer;
	sv_far_lock();
	tick.on = false;
	dues_send_locked(false);
	sv_far_unlock();
}

void sv_far_dues_send(bool polled)
{
	if (!sv_far_any_due())
		return;
	sv_far_lock();
	dues_send_locked(polled);
	sv_far_unlock();
}

bool sv_far_any_due(void)
{
	return atomic_load_explicit(&any_due, memory_order_relaxed);
}

void sv_far_dues_stop(void)
{
	sv_engine_timer_cancel(&tick.timer);
	tick.on = false;
}

/* ---- completions ---- */

static void work_done_locked(struct far_work *work, enum ibv_wc_status status)
{
	struct sv_far *far = work->far;
	bool data = status == IBV_WC_SUCCESS && far_brings_data(work->request.opcode);

	STAILQ_REMOVE(&far->works, work, far_work, entry);
	far->pending--;
	posted--;
	answer_locked(far, &work->request, status, data ? work->data : NULL);
	sv_far_work_free_locked(work);
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
	if (posted && sv_far_proxies_arm_locked())
		completions_poll_locked();
}

static void proxies_ready_locked(void)
{
	completions_take_locked();
	dues_send_locked(false);
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
		posted--;
		sv_far_work_free_locked(work);
	}
	sv_far_work_free_locked(far->coming);
	far->coming = NULL;
}

/* ---- requests ---- */

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
	sv_far_proxy_patience_locked(far, request);
	STAILQ_INSERT_TAIL(&far->works, work, entry);
	far->pending++;
	posted++;
	far->expected++;
	if (ibv_post_send(&far->proxy->ibv, &wr, &bad))
		work_done_locked(work, IBV_WC_REM_OP_ERR);
	completions_take_locked();
}

/* Whether this is the connection whose requests the QP executes; a new one begins with number 0. */
static bool connection_is(struct sv_far *far, const struct far_request *request)
{
	if (request->connection != far->their_connection && !request->number && !request->offset &&
	    !far->pending) {
		due_send_locked(far);
		far->their_connection = request->connection;
		far->expected = 0;
		sv_far_work_free_locked(far->coming);
		far->coming = NULL;
	}
	return request->connection == far->their_connection;
}

/* False if the peer violates the protocol. */
static bool request_read_locked(struct sv_far *far, const struct far_request *request,
				const uint8_t *data, uint32_t size)
{
	struct far_work *work = far->coming;

	if (request->number != far->expected || (!work && request->offset))
		return true; /* after one that was not taken: it comes again */
	if (far->pending >= FAR_WINDOW)
		return false;
	if (!work) {
		work = sv_far_work_new_locked(far, request);
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

bool sv_far_request(struct fabric_peer *from, const uint8_t *bytes, size_t size)
{
	struct far_request request;
	struct sv_far *far = NULL;
	bool sound = true;
	struct sv_qp *qp;

	if (!sv_far_request_read(bytes, size, &request) ||
	    qp_peer_id_of(request.dest) != sv_runtime_peer_id())
		return false;
	if (request.flags & FAR_ANSWERS && !sv_far_answer_in(from, &request))
		return false;
	qp = sv_qp_pin(qp_index_of(request.dest));
	sv_far_lock();
	if (qp)
		far = sv_far_find_locked(qp, from, &request);
	if (far && connection_is(far, &request)) {
		executing_begin(far);
		sound = request_read_locked(far, &request, bytes + FAR_REQUEST_SIZE,
					    (uint32_t)(size - FAR_REQUEST_SIZE));
		executing_end(far);
	} else if (!request.offset)
		not_ready_post(&from->peer, &request);
	sv_far_unlock();
	if (qp)
		sv_qp_unpin(qp);
	return sound;
}
