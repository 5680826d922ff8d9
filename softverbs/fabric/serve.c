/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* The responder's side of a QP whose peer is on another host: collects its requests, has a proxy execute them, and
 * answers. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>
#include <fcntl.h>
#include "softverbs/base/log_from.h"
#include "softverbs/fabric/data.h"
#include "softverbs/link/runtime.h"
#include "softverbs/object/region.h"
#include "softverbs/rc/rc.h"
#include "softverbs/verbs/context.h"
#include "softverbs/verbs/qp.h"
#include "util/log.h"

#define POLLED 32

struct far_work {
	STAILQ_ENTRY(far_work) entry;
	struct sv_far *far;
	struct far_request request;
	uint32_t have; /* bytes that have come */
	uint8_t data[];
};

/* What all proxies share, from the first to the last of them; the data lock. */
static struct {
	unsigned users;
	struct ibv_context *context;
	struct ibv_pd *pd;
	struct ibv_comp_channel *channel;
	struct ibv_cq *cq;
	uint32_t key; /* of a region that is all memory, for this PD alone, without remote access */
	struct engine_fd *watch; /* a copy of the channel's descriptor */
	unsigned works;		 /* posted to proxies */
	bool armed;
	uint64_t bytes; /* of requests */
} proxies;

struct proxies_watch {
	struct engine_fd fd;
	struct engine_job job;
};

static void completions_take_locked(void);

/* ---- what proxies share ---- */

static void proxies_ready(struct engine_fd *watch, uint32_t events)
{
	struct ibv_cq *cq;
	void *context;

	(void)events;
	sv_far_lock();
	if (watch == proxies.watch) {
		if (!ibv_get_cq_event(proxies.channel, &cq, &context))
			ibv_ack_cq_events(cq, 1);
		proxies.armed = false;
		completions_take_locked();
	}
	sv_far_unlock();
}

static void watch_free(struct engine_job *job)
{
	free((char *)job - offsetof(struct proxies_watch, job));
}

static int watch_open_locked(void)
{
	struct proxies_watch *watch = calloc(1, sizeof(*watch));
	int fd;

	if (!watch)
		return ENOMEM;
	fd = fcntl(proxies.channel->fd, F_DUPFD_CLOEXEC, 0);
	if (fd < 0) {
		free(watch);
		return EMFILE;
	}
	proxies.watch = &watch->fd;
	return sv_engine_fd_add(&watch->fd, fd, EPOLLIN, proxies_ready);
}

static void proxies_close_locked(void)
{
	if (proxies.watch) {
		sv_engine_fd_remove(proxies.watch);
		sv_engine_defer(&((struct proxies_watch *)(void *)proxies.watch)->job, watch_free);
	}
	if (proxies.key)
		sv_region_withdraw(proxies.key);
	if (proxies.cq)
		ibv_destroy_cq(proxies.cq);
	if (proxies.channel)
		ibv_destroy_comp_channel(proxies.channel);
	if (proxies.pd)
		ibv_dealloc_pd(proxies.pd);
	if (proxies.context)
		ibv_close_device(proxies.context);
	memset(&proxies, 0, sizeof(proxies));
}

static int region_open_locked(void)
{
	struct region_entry all = { .type = REGION_MR,
				    .access = IBV_ACCESS_LOCAL_WRITE | REGION_LOCAL,
				    .pd = proxies.pd->handle,
				    .length = UINT64_MAX };

	proxies.key = sv_region_reserve();
	if (!proxies.key)
		return ENOMEM;
	sv_region_publish(proxies.key, &all);
	return 0;
}

static int proxies_open_locked(void)
{
	proxies.context = sv_context_open(sv_device_soft(), sv_runtime_client());
	if (proxies.context)
		proxies.pd = ibv_alloc_pd(proxies.context);
	if (proxies.pd)
		proxies.channel = ibv_create_comp_channel(proxies.context);
	if (proxies.channel && !fcntl(proxies.channel->fd, F_SETFL, O_NONBLOCK))
		proxies.cq = ibv_create_cq(proxies.context, SV_MAX_CQE, NULL, proxies.channel, 0);
	if (!proxies.cq)
		return errno ? errno : ENOMEM;
	return region_open_locked() ? ENOMEM : watch_open_locked();
}

void sv_far_fork_child(void)
{
	memset(&proxies, 0, sizeof(proxies)); /* the parent's */
	sv_far_lock_renew();
}

/* ---- the proxy ---- */

static int proxy_connect(struct sv_qp *proxy, const struct sv_qp *qp)
{
	struct ibv_qp_attr attr = {
		.port_num = 1,
		.dest_qp_num = qp->ibv.qp_num,
		.path_mtu = IBV_MTU_4096,
		.max_rd_atomic = SV_MAX_RD_ATOMIC,
		.ah_attr.port_num = 1,
	};
	int error;

	error = sv_qp_enter_state(&proxy->ibv, IBV_QPS_RESET, IBV_QPS_INIT, &attr, IBV_QP_PORT);
	if (!error)
		error = sv_qp_enter_state(&proxy->ibv, IBV_QPS_INIT, IBV_QPS_RTR, &attr,
					  IBV_QP_DEST_QPN | IBV_QP_AV | IBV_QP_PATH_MTU);
	return error ? error
		     : sv_qp_enter_state(&proxy->ibv, IBV_QPS_RTR, IBV_QPS_RTS, &attr,
					 IBV_QP_MAX_QP_RD_ATOMIC);
}

int sv_far_proxy_open_locked(struct sv_far *far, struct sv_qp *qp)
{
	struct ibv_qp_init_attr init = {
		.qp_type = qp->sq.service == SERVICE_UC ? IBV_QPT_UC : IBV_QPT_RC,
		.sq_sig_all = 1,
		.cap = { .max_send_wr = FAR_WINDOW, .max_send_sge = 1 },
	};
	int error = 0;

	if (!proxies.users++)
		error = proxies_open_locked();
	init.send_cq = init.recv_cq = proxies.cq;
	if (!error) {
		far->proxy = sv_qp_make(proxies.pd, &init);
		error = far->proxy ? proxy_connect(far->proxy, qp) : errno;
	}
	if (error) {
		log_at(LOG_ERROR, "softverbs: qp 0x%x: for a peer on another host: %s",
		       qp->ibv.qp_num, strerror(error));
		sv_far_proxy_close_locked(far);
	}
	return error;
}

static void work_free_locked(struct far_work *work)
{
	if (!work)
		return;
	proxies.bytes -= work->request.length;
	free(work);
}

void sv_far_proxy_close_locked(struct sv_far *far)
{
	struct far_work *work;

	if (far->proxy)
		ibv_destroy_qp(&far->proxy->ibv); /* it uses the memory of the works */
	while ((work = STAILQ_FIRST(&far->works))) {
		STAILQ_REMOVE_HEAD(&far->works, entry);
		proxies.works--;
		work_free_locked(work);
	}
	work_free_locked(far->coming);
	far->coming = NULL;
	far->proxy = NULL;
	if (!--proxies.users)
		proxies_close_locked();
}

/* ---- answers ---- */

static void answer_post(struct sv_peer *to, const struct far_request *request, unsigned status,
			const uint8_t *data)
{
	struct far_done done = { .dest = request->source,
				 .source = request->dest,
				 .connection = request->connection,
				 .number = request->number,
				 .status = (uint8_t)status,
				 .length = data ? request->length : 0 };
	struct fabric_out *out;
	uint32_t part;

	do {
		part = done.length - done.offset < FAR_FRAGMENT ? done.length - done.offset
								: FAR_FRAGMENT;
		out = sv_fabric_out_new(WIRE_DONE, FAR_DONE_SIZE + part);
		if (!out) {
			log_at(LOG_ERROR, "softverbs: an answer is lost: out of memory");
			return;
		}
		sv_far_done_write(fabric_out_payload(out), &done);
		if (part)
			memcpy(fabric_out_payload(out) + FAR_DONE_SIZE, data + done.offset, part);
		sv_fabric_out_send(to, out);
		done.offset += part;
	} while (done.offset < done.length);
}

static void work_done_locked(struct far_work *work, enum ibv_wc_status status)
{
	struct sv_far *far = work->far;
	bool data = status == IBV_WC_SUCCESS && far_brings_data(work->request.opcode);

	STAILQ_REMOVE(&far->works, work, far_work, entry);
	far->pending--;
	proxies.works--;
	answer_post(far->peer, &work->request, status, data ? work->data : NULL);
	work_free_locked(work);
}

static void completions_poll_locked(void)
{
	struct ibv_wc wc[POLLED];
	int count;

	while ((count = ibv_poll_cq(proxies.cq, POLLED, wc)) > 0)
		for (int i = 0; i < count; i++)
			work_done_locked((struct far_work *)(uintptr_t)wc[i].wr_id, wc[i].status);
}

/* Most works are done when their post returns. The engine is to hear of those that are not. */
static void completions_take_locked(void)
{
	completions_poll_locked();
	if (!proxies.works || proxies.armed)
		return;
	proxies.armed = true;
	ibv_req_notify_cq(proxies.cq, 0);
	completions_poll_locked();
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
	struct ibv_sge sge = { (uintptr_t)work->data, request->length, proxies.key };
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
	proxies.works++;
	far->expected++;
	if (ibv_post_send(&far->proxy->ibv, &wr, &bad))
		work_done_locked(work, IBV_WC_REM_OP_ERR);
	completions_take_locked();
}

static struct far_work *work_new_locked(struct sv_far *far, const struct far_request *request)
{
	struct far_work *work = NULL;

	if (proxies.bytes + request->length <= FAR_BUFFERS)
		work = malloc(sizeof(*work) + request->length);
	if (!work)
		return NULL;
	*work = (struct far_work){ .far = far, .request = *request };
	proxies.bytes += request->length;
	return work;
}

/* Whether this is the connection whose requests the QP executes; a new one begins with number 0. */
static bool connection_is(struct sv_far *far, const struct far_request *request)
{
	if (request->connection != far->their_connection && !request->number && !request->offset &&
	    !far->pending) {
		far->their_connection = request->connection;
		far->expected = 0;
		work_free_locked(far->coming);
		far->coming = NULL;
	}
	return request->connection == far->their_connection;
}

static void executing_set(struct sv_qp *qp, struct sv_far *far, bool on)
{
	lock_acquire(&qp->sq.lock);
	far->executing = on;
	if (!on && far->held_back) {
		sv_sq_run_locked(qp, 0);
		sv_sq_notify_locked(qp);
	}
	lock_release(&qp->sq.lock);
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
			answer_post(far->peer, request, FAR_NOT_READY, NULL);
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
		executing_set(qp, far, true);
		sound = request_take_locked(far, &request, bytes + FAR_REQUEST_SIZE,
					    (uint32_t)(size - FAR_REQUEST_SIZE));
		executing_set(qp, far, false);
	} else if (!request.offset)
		answer_post(&from->peer, &request, FAR_NOT_READY, NULL);
	sv_far_unlock();
	if (qp)
		sv_qp_unpin(qp);
	return sound;
}
