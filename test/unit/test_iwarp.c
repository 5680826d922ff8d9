/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/*
 * Connections on an iWARP device: its kernel driver brings the QP of the active side up, and the first event that the
 * side gets is ESTABLISHED. The test does the driver's part on the software device. Errors are those of siw.
 */
#include <errno.h>
#include <string.h>
#include <rdma/rdma_cma.h>
#include "test/unit/announce.h"
#include "test/unit/two_ends.h"

static struct ibv_qp *qps[8];
static unsigned qp_count;
static struct rdma_cm_event *response, established; /* the CM's event, and the one in its place */
static int refusal;				    /* errno of rdma_connect; 0: it connects */
static bool gone;				    /* the sender of the request */

struct ibv_context *__real_ibv_open_device(struct ibv_device *device);
struct ibv_context *__wrap_ibv_open_device(struct ibv_device *device);
struct ibv_qp *__real_ibv_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *init);
struct ibv_qp *__wrap_ibv_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *init);
int __real_rdma_connect(struct rdma_cm_id *id, struct rdma_conn_param *param);
int __wrap_rdma_connect(struct rdma_cm_id *id, struct rdma_conn_param *param);
int __real_rdma_accept(struct rdma_cm_id *id, struct rdma_conn_param *param);
int __wrap_rdma_accept(struct rdma_cm_id *id, struct rdma_conn_param *param);
int __real_rdma_reject(struct rdma_cm_id *id, const void *data, uint8_t size);
int __wrap_rdma_reject(struct rdma_cm_id *id, const void *data, uint8_t size);
int __real_rdma_get_cm_event(struct rdma_event_channel *channel, struct rdma_cm_event **event);
int __wrap_rdma_get_cm_event(struct rdma_event_channel *channel, struct rdma_cm_event **event);
int __real_rdma_ack_cm_event(struct rdma_cm_event *event);
int __wrap_rdma_ack_cm_event(struct rdma_cm_event *event);

struct ibv_context *__wrap_ibv_open_device(struct ibv_device *device)
{
	device->transport_type = IBV_TRANSPORT_IWARP;
	return __real_ibv_open_device(device);
}

/* Refuses a receive queue without entries. */
struct ibv_qp *__wrap_ibv_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *init)
{
	struct ibv_qp *qp;

	if (!init->srq && (!init->cap.max_recv_wr || !init->cap.max_recv_sge)) {
		errno = EINVAL;
		return NULL;
	}
	qp = __real_ibv_create_qp(pd, init);
	CU_ASSERT_FATAL(qp_count < COUNT(qps));
	qps[qp_count++] = qp;
	return qp;
}

/* ---- the driver ---- */

static uint32_t active_qpn;

static int refuse_with(int error)
{
	errno = error;
	return -1;
}

int __wrap_rdma_connect(struct rdma_cm_id *id, struct rdma_conn_param *param)
{
	if (refusal)
		return refuse_with(refusal);
	active_qpn = param->qp_num;
	return __real_rdma_connect(id, param);
}

int __wrap_rdma_accept(struct rdma_cm_id *id, struct rdma_conn_param *param)
{
	return gone ? refuse_with(ECONNRESET) : __real_rdma_accept(id, param);
}

int __wrap_rdma_reject(struct rdma_cm_id *id, const void *data, uint8_t size)
{
	return gone ? refuse_with(ECONNRESET) : __real_rdma_reject(id, data, size);
}

static struct ibv_qp *active_qp(void)
{
	unsigned i;

	for (i = 0; i < qp_count; i++)
		if (qps[i]->qp_num == active_qpn)
			return qps[i];
	CU_FAIL_FATAL("no QP has the number that connects");
	return NULL;
}

static void bring_up(struct rdma_cm_id *id)
{
	static const enum ibv_qp_state states[] = { IBV_QPS_INIT, IBV_QPS_RTR, IBV_QPS_RTS };
	struct ibv_qp *qp = active_qp();
	struct ibv_qp_attr attr;
	int mask;
	size_t i;

	for (i = 0; i < COUNT(states); i++) {
		memset(&attr, 0, sizeof(attr));
		attr.qp_state = states[i];
		CU_ASSERT_EQUAL_FATAL(rdma_init_qp_attr(id, &attr, &mask), 0);
		CU_ASSERT_EQUAL_FATAL(ibv_modify_qp(qp, &attr, mask), 0);
	}
	CU_ASSERT_EQUAL_FATAL(rdma_establish(id), 0);
}

int __wrap_rdma_get_cm_event(struct rdma_event_channel *channel, struct rdma_cm_event **event)
{
	int status = __real_rdma_get_cm_event(channel, event);

	if (status || (*event)->event != RDMA_CM_EVENT_CONNECT_RESPONSE)
		return status;
	bring_up((*event)->id);
	response = *event;
	established = *response;
	established.event = RDMA_CM_EVENT_ESTABLISHED;
	*event = &established;
	return 0;
}

int __wrap_rdma_ack_cm_event(struct rdma_cm_event *event)
{
	return __real_rdma_ack_cm_event(event == &established ? response : event);
}

/* ---- the tests ---- */

static void begin(void)
{
	announce();
	qp_count = 0;
	setup();
}

static void test_traffic(void)
{
	begin();
	connect_pair(&a, &b);
	message_passes(&a, &b);
	message_passes(&b, &a);
	disconnect_pair(&a, &b);
	teardown();
}

static void test_peer_disconnects(void)
{
	begin();
	connect_pair(&a, &b);
	disconnect_pair(&b, &a);
	teardown();
}

static void ask(void)
{
	OK(dat_ep_connect(a.ep, env.address, env.qual, DAT_TIMEOUT_INFINITE, 0, NULL,
			  DAT_QOS_BEST_EFFORT, DAT_CONNECT_DEFAULT_FLAG));
}

/* The event of the active side holds what the peer sent with its answer. */
static void test_answer(void)
{
	DAT_EP_ATTR few = { .max_recv_dtos = 4,
			    .max_request_dtos = 4,
			    .max_recv_iov = 1,
			    .max_request_iov = 1,
			    .max_rdma_read_in = 1,
			    .max_rdma_read_out = 2 };
	char answer[] = "answer";
	DAT_CONNECTION_EVENT_DATA *data;
	DAT_EP_PARAM param;
	DAT_EVENT event;

	begin();
	end_close(&b);
	end_open(&env, &b, &few);
	ask();
	OK(dat_cr_accept(request_next(&env), b.ep, 6, answer));
	CU_ASSERT_TRUE_FATAL(event_next(a.conn, &event));
	CU_ASSERT_EQUAL(event.event_number, DAT_CONNECTION_EVENT_ESTABLISHED);
	data = &event.event_data.connect_event_data;
	CU_ASSERT_TRUE_FATAL(data->private_data_size >= 6);
	CU_ASSERT_EQUAL(memcmp(data->private_data, answer, 6), 0);
	expect(b.conn, DAT_CONNECTION_EVENT_ESTABLISHED, b.ep);
	OK(dat_ep_query(a.ep, DAT_EP_FIELD_ALL, &param));
	CU_ASSERT_EQUAL(param.ep_attr.max_rdma_read_in, 2);
	CU_ASSERT_EQUAL(param.ep_attr.max_rdma_read_out, 1);
	disconnect_pair(&a, &b);
	teardown();
}

static void ends_with(int error, DAT_EVENT_NUMBER number)
{
	begin();
	refusal = error;
	ask();
	expect(a.conn, number, a.ep);
	refusal = 0;
	teardown();
}

static void test_no_listener(void)
{
	ends_with(ECONNREFUSED, DAT_CONNECTION_EVENT_NON_PEER_REJECTED);
}

static void test_reset(void)
{
	ends_with(ECONNRESET, DAT_CONNECTION_EVENT_NON_PEER_REJECTED);
}

static void test_no_route(void)
{
	ends_with(EHOSTUNREACH, DAT_CONNECTION_EVENT_UNREACHABLE);
}

/* The CM has not heard of the requester's end; the device has. Here the requester is there, and learns of the refusal. */
static void test_requester_gone(void)
{
	DAT_CR_HANDLE cr;

	begin();
	ask();
	cr = request_next(&env);
	gone = true;
	OK(dat_cr_reject(cr, 0, NULL));
	expect(a.conn, DAT_CONNECTION_EVENT_NON_PEER_REJECTED, a.ep);
	gone = false;
	OK(dat_ep_reset(a.ep));
	ask();
	cr = request_next(&env);
	gone = true;
	OK(dat_cr_accept(cr, b.ep, 0, NULL));
	expect(b.conn, DAT_CONNECTION_EVENT_ACCEPT_COMPLETION_ERROR, b.ep);
	expect(a.conn, DAT_CONNECTION_EVENT_NON_PEER_REJECTED, a.ep);
	gone = false;
	teardown();
}

static void test_no_evds(void)
{
	DAT_EP_HANDLE ep;

	begin();
	MUST(dat_ep_create(env.ia, env.pz, DAT_HANDLE_NULL, DAT_HANDLE_NULL, DAT_HANDLE_NULL, NULL,
			   &ep));
	IS(dat_ep_post_recv(ep, 0, NULL, (DAT_DTO_COOKIE){ .as_64 = 0 }, 0),
	   E(INSUFFICIENT_RESOURCES, RESOURCE_MEMORY));
	OK(dat_ep_free(ep));
	teardown();
}

static const struct unit_test tests[] = {
	{ "a connection begins with ESTABLISHED on either side", test_traffic },
	{ "the passive side disconnects", test_peer_disconnects },
	{ "the answer brings its private data and its read depths", test_answer },
	{ "a host without the listener refuses in the call", test_no_listener },
	{ "a listener that closes resets in the call", test_reset },
	{ "a host out of reach fails in the call", test_no_route },
	{ "a request whose sender has gone cannot be answered", test_requester_gone },
	{ "an EP without a receive EVD has a queue of one entry", test_no_evds },
};

UNIT_MAIN("iwarp", tests)
