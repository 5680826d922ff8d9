/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* The client: requests a test from the server, and runs its own part of it. */

#include <string.h>

#include "control.h"

enum { CLIENT_EVENTS = 8, CONNECT_TRIES = 8, PAUSE_MS = 1000 };

struct client {
	const struct options *opt;
	DAT_IA_HANDLE ia;
	DAT_EVD_HANDLE async_evd;
	struct control control;
	struct place place;
};

static bool ia_show(struct client *c)
{
	DAT_IA_ATTR ia;
	DAT_PROVIDER_ATTR provider;
	char text[ADDRESS_TEXT];

	if (!dat_ok(dat_ia_query(c->ia, NULL, DAT_IA_FIELD_ALL, &ia, DAT_PROVIDER_FIELD_ALL,
				 &provider),
		    "dat_ia_query"))
		return false;
	detail("Provider: %s version %u.%u, adapter %s by %s", provider.provider_name,
	       (unsigned int)provider.provider_version_major,
	       (unsigned int)provider.provider_version_minor, ia.adapter_name, ia.vendor_name);
	detail("Up to %d EPs with %d DTOs each, %d EVDs of %d events, %d segments, %d LMRs",
	       (int)ia.max_eps, (int)ia.max_dto_per_ep, (int)ia.max_evds, (int)ia.max_evd_qlen,
	       (int)ia.max_iov_segments_per_dto, (int)ia.max_lmrs);
	detail("Local address %s", address_text((struct sockaddr *)ia.ia_address_ptr, text));
	if (!address_resolve(c->opt->server, ((struct sockaddr *)ia.ia_address_ptr)->sa_family,
			     &c->place.peer))
		return false;
	say("Server Name: %s", c->opt->server);
	say("Server Net Address: %s", address_text((struct sockaddr *)&c->place.peer, text));
	return true;
}

static bool server_reach(struct client *c)
{
	struct target to = {
		.addr = c->place.peer,
		.qual = c->opt->port,
		.qos = c->opt->qos,
	};
	DAT_EVENT_NUMBER outcome;

	for (int tries = 0;; tries++) {
		if (!control_arm(&c->control, 1) || !link_connect(&c->control.link, &to, &outcome))
			return false;
		if (c->control.link.connected)
			return true;
		if (outcome != DAT_CONNECTION_EVENT_PEER_REJECTED || tries == CONNECT_TRIES)
			break;
		say("DT_cs_Client: the server refused, trying again");
		clock_pause_ms(PAUSE_MS);
		if (!control_reset(&c->control))
			return false;
	}
	complain("Error: no connection to the server: %s", event_name(outcome));
	return false;
}

static bool command_send(struct client *c)
{
	const struct options *opt = c->opt;
	struct client_info info = { .type = opt->type, .eps = 0 };
	unsigned char *msg = control_message(&c->control);

	if (opt->type == TEST_TRANSACTION)
		info.eps = opt->transaction.threads * opt->transaction.eps;
	else if (opt->type == TEST_PERFORMANCE)
		info.eps = 1;
	wire_put_client_info(msg, &info);
	if (!control_send(&c->control, "sending of the client info"))
		return false;
	msg = control_message(&c->control);
	if (opt->type == TEST_TRANSACTION)
		wire_put_transaction(msg, opt);
	else if (opt->type == TEST_PERFORMANCE)
		wire_put_performance(msg, opt);
	else
		wire_put_quit(msg, opt);
	return control_send(&c->control, "sending of the command");
}

/* The server may have to finish other tests first. */
static bool answer_await(struct client *c)
{
	struct server_info info;
	const unsigned char *msg = control_receive(&c->control, true, "answer of the server");

	if (!msg || !wire_get_server_info(msg, &info))
		return false;
	detail("DT_cs_Client: the server is ready, first port %u", (unsigned int)info.port);
	c->place.peer_little = info.little_endian;
	c->place.port = info.port;
	return true;
}

static bool test_run(struct client *c)
{
	c->place.ia = c->ia;
	c->place.qos = c->opt->qos;
	c->place.attr = c->control.attr;
	switch (c->opt->type) {
	case TEST_TRANSACTION: return transaction_run(&c->place, &c->opt->transaction);
	case TEST_PERFORMANCE: return performance_run(&c->place, &c->opt->performance);
	default: return true;
	}
}

static bool client_close(struct client *c)
{
	bool ok = link_disconnect(&c->control.link, DAT_CLOSE_ABRUPT_FLAG);

	ok &= control_free(&c->control);
	if (dat_is(dat_ia_close(c->ia, DAT_CLOSE_GRACEFUL_FLAG), DAT_SUCCESS))
		return ok;
	complain("Error: the adapter cannot be closed gracefully");
	dat_ia_close(c->ia, DAT_CLOSE_ABRUPT_FLAG);
	return false;
}

bool client_run(const struct options *opt)
{
	struct client c = { .opt = opt };
	bool passed;

	watchdog_start();
	say("DT_cs_Client: Starting Test ...");
	if (!dat_ok(dat_ia_open((DAT_NAME_PTR)(uintptr_t)opt->device, CLIENT_EVENTS, &c.async_evd,
				&c.ia),
		    "dat_ia_open")) {
		complain("DT_cs_Client: Could not open %s", opt->device);
		open_hint(opt->device, "-D");
		return false;
	}
	passed = ia_show(&c) && control_create(&c.control, c.ia, CLIENT_EVENTS, false) &&
		 server_reach(&c) && command_send(&c) && answer_await(&c) && test_run(&c);
	passed &= client_close(&c);
	if (!passed)
		say("DT_cs_Client: the test FAILED");
	say("DT_cs_Client: ========== End of Work -- Client Exiting");
	return passed;
}
