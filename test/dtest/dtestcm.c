/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* dtestcm: two programs make many connections through uDAPL, end them, and report the rate. */

#include <stdio.h>
#include <stdlib.h>

#include "dtestcm.h"

/* The client learns the server's address, and its provider unless an option names one. */
static bool client_meet(struct cm_test *t)
{
	double limit = adapter_limit(&t->a, PART_SECONDS);
	struct channel_news news;

	if (!t->opt.channel)
		return true;
	watchdog_set(limit);
	switch (channel_ask(t->opt.host, CHANNEL_PORT, limit, &news)) {
	case CHANNEL_OK:
		t->server = news.addr;
		if (!t->opt.provider_given)
			adapter_name(&t->a, news.provider);
		return true;
	case CHANNEL_NO_PEER:
		complain("Could not connect to %s: continuing without its data", t->opt.host);
		return true;
	default: complain("Failed to get server params"); return false;
	}
}

static bool run_server(struct cm_test *t)
{
	return cm_open(t) && cm_listen(t) && cm_accept_all(t) && cm_disconnect_all(t);
}

static bool run_client(struct cm_test *t)
{
	if (!client_meet(t) || !cm_open(t))
		return false;
	if (!t->server.ss_family && !address_resolve(t->opt.host, t->a.addr.ss_family, &t->server))
		return false;
	return cm_connect_all(t) && cm_disconnect_all(t);
}

static void report(const struct cm_test *t)
{
	static const struct {
		enum call_kind kind;
		const char *name;
	} rows[] = {
		{ CALL_OPEN, "open:" },
		{ CALL_CLOSE, "close:" },
		{ CALL_PZ_CREATE, "PZ create:" },
		{ CALL_PZ_FREE, "PZ free:" },
		{ CALL_EVD_CREATE, "EVD create:" },
		{ CALL_EVD_FREE, "EVD free:" },
		{ CALL_EP_CREATE, "EP create:" },
		{ CALL_EP_FREE, "EP free:" },
	};
	int n = t->opt.connections;

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		int calls = t->a.calls[rows[i].kind];

		note("%-12s %10.2f usec%s", rows[i].name,
		     calls ? t->a.took_us[rows[i].kind] / calls : 0, calls > 1 ? " avg" : "");
	}
	if (!cm_is_server(t))
		note("Connections: %8.2f usec, CPS %7.2f Total %4.2f secs, poll_cnt=%lu, Num=%d",
		     t->connect_us / n, n * 1e6 / t->connect_us, t->connect_us / 1e6, t->wait.polls,
		     n);
}

int main(int argc, char **argv)
{
	static struct cm_test t;
	struct connections all;
	bool passed;

	cm_options_parse(argc, argv, &t.opt);
	t.a.verbose = t.opt.verbose;
	t.a.limit = t.opt.limit;
	t.wait.mode = t.opt.wait;
	adapter_name(&t.a, t.opt.provider);
	note("Running %s on %s with %d %s connections", cm_is_server(&t) ? "server" : "client",
	     t.a.provider, t.opt.connections, t.opt.ud ? "UD" : "RC");
	passed = cm_is_server(&t) ? run_server(&t) : run_client(&t);
	all = (struct connections){ t.conn_evd, t.eps, t.connected, t.opt.connections };
	if (!passed && t.connected && !t.opt.ud)
		connections_end(&t.a, &all);
	cm_close(&t);
	watchdog_stop();
	passed = passed && !t.a.failed;
	printf("\n");
	note("DAPL Connection Test Complete. %s", passed ? "PASSED" : "FAILED");
	if (passed)
		report(&t);
	return passed ? EXIT_SUCCESS : EXIT_FAILURE;
}
