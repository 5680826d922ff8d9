/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* Events: delivered ones, and those that a program posts itself. */
#include "test/one/fake.h"

#define W(i)   (0x7000 + (i))
#define P(i)   ((void *)(uintptr_t)W(i))
#define C(i)   ((DAT_CONTEXT){ .as_64 = W(i) })
#define ARG(n) ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG##n)

struct guarded_event {
	DAT_EVENT is;
	unsigned char after[128];
};

/* The event as dequeue and wait return it; the bytes behind it stay unchanged. */
static DAT_EVENT delivered(const struct two_event *two_event)
{
	struct guarded_event by_dequeue, by_wait;
	DAT_COUNT more;
	size_t i, touched = 0;

	memset(&by_dequeue, 0xcc, sizeof(by_dequeue));
	memset(&by_wait, 0xcc, sizeof(by_wait));
	fake_aim(FAKE_SLOT(evd_dequeue), DAT_SUCCESS);
	fake.out_arg = 1;
	fake.out = two_event;
	fake.out_size = sizeof(*two_event);
	CU_ASSERT_EQUAL(dat_evd_dequeue(&fake_object, &by_dequeue.is), DAT_SUCCESS);
	fake_aim(FAKE_SLOT(evd_wait), DAT_SUCCESS);
	fake.out_arg = 3;
	fake.out = two_event;
	fake.out_size = sizeof(*two_event);
	CU_ASSERT_EQUAL(dat_evd_wait(&fake_object, W(1), W(2), &by_wait.is, &more), DAT_SUCCESS);
	CU_ASSERT_EQUAL(fake.seen[1], W(1));
	CU_ASSERT_EQUAL(fake.seen[2], W(2));
	CU_ASSERT_EQUAL(fake.seen[4], (uintptr_t)&more);
	CU_ASSERT_EQUAL(memcmp(&by_dequeue, &by_wait, sizeof(by_wait)), 0);
	for (i = 0; i < sizeof(by_wait.after); i++)
		touched += by_wait.after[i] != 0xcc;
	CU_ASSERT_EQUAL(touched, 0);
	CU_ASSERT_EQUAL(by_wait.is.event_number, two_event->event_number);
	CU_ASSERT_PTR_EQUAL(by_wait.is.evd_handle, two_event->evd_handle);
	return by_wait.is;
}

static void test_dto_events(void)
{
	const DAT_DTO_COMPLETION_EVENT_DATA *data;
	struct two_event two_event;
	DAT_EVENT event;
	int status;

	fake_open();
	for (status = 0; status <= 12; status++) {
		memset(&two_event, 0xab, sizeof(two_event));
		two_event.event_number = DAT_DTO_COMPLETION_EVENT;
		two_event.evd_handle = P(1);
		two_event.event_data.dto = (struct two_dto_data){ .ep_handle = P(2),
								  .user_cookie = C(3),
								  .status = status,
								  .transfered_length = 0xfffffff1,
								  .operation = 5,
								  .rmr_context = 6 };
		event = delivered(&two_event);
		data = &event.event_data.dto_completion_event_data;
		CU_ASSERT_PTR_EQUAL(data->ep_handle, P(2));
		CU_ASSERT_EQUAL(data->user_cookie.as_64, W(3));
		CU_ASSERT_EQUAL((int)data->status,
				status == 12 ? (int)DAT_DTO_ERR_LOCAL_PROTECTION : status);
		CU_ASSERT_EQUAL(data->transfered_length, 0xfffffff1);
	}
	fake_close();
}

/* Of all other events the 32 bytes that both versions have; of an extension's event as many. */
static void test_other_events(void)
{
	static const DAT_EVENT_NUMBER numbers[] = {
		DAT_RMR_BIND_COMPLETION_EVENT,
		DAT_CONNECTION_REQUEST_EVENT,
		DAT_CONNECTION_EVENT_ESTABLISHED,
		DAT_CONNECTION_EVENT_UNREACHABLE,
		DAT_ASYNC_ERROR_EVD_OVERFLOW,
		DAT_ASYNC_ERROR_PROVIDER_INTERNAL_ERROR,
		DAT_SOFTWARE_EVENT,
		(DAT_EVENT_NUMBER)0x20000,
		(DAT_EVENT_NUMBER)0x40000,
	};
	struct two_event two_event;
	DAT_EVENT event;
	size_t i, k;

	fake_open();
	for (i = 0; i < COUNT(numbers); i++) {
		memset(&two_event, 0, sizeof(two_event));
		two_event.event_number = numbers[i];
		two_event.evd_handle = P(1);
		for (k = 0; k < sizeof(two_event.event_data.bytes); k++)
			two_event.event_data.bytes[k] = (unsigned char)(k + 1);
		event = delivered(&two_event);
		CU_ASSERT_EQUAL(memcmp(&event.event_data, two_event.event_data.bytes, 32), 0);
	}
	fake_close();
}

static void test_no_event(void)
{
	/* Outcomes without a class bit, and a failure. */
	static const DAT_RETURN answers[] = { DAT_QUEUE_EMPTY, DAT_TIMEOUT_EXPIRED,
					      DAT_INTERRUPTED_CALL, 0x80070000u, 0x80010000u };
	struct guarded_event event;
	DAT_COUNT more = 5;
	size_t i, k, touched = 0;

	fake_open();
	memset(&event, 0xcc, sizeof(event));
	for (i = 0; i < COUNT(answers); i++) {
		fake_aim(FAKE_SLOT(evd_dequeue), answers[i]);
		CU_ASSERT_EQUAL(dat_evd_dequeue(&fake_object, &event.is), answers[i]);
		fake_aim(FAKE_SLOT(evd_wait), answers[i]);
		CU_ASSERT_EQUAL(dat_evd_wait(&fake_object, 1, 1, &event.is, &more), answers[i]);
	}
	for (k = 0; k < sizeof(event); k++)
		touched += ((unsigned char *)&event)[k] != 0xcc;
	CU_ASSERT_EQUAL(touched, 0);
	/* DAT 2.0 refuses a null pointer. */
	fake_aim(FAKE_SLOT(evd_dequeue), 0x80060026u);
	CU_ASSERT_EQUAL(dat_evd_dequeue(&fake_object, NULL), ARG(2));
	CU_ASSERT_EQUAL(fake.seen[1], 0);
	fake_aim(FAKE_SLOT(evd_wait), 0x80060028u);
	CU_ASSERT_EQUAL(dat_evd_wait(&fake_object, 1, 1, NULL, NULL), ARG(4));
	CU_ASSERT_EQUAL(fake.seen[3], 0);
	CU_ASSERT_EQUAL(fake.seen[4], 0);
	fake_close();
}

static void test_post_se(void)
{
	struct two_event two_event;
	DAT_EVENT event;

	fake_open();
	memset(&event, 0x5a, sizeof(event));
	event.event_number = DAT_SOFTWARE_EVENT;
	event.evd_handle = P(1);
	event.event_data.software_event_data.pointer = P(2);
	fake_aim(FAKE_SLOT(evd_post_se), 0x80060025u);
	fake.in_arg = 1;
	fake.in_size = sizeof(two_event);
	CU_ASSERT_EQUAL(dat_evd_post_se(&fake_object, &event), ARG(1));
	memcpy(&two_event, fake.in, sizeof(two_event));
	CU_ASSERT_EQUAL(two_event.event_number, DAT_SOFTWARE_EVENT);
	CU_ASSERT_PTR_EQUAL(two_event.evd_handle, P(1));
	CU_ASSERT_EQUAL(memcmp(&two_event.event_data, &event.event_data, sizeof(event.event_data)),
			0);
	CU_ASSERT_EQUAL(two_event.event_extension_data[0], 0);
	CU_ASSERT_EQUAL(two_event.event_extension_data[7], 0);
	event.event_number = DAT_DTO_COMPLETION_EVENT;
	dat_evd_post_se(&fake_object, &event);
	memcpy(&two_event, fake.in, sizeof(two_event));
	CU_ASSERT_EQUAL(two_event.event_number, DAT_DTO_COMPLETION_EVENT);
	dat_evd_post_se(&fake_object, NULL);
	CU_ASSERT_EQUAL(fake.seen[1], 0);
	fake_close();
}

static const struct unit_test tests[] = {
	{ "events of DTOs", test_dto_events },
	{ "all other events", test_other_events },
	{ "no event: nothing is written", test_no_event },
	{ "software events", test_post_se },
};

UNIT_MAIN("one events", tests)
