/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* dat_ep_modify on a device that refuses: nothing changes. */
#include "test/unit/rig.h"
#include "test/unit/same.h"

static void test_no_qp(void)
{
	DAT_EP_ATTR attr = rig_attr();
	DAT_EP_PARAM before, after, param;
	DAT_EVD_HANDLE recv, request;
	DAT_PZ_HANDLE pz;
	struct rig rig;
	struct ib_qp *qp;

	rig_open(&rig, &attr);
	recv = rig_evd(&rig, 8, DAT_EVD_DTO_FLAG);
	request = rig_evd(&rig, 8, DAT_EVD_DTO_FLAG);
	MUST(dat_pz_create(rig.ia, &pz));
	MUST(rig_recv(&rig, 1));
	qp = fake.qp;
	MUST(dat_ep_query(rig.ep, DAT_EP_FIELD_ALL, &before));
	param = before;
	param.pz_handle = pz;
	param.recv_evd_handle = recv;
	param.request_evd_handle = request;
	param.ep_attr.max_recv_dtos = 20;
	param.ep_attr.request_completion_flags = DAT_COMPLETION_UNSIGNALLED_FLAG;
	fake.refuse = E(INSUFFICIENT_RESOURCES, RESOURCE_MEMORY);
	IS(dat_ep_modify(rig.ep,
			 DAT_EP_FIELD_PZ_HANDLE | DAT_EP_FIELD_RECV_EVD_HANDLE |
				 DAT_EP_FIELD_REQUEST_EVD_HANDLE |
				 DAT_EP_FIELD_EP_ATTR_MAX_RECV_DTOS |
				 DAT_EP_FIELD_EP_ATTR_REQUEST_COMPLETION_FLAGS,
			 &param),
	   E(INSUFFICIENT_RESOURCES, RESOURCE_TEP));
	MUST(dat_ep_query(rig.ep, DAT_EP_FIELD_ALL, &after));
	CU_ASSERT_TRUE(ep_param_is_same(&before, &after));
	CU_ASSERT_FALSE(qp->error);
	/* the receive is still posted, and other objects are not held */
	rig_complete(rig.recv, fake.last.wr_id, DAT_DTO_SUCCESS, 10);
	CU_ASSERT_EQUAL(rig_take(rig.recv).event_data.dto_completion_event_data.user_cookie.as_64,
			1);
	MUST(dat_pz_free(pz));
	MUST(dat_evd_free(recv));
	MUST(dat_evd_free(request));
	IS(dat_evd_free(rig.recv), E(INVALID_STATE, INVALID_STATE_EVD_IN_USE));
	rig_close(&rig);
}

/* The flags are checked before the device is called. */
static void test_order(void)
{
	DAT_EP_ATTR attr = rig_attr();
	DAT_EP_PARAM param;
	DAT_EP_HANDLE other;
	struct rig rig;

	rig_open(&rig, &attr);
	MUST(dat_ep_create(rig.ia, rig.pz, rig.recv, rig.request, rig.conn, &attr, &other));
	MUST(dat_ep_query(rig.ep, DAT_EP_FIELD_ALL, &param));
	param.ep_attr.max_recv_dtos = 20;
	param.ep_attr.recv_completion_flags = DAT_COMPLETION_SOLICITED_WAIT_FLAG;
	fake.refuse = E(INSUFFICIENT_RESOURCES, RESOURCE_MEMORY);
	IS(dat_ep_modify(rig.ep,
			 DAT_EP_FIELD_EP_ATTR_MAX_RECV_DTOS |
				 DAT_EP_FIELD_EP_ATTR_RECV_COMPLETION_FLAGS,
			 &param),
	   E(INVALID_PARAMETER, INVALID_ARG3));
	CU_ASSERT_NOT_EQUAL(fake.refuse, DAT_SUCCESS);
	fake.refuse = DAT_SUCCESS;
	MUST(dat_ep_free(other));
	rig_close(&rig);
}

/* The deferred QP cannot be created when it is needed. */
static void test_deferred(void)
{
	DAT_EP_ATTR attr = rig_attr();
	DAT_EP_PARAM param = { .pz_handle = DAT_HANDLE_NULL };
	struct rig rig;

	rig_open(&rig, NULL);
	MUST(dat_ep_create(rig.ia, DAT_HANDLE_NULL, rig.recv, rig.request, rig.conn, &attr,
			   &rig.ep));
	CU_ASSERT_EQUAL(fake.qps, 0);
	param.pz_handle = rig.pz;
	fake.refuse = E(INSUFFICIENT_RESOURCES, RESOURCE_MEMORY);
	IS(dat_ep_modify(rig.ep, DAT_EP_FIELD_PZ_HANDLE, &param),
	   E(INSUFFICIENT_RESOURCES, RESOURCE_TEP));
	CU_ASSERT_EQUAL(fake.qps, 0);
	MUST(dat_ep_modify(rig.ep, DAT_EP_FIELD_PZ_HANDLE, &param));
	CU_ASSERT_EQUAL(fake.qps, 1);
	rig_connect(&rig);
	MUST(dat_ep_disconnect(rig.ep, DAT_CLOSE_ABRUPT_FLAG));
	rig_close(&rig);
}

/*
 * T25: a QP error that the device reports breaks the connection, once, with an event on both EVDs.
 */
static void test_qp_error(void)
{
	DAT_EP_ATTR attr = rig_attr();
	struct rig rig;
	DAT_EVENT event;

	rig_open(&rig, &attr);
	rig_connect(&rig);
	fake.upcalls.async(&fake.devices[0], IB_ASYNC_QP_ERROR, rig.ep);
	fake.upcalls.async(&fake.devices[0], IB_ASYNC_QP_ERROR, rig.ep);
	fake_run_timers();
	event = rig_take(rig.async);
	CU_ASSERT_EQUAL(event.event_number, DAT_ASYNC_ERROR_EP_BROKEN);
	CU_ASSERT_PTR_EQUAL(event.event_data.asynch_error_event_data.dat_handle, rig.ep);
	CU_ASSERT_EQUAL(event.event_data.asynch_error_event_data.reason, DAT_EP_TRANSFER_TO_ERROR);
	CU_ASSERT_EQUAL(rig_take(rig.conn).event_number, DAT_CONNECTION_EVENT_BROKEN);
	IS(dat_evd_dequeue(rig.conn, &event), DAT_QUEUE_EMPTY);
	CU_ASSERT_EQUAL(state_of(rig.ep), DAT_EP_STATE_DISCONNECTED);
	CU_ASSERT_TRUE(fake.qp->error);
	/* the disconnect that the CM reports later makes no event */
	fake.upcalls.conn(fake.conn->owner, fake.conn, IB_CONN_DISCONNECTED, NULL, 0);
	IS(dat_evd_dequeue(rig.conn, &event), DAT_QUEUE_EMPTY);
	rig_close(&rig);
}

/* ---- a QP whose receives are not flushed ---- */

struct changer {
	pthread_t thread;
	struct rig *rig;
	DAT_EP_PARAM param;
	struct ib_qp *old;
	DAT_RETURN status;
	atomic_bool ended;
};

static void *changer_run(void *arg)
{
	struct changer *changer = arg;

	changer->status = dat_ep_modify(changer->rig->ep, DAT_EP_FIELD_EP_ATTR_MAX_RECV_DTOS,
					&changer->param);
	atomic_store(&changer->ended, true);
	return NULL;
}

static bool changer_flushes(void *arg)
{
	struct changer *changer = arg;

	return __atomic_load_n(&changer->old->error, __ATOMIC_ACQUIRE);
}

/* The change waits one second for them, and holds no lock that calls on other objects need. */
static void test_flush_holds_no_lock(void)
{
	DAT_EP_ATTR attr = rig_attr();
	DAT_EP_PARAM now, other_now;
	DAT_EP_HANDLE other;
	DAT_EVD_HANDLE evd;
	struct rig rig;
	struct changer changer = { .rig = &rig };

	rig_open(&rig, &attr);
	MUST(dat_ep_create(rig.ia, rig.pz, rig.recv, rig.request, rig.conn, &attr, &other));
	MUST(dat_ep_query(other, DAT_EP_FIELD_ALL, &other_now));
	MUST(rig_recv(&rig, 1));
	MUST(dat_ep_query(rig.ep, DAT_EP_FIELD_ALL, &changer.param));
	changer.param.ep_attr.max_recv_dtos += 4;
	changer.old = ((struct dapl_ep *)rig.ep)->qp;
	CU_ASSERT_EQUAL_FATAL(pthread_create(&changer.thread, NULL, changer_run, &changer), 0);
	CU_ASSERT_TRUE(unit_wait_for(changer_flushes, &changer, UNIT_PATIENCE));
	evd = rig_evd(&rig, 8, DAT_EVD_DTO_FLAG); /* needs the lock of the IA */
	other_now.recv_evd_handle = evd;	  /* needs the lock of the streams */
	MUST(dat_ep_modify(other, DAT_EP_FIELD_RECV_EVD_HANDLE, &other_now));
	MUST(dat_ep_query(rig.ep, DAT_EP_FIELD_ALL, &now)); /* needs the lock of the EP */
	CU_ASSERT_FALSE(atomic_load(&changer.ended));
	CU_ASSERT_EQUAL(now.ep_attr.max_recv_dtos, changer.param.ep_attr.max_recv_dtos - 4);
	CU_ASSERT_EQUAL(pthread_join(changer.thread, NULL), 0);
	MUST(changer.status);
	MUST(dat_ep_query(rig.ep, DAT_EP_FIELD_ALL, &now));
	CU_ASSERT_TRUE(now.ep_attr.max_recv_dtos >= changer.param.ep_attr.max_recv_dtos);
	MUST(dat_ep_free(other));
	MUST(dat_evd_free(evd));
	rig_close(&rig);
}

static const struct unit_test tests[] = {
	{ "if no QP can be created, nothing changes", test_no_qp },
	{ "flags are checked before the device is called", test_order },
	{ "a deferred QP that is refused can be created later", test_deferred },
	{ "a change that waits for flushed receives holds no lock", test_flush_holds_no_lock },
	{ "a QP error: BROKEN once, and EP_BROKEN", test_qp_error },
};

UNIT_MAIN("ep_modify_fail", tests)
