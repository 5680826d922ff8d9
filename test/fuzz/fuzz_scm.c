/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/*
 * Fuzzes the messages of the socket CM: requests and replies with changed bytes, in pieces, with trailing bytes, or
 * truncated. The CM, built with the address sanitizer, rejects or accepts them; afterwards it connects to a correct
 * peer.
 *
 * FUZZ_SECONDS bounds the time, FUZZ_SEED is the first round's number.
 */
#include <stdlib.h>
#include "test/fuzz/mutate.h"
#include "test/unit/scm_rig.h"

#define EVENTS_MOST 8

static struct noise noise;

/* Makes a valid message, mostly, of which some bytes are changed; returns its length. */
static size_t mad_message(unsigned char bytes[512], unsigned op)
{
	static const unsigned sizes[] = { 0, 1, 2, 48, 68, 69, 118, 119 };
	static const uint8_t places[] = { 0, 1, 2, 3, 16, 17, 28, 32, 39, 63, 64, 65 };
	unsigned char data[CM_MESSAGE_MAX];
	unsigned i, changes = noise_next(&noise) % 4;
	size_t length;

	memset(data, (int)noise_next(&noise), sizeof(data));
	length = wire_message(bytes, 6 + noise_next(&noise) % 5, op,
			      noise_next(&noise) % 3 ? CM_HEADER : CM_HEADER_OLD, data,
			      sizes[noise_next(&noise) % 8],
			      noise_next(&noise) % 3 ? IBV_QPT_RC : IBV_QPT_UD);
	for (i = 0; i < changes; i++)
		bytes[noise_next(&noise) % 2 ? places[noise_next(&noise) % sizeof(places)]
					     : noise_next(&noise) % length] =
			(unsigned char)noise_next(&noise);
	switch (noise_next(&noise) % 6) {
	case 0: return noise_next(&noise) % (length + 1);
	case 1: return length + noise_next(&noise) % 5;
	default: return length;
	}
}

/* Sends in pieces, and stops if the peer has closed. */
static void mad_send(struct rig *rig, int fd, const unsigned char *bytes, size_t length,
		     void (*work)(struct rig *rig))
{
	size_t chunk = noise_next(&noise) % 4 ? length : 1 + noise_next(&noise) % 100, at, n;

	for (at = 0; at < length; at += n) {
		n = length - at < chunk ? length - at : chunk;
		if (send(fd, bytes + at, n, MSG_NOSIGNAL) < 0)
			return;
		work(rig);
	}
}

/* Ids that are accepted and kept until an event or the end of the round. */
static struct rdma_cm_id *kept[64];
static unsigned kept_count;

static void keep(struct rdma_cm_id *id)
{
	if (kept_count == sizeof(kept) / sizeof(kept[0]))
		CU_ASSERT_EQUAL(rdma_destroy_id(kept[--kept_count]), 0);
	kept[kept_count++] = id;
}

static void kept_forget(const struct rdma_cm_id *id)
{
	unsigned i;

	for (i = 0; i < kept_count; i++)
		if (kept[i] == id)
			kept[i--] = kept[--kept_count];
}

/* Answers each event in one of the possible ways. */
static void passive_work(struct rig *rig)
{
	struct rdma_conn_param param = { .qp_num = 5 };
	struct seen seen;
	unsigned i;

	for (i = 0; i < EVENTS_MOST && rig_poll(rig, &seen); i++) {
		CU_ASSERT_TRUE(seen.size <= CM_DATA_OLD);
		if (seen.event.event == RDMA_CM_EVENT_CONNECT_REQUEST &&
		    noise_next(&noise) % 2 == 0) {
			if (!rdma_accept(seen.event.id, &param) && noise_next(&noise) % 2) {
				keep(seen.event.id);
				continue;
			}
		} else if (seen.event.event == RDMA_CM_EVENT_CONNECT_REQUEST &&
			   noise_next(&noise) % 2) {
			rdma_reject(seen.event.id, seen.data, (uint8_t)(seen.size % 69));
		}
		kept_forget(seen.event.id);
		CU_ASSERT_EQUAL(rdma_destroy_id(seen.event.id), 0);
	}
}

static void mad_requester(struct rig *rig)
{
	unsigned char bytes[512];
	size_t length = mad_message(bytes, CM_REQ);
	int fd = wire_connect(rig->port);

	mad_send(rig, fd, bytes, length, passive_work);
	passive_work(rig);
	if (noise_next(&noise) % 2) {
		send(fd, noise_next(&noise) % 2 ? "\0\11\0\5" : "\0\11\0\4", 4, MSG_NOSIGNAL);
		passive_work(rig);
	}
	close(fd);
	passive_work(rig);
}

static void active_work(struct rig *rig)
{
	struct seen seen;
	unsigned i;

	for (i = 0; i < EVENTS_MOST && rig_poll(rig, &seen); i++) {
		CU_ASSERT_TRUE(seen.size <= CM_DATA_OLD);
		if (seen.event.event == RDMA_CM_EVENT_CONNECT_RESPONSE && noise_next(&noise) % 2)
			rdma_establish(seen.event.id);
	}
}

static void mad_server(struct rig *rig)
{
	struct sockaddr_in to = { .sin_family = AF_INET, .sin_addr = { htonl(INADDR_LOOPBACK) } };
	struct rdma_conn_param param = { .qp_num = 5 };
	unsigned char bytes[512];
	struct rdma_cm_id *id;
	unsigned tries, i;
	uint16_t port;
	int listener = wire_listen(&port), fd;

	fcntl(listener, F_SETFL, O_NONBLOCK);
	to.sin_port = htons(port);
	CU_ASSERT_EQUAL_FATAL(rdma_create_id(rig->channel, &id, NULL,
					     noise_next(&noise) % 2 ? RDMA_PS_TCP : RDMA_PS_UDP),
			      0);
	rdma_resolve_addr(id, NULL, (struct sockaddr *)&to, 1);
	active_work(rig);
	rdma_resolve_route(id, 1);
	active_work(rig);
	CU_ASSERT_EQUAL(rdma_connect(id, &param), 0);
	for (tries = 0; tries < 3; tries++) {
		for (i = 0, fd = -1; i < 100 && fd < 0; i++) {
			active_work(rig);
			fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
		}
		if (fd < 0)
			break;
		mad_send(rig, fd, bytes, mad_message(bytes, 1 + noise_next(&noise) % 5),
			 active_work);
		active_work(rig);
		close(fd);
		active_work(rig);
	}
	close(listener);
	CU_ASSERT_EQUAL(rdma_destroy_id(id), 0);
}

/* Parses bytes that end where their memory ends. */
static void mad_bytes(void)
{
	size_t size = noise_next(&noise) % (CM_MESSAGE_MAX + 3);
	unsigned char *bytes = malloc(size ? size : 1);
	const unsigned char *data = NULL;
	struct cm_message message;
	int needed;

	CU_ASSERT_PTR_NOT_NULL_FATAL(bytes);
	for (size_t i = 0; i < size; i++)
		bytes[i] = (unsigned char)(i < 20 ? noise_next(&noise) % 12 : noise_next(&noise));
	needed = cm_frame_read(bytes, size, &message, &data);
	CU_ASSERT_TRUE(needed <= (int)CM_MESSAGE_MAX);
	if (needed >= 0 && size >= (size_t)needed)
		CU_ASSERT_TRUE(data + message.p_size == bytes + needed);
	free(bytes);
}

static void sane(struct rig *rig)
{
	unsigned char bytes[512], answer[CM_HEADER];
	struct rdma_conn_param param = { .qp_num = 5 };
	struct seen seen;
	int fd = wire_connect(rig->port);

	wire_send(fd, bytes, wire_message(bytes, 9, CM_REQ, CM_HEADER, "sane", 4, IBV_QPT_RC));
	rig_expect(rig, RDMA_CM_EVENT_CONNECT_REQUEST, &seen);
	CU_ASSERT_EQUAL(memcmp(seen.data, "sane", 4), 0);
	CU_ASSERT_EQUAL(rdma_accept(seen.event.id, &param), 0);
	CU_ASSERT_EQUAL(wire_read(rig, fd, answer, CM_HEADER), CM_HEADER);
	wire_send(fd, "\0\11\0\5", 4);
	rig_expect(rig, RDMA_CM_EVENT_ESTABLISHED, NULL);
	CU_ASSERT_EQUAL(rdma_destroy_id(seen.event.id), 0);
	close(fd);
}

static void mad_peers(void)
{
	const char *seconds = getenv("FUZZ_SECONDS"), *seed = getenv("FUZZ_SEED");
	uint64_t end = clock_now() + strtoul(seconds ? seconds : "5", NULL, 0) * NSEC_PER_SEC;
	uint32_t number = (uint32_t)strtoul(seed ? seed : "1", NULL, 0), first = number;
	struct rig rig;
	unsigned i;

	printf("from FUZZ_SEED=%u on\n", first);
	do {
		noise = noise_from(number++);
		rig_open(&rig);
		rig_listen(&rig);
		for (i = 0; i < 20; i++) {
			mad_requester(&rig);
			mad_server(&rig);
			mad_bytes();
		}
		while (kept_count)
			CU_ASSERT_EQUAL(rdma_destroy_id(kept[--kept_count]), 0);
		while (rig_poll(&rig, &(struct seen){ .size = 0 }))
			CU_FAIL("an event of a destroyed identifier");
		sane(&rig);
		rig_close(&rig);
	} while (clock_now() < end && !CU_get_number_of_failures());
	printf("%u rounds of 60 messages, the last FUZZ_SEED=%u\n", number - first, number - 1);
}

static const struct unit_test tests[] = {
	{ "socket CM: peers that send bad messages break their own connections only", mad_peers },
};

UNIT_MAIN("fuzz_scm", tests)
