/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* Connections in bursts, each with private data that is checked on both sides, and their end. */

#include <stdio.h>
#include <stdlib.h>

#include "dtestcm.h"

static bool cm_await(struct cm_test *t, DAT_EVD_HANDLE evd, const char *what, double seconds,
		     DAT_EVENT *event)
{
	return event_await(&t->wait, evd, what, adapter_limit(&t->a, seconds), event);
}

/* Byte i is first + i: the client sends from 1, the server answers each byte plus one. */
static bool private_check(const void *data, int size, int first, const char *what)
{
	const unsigned char *bytes = data;

	if (!data || size < CM_PRIVATE_SIZE) {
		complain("Error with %s private data: %d bytes", what, size);
		return false;
	}
	for (int i = 0; i < CM_PRIVATE_SIZE; i++) {
		if (bytes[i] == first + i)
			continue;
		complain("Error with %s private data: byte %d is %d, expected %d", what, i,
			 bytes[i], first + i);
		return false;
	}
	return true;
}

/* An endpoint is established once; its number is the number of the connection. */
static bool established_take(struct cm_test *t, const DAT_EVENT *event)
{
	const DAT_CONNECTION_EVENT_DATA *conn = &event->event_data.connect_event_data;
	int i;

	if (!established_check(event, t->opt.ud))
		return false;
	i = cm_ep_find(t, conn->ep_handle);
	if (i < 0)
		return false;
	if (t->connected[i]) {
		complain("Error: connection %d was established twice", i);
		return false;
	}
	t->connected[i] = true;
	adapter_tell(&t->a, "CONN_EST[%d] complete", i);
	return cm_is_server(t) ||
	       private_check(conn->private_data, conn->private_data_size, 2, "CONNECT event");
}

static bool established_await(struct cm_test *t, int count)
{
	DAT_EVENT event;

	for (int i = 0; i < count; i++)
		if (!cm_await(t, t->conn_evd, "established connection", CONNECT_SECONDS_MAX + 10,
			      &event) ||
		    !established_take(t, &event))
			return false;
	return true;
}

bool cm_listen(struct cm_test *t)
{
	int count = t->opt.many_ports ? t->opt.burst : 1;
	struct meeting meeting = { .said = "Conn server waiting for client", .cr_evd = t->cr_evd };
	DAT_PSP_HANDLE psp;

	for (int i = 0; i < count; i++) {
		DAT_CONN_QUAL qual = (DAT_CONN_QUAL)(t->opt.qual + i);

		if (!dat_ok(dat_psp_create(t->a.ia, qual, t->cr_evd, DAT_PSP_CONSUMER_FLAG, &psp),
			    "dat_psp_create"))
			return false;
		t->psps[t->psp_count++] = psp;
		note("Server ready on port %d", t->opt.qual + i);
	}
	if (!t->opt.channel)
		return true;
	switch (meet_client(&t->a, &meeting, &t->first)) {
	case MET_REQUEST: t->first_came = true; return true;
	case MET_CHANNEL: return true;
	default: return false;
	}
}

/* The request names its service point, which with many ports may be any of them. */
static bool any_request_check(const struct cm_test *t, const DAT_EVENT *event)
{
	DAT_CONN_QUAL qual = event->event_data.cr_arrival_event_data.conn_qual;
	int64_t at = (int64_t)qual - t->opt.qual;

	if (at < 0 || at >= t->psp_count)
		at = 0;
	return request_check(event, t->opt.ud, (DAT_CONN_QUAL)(t->opt.qual + at), t->psps[at]);
}

static bool request_keep(struct cm_test *t, DAT_CR_HANDLE cr, int i)
{
	DAT_CR_PARAM param = { 0 };
	unsigned char *data;

	if (t->opt.delay > 0) {
		adapter_tell(&t->a, "Accept delayed by %d seconds", t->opt.delay);
		watchdog_set(t->opt.delay);
		for (int s = 0; s < t->opt.delay; s++)
			clock_pause_ms(1000);
	}
	if (!dat_ok(dat_cr_query(cr, DAT_CR_FIELD_ALL, &param), "dat_cr_query"))
		return false;
	data = param.private_data;
	if (!private_check(data, param.private_data_size, 1, "CONNECT REQUEST")) {
		dat_ok(dat_cr_reject(cr, 0, NULL), "dat_cr_reject");
		return false;
	}
	for (int k = 0; k < CM_PRIVATE_SIZE; k++)
		data[k]++;
	if (!dat_ok(dat_cr_accept(cr, t->eps[i], CM_PRIVATE_SIZE, data), "dat_cr_accept"))
		return false;
	adapter_tell(&t->a, "accept[%d] complete", i);
	return true;
}

static bool request_await(struct cm_test *t, int i, DAT_EVENT *event)
{
	double seconds = i ? CONNECT_SECONDS_MAX : SERVER_SECONDS;

	if (!t->first_came)
		return cm_await(t, t->cr_evd, "connection request", seconds, event);
	*event = t->first;
	t->first_came = false;
	return true;
}

bool cm_accept_all(struct cm_test *t)
{
	DAT_EVENT event;

	note("Accepting...");
	for (int i = 0; i < t->opt.connections; i++)
		if (!request_await(t, i, &event) || !any_request_check(t, &event) ||
		    !request_keep(t, event.event_data.cr_arrival_event_data.cr_handle, i))
			return false;
	note("Completing...");
	if (!established_await(t, t->opt.connections))
		return false;
	printf("\n");
	note("ALL %d CONNECTED on Server!\n", t->opt.connections);
	return true;
}

static bool connect_one(struct cm_test *t, int i)
{
	int port = t->opt.qual + (t->opt.many_ports ? i % t->opt.burst : 0);
	unsigned char data[CM_PRIVATE_SIZE];
	DAT_RETURN ret;

	for (int k = 0; k < CM_PRIVATE_SIZE; k++)
		data[k] = (unsigned char)(k + 1);
	ret = dat_ep_connect(t->eps[i], (DAT_IA_ADDRESS_PTR)&t->server, (DAT_CONN_QUAL)port,
			     CONNECT_SECONDS_MAX * 1000000u, CM_PRIVATE_SIZE, data,
			     DAT_QOS_BEST_EFFORT, DAT_CONNECT_DEFAULT_FLAG);
	if (!dat_ok(ret, "dat_ep_connect"))
		return false;
	adapter_tell(&t->a, "dat_ep_connect[%d] complete", i);
	return true;
}

/* The last burst has the remaining connections. */
bool cm_connect_all(struct cm_test *t)
{
	int total = t->opt.connections, done = 0;
	uint64_t start = clock_ns();
	char text[ADDRESS_TEXT];

	address_text((struct sockaddr *)&t->server, text);
	note("Connecting to Server: %s", t->opt.host);
	note("Address: %s port %d", text, t->opt.qual);
	note("Connecting...");
	while (done < total) {
		int burst = total - done < t->opt.burst ? total - done : t->opt.burst;

		watchdog_set(adapter_limit(&t->a, PART_SECONDS));
		for (int i = 0; i < burst; i++)
			if (!connect_one(t, done + i))
				return false;
		if (!established_await(t, burst))
			return false;
		done += burst;
	}
	t->connect_us = clock_us_since(start);
	printf("\n");
	note("ALL %d CONNECTED on Client!\n", total);
	return true;
}

/* The endpoint named in each event is freed at once. */
static bool ends_await(struct cm_test *t)
{
	DAT_EVENT event;

	for (int n = 0; n < t->opt.connections; n++) {
		int i;

		if (!cm_await(t, t->conn_evd, "end of a connection", PART_SECONDS, &event) ||
		    !disconnected_check(&event))
			return false;
		i = cm_ep_find(t, event.event_data.connect_event_data.ep_handle);
		if (i < 0)
			return false;
		t->connected[i] = false;
		ep_free(&t->a, &t->eps[i]);
		adapter_tell(&t->a, "disc event[%d] complete, EP %d freed", n, i);
	}
	return true;
}

/* Datagram endpoints have no connection to end. */
bool cm_disconnect_all(struct cm_test *t)
{
	if (t->opt.ud)
		return true;
	watchdog_set(adapter_limit(&t->a, PART_SECONDS));
	for (int i = 0; !cm_is_server(t) && i < t->opt.connections; i++)
		if (!dat_ok(dat_ep_disconnect(t->eps[i], DAT_CLOSE_DEFAULT), "dat_ep_disconnect"))
			return false;
	return ends_await(t);
}
