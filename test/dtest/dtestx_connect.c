/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/*
 * Both sides of dtestx find each other; the one reliable connection, from its request to its end.
 */

#include <endian.h>
#include <stdio.h>
#include <string.h>

#include "dtestx.h"

enum { RETRIES = 20, RETRY_MS = 100, PEER_PARTS_SECONDS = 3 };

/* The adapter is open already, so only the address is used, and the server learns ours. */
bool x_meet_server(struct x_test *t)
{
	double limit = adapter_limit(&t->a, PART_SECONDS);
	struct channel_news news = { .provider = "" };
	enum channel_result result = CHANNEL_NO_PEER;

	if (t->opt.channel) {
		say("Client: waiting for server input");
		watchdog_set(limit);
		result = channel_ask_and_tell(t->opt.host, CHANNEL_PORT, limit,
					      (const struct sockaddr *)&t->a.addr, &news);
		if (result == CHANNEL_NO_PEER)
			complain("Could not connect to %s: continuing without its data",
				 t->opt.host);
	}
	if (result == CHANNEL_FAILED) {
		complain("Failed to get server parameters");
		return false;
	}
	t->peer_addr = news.addr;
	return t->peer_addr.ss_family ||
	       address_resolve(t->opt.host, t->a.addr.ss_family, &t->peer_addr);
}

/* The server listens before it publishes its address. */
bool x_listen(struct x_test *t)
{
	struct meeting meeting = {
		.said = "Server - Client: waiting to snd addr",
		.cr_evd = t->cr_evd,
		.both_ways = true,
	};
	DAT_CONN_QUAL qual = x_is_server(t) ? X_SERVER_QUAL : X_CLIENT_QUAL;
	DAT_PSP_HANDLE psp;

	if (!dat_ok(dat_psp_create(t->a.ia, qual, t->cr_evd, DAT_PSP_CONSUMER_FLAG, &psp),
		    "dat_psp_create"))
		return false;
	t->psp = psp;
	if (!x_is_server(t))
		return true;
	if (t->opt.channel) {
		enum met met = meet_client(&t->a, &meeting, &t->first);

		t->first_came = met == MET_REQUEST;
		t->peer_addr = meeting.client.addr;
		if (met == MET_FAILED)
			return false;
	}
	say("Server waiting for connect request on port %d", X_SERVER_QUAL);
	return true;
}

bool x_request_await(struct x_test *t, DAT_EVENT *event)
{
	if (!t->first_came)
		return x_await(t, t->cr_evd, "connection request", SERVER_SECONDS, event);
	*event = t->first;
	t->first_came = false;
	return true;
}

/* The request carries the number of its endpoint, which the answer repeats. */
bool x_request_accept(struct x_test *t, DAT_CR_HANDLE cr, int *index)
{
	DAT_CR_PARAM param;
	uint32_t number;

	memset(&param, 0, sizeof(param));
	if (!dat_ok(dat_cr_query(cr, DAT_CR_FIELD_ALL, &param), "dat_cr_query"))
		return false;
	if (!index_read(param.private_data, param.private_data_size, t->ep_count, index)) {
		dat_ok(dat_cr_reject(cr, 0, NULL), "dat_cr_reject");
		return false;
	}
	if (!t->peer_addr.ss_family && param.remote_ia_address_ptr) {
		const struct sockaddr *sa = param.remote_ia_address_ptr;

		memcpy(&t->peer_addr, sa,
		       sa->sa_family == AF_INET6 ? sizeof(struct sockaddr_in6)
						 : sizeof(struct sockaddr_in));
	}
	number = htobe32((uint32_t)*index);
	if (!dat_ok(dat_cr_accept(cr, x_ep(t, *index), sizeof(number), &number), "dat_cr_accept"))
		return false;
	adapter_tell(&t->a, "%s accepted CR on EP[%d]", x_role(t), *index);
	return true;
}

bool x_connect_one(struct x_test *t, int connection, DAT_CONN_QUAL qual)
{
	uint32_t number = htobe32((uint32_t)x_index(t, connection));
	DAT_RETURN ret;

	watchdog_set(adapter_limit(&t->a, PART_SECONDS));
	ret = dat_ep_connect(x_ep(t, connection), (DAT_IA_ADDRESS_PTR)&t->peer_addr, qual,
			     X_CONNECT_SECONDS * 1000000u, sizeof(number), &number,
			     DAT_QOS_BEST_EFFORT, DAT_CONNECT_DEFAULT_FLAG);
	return dat_ok(ret, "dat_ep_connect");
}

static bool established(struct x_test *t, const DAT_EVENT *event)
{
	const DAT_CONNECTION_EVENT_DATA *conn = &event->event_data.connect_event_data;
	int index;

	if (!established_check(event, false))
		return false;
	if (conn->ep_handle != t->eps[0]) {
		complain("Error: event for an endpoint %p that is not of this test",
			 (void *)conn->ep_handle);
		return false;
	}
	t->connected[0] = true;
	return x_is_server(t) || index_read(conn->private_data, conn->private_data_size, 1, &index);
}

static bool server_connect(struct x_test *t)
{
	DAT_EVENT event;
	int index;

	return x_request_await(t, &event) && request_check(&event, false, X_SERVER_QUAL, t->psp) &&
	       x_request_accept(t, event.event_data.cr_arrival_event_data.cr_handle, &index) &&
	       x_await(t, t->conn_evd, "established connection", X_CONNECT_SECONDS + 10, &event) &&
	       established(t, &event);
}

/* The flushed receives are dequeued before the endpoint is used again. */
static bool client_rearm(struct x_test *t)
{
	DAT_EVENT event;
	bool found = true;

	clock_pause_ms(RETRY_MS);
	if (!dat_ok(dat_ep_reset(t->eps[0]), "dat_ep_reset"))
		return false;
	while (found)
		if (!event_look(t->dto_evd, &event, &found))
			return false;
	return x_receives_post(t);
}

/*
 * A server of another make sends its address before it listens, so a refusal just after the side
 * channel may only mean that it is not ready.
 */
static bool client_connect(struct x_test *t)
{
	char text[ADDRESS_TEXT];
	DAT_EVENT event;

	note("Remote Server Name: %s", t->opt.host);
	note("Remote Server Net Address: %s", address_text((struct sockaddr *)&t->peer_addr, text));
	for (int tries = 0;; tries++) {
		if (!x_connect_one(t, 0, X_SERVER_QUAL) ||
		    !x_await(t, t->conn_evd, "established connection", X_CONNECT_SECONDS + 10,
			     &event))
			return false;
		if (event.event_number != DAT_CONNECTION_EVENT_NON_PEER_REJECTED ||
		    tries == RETRIES)
			return established(t, &event);
		if (!client_rearm(t))
			return false;
	}
}

bool x_connect(struct x_test *t)
{
	bool connected = x_is_server(t) ? x_listen(t) && server_connect(t)
					: x_meet_server(t) && client_connect(t);

	if (connected)
		note("Connected! %d endpoints", t->opt.eps);
	return connected;
}

/*
 * Both sides disconnect. A program of this make reports when it is done; another make may still
 * poll its memory, and ends the connection itself.
 */
static bool peer_let_finish(struct x_test *t)
{
	uint64_t deadline = clock_after(PEER_PARTS_SECONDS);
	DAT_EVENT event;

	if (t->same_make)
		return x_barrier(t);
	while (!t->ended && !clock_passed(deadline)) {
		if (!event_look(t->conn_evd, &event, &t->ended))
			return false;
		if (!t->ended)
			clock_pause_ms(1);
	}
	return !t->ended || disconnected_check(&event);
}

bool x_disconnect(struct x_test *t)
{
	DAT_EVENT event;

	if (!peer_let_finish(t) || !x_counters(t, t->a.ia, "IA", DCNT_IA_ALL_COUNTERS))
		return false;
	watchdog_set(adapter_limit(&t->a, PART_SECONDS));
	t->connected[0] = false;
	if (!dat_ok(dat_ep_disconnect(t->eps[0], DAT_CLOSE_DEFAULT), "dat_ep_disconnect"))
		return false;
	if (t->ended)
		return true;
	return x_await(t, t->conn_evd, "end of the connection", PART_SECONDS, &event) &&
	       disconnected_check(&event);
}
