/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* Interface adapters: open, query, close, and delivery of the device's errors. */
#include <unistd.h>
#include "test/unit/rig.h"

static DAT_RETURN open_as(const char *name, DAT_COUNT qlen, DAT_EVD_HANDLE *async,
			  DAT_IA_HANDLE *ia)
{
	rig_announce();
	return dat_ia_open((char *)(uintptr_t)name, qlen, async, ia);
}

static void close_ia(DAT_IA_HANDLE ia)
{
	MUST(dat_ia_close(ia, DAT_CLOSE_GRACEFUL_FLAG));
}

static void test_open_checks(void)
{
	DAT_EVD_HANDLE async = DAT_HANDLE_NULL;
	DAT_IA_HANDLE ia = DAT_HANDLE_NULL;
	char unknown[] = "unknown";

	rig_announce();
	IS(dapl_ia_open(unknown, 8, &async, &ia), E(INVALID_PARAMETER, INVALID_ARG1));
	IS(dapl_ia_open((char *)(uintptr_t) "fake", 8, &async, NULL),
	   E(INVALID_PARAMETER, INVALID_ARG4));
	IS(dapl_ia_open((char *)(uintptr_t) "fake", 8, NULL, &ia),
	   E(INVALID_PARAMETER, INVALID_ARG3));
	IS(open_as("fake", 0, &async, &ia), E(INVALID_PARAMETER, INVALID_ARG2));
	IS(open_as("fake", -1, &async, &ia), E(INVALID_PARAMETER, INVALID_ARG2));
	IS(open_as("fake", FAKE_MAX_CQE + 1, &async, &ia),
	   E(INSUFFICIENT_RESOURCES, RESOURCE_TEVD));
	fake.refuse = E0(INVALID_ADDRESS);
	IS(open_as("fake", 8, &async, &ia), E0(INVALID_ADDRESS));
	CU_ASSERT_PTR_NULL(async);
	CU_ASSERT_PTR_NULL(ia);
	CU_ASSERT_EQUAL(fake.devices[0].opens, 0);
}

static void test_async_evd_of_open(void)
{
	DAT_EVD_HANDLE async = DAT_HANDLE_NULL, asked = DAT_HANDLE_NULL;
	DAT_IA_HANDLE ia = rig_ia("fake", &async);
	DAT_EVD_PARAM param;

	MUST(dat_evd_query(async, DAT_EVD_FIELD_ALL, &param));
	CU_ASSERT_EQUAL(param.evd_flags, DAT_EVD_ASYNC_FLAG);
	CU_ASSERT_EQUAL(param.evd_state & 0xf, DAT_EVD_STATE_ENABLED | DAT_EVD_STATE_WAITABLE);
	CU_ASSERT_TRUE(param.evd_qlen >= RIG_QLEN);
	CU_ASSERT_PTR_EQUAL(param.ia_handle, ia);
	CU_ASSERT_PTR_NULL(param.cno_handle);
	MUST(dat_ia_query(ia, &asked, 0, NULL, 0, NULL));
	CU_ASSERT_PTR_EQUAL(asked, async);
	IS(dat_evd_free(async), E(INVALID_STATE, INVALID_STATE_EVD_IN_USE));
	close_ia(ia);
	IS(dat_evd_free(async), E(INVALID_HANDLE, INVALID_HANDLE_EVD_REQUEST));
	IS(dat_ia_close(ia, DAT_CLOSE_GRACEFUL_FLAG), E(INVALID_HANDLE, INVALID_HANDLE_IA));
}

static void test_async_evd_passed_in(void)
{
	DAT_EVD_HANDLE async = DAT_HANDLE_NULL, given, asked, conn = DAT_HANDLE_NULL;
	DAT_IA_HANDLE first = rig_ia("fake", &async), second = DAT_HANDLE_NULL;

	MUST(dat_evd_create(first, 4, DAT_HANDLE_NULL, DAT_EVD_CONNECTION_FLAG, &conn));
	given = conn;
	IS(open_as("fake", 8, &given, &second), E(INVALID_HANDLE, INVALID_HANDLE_EVD_ASYNC));
	given = DAT_EVD_OUT_OF_SCOPE;
	IS(open_as("fake", 8, &given, &second), E(INVALID_HANDLE, INVALID_HANDLE_EVD_ASYNC));
	given = async;
	IS(open_as("fake1", 8, &given, &second), E(INVALID_HANDLE, INVALID_HANDLE_EVD_ASYNC));
	CU_ASSERT_EQUAL(fake.devices[0].opens, 1);
	/* the length is ignored */
	MUST(open_as("fake", -1, &given, &second));
	CU_ASSERT_PTR_EQUAL(given, async);
	MUST(dat_ia_query(second, &asked, 0, NULL, 0, NULL));
	CU_ASSERT_PTR_EQUAL(asked, async);
	MUST(dat_evd_free(conn));
	IS(dat_ia_close(first, DAT_CLOSE_GRACEFUL_FLAG), E(INVALID_STATE, INVALID_STATE_IA_IN_USE));
	close_ia(second);
	close_ia(first);
}

static void test_async_exists(void)
{
	DAT_EVD_HANDLE async = DAT_HANDLE_NULL, exists = DAT_EVD_ASYNC_EXISTS, asked;
	DAT_IA_HANDLE first = rig_ia("fake", &async), second = DAT_HANDLE_NULL;
	DAT_EVENT event;

	MUST(open_as("fake", 0, &exists, &second));
	CU_ASSERT_PTR_EQUAL(exists, DAT_EVD_ASYNC_EXISTS);
	MUST(dat_ia_query(second, &asked, 0, NULL, 0, NULL));
	CU_ASSERT_PTR_EQUAL(asked, DAT_EVD_OUT_OF_SCOPE);
	/* its errors go to the other IA, and a device error is reported once */
	fake.upcalls.async(&fake.devices[0], IB_ASYNC_PORT_ERROR, NULL);
	event = rig_take(async);
	CU_ASSERT_EQUAL(event.event_number, DAT_ASYNC_ERROR_PROVIDER_INTERNAL_ERROR);
	CU_ASSERT_PTR_EQUAL(event.event_data.asynch_error_event_data.dat_handle, first);
	IS(dat_evd_dequeue(async, &event), DAT_QUEUE_EMPTY);
	close_ia(first);
	/* no IA is left that could report the error */
	fake.upcalls.async(&fake.devices[0], IB_ASYNC_DEVICE_FATAL, NULL);
	close_ia(second);
}

static void test_device_errors_reach_every_instance_once(void)
{
	DAT_EVD_HANDLE one = DAT_HANDLE_NULL, two = DAT_HANDLE_NULL, elsewhere = DAT_HANDLE_NULL;
	DAT_IA_HANDLE first = rig_ia("fake", &one), second = rig_ia("fake", &two), third, other;
	DAT_EVD_HANDLE shared;
	DAT_EVENT event;

	other = rig_ia("fake1", &elsewhere);
	shared = two;
	MUST(open_as("fake", 8, &shared, &third));
	fake.upcalls.async(&fake.devices[0], IB_ASYNC_DEVICE_FATAL, NULL);
	event = rig_take(one);
	CU_ASSERT_EQUAL(event.event_number, DAT_ASYNC_ERROR_IA_CATASTROPHIC);
	CU_ASSERT_EQUAL(event.event_data.asynch_error_event_data.reason, DAT_IA_CATASTROPHIC_ERROR);
	CU_ASSERT_PTR_EQUAL(event.event_data.asynch_error_event_data.dat_handle, first);
	event = rig_take(two);
	CU_ASSERT_PTR_EQUAL(event.event_data.asynch_error_event_data.dat_handle, second);
	IS(dat_evd_dequeue(one, &event), DAT_QUEUE_EMPTY);
	IS(dat_evd_dequeue(two, &event), DAT_QUEUE_EMPTY);
	IS(dat_evd_dequeue(elsewhere, &event), DAT_QUEUE_EMPTY);
	close_ia(third);
	close_ia(second);
	close_ia(first);
	close_ia(other);
}

static void test_query_checks(void)
{
	DAT_EVD_HANDLE async = DAT_HANDLE_NULL;
	DAT_IA_HANDLE ia = rig_ia("fake", &async);
	DAT_IA_ATTR attr;
	DAT_PROVIDER_ATTR provider;

	IS(dat_ia_query(async, NULL, 0, NULL, 0, NULL), E(INVALID_HANDLE, INVALID_HANDLE_IA));
	IS(dat_ia_query(ia, NULL, DAT_IA_FIELD_ALL + 1, &attr, 0, NULL),
	   E(INVALID_PARAMETER, INVALID_ARG3));
	IS(dat_ia_query(ia, NULL, 1, NULL, 0, NULL), E(INVALID_PARAMETER, INVALID_ARG4));
	IS(dat_ia_query(ia, NULL, 0, NULL, DAT_PROVIDER_FIELD_ALL + 1, &provider),
	   E(INVALID_PARAMETER, INVALID_ARG5));
	IS(dat_ia_query(ia, NULL, 0, NULL, 1, NULL), E(INVALID_PARAMETER, INVALID_ARG6));
	MUST(dat_ia_query(ia, NULL, 0, NULL, 0, NULL));
	close_ia(ia);
}

static void test_ia_attributes(void)
{
	DAT_EVD_HANDLE async = DAT_HANDLE_NULL;
	DAT_IA_HANDLE ia = rig_ia("fake", &async);
	DAT_IA_ATTR attr;

	memset(&attr, 0xee, sizeof(attr));
	MUST(dat_ia_query(ia, NULL, DAT_IA_FIELD_IA_ADAPTER_NAME, &attr, 0, NULL));
	CU_ASSERT_STRING_EQUAL(attr.adapter_name, "fake0");
	CU_ASSERT_EQUAL(attr.firmware_version_major, 2);
	CU_ASSERT_EQUAL(attr.firmware_version_minor, 42);
	CU_ASSERT_EQUAL(attr.hardware_version_major, 7);
	CU_ASSERT_EQUAL(attr.ia_address_ptr->sa_family, AF_INET);
	CU_ASSERT_EQUAL(attr.max_eps, 1000);
	CU_ASSERT_EQUAL(attr.max_dto_per_ep, FAKE_MAX_WR);
	CU_ASSERT_EQUAL(attr.max_evd_qlen, FAKE_MAX_CQE);
	CU_ASSERT_EQUAL(attr.max_evds, 900);
	CU_ASSERT_EQUAL(attr.max_lmrs, 800);
	CU_ASSERT_EQUAL(attr.max_pzs, 700);
	CU_ASSERT_EQUAL(attr.max_lmr_block_size, UINT32_MAX);
	CU_ASSERT_EQUAL(attr.max_iov_segments_per_dto, FAKE_MAX_SGE);
	CU_ASSERT_EQUAL(attr.max_iov_segments_per_rdma_read, 2);
	CU_ASSERT_EQUAL(attr.max_iov_segments_per_rdma_write, FAKE_MAX_SGE);
	CU_ASSERT_EQUAL(attr.max_message_size, FAKE_MAX_MESSAGE);
	CU_ASSERT_EQUAL(attr.max_rdma_read_per_ep_in, 16);
	CU_ASSERT_EQUAL(attr.max_rdma_read_per_ep_out, 15);
	CU_ASSERT_EQUAL(attr.max_rdma_read_in, 4000);
	CU_ASSERT_EQUAL(attr.max_rdma_read_per_ep_in_guaranteed, DAT_FALSE);
	CU_ASSERT_EQUAL(attr.max_srqs, 50);
	CU_ASSERT_EQUAL(attr.max_recv_per_srq, 32);
	CU_ASSERT_EQUAL(attr.max_ep_per_srq, 1000);
	CU_ASSERT_EQUAL(attr.zb_supported, DAT_TRUE);
	close_ia(ia);
}

static const char *named(const DAT_PROVIDER_ATTR *attr, const char *name)
{
	DAT_COUNT i;

	for (i = 0; i < attr->num_provider_specific_attr; i++)
		if (!strcmp(attr->provider_specific_attr[i].name, name))
			return attr->provider_specific_attr[i].value;
	return "absent";
}

static void test_provider_attributes(void)
{
	DAT_EVD_HANDLE async = DAT_HANDLE_NULL;
	DAT_IA_HANDLE ia = rig_ia("fake", &async);
	DAT_PROVIDER_ATTR attr;
	int i;

	memset(&attr, 0xee, sizeof(attr));
	MUST(dat_ia_query(ia, NULL, 0, NULL, DAT_PROVIDER_FIELD_PROVIDER_NAME, &attr));
	CU_ASSERT_STRING_EQUAL(attr.provider_name, "fake");
	CU_ASSERT_EQUAL(attr.dapl_version_major, 2);
	CU_ASSERT_EQUAL(attr.dapl_version_minor, 0);
	CU_ASSERT_EQUAL(attr.completion_flags_supported, 0x1f);
	/* whatever dat.conf says, and however it is queried */
	CU_ASSERT_EQUAL(attr.is_thread_safe, DAT_TRUE);
	MUST(dat_ia_query(ia, NULL, 0, NULL, DAT_PROVIDER_FIELD_ALL, &attr));
	CU_ASSERT_EQUAL(attr.is_thread_safe, DAT_TRUE);
	CU_ASSERT_EQUAL(attr.max_private_data_size, 56);
	CU_ASSERT_EQUAL(attr.iov_ownership_on_return, DAT_IOV_CONSUMER);
	CU_ASSERT_EQUAL(attr.pz_support, DAT_PZ_UNIQUE);
	for (i = 0; i < 36; i++)
		CU_ASSERT_EQUAL(attr.evd_stream_merging_supported[i / 6][i % 6], DAT_TRUE);
	CU_ASSERT_EQUAL(attr.srq_supported, DAT_TRUE);
	CU_ASSERT_EQUAL(attr.srq_ep_pz_difference_supported, DAT_TRUE);
	CU_ASSERT_EQUAL(attr.lmr_sync_req, DAT_FALSE);
	CU_ASSERT_EQUAL(attr.is_signal_safe, DAT_FALSE);
	CU_ASSERT_EQUAL(attr.rdma_write_for_rdma_read_req, DAT_FALSE);
	CU_ASSERT_STRING_EQUAL(named(&attr, "DAT_IB_DEVICE_NAME"), "fake0");
	CU_ASSERT_STRING_EQUAL(named(&attr, "DAT_IB_RDMA_READ"), "TRUE");
	CU_ASSERT_STRING_EQUAL(named(&attr, "DAT_IB_NODE_GUID"), "0002:c903:00ab:cdef");
	CU_ASSERT_STRING_EQUAL(named(&attr, "DAT_IB_TRANSPORT_MTU"), "4096");
	CU_ASSERT_STRING_EQUAL(named(&attr, "DAT_IB_PORT_STATUS"), "ACTIVE");
	CU_ASSERT_STRING_EQUAL(named(&attr, "DAT_IB_PORT_NUMBER"), "1");
	close_ia(ia);
}

static void test_graceful_close_refuses(void)
{
	DAT_SRQ_ATTR srq_attr = { .max_recv_dtos = 4, .max_recv_iov = 1 };
	DAT_REGION_DESCRIPTION region = { .for_va = &srq_attr };
	DAT_EP_ATTR attr = rig_attr();
	DAT_EVD_HANDLE cr;
	DAT_SRQ_HANDLE srq;
	DAT_LMR_HANDLE lmr;
	DAT_PSP_HANDLE psp = DAT_HANDLE_NULL;
	DAT_IA_HANDLE ia;
	struct rig rig;

	rig_open(&rig, &attr);
	ia = rig.ia;
	IS(dat_ia_close(ia, 2), E(INVALID_PARAMETER, INVALID_ARG2));
	cr = rig_evd(&rig, 4, DAT_EVD_CR_FLAG);
	MUST(dat_srq_create(ia, rig.pz, &srq_attr, &srq));
	MUST(dat_lmr_create(ia, DAT_MEM_TYPE_VIRTUAL, region, sizeof(srq_attr), rig.pz,
			    DAT_MEM_PRIV_ALL_FLAG, DAT_VA_TYPE_VA, &lmr, NULL, NULL, NULL, NULL));
	MUST(dat_psp_create(ia, 4711, cr, DAT_PSP_CONSUMER_FLAG, &psp));
#define REFUSED() \
	IS(dat_ia_close(ia, DAT_CLOSE_GRACEFUL_FLAG), E(INVALID_STATE, INVALID_STATE_IA_IN_USE))
	REFUSED();
	MUST(dat_psp_free(psp));
	MUST(dat_ep_free(rig.ep));
	REFUSED();
	MUST(dat_evd_free(cr));
	MUST(dat_evd_free(rig.conn));
	MUST(dat_evd_free(rig.recv));
	REFUSED();
	MUST(dat_evd_free(rig.request));
	REFUSED();
	MUST(dat_lmr_free(lmr));
	REFUSED();
	MUST(dat_srq_free(srq));
	REFUSED();
	MUST(dat_pz_free(rig.pz));
	close_ia(ia);
}

static void test_abrupt_close_takes_everything(void)
{
	DAT_SRQ_ATTR srq_attr = { .max_recv_dtos = 4, .max_recv_iov = 1 };
	DAT_REGION_DESCRIPTION region = { .for_va = &srq_attr };
	DAT_EP_ATTR attr = rig_attr();
	DAT_EP_HANDLE ep = DAT_HANDLE_NULL;
	DAT_SRQ_HANDLE srq;
	DAT_LMR_HANDLE lmr;
	struct rig rig;

	rig_open(&rig, &attr);
	MUST(dat_srq_create(rig.ia, rig.pz, &srq_attr, &srq));
	MUST(dat_lmr_create(rig.ia, DAT_MEM_TYPE_VIRTUAL, region, sizeof(srq_attr), rig.pz,
			    DAT_MEM_PRIV_ALL_FLAG, DAT_VA_TYPE_VA, &lmr, NULL, NULL, NULL, NULL));
	attr.max_recv_dtos = 0;
	MUST(dat_ep_create_with_srq(rig.ia, rig.pz, rig.recv, rig.request, rig.conn, srq, &attr,
				    &ep));
	MUST(dat_srq_post_recv(srq, 0, NULL, (DAT_DTO_COOKIE){ .as_64 = 1 }));
	rig_connect(&rig);
	MUST(rig_recv(&rig, 1));
	MUST(rig_send(&rig, 2, 0));
	MUST(dat_ia_close(rig.ia, DAT_CLOSE_ABRUPT_FLAG));
	CU_ASSERT_EQUAL(fake.pds + fake.mrs + fake.cqs + fake.qps + fake.srqs + fake.conns, 0);
	CU_ASSERT_EQUAL(fake.devices[0].opens, 0);
	IS(dat_ep_free(rig.ep), E(INVALID_HANDLE, INVALID_HANDLE_EP));
	IS(dat_srq_free(srq), E(INVALID_HANDLE, INVALID_HANDLE_SRQ));
	IS(dat_pz_free(rig.pz), E(INVALID_HANDLE, INVALID_HANDLE_PZ));
	IS(dat_lmr_free(lmr), E(INVALID_HANDLE, INVALID_HANDLE_LMR));
}

static void test_abrupt_close_under_an_endpoint_of_another_instance(void)
{
	DAT_EVD_HANDLE async = DAT_HANDLE_NULL, conn = DAT_HANDLE_NULL, given;
	DAT_IA_HANDLE owner = rig_ia("fake", &async);
	DAT_EP_ATTR attr = rig_attr();
	struct rig rig;

	MUST(dat_evd_create(owner, 4, DAT_HANDLE_NULL, DAT_EVD_CONNECTION_FLAG, &conn));
	rig_open(&rig, NULL);
	given = rig.conn;
	rig.conn = conn;
	MUST(dat_ep_create(rig.ia, rig.pz, rig.recv, rig.request, conn, &attr, &rig.ep));
	rig_start_connect(&rig);
	MUST(dat_ia_close(owner, DAT_CLOSE_ABRUPT_FLAG));
	/* the connection's event is dropped, because its EVD no longer exists */
	rig_establish();
	IS(dat_evd_free(conn), E(INVALID_HANDLE, INVALID_HANDLE_EVD_REQUEST));
	MUST(dat_ep_free(rig.ep));
	rig.ep = DAT_HANDLE_NULL;
	rig.conn = given;
	rig_close(&rig);
}

static void test_errors_of_objects(void)
{
	DAT_EP_ATTR attr = rig_attr();
	DAT_EVENT event;
	struct rig rig;

	rig_open(&rig, &attr);
	fake.upcalls.async(&fake.devices[0], IB_ASYNC_QP_ERROR, rig.ep);
	event = rig_take(rig.async);
	CU_ASSERT_EQUAL(event.event_number, DAT_ASYNC_ERROR_EP_BROKEN);
	CU_ASSERT_PTR_EQUAL(event.event_data.asynch_error_event_data.dat_handle, rig.ep);
	CU_ASSERT_EQUAL(event.event_data.asynch_error_event_data.reason, DAT_EP_TRANSFER_TO_ERROR);
	fake.upcalls.async(&fake.devices[0], IB_ASYNC_CQ_ERROR, rig.recv);
	event = rig_take(rig.async);
	CU_ASSERT_EQUAL(event.event_number, DAT_ASYNC_ERROR_EVD_OVERFLOW);
	CU_ASSERT_PTR_EQUAL(event.event_data.asynch_error_event_data.dat_handle, rig.recv);
	CU_ASSERT_EQUAL(event.event_data.asynch_error_event_data.reason, DAT_EVD_OVERFLOW_ERROR);
	rig_close(&rig);
}

/*
 * The post finds a failure of the async EVD's own CQ, which makes an async event, too. If the post
 * held a lock that this second event needs, it would deadlock.
 */
static void test_async_evd_with_a_failed_cq(void)
{
	DAT_EVENT event;
	DAT_EVD_HANDLE shared;
	DAT_IA_HANDLE ia;
	struct rig rig;

	rig_open(&rig, NULL);
	shared = rig_evd(&rig, RIG_QLEN, DAT_EVD_ASYNC_FLAG | DAT_EVD_DTO_FLAG);
	MUST(dat_ia_open((char *)(uintptr_t) "fake", RIG_QLEN, &shared, &ia));
	rig_cq(shared)->failing = true;
	alarm(30);
	fake.upcalls.async(&fake.devices[0], IB_ASYNC_PORT_ERROR, NULL);
	alarm(0);
	CU_ASSERT_EQUAL(rig_take(shared).event_number, DAT_ASYNC_ERROR_PROVIDER_INTERNAL_ERROR);
	CU_ASSERT_EQUAL(rig_take(rig.async).event_number, DAT_ASYNC_ERROR_PROVIDER_INTERNAL_ERROR);
	event = rig_take(rig.async);
	CU_ASSERT_EQUAL(event.event_number, DAT_ASYNC_ERROR_EVD_OVERFLOW);
	CU_ASSERT_PTR_EQUAL(event.event_data.asynch_error_event_data.dat_handle, shared);
	close_ia(ia);
	MUST(dat_evd_free(shared));
	rig_close(&rig);
}

static const struct unit_test tests[] = {
	{ "open: every check; a failure leaves nothing behind", test_open_checks },
	{ "an open creates an async EVD of the requested length", test_async_evd_of_open },
	{ "an async EVD that is passed in cannot be freed", test_async_evd_passed_in },
	{ "ASYNC_EXISTS routes to the other instance", test_async_exists },
	{ "an async EVD whose own CQ failed takes async events", test_async_evd_with_a_failed_cq },
	{ "device errors reach each distinct async EVD once",
	  test_device_errors_reach_every_instance_once },
	{ "query checks", test_query_checks },
	{ "IA attributes are the device's, whatever the mask", test_ia_attributes },
	{ "provider attributes and named ones", test_provider_attributes },
	{ "a graceful close fails with an object of any kind", test_graceful_close_refuses },
	{ "an abrupt close frees everything", test_abrupt_close_takes_everything },
	{ "an abrupt close drops later events of another instance's endpoint",
	  test_abrupt_close_under_an_endpoint_of_another_instance },
	{ "errors of endpoints and CQs name the object", test_errors_of_objects },
};

UNIT_MAIN("ia", tests)
