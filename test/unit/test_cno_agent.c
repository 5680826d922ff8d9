/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/*
 * Proxy agents: called once for each trigger, by a thread that holds no locks, and for every
 * trigger.
 */
#include "test/unit/cno_rig.h"

struct agent {
	DAT_CNO_HANDLE cno;
	DAT_IA_HANDLE ia;
	DAT_EVD_HANDLE evd; /* argument of the last call */
	unsigned calls, taken;
	bool rearms;
	DAT_RETURN freed, closed;
};

static void on_trigger(DAT_PVOID data, DAT_EVD_HANDLE evd)
{
	struct agent *agent = data;
	DAT_OS_WAIT_PROXY_AGENT self = { data, on_trigger };
	DAT_EVENT event;

	agent->calls++;
	agent->evd = evd;
	agent->freed = dat_cno_free(agent->cno);
	agent->closed = dat_ia_close(agent->ia, DAT_CLOSE_ABRUPT_FLAG);
	while (evd && dat_evd_dequeue(evd, &event) == DAT_SUCCESS)
		agent->taken++;
	if (agent->rearms)
		MUST(dat_cno_modify_agent(agent->cno, self));
}

static DAT_OS_WAIT_PROXY_AGENT agent_of(struct agent *agent)
{
	return (DAT_OS_WAIT_PROXY_AGENT){ agent, on_trigger };
}

static DAT_EVD_HANDLE open_with(struct rig *rig, struct agent *agent)
{
	rig_open(rig, NULL);
	agent->ia = rig->ia;
	MUST(dat_cno_create(rig->ia, agent_of(agent), &agent->cno));
	return rig_evd_on(rig, agent->cno, DAT_EVD_SOFTWARE_FLAG);
}

static void close_with(struct rig *rig, struct agent *agent, DAT_EVD_HANDLE evd)
{
	MUST(dat_evd_free(evd));
	MUST(dat_cno_free(agent->cno));
	rig_close(rig);
}

static void test_one_shot(void)
{
	struct agent agent = { .calls = 0 };
	DAT_CNO_PARAM param;
	DAT_EVD_HANDLE evd;
	struct rig rig;

	evd = open_with(&rig, &agent);
	MUST(rig_post_se(evd, 1));
	MUST(rig_post_se(evd, 2));
	fake_run_timers();
	CU_ASSERT_EQUAL(agent.calls, 1);
	CU_ASSERT_EQUAL(agent.taken, 2);
	CU_ASSERT_PTR_EQUAL(agent.evd, evd);
	CU_ASSERT_EQUAL(agent.freed, E(INVALID_STATE, INVALID_STATE_CNO_IN_USE));
	CU_ASSERT_EQUAL(agent.closed, E(INVALID_STATE, INVALID_STATE_IA_IN_USE));
	MUST(dat_cno_query(agent.cno, DAT_CNO_FIELD_ALL, &param));
	CU_ASSERT_EQUAL(param.proxy_type, DAT_PROXY_TYPE_NONE);
	fake_run_timers();
	CU_ASSERT_EQUAL(agent.calls, 1);
	close_with(&rig, &agent, evd);
}

static void test_every_trigger_and_delivered_locally(void)
{
	struct agent agent = { .calls = 0 };
	DAT_EVD_HANDLE evd, other;
	struct rig rig;

	evd = open_with(&rig, &agent);
	other = rig_evd_on(&rig, agent.cno, DAT_EVD_SOFTWARE_FLAG);
	MUST(rig_post_se(evd, 1));
	rig_named(agent.cno, evd); /* triggered before the agent was set */
	fake_run_timers();
	CU_ASSERT_EQUAL(agent.calls, 1);
	/* a CNO that is already triggered calls the agent for the next trigger, too */
	MUST(rig_post_se(other, 1));
	MUST(dat_cno_modify_agent(agent.cno, DAT_OS_WAIT_PROXY_AGENT_NULL));
	MUST(rig_post_se(evd, 1));
	MUST(dat_cno_modify_agent(agent.cno, agent_of(&agent)));
	fake_run_timers();
	CU_ASSERT_EQUAL(agent.calls, 2);
	CU_ASSERT_PTR_EQUAL(agent.evd, other);
	MUST(dat_cno_modify_agent(agent.cno, agent_of(&agent)));
	MUST(rig_post_se(evd, 1));
	fake_run_timers();
	CU_ASSERT_EQUAL(agent.calls, 3);
	CU_ASSERT_PTR_EQUAL(agent.evd, evd);
	MUST(dat_evd_free(other));
	close_with(&rig, &agent, evd);
}

static void test_missed_trigger_is_made_up_for(void)
{
	struct agent agent = { .calls = 0 };
	DAT_EVD_HANDLE evd;
	struct rig rig;

	evd = open_with(&rig, &agent);
	MUST(rig_post_se(evd, 1));
	fake_run_timers();
	MUST(rig_post_se(evd, 2)); /* no agent is armed */
	MUST(dat_cno_modify_agent(agent.cno, agent_of(&agent)));
	CU_ASSERT_EQUAL(agent.calls, 1); /* the call of the agent is deferred */
	fake_run_timers();
	CU_ASSERT_EQUAL(agent.calls, 2);
	CU_ASSERT_PTR_EQUAL(agent.evd, evd);
	/* an event that another call has taken is no longer reported */
	MUST(rig_post_se(evd, 3));
	rig_named(agent.cno, evd);
	MUST(dat_cno_modify_agent(agent.cno, agent_of(&agent)));
	fake_run_timers();
	CU_ASSERT_EQUAL(agent.calls, 2);
	rig_take(evd);
	close_with(&rig, &agent, evd);
}

static void test_agent_is_not_given_an_evd_that_is_gone(void)
{
	struct agent agent = { .calls = 0 };
	DAT_EVD_HANDLE evd, other;
	struct rig rig;

	evd = open_with(&rig, &agent);
	other = rig_evd_on(&rig, agent.cno, DAT_EVD_SOFTWARE_FLAG);
	MUST(rig_post_se(other, 1));
	MUST(dat_evd_free(other));
	fake_run_timers();
	CU_ASSERT_EQUAL(agent.calls, 0);
	MUST(rig_post_se(evd, 1)); /* the agent is armed as before */
	fake_run_timers();
	CU_ASSERT_EQUAL(agent.calls, 1);
	CU_ASSERT_PTR_EQUAL(agent.evd, evd);
	close_with(&rig, &agent, evd);
}

static void test_no_evd_left(void)
{
	struct agent agent = { .calls = 0 };
	DAT_EVD_HANDLE evd;
	struct rig rig;

	evd = open_with(&rig, &agent);
	agent.evd = evd;
	MUST(dat_evd_free(evd));
	fake_run_timers();
	CU_ASSERT_EQUAL(agent.calls, 1);
	CU_ASSERT_PTR_NULL(agent.evd);
	MUST(dat_cno_modify_agent(agent.cno, agent_of(&agent)));
	MUST(dat_ia_close(rig.ia, DAT_CLOSE_ABRUPT_FLAG));
	CU_ASSERT_EQUAL(agent.calls, 2);
	CU_ASSERT_PTR_NULL(agent.evd);
	CU_ASSERT_EQUAL(agent.freed, E(INVALID_HANDLE, INVALID_HANDLE_CNO));
}

static void test_free_drops_a_call_not_yet_made(void)
{
	struct agent agent = { .calls = 0 };
	DAT_EVD_HANDLE evd;
	struct rig rig;

	evd = open_with(&rig, &agent);
	MUST(rig_post_se(evd, 1));
	MUST(dat_evd_modify_cno(evd, DAT_HANDLE_NULL));
	MUST(dat_evd_modify_cno(evd, agent.cno)); /* triggers: an event is pending */
	MUST(dat_evd_modify_cno(evd, DAT_HANDLE_NULL));
	MUST(dat_cno_free(agent.cno));
	fake_run_timers();
	CU_ASSERT_EQUAL(agent.calls, 0);
	MUST(dat_evd_free(evd));
	rig_close(&rig);
}

static const struct unit_test tests[] = {
	{ "an agent is called once; calls that an agent may not make are refused", test_one_shot },
	{ "an agent is called for every trigger, even of a triggered CNO and beside waiters",
	  test_every_trigger_and_delivered_locally },
	{ "a trigger without an agent is kept for the next one",
	  test_missed_trigger_is_made_up_for },
	{ "an agent is not called for a freed EVD", test_agent_is_not_given_an_evd_that_is_gone },
	{ "after the last EVD is freed, and at an abrupt close, the agent gets no EVD",
	  test_no_evd_left },
	{ "a free of the CNO drops a call of the agent that is due",
	  test_free_drops_a_call_not_yet_made },
};

UNIT_MAIN("cno_agent", tests)
