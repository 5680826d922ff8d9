/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* Endpoints and shared receive queues, freed while another thread posts, connects, changes, resets. */
#include "test/unit/hammer.h"

/* Objects of an endpoint beside the environment; both threads poll the EVDs. */
struct parts {
	DAT_EVD_HANDLE conn, recv, request;
	DAT_SRQ_HANDLE srq;
};

static void drain(struct hammer *h, DAT_EVD_HANDLE evd)
{
	DAT_EVENT event;

	while (hammer_call(h, dat_evd_dequeue(evd, &event)))
		;
}

static void drain_all(struct hammer *h)
{
	struct parts *parts = h->more;

	drain(h, parts->conn);
	drain(h, parts->recv);
	drain(h, parts->request);
	drain(h, h->env.async);
}

static void parts_open(struct hammer *h, struct parts *parts)
{
	DAT_SRQ_ATTR attr = { .max_recv_dtos = 64, .max_recv_iov = 2 };

	h->more = parts;
	env_open(&h->env);
	env_listen(&h->env);
	parts->conn = evd_open(&h->env, 256, DAT_EVD_CONNECTION_FLAG);
	parts->recv = evd_open(&h->env, 256, DAT_EVD_DTO_FLAG);
	parts->request = evd_open(&h->env, 256, DAT_EVD_DTO_FLAG);
	MUST(dat_srq_create(h->env.ia, h->env.pz, &attr, &parts->srq));
}

/* Rejects the requests that connection attempts have left. */
static void parts_close(struct hammer *h, struct parts *parts)
{
	DAT_EVENT event;

	MUST(dat_psp_free(h->env.psp));
	h->env.psp = DAT_HANDLE_NULL;
	while (dat_evd_dequeue(h->env.cr, &event) == DAT_SUCCESS)
		OK(dat_cr_reject(event.event_data.cr_arrival_event_data.cr_handle, 0, NULL));
	drain_all(h);
	MUST(dat_srq_free(parts->srq));
	evd_close(parts->request);
	evd_close(parts->recv);
	evd_close(parts->conn);
	env_close(&h->env);
}

static void hammer_parts(void (*make)(struct hammer *h), void (*use)(struct hammer *h))
{
	struct hammer *h = calloc(1, sizeof(*h));
	struct parts parts;

	CU_ASSERT_PTR_NOT_NULL_FATAL(h);
	*h = (struct hammer){ .make = make, .use = use };
	parts_open(h, &parts);
	hammer_threads(h);
	parts_close(h, &parts);
	free(h);
}

static const DAT_EP_ATTR small = {
	.max_recv_dtos = 4, .max_request_dtos = 4, .max_recv_iov = 2, .max_request_iov = 2
};

static void ep_make(struct hammer *h)
{
	struct parts *parts = h->more;
	DAT_EP_HANDLE ep = DAT_HANDLE_NULL;
	bool odd = atomic_load(&h->rounds) & 1;

	if (!hammer_call(h, odd ? dat_ep_create_with_srq(h->env.ia, h->env.pz, parts->recv,
							 parts->request, parts->conn, parts->srq,
							 &small, &ep)
				: dat_ep_create(h->env.ia, h->env.pz, parts->recv, parts->request,
						parts->conn, &small, &ep)))
		return;
	hammer_show(h, ep);
	while (DAT_GET_TYPE(dat_ep_free(ep)) == DAT_INVALID_STATE)
		sched_yield();
	drain_all(h);
}

static void post_all(struct hammer *h, DAT_EP_HANDLE ep)
{
	DAT_LMR_TRIPLET what = segment(&h->env, 0, 64), word = segment(&h->env, 0, 8);
	DAT_RMR_TRIPLET where = { .virtual_address = (uintptr_t)h->env.memory + 4096,
				  .segment_length = 64,
				  .rmr_context = h->env.rkey };
	DAT_DTO_COOKIE cookie = { .as_64 = 1 };

	hammer_call(h, dat_ep_post_recv(ep, 1, &what, cookie, 0));
	hammer_call(h, dat_ep_post_send(ep, 1, &what, cookie, 0));
	hammer_call(h, dat_ep_post_rdma_write(ep, 1, &what, cookie, &where, 0));
	hammer_call(h, dat_ep_post_rdma_read(ep, 1, &what, cookie, &where, 0));
	hammer_call(h, dat_ib_post_fetch_and_add(ep, 1, &word, cookie, &where, 0));
}

static void ep_use(struct hammer *h)
{
	DAT_EP_HANDLE ep = atomic_load(&h->handle);
	DAT_UINT64 counters[DCNT_EP_ALL_COUNTERS];
	DAT_EP_PARAM param;
	DAT_EP_STATE state;
	DAT_BOOLEAN idle;
	DAT_COUNT count, span;

	if (hammer_call(h, dat_ep_query(ep, DAT_EP_FIELD_ALL, &param)))
		hammer_call(h, dat_ep_modify(ep,
					     DAT_EP_FIELD_EP_ATTR_MAX_RDMA_READ_IN |
						     DAT_EP_FIELD_EP_ATTR_MAX_REQUEST_DTOS,
					     &param));
	hammer_call(h, dat_ep_get_status(ep, &state, &idle, &idle));
	hammer_call(h, dat_ep_recv_query(ep, &count, &span));
	post_all(h, ep);
	hammer_call(h, dat_ep_set_watermark(ep, DAT_WATERMARK_INFINITE, DAT_WATERMARK_INFINITE));
	hammer_call(h, dat_ib_query_counters(ep, DCNT_EP_ALL_COUNTERS, counters, 1));
	hammer_call(h, dat_ep_disconnect(ep, DAT_CLOSE_ABRUPT_FLAG));
	hammer_call(h, dat_ep_reset(ep));
}

static void test_ep(void)
{
	hammer_parts(ep_make, ep_use);
}

/* The endpoint connects to itself, is accepted or not, disconnected and freed. */
static void connect_use(struct hammer *h)
{
	DAT_EP_HANDLE ep = atomic_load(&h->handle);
	struct parts *parts = h->more;
	DAT_EP_HANDLE other;
	DAT_EVENT event;

	hammer_call(h, dat_ep_connect(ep, h->env.address, h->env.qual, 1000000, 0, NULL,
				      DAT_QOS_BEST_EFFORT, DAT_CONNECT_DEFAULT_FLAG));
	if (!hammer_call(h, dat_evd_dequeue(h->env.cr, &event)))
		return;
	if (hammer_call(h, dat_ep_create(h->env.ia, h->env.pz, parts->recv, parts->request,
					 parts->conn, &small, &other))) {
		hammer_call(h, dat_cr_accept(event.event_data.cr_arrival_event_data.cr_handle,
					     other, 0, NULL));
		post_all(h, ep);
		hammer_call(h, dat_ep_disconnect(ep, DAT_CLOSE_GRACEFUL_FLAG));
		post_all(h, other);
		hammer_call(h, dat_ep_free(other));
	}
}

static void connect_make(struct hammer *h)
{
	struct parts *parts = h->more;
	DAT_EP_HANDLE ep = DAT_HANDLE_NULL;

	if (!hammer_call(h, dat_ep_create(h->env.ia, h->env.pz, parts->recv, parts->request,
					  parts->conn, &small, &ep)))
		return;
	hammer_show(h, ep);
	hammer_call(h, dat_ep_disconnect(ep, DAT_CLOSE_ABRUPT_FLAG));
	hammer_call(h, dat_ep_reset(ep));
	while (DAT_GET_TYPE(dat_ep_free(ep)) == DAT_INVALID_STATE)
		sched_yield();
	drain_all(h);
}

static void test_connecting(void)
{
	hammer_parts(connect_make, connect_use);
}

static void srq_make(struct hammer *h)
{
	DAT_SRQ_ATTR attr = { .max_recv_dtos = 8, .max_recv_iov = 2 };
	DAT_SRQ_HANDLE srq = DAT_HANDLE_NULL;

	if (!hammer_call(h, dat_srq_create(h->env.ia, h->env.pz, &attr, &srq)))
		return;
	hammer_show(h, srq);
	while (DAT_GET_TYPE(dat_srq_free(srq)) == DAT_INVALID_STATE)
		sched_yield();
	drain_all(h);
}

static void srq_use(struct hammer *h)
{
	DAT_SRQ_HANDLE srq = atomic_load(&h->handle);
	struct parts *parts = h->more;
	DAT_LMR_TRIPLET what = segment(&h->env, 0, 64);
	DAT_SRQ_PARAM param;
	DAT_EP_HANDLE ep;

	hammer_call(h, dat_srq_post_recv(srq, 1, &what, (DAT_DTO_COOKIE){ .as_64 = 2 }));
	hammer_call(h, dat_srq_query(srq, DAT_SRQ_FIELD_ALL, &param));
	hammer_call(h, dat_srq_resize(srq, 8));
	hammer_call(h, dat_srq_set_lw(srq, 1));
	hammer_call(h, dat_srq_set_lw(srq, 0));
	if (hammer_call(h, dat_ep_create_with_srq(h->env.ia, h->env.pz, parts->recv, parts->request,
						  parts->conn, srq, &small, &ep)))
		hammer_call(h, dat_ep_free(ep));
	drain(h, h->env.async);
}

static void test_srq(void)
{
	hammer_parts(srq_make, srq_use);
}

static const struct unit_test tests[] = {
	{ "an EP is freed while another thread uses it", test_ep },
	{ "an EP is freed while it connects", test_connecting },
	{ "an SRQ is freed while another thread uses it", test_srq },
};

UNIT_MAIN("hammer_ep", tests)
