/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* Connects a link from either side, and ends its connection. */

#include <string.h>

#include "tool.h"

/* An RSP serves one request, for which the EP is reserved; a PSP serves any number. */
bool link_listen(struct link *l, DAT_CONN_QUAL qual, bool reserved)
{
	if (reserved)
		return dat_ok(dat_rsp_create(l->ia, qual, l->ep, l->cr_evd, &l->rsp),
			      "dat_rsp_create");
	return dat_ok(dat_psp_create(l->ia, qual, l->cr_evd, DAT_PSP_CONSUMER_FLAG, &l->psp),
		      "dat_psp_create");
}

bool link_unlisten(struct link *l)
{
	bool ok = !l->psp || dat_ok(dat_psp_free(l->psp), "dat_psp_free");

	ok &= !l->rsp || dat_ok(dat_rsp_free(l->rsp), "dat_rsp_free");
	l->psp = DAT_HANDLE_NULL;
	l->rsp = DAT_HANDLE_NULL;
	return ok;
}

static bool request_check(const struct link *l, const DAT_EVENT *event)
{
	const DAT_CR_ARRIVAL_EVENT_DATA *cr = &event->event_data.cr_arrival_event_data;

	if (event->event_number != DAT_CONNECTION_REQUEST_EVENT) {
		complain("Error: %s in place of a connection request",
			 event_name(event->event_number));
		return false;
	}
	if (l->psp ? cr->sp_handle.psp_handle != l->psp : cr->sp_handle.rsp_handle != l->rsp) {
		complain("Error: the connection request names another service point");
		return false;
	}
	return true;
}

/* Transports may pad private data, so only the expected bytes are compared. */
static bool greeting_check(DAT_CR_HANDLE cr, const char *greeting, size_t size)
{
	DAT_CR_PARAM param;

	if (!dat_ok(dat_cr_query(cr, DAT_CR_FIELD_ALL, &param), "dat_cr_query"))
		return false;
	if ((size_t)param.private_data_size < size ||
	    memcmp(param.private_data, greeting, size) != 0) {
		complain("Error: private data of the connection request is not what was agreed on");
		return false;
	}
	return true;
}

static bool established_await(struct link *l, DAT_EVENT_NUMBER *outcome)
{
	DAT_EVENT event;

	if (!event_await(l->conn_evd, false, "outcome of the connection request", &event))
		return false;
	*outcome = event.event_number;
	l->connected = *outcome == DAT_CONNECTION_EVENT_ESTABLISHED;
	if (event.event_data.connect_event_data.ep_handle != l->ep) {
		complain("Error: the connection event names another EP");
		return false;
	}
	return true;
}

/* A request of the wrong kind is refused, so that the peer need not wait. */
bool link_accept(struct link *l, const DAT_EVENT *request, const char *greeting, size_t size)
{
	DAT_CR_HANDLE cr = request->event_data.cr_arrival_event_data.cr_handle;
	DAT_EVENT_NUMBER outcome;

	if (!request_check(l, request))
		return false;
	if (greeting && !greeting_check(cr, greeting, size)) {
		dat_cr_reject(cr, 0, NULL);
		return false;
	}
	if (!dat_ok(dat_cr_accept(cr, l->rsp ? DAT_HANDLE_NULL : l->ep, 0, NULL), "dat_cr_accept"))
		return false;
	if (!established_await(l, &outcome))
		return false;
	if (!l->connected)
		complain("Error: accepting ended with %s", event_name(outcome));
	return l->connected;
}

static DAT_TIMEOUT connect_timeout(void)
{
	double us = wait_limit() * 1e6;

	return us < 4e9 ? (DAT_TIMEOUT)us : DAT_TIMEOUT_INFINITE - 1;
}

/* Returns false after an error on this side; the peer's decision is in *outcome. */
bool link_connect(struct link *l, const struct target *to, DAT_EVENT_NUMBER *outcome)
{
	struct sockaddr_storage addr = to->addr;

	if (!dat_ok(dat_ep_connect(l->ep, (DAT_IA_ADDRESS_PTR)&addr, to->qual, connect_timeout(),
				   (DAT_COUNT)to->greeting_size, (DAT_PVOID)(uintptr_t)to->greeting,
				   to->qos, DAT_CONNECT_DEFAULT_FLAG),
		    "dat_ep_connect"))
		return false;
	return established_await(l, outcome);
}

/* Either side may disconnect; both get one event. A link that was never connected gets none. */
bool link_disconnect(struct link *l, DAT_CLOSE_FLAGS how)
{
	DAT_EVENT event;

	if (!l->connected)
		return true;
	l->connected = false;
	if (!dat_ok(dat_ep_disconnect(l->ep, how), "dat_ep_disconnect") ||
	    !event_await(l->conn_evd, false, "end of the connection", &event))
		return false;
	if (event.event_number == DAT_CONNECTION_EVENT_DISCONNECTED)
		return true;
	complain("Error: the connection ended with %s", event_name(event.event_number));
	return false;
}
