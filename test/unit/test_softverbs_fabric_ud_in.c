/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* Datagrams from other hosts: they arrive, are lost, or end the link. */
#include "test/unit/fabric_ud.h"

static int rogue_open(void)
{
	struct wire_target target = { .kind = WIRE_TO_SLOT,
				      .slot = sv_runtime_peer_id(),
				      .from_slot = OTHER,
				      .from_nonce = { 1, 2 },
				      .end = rig_end };
	struct wire_answer answer;
	int fd = rig_dial(own.port);

	target.from_nonce[1] = (uint64_t)clock_now();
	CU_ASSERT_EQUAL(rig_prove(fd, ""), WIRE_WELCOME);
	CU_ASSERT_EQUAL(rig_target(fd, &target, &answer), WIRE_LINKED);
	return fd;
}

static struct ud_ring_record head_to(const struct ibv_qp *qp)
{
	struct ud_ring_record head = {
		.dest = qp->qp_num, .source = THEIR_QP, .qkey = QKEY, .imm = htonl(99)
	};

	memcpy(head.dgid, home, sizeof(home));
	return head;
}

static void rogue_send(int fd, const struct ud_ring_record *head, uint32_t length)
{
	uint8_t bytes[FAR_DATAGRAM_SIZE + DATAGRAM_MAX + 1];

	sv_far_datagram_write(bytes, head, false);
	memset(bytes + FAR_DATAGRAM_SIZE, 'x', length);
	rig_frame(fd, WIRE_DATAGRAM, bytes, FAR_DATAGRAM_SIZE + length);
}

static bool loses(void *arg)
{
	return lost(FAR_NOT_RECEIVED) == *(const uint64_t *)arg;
}

static void arrive(void)
{
	struct ibv_grh *grh = (void *)(own.memory + ROOM);
	struct ud_ring_record head;
	struct ibv_ah_attr attr;
	struct ibv_wc wc = { 0 };
	int fd;

	own_open();
	fd = rogue_open();
	head = head_to(own.qp);
	head.flags = DATAGRAM_IMM;
	recv_post(1, ROOM);
	rogue_send(fd, &head, DATAGRAM_MAX);
	CU_ASSERT_TRUE_FATAL(unit_wait_for(completes, &wc, UNIT_PATIENCE));
	CU_ASSERT_EQUAL(wc.status, IBV_WC_SUCCESS);
	CU_ASSERT_EQUAL(wc.byte_len, ROOM);
	CU_ASSERT_EQUAL(wc.src_qp, THEIR_QP);
	CU_ASSERT_EQUAL(wc.imm_data, htonl(99));
	CU_ASSERT_EQUAL(wc.wc_flags, IBV_WC_GRH | IBV_WC_WITH_IMM);
	CU_ASSERT_EQUAL(own.memory[2 * ROOM - 1], 'x');
	/* the source is that of the link */
	CU_ASSERT_EQUAL(ibv_init_ah_from_wc(own.context, 1, &wc, grh, &attr), 0);
	CU_ASSERT_EQUAL(memcmp(attr.grh.dgid.raw, home, sizeof(home)), 0);

	head.flags = 0;
	recv_post(2, ROOM);
	rogue_send(fd, &head, 0);
	CU_ASSERT_TRUE(unit_wait_for(completes, &wc, UNIT_PATIENCE));
	CU_ASSERT_EQUAL(wc.wc_flags, IBV_WC_GRH);
	CU_ASSERT_EQUAL(wc.byte_len, GRH_SIZE);
	CU_ASSERT_EQUAL(lost(FAR_NOT_RECEIVED), 0);
	close(fd);
	own_close();
}

/* Each is lost, as within a host, and the next one arrives. */
static void lost_ones(void)
{
	struct ud_ring_record head;
	struct ibv_qp *other;
	struct ibv_wc wc = { 0 };
	uint64_t expected = 0;
	uint32_t gone;
	int fd;

	own_open();
	other = qp_new();
	gone = other->qp_num;
	CU_ASSERT_EQUAL(ibv_destroy_qp(other), 0);
	fd = rogue_open();
	head = head_to(own.qp);
	rogue_send(fd, &head, 10); /* there is no receive */
	expected++;
	CU_ASSERT_TRUE(unit_wait_for(loses, &expected, UNIT_PATIENCE));
	recv_post(1, ROOM);
	head.qkey++;
	rogue_send(fd, &head, 10);
	head = head_to(own.qp);
	head.dest = gone;
	rogue_send(fd, &head, 10);
	head = head_to(own.qp);
	memcpy(head.dgid, elsewhere, sizeof(elsewhere));
	rogue_send(fd, &head, 10);
	expected += 3;
	CU_ASSERT_TRUE(unit_wait_for(loses, &expected, UNIT_PATIENCE));
	CU_ASSERT_EQUAL(ibv_poll_cq(own.cq, 1, &wc), 0);
	head = head_to(own.qp);
	rogue_send(fd, &head, 10);
	CU_ASSERT_TRUE(unit_wait_for(completes, &wc, UNIT_PATIENCE));
	CU_ASSERT_EQUAL(wc.wr_id, 1);
	CU_ASSERT_EQUAL(wc.byte_len, GRH_SIZE + 10);

	/* one that is longer than its receive is an error of the receiver, as within a host */
	recv_post(2, GRH_SIZE + 9);
	rogue_send(fd, &head, 10);
	CU_ASSERT_TRUE(unit_wait_for(completes, &wc, UNIT_PATIENCE));
	CU_ASSERT_EQUAL(wc.status, IBV_WC_LOC_LEN_ERR);
	CU_ASSERT_EQUAL(lost(FAR_NOT_RECEIVED), expected);
	close(fd);
	own_close();
}

/* What no sound peer sends ends the link. */
static void malformed(void)
{
	struct ud_ring_record head;
	int fd;

	own_open();
	recv_post(1, ROOM);
	for (unsigned what = 0; what < 3; what++) {
		head = head_to(own.qp);
		fd = rogue_open();
		if (what == 0)
			head.source = (OTHER + 1) << 12;
		else if (what == 1)
			head.dest = (uint32_t)(sv_runtime_peer_id() ^ 1) << 12;
		rogue_send(fd, &head, what == 2 ? DATAGRAM_MAX + 1 : 1);
		CU_ASSERT_TRUE(rig_is_closed(fd));
		close(fd);
	}
	CU_ASSERT_EQUAL(lost(FAR_NOT_RECEIVED), 0);
	own_close();
}

static const struct unit_test tests[] = {
	{ "they arrive, with the address of the link", arrive },
	{ "those that nothing takes are lost and counted", lost_ones },
	{ "malformed ones end the link", malformed },
};

int main(int argc, char **argv)
{
	size_t count = sizeof(tests) / sizeof(tests[0]);

	return rig_can()
		       ? unit_main("softverbs fabric, arriving datagrams", tests, count, argc, argv)
		       : 0;
}
