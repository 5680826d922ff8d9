/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/*
 * Another host that sends nonsense over a link: before the proof, and after it as a process that has the key. The
 * device goes on, and answers a sound process afterwards. FUZZ_SEED and FUZZ_SECONDS as for the others.
 */
#include <infiniband/verbs.h>
#include <sys/time.h>
#include "softverbs/cm/cm.h"
#include "softverbs/fabric/data.h"
#include "softverbs/fabric/ud.h"
#include "test/fuzz/mutate.h"
#include "test/unit/fabric_rig.h"
#include "util/clock.h"

static struct noise noise;
static uint16_t port;

/* The target of the requests: a QP whose peer is on another host, as far as it knows. */
static struct {
	struct ibv_context *context;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_qp *qp, *ud; /* ud: for datagrams */
	struct ibv_mr *mr;
	char memory[4096];
} victim;

#define ANSWER	   200u /* bytes that the target reads from the rogue */
#define ROGUE_SLOT 77u
#define ROGUE_QPN  (ROGUE_SLOT << 12 | 5)
#define UD_QKEY	   0x11111111u

/* 192.0.2.1, an address that no host has (RFC 5737) */
static const uint8_t rogue_host[16] = { [10] = 0xff, 0xff, 192, 0, 2, 1 };

static void victim_connect(void)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT,
				    .port_num = 1,
				    .qp_access_flags = IBV_ACCESS_REMOTE_WRITE |
						       IBV_ACCESS_REMOTE_READ |
						       IBV_ACCESS_REMOTE_ATOMIC };

	CU_ASSERT_EQUAL_FATAL(ibv_modify_qp(victim.qp, &attr,
					    IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
						    IBV_QP_ACCESS_FLAGS),
			      0);
	attr.qp_state = IBV_QPS_RTR;
	attr.path_mtu = IBV_MTU_1024;
	attr.dest_qp_num = ROGUE_QPN;
	attr.max_dest_rd_atomic = 1;
	attr.ah_attr = (struct ibv_ah_attr){ .is_global = 1, .port_num = 1 };
	memcpy(attr.ah_attr.grh.dgid.raw, rogue_host, sizeof(rogue_host));
	CU_ASSERT_EQUAL_FATAL(ibv_modify_qp(victim.qp, &attr,
					    IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU |
						    IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
						    IBV_QP_MAX_DEST_RD_ATOMIC |
						    IBV_QP_MIN_RNR_TIMER),
			      0);
	attr = (struct ibv_qp_attr){ .qp_state = IBV_QPS_RTS, .timeout = 14, .max_rd_atomic = 1 };
	CU_ASSERT_EQUAL_FATAL(ibv_modify_qp(victim.qp, &attr,
					    IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
						    IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
						    IBV_QP_MAX_QP_RD_ATOMIC),
			      0);
}

static void victim_listen(void)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT, .port_num = 1, .qkey = UD_QKEY };

	CU_ASSERT_EQUAL_FATAL(ibv_modify_qp(victim.ud, &attr,
					    IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
						    IBV_QP_QKEY),
			      0);
	attr.qp_state = IBV_QPS_RTR;
	CU_ASSERT_EQUAL_FATAL(ibv_modify_qp(victim.ud, &attr, IBV_QP_STATE), 0);
}

/* Requests for which the rogue has answers. */
static void victim_ask(void)
{
	struct ibv_sge sge = { (uintptr_t)victim.memory + 1024, ANSWER, victim.mr->lkey };
	struct ibv_send_wr wr = { .sg_list = &sge, .num_sge = 1, .send_flags = IBV_SEND_SIGNALED },
			   *bad;

	for (unsigned i = 0; i < 4; i++) {
		wr.opcode = i % 2 ? IBV_WR_SEND : IBV_WR_RDMA_READ;
		CU_ASSERT_EQUAL(ibv_post_send(victim.qp, &wr, &bad), 0);
	}
}

static void victim_open(void)
{
	struct ibv_qp_init_attr init = { .qp_type = IBV_QPT_RC, .cap = { 8, 8, 1, 1, 0 } };

	victim.context = ibv_open_device(sv_device_soft());
	CU_ASSERT_PTR_NOT_NULL_FATAL(victim.context);
	victim.pd = ibv_alloc_pd(victim.context);
	victim.cq = ibv_create_cq(victim.context, 64, NULL, NULL, 0);
	victim.mr = ibv_reg_mr(victim.pd, victim.memory, sizeof(victim.memory),
			       IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
				       IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC);
	init.send_cq = init.recv_cq = victim.cq;
	victim.qp = ibv_create_qp(victim.pd, &init);
	CU_ASSERT_PTR_NOT_NULL_FATAL(victim.qp);
	init.qp_type = IBV_QPT_UD;
	victim.ud = ibv_create_qp(victim.pd, &init);
	CU_ASSERT_PTR_NOT_NULL_FATAL(victim.ud);
	victim_connect();
	victim_listen();
}

static void victim_renew(void)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_RESET };
	struct ibv_sge sge = { (uintptr_t)victim.memory, 256, victim.mr->lkey };
	struct ibv_recv_wr wr = { .sg_list = &sge, .num_sge = 1 }, *bad;
	struct ibv_wc wc;

	while (ibv_poll_cq(victim.cq, 1, &wc) > 0)
		continue;
	CU_ASSERT_EQUAL_FATAL(ibv_modify_qp(victim.qp, &attr, IBV_QP_STATE), 0);
	CU_ASSERT_EQUAL_FATAL(ibv_modify_qp(victim.ud, &attr, IBV_QP_STATE), 0);
	victim_connect();
	victim_listen();
	for (unsigned i = 0; i < 4; i++) {
		CU_ASSERT_EQUAL(ibv_post_recv(victim.qp, &wr, &bad), 0);
		CU_ASSERT_EQUAL(ibv_post_recv(victim.ud, &wr, &bad), 0);
	}
}

static void victim_close(void)
{
	CU_ASSERT_EQUAL(ibv_destroy_qp(victim.qp), 0);
	CU_ASSERT_EQUAL(ibv_destroy_qp(victim.ud), 0);
	CU_ASSERT_EQUAL(ibv_dereg_mr(victim.mr), 0);
	CU_ASSERT_EQUAL(ibv_destroy_cq(victim.cq), 0);
	CU_ASSERT_EQUAL(ibv_dealloc_pd(victim.pd), 0);
	CU_ASSERT_EQUAL(ibv_close_device(victim.context), 0);
}

/* ---- the rogue ---- */

static bool seldom(void)
{
	return noise_next(&noise) % 24 == 0;
}

static void spoil(uint8_t *bytes, size_t size)
{
	for (unsigned i = noise_next(&noise) % 4; i; i--)
		bytes[noise_next(&noise) % size] = (uint8_t)noise_next(&noise);
}

/* A request that comes in parts, and the next answer: what a sound process would send. */
static struct far_request coming;
static struct far_done going;

static void coming_next(void)
{
	static const uint8_t opcodes[] = { IBV_WR_SEND,	      IBV_WR_SEND_WITH_IMM,
					   IBV_WR_RDMA_WRITE, IBV_WR_RDMA_WRITE,
					   IBV_WR_RDMA_READ,  IBV_WR_ATOMIC_FETCH_AND_ADD };

	coming = (struct far_request){
		.dest = victim.qp->qp_num,
		.source = ROGUE_QPN,
		.connection = coming.connection,
		.number = coming.number + 1,
		.opcode = opcodes[noise_next(&noise) % sizeof(opcodes)],
		.rkey = victim.mr->rkey,
		.addr = (uintptr_t)victim.memory + noise_next(&noise) % 3000 / 8 * 8,
		.length = noise_next(&noise) % 700,
	};
	if (coming.opcode == IBV_WR_ATOMIC_FETCH_AND_ADD)
		coming.length = 8;
	else if (coming.opcode == IBV_WR_SEND || coming.opcode == IBV_WR_SEND_WITH_IMM)
		coming.length %= 256;
}

/* The size of a frame's payload: the next part, now and then not as the part before promised. */
static uint32_t request_make(uint8_t *payload)
{
	uint32_t left = coming.length - coming.offset, part = left < 300 ? left : 300;
	struct far_request request = coming;

	if (part > 1 && seldom())
		part = 1 + noise_next(&noise) % part;
	if (far_brings_data(request.opcode))
		part = 0;
	coming.offset += far_brings_data(request.opcode) ? coming.length : part;
	if (seldom())
		request.length += noise_next(&noise) % 4 ? noise_next(&noise) % 600 : SV_MAX_MSG;
	if (seldom())
		request.offset = noise_next(&noise) % 300;
	if (seldom())
		request.number += noise_next(&noise) % 3;
	if (coming.offset == coming.length)
		coming_next();
	sv_far_request_write(payload, &request);
	return FAR_REQUEST_SIZE + part;
}

static uint32_t answer_make(uint8_t *payload)
{
	struct far_done done = going;
	uint32_t part = going.length - going.offset;

	if (part > 1 && noise_next(&noise) % 2)
		part = 1 + noise_next(&noise) % part;
	going.offset += part;
	if (seldom())
		done.length += noise_next(&noise) % 300;
	if (seldom())
		done.offset = noise_next(&noise) % ANSWER;
	if (seldom())
		done.status = (uint8_t)noise_next(&noise);
	if (going.offset == going.length) {
		going.number++;
		going.length = going.number % 2 ? 0 : ANSWER;
		going.offset = 0;
	}
	sv_far_done_write(payload, &done);
	return FAR_DONE_SIZE + part;
}

static uint32_t datagram_make(uint8_t *payload)
{
	struct ud_ring_record head = { .dest = victim.ud->qp_num,
				       .source = ROGUE_QPN,
				       .qkey = UD_QKEY,
				       .dgid = { [10] = 0xff, 0xff, 127, 0, 0, 1 },
				       .flags = noise_next(&noise) % 2 ? DATAGRAM_IMM : 0 };

	if (seldom())
		head.dest += noise_next(&noise) % 3;
	if (seldom())
		head.dgid[noise_next(&noise) % sizeof(head.dgid)] = (uint8_t)noise_next(&noise);
	if (seldom())
		head.qkey = noise_next(&noise);
	sv_far_datagram_write(payload, &head, noise_next(&noise) % 2);
	return FAR_DATAGRAM_SIZE + noise_next(&noise) % (seldom() ? 400 : 256 - GRH_SIZE);
}

static size_t frame_make(uint8_t *bytes)
{
	uint8_t *payload = bytes + WIRE_HEADER;
	struct wire_frame frame = { .type = WIRE_REQUEST };
	unsigned what = noise_next(&noise) % 32;

	memset(payload, 0, 512);
	if (!what) {
		frame.type = (uint16_t)(1 + noise_next(&noise) % WIRE_TYPES);
		frame.size = noise_next(&noise) % 64;
	} else if (what < 4) {
		struct cm_message message = { .kind = 1 + noise_next(&noise) % 7,
					      .from = noise_next(&noise) % 3,
					      .to = noise_next(&noise) % 3,
					      .space = RDMA_PS_TCP };

		message.source.sin6_family = message.target.sin6_family = AF_INET6;
		sv_cm_wire_write(payload, &message);
		frame.type = WIRE_CM;
		frame.size = CM_WIRE_SIZE;
	} else if (what < 8) {
		frame.type = WIRE_DATAGRAM;
		frame.size = datagram_make(payload);
	} else if (what < 14) {
		frame.type = WIRE_DONE;
		frame.size = answer_make(payload);
	} else {
		frame.size = request_make(payload);
	}
	sv_wire_header_write(bytes, &frame);
	if (noise_next(&noise) % 32 == 0)
		spoil(bytes, WIRE_HEADER + frame.size);
	return WIRE_HEADER + frame.size;
}

static void rogue_send(int fd, const uint8_t *bytes, size_t size)
{
	ssize_t sent = send(fd, bytes, size, MSG_NOSIGNAL); /* the device may have closed it */

	(void)sent;
}

/*
 * Finds the peer of that nonce, and notes that its process is on the host that the QP is connected to: its link comes
 * from the loopback address.
 */
static bool rogue_is_linked(const uint64_t nonce[2])
{
	struct sv_ip host = { .families = SV_IPV4 };
	struct sv_peer *peer;

	memcpy(&host.addr, rogue_host, sizeof(host.addr));
	peer = sv_fabric_peer_linked(nonce, &host);
	if (peer)
		sv_peer_put(peer);
	return peer;
}

/* A process that has the key, and slot 77 of its host: links, then frames. */
static void rogue_insider(void)
{
	struct wire_target target = { .kind = WIRE_TO_SLOT,
				      .slot = sv_runtime_peer_id(),
				      .from_slot = ROGUE_SLOT,
				      .from_nonce = { noise_next(&noise), noise_next(&noise) },
				      .end = rig_end };
	struct wire_answer answer;
	uint8_t bytes[1024];
	int fd = rig_dial(port);

	CU_ASSERT_EQUAL(rig_prove(fd, ""), WIRE_WELCOME);
	CU_ASSERT_EQUAL(rig_target(fd, &target, &answer), WIRE_LINKED);
	CU_ASSERT_TRUE_FATAL(rogue_is_linked(target.from_nonce));
	victim_ask();
	coming = (struct far_request){ .connection = noise_next(&noise), .number = UINT32_MAX };
	coming_next();
	going = (struct far_done){ .dest = victim.qp->qp_num,
				   .source = ROGUE_QPN,
				   .connection = far_of(qp_of(victim.qp))->connection,
				   .length = ANSWER };
	for (unsigned i = noise_next(&noise) % 60; i; i--)
		rogue_send(fd, bytes, frame_make(bytes));
	shutdown(fd, SHUT_WR);
	while (recv(fd, bytes, sizeof(bytes), 0) > 0)
		continue;
	close(fd);
}

/* One without it: what comes before the proof, spoiled. */
static void rogue_stranger(void)
{
	uint8_t bytes[WIRE_PRELUDE + WIRE_PROOF + WIRE_HEADER + WIRE_TARGET_SIZE],
		nonce[WIRE_NONCE];
	size_t size = sizeof(bytes);
	int fd = rig_dial(port);

	for (size_t i = 0; i < sizeof(bytes); i++)
		bytes[i] = (uint8_t)noise_next(&noise);
	memcpy(nonce, bytes, sizeof(nonce));
	sv_wire_prelude_write(bytes, nonce);
	if (noise_next(&noise) % 2)
		spoil(bytes, WIRE_PRELUDE);
	if (noise_next(&noise) % 2)
		size = 1 + noise_next(&noise) % sizeof(bytes);
	rogue_send(fd, bytes, size);
	shutdown(fd, SHUT_WR);
	while (recv(fd, bytes, sizeof(bytes), 0) > 0)
		continue;
	close(fd);
}

/* Bytes that end where their memory ends. */
static void decoders(void)
{
	static const size_t exact[] = { WIRE_TARGET_SIZE, WIRE_ANSWER_SIZE };
	size_t size =
		noise_next(&noise) % 4 ? noise_next(&noise) % 300 : exact[noise_next(&noise) % 2];
	uint8_t *bytes = malloc(size ? size : 1);
	struct far_request request;
	struct wire_target target;
	struct wire_answer reply;
	struct ud_ring_record head;
	struct cm_message message;
	struct far_done done;
	bool solicited;

	CU_ASSERT_PTR_NOT_NULL_FATAL(bytes);
	for (size_t i = 0; i < size; i++)
		bytes[i] = (uint8_t)(noise_next(&noise) % 3 ? noise_next(&noise) % 8
							    : noise_next(&noise));
	if (sv_far_request_read(bytes, size, &request))
		CU_ASSERT_TRUE(request.length <= SV_MAX_MSG && size >= FAR_REQUEST_SIZE);
	if (sv_far_done_read(bytes, size, &done))
		CU_ASSERT_TRUE(done.length <= SV_MAX_MSG && size >= FAR_DONE_SIZE);
	if (sv_far_datagram_read(bytes, size, &head, &solicited))
		CU_ASSERT_TRUE(size == FAR_DATAGRAM_SIZE + head.length);
	if (sv_cm_wire_read(bytes, size, &message))
		CU_ASSERT_TRUE(size == CM_WIRE_SIZE);
	if (sv_wire_target_read(bytes, size, &target))
		CU_ASSERT_TRUE(target.end.name.size <= SV_ADDRESS_MAX);
	if (sv_wire_answer_read(bytes, size, &reply))
		CU_ASSERT_TRUE(reply.end.name.size <= SV_ADDRESS_MAX);
	free(bytes);
}

static void sound_process(void)
{
	struct wire_target target = { .kind = WIRE_TO_CHECK, .end = rig_end };
	struct wire_answer answer;
	int fd = rig_dial(port);

	CU_ASSERT_EQUAL(rig_prove(fd, ""), WIRE_WELCOME);
	CU_ASSERT_EQUAL(rig_target(fd, &target, &answer), WIRE_LINKED);
	close(fd);
}

static void rogues(void)
{
	const char *seconds = getenv("FUZZ_SECONDS"), *seed = getenv("FUZZ_SEED");
	uint64_t end = clock_now() + strtoul(seconds ? seconds : "5", NULL, 0) * NSEC_PER_SEC;
	uint32_t number = (uint32_t)strtoul(seed ? seed : "1", NULL, 0), first = number;

	printf("from FUZZ_SEED=%u on\n", first);
	port = rig_on();
	victim_open();
	do {
		noise = noise_from(number++);
		victim_renew();
		rogue_insider();
		rogue_stranger();
		for (unsigned i = 0; i < 100; i++)
			decoders();
		sound_process();
	} while (clock_now() < end && !CU_get_number_of_failures());
	victim_close();
	sv_runtime_release();
	printf("%u rounds, the last FUZZ_SEED=%u\n", number - first, number - 1);
}

static const struct unit_test tests[] = {
	{ "other hosts that send nonsense cost their links and nothing else", rogues },
};

int main(int argc, char **argv)
{
	return rig_can() ? unit_main("fuzz_fabric", tests, 1, argc, argv) : 0;
}
