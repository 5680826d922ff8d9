/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* A program on librpma, for blackbox/verbs-rpma.sh: rpma_put server|client ADDRESS. The client fills the server's memory,
 * flushes it, reads it back and asks the server by a message what it has found there. */
#include <librpma.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PORT   "7204"
#define LENGTH (1 << 20)
#define PIECE  (LENGTH / 4) /* librpma has ten requests in flight, if not told otherwise */
#define MARK   (LENGTH / 2) /* where the atomic write goes */

/* What the server offers in its private data. */
struct offer {
	uint8_t size;
	char descriptor[100];
};

/* The memory, and behind it the message. */
static struct area {
	unsigned char data[LENGTH];
	uint64_t bad;
} area __attribute__((aligned(4096)));
static const char mark[RPMA_ATOMIC_WRITE_ALIGNMENT] = "written";

static void must(int result, const char *call)
{
	if (!result)
		return;
	fprintf(stderr, "%s: %s\n", call, rpma_err_2str(result));
	exit(1);
}
#define MUST(call) must(call, #call)

static struct rpma_peer *peer_of(const char *address, enum rpma_util_ibv_context_type type)
{
	struct ibv_context *context;
	struct rpma_peer *peer;

	MUST(rpma_utils_get_ibv_context(address, type, &context));
	MUST(rpma_peer_new(context, &peer));
	return peer;
}

static struct rpma_mr_local *area_register(struct rpma_peer *peer)
{
	struct rpma_mr_local *mr;

	MUST(rpma_mr_reg(peer, &area, sizeof(area),
			 RPMA_MR_USAGE_WRITE_SRC | RPMA_MR_USAGE_WRITE_DST |
				 RPMA_MR_USAGE_READ_SRC | RPMA_MR_USAGE_READ_DST |
				 RPMA_MR_USAGE_SEND | RPMA_MR_USAGE_RECV |
				 RPMA_MR_USAGE_FLUSH_TYPE_VISIBILITY,
			 &mr));
	return mr;
}

static void expect_event(struct rpma_conn *conn, enum rpma_conn_event expected)
{
	enum rpma_conn_event event;

	MUST(rpma_conn_next_event(conn, &event));
	if (event == expected)
		return;
	fprintf(stderr, "event %s\n", rpma_utils_conn_event_2str(event));
	exit(1);
}

/* The next completion, which is that of the operation. */
static void expect_completion(struct rpma_conn *conn, enum ibv_wc_opcode opcode)
{
	struct rpma_cq *cq;
	struct ibv_wc wc;
	int result;

	MUST(rpma_conn_get_cq(conn, &cq));
	while ((result = rpma_cq_get_wc(cq, 1, &wc, NULL)) == RPMA_E_NO_COMPLETION)
		MUST(rpma_cq_wait(cq));
	must(result, "rpma_cq_get_wc");
	if (wc.status == IBV_WC_SUCCESS && wc.opcode == opcode)
		return;
	fprintf(stderr, "completion of %d and not %d: status %d\n", wc.opcode, opcode, wc.status);
	exit(1);
}

static unsigned char pattern(size_t at)
{
	return (unsigned char)(at * 7 + at / 4096);
}

/* How many bytes are not as the client wrote them. */
static uint64_t bad_count(void)
{
	uint64_t bad = 0;

	for (size_t i = 0; i < LENGTH; i++)
		if (i < MARK || i >= MARK + sizeof(mark))
			bad += area.data[i] != pattern(i);
	return bad + (memcmp(area.data + MARK, mark, sizeof(mark)) != 0);
}

static void serve(const char *address)
{
	struct rpma_peer *peer = peer_of(address, RPMA_UTIL_IBV_CONTEXT_LOCAL);
	struct rpma_mr_local *mr = area_register(peer);
	struct offer offer = { 0 };
	struct rpma_conn_private_data data = { &offer, sizeof(offer) };
	struct rpma_conn_req *request;
	struct rpma_conn *conn;
	struct rpma_ep *ep;
	size_t size;

	MUST(rpma_mr_get_descriptor_size(mr, &size));
	offer.size = (uint8_t)size;
	if (size > sizeof(offer.descriptor))
		exit(1);
	MUST(rpma_mr_get_descriptor(mr, offer.descriptor));
	MUST(rpma_ep_listen(peer, address, PORT, &ep));
	MUST(rpma_ep_next_conn_req(ep, NULL, &request));
	MUST(rpma_conn_req_recv(request, mr, offsetof(struct area, bad), sizeof(area.bad), NULL));
	MUST(rpma_conn_req_connect(&request, &data, &conn));
	expect_event(conn, RPMA_CONN_ESTABLISHED);

	expect_completion(conn, IBV_WC_RECV);
	area.bad = bad_count();
	MUST(rpma_send(conn, mr, offsetof(struct area, bad), sizeof(area.bad),
		       RPMA_F_COMPLETION_ALWAYS, NULL));
	expect_completion(conn, IBV_WC_SEND);

	expect_event(conn, RPMA_CONN_CLOSED);
	MUST(rpma_conn_disconnect(conn));
	MUST(rpma_conn_delete(&conn));
	MUST(rpma_ep_shutdown(&ep));
	MUST(rpma_mr_dereg(&mr));
	MUST(rpma_peer_delete(&peer));
}

/* All of it, in pieces of which the flush alone is signalled, and then back. */
static void memory_use(struct rpma_conn *conn, struct rpma_mr_local *mr,
		       struct rpma_mr_remote *there)
{
	for (size_t i = 0; i < LENGTH; i++)
		area.data[i] = pattern(i);
	for (size_t at = 0; at < LENGTH; at += PIECE)
		MUST(rpma_write(conn, there, at, mr, at, PIECE, RPMA_F_COMPLETION_ON_ERROR, NULL));
	MUST(rpma_atomic_write(conn, there, MARK, mark, RPMA_F_COMPLETION_ON_ERROR, NULL));
	MUST(rpma_flush(conn, there, 0, LENGTH, RPMA_FLUSH_TYPE_VISIBILITY,
			RPMA_F_COMPLETION_ALWAYS, NULL));
	expect_completion(conn, IBV_WC_RDMA_READ);
	memset(area.data, 0, LENGTH);
	MUST(rpma_read(conn, mr, 0, there, 0, LENGTH, RPMA_F_COMPLETION_ALWAYS, NULL));
	expect_completion(conn, IBV_WC_RDMA_READ);
}

static void ask(struct rpma_conn *conn, struct rpma_mr_local *mr)
{
	MUST(rpma_recv(conn, mr, offsetof(struct area, bad), sizeof(area.bad), NULL));
	MUST(rpma_send(conn, NULL, 0, 0, RPMA_F_COMPLETION_ALWAYS, NULL));
	expect_completion(conn, IBV_WC_SEND);
	expect_completion(conn, IBV_WC_RECV);
}

static void use(const char *address)
{
	struct rpma_peer *peer = peer_of(address, RPMA_UTIL_IBV_CONTEXT_REMOTE);
	struct rpma_mr_local *mr = area_register(peer);
	struct rpma_conn_private_data data;
	struct rpma_conn_req *request;
	struct rpma_mr_remote *there;
	const struct offer *offer;
	struct rpma_conn *conn;
	uint64_t read_bad;

	MUST(rpma_conn_req_new(peer, address, PORT, NULL, &request));
	MUST(rpma_conn_req_connect(&request, NULL, &conn));
	expect_event(conn, RPMA_CONN_ESTABLISHED);
	MUST(rpma_conn_get_private_data(conn, &data));
	offer = data.ptr;
	MUST(rpma_mr_remote_from_descriptor(offer->descriptor, offer->size, &there));

	memory_use(conn, mr, there);
	read_bad = bad_count();
	ask(conn, mr);
	printf("%d bytes: %lu bad as read, %lu as found\n", LENGTH, (unsigned long)read_bad,
	       (unsigned long)area.bad);

	MUST(rpma_conn_disconnect(conn));
	expect_event(conn, RPMA_CONN_CLOSED);
	MUST(rpma_mr_remote_delete(&there));
	MUST(rpma_conn_delete(&conn));
	MUST(rpma_mr_dereg(&mr));
	MUST(rpma_peer_delete(&peer));
}

int main(int argc, char **argv)
{
	if (argc != 3)
		return 2;
	rpma_log_set_threshold(RPMA_LOG_THRESHOLD, RPMA_LOG_LEVEL_WARNING);
	if (!strcmp(argv[1], "server"))
		serve(argv[2]);
	else
		use(argv[2]);
	return 0;
}
