/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* The QP of an endpoint: created from its attributes, drained into the EVDs, replaced, destroyed. */
#include <limits.h>
#include <string.h>
#include <time.h>
#include "dapl/udapl/ep/ep.h"
#include "dapl/udapl/base/provider.h"
#include "util/clock.h"
#include "util/log.h"
#include "util/settings.h"

static uint32_t greatest(uint32_t a, uint32_t b)
{
	return a > b ? a : b;
}

struct ep_config ep_config_of(const struct dapl_ep *ep)
{
	return (struct ep_config){ .pz = ep->pz,
				   .recv_evd = ep->recv_evd,
				   .request_evd = ep->request_evd,
				   .connect_evd = ep->end.connect_evd,
				   .attr = ep->attr };
}

/* Posts may read this now; the EP's lock orders it before the queues that they find. */
static void attr_set_locked(struct dapl_ep *ep, const DAT_EP_ATTR *attr)
{
	enum { WORDS = sizeof(*attr) / sizeof(uint32_t) };
	uint32_t from[WORDS], *to = (uint32_t *)(void *)&ep->attr;
	unsigned i;

	memcpy(from, attr, sizeof(from));
	for (i = 0; i < WORDS; i++)
		__atomic_store_n(&to[i], from[i], __ATOMIC_RELAXED);
}

void ep_config_set_locked(struct dapl_ep *ep, const struct ep_config *config)
{
	ep->pz = config->pz;
	ep->recv_evd = config->recv_evd;
	ep->request_evd = config->request_evd;
	ep->end.connect_evd = config->connect_evd;
	attr_set_locked(ep, &config->attr);
}

static struct ib_qp_caps caps_wanted(const struct dapl_ep *ep, const struct ep_config *config)
{
	const DAT_EP_ATTR *attr = &config->attr;
	uint32_t rdma_iov =
		greatest((uint32_t)attr->max_rdma_read_iov, (uint32_t)attr->max_rdma_write_iov);
	const struct dapl_ia *ia = ep->obj.ia;
	bool recv = config->recv_evd && !ep->srq;

	return (struct ib_qp_caps){
		.send_wr = (uint32_t)attr->max_request_dtos,
		.send_sge = greatest((uint32_t)attr->max_request_iov, rdma_iov),
		.recv_wr = recv ? (uint32_t)attr->max_recv_dtos : 0,
		.recv_sge = recv ? (uint32_t)attr->max_recv_iov : 0,
		.inline_data =
			(uint32_t)setting_for_ia(ia->name, ia->attr->device_name, SET_MAX_INLINE),
	};
}

static DAT_COUNT granted(uint32_t value)
{
	return value > INT_MAX ? INT_MAX : (DAT_COUNT)value;
}

/* Posts read it without a lock. */
static void inline_set(struct dapl_ep *ep, uint32_t bytes)
{
	__atomic_store_n(&ep->caps.inline_data, bytes, __ATOMIC_SEQ_CST);
}

void ep_inline_update(struct dapl_ep *ep)
{
	/* seq_cst: either `zero_based` is seen here, or ep_inline_end overwrites what was set before */
	if (atomic_load(&ep->obj.ia->zero_based))
		inline_set(ep, 0);
}

void ep_inline_end(struct dapl_ia *ia)
{
	struct obj *obj;

	pthread_mutex_lock(&ia->lock);
	if (!atomic_load(&ia->zero_based)) {
		atomic_store(&ia->zero_based, true);
		TAILQ_FOREACH(obj, &ia->objects[OBJ_EP], link)
			inline_set((struct dapl_ep *)obj, 0);
	}
	pthread_mutex_unlock(&ia->lock);
}

void ep_flights_land(struct dapl_ia *ia, bool task_ends)
{
	struct dapl_ep *ep;
	struct obj *obj;

	pthread_mutex_lock(&ia->lock);
	TAILQ_FOREACH(obj, &ia->objects[OBJ_EP], link) {
		ep = (struct dapl_ep *)obj;
		/*
		 * The completion's side also uses an exchange: either this thread sees the retired
		 * slot, or the completion sees the flag.
		 */
		if (task_ends)
			atomic_exchange(&ep->end.flights.task_ends, 1);
		rmr_flights_land(&ep->end.flights);
	}
	pthread_mutex_unlock(&ia->lock);
}

/* A query returns the sizes that the device granted, and the queue is full at that size. */
static void caps_store(struct dapl_ep *ep, const struct ib_qp_caps *caps)
{
	ep->caps.send_wr = caps->send_wr;
	ep->caps.recv_wr = caps->recv_wr;
	ep->caps.send_sge = caps->send_sge;
	ep->caps.recv_sge = caps->recv_sge;
	inline_set(ep, caps->inline_data);
	ep_inline_update(ep);
	if (ep->request_evd) {
		EP_ATTR_SET(ep, max_request_dtos, granted(caps->send_wr));
		EP_ATTR_SET(ep, max_request_iov, granted(caps->send_sge));
	}
	if (ep->recv_evd && !ep->srq) {
		EP_ATTR_SET(ep, max_recv_dtos, granted(caps->recv_wr));
		EP_ATTR_SET(ep, max_recv_iov, granted(caps->recv_sge));
	}
}

static DAT_RETURN side_cq(struct dapl_ia *ia, struct dapl_evd *evd, struct ib_cq **cq)
{
	if (!evd)
		return ia_no_cq(ia, cq);
	*cq = evd->cq;
	return DAT_SUCCESS;
}

/*
 * A QP of an EP without a receive EVD is not attached to the SRQ: a buffer that it took would be lost,
 * because no thread polls the CQ that replaces the EVD's.
 */
static DAT_RETURN qp_make(struct dapl_ep *ep, const struct ep_config *config,
			  struct ib_qp_caps *caps, struct ib_qp **qp)
{
	struct dapl_ia *ia = ep->obj.ia;
	struct ib_srq *srq = ep->srq && config->recv_evd ? ep->srq->srq : NULL;
	struct ib_cq *send_cq, *recv_cq;
	struct ib_qp *new;
	DAT_RETURN status;

	*caps = caps_wanted(ep, config);
	status = side_cq(ia, config->request_evd, &send_cq);
	if (status == DAT_SUCCESS)
		status = side_cq(ia, config->recv_evd, &recv_cq);
	if (status == DAT_SUCCESS)
		status = (ep->end.datagrams ? ib_qp_create_datagram
					    : ib_qp_create)(config->pz->pd, send_cq, recv_cq, srq,
							    caps, ep, &new);
	if (status != DAT_SUCCESS)
		return DAT_ERROR(DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_TEP);
	status = qp_table_set(ia, ib_qp_num(new), &ep->obj);
	if (status != DAT_SUCCESS) {
		ib_qp_destroy(new);
		return status;
	}
	*qp = new;
	return DAT_SUCCESS;
}

static void qp_unmake(struct dapl_ep *ep, struct ib_qp *qp)
{
	qp_table_clear(ep->obj.ia, ib_qp_num(qp));
	ib_qp_destroy(qp);
}

void ep_qp_discard(struct dapl_ep *ep, struct ep_qp_parts *parts)
{
	dto_ring_free(&parts->request, NULL);
	dto_ring_free(&parts->recv, NULL);
	rmr_flights_end(&parts->flights);
	if (parts->qp)
		qp_unmake(ep, parts->qp);
	parts->qp = NULL;
}

DAT_RETURN ep_qp_prepare(struct dapl_ep *ep, const struct ep_config *config,
			 struct ep_qp_parts *parts)
{
	bool recv = config->recv_evd && !ep->srq;
	DAT_RETURN status;

	*parts = (struct ep_qp_parts){ .qp = NULL };
	if (!config->pz)
		return DAT_SUCCESS;
	status = qp_make(ep, config, &parts->caps, &parts->qp);
	if (status == DAT_SUCCESS)
		status = dto_ring_init(&parts->request,
				       config->request_evd ? parts->caps.send_wr : 0);
	if (status == DAT_SUCCESS)
		status = dto_ring_init(&parts->recv, recv ? parts->caps.recv_wr : 0);
	if (status == DAT_SUCCESS)
		status = rmr_flights_init(&parts->flights, parts->request.mask + 1,
					  parts->request.depth);
	if (status != DAT_SUCCESS)
		ep_qp_discard(ep, parts);
	return status;
}

static void post_locks_acquire(struct dapl_ep *ep)
{
	lock_acquire(&ep->end.post_lock);
	lock_acquire(&ep->end.recv_lock);
}

static void post_locks_release(struct dapl_ep *ep)
{
	lock_release(&ep->end.recv_lock);
	lock_release(&ep->end.post_lock);
}

/* The EP has had no QP and no rings before. */
static void parts_install_locked(struct dapl_ep *ep, const struct ep_qp_parts *parts)
{
	post_locks_acquire(ep);
	ep->end.request = parts->request;
	ep->end.recv = parts->recv;
	ep->end.flights.list = parts->flights;
	atomic_store(&ep->end.flights.task_ends, 0);
	dto_ring_name(&ep->end.request, DTO_REQUEST, &ep->obj);
	dto_ring_name(&ep->end.recv, DTO_RECV, &ep->obj);
	if (parts->qp) {
		caps_store(ep, &parts->caps);
		ep->posts = ib_qp_posts(parts->qp);
	}
	ep->qp = parts->qp;
	ep_send_credits_update_locked(ep);
	ep_recv_credits_update_locked(ep);
	post_locks_release(ep);
	if (ep->qp)
		log_at(LOG_TRACE, "ep %p: qp 0x%x, %u requests, %u receives, %u bytes inline",
		       (void *)ep, ib_qp_num(ep->qp), ep->caps.send_wr, ep->caps.recv_wr,
		       ep->caps.inline_data);
}

DAT_RETURN ep_qp_create_locked(struct dapl_ep *ep)
{
	struct ep_config config = ep_config_of(ep);
	struct ep_qp_parts parts;
	DAT_RETURN status = ep_qp_prepare(ep, &config, &parts);

	if (status == DAT_SUCCESS)
		parts_install_locked(ep, &parts);
	return status;
}

/* Detaches the QP, so that nothing more is posted to it, and returns it. */
static struct ib_qp *qp_detach(struct dapl_ep *ep)
{
	struct ib_qp *qp;

	post_locks_acquire(ep);
	qp = ep->qp;
	ep->qp = NULL;
	ep_send_credits_update_locked(ep);
	ep_recv_credits_update_locked(ep);
	post_locks_release(ep);
	return qp;
}

/* A concurrent post reads the ring before it finds that there is no QP, so the post locks are held. */
static void rings_free(struct dapl_ep *ep)
{
	struct rmr_flight_list flights;

	post_locks_acquire(ep);
	flights = ep->end.flights.list;
	ep->end.flights.list = (struct rmr_flight_list){ .flights = NULL };
	dto_ring_free(&ep->end.request, ep->request_evd);
	dto_ring_free(&ep->end.recv, ep->recv_evd);
	post_locks_release(ep);
	rmr_flights_end(&flights);
}

bool ep_drain(struct dapl_ep *ep)
{
	bool empty = !ep->request_evd || evd_drain(ep->request_evd);

	if (ep->recv_evd && ep->recv_evd != ep->request_evd)
		empty &= evd_drain(ep->recv_evd);
	return empty;
}

/* The QP's later completions make no event. */
static void qp_hide(struct dapl_ep *ep, struct ib_qp *qp)
{
	qp_table_clear(ep->obj.ia, ib_qp_num(qp));
	rmr_ep_ended(&ep->end.rmrs);
	post_locks_acquire(ep);
	obj_next_generation(&ep->obj);
	post_locks_release(ep);
	dto_forget(ep->request_evd);
	dto_forget(ep->recv_evd);
	if (ep->flush_expected)
		evd_flush_over(ep->recv_evd);
	ep->flush_expected = false;
}

/*
 * A device reports when a QP in error has returned the last buffer of the SRQ; some devices (rxe) do
 * not, so the wait has a deadline.
 */
static bool holds_buffers(struct dapl_ep *ep)
{
	return ep->srq && ep->recv_evd && ep->was_up &&
	       /* acquire: completions from before the device's report are found in the CQ */
	       !(task_mask(&ep->task) & EP_FACT_LAST_WQE) && clock_now() < ep_last_wqe_deadline(ep);
}

static bool flushed(struct dapl_ep *ep)
{
	return !dto_ring_outstanding(&ep->end.request) && !dto_ring_outstanding(&ep->end.recv) &&
	       !holds_buffers(ep);
}

/*
 * Waits until all that the QP held is in the EVDs, which may be full, or for about a second after
 * it went to error.
 */
static void qp_flush(struct dapl_ep *ep, struct ib_qp *qp, bool (*done)(struct dapl_ep *ep))
{
	uint64_t deadline = clock_now() + EP_FLUSH_WAIT;
	struct timespec pause = { .tv_nsec = 20 * NSEC_PER_USEC };
	bool over;

	ib_qp_error(qp);
	for (;;) {
		over = done(ep);
		ep_drain(ep);
		if (over || done(ep))
			break;
		if (clock_now() >= deadline) {
			if (ep_may_lose(ep) && ep_flush(ep, ib_qp_num(qp)))
				break;
			log_at(LOG_WARN,
			       "ep %p: qp 0x%x holds %u requests and %u receives after a second",
			       (void *)ep, ib_qp_num(qp), dto_ring_outstanding(&ep->end.request),
			       dto_ring_outstanding(&ep->end.recv));
			break;
		}
		nanosleep(&pause, NULL);
		if (pause.tv_nsec < (long)NSEC_PER_MSEC)
			pause.tv_nsec *= 2;
	}
	ep_drain(ep);
}

static bool gave_buffers_back(struct dapl_ep *ep)
{
	return !holds_buffers(ep);
}

void ep_qp_destroy(struct dapl_ep *ep)
{
	struct ib_qp *qp = qp_detach(ep);

	if (qp) {
		/*
		 * The consumer gets the buffers of an SRQ that the QP has used back only by their
		 * events; buffers that the device still holds are dropped with the QP.
		 */
		if (holds_buffers(ep))
			qp_flush(ep, qp, gave_buffers_back);
		else if (ep->srq && ep->recv_evd)
			evd_drain(ep->recv_evd);
		qp_hide(ep, qp);
		ib_qp_destroy(qp);
		/* A device (siw) may have flushed it into the CQ, which a row of such EPs would fill. */
		ep_drain(ep);
	}
	rings_free(ep);
}

/*
 * The new QP is created before the old one is destroyed, so that it has another number: the peer's CM
 * may still treat the old number as stale. If the device has no spare QP, the old one is destroyed first.
 */
DAT_RETURN ep_qp_renew(struct dapl_ep *ep, struct ep_qp_parts *parts)
{
	struct ep_config config = ep_config_of(ep);
	struct ib_qp *old = qp_detach(ep);

	*parts = (struct ep_qp_parts){ .qp = NULL };
	if (old) {
		qp_flush(ep, old, flushed);
		ep_qp_prepare(ep, &config, parts);
		qp_hide(ep, old);
		rings_free(ep);
		ib_qp_destroy(old);
	}
	return parts->qp ? DAT_SUCCESS : ep_qp_prepare(ep, &config, parts);
}

void ep_qp_install_locked(struct dapl_ep *ep, const struct ep_qp_parts *parts)
{
	parts_install_locked(ep, parts);
}

struct ib_qp *ep_qp_detach_locked(struct dapl_ep *ep)
{
	return qp_detach(ep);
}

void ep_qp_flush(struct dapl_ep *ep, struct ib_qp *old)
{
	qp_flush(ep, old, flushed);
}

void ep_qp_swap_locked(struct dapl_ep *ep, struct ib_qp *old, const struct ep_config *config,
		       const struct ep_qp_parts *parts)
{
	if (old)
		qp_hide(ep, old);
	rings_free(ep);
	ep_config_set_locked(ep, config);
	parts_install_locked(ep, parts);
	/* The EP failed during the change: later posts are flushed. */
	if (ep->qp &&
	    atomic_load_explicit(&ep->state, memory_order_relaxed) == DAT_EP_STATE_DISCONNECTED)
		ib_qp_error(ep->qp);
}
