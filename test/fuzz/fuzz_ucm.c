/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/*
 * Fuzzes the receiver of the UD CM: requests, answers to what the CM has sent, and repeated, stale and mixed-up messages, with
 * changed bytes, cut or with trailing bytes. The program above the CM accepts, rejects, connects, disconnects and destroys at
 * random; all time limits are a few milliseconds, so that they pass in between. Afterwards the CM connects to a correct peer.
 *
 * FUZZ_SECONDS bounds the time, FUZZ_SEED is the first round's number.
 */
#include "dapl/cm/ucm.h"
#include "test/fuzz/mutate.h"
#include "test/unit/ucm_rig.h"

#define PORT	    4000u
#define EVENTS_MOST 8u
#define HEARD	    8u
#define STEPS	    200u
#define SANE_TRIES  20u

static struct noise noise;
static struct rdma_cm_id *datagrams;

static bool one_in(unsigned n)
{
	return noise_next(&noise) % n == 0;
}

/* ---- the program above the CM: its identifiers, and what it does with them ---- */

static struct end {
	struct rdma_cm_id *id;
	bool over; /* its last event was reported */
} ends[32];
static unsigned ends_count;

static struct end *end_of(const struct rdma_cm_id *id)
{
	unsigned i;

	for (i = 0; i < ends_count; i++)
		if (ends[i].id == id)
			return &ends[i];
	return NULL;
}

static void end_drop(struct end *end)
{
	CU_ASSERT_EQUAL(rdma_destroy_id(end->id), 0);
	*end = ends[--ends_count];
}

static struct end *end_add(struct rdma_cm_id *id)
{
	if (ends_count == sizeof(ends) / sizeof(ends[0]))
		end_drop(&ends[noise_next(&noise) % ends_count]);
	ends[ends_count] = (struct end){ .id = id };
	return &ends[ends_count++];
}

/* Calls that need a state fail in another; they are made in any. */
static void program_acts(struct end *end)
{
	struct rdma_conn_param param = { .private_data = "program",
					 .private_data_len = (uint8_t)(noise_next(&noise) % 8),
					 .responder_resources = (uint8_t)(noise_next(&noise) % 5),
					 .qp_num = EP_QPN };
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_RTR + noise_next(&noise) % 2 };
	int mask;

	switch (noise_next(&noise) % 9) {
	case 0: end_drop(end); break;
	case 1: rdma_reject(end->id, NULL, 0); break;
	case 2: rdma_reject(end->id, "no", (uint8_t)(noise_next(&noise) % 3)); break;
	case 3: rdma_disconnect(end->id); break;
	case 4:
	case 5: rdma_accept(end->id, &param); break;
	case 6:
	case 7: rdma_establish(end->id); break;
	default: CU_ASSERT_EQUAL(rdma_init_qp_attr(end->id, &attr, &mask), 0);
	}
}

static void program_reads(void)
{
	struct seen seen;
	struct end *end;
	unsigned i;

	for (i = 0; i < EVENTS_MOST && rig_poll(&rig, &seen); i++) {
		if (seen.event.event == RDMA_CM_EVENT_CONNECT_REQUEST) {
			CU_ASSERT_TRUE(seen.event.listen_id == rig.listener ||
				       seen.event.listen_id == datagrams);
			CU_ASSERT_PTR_NULL(end_of(seen.event.id));
			end = end_add(seen.event.id);
		} else {
			end = end_of(seen.event.id);
			CU_ASSERT_PTR_NOT_NULL_FATAL(end);
			CU_ASSERT_FALSE(end->over);
			end->over = seen.event.event == RDMA_CM_EVENT_DISCONNECTED ||
				    seen.event.event == RDMA_CM_EVENT_REJECTED ||
				    seen.event.event == RDMA_CM_EVENT_UNREACHABLE ||
				    seen.event.event == RDMA_CM_EVENT_CONNECT_ERROR;
		}
		CU_ASSERT_TRUE(seen.size <= CM_DATA_OLD);
		if (!one_in(4))
			program_acts(end);
	}
}

/* Sends a request to the script. */
static void program_asks(void)
{
	struct rdma_conn_param param = { .private_data = "request",
					 .private_data_len = (uint8_t)(noise_next(&noise) % 8),
					 .qp_num = EP_QPN };
	struct cm_endpoint to = peer;
	unsigned char address[CM_ENDPOINT];
	struct rdma_cm_id *id;

	to.port = (uint16_t)(1 + noise_next(&noise) % 3);
	cm_endpoint_write(&to, address);
	CU_ASSERT_EQUAL_FATAL(rdma_create_id(rig.channel, &id, NULL,
					     one_in(4) ? RDMA_PS_UDP : RDMA_PS_TCP),
			      0);
	end_add(id);
	CU_ASSERT_EQUAL(rdma_resolve_addr(id, NULL, (struct sockaddr *)address, 1), 0);
	CU_ASSERT_EQUAL(rdma_resolve_route(id, 1), 0);
	CU_ASSERT_EQUAL(rdma_connect(id, &param), 0);
}

/* ---- the peer ---- */

/* The last messages of the CM. */
static struct cm_message heard[HEARD];
static unsigned heard_count;

static void peer_reads(void)
{
	struct ibv_wc wc;

	while (ibv_poll_cq(script.recv_cq, 1, &wc) > 0) {
		CU_ASSERT_TRUE(wc.byte_len >= GRH + CM_HEADER);
		cm_message_read(&heard[heard_count++ % HEARD],
				script.memory + wc.wr_id * SLOT + GRH);
		script_recv((unsigned)wc.wr_id);
	}
}

/* An answer to one of the CM's messages, or a request. */
static struct cm_message peer_message(void)
{
	struct cm_endpoint from = { .lid = 1,
				    .qpn = EP_QPN,
				    .qp_type = one_in(4) ? IBV_QPT_UD : IBV_QPT_RC };
	struct cm_message message = script_message(PORT, (uint16_t)(noise_next(&noise) % 130));
	const struct cm_message *to = &heard[noise_next(&noise) % HEARD];

	message.op = CM_REQ;
	message.s_id = noise_next(&noise) % 4;
	message.sport = 1 + noise_next(&noise) % 4;
	message.rtns = (uint8_t)(one_in(3) ? noise_next(&noise) % 3 : 0);
	cm_endpoint_write(&from, message.saddr);
	if (one_in(4) || !to->ver)
		return message;
	message.op = (uint16_t)(CM_REP + noise_next(&noise) % 6);
	message.sport = to->dport;
	message.dport = to->sport;
	message.d_id = to->s_id;
	if (to->d_id && !one_in(8))
		message.s_id = to->d_id;
	return message;
}

static void peer_sends(void)
{
	static const uint8_t places[] = { 0, 1, 2, 3, 5, 7, 16, 17, 23, 27, 28, 31, 32, 39, 63 };
	struct cm_message message = peer_message();
	unsigned changes = one_in(2) ? 0 : noise_next(&noise) % 4, i;
	size_t size = CM_HEADER + (one_in(2) ? message.p_size : noise_next(&noise) % 130);
	unsigned char bytes[SLOT] = { 0 }, *exact;

	cm_message_write(&message, bytes);
	for (i = 0; i < changes; i++)
		bytes[one_in(2) ? places[noise_next(&noise) % sizeof(places)]
				: noise_next(&noise) % size] = (unsigned char)noise_next(&noise);
	if (one_in(8))
		size = noise_next(&noise) % CM_HEADER;
	if (one_in(4)) {
		script_send(own.qpn, bytes, size ? size : 1);
		return;
	}
	/* in memory that ends where the message ends */
	exact = malloc(size ? size : 1);
	CU_ASSERT_PTR_NOT_NULL_FATAL(exact);
	memcpy(exact, bytes, size);
	cm_lock(cm_channel_of(rig.channel));
	ucm_receive(cm_channel_of(rig.channel), exact, size);
	cm_unlock(cm_channel_of(rig.channel));
	free(exact);
}

/* ---- rounds ---- */

static bool event_comes(void *arg)
{
	return rig_poll(&rig, arg);
}

/* An attempt of the correct peer to connect. */
struct attempt {
	uint16_t port;
	struct cm_message reply;
	bool replied;
	struct seen last; /* the event that ended the attempt */
};

/* Messages of other connections may still come, and a reply may be repeated. */
static bool reply_heard(struct attempt *attempt)
{
	unsigned i;

	peer_reads();
	for (i = 0; i < HEARD; i++)
		if (heard[i].op == CM_REP && heard[i].dport == attempt->port) {
			attempt->reply = heard[i];
			return true;
		}
	return false;
}

/* A reply that finds no receive is lost; the CM repeats it when its program asks for events, and gives up in the end. */
static bool reply_comes(void *arg)
{
	struct attempt *attempt = arg;

	attempt->replied = reply_heard(attempt);
	return attempt->replied || rig_poll(&rig, &attempt->last);
}

/* False if the machine was busy until the time limit of the acceptance had passed. */
static bool sane_peer_connects(uint16_t port)
{
	struct rdma_conn_param param = { .qp_num = EP_QPN };
	struct cm_message message = script_message(PORT, 0);
	unsigned char bytes[CM_HEADER];
	struct attempt attempt = { .port = port };
	struct rdma_cm_id *id;
	struct seen seen;

	message.op = CM_REQ;
	message.sport = port;
	cm_message_write(&message, bytes);
	script_send(own.qpn, bytes, sizeof(bytes));
	rig_expect(&rig, RDMA_CM_EVENT_CONNECT_REQUEST, &seen);
	id = seen.event.id;
	CU_ASSERT_EQUAL_FATAL(ntohs(rdma_get_dst_port(id)), port);
	CU_ASSERT_EQUAL(rdma_accept(id, &param), 0);
	CU_ASSERT_TRUE_FATAL(unit_wait_for(reply_comes, &attempt, UNIT_PATIENCE));
	if (attempt.replied) {
		message.op = CM_RTU;
		message.d_id = attempt.reply.s_id;
		cm_message_write(&message, bytes);
		script_send(own.qpn, bytes, sizeof(bytes));
		CU_ASSERT_TRUE_FATAL(unit_wait_for(event_comes, &attempt.last, UNIT_PATIENCE));
	}
	CU_ASSERT_PTR_EQUAL(attempt.last.event.id, id);
	CU_ASSERT_EQUAL(rdma_destroy_id(id), 0);
	return attempt.last.event.event == RDMA_CM_EVENT_ESTABLISHED;
}

static void round_of_messages(void)
{
	struct cm_endpoint at = { .family = AF_INET6, .port = PORT };
	unsigned char address[CM_ENDPOINT];
	unsigned i;

	cm_endpoint_write(&at, address);
	memset(heard, 0, sizeof(heard));
	open_both();
	listen_at(PORT);
	CU_ASSERT_EQUAL_FATAL(rdma_create_id(rig.channel, &datagrams, NULL, RDMA_PS_UDP), 0);
	CU_ASSERT_EQUAL_FATAL(rdma_bind_addr(datagrams, (struct sockaddr *)address), 0);
	CU_ASSERT_EQUAL_FATAL(rdma_listen(datagrams, 0), 0);
	for (i = 0; i < STEPS; i++) {
		if (one_in(16))
			program_asks();
		if (ends_count && one_in(4))
			program_acts(&ends[noise_next(&noise) % ends_count]);
		peer_sends();
		program_reads();
		peer_reads();
	}
	while (ends_count)
		end_drop(&ends[0]);
	for (i = 0; i < EVENTS_MOST; i++) /* events queued now are of requests that arrived */
		program_reads();
	while (ends_count)
		end_drop(&ends[0]);
	for (i = 0; i < SANE_TRIES && !sane_peer_connects((uint16_t)(40000 + i)); i++)
		;
	CU_ASSERT_TRUE(i < SANE_TRIES);
	CU_ASSERT_EQUAL(rdma_destroy_id(datagrams), 0);
	close_both();
}

static void mad_peers(void)
{
	const char *seconds = getenv("FUZZ_SECONDS"), *seed = getenv("FUZZ_SEED");
	uint64_t end = clock_now() + strtoul(seconds ? seconds : "5", NULL, 0) * NSEC_PER_SEC;
	uint32_t number = (uint32_t)strtoul(seed ? seed : "1", NULL, 0), first = number;

	printf("from FUZZ_SEED=%u on\n", first);
	do {
		noise = noise_from(number++);
		round_of_messages();
	} while (clock_now() < end && !CU_get_number_of_failures());
	printf("%u rounds of %u messages, the last FUZZ_SEED=%u\n", number - first, STEPS,
	       number - 1);
}

static const struct unit_test tests[] = {
	{ "UD CM: messages of any content cost their connections and nothing else", mad_peers },
};

int main(int argc, char **argv)
{
	setenv("SOFTVERBS_LINK", "infiniband", 1);
	setenv("DAPL_CONF", "", 1);
	setenv("DAPL_UCM_REP_TIME", "1", 1);
	setenv("DAPL_UCM_RTU_TIME", "2", 1);
	setenv("DAPL_UCM_RETRY", "3", 1);
	setenv("DAPL_UCM_DREP_TIME", "1", 1);
	setenv("DAPL_UCM_WAIT_TIME", "3", 1);
	settings_load();
	return unit_main("fuzz_ucm", tests, sizeof(tests) / sizeof(tests[0]), argc, argv);
}
