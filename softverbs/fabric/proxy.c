/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* The proxies of QPs whose peers are on other hosts: initiators in this process, which execute the peers' requests. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include "softverbs/fabric/data.h"
#include "softverbs/fabric/proxy.h"
#include "softverbs/link/runtime.h"
#include "softverbs/object/region.h"
#include "softverbs/rc/rc.h"
#include "softverbs/verbs/context.h"
#include "softverbs/verbs/qp.h"
#include "util/log.h"

/* What all proxies share, from the first to the last of them; the data lock. */
static struct {
	unsigned users;
	struct ibv_context *context;
	struct ibv_pd *pd;
	struct ibv_comp_channel *channel;
	struct ibv_cq *cq;
	uint32_t key; /* of a region that is all memory, for this PD alone, without remote access */
	struct engine_fd *handler; /* a copy of the channel's descriptor */
	void (*ready)(void);
	bool armed;
} proxies;

struct proxies_handler {
	struct engine_fd fd;
	struct engine_job job;
};

/* ---- what proxies share ---- */

static void proxies_ready(struct engine_fd *handler, uint32_t events)
{
	struct ibv_cq *cq;
	void *context;

	(void)events;
	sv_far_lock();
	if (handler == proxies.handler) {
		if (!ibv_get_cq_event(proxies.channel, &cq, &context))
			ibv_ack_cq_events(cq, 1);
		proxies.armed = false;
		proxies.ready();
	}
	sv_far_unlock();
}

static void handler_free(struct engine_job *job)
{
	free((char *)job - offsetof(struct proxies_handler, job));
}

static int handler_open_locked(void)
{
	struct proxies_handler *handler = calloc(1, sizeof(*handler));
	int fd;

	if (!handler)
		return ENOMEM;
	fd = fcntl(proxies.channel->fd, F_DUPFD_CLOEXEC, 0);
	if (fd < 0) {
		free(handler);
		return EMFILE;
	}
	proxies.handler = &handler->fd;
	return sv_engine_fd_add(&handler->fd, fd, EPOLLIN, proxies_ready);
}

static void proxies_close_locked(void)
{
	if (proxies.handler) {
		sv_engine_fd_remove(proxies.handler);
		sv_engine_defer(&((struct proxies_handler *)(void *)proxies.handler)->job,
				handler_free);
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
	return region_open_locked() ? ENOMEM : handler_open_locked();
}

void sv_far_proxies_fork_child(void)
{
	memset(&proxies, 0, sizeof(proxies)); /* the parent's */
}

struct ibv_cq *sv_far_proxies_cq_locked(void)
{
	return proxies.cq;
}

uint32_t sv_far_proxies_key_locked(void)
{
	return proxies.key;
}

bool sv_far_proxies_arm_locked(void)
{
	if (proxies.armed)
		return false;
	proxies.armed = true;
	ibv_req_notify_cq(proxies.cq, 0);
	return true;
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

int sv_far_proxy_open_locked(struct sv_far *far, struct sv_qp *qp, void (*ready)(void))
{
	struct ibv_qp_init_attr init = {
		.qp_type = qp->sq.service == SERVICE_UC ? IBV_QPT_UC : IBV_QPT_RC,
		.sq_sig_all = 1,
		.cap = { .max_send_wr = FAR_WINDOW, .max_send_sge = 1 },
	};
	int error = 0;

	if (!proxies.users++)
		error = proxies_open_locked();
	proxies.ready = ready;
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

void sv_far_proxy_close_locked(struct sv_far *far)
{
	if (far->proxy)
		ibv_destroy_qp(&far->proxy->ibv);
	far->proxy = NULL;
	if (!--proxies.users)
		proxies_close_locked();
}

void sv_far_proxy_patience_locked(struct sv_far *far, const struct far_request *request)
{
	struct sv_qp *proxy = far->proxy;

	lock_acquire(&proxy->sq.lock);
	proxy->attr.rnr_retry = request->rnr_retry;
	proxy->attr.retry_cnt = request->retry;
	proxy->attr.timeout = request->timeout;
	lock_release(&proxy->sq.lock);
}
