/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* Two programs find each other; the checks of requests and connections. */

#include <endian.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

#include "adapter.h"

static bool channel_serve(struct adapter *a, struct meeting *m, int listener)
{
	const struct sockaddr *ia = (const struct sockaddr *)&a->addr;
	struct pollfd pfd = { .fd = listener, .events = POLLIN };

	if (poll(&pfd, 1, 10) != 1)
		return false;
	if (m->both_ways)
		return channel_exchange(listener, ia, a->provider, 10, &m->client);
	return channel_answer(listener, ia, a->provider, 10);
}

/*
 * A client may come by the side channel first or straight with its connection request, which then
 * is in *event.
 */
enum met meet_client(struct adapter *a, struct meeting *m, DAT_EVENT *event)
{
	double seconds = adapter_limit(a, SERVER_SECONDS);
	uint64_t deadline = clock_after(seconds);
	enum met met = MET_FAILED;
	bool found = false;
	int listener = channel_listen(CHANNEL_PORT);

	if (listener < 0)
		return MET_FAILED;
	say("%s, port %d", m->said, CHANNEL_PORT);
	watchdog_set(seconds);
	while (met == MET_FAILED && !clock_passed(deadline)) {
		if (channel_serve(a, m, listener))
			met = MET_CHANNEL;
		else if (!event_look(m->cr_evd, event, &found))
			break;
		else if (found)
			met = MET_REQUEST;
	}
	close(listener);
	if (met == MET_FAILED)
		complain("Error: no client within %g seconds", seconds);
	return met;
}

bool request_check(const DAT_EVENT *event, bool ud, DAT_CONN_QUAL qual, DAT_PSP_HANDLE psp)
{
	const DAT_CR_ARRIVAL_EVENT_DATA *cr = &event->event_data.cr_arrival_event_data;
	int expected =
		ud ? (int)DAT_IB_UD_CONNECTION_REQUEST_EVENT : (int)DAT_CONNECTION_REQUEST_EVENT;

	if ((int)event->event_number != expected) {
		complain("Error unexpected cr event: 0x%x %s", (unsigned int)event->event_number,
			 event_name(event->event_number));
		return false;
	}
	if (cr->conn_qual != qual || cr->sp_handle.psp_handle != psp) {
		complain("Error wrong cr event data: qualifier %llu, service point %p",
			 (unsigned long long)cr->conn_qual, (void *)cr->sp_handle.psp_handle);
		return false;
	}
	return true;
}

static bool conn_check(const DAT_EVENT *event, int expected)
{
	if ((int)event->event_number == expected)
		return true;
	complain("Error unexpected conn event: 0x%x %s", (unsigned int)event->event_number,
		 event_name(event->event_number));
	return false;
}

bool established_check(const DAT_EVENT *event, bool ud)
{
	return conn_check(event, ud ? (int)DAT_IB_UD_CONNECTION_EVENT_ESTABLISHED
				    : (int)DAT_CONNECTION_EVENT_ESTABLISHED);
}

bool disconnected_check(const DAT_EVENT *event)
{
	return conn_check(event, DAT_CONNECTION_EVENT_DISCONNECTED);
}

/* The four bytes of private data, perhaps padded: an endpoint's number in network order. */
bool index_read(const void *data, int size, int limit, int *index)
{
	uint32_t number;

	if (!data || size < (int)sizeof(number)) {
		complain("Error: private data of %d bytes names no endpoint", size);
		return false;
	}
	memcpy(&number, data, sizeof(number));
	number = be32toh(number);
	if (number >= (uint32_t)limit) {
		complain("Error: private data names endpoint %u of %d", number, limit);
		return false;
	}
	*index = (int)number;
	return true;
}

/* Prints the event without dequeuing it, because it may be the end that is due next. */
static bool connection_ended(const struct connections *c)
{
	for (int i = 0; i < c->count; i++) {
		DAT_EP_STATE state = DAT_EP_STATE_CONNECTED;

		if (c->connected[i] &&
		    dat_ok(dat_ep_get_status(c->eps[i], &state, NULL, NULL), "dat_ep_get_status") &&
		    state == DAT_EP_STATE_DISCONNECTED)
			return true;
	}
	return false;
}

/*
 * A peer that fails ends its connections, which need not complete the requests of a shared queue. A
 * peer that is done does so as well, and its last messages may arrive a little later.
 */
bool transfer_await(struct adapter *a, struct waiter *w, DAT_EVD_HANDLE evd,
		    const struct connections *c, const char *what, DAT_EVENT *event)
{
	double seconds = adapter_limit(a, PART_SECONDS), slice = seconds < 0.25 ? seconds : 0.25;
	uint64_t deadline = clock_after(seconds);
	bool found, ended = false;

	do {
		if (!event_await_silent(w, evd, slice, event, &found))
			return false;
		if (found)
			return true;
		if (ended) {
			complain("Error: the connection ended while waiting for a %s", what);
			return false;
		}
		ended = connection_ended(c);
	} while (ended || !clock_passed(deadline));
	complain("Error: no %s within %g seconds", what, seconds);
	return false;
}

/* Disconnects after a failure, so that the peer is notified and need not wait. */
void connections_end(struct adapter *a, const struct connections *c)
{
	struct waiter w = { .mode = WAIT_SLEEP };
	int ends = 0;
	DAT_EVENT event;

	for (int i = 0; i < c->count; i++) {
		if (!c->connected[i])
			continue;
		ends++;
		adapter_freed(a, dat_ep_disconnect(c->eps[i], DAT_CLOSE_ABRUPT_FLAG),
			      "dat_ep_disconnect");
	}
	while (ends-- > 0 && event_await(&w, c->evd, "end of a connection", 5, &event))
		;
}
