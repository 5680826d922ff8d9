/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* The server: takes one client at a time, and runs its test in the background. */

#include <sys/queue.h>
#include <stdlib.h>

#include "control.h"
#include "task.h"

enum { SERVER_EVENTS = 32 };

struct server {
	const struct options *opt;
	DAT_IA_HANDLE ia;
	DAT_EVD_HANDLE async_evd;
	struct control control;
	struct task_list tasks;
	uint64_t next_port;
	bool quit;
};

/* Each test has ports of its own; older tests are over by the time the ports are used again. */
static uint32_t ports_take(struct server *s, uint32_t count)
{
	uint64_t first = s->next_port;

	if (first + count > s->opt->port + PORT_SPAN)
		first = s->opt->port + 1;
	s->next_port = first + count;
	return (uint32_t)first;
}

static bool command_decode(const unsigned char *msg, const struct client_info *info,
			   struct task *task)
{
	bool little = info->little_endian;

	task->type = info->type;
	task->place.peer_little = little;
	switch (info->type) {
	case TEST_TRANSACTION: return wire_get_transaction(msg, little, &task->transaction);
	case TEST_PERFORMANCE: return wire_get_performance(msg, little, &task->performance);
	default:
		complain("Error: the client asks for a test of type %d", (int)info->type);
		return false;
	}
}

/* A measured test runs with no other one of its kind beside it. */
static bool test_start(struct server *s, const unsigned char *msg, const struct client_info *info)
{
	struct task *task = calloc(1, sizeof(*task));
	uint32_t ports = 1;

	if (!task || !command_decode(msg, info, task)) {
		free(task);
		return false;
	}
	if (task->type == TEST_TRANSACTION)
		ports = task->transaction.threads * task->transaction.eps;
	else
		task_list_wait(&s->tasks, TEST_PERFORMANCE);
	task->place.ia = s->ia;
	task->place.server = true;
	task->place.attr = s->control.attr;
	task->place.port = ports_take(s, ports);
	return task_start(&s->tasks, task);
}

static bool client_serve(struct server *s)
{
	struct client_info info;
	const unsigned char *msg, *command;
	uint32_t port;

	msg = control_receive(&s->control, false, "client info");
	command = msg ? control_receive(&s->control, false, "command") : NULL;
	if (!command || !wire_get_client_info(msg, &info))
		return false;
	if (info.type == TEST_QUIT) {
		detail("DT_cs_Server: Client Requests Server to Quit");
		s->quit = true;
		port = (uint32_t)s->next_port;
	} else {
		if (!test_start(s, command, &info))
			return false;
		port = TAILQ_FIRST(&s->tasks)->place.port;
	}
	wire_put_server_info(control_message(&s->control), port);
	return control_send(&s->control, "sending of the server info");
}

static bool server_listen(struct server *s)
{
	return control_create(&s->control, s->ia, SERVER_EVENTS, true) &&
	       control_arm(&s->control, CONTROL_RECVS) &&
	       link_listen(&s->control.link, s->opt->port, false);
}

/* The EP may be in a state that cannot be reset; a new one always works. */
static bool server_rearm(struct server *s)
{
	if (control_reset(&s->control) && control_arm(&s->control, CONTROL_RECVS))
		return true;
	say("DT_cs_Server: making a new service point");
	control_free(&s->control);
	return server_listen(s);
}

static bool server_loop(struct server *s)
{
	DAT_EVENT request;
	bool served;

	while (!s->quit) {
		say("Dapltest: Service Point Ready - %s", s->opt->device);
		if (!event_await_for_ever(s->control.link.cr_evd, &request))
			return false;
		task_list_reap(&s->tasks);
		served = link_accept(&s->control.link, &request, NULL, 0) && client_serve(s);
		link_disconnect(&s->control.link,
				served ? DAT_CLOSE_GRACEFUL_FLAG : DAT_CLOSE_ABRUPT_FLAG);
		if (!s->quit && !server_rearm(s))
			return false;
	}
	return true;
}

bool server_run(const struct options *opt)
{
	struct server s = { .opt = opt, .next_port = opt->port + 1 };
	bool ok;

	TAILQ_INIT(&s.tasks);
	if (!dat_ok(dat_ia_open((DAT_NAME_PTR)(uintptr_t)opt->device, SERVER_EVENTS, &s.async_evd,
				&s.ia),
		    "dat_ia_open")) {
		complain("DT_cs_Server: Could not open %s", opt->device);
		open_hint(opt->device, "-D");
		return false;
	}
	ok = server_listen(&s) && server_loop(&s);
	task_list_wait(&s.tasks, TEST_TRANSACTION);
	task_list_wait(&s.tasks, TEST_PERFORMANCE);
	ok &= control_free(&s.control);
	if (!dat_ok(dat_ia_close(s.ia, DAT_CLOSE_GRACEFUL_FLAG), "dat_ia_close")) {
		dat_ia_close(s.ia, DAT_CLOSE_ABRUPT_FLAG);
		ok = false;
	}
	say("DT_cs_Server (%s):  Exiting.", opt->device);
	return ok;
}
