/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* Messages until all are exchanged, or until the connection ends. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include "test/vm/wire.h"

static double last_answer;

/* --- flow: each message is answered with itself; both sides check every byte -------------------------------------- */

static void ended(DAT_EVENT_NUMBER number)
{
	printf("ended: %s %.1f s after the last answer\n", event_name(number), now() - last_answer);
	close_all();
	printf("closed\n");
	exit(3);
}

/*
 * A sender notices that the peer's host is gone, a waiter does not. So this posts a write of length
 * 0, for which the peer needs no memory, once a second. It also shows a device that does not send
 * what is posted.
 */
static DAT_RETURN post_nothing(void)
{
	DAT_RMR_TRIPLET nowhere = { .segment_length = 0 };
	DAT_DTO_COOKIE cookie = { .as_64 = 0 };

	return dat_ep_post_rdma_write(wire.ep, 0, NULL, cookie, &nowhere,
				      DAT_COMPLETION_DEFAULT_FLAG);
}

static void probe_if_room(void)
{
	DAT_RETURN status = post_nothing();

	if (DAT_GET_TYPE(status) != DAT_INSUFFICIENT_RESOURCES)
		must(status, "dat_ep_post_rdma_write");
}

/*
 * A stack may learn of a failed request only from its completion, so completions are polled before
 * the wait for an end.
 */
static void reap_requests(void)
{
	DAT_EVENT event;

	while (dat_evd_dequeue(wire.request_evd, &event) == DAT_SUCCESS)
		;
}

/* Takes the next message. A device that is gone completes nothing, but the connection ends. */
static unsigned received(void)
{
	double start = now(), probed = start;
	DAT_DTO_COMPLETION_EVENT_DATA done;
	DAT_RETURN status;
	DAT_EVENT event;
	DAT_COUNT more;

	while ((status = dat_evd_wait(wire.recv_evd, 200000, 1, &event, &more)) != DAT_SUCCESS) {
		if (DAT_GET_TYPE(status) != DAT_TIMEOUT_EXPIRED || now() >= start + option.seconds)
			must(status, "dat_evd_wait");
		reap_requests();
		if (dat_evd_dequeue(wire.conn_evd, &event) == DAT_SUCCESS)
			ended(event.event_number);
		if (now() >= probed + 1) {
			probe_if_room();
			probed = now();
		}
	}
	done = event.event_data.dto_completion_event_data;
	reap_requests();
	if (done.status != DAT_DTO_SUCCESS)
		ended(next(wire.conn_evd).event_number);
	if (done.transfered_length != option.bytes)
		wrong("length", done.transfered_length, option.bytes);
	return (unsigned)done.user_cookie.as_64;
}

static void send_round(unsigned round)
{
	DAT_LMR_TRIPLET iov = place(DEPTH);
	DAT_DTO_COOKIE cookie = { .as_64 = round };

	pattern(wire.memory + (size_t)DEPTH * option.bytes, option.bytes, round);
	MUST(dat_ep_post_send(wire.ep, 1, &iov, cookie, DAT_COMPLETION_DEFAULT_FLAG));
}

static void receive_round(unsigned round)
{
	unsigned index = received(), i;
	const unsigned char *data = wire.memory + (size_t)index * option.bytes;

	for (i = 0; i < option.bytes; i++)
		if (data[i] != (unsigned char)(round + i * 3))
			wrong("a byte", data[i], (unsigned char)(round + i * 3));
	last_answer = now();
	post_recv(index);
}

static void begin(void)
{
	unsigned index;

	for (index = 0; index < DEPTH; index++)
		post_recv(index);
	if (option.host) {
		connect_to(QUAL);
	} else {
		listen_on(QUAL);
		ready();
		accept_one(QUAL);
	}
	last_answer = now();
}

static void exchange(unsigned rounds)
{
	unsigned round;

	for (round = 0; round < rounds; round++) {
		if (option.host)
			send_round(round);
		receive_round(round);
		if (!option.host)
			send_round(round);
		if (round == 10) {
			printf("flowing\n");
			fflush(stdout);
		}
	}
}

void case_flow(void)
{
	begin();
	exchange(option.rounds);
	disconnect(option.host != NULL);
	printf("%u rounds\n", option.rounds);
}

/* Takes the next message, or returns false if none comes for a second. */
static bool received_soon(unsigned *index)
{
	DAT_EVENT event;
	DAT_COUNT more;

	if (dat_evd_wait(wire.recv_evd, 1000000, 1, &event, &more) != DAT_SUCCESS ||
	    event.event_data.dto_completion_event_data.status != DAT_DTO_SUCCESS)
		return false;
	*index = (unsigned)event.event_data.dto_completion_event_data.user_cookie.as_64;
	return true;
}

/*
 * Exchanges messages until none arrives any more. Then the client disconnects, and the server,
 * which sends nothing, is notified.
 */
void case_farewell(void)
{
	unsigned round, index;

	begin();
	for (round = 0;; round++) {
		if (option.host)
			send_round(round);
		if (!received_soon(&index))
			break;
		post_recv(index);
		reap_requests();
		if (!option.host)
			send_round(round);
		if (round == 10) {
			printf("flowing\n");
			fflush(stdout);
		}
	}
	disconnect(option.host != NULL);
	printf("ended\n");
	fflush(stdout);
}

/*
 * After a while this consumer takes connection events only. The client posts as long as it may; the
 * server waits.
 */
void case_unread(void)
{
	double start;
	DAT_RETURN status;
	DAT_EVENT event;
	DAT_COUNT more;

	begin();
	exchange(option.rounds);
	start = now();
	while ((status = dat_evd_wait(wire.conn_evd, 500000, 1, &event, &more)) != DAT_SUCCESS) {
		if (DAT_GET_TYPE(status) != DAT_TIMEOUT_EXPIRED || now() >= start + option.seconds)
			must(status, "dat_evd_wait");
		if (option.host)
			probe_if_room();
	}
	ended(event.event_number);
}
