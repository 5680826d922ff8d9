/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* Endpoints for datagrams where LIDs address the ports, and the CM reports no path of a request. */
#include <rdma/rdma_cma.h>
#include <stdlib.h>
#include <string.h>
#include "test/unit/announce.h"
#include "test/unit/datagram_ep.h"
#include "test/unit/ep_util.h"

#define GRH	40u
#define SL	5u
#define CLASS	0x68u
#define LID_ANY 0u

static struct {
	unsigned count;
	struct ibv_ah_attr to_requester, to_listener;
} handles;

int __real_rdma_resolve_route(struct rdma_cm_id *id, int timeout);
int __wrap_rdma_resolve_route(struct rdma_cm_id *id, int timeout);
struct ibv_ah *__real_ibv_create_ah(struct ibv_pd *pd, struct ibv_ah_attr *attr);
struct ibv_ah *__wrap_ibv_create_ah(struct ibv_pd *pd, struct ibv_ah_attr *attr);

/* A path of another service level than the default one. */
int __wrap_rdma_resolve_route(struct rdma_cm_id *id, int timeout)
{
	int result = __real_rdma_resolve_route(id, timeout);

	if (!result) {
		id->route.path_rec->sl = SL;
		id->route.path_rec->traffic_class = CLASS;
	}
	return result;
}

/* The passive side makes its handle first, in dat_cr_accept. */
struct ibv_ah *__wrap_ibv_create_ah(struct ibv_pd *pd, struct ibv_ah_attr *attr)
{
	if (handles.count++)
		handles.to_listener = *attr;
	else
		handles.to_requester = *attr;
	return __real_ibv_create_ah(pd, attr);
}

static DAT_IB_ADDR_HANDLE peer_of(struct end *end)
{
	const DAT_IB_EXTENSION_EVENT_DATA *data;
	DAT_EVENT event = { 0 };

	CU_ASSERT_TRUE_FATAL(event_next(end->conn, &event));
	CU_ASSERT_EQUAL_FATAL((int)event.event_number, (int)DAT_IB_UD_CONNECTION_EVENT_ESTABLISHED);
	data = (const DAT_IB_EXTENSION_EVENT_DATA *)(const void *)event.event_extension_data;
	return data->remote_ah;
}

static void datagram(struct env *env, struct end *from, DAT_IB_ADDR_HANDLE *to, struct end *at)
{
	DAT_LMR_TRIPLET source = segment(env, 0, 8), target = segment(env, 4096, GRH + 8);
	DAT_DTO_COOKIE cookie = { .as_64 = 1 };
	DAT_EVENT event = { 0 };

	MUST(dat_ep_post_recv(at->ep, 1, &target, cookie, 0));
	MUST(dat_ib_post_send_ud(from->ep, 1, &source, to, cookie, 0));
	CU_ASSERT_TRUE_FATAL(event_next(from->request, &event));
	CU_ASSERT_TRUE_FATAL(event_next(at->recv, &event));
	CU_ASSERT_EQUAL(event.event_data.dto_completion_event_data.transfered_length, GRH + 8);
}

static void test_both_ways(void)
{
	DAT_EP_ATTR attr = datagram_attr();
	DAT_IB_ADDR_HANDLE to_listener, to_requester;
	DAT_EVENT event = { 0 };
	struct end a, b;
	struct env env;

	announce();
	setenv("SOFTVERBS_LINK", "infiniband", 1);
	env_open(&env);
	env_listen(&env);
	end_open(&env, &a, &attr);
	end_open(&env, &b, &attr);
	MUST(dat_ep_connect(a.ep, env.address, env.qual, PATIENCE, 0, NULL, DAT_QOS_BEST_EFFORT,
			    DAT_CONNECT_DEFAULT_FLAG));
	CU_ASSERT_TRUE_FATAL(event_next(env.cr, &event));
	MUST(dat_cr_accept(event.event_data.cr_arrival_event_data.cr_handle, b.ep, 0, NULL));
	to_requester = peer_of(&b);
	to_listener = peer_of(&a);
	CU_ASSERT_EQUAL(handles.count, 2);
	CU_ASSERT_NOT_EQUAL(handles.to_listener.dlid, LID_ANY);
	CU_ASSERT_EQUAL(handles.to_requester.dlid, handles.to_listener.dlid);
	CU_ASSERT_EQUAL(handles.to_requester.sl, SL);
	CU_ASSERT_EQUAL(handles.to_requester.grh.traffic_class, CLASS);
	CU_ASSERT_EQUAL(memcmp(&handles.to_requester.grh.dgid, &handles.to_listener.grh.dgid, 16),
			0);
	datagram(&env, &a, &to_listener, &b);
	datagram(&env, &b, &to_requester, &a);
	end_close(&a);
	end_close(&b);
	env_close(&env);
	unsetenv("SOFTVERBS_LINK");
}

static const struct unit_test tests[] = {
	{ "both sides of a request send to each other, by LID and service level", test_both_ways },
};

UNIT_MAIN("ud_infiniband", tests)
