/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* What a requester is free to do, to give up or to come too often, is no fault of the server, and does not fill its log. */
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include "test/unit/two_ends.h"
#include "util/log_limit.h"

/* ---- the lines that the provider writes ---- */

static int saved, written;

static void log_catch(void)
{
	written = memfd_create("log", MFD_CLOEXEC);
	saved = dup(STDERR_FILENO);
	CU_ASSERT_FATAL(written >= 0 && saved >= 0);
	dup2(written, STDERR_FILENO);
}

/* Returns the number of lines that contain the words. */
static unsigned log_lines(const char *words)
{
	static char text[1 << 16];
	ssize_t size = pread(written, text, sizeof(text) - 1, 0);
	unsigned lines = 0;
	char *at;

	dup2(saved, STDERR_FILENO);
	close(saved);
	close(written);
	CU_ASSERT_FATAL(size >= 0);
	text[size] = '\0';
	for (at = strtok(text, "\n"); at; at = strtok(NULL, "\n"))
		lines += strstr(at, words) != NULL;
	return lines;
}

/* ---- requesters ---- */

static DAT_EVENT_NUMBER next_of(struct end *end)
{
	DAT_EVENT event;

	return event_next(end->conn, &event) ? event.event_number : 0;
}

/*
 * A request whose requester has given up. The later request travels behind the withdrawal, so that
 * the CM knows of that when the later one arrives.
 */
static DAT_CR_HANDLE withdrawn_request(void)
{
	DAT_CR_HANDLE first, later;
	struct end other;

	start_connect(&a);
	first = request_next(&env);
	MUST(dat_ep_disconnect(a.ep, DAT_CLOSE_ABRUPT_FLAG));
	end_open(&env, &other, NULL);
	start_connect(&other);
	later = request_next(&env);
	MUST(dat_cr_reject(later, 0, NULL));
	CU_ASSERT_EQUAL(next_of(&other), DAT_CONNECTION_EVENT_PEER_REJECTED);
	end_close(&other);
	return first;
}

static void test_reject(void)
{
	setup();
	log_catch();
	OK(dat_cr_reject(withdrawn_request(), 0, NULL));
	CU_ASSERT_EQUAL(log_lines("connection"), 0);
	teardown();
}

static void test_accept(void)
{
	setup();
	log_catch();
	OK(dat_cr_accept(withdrawn_request(), b.ep, 0, NULL));
	expect(b.conn, DAT_CONNECTION_EVENT_ACCEPT_COMPLETION_ERROR, b.ep);
	CU_ASSERT_EQUAL(log_lines("connection"), 0);
	teardown();
}

#define BEYOND 30

/* Each request beyond the EVD's room is refused; only some of them are logged. */
static void test_full_queue(void)
{
	DAT_CR_HANDLE requests[256];
	struct end other;
	DAT_EVENT event;
	DAT_COUNT count = 0;
	unsigned lines;
	int refused = 0;

	setup();
	log_catch();
	while (refused < BEYOND) {
		end_open(&env, &other, NULL);
		start_connect(&other);
		if (dat_evd_wait(other.conn, 20000, 1, &event, &(DAT_COUNT){ 0 }) == DAT_SUCCESS) {
			CU_ASSERT_EQUAL(event.event_number, DAT_CONNECTION_EVENT_NON_PEER_REJECTED);
			refused++;
		}
		end_close(&other);
	}
	lines = log_lines("service point");
	CU_ASSERT(lines > 0);
	CU_ASSERT(lines <= LOG_LIMIT_LINES + 1);
	while (count < (DAT_COUNT)COUNT(requests) && dat_evd_dequeue(env.cr, &event) == DAT_SUCCESS)
		requests[count++] = event.event_data.cr_arrival_event_data.cr_handle;
	CU_ASSERT(count > 0);
	while (count)
		MUST(dat_cr_reject(requests[--count], 0, NULL));
	teardown();
}

static const struct unit_test tests[] = {
	{ "a request whose requester has given up is rejected without a word", test_reject },
	{ "and accepted with an event, without a word", test_accept },
	{ "requests beyond the room are refused, and few of them logged", test_full_queue },
};

UNIT_MAIN("late_requester", tests)
