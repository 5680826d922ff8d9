/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/*
 * The connections of dtestsrq. Both sides number them alike, because the request carries the
 * number.
 */

#include <endian.h>
#include <stdio.h>
#include <string.h>

#include "dtestsrq.h"

static bool srq_await(struct srq_test *t, DAT_EVD_HANDLE evd, const char *what, double seconds,
		      DAT_EVENT *event)
{
	return event_await(&t->wait, evd, what, adapter_limit(&t->a, seconds), event);
}

static int ep_find(const struct srq_test *t, DAT_EP_HANDLE ep)
{
	for (int i = 0; i < t->ep_count; i++)
		if (ep && t->eps[i] == ep)
			return i;
	complain("Error: event for an endpoint %p that is not of this test", (void *)ep);
	return -1;
}

/* The event contains the number of a datagram connection, since an endpoint may have many. */
static int established_index(struct srq_test *t, const DAT_EVENT *event)
{
	const DAT_CONNECTION_EVENT_DATA *conn = &event->event_data.connect_event_data;
	int n = t->opt.connections, ep = ep_find(t, conn->ep_handle), i = ep;

	if (ep < 0)
		return -1;
	if ((t->opt.ud || !srq_is_server(t)) &&
	    !index_read(conn->private_data, conn->private_data_size, n, &i))
		return -1;
	if (i != ep && i < t->ep_count) {
		complain("Error: the peer calls connection %d number %d", ep, i);
		return -1;
	}
	return i;
}

static bool established_take(struct srq_test *t, const DAT_EVENT *event)
{
	const DAT_IB_EXTENSION_EVENT_DATA *ext =
		(const DAT_IB_EXTENSION_EVENT_DATA *)event->event_extension_data;
	int i;

	if (!established_check(event, t->opt.ud))
		return false;
	i = established_index(t, event);
	if (i < 0)
		return false;
	if (t->connected[i]) {
		complain("Error: connection %d was established twice", i);
		return false;
	}
	t->connected[i] = true;
	if (t->opt.ud)
		t->ahs[i] = ext->remote_ah;
	adapter_tell(&t->a, "CONN_EST[%d] complete", i);
	return true;
}

static bool established_await(struct srq_test *t)
{
	DAT_EVENT event;

	note("Completing...");
	for (int n = 0; n < t->opt.connections; n++)
		if (!srq_await(t, t->conn_evd, "established connection", CONNECT_SECONDS_MAX + 10,
			       &event) ||
		    !established_take(t, &event))
			return false;
	printf("\n");
	note("ALL %d CONNECTED on %s!\n", t->opt.connections,
	     srq_is_server(t) ? "server" : "client");
	return true;
}

static bool request_keep(struct srq_test *t, DAT_CR_HANDLE cr, bool *taken)
{
	DAT_CR_PARAM param;
	uint32_t number;
	int i;

	memset(&param, 0, sizeof(param));
	if (!dat_ok(dat_cr_query(cr, DAT_CR_FIELD_ALL, &param), "dat_cr_query"))
		return false;
	if (!index_read(param.private_data, param.private_data_size, t->opt.connections, &i) ||
	    taken[i]) {
		complain("Error: request refused");
		dat_ok(dat_cr_reject(cr, 0, NULL), "dat_cr_reject");
		return false;
	}
	taken[i] = true;
	number = htobe32((uint32_t)i);
	if (!dat_ok(dat_cr_accept(cr, srq_ep(t, i), sizeof(number), &number), "dat_cr_accept"))
		return false;
	adapter_tell(&t->a, "Accept[%d] complete", i);
	return true;
}

bool srq_accept_all(struct srq_test *t)
{
	DAT_CONN_QUAL qual = (DAT_CONN_QUAL)t->opt.qual;
	bool taken[SRQ_MAX] = { false };
	DAT_PSP_HANDLE psp;
	DAT_EVENT event;

	if (!dat_ok(dat_psp_create(t->a.ia, qual, t->cr_evd, DAT_PSP_CONSUMER_FLAG, &psp),
		    "dat_psp_create"))
		return false;
	t->psp = psp;
	note("server ready on port %d", t->opt.qual);
	note("Accepting...");
	for (int n = 0; n < t->opt.connections; n++)
		if (!srq_await(t, t->cr_evd, "connection request",
			       n ? CONNECT_SECONDS_MAX : SERVER_SECONDS, &event) ||
		    !request_check(&event, t->opt.ud, qual, t->psp) ||
		    !request_keep(t, event.event_data.cr_arrival_event_data.cr_handle, taken))
			return false;
	return established_await(t);
}

/* Without a host the server is named by the numbers of a provider that has addresses of its own. */
static bool server_find(struct srq_test *t)
{
	struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)&t->server;
	char text[ADDRESS_TEXT];

	if (t->opt.lid) {
		in6->sin6_family = AF_INET6;
		in6->sin6_port = htons((uint16_t)t->opt.lid);
		in6->sin6_flowinfo = htonl(t->opt.qpn);
		note("Connecting to Server: lid 0x%x qpn 0x%x", t->opt.lid, t->opt.qpn);
		return true;
	}
	if (!address_resolve(t->opt.host, t->a.addr.ss_family, &t->server))
		return false;
	note("Connecting to Server: %s", t->opt.host);
	note("Address: %s port %d", address_text((struct sockaddr *)&t->server, text), t->opt.qual);
	return true;
}

bool srq_connect_all(struct srq_test *t)
{
	if (!server_find(t))
		return false;
	note("Connecting...");
	watchdog_set(adapter_limit(&t->a, PART_SECONDS));
	for (int i = 0; i < t->opt.connections; i++) {
		uint32_t number = htobe32((uint32_t)i);
		DAT_RETURN ret;

		ret = dat_ep_connect(srq_ep(t, i), (DAT_IA_ADDRESS_PTR)&t->server,
				     (DAT_CONN_QUAL)t->opt.qual, CONNECT_SECONDS_MAX * 1000000u,
				     sizeof(number), &number, DAT_QOS_BEST_EFFORT,
				     DAT_CONNECT_DEFAULT_FLAG);
		if (!dat_ok(ret, "dat_ep_connect"))
			return false;
		adapter_tell(&t->a, "dat_ep_connect [%d] complete", i);
	}
	return established_await(t);
}

/* An endpoint that leaves its queue reports that once, after the end of its connection. */
static bool notice_await(struct srq_test *t, DAT_EP_HANDLE ep)
{
	const DAT_ASYNCH_ERROR_EVENT_DATA *async;
	DAT_EVENT event;

	if (!srq_await(t, t->a.async_evd, "notice that the endpoint left the SRQ", PART_SECONDS,
		       &event))
		return false;
	async = &event.event_data.asynch_error_event_data;
	if (event.event_number == DAT_ASYNC_ERROR_EP_BROKEN && async->dat_handle == ep)
		return true;
	complain("Error: asynchronous event %s for %p, expected %s for %p",
		 event_name(event.event_number), (void *)async->dat_handle,
		 event_name(DAT_ASYNC_ERROR_EP_BROKEN), (void *)ep);
	return false;
}

/* Each event names an endpoint, which is freed at once. */
bool srq_disconnect_all(struct srq_test *t)
{
	DAT_EVENT event;

	for (int n = 0; !t->opt.ud && n < t->opt.connections; n++) {
		int i;

		watchdog_set(adapter_limit(&t->a, PART_SECONDS));
		if (!srq_is_server(t) &&
		    !dat_ok(dat_ep_disconnect(t->eps[n], DAT_CLOSE_DEFAULT), "dat_ep_disconnect"))
			return false;
		if (!srq_await(t, t->conn_evd, "end of a connection", PART_SECONDS, &event) ||
		    !disconnected_check(&event))
			return false;
		i = ep_find(t, event.event_data.connect_event_data.ep_handle);
		if (i < 0)
			return false;
		t->connected[i] = false;
		if (t->opt.srq && !notice_await(t, t->eps[i]))
			return false;
		adapter_tell(&t->a, "disc event[%d] complete, EP %d freed", n, i);
		ep_free(&t->a, &t->eps[i]);
	}
	return true;
}
