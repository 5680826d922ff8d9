/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/*
 * Senders to one shared receive queue are killed at any point and replaced: no buffer of the queue
 * is lost, whatever the consumer had seen of it, and none has bytes of a killed sender behind a
 * later message.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "test/unit/ep_util.h"
#include "test/unit/process.h"
#include "test/unit/storm.h"
#include "util/clock.h"

#define SENDERS 4u
#define ENDS	4u /* of each sender */
#define BUFFERS 160u
#define SIZE	8192u
#define KILLS	25u		     /* in each round */
#define SECONDS 6u		     /* some hundreds of kills; with LONG_SECONDS ten times that */
#define FILL	0xa5		     /* of a posted buffer */
#define EPS	(SENDERS * ENDS * 8) /* with those that are about to end */

/* ---- senders: a process each, children of one that has no other threads ---- */

static bool send_some(struct end *end, uint64_t n)
{
	static const DAT_SEG_LENGTH lengths[] = { 8, 100, 1000, 8000 };
	DAT_LMR_TRIPLET from = segment(end->env, 0, lengths[n % COUNT(lengths)]);
	DAT_EVENT event;
	DAT_COUNT more;

	return dat_ep_post_send(end->ep, 1, &from, (DAT_DTO_COOKIE){ .as_64 = n },
				DAT_COMPLETION_DEFAULT_FLAG) == DAT_SUCCESS &&
	       dat_evd_wait(end->request, PATIENCE, 1, &event, &more) == DAT_SUCCESS &&
	       event.event_data.dto_completion_event_data.status == DAT_DTO_SUCCESS;
}

static void sender_connect(struct env *env, struct end *end)
{
	end_open(env, end, NULL);
	start_connect(end);
	expect(end->conn, DAT_CONNECTION_EVENT_ESTABLISHED, end->ep);
}

/* Sends until it is killed. */
static int run_sender(int fd, void *arg)
{
	static struct end ends[ENDS];
	struct env env;
	uint64_t n = 0;
	unsigned i;

	(void)fd;
	env_open(&env);
	env.qual = *(uint64_t *)arg;
	for (i = 0; i < ENDS; i++)
		sender_connect(&env, &ends[i]);
	while (send_some(&ends[n % ENDS], n))
		n++;
	while (pause()) /* its connections are refused or have ended; it waits to be killed */
		;
	return 1;
}

/* Sends exactly one message for each buffer. */
static int run_counter(int fd, void *arg)
{
	struct env env;
	struct end end;
	uint64_t n;

	env_open(&env);
	env.qual = *(uint64_t *)arg;
	sender_connect(&env, &end);
	for (n = 0; n < BUFFERS; n++)
		if (!send_some(&end, n))
			break;
	process_say(fd, n);
	process_sync(fd);
	return 0;
}

enum order {
	ORDER_REPLACE, /* kill sender `index` and start another */
	ORDER_KILL,
	ORDER_COUNT, /* the counter sends in place of sender `index` */
	ORDER_END,
};

static int run_nursery(int fd, void *arg)
{
	struct process senders[SENDERS];
	uint64_t qual, value, n;

	(void)arg;
	memset(senders, 0, sizeof(senders));
	if (!process_hear(fd, &qual))
		return 1;
	while (recv(fd, &value, sizeof(value), 0) == sizeof(value) && value != ORDER_END) {
		struct process *sender = &senders[value >> 8];

		if (sender->pid > 0)
			process_kill(sender);
		sender->pid = 0;
		if ((value & 0xff) != ORDER_KILL &&
		    !process_start(sender, (value & 0xff) == ORDER_COUNT ? run_counter : run_sender,
				   &qual))
			return 2;
		n = 0;
		if ((value & 0xff) == ORDER_COUNT)
			process_hear(sender->fd, &n);
		process_say(fd, n);
	}
	return 0;
}

/* ---- the receiver ---- */

struct receiver {
	struct env env;
	struct process nursery;
	DAT_EVD_HANDLE conn, recv, request;
	DAT_SRQ_HANDLE srq;
	DAT_LMR_HANDLE lmr;
	DAT_LMR_CONTEXT context;
	char *memory;
	DAT_EP_HANDLE eps[EPS];
	bool posted[BUFFERS];
	unsigned seed, received, flushed, kills;
};

static void buffer_post(struct receiver *r, uint64_t n)
{
	DAT_LMR_TRIPLET where = { .virtual_address = (DAT_VADDR)(uintptr_t)(r->memory + n * SIZE),
				  .segment_length = SIZE,
				  .lmr_context = r->context };

	CU_ASSERT_FALSE(r->posted[n]);
	r->posted[n] = true;
	MUST(dat_srq_post_recv(r->srq, 1, &where, (DAT_DTO_COOKIE){ .as_64 = n }));
}

/* A message leaves the rest of its buffer as it was; a flushed receive may have been written to. */
static void buffer_refill(struct receiver *r, uint64_t n, const DAT_DTO_COMPLETION_EVENT_DATA *dto)
{
	uint8_t *buffer = (uint8_t *)r->memory + n * SIZE, *rest;

	if (dto->status != DAT_DTO_SUCCESS) {
		memset(buffer, FILL, SIZE);
		return;
	}
	CU_ASSERT_FATAL(dto->transfered_length < SIZE);
	rest = buffer + dto->transfered_length;
	if (rest[0] != FILL || memcmp(rest, rest + 1, SIZE - dto->transfered_length - 1))
		CU_FAIL("bytes of another message behind this one");
	memset(buffer, FILL, dto->transfered_length);
}

static bool buffer_take(struct receiver *r, bool again)
{
	DAT_EVENT event;
	uint64_t n;

	if (dat_evd_dequeue(r->recv, &event) != DAT_SUCCESS)
		return false;
	n = event.event_data.dto_completion_event_data.user_cookie.as_64;
	CU_ASSERT_FATAL(n < BUFFERS && r->posted[n]);
	r->posted[n] = false;
	r->received++;
	r->flushed += event.event_data.dto_completion_event_data.status != DAT_DTO_SUCCESS;
	buffer_refill(r, n, &event.event_data.dto_completion_event_data);
	if (again)
		buffer_post(r, n);
	return true;
}

static void request_keep(struct receiver *r)
{
	DAT_EP_ATTR attr = { .max_message_size = SIZE,
			     .max_recv_dtos = 8,
			     .max_request_dtos = 4,
			     .max_request_iov = 1 };
	DAT_EVENT event;
	unsigned i = 0;

	if (dat_evd_dequeue(r->env.cr, &event) != DAT_SUCCESS)
		return;
	while (i < EPS - 1 && r->eps[i])
		i++;
	CU_ASSERT_PTR_NULL_FATAL(r->eps[i]);
	MUST(dat_ep_create_with_srq(r->env.ia, r->env.pz, r->recv, r->request, r->conn, r->srq,
				    &attr, &r->eps[i]));
	if (dat_cr_accept(event.event_data.cr_arrival_event_data.cr_handle, r->eps[i], 0, NULL) !=
	    DAT_SUCCESS) {
		OK(dat_ep_free(r->eps[i]));
		r->eps[i] = DAT_HANDLE_NULL;
	}
}

/* The end of a connection frees its endpoint. */
static bool ending_take(struct receiver *r)
{
	DAT_EVENT event;
	unsigned i;

	if (dat_evd_dequeue(r->conn, &event) != DAT_SUCCESS)
		return false;
	if (event.event_number == DAT_CONNECTION_EVENT_ESTABLISHED)
		return true;
	for (i = 0; i < EPS; i++) {
		if (r->eps[i] != event.event_data.connect_event_data.ep_handle)
			continue;
		if (storm_next(&r->seed) % 4 == 0 && dat_ep_reset(r->eps[i]) != DAT_SUCCESS)
			CU_FAIL("dat_ep_reset");
		OK(dat_ep_free(r->eps[i]));
		r->eps[i] = DAT_HANDLE_NULL;
	}
	return true;
}

static void notices_drop(struct receiver *r)
{
	DAT_EVENT event;

	while (dat_evd_dequeue(r->env.async, &event) == DAT_SUCCESS)
		;
}

/* In some rounds the receiver takes only the ends, late, and leaves the received messages. */
static void receive_until(struct receiver *r, uint64_t deadline)
{
	bool looks = storm_next(&r->seed) % 2;
	struct timespec pause = { .tv_nsec = 100000 };
	unsigned i;

	do {
		bool any = false;

		notices_drop(r);
		request_keep(r);
		if (looks)
			ending_take(r);
		for (i = looks ? storm_next(&r->seed) % 32 : 0; i; i--)
			any |= buffer_take(r, true);
		if (!any)
			nanosleep(&pause, NULL);
	} while (clock_now() < deadline);
	while (ending_take(r))
		;
}

static uint64_t order(struct receiver *r, enum order what, unsigned index)
{
	uint64_t answer = 0;

	CU_ASSERT_TRUE_FATAL(process_say(r->nursery.fd, index << 8 | (unsigned)what));
	CU_ASSERT_TRUE_FATAL(process_hear(r->nursery.fd, &answer));
	return answer;
}

static unsigned eps_left(const struct receiver *r)
{
	unsigned i, n = 0;

	for (i = 0; i < EPS; i++)
		n += r->eps[i] != DAT_HANDLE_NULL;
	return n;
}

static void all_end(struct receiver *r)
{
	uint64_t deadline = clock_now() + UNIT_PATIENCE * NSEC_PER_MSEC;
	unsigned i;

	for (i = 0; i < SENDERS; i++)
		order(r, ORDER_KILL, i);
	receive_until(r, clock_now() + 50 * NSEC_PER_MSEC);
	while (eps_left(r) && clock_now() < deadline)
		receive_until(r, 0);
	CU_ASSERT_EQUAL(eps_left(r), 0);
	while (buffer_take(r, true))
		;
}

/* Messages of one sender fill all buffers, once each. */
static void all_can_be_received_into(struct receiver *r)
{
	uint64_t deadline = clock_now() + UNIT_PATIENCE * NSEC_PER_MSEC;
	struct timespec pause = { .tv_nsec = 100000 };
	unsigned i, before = r->received, posted = 0;
	DAT_SRQ_PARAM param;
	uint64_t answer;

	OK(dat_srq_query(r->srq, DAT_SRQ_FIELD_ALL, &param));
	for (i = 0; i < BUFFERS; i++)
		posted += r->posted[i];
	CU_ASSERT_EQUAL(posted, BUFFERS);
	CU_ASSERT_EQUAL(param.available_dto_count, (DAT_COUNT)BUFFERS);
	CU_ASSERT_TRUE_FATAL(process_say(r->nursery.fd, ORDER_COUNT));
	while (r->received - before < BUFFERS && clock_now() < deadline) {
		request_keep(r);
		if (!buffer_take(r, false))
			nanosleep(&pause, NULL);
	}
	CU_ASSERT_EQUAL(r->received - before, BUFFERS);
	CU_ASSERT_TRUE_FATAL(process_hear(r->nursery.fd, &answer));
	CU_ASSERT_EQUAL(answer, BUFFERS);
	for (i = 0; i < BUFFERS; i++)
		if (!r->posted[i])
			buffer_post(r, i);
	all_end(r);
}

static void receiver_open(struct receiver *r)
{
	DAT_SRQ_ATTR attr = { .max_recv_dtos = BUFFERS, .max_recv_iov = 1 };
	DAT_REGION_DESCRIPTION region;
	unsigned i;

	env_open(&r->env);
	env_listen(&r->env);
	r->memory = malloc(BUFFERS * SIZE);
	memset(r->memory, FILL, BUFFERS * SIZE);
	region.for_va = r->memory;
	MUST(dat_lmr_create(r->env.ia, DAT_MEM_TYPE_VIRTUAL, region, BUFFERS * SIZE, r->env.pz,
			    DAT_MEM_PRIV_ALL_FLAG, DAT_VA_TYPE_VA, &r->lmr, &r->context, NULL, NULL,
			    NULL));
	MUST(dat_srq_create(r->env.ia, r->env.pz, &attr, &r->srq));
	r->conn = evd_open(&r->env, 4 * EPS, DAT_EVD_CONNECTION_FLAG);
	r->recv = evd_open(&r->env, 4 * BUFFERS, DAT_EVD_DTO_FLAG);
	r->request = evd_open(&r->env, 8 * EPS, DAT_EVD_DTO_FLAG);
	for (i = 0; i < BUFFERS; i++)
		buffer_post(r, i);
	CU_ASSERT_TRUE_FATAL(process_say(r->nursery.fd, r->env.qual));
}

static void receiver_close(struct receiver *r)
{
	CU_ASSERT_TRUE(process_say(r->nursery.fd, ORDER_END));
	CU_ASSERT_EQUAL(process_end(&r->nursery), 0);
	OK(dat_ia_close(r->env.ia, DAT_CLOSE_ABRUPT_FLAG));
	free(r->env.memory);
	free(r->memory);
}

static void no_buffer_is_lost(void)
{
	unsigned seconds = 10 * storm_number("LONG_SECONDS", 0), i, rounds = 0;
	static struct receiver r;
	uint64_t end;

	if (PROCESS_TSAN)
		return;
	memset(&r, 0, sizeof(r));
	r.seed = storm_seed("buffers of killed senders");
	CU_ASSERT_TRUE_FATAL(process_start(&r.nursery, run_nursery, NULL));
	receiver_open(&r);
	end = clock_now() + (seconds ? seconds : SECONDS) * NSEC_PER_SEC;
	do {
		for (i = 0; i < SENDERS; i++)
			order(&r, ORDER_REPLACE, i);
		for (i = 0; i < KILLS && (!rounds || clock_now() < end); i++, r.kills++) {
			uint64_t pause = storm_next(&r.seed) % (i % 8 ? 20 : 150);

			receive_until(&r, clock_now() + pause * NSEC_PER_MSEC);
			order(&r, ORDER_REPLACE, storm_next(&r.seed) % SENDERS);
		}
		all_end(&r);
		all_can_be_received_into(&r);
		rounds++;
	} while (clock_now() < end && !CU_get_number_of_failures());
	printf("buffers of killed senders: %u rounds, %u kills, %u received, %u flushed\n", rounds,
	       r.kills, r.received, r.flushed);
	receiver_close(&r);
}

static const struct unit_test tests[] = {
	{ "no buffer of an SRQ is lost with a killed sender", no_buffer_is_lost },
};

UNIT_MAIN("srq_kills", tests)
