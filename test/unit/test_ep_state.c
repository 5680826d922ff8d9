/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* The endpoint's state machine: every state by every event, and each state's subtype. */
#include "dapl/udapl/ep/ep.h"
#include "test/unit/unit.h"

#define STATES (DAT_EP_STATE_CONNECTED_MULTI_PATH + 1)
#define EVENTS (EP_RESET + 1)
#define NONE   (-1)

#define U  DAT_EP_STATE_UNCONNECTED
#define R  DAT_EP_STATE_RESERVED
#define PP DAT_EP_STATE_PASSIVE_CONNECTION_PENDING
#define AP DAT_EP_STATE_ACTIVE_CONNECTION_PENDING
#define TP DAT_EP_STATE_TENTATIVE_CONNECTION_PENDING
#define C  DAT_EP_STATE_CONNECTED
#define DP DAT_EP_STATE_DISCONNECT_PENDING
#define D  DAT_EP_STATE_DISCONNECTED
#define CP DAT_EP_STATE_COMPLETION_PENDING

/*
 * The transitions of the DAT 2.0 state diagram, written independently; an absent state allows no
 * event.
 */
static int expected(int now, int event)
{
	switch (event) {
	case EP_CONNECT: return now == U ? (int)AP : NONE;
	case EP_CONNECT_REFUSED: return now == AP ? (int)U : NONE;
	case EP_RESERVE: return now == U ? (int)R : NONE;
	case EP_UNRESERVE: return now == R ? (int)U : NONE;
	case EP_REQUEST: return now == R ? (int)PP : NONE;
	case EP_ACCEPT: return now == U || now == PP || now == TP ? (int)CP : NONE;
	case EP_ACCEPT_REFUSED: return now == CP ? (int)U : NONE;
	case EP_REJECT: return now == PP || now == TP ? (int)U : NONE;
	case EP_TENTATIVE: return now == U ? (int)TP : NONE;
	case EP_REQUEST_LOST: return now == PP ? (int)R : now == TP ? (int)U : NONE;
	case EP_ESTABLISHED: return now == AP || now == CP ? (int)C : NONE;
	case EP_DISCONNECT: return now == C ? (int)DP : NONE;
	case EP_ENDED:
		return now == AP || now == CP || now == C || now == DP || now == PP ? (int)D : NONE;
	case EP_RESET: return now == U || now == D ? (int)U : NONE;
	default: return NONE;
	}
}

static void test_every_cell(void)
{
	int now, event, wanted;
	DAT_EP_STATE next;
	bool legal;

	for (now = 0; now < STATES; now++) {
		for (event = 0; event < EVENTS; event++) {
			next = 77;
			legal = ep_next(now, event, &next);
			wanted = expected(now, event);
			CU_ASSERT_EQUAL(legal, wanted != NONE);
			CU_ASSERT_EQUAL(next, (DAT_EP_STATE)(wanted != NONE ? wanted : 77));
		}
	}
}

static void test_two_endings(void)
{
	DAT_EP_STATE next;

	CU_ASSERT_TRUE(ep_next(C, EP_ENDED, &next));
	CU_ASSERT_FALSE(ep_next(next, EP_ENDED, &next));
	CU_ASSERT_FALSE(ep_next(next, EP_ESTABLISHED, &next));
}

static void test_subtypes(void)
{
	static const struct {
		DAT_EP_STATE state;
		DAT_RETURN_SUBTYPE subtype;
	} rows[] = {
		{ U, DAT_INVALID_STATE_EP_UNCONNECTED },
		{ R, DAT_INVALID_STATE_EP_RESERVED },
		{ PP, DAT_INVALID_STATE_EP_PASSCONNPENDING },
		{ AP, DAT_INVALID_STATE_EP_ACTCONNPENDING },
		{ TP, DAT_INVALID_STATE_EP_TENTCONNPENDING },
		{ C, DAT_INVALID_STATE_EP_CONNECTED },
		{ DP, DAT_INVALID_STATE_EP_DISCPENDING },
		{ D, DAT_INVALID_STATE_EP_DISCONNECTED },
		{ CP, DAT_INVALID_STATE_EP_COMPLPENDING },
	};
	size_t i;

	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		CU_ASSERT_EQUAL(ep_state_error(rows[i].state),
				(DAT_CLASS_ERROR | (DAT_RETURN)DAT_INVALID_STATE |
				 rows[i].subtype));
	CU_ASSERT_EQUAL(DAT_GET_TYPE(ep_state_error(STATES)), DAT_INVALID_STATE);
}

static const struct unit_test tests[] = {
	{ "every state changes as DAT 2.0 says for every event", test_every_cell },
	{ "a state that has ended cannot end or begin again", test_two_endings },
	{ "the subtype of each state", test_subtypes },
};

UNIT_MAIN("ep_state", tests)
