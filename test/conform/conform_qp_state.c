/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* ibv_modify_qp of an RC QP: every transition, every attribute bit missing or too many. */
#include <stdio.h>
#include "test/conform/conform.h"

#define INIT_BITS (IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS)
#define RTR_BITS                                                         \
	(IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN | \
	 IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER)
#define RTS_BITS                                                                \
	(IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | \
	 IBV_QP_MAX_QP_RD_ATOMIC)
#define RTS_MAY \
	(IBV_QP_CUR_STATE | IBV_QP_ACCESS_FLAGS | IBV_QP_MIN_RNR_TIMER | IBV_QP_PATH_MIG_STATE)
#define SQD_MAY                                                                         \
	(INIT_BITS | IBV_QP_AV | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | \
	 IBV_QP_MAX_QP_RD_ATOMIC | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER |   \
	 IBV_QP_PATH_MIG_STATE)
/* All attribute bits but those of optional features: alternate paths and rate limits. */
#define ALL_BITS (((IBV_QP_DEST_QPN << 1) - 1) & ~(IBV_QP_STATE | IBV_QP_ALT_PATH))

static const struct transition {
	enum ibv_qp_state from, to;
	int must, may;
} transitions[] = {
	{ IBV_QPS_RESET, IBV_QPS_RESET, 0, 0 },
	{ IBV_QPS_RESET, IBV_QPS_INIT, INIT_BITS, 0 },
	{ IBV_QPS_INIT, IBV_QPS_RESET, 0, 0 },
	{ IBV_QPS_INIT, IBV_QPS_INIT, 0, INIT_BITS },
	{ IBV_QPS_INIT, IBV_QPS_RTR, RTR_BITS, IBV_QP_ACCESS_FLAGS | IBV_QP_PKEY_INDEX },
	{ IBV_QPS_INIT, IBV_QPS_ERR, 0, 0 },
	{ IBV_QPS_RTR, IBV_QPS_RESET, 0, 0 },
	{ IBV_QPS_RTR, IBV_QPS_RTS, RTS_BITS, RTS_MAY },
	{ IBV_QPS_RTR, IBV_QPS_ERR, 0, 0 },
	{ IBV_QPS_RTS, IBV_QPS_RESET, 0, 0 },
	{ IBV_QPS_RTS, IBV_QPS_RTS, 0, RTS_MAY },
	{ IBV_QPS_RTS, IBV_QPS_SQD, 0, IBV_QP_EN_SQD_ASYNC_NOTIFY },
	{ IBV_QPS_RTS, IBV_QPS_ERR, 0, 0 },
	{ IBV_QPS_SQD, IBV_QPS_RESET, 0, 0 },
	{ IBV_QPS_SQD, IBV_QPS_RTS, 0, RTS_MAY },
	{ IBV_QPS_SQD, IBV_QPS_SQD, 0, SQD_MAY },
	{ IBV_QPS_SQD, IBV_QPS_ERR, 0, 0 },
	{ IBV_QPS_ERR, IBV_QPS_RESET, 0, 0 },
	{ IBV_QPS_ERR, IBV_QPS_ERR, 0, 0 },
};

static const enum ibv_qp_state states[] = {
	IBV_QPS_RESET, IBV_QPS_INIT, IBV_QPS_RTR, IBV_QPS_RTS, IBV_QPS_SQD, IBV_QPS_ERR,
};

static struct side side;

static bool open_side(void)
{
	bool good = side_open(&side, &(struct pair_options){ 0 }, false);

	CU_ASSERT_TRUE(good);
	return good;
}

static void close_side(void)
{
	struct ibv_async_event event;

	while (readable(device->async_fd, 0) && !ibv_get_async_event(device, &event))
		ibv_ack_async_event(&event); /* SQ_DRAINED, where it was asked for */
	side_close(&side);
}

static bool drained(void *arg)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	(void)arg;
	return !ibv_query_qp(side.qp, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN, &init) &&
	       attr.qp_state == IBV_QPS_SQD && !attr.sq_draining;
}

/* Moves the QP to `state` from any state. Its peer is itself; nothing is sent. */
static bool bring(enum ibv_qp_state state)
{
	/* kernel software RoCE refuses to leave the state before */
	if (device_is_rxe && state_of(side.qp) == IBV_QPS_SQD)
		unit_wait_for(drained, NULL, PATIENCE);
	if (move_to(side.qp, IBV_QPS_RESET))
		return false;
	if (state == IBV_QPS_RESET)
		return true;
	if (make_init(side.qp, 0))
		return false;
	if (state == IBV_QPS_INIT || state == IBV_QPS_ERR)
		return state == IBV_QPS_INIT || !move_to(side.qp, IBV_QPS_ERR);
	if (make_rtr(side.qp, side.qp->qp_num, NULL))
		return false;
	if (state == IBV_QPS_RTR)
		return true;
	if (make_rts(side.qp, NULL))
		return false;
	return state == IBV_QPS_RTS ||
	       (!move_to(side.qp, IBV_QPS_SQD) && unit_wait_for(drained, NULL, PATIENCE));
}

static struct ibv_qp_attr good_values(enum ibv_qp_state from, enum ibv_qp_state to)
{
	struct ibv_qp_attr attr, rts;
	int mask;

	rtr_attr(&attr, &mask, side.qp->qp_num, &(struct pair_options){ 0 });
	rts_attr(&rts, &mask, &(struct pair_options){ 0 });
	attr.timeout = rts.timeout;
	attr.retry_cnt = rts.retry_cnt;
	attr.rnr_retry = rts.rnr_retry;
	attr.max_rd_atomic = rts.max_rd_atomic;
	attr.port_num = 1;
	attr.path_mig_state = IBV_MIG_MIGRATED;
	attr.cur_qp_state = from;
	attr.qp_state = to;
	return attr;
}

static int modify(enum ibv_qp_state from, enum ibv_qp_state to, int mask)
{
	struct ibv_qp_attr attr = good_values(from, to);

	return ibv_modify_qp(side.qp, &attr, IBV_QP_STATE | mask);
}

/* The modification returns `expected`, and the QP is then in the state that this result implies. */
static void expect(enum ibv_qp_state from, enum ibv_qp_state to, int mask, int expected)
{
	int result = bring(from) ? modify(from, to, mask) : -1;
	bool right = result == expected && state_of(side.qp) == (expected ? from : to);

	if (!right)
		fprintf(stderr, "state %d to %d with mask %#x: %d, state %d\n", from, to, mask,
			result, state_of(side.qp));
	CU_ASSERT_TRUE(right);
	CU_ASSERT_TRUE(expected || side.qp->state == to);
}

static const struct transition *find(enum ibv_qp_state from, enum ibv_qp_state to)
{
	size_t i;

	for (i = 0; i < COUNT(transitions); i++)
		if (transitions[i].from == from && transitions[i].to == to)
			return &transitions[i];
	return NULL;
}

static void each_transition(void)
{
	size_t i;

	if (!open_side())
		return;
	for (i = 0; i < COUNT(transitions); i++)
		expect(transitions[i].from, transitions[i].to, transitions[i].must, 0);
	close_side();
}

static void each_impossible_transition(void)
{
	size_t i, k;

	if (!open_side())
		return;
	for (i = 0; i < COUNT(states); i++) {
		for (k = 0; k < COUNT(states); k++) {
			if (find(states[i], states[k]))
				continue;
			expect(states[i], states[k], 0, EINVAL);
			expect(states[i], states[k], INIT_BITS, EINVAL);
			expect(states[i], states[k], RTR_BITS, EINVAL);
			expect(states[i], states[k], RTS_BITS, EINVAL);
		}
		expect(states[i], IBV_QPS_SQE, 0, EINVAL);
	}
	close_side();
}

static void each_missing_bit(void)
{
	size_t i;
	int bit;

	if (!open_side())
		return;
	for (i = 0; i < COUNT(transitions); i++)
		for (bit = 1; bit <= ALL_BITS; bit <<= 1)
			if (transitions[i].must & bit)
				expect(transitions[i].from, transitions[i].to,
				       transitions[i].must & ~bit, EINVAL);
	close_side();
}

static void each_further_bit(void)
{
	const struct transition *t;
	int bit;

	if (!open_side())
		return;
	for (t = transitions; t < transitions + COUNT(transitions); t++)
		for (bit = 1; bit <= ALL_BITS; bit <<= 1)
			if (ALL_BITS & bit && !(t->must & bit))
				expect(t->from, t->to, t->must | bit, t->may & bit ? 0 : EINVAL);
	close_side();
}

static void state_is_implied(void)
{
	struct ibv_qp_attr attr = { .qp_access_flags = IBV_ACCESS_REMOTE_READ };

	if (!open_side())
		return;
	CU_ASSERT_TRUE(bring(IBV_QPS_INIT));
	CU_ASSERT_EQUAL(ibv_modify_qp(side.qp, &attr, IBV_QP_ACCESS_FLAGS), 0);
	CU_ASSERT_EQUAL(state_of(side.qp), IBV_QPS_INIT);
	close_side();
}

static void current_state_must_be_right(void)
{
	struct ibv_qp_attr attr;

	if (!open_side())
		return;
	CU_ASSERT_TRUE(bring(IBV_QPS_RTR));
	attr = good_values(IBV_QPS_RTS, IBV_QPS_RTS);
	/* the kernel's software RoCE believes cur_qp_state and then finds the transition valid */
	CU_ASSERT_TRUE(device_is_rxe ||
		       ibv_modify_qp(side.qp, &attr, IBV_QP_STATE | IBV_QP_CUR_STATE) == EINVAL);
	attr = good_values(IBV_QPS_ERR, IBV_QPS_RTS);
	CU_ASSERT_EQUAL(ibv_modify_qp(side.qp, &attr, IBV_QP_STATE | IBV_QP_CUR_STATE | RTS_BITS),
			EINVAL);
	close_side();
}

static void rejects(const struct ibv_qp_attr *attr, int mask)
{
	struct ibv_qp_attr copy = *attr;
	int result = ibv_modify_qp(side.qp, &copy, IBV_QP_STATE | mask);

	if (result != EINVAL)
		fprintf(stderr, "accepted or refused in another way: %d\n", result);
	CU_ASSERT_EQUAL(result, EINVAL);
}

static void values_entering_init(void)
{
	struct ibv_qp_attr good, bad;

	if (!open_side())
		return;
	good = bad = good_values(IBV_QPS_RESET, IBV_QPS_INIT);
	CU_ASSERT_TRUE(bring(IBV_QPS_RESET));
	bad.port_num = 0;
	rejects(&bad, INIT_BITS);
	bad.port_num = (uint8_t)(device_attr.phys_port_cnt + 1);
	rejects(&bad, INIT_BITS);
	bad = good;
	bad.pkey_index = device_attr.max_pkeys;
	if (!device_is_rxe) /* rxe does not check the P_Key */
		rejects(&bad, INIT_BITS);
	CU_ASSERT_EQUAL(state_of(side.qp), IBV_QPS_RESET);
	close_side();
}

static void values_entering_rtr(void)
{
	struct ibv_qp_attr good, bad;
	struct ibv_port_attr port;
	int error;

	if (!open_side())
		return;
	CU_ASSERT_TRUE(bring(IBV_QPS_INIT));
	CU_ASSERT_EQUAL(ibv_query_port(device, 1, &port), 0);
	good = bad = good_values(IBV_QPS_INIT, IBV_QPS_RTR);
	bad.ah_attr.is_global = 0;
	if (port.link_layer == IBV_LINK_LAYER_ETHERNET)
		rejects(&bad, RTR_BITS);
	bad = good;
	bad.ah_attr.grh.sgid_index = 255;
	error = ibv_modify_qp(side.qp, &bad, IBV_QP_STATE | RTR_BITS);
	CU_ASSERT_TRUE(error == EINVAL || error == ENODATA);
	bad = good;
	bad.ah_attr.port_num = 9;
	rejects(&bad, RTR_BITS);
	bad = good;
	if (!device_is_rxe) { /* rxe does not check the MTU */
		bad.path_mtu = 0;
		rejects(&bad, RTR_BITS);
		bad.path_mtu = IBV_MTU_4096 + 1;
		rejects(&bad, RTR_BITS);
	}
	bad = good;
	bad.max_dest_rd_atomic = (uint8_t)(device_attr.max_qp_rd_atom + 1);
	if (device_attr.max_qp_rd_atom < 255 && !device_is_rxe) /* rxe checks only max_rd_atomic */
		rejects(&bad, RTR_BITS);
	CU_ASSERT_EQUAL(state_of(side.qp), IBV_QPS_INIT);
	CU_ASSERT_EQUAL(ibv_modify_qp(side.qp, &good, IBV_QP_STATE | RTR_BITS), 0);
	close_side();
}

static void values_entering_rts(void)
{
	struct ibv_qp_attr bad;

	if (!open_side())
		return;
	CU_ASSERT_TRUE(bring(IBV_QPS_RTR));
	bad = good_values(IBV_QPS_RTR, IBV_QPS_RTS);
	bad.max_rd_atomic = (uint8_t)(device_attr.max_qp_init_rd_atom + 1);
	if (device_attr.max_qp_init_rd_atom < 255)
		rejects(&bad, RTS_BITS);
	CU_ASSERT_EQUAL(state_of(side.qp), IBV_QPS_RTR);
	close_side();
}

static void receiver_does_not_exist(void)
{
	struct ibv_qp_attr attr;
	int mask;

	if (!open_side())
		return;
	CU_ASSERT_TRUE(bring(IBV_QPS_INIT));
	rtr_attr(&attr, &mask, 0xfffffe, &(struct pair_options){ 0 });
	CU_ASSERT_EQUAL(ibv_modify_qp(side.qp, &attr, mask), 0);
	CU_ASSERT_EQUAL(state_of(side.qp), IBV_QPS_RTR);
	close_side();
}

static const struct unit_test tests[] = {
	{ "each transition with exactly the required bits: 0", each_transition },
	{ "each pair of states that is no transition: EINVAL", each_impossible_transition },
	{ "each required bit missing: EINVAL", each_missing_bit },
	{ "each bit more: 0 when optional, else EINVAL", each_further_bit },
	{ "without a state the present one is meant", state_is_implied },
	{ "a wrong CUR_STATE: EINVAL", current_state_must_be_right },
	{ "entering INIT: port and P_Key index exist", values_entering_init },
	{ "entering RTR: path, MTU and read depth are in range", values_entering_rtr },
	{ "entering RTS: read depth is in range", values_entering_rts },
	{ "RTR towards a QP that does not exist: 0", receiver_does_not_exist },
};

CONFORM_MAIN("conform_qp_state", tests)
