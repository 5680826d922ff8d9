/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* One EVD with completions, connection events and software events: no wake-up is lost. */
#include "test/unit/ev_race.h"
#include "test/unit/ev_rig.h"

static struct rig rig;

/* Each round makes an event of another kind; the receive that it may complete was posted before. */
static bool produce(struct race *race, unsigned round)
{
	DAT_EVENT ended = { .event_number = DAT_CONNECTION_EVENT_TIMED_OUT };
	atomic_uint_least64_t *posted = race->arg;

	ended.event_data.connect_event_data.ep_handle = rig.ep;
	switch (round % 3) {
	case 0: rig_complete(race->evd, atomic_load(posted), DAT_DTO_SUCCESS, 1); return true;
	case 1: return evd_post(race->evd, &ended);
	default: return rig_post_se(race->evd, round) == DAT_SUCCESS;
	}
}

static bool taken(struct race *race, unsigned round, const DAT_EVENT *event)
{
	static const DAT_EVENT_NUMBER numbers[] = {
		DAT_DTO_COMPLETION_EVENT,
		DAT_CONNECTION_EVENT_TIMED_OUT,
		DAT_SOFTWARE_EVENT,
	};
	atomic_uint_least64_t *posted = race->arg;

	if (round % 3 == 2) {
		if (rig_recv(&rig, round) != DAT_SUCCESS)
			return false;
		atomic_store(posted, fake.last.wr_id);
	}
	return event->event_number == numbers[round % 3];
}

static DAT_RETURN arm_cno(struct race *race)
{
	struct dapl_evd *evd = race->evd;

	return DAT_CNO_ARM(evd->cno, 0);
}

static void run(DAT_CNO_HANDLE cno, DAT_EVD_HANDLE evd, const char *what, unsigned rounds)
{
	struct race race = { .produce = produce, .taken = taken, .arm = race_arm_evd, .evd = evd };
	atomic_uint_least64_t posted;

	race.arg = &posted;
	race.fd = cno ? rig_cno_fd(cno) : rig_evd_fd(evd);
	if (cno)
		race.arm = arm_cno;
	MUST(rig_recv(&rig, 0));
	atomic_init(&posted, fake.last.wr_id);
	race_run(&race, what, rounds);
}

static void open_merged(DAT_CNO_HANDLE cno)
{
	DAT_EP_ATTR attr = rig_attr();

	MUST(dat_evd_free(rig.recv));
	rig.recv = DAT_HANDLE_NULL;
	MUST(dat_evd_create(rig.ia, 64, cno,
			    DAT_EVD_DTO_FLAG | DAT_EVD_CONNECTION_FLAG | DAT_EVD_SOFTWARE_FLAG,
			    &rig.recv));
	MUST(dat_ep_create(rig.ia, rig.pz, rig.recv, rig.request, rig.conn, &attr, &rig.ep));
	rig_connect(&rig);
}

static void test_evd(void)
{
	rig_open(&rig, NULL);
	open_merged(DAT_HANDLE_NULL);
	run(DAT_HANDLE_NULL, rig.recv, "W2, descriptor of the EVD", RACE_ROUNDS / 10);
	rig_close(&rig);
}

static void test_cno(void)
{
	DAT_CNO_HANDLE cno;

	rig_open(&rig, NULL);
	cno = rig_cno(&rig);
	open_merged(cno);
	run(cno, rig.recv, "W2, descriptor of the CNO", RACE_ROUNDS / 10);
	MUST(dat_evd_modify_cno(rig.recv, DAT_HANDLE_NULL));
	MUST(dat_cno_free(cno));
	rig_close(&rig);
}

static const struct unit_test tests[] = {
	{ "completions, connection and software events wake through one EVD", test_evd },
	{ "completions, connection and software events wake through a CNO", test_cno },
};

UNIT_MAIN("ev_streams", tests)
