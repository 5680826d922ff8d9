/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* The echo server's work for each event. */
#include <getopt.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include "echo.h"

enum {
	BATCH = 32, /* events dequeued from an EVD at a time */
	TURNS = 8   /* events that each EVD may have before the loop's other tasks run */
};

/* A message in the SRQ, or on its way back. */
struct message {
	uint64_t number;
	DAT_VLEN length;
};

/*
 * An endpoint stays until its end was reported and all its completions were taken. The first
 * messages may come before the ESTABLISHED event, and a send is possible only after it: until then
 * they are kept.
 */
struct end {
	DAT_EP_HANDLE ep;
	bool connected, over;
	int sending, kept;
	struct message keep[ECHO_EACH];
	struct end *next; /* number of endpoints that have ended */
};

struct echo {
	DAT_IA_HANDLE ia;
	DAT_PZ_HANDLE pz;
	DAT_CNO_HANDLE cno;
	DAT_EVD_HANDLE requests, connections, transfers;
	DAT_SRQ_HANDLE srq;
	DAT_LMR_HANDLE lmr;
	DAT_LMR_CONTEXT key;
	DAT_PSP_HANDLE psp;
	DAT_FD fd;
	char (*message)[ECHO_MESSAGE]; /* buffers, each in the SRQ or on its way back */
	int messages, live, most;
	long served, lives;
	struct end *over;
};

bool echo_ok(DAT_RETURN status, const char *call)
{
	const char *type = "", *detail = "";

	if (status == DAT_SUCCESS)
		return true;
	dat_strerror(status, &type, &detail);
	fprintf(stderr, "%s: %s %s\n", call, type, detail);
	return false;
}
#define OK(call) echo_ok(call, #call)

static DAT_LMR_TRIPLET segment(const struct echo *echo, uint64_t i, DAT_VLEN length)
{
	return (DAT_LMR_TRIPLET){
		.virtual_address = (DAT_VADDR)(uintptr_t)echo->message[i],
		.segment_length = length,
		.lmr_context = echo->key,
	};
}

static bool receive(struct echo *echo, uint64_t i)
{
	DAT_LMR_TRIPLET iov = segment(echo, i, ECHO_MESSAGE);
	DAT_DTO_COOKIE cookie = { .as_64 = i };

	return OK(dat_srq_post_recv(echo->srq, 1, &iov, cookie));
}

/* ---- objects ---- */

static bool open_queues(struct echo *echo)
{
	DAT_SRQ_ATTR attr = { .max_recv_dtos = echo->messages, .max_recv_iov = 1 };
	DAT_REGION_DESCRIPTION region = { .for_va = echo->message };

	if (!OK(dat_lmr_create(echo->ia, DAT_MEM_TYPE_VIRTUAL, region,
			       (DAT_VLEN)echo->messages * ECHO_MESSAGE, echo->pz,
			       DAT_MEM_PRIV_LOCAL_READ_FLAG | DAT_MEM_PRIV_LOCAL_WRITE_FLAG,
			       DAT_VA_TYPE_VA, &echo->lmr, &echo->key, NULL, NULL, NULL)) ||
	    !OK(dat_srq_create(echo->ia, echo->pz, &attr, &echo->srq)))
		return false;
	for (int i = 0; i < echo->messages; i++)
		if (!receive(echo, (uint64_t)i))
			return false;
	return true;
}

static bool open_events(struct echo *echo)
{
	DAT_COUNT ends = 2 * echo->most;

	return OK(dat_cno_create(echo->ia, DAT_OS_WAIT_PROXY_AGENT_NULL, &echo->cno)) &&
	       OK(DAT_CNO_GET_FD(echo->cno, &echo->fd)) &&
	       OK(dat_evd_create(echo->ia, ends, echo->cno, DAT_EVD_CR_FLAG, &echo->requests)) &&
	       OK(dat_evd_create(echo->ia, ends, echo->cno, DAT_EVD_CONNECTION_FLAG,
				 &echo->connections)) &&
	       OK(dat_evd_create(echo->ia, 2 * echo->messages, echo->cno, DAT_EVD_DTO_FLAG,
				 &echo->transfers));
}

struct echo *echo_open(char *name, DAT_CONN_QUAL qual, int most, long lives)
{
	struct echo *echo = calloc(1, sizeof(*echo));
	DAT_EVD_HANDLE async = DAT_HANDLE_NULL;

	if (!echo)
		return NULL;
	echo->most = most;
	echo->lives = lives;
	echo->messages = most * ECHO_EACH;
	echo->message = calloc((size_t)echo->messages, ECHO_MESSAGE);
	if (echo->message && OK(dat_ia_open(name, 8, &async, &echo->ia)) &&
	    OK(dat_pz_create(echo->ia, &echo->pz)) && open_events(echo) && open_queues(echo) &&
	    OK(dat_psp_create(echo->ia, qual, echo->requests, DAT_PSP_CONSUMER_FLAG, &echo->psp)))
		return echo;
	echo_close(echo);
	return NULL;
}

/* Closing the IA frees the rest. */
void echo_close(struct echo *echo)
{
	if (echo->ia)
		OK(dat_ia_close(echo->ia, DAT_CLOSE_ABRUPT_FLAG));
	free(echo->message);
	free(echo);
}

int echo_fd(const struct echo *echo)
{
	return echo->fd;
}

/* ---- endpoints ---- */

static bool end_free(struct echo *echo, struct end *end)
{
	bool ok = OK(dat_ep_free(end->ep));

	free(end);
	echo->live--;
	echo->served++;
	return ok;
}

/* A failed accept is no failure of the server, because the client may be gone. */
static bool request(struct echo *echo, const DAT_EVENT *event)
{
	DAT_CR_HANDLE cr = event->event_data.cr_arrival_event_data.cr_handle;
	DAT_EP_ATTR attr = {
		.service_type = DAT_SERVICE_TYPE_RC,
		.max_message_size = ECHO_MESSAGE,
		.max_recv_dtos = ECHO_EACH,
		.max_request_dtos = 2 * ECHO_EACH,
		.max_recv_iov = 1,
		.max_request_iov = 1,
	};
	struct end *end;

	if (echo->live == echo->most)
		return OK(dat_cr_reject(cr, 0, NULL));
	end = calloc(1, sizeof(*end));
	if (!end)
		return false;
	if (!OK(dat_ep_create_with_srq(echo->ia, echo->pz, echo->transfers, echo->transfers,
				       echo->connections, echo->srq, &attr, &end->ep))) {
		free(end);
		return false;
	}
	echo->live++;
	dat_set_consumer_context(end->ep, (DAT_CONTEXT){ .as_ptr = end });
	if (dat_cr_accept(cr, end->ep, 0, NULL) != DAT_SUCCESS)
		return end_free(echo, end);
	return true;
}

static struct end *end_of(DAT_EP_HANDLE ep)
{
	DAT_CONTEXT context;

	dat_get_consumer_context(ep, &context);
	return context.as_ptr;
}

/* Sends the message back, or returns it to the SRQ if the connection has ended. */
static bool answer(struct echo *echo, struct end *end, const struct message *message)
{
	DAT_LMR_TRIPLET iov = segment(echo, message->number, message->length);
	DAT_DTO_COOKIE cookie = { .as_64 = message->number };

	if (end->over ||
	    dat_ep_post_send(end->ep, 1, &iov, cookie, DAT_COMPLETION_DEFAULT_FLAG) != DAT_SUCCESS)
		return receive(echo, message->number);
	end->sending++;
	return true;
}

/* After ESTABLISHED or any end the kept messages are due. */
static bool connection(struct echo *echo, const DAT_EVENT *event)
{
	struct end *end = end_of(event->event_data.connect_event_data.ep_handle);

	if (event->event_number == DAT_CONNECTION_EVENT_ESTABLISHED) {
		end->connected = true;
	} else {
		end->over = true;
		end->next = echo->over;
		echo->over = end;
	}
	for (int i = 0; i < end->kept; i++)
		if (!answer(echo, end, &end->keep[i]))
			return false;
	end->kept = 0;
	return true;
}

/* A received message is sent back; the buffer of a sent one is posted again. */
static bool transfer(struct echo *echo, const DAT_EVENT *event)
{
	const DAT_DTO_COMPLETION_EVENT_DATA *dto = &event->event_data.dto_completion_event_data;
	struct end *end = end_of(dto->ep_handle);
	struct message message = { dto->user_cookie.as_64, dto->transfered_length };

	if (dto->operation == DAT_DTO_SEND)
		end->sending--;
	else if (dto->status == DAT_DTO_SUCCESS && end->connected)
		return answer(echo, end, &message);
	else if (dto->status == DAT_DTO_SUCCESS && !end->over && end->kept < ECHO_EACH) {
		end->keep[end->kept++] = message;
		return true;
	}
	return receive(echo, message.number);
}

/* ---- events ---- */

static bool handle(struct echo *echo, const DAT_EVENT *event)
{
	switch (event->event_number) {
	case DAT_CONNECTION_REQUEST_EVENT: return request(echo, event);
	case DAT_DTO_COMPLETION_EVENT: return transfer(echo, event);
	default: return connection(echo, event);
	}
}

static bool take(struct echo *echo, DAT_EVD_HANDLE evd)
{
	DAT_EVENT event[BATCH];
	DAT_COUNT n = 0;
	DAT_RETURN status = DAT_EVD_DEQUEUE_N(evd, BATCH, event, &n);

	for (int i = 0; i < n; i++)
		if (!handle(echo, &event[i]))
			return false;
	return status == DAT_QUEUE_EMPTY || echo_ok(status, "DAT_EVD_DEQUEUE_N");
}

/* Takes one batch from each EVD that has events; *any says whether one had. */
static bool turn(struct echo *echo, bool *any)
{
	DAT_EVD_HANDLE evd[3];
	DAT_COUNT n = 0;
	DAT_RETURN status = DAT_CNO_POLL(echo->cno, 3, evd, &n);

	*any = n;
	for (int i = 0; i < n; i++)
		if (!take(echo, evd[i]))
			return false;
	return status == DAT_QUEUE_EMPTY || echo_ok(status, "DAT_CNO_POLL");
}

/* After all events are taken, no event names an ended endpoint, unless it is still sending. */
static bool sweep(struct echo *echo)
{
	struct end **link = &echo->over, *end;

	while ((end = *link)) {
		if (end->sending) {
			link = &end->next;
			continue;
		}
		*link = end->next;
		if (!end_free(echo, end))
			return false;
	}
	return true;
}

enum echo_state echo_run(struct echo *echo)
{
	DAT_RETURN status;
	bool any = true;

	for (int i = 0; i < TURNS && any; i++)
		if (!turn(echo, &any))
			return ECHO_FAILED;
	if (any)
		return ECHO_MORE;
	if (!sweep(echo))
		return ECHO_FAILED;
	if (echo->lives && echo->served >= echo->lives && !echo->live)
		return ECHO_DONE;
	status = DAT_CNO_ARM(echo->cno, 0);
	if (status == DAT_EV_BUSY)
		return ECHO_MORE;
	return echo_ok(status, "DAT_CNO_ARM") ? ECHO_SLEEP : ECHO_FAILED;
}

/* ---- command line ---- */

struct echo *echo_open_args(int argc, char **argv)
{
	static char soft[] = "ofa-v2-soft";
	DAT_CONN_QUAL qual = 45300;
	long most = 1000, lives = 0;
	char *name = soft;
	struct echo *echo;
	int option;

	while ((option = getopt(argc, argv, "P:p:m:n:")) != -1) {
		switch (option) {
		case 'P': name = optarg; break;
		case 'p': qual = strtoull(optarg, NULL, 0); break;
		case 'm': most = strtol(optarg, NULL, 0); break;
		case 'n': lives = strtol(optarg, NULL, 0); break;
		default: most = 0;
		}
	}
	if (optind != argc || most < 1 || most > 100000 || lives < 0) {
		fprintf(stderr, "usage: %s [-P provider] [-p port] [-m endpoints] [-n lives]\n",
			argv[0]);
		return NULL;
	}
	echo = echo_open(name, qual, (int)most, lives);
	if (echo) {
		printf("serving %ld endpoints at %llu\n", most, (unsigned long long)qual);
		fflush(stdout);
	}
	return echo;
}
