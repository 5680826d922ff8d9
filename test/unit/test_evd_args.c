/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* Each check of the calls on EVDs and CNOs, alone and with each later one. */
#include "test/unit/spoil.h"

struct evd_args {
	DAT_IA_HANDLE ia;
	DAT_COUNT qlen;
	DAT_CNO_HANDLE cno;
	DAT_EVD_FLAGS flags;
	DAT_EVD_HANDLE *evd;
};

static void evd_good(void *args)
{
	*(struct evd_args *)args =
		(struct evd_args){ things.ia, 8, things.cno, DAT_EVD_DTO_FLAG, &things_out.handle };
}

static DAT_RETURN evd_call(void *args)
{
	struct evd_args *a = args;

	return dat_evd_create(a->ia, a->qlen, a->cno, a->flags, a->evd);
}

static void evd_undo(void *args)
{
	OK(dat_evd_free(*((struct evd_args *)args)->evd));
}

SPOIL(evd_args, evd_bad_ia, a->ia = things.pz)
SPOIL(evd_args, evd_no_length, a->qlen = 0)
SPOIL(evd_args, evd_less, a->qlen = -1)
SPOIL(evd_args, evd_too_long, a->qlen = FAKE_MAX_CQE + 1)
SPOIL(evd_args, evd_bad_cno, a->cno = things.evd)
SPOIL(evd_args, evd_no_flags, a->flags = 0)
SPOIL(evd_args, evd_bad_flags, a->flags = DAT_EVD_DTO_FLAG | 0x1000)
SPOIL(evd_args, evd_no_output, a->evd = NULL)

static const struct spoil_row evd_rows[] = {
	{ "ia", evd_bad_ia, E(INVALID_HANDLE, INVALID_HANDLE_IA), 1 },
	{ "no length", evd_no_length, E(INVALID_PARAMETER, INVALID_ARG2), 2 },
	{ "less", evd_less, E(INVALID_PARAMETER, INVALID_ARG2), 2 },
	{ "too long", evd_too_long, E(INSUFFICIENT_RESOURCES, RESOURCE_TEVD), 2 },
	{ "cno", evd_bad_cno, E(INVALID_HANDLE, INVALID_HANDLE_CNO), 3 },
	{ "no flags", evd_no_flags, E(INVALID_PARAMETER, INVALID_ARG4), 4 },
	{ "flags", evd_bad_flags, E(INVALID_PARAMETER, INVALID_ARG4), 4 },
	{ "no output", evd_no_output, E(INVALID_PARAMETER, INVALID_ARG5), 5 },
};

static const struct spoil_call evd_create_call = { "dat_evd_create", sizeof(struct evd_args),
						   evd_good,	     evd_call,
						   evd_undo,	     evd_rows,
						   COUNT(evd_rows) };

static void test_create(void)
{
	things_open();
	spoil_run(&evd_create_call);
	things_close();
}

/* ---- dat_evd_wait, with an event queued ---- */

struct wait_args {
	DAT_EVD_HANDLE evd;
	DAT_COUNT threshold, *more;
	DAT_EVENT *event;
};

static void wait_good(void *args)
{
	OK(rig_post_se(things.software, 1));
	*(struct wait_args *)args =
		(struct wait_args){ things.software, 1, &things_out.count, &things_out.event };
}

static DAT_RETURN wait_call(void *args)
{
	struct wait_args *a = args;
	DAT_RETURN status = dat_evd_wait(a->evd, 0, a->threshold, a->event, a->more);
	DAT_EVENT event;

	while (dat_evd_dequeue(things.software, &event) == DAT_SUCCESS)
		;
	return status;
}

SPOIL(wait_args, wait_bad_evd, a->evd = things.cno)
SPOIL(wait_args, wait_no_event, a->event = NULL)
SPOIL(wait_args, wait_no_more, a->more = NULL)
SPOIL(wait_args, wait_no_threshold, a->threshold = 0)
SPOIL(wait_args, wait_less, a->threshold = -1)
SPOIL(wait_args, wait_too_many, a->threshold = RIG_QLEN + 1)

static const struct spoil_row wait_rows[] = {
	{ "evd", wait_bad_evd, E(INVALID_HANDLE, INVALID_HANDLE_EVD_REQUEST), 1 },
	{ "no event", wait_no_event, E(INVALID_PARAMETER, INVALID_ARG4), 4 },
	{ "no count", wait_no_more, E(INVALID_PARAMETER, INVALID_ARG5), 5 },
	{ "no threshold", wait_no_threshold, E(INVALID_PARAMETER, INVALID_ARG3), 3 },
	{ "less", wait_less, E(INVALID_PARAMETER, INVALID_ARG3), 3 },
	{ "too many", wait_too_many, E(INVALID_PARAMETER, INVALID_ARG3), 3 },
};

static const struct spoil_call wait_for_event = {
	"dat_evd_wait", sizeof(struct wait_args), wait_good, wait_call, NULL,
	wait_rows,	COUNT(wait_rows)
};

static void test_wait(void)
{
	things_open();
	spoil_run(&wait_for_event);
	/* the state is checked after the arguments */
	OK(dat_evd_set_unwaitable(things.software));
	IS(dat_evd_wait(things.software, 0, 0, &things_out.event, &things_out.count),
	   E(INVALID_PARAMETER, INVALID_ARG3));
	IS(dat_evd_wait(things.software, 0, 1, &things_out.event, &things_out.count),
	   E(INVALID_STATE, INVALID_STATE_EVD_UNWAITABLE));
	IS(dat_evd_wait(things.software, 1000, 1, &things_out.event, &things_out.count),
	   E(INVALID_STATE, INVALID_STATE_EVD_UNWAITABLE));
	OK(dat_evd_clear_unwaitable(things.software));
	things_close();
}

/* ---- the others ---- */

static void test_small_ones(void)
{
	DAT_EVENT wrong = { .event_number = DAT_DTO_COMPLETION_EVENT };
	DAT_EVENT right = { .event_number = DAT_SOFTWARE_EVENT };
	int i;

	things_open();
	IS(dat_evd_dequeue(things.evd, NULL), E(INVALID_PARAMETER, INVALID_ARG2));
	IS(dat_evd_post_se(things.evd, &right), E(INVALID_PARAMETER, INVALID_ARG1));
	IS(dat_evd_post_se(things.evd, NULL), E(INVALID_PARAMETER, INVALID_ARG1));
	IS(dat_evd_post_se(things.software, NULL), E(INVALID_PARAMETER, INVALID_ARG2));
	IS(dat_evd_post_se(things.software, &wrong), E(INVALID_PARAMETER, INVALID_ARG2));
	for (i = 0; i < RIG_QLEN; i++)
		OK(dat_evd_post_se(things.software, &right));
	IS(dat_evd_post_se(things.software, &right), E0(QUEUE_FULL));
	IS(dat_evd_resize(things.software, 0), E(INVALID_PARAMETER, INVALID_ARG2));
	IS(dat_evd_resize(things.software, -1), E(INVALID_PARAMETER, INVALID_ARG2));
	IS(dat_evd_resize(things.software, FAKE_MAX_CQE + 1), E(INVALID_PARAMETER, INVALID_ARG2));
	IS(dat_evd_resize(things.software, RIG_QLEN - 1), E0(INVALID_STATE));
	IS(dat_evd_free(things.rig.recv), E(INVALID_STATE, INVALID_STATE_EVD_IN_USE));
	IS(dat_evd_free(things.rig.async), E(INVALID_STATE, INVALID_STATE_EVD_IN_USE));
	IS(dat_cno_create(things.ia, DAT_OS_WAIT_PROXY_AGENT_NULL, NULL),
	   E(INVALID_PARAMETER, INVALID_ARG3));
	IS(dat_cno_fd_create(things.ia, NULL, &things_out.handle),
	   E(INVALID_PARAMETER, INVALID_ARG2));
	IS(dat_cno_fd_create(things.ia, &things_out.fd, NULL), E(INVALID_PARAMETER, INVALID_ARG3));
	IS(dat_cno_fd_create(things.ia, NULL, NULL), E(INVALID_PARAMETER, INVALID_ARG2));
	IS(dat_cno_wait(things.cno, 0, NULL), E(INVALID_PARAMETER, INVALID_ARG3));
	IS(dat_cno_trigger(things.cno, NULL), E(INVALID_PARAMETER, INVALID_ARG2));
	CU_ASSERT_TRUE(things_untouched());
	OK(dat_evd_modify_cno(things.evd, things.cno));
	IS(dat_cno_free(things.cno), E(INVALID_STATE, INVALID_STATE_CNO_IN_USE));
	OK(dat_evd_modify_cno(things.evd, DAT_HANDLE_NULL));
	things_close();
}

static const struct unit_test tests[] = {
	{ "create: each check, alone and with each later one", test_create },
	{ "wait: each check, alone and with each later one", test_wait },
	{ "dequeue, post_se and the other calls: each check", test_small_ones },
};

UNIT_MAIN("evd_args", tests)
