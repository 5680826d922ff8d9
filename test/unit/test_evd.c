/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* Event dispatchers: their calls, the order of events, and overflow. */
#include "test/unit/rig.h"

static uintptr_t pointer(const DAT_EVENT *event)
{
	CU_ASSERT_EQUAL(event->event_number, DAT_SOFTWARE_EVENT);
	return (uintptr_t)event->event_data.software_event_data.pointer;
}

static void test_create_checks(void)
{
	DAT_EVD_HANDLE evd = DAT_HANDLE_NULL;
	struct rig rig;

	rig_open(&rig, NULL);
	IS(dat_evd_create(rig.pz, 4, NULL, DAT_EVD_DTO_FLAG, &evd),
	   E(INVALID_HANDLE, INVALID_HANDLE_IA));
	IS(dat_evd_create(rig.ia, 0, NULL, DAT_EVD_DTO_FLAG, &evd),
	   E(INVALID_PARAMETER, INVALID_ARG2));
	IS(dat_evd_create(rig.ia, FAKE_MAX_CQE + 1, NULL, DAT_EVD_DTO_FLAG, &evd),
	   E(INSUFFICIENT_RESOURCES, RESOURCE_TEVD));
	IS(dat_evd_create(rig.ia, 4, rig.pz, DAT_EVD_DTO_FLAG, &evd),
	   E(INVALID_HANDLE, INVALID_HANDLE_CNO));
	IS(dat_evd_create(rig.ia, 4, NULL, 0, &evd), E(INVALID_PARAMETER, INVALID_ARG4));
	IS(dat_evd_create(rig.ia, 4, NULL, 0x400, &evd), E(INVALID_PARAMETER, INVALID_ARG4));
	IS(dat_evd_create(rig.ia, 4, NULL, 0x2, &evd), E(INVALID_PARAMETER, INVALID_ARG4));
	IS(dat_evd_create(rig.ia, 4, NULL, DAT_EVD_DTO_FLAG, NULL),
	   E(INVALID_PARAMETER, INVALID_ARG5));
	fake.refuse = E(INSUFFICIENT_RESOURCES, RESOURCE_MEMORY);
	IS(dat_evd_create(rig.ia, 4, NULL, DAT_EVD_DTO_FLAG, &evd),
	   E(INSUFFICIENT_RESOURCES, RESOURCE_TEVD));
	CU_ASSERT_PTR_NULL(evd);
	rig_close(&rig);
}

static void test_every_combination_of_flags(void)
{
	static const DAT_EVD_FLAGS kinds[] = {
		DAT_EVD_SOFTWARE_FLAG,	 DAT_EVD_CR_FLAG,	DAT_EVD_DTO_FLAG,
		DAT_EVD_CONNECTION_FLAG, DAT_EVD_RMR_BIND_FLAG, DAT_EVD_ASYNC_FLAG,
	};
	unsigned mask, i, flags, cqs;
	DAT_EVD_HANDLE evd;
	struct rig rig;

	rig_open(&rig, NULL);
	cqs = fake.cqs;
	for (mask = 1; mask < 1u << COUNT(kinds); mask++) {
		for (flags = 0, i = 0; i < COUNT(kinds); i++)
			flags |= mask >> i & 1 ? kinds[i] : 0;
		MUST(dat_evd_create(rig.ia, 4, NULL, flags, &evd));
		CU_ASSERT_EQUAL(fake.cqs - cqs,
				(flags & (DAT_EVD_DTO_FLAG | DAT_EVD_RMR_BIND_FLAG)) != 0);
		MUST(dat_evd_free(evd));
	}
	MUST(dat_evd_create(rig.ia, 4, NULL, DAT_EVD_DEFAULT_FLAG, &evd));
	MUST(dat_evd_free(evd));
	rig_close(&rig);
}

static void test_query(void)
{
	DAT_EVD_PARAM param;
	struct rig rig;

	rig_open(&rig, NULL);
	IS(dat_evd_query(rig.pz, DAT_EVD_FIELD_ALL, &param),
	   E(INVALID_HANDLE, INVALID_HANDLE_EVD_REQUEST));
	IS(dat_evd_query(DAT_EVD_ASYNC_EXISTS, DAT_EVD_FIELD_ALL, &param),
	   E(INVALID_HANDLE, INVALID_HANDLE_EVD_REQUEST));
	IS(dat_evd_query(rig.recv, 0x20, &param), E(INVALID_PARAMETER, INVALID_ARG2));
	IS(dat_evd_query(rig.recv, 0, NULL), E(INVALID_PARAMETER, INVALID_ARG3));
	MUST(dat_evd_query(rig.recv, DAT_EVD_FIELD_EVD_QLEN, &param));
	CU_ASSERT_TRUE(param.evd_qlen >= RIG_QLEN);
	CU_ASSERT_PTR_EQUAL(param.ia_handle, rig.ia);
	CU_ASSERT_EQUAL(param.evd_flags, DAT_EVD_DTO_FLAG | DAT_EVD_SOFTWARE_FLAG);
	CU_ASSERT_EQUAL(param.evd_state, DAT_EVD_STATE_ENABLED | DAT_EVD_STATE_WAITABLE |
						 DAT_EVD_STATE_CONFIG_THRESHOLD);
	MUST(dat_evd_set_unwaitable(rig.recv));
	MUST(dat_evd_query(rig.recv, DAT_EVD_FIELD_ALL, &param));
	CU_ASSERT_EQUAL(param.evd_state & DAT_EVD_STATE_UNWAITABLE, DAT_EVD_STATE_UNWAITABLE);
	MUST(dat_evd_clear_unwaitable(rig.recv));
	rig_close(&rig);
}

static void test_free_in_use(void)
{
	DAT_EP_ATTR attr = rig_attr();
	DAT_EVD_HANDLE spare;
	struct rig rig;

	rig_open(&rig, &attr);
	IS(dat_evd_free(rig.recv), E(INVALID_STATE, INVALID_STATE_EVD_IN_USE));
	IS(dat_evd_free(rig.request), E(INVALID_STATE, INVALID_STATE_EVD_IN_USE));
	IS(dat_evd_free(rig.conn), E(INVALID_STATE, INVALID_STATE_EVD_IN_USE));
	IS(dat_evd_free(rig.ia), E(INVALID_HANDLE, INVALID_HANDLE_EVD_REQUEST));
	spare = rig_evd(&rig, 4, DAT_EVD_DTO_FLAG);
	fake.refuse = E0(CONN_QUAL_IN_USE); /* the device refuses to destroy the CQ */
	IS(dat_evd_free(spare), E0(INTERNAL_ERROR));
	MUST(dat_evd_free(spare));
	rig_close(&rig);
}

static void test_post_se_checks(void)
{
	DAT_EVENT event = { .event_number = DAT_SOFTWARE_EVENT };
	DAT_COUNT i;
	struct rig rig;

	rig_open(&rig, NULL);
	IS(dat_evd_post_se(rig.pz, &event), E(INVALID_HANDLE, INVALID_HANDLE_EVD_REQUEST));
	IS(dat_evd_post_se(rig.request, &event), E(INVALID_PARAMETER, INVALID_ARG1));
	IS(dat_evd_post_se(rig.recv, NULL), E(INVALID_PARAMETER, INVALID_ARG2));
	event.event_number = DAT_DTO_COMPLETION_EVENT;
	IS(dat_evd_post_se(rig.recv, &event), E(INVALID_PARAMETER, INVALID_ARG2));
	for (i = 0; i < RIG_QLEN; i++)
		MUST(rig_post_se(rig.recv, (uintptr_t)i));
	IS(rig_post_se(rig.recv, 99), E0(QUEUE_FULL));
	/* the caller gets the error, so there is no async event */
	IS(dat_evd_dequeue(rig.async, &event), DAT_QUEUE_EMPTY);
	for (i = 0; i < RIG_QLEN; i++) {
		event = rig_take(rig.recv);
		CU_ASSERT_EQUAL(pointer(&event), (uintptr_t)i);
	}
	IS(dat_evd_dequeue(rig.recv, &event), DAT_QUEUE_EMPTY);
	rig_close(&rig);
}

static void test_post_se_carries_extension_area(void)
{
	DAT_EVENT event = { .event_number = DAT_SOFTWARE_EVENT };
	struct rig rig;

	rig_open(&rig, NULL);
	event.event_extension_data[0] = 1;
	event.event_extension_data[7] = 8;
	MUST(dat_evd_post_se(rig.recv, &event));
	event = rig_take(rig.recv);
	CU_ASSERT_EQUAL(event.event_extension_data[0], 1);
	CU_ASSERT_EQUAL(event.event_extension_data[7], 8);
	rig_close(&rig);
}

static void test_dequeue_checks(void)
{
	DAT_EVENT event, untouched;
	struct rig rig;

	rig_open(&rig, NULL);
	memset(&event, 0xab, sizeof(event));
	memset(&untouched, 0xab, sizeof(untouched));
	IS(dat_evd_dequeue(rig.pz, &event), E(INVALID_HANDLE, INVALID_HANDLE_EVD_REQUEST));
	IS(dat_evd_dequeue(rig.recv, NULL), E(INVALID_PARAMETER, INVALID_ARG2));
	IS(dat_evd_dequeue(rig.recv, &event), 0x000d0000u);
	IS(dat_evd_dequeue(rig.conn, &event), 0x000d0000u);
	CU_ASSERT_EQUAL(memcmp(&event, &untouched, sizeof(event)), 0);
	rig_close(&rig);
}

static void test_completions_before_a_software_event_stay_before_it(void)
{
	DAT_EP_ATTR attr = rig_attr();
	DAT_EVENT event;
	struct rig rig;

	rig_open(&rig, &attr);
	rig_receive(&rig, 1);
	rig_receive(&rig, 2);
	MUST(rig_post_se(rig.recv, 3));
	rig_receive(&rig, 4);
	event = rig_take(rig.recv);
	CU_ASSERT_EQUAL(rig_cookie(&event), 1);
	event = rig_take(rig.recv);
	CU_ASSERT_EQUAL(rig_cookie(&event), 2);
	event = rig_take(rig.recv);
	CU_ASSERT_EQUAL(pointer(&event), 3);
	event = rig_take(rig.recv);
	CU_ASSERT_EQUAL(rig_cookie(&event), 4);
	rig_close(&rig);
}

static void test_a_full_cq_leaves_room_for_software_events(void)
{
	DAT_EP_ATTR attr = rig_attr();
	DAT_EVD_HANDLE small;
	DAT_COUNT i;
	struct rig rig;

	rig_open(&rig, NULL);
	small = rig_evd(&rig, 2, DAT_EVD_DTO_FLAG | DAT_EVD_SOFTWARE_FLAG);
	MUST(dat_ep_create(rig.ia, rig.pz, small, rig.request, rig.conn, &attr, &rig.ep));
	for (i = 0; i < 8; i++) {
		MUST(rig_recv(&rig, (uint64_t)i));
		rig_complete(small, fake.last.wr_id, DAT_DTO_SUCCESS, 0);
	}
	MUST(rig_post_se(small, 100));
	MUST(rig_post_se(small, 101));
	IS(rig_post_se(small, 102), E0(QUEUE_FULL));
	for (i = 0; i < 8; i++)
		CU_ASSERT_EQUAL(rig_take(small).event_number, DAT_DTO_COMPLETION_EVENT);
	CU_ASSERT_EQUAL(rig_take(small).event_number, DAT_SOFTWARE_EVENT);
	CU_ASSERT_EQUAL(rig_take(small).event_number, DAT_SOFTWARE_EVENT);
	MUST(dat_ep_free(rig.ep));
	rig.ep = DAT_HANDLE_NULL;
	MUST(dat_evd_free(small));
	rig_close(&rig);
}

static void test_no_completion_is_lost_behind_a_small_queue(void)
{
	DAT_EP_ATTR attr = rig_attr();
	DAT_EVD_HANDLE small;
	DAT_EVENT event;
	DAT_COUNT more;
	uint64_t i;
	struct rig rig;

	rig_open(&rig, NULL);
	small = rig_evd(&rig, 4, DAT_EVD_DTO_FLAG);
	attr.max_recv_dtos = FAKE_MAX_WR;
	MUST(dat_ep_create(rig.ia, rig.pz, small, rig.request, rig.conn, &attr, &rig.ep));
	for (i = 0; i < FAKE_MAX_WR; i++) {
		MUST(rig_recv(&rig, i));
		rig_complete(small, fake.last.wr_id, DAT_DTO_SUCCESS, 0);
	}
	for (i = 0; i < FAKE_MAX_WR; i++) {
		MUST(dat_evd_wait(small, 0, i < FAKE_MAX_WR - 3 ? 4 : 1, &event, &more));
		CU_ASSERT_EQUAL(rig_cookie(&event), i);
		CU_ASSERT_EQUAL(more, (DAT_COUNT)(FAKE_MAX_WR - 1 - i));
	}
	MUST(dat_ep_free(rig.ep));
	rig.ep = DAT_HANDLE_NULL;
	MUST(dat_evd_free(small));
	rig_close(&rig);
}

/* ---- polling for CM events ---- */

#define EMPTY_POLLS 4096u

static DAT_EVD_HANDLE polled;
static unsigned cm_polls;

static bool cm_event_comes(void)
{
	return rig_post_se(polled, 7) == DAT_SUCCESS;
}

static bool cm_is_silent(void)
{
	cm_polls++;
	return false;
}

/* Returns how often so many empty dequeues read the CM. */
static unsigned cm_polls_of(DAT_EVD_HANDLE evd)
{
	DAT_EVENT event;
	unsigned i;

	cm_polls = 0;
	for (i = 0; i < EMPTY_POLLS; i++)
		IS(dat_evd_dequeue(evd, &event), DAT_QUEUE_EMPTY);
	return cm_polls;
}

static void test_polls_for_connections_read_the_cm(void)
{
	DAT_EVD_HANDLE software;
	DAT_EVENT event;
	unsigned reads;
	struct rig rig;

	rig_open(&rig, NULL);
	polled = rig_evd(&rig, 4, DAT_EVD_CONNECTION_FLAG | DAT_EVD_SOFTWARE_FLAG);
	software = rig_evd(&rig, 4, DAT_EVD_SOFTWARE_FLAG);
	fake.cm_poll = cm_event_comes;
	event = rig_take(polled);
	CU_ASSERT_EQUAL(pointer(&event), 7);
	fake.cm_poll = cm_is_silent;
	reads = cm_polls_of(polled);
	CU_ASSERT_TRUE(reads > 0);
	CU_ASSERT_TRUE(reads <= EMPTY_POLLS / 100);
	CU_ASSERT_EQUAL(cm_polls_of(software), 0);
	CU_ASSERT_EQUAL(cm_polls_of(rig.recv), 0);
	fake.cm_poll = NULL;
	MUST(dat_evd_free(software));
	MUST(dat_evd_free(polled));
	rig_close(&rig);
}

static void test_overflow_is_reported_once_an_episode(void)
{
	DAT_EVENT event = { .event_number = DAT_CONNECTION_REQUEST_EVENT };
	DAT_EVD_HANDLE cr;
	struct rig rig;

	rig_open(&rig, NULL);
	cr = rig_evd(&rig, 1, DAT_EVD_CR_FLAG);
	CU_ASSERT_TRUE(evd_post_or_overflow(cr, &event));
	CU_ASSERT_FALSE(evd_post_or_overflow(cr, &event));
	CU_ASSERT_FALSE(evd_post_or_overflow(cr, &event));
	event = rig_take(rig.async);
	CU_ASSERT_EQUAL(event.event_number, DAT_ASYNC_ERROR_EVD_OVERFLOW);
	CU_ASSERT_PTR_EQUAL(event.event_data.asynch_error_event_data.dat_handle, cr);
	CU_ASSERT_EQUAL(event.event_data.asynch_error_event_data.reason, DAT_EVD_OVERFLOW_ERROR);
	IS(dat_evd_dequeue(rig.async, &event), DAT_QUEUE_EMPTY);
	/* the overflow ends when there is room */
	event = rig_take(cr);
	CU_ASSERT_TRUE(evd_post_or_overflow(cr, &event));
	CU_ASSERT_FALSE(evd_post_or_overflow(cr, &event));
	CU_ASSERT_EQUAL(rig_take(rig.async).event_number, DAT_ASYNC_ERROR_EVD_OVERFLOW);
	MUST(dat_evd_free(cr));
	rig_close(&rig);
}

static void test_async_evd_survives_its_overflow(void)
{
	DAT_EVD_HANDLE async = DAT_HANDLE_NULL;
	DAT_IA_HANDLE ia;
	DAT_EVENT event;
	int i;

	rig_announce();
	MUST(dat_ia_open((char *)(uintptr_t) "fake", 1, &async, &ia));
	for (i = 0; i < 3; i++)
		fake.upcalls.async(&fake.devices[0], IB_ASYNC_PORT_ERROR, NULL);
	CU_ASSERT_EQUAL(rig_take(async).event_number, DAT_ASYNC_ERROR_PROVIDER_INTERNAL_ERROR);
	event = rig_take(async);
	CU_ASSERT_EQUAL(event.event_number, DAT_ASYNC_ERROR_EVD_OVERFLOW);
	CU_ASSERT_PTR_EQUAL(event.event_data.asynch_error_event_data.dat_handle, async);
	IS(dat_evd_dequeue(async, &event), DAT_QUEUE_EMPTY);
	fake.upcalls.async(&fake.devices[0], IB_ASYNC_PORT_ERROR, NULL);
	CU_ASSERT_EQUAL(rig_take(async).event_number, DAT_ASYNC_ERROR_PROVIDER_INTERNAL_ERROR);
	MUST(dat_ia_close(ia, DAT_CLOSE_GRACEFUL_FLAG));
}

static void test_broken_cq(void)
{
	DAT_EP_ATTR attr = rig_attr();
	DAT_EVENT event;
	DAT_COUNT more;
	struct rig rig;

	rig_open(&rig, &attr);
	rig_receive(&rig, 1);
	MUST(rig_post_se(rig.recv, 2));
	fake.upcalls.async(&fake.devices[0], IB_ASYNC_CQ_ERROR, rig.recv);
	/* queued events can still be taken */
	event = rig_take(rig.recv);
	CU_ASSERT_EQUAL(rig_cookie(&event), 1);
	MUST(rig_post_se(rig.recv, 3));
	event = rig_take(rig.recv);
	CU_ASSERT_EQUAL(pointer(&event), 2);
	event = rig_take(rig.recv);
	CU_ASSERT_EQUAL(pointer(&event), 3);
	IS(dat_evd_dequeue(rig.recv, &event), E0(INVALID_STATE));
	IS(dat_evd_wait(rig.recv, 0, 1, &event, &more), E0(INVALID_STATE));
	CU_ASSERT_EQUAL(rig_take(rig.async).event_number, DAT_ASYNC_ERROR_EVD_OVERFLOW);
	IS(dat_evd_dequeue(rig.async, &event), DAT_QUEUE_EMPTY);
	rig_close(&rig);
}

static void test_poll_error(void)
{
	DAT_EVENT event;
	struct rig rig;

	rig_open(&rig, NULL);
	rig_cq(rig.request)->failing = true;
	IS(dat_evd_dequeue(rig.request, &event), E0(INTERNAL_ERROR));
	IS(dat_evd_dequeue(rig.request, &event), E0(INVALID_STATE));
	event = rig_take(rig.async);
	CU_ASSERT_EQUAL(event.event_number, DAT_ASYNC_ERROR_EVD_OVERFLOW);
	CU_ASSERT_PTR_EQUAL(event.event_data.asynch_error_event_data.dat_handle, rig.request);
	rig_close(&rig);
}

static const struct unit_test tests[] = {
	{ "create: every check", test_create_checks },
	{ "every combination of flags works, with a CQ only for completions",
	  test_every_combination_of_flags },
	{ "query", test_query },
	{ "an EVD in use, or whose CQ the device keeps, is not freed", test_free_in_use },
	{ "post_se: every check; QUEUE_FULL makes no async event", test_post_se_checks },
	{ "post_se carries the extension area", test_post_se_carries_extension_area },
	{ "dequeue checks; an empty queue has no class", test_dequeue_checks },
	{ "completions and software events keep their order",
	  test_completions_before_a_software_event_stay_before_it },
	{ "a full CQ leaves qlen places for software events",
	  test_a_full_cq_leaves_room_for_software_events },
	{ "64 completions pass a queue of 4 in order, and nmore is right",
	  test_no_completion_is_lost_behind_a_small_queue },
	{ "empty dequeues read the CM now and then, where only it has events",
	  test_polls_for_connections_read_the_cm },
	{ "overflow is reported once an episode", test_overflow_is_reported_once_an_episode },
	{ "the async EVD survives its own overflow", test_async_evd_survives_its_overflow },
	{ "a CQ that overflowed is reported", test_broken_cq },
	{ "a CQ that cannot be polled is reported", test_poll_error },
};

UNIT_MAIN("evd", tests)
