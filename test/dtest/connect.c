/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* Finds the peer, connects to it, and disconnects. */

#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "dtest.h"

enum { SERVER_PATIENCE = 600, RETRIES = 20, RETRY_MS = 100 };

/* The client learns the server's address, and its provider unless an option names one. */
static bool client_meet(struct session *s)
{
	const struct options *opt = s->opt;
	struct channel_news news;
	enum channel_result result;

	say("Running as client - waiting for server input");
	if (opt->channel) {
		watchdog_set(session_limit(s, 0));
		result = channel_ask(opt->host, opt->channel_port, session_limit(s, 0), &news);
		if (result == CHANNEL_FAILED) {
			complain("Failed to get server parameters");
			return false;
		}
		if (result == CHANNEL_NO_PEER) {
			complain("Could not connect to %s: continuing without its data", opt->host);
		} else {
			s->server = news.addr;
			if (!opt->provider_given)
				memcpy(s->provider, news.provider, sizeof(s->provider));
		}
	}
	say("Running as %s client v2", s->provider);
	return true;
}

bool session_meet(struct session *s)
{
	memset(s->provider, 0, sizeof(s->provider));
	memcpy(s->provider, s->opt->provider, strlen(s->opt->provider));
	if (!is_server(s))
		return client_meet(s);
	say("Running as server - %s v2", s->provider);
	return true;
}

static bool conn_await(struct session *s, double seconds, DAT_EVENT *event)
{
	unsigned long before = s->conn_wait.polls;
	bool got = event_await(&s->conn_wait, s->conn_evd, "connection event", seconds, event);

	s->m.connect_polls += s->conn_wait.polls - before;
	return got;
}

/* Byte i is first + i: the client sends from 1, the server answers each byte plus one. */
static bool private_check(const unsigned char *data, int size, int first, const char *what)
{
	if (size < PRIVATE_SIZE || !data) {
		complain("Error with %s private data: %d bytes", what, size);
		return false;
	}
	for (int i = 0; i < PRIVATE_SIZE; i++) {
		if (data[i] == first + i)
			continue;
		complain("Error with %s private data: byte %d is %d, expected %d", what, i, data[i],
			 first + i);
		return false;
	}
	return true;
}

/*
 * A client may come by the side channel first or straight with its connection request. After one
 * was answered over the channel, *listener is closed.
 */
static bool request_arrived(struct session *s, int *listener, bool *found, DAT_EVENT *event)
{
	struct pollfd pfd = { .fd = *listener, .events = POLLIN };

	if (poll(&pfd, 1, 10) == 1 &&
	    channel_answer(*listener, (struct sockaddr *)&s->ia_addr, s->provider, 10)) {
		close(*listener);
		*listener = -1;
	}
	return event_look(s->cr_evd, event, found);
}

static bool request_await_any(struct session *s, double seconds, DAT_EVENT *event)
{
	uint64_t deadline = clock_after(seconds);
	bool found = false, ok = true;
	int listener;

	if (s->opt->channel) {
		listener = channel_listen(s->opt->channel_port);
		if (listener < 0)
			return false;
		say("Server is waiting for client connection to send server info");
		watchdog_set(seconds);
		while (ok && !found && listener >= 0 && !clock_passed(deadline))
			ok = request_arrived(s, &listener, &found, event);
		if (listener >= 0)
			close(listener);
	}
	if (!ok || found)
		return ok;
	say("Server waiting for connect request on port %" PRIx64, s->opt->qual);
	return event_await(&s->conn_wait, s->cr_evd, "connection request",
			   clock_left_ms(deadline) / 1000.0, event);
}

static bool request_check(struct session *s, const DAT_EVENT *event)
{
	const DAT_CR_ARRIVAL_EVENT_DATA *cr = &event->event_data.cr_arrival_event_data;

	if (event->event_number != DAT_CONNECTION_REQUEST_EVENT) {
		complain("Error unexpected cr event: %s", event_name(event->event_number));
		return false;
	}
	if (cr->conn_qual != s->opt->qual || cr->sp_handle.psp_handle != s->psp) {
		complain("Error wrong cr event data: qualifier %" PRIx64 ", service point %p",
			 (uint64_t)cr->conn_qual, (void *)cr->sp_handle.psp_handle);
		return false;
	}
	return true;
}

static bool request_accept(struct session *s, DAT_CR_HANDLE cr)
{
	DAT_CR_PARAM param;
	unsigned char *data;

	memset(&param, 0, sizeof(param));
	if (s->opt->delay > 0) {
		say("Server waits %d s before it accepts", s->opt->delay);
		watchdog_set(s->opt->delay);
		for (int i = 0; i < s->opt->delay; i++)
			clock_pause_ms(1000);
	}
	if (!dat_ok(dat_cr_query(cr, DAT_CR_FIELD_ALL, &param), "dat_cr_query"))
		return false;
	data = param.private_data;
	if (!private_check(data, param.private_data_size, 1, "CONNECT REQUEST")) {
		dat_ok(dat_cr_reject(cr, 0, NULL), "dat_cr_reject");
		return false;
	}
	for (int i = 0; i < PRIVATE_SIZE; i++)
		data[i]++;
	return dat_ok(dat_cr_accept(cr, s->ep, PRIVATE_SIZE, data), "dat_cr_accept");
}

static bool established(struct session *s, const DAT_EVENT *event)
{
	const DAT_CONNECTION_EVENT_DATA *conn = &event->event_data.connect_event_data;

	if (event->event_number != DAT_CONNECTION_EVENT_ESTABLISHED) {
		complain("Error unexpected conn event: 0x%x %s", (unsigned int)event->event_number,
			 event_name(event->event_number));
		return false;
	}
	s->connected = true;
	return is_server(s) ||
	       private_check(conn->private_data, conn->private_data_size, 2, "CONNECT event");
}

static bool server_connect(struct session *s)
{
	double patience = s->opt->limit > 0 ? s->opt->limit : SERVER_PATIENCE;
	DAT_PSP_HANDLE psp;
	DAT_EVENT event;
	uint64_t start;

	if (!dat_ok(dat_psp_create(s->ia, s->opt->qual, s->cr_evd, DAT_PSP_CONSUMER_FLAG, &psp),
		    "dat_psp_create"))
		return false;
	s->psp = psp;
	if (!request_await_any(s, patience, &event) || !request_check(s, &event))
		return false;
	start = clock_ns();
	if (!request_accept(s, event.event_data.cr_arrival_event_data.cr_handle))
		return false;
	say("Waiting for connect response");
	if (!conn_await(s, session_limit(s, 0), &event))
		return false;
	s->m.connect_us = clock_us_since(start);
	return established(s, &event);
}

static bool client_connect_once(struct session *s, DAT_EVENT *event)
{
	double seconds = s->opt->limit > 0 && s->opt->limit < CONNECT_SECONDS ? s->opt->limit
									      : CONNECT_SECONDS;
	unsigned char data[PRIVATE_SIZE];
	uint64_t start = clock_ns();
	DAT_RETURN ret;

	for (int i = 0; i < PRIVATE_SIZE; i++)
		data[i] = (unsigned char)(i + 1);
	watchdog_set(seconds);
	ret = dat_ep_connect(s->ep, (DAT_IA_ADDRESS_PTR)&s->server, s->opt->qual,
			     (DAT_TIMEOUT)(seconds * 1e6), PRIVATE_SIZE, data, DAT_QOS_BEST_EFFORT,
			     DAT_CONNECT_DEFAULT_FLAG);
	if (!dat_ok(ret, "dat_ep_connect"))
		return false;
	/* The provider reports its own timeout and gets a little more time for that. */
	if (!conn_await(s, seconds + 10, event))
		return false;
	s->m.connect_us = clock_us_since(start);
	return true;
}

/* The flushed receives are dequeued before the endpoint is used again. */
static bool client_rearm(struct session *s)
{
	DAT_EVENT event;
	bool found = true;

	if (!dat_ok(dat_ep_reset(s->ep), "dat_ep_reset"))
		return false;
	while (found)
		if (!event_look(s->recv_evd, &event, &found))
			return false;
	return messages_post(s);
}

/*
 * A server of another make sends its address before it listens, so a refusal just after the side
 * channel may only mean that it is not ready.
 */
static bool client_connect(struct session *s)
{
	char text[ADDRESS_TEXT];
	DAT_EVENT event;

	if (s->server.ss_family == 0 &&
	    !address_resolve(s->opt->host, s->ia_addr.ss_family, &s->server))
		return false;
	address_text((struct sockaddr *)&s->server, text);
	say("Server Name: %s", s->opt->host);
	say("Server Net Address: %s port %" PRIx64, text, s->opt->qual);
	say("Waiting for connect response");
	for (int tries = 0;; tries++) {
		if (!client_connect_once(s, &event))
			return false;
		if (event.event_number != DAT_CONNECTION_EVENT_NON_PEER_REJECTED ||
		    tries == RETRIES)
			return established(s, &event);
		clock_pause_ms(RETRY_MS);
		if (!client_rearm(s))
			return false;
	}
}

static bool ep_show(struct session *s)
{
	char local[ADDRESS_TEXT], remote[ADDRESS_TEXT];
	DAT_EP_PARAM param;

	memset(&param, 0, sizeof(param));
	if (!dat_ok(dat_ep_query(s->ep, DAT_EP_FIELD_ALL, &param), "dat_ep_query"))
		return false;
	if (!param.local_ia_address_ptr || !param.remote_ia_address_ptr) {
		complain("Error dat_ep_query: an address is missing");
		return false;
	}
	if (param.ep_state != DAT_EP_STATE_CONNECTED) {
		complain("Error dat_ep_query: state %d of a connected endpoint",
			 (int)param.ep_state);
		return false;
	}
	say("Query EP: LOCAL addr %s port %" PRIx64,
	    address_text(param.local_ia_address_ptr, local), (uint64_t)param.local_port_qual);
	say("Query EP: REMOTE addr %s port %" PRIx64,
	    address_text(param.remote_ia_address_ptr, remote), (uint64_t)param.remote_port_qual);
	return true;
}

bool session_connect(struct session *s)
{
	if (is_server(s) ? !server_connect(s) : !client_connect(s))
		return false;
	putchar('\n');
	say("CONNECTED!");
	putchar('\n');
	return greeting_exchange(s) && ep_show(s);
}

/* While memory is polled, the end of the connection is found only by polling the EVD. */
bool session_lost(struct session *s)
{
	DAT_EVENT event;
	bool found;

	if (!event_look(s->conn_evd, &event, &found))
		return true;
	if (!found)
		return false;
	complain("Error: connection ended: %s", event_name(event.event_number));
	s->ended = true;
	return true;
}

/*
 * The client ends a successful run; after a failure either side disconnects, so that the other need
 * not wait.
 */
void session_disconnect(struct session *s, bool failed)
{
	DAT_EVENT event;

	if (!s->connected)
		return;
	if ((failed || !is_server(s)) &&
	    !dat_ok(dat_ep_disconnect(s->ep, DAT_CLOSE_DEFAULT), "dat_ep_disconnect"))
		s->teardown_failed = true;
	if (s->ended)
		return;
	if (!conn_await(s, session_limit(s, 0), &event)) {
		s->teardown_failed = true;
		return;
	}
	s->ended = true;
	if (event.event_number != DAT_CONNECTION_EVENT_DISCONNECTED) {
		complain("Error unexpected conn event: 0x%x %s", (unsigned int)event.event_number,
			 event_name(event.event_number));
		s->teardown_failed = true;
	}
}
