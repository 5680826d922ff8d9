/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* The event extension on notification objects: polling many EVDs, and the list of descriptors. */
#include "test/unit/ev_rig.h"

static void open_on(struct rig *rig, DAT_CNO_HANDLE *cno)
{
	rig_open_ep(rig);
	rig_connect(rig);
	*cno = rig_cno(rig);
	MUST(dat_evd_modify_cno(rig->recv, *cno));
	MUST(dat_evd_modify_cno(rig->request, *cno));
}

static void close_on(struct rig *rig, DAT_CNO_HANDLE cno)
{
	MUST(dat_evd_modify_cno(rig->recv, DAT_HANDLE_NULL));
	MUST(dat_evd_modify_cno(rig->request, DAT_HANDLE_NULL));
	MUST(dat_cno_free(cno));
	rig_close(rig);
}

#define MANY 6

static void test_poll(void)
{
	DAT_EVD_HANDLE evds[MANY], found[MANY + 1];
	DAT_COUNT n, i, k;
	DAT_CNO_HANDLE cno;
	struct rig rig;

	rig_open(&rig, NULL);
	cno = rig_cno(&rig);
	for (i = 0; i < MANY; i++)
		evds[i] = rig_evd_on(&rig, cno, DAT_EVD_DTO_FLAG | DAT_EVD_SOFTWARE_FLAG);
	IS(DAT_CNO_POLL(cno, MANY, found, &n), DAT_QUEUE_EMPTY);
	CU_ASSERT_EQUAL(n, 0);
	MUST(dat_evd_disable(evds[4])); /* a disabled EVD is polled all the same */
	MUST(rig_post_se(evds[1], 1));
	MUST(rig_post_se(evds[4], 1));
	MUST(DAT_CNO_POLL(cno, MANY + 1, found, &n));
	CU_ASSERT_EQUAL(n, 2);
	CU_ASSERT_PTR_EQUAL(found[0], evds[1]);
	CU_ASSERT_PTR_EQUAL(found[1], evds[4]);
	for (i = 0; i < MANY; i++)
		if (i != 1 && i != 4)
			MUST(rig_post_se(evds[i], 1));
	/* Each poll starts behind the EVD that the last one returned. */
	for (k = 0; k < 3; k++) {
		MUST(DAT_CNO_POLL(cno, 2, found, &n));
		CU_ASSERT_EQUAL(n, 2);
		CU_ASSERT_PTR_EQUAL(found[0], evds[(5 + 2 * k) % MANY]);
		CU_ASSERT_PTR_EQUAL(found[1], evds[(6 + 2 * k) % MANY]);
	}
	MUST(DAT_CNO_POLL(cno, MANY + 1, found, &n));
	CU_ASSERT_EQUAL(n, MANY);
	/* The EVD that is next in turn is freed. */
	MUST(DAT_CNO_POLL(cno, 1, found, &n));
	MUST(dat_evd_free(evds[0]));
	MUST(DAT_CNO_POLL(cno, MANY, found, &n));
	CU_ASSERT_EQUAL(n, MANY - 1);
	/* Triggers are unchanged. */
	for (i = 1, k = 0; i < MANY; i++) {
		rig_empty(evds[i], 1);
		MUST(dat_evd_free(evds[i]));
	}
	rig_named(cno, NULL);
	MUST(dat_cno_free(cno));
	rig_close(&rig);
}

static void test_poll_finds_completions(void)
{
	DAT_EVD_HANDLE found[2];
	DAT_CNO_HANDLE cno;
	struct rig rig;
	DAT_COUNT n;

	open_on(&rig, &cno);
	rig_receive(&rig, 1);
	MUST(DAT_CNO_POLL(cno, 2, found, &n));
	CU_ASSERT_EQUAL(n, 1);
	CU_ASSERT_PTR_EQUAL(found[0], rig.recv);
	rig_named(cno, rig.recv); /* its trigger is still there */
	fake.upcalls.async(&fake.devices[0], IB_ASYNC_CQ_ERROR, rig.request);
	MUST(DAT_CNO_POLL(cno, 2, found, &n));
	CU_ASSERT_EQUAL(n, 2); /* an overflow is reported */
	rig_take(rig.async);
	rig_empty(rig.recv, 1);
	close_on(&rig, cno);
}

/* ---- the list of descriptors ---- */

static bool any_readable(const struct pollfd *fds, DAT_COUNT count)
{
	DAT_COUNT i;

	for (i = 0; i < count; i++)
		if (rig_readable(fds[i].fd))
			return true;
	return false;
}

static void test_pollfds(void)
{
	DAT_EV_POLLFDS list = { .nfds = 0 };
	struct pollfd fds[4];
	DAT_CNO_HANDLE cno;
	DAT_UINT64 before;
	struct rig rig;

	rig_open_ep(&rig);
	rig_connect(&rig);
	cno = rig_cno(&rig);
	IS(DAT_CNO_GET_POLLFDS(cno, &list), E0(LENGTH_ERROR));
	CU_ASSERT_EQUAL(list.change_index, 1);
	CU_ASSERT_EQUAL(list.nfds, 1);
	MUST(dat_evd_modify_cno(rig.recv, cno));
	list = (DAT_EV_POLLFDS){ .nfds = 1, .fds = fds };
	fds[0].fd = 77;
	IS(DAT_CNO_GET_POLLFDS(cno, &list), E0(LENGTH_ERROR));
	CU_ASSERT_EQUAL(fds[0].fd, 77);
	CU_ASSERT_EQUAL(list.nfds, 2);
	CU_ASSERT_EQUAL(list.change_index, 2);
	list.nfds = 4;
	MUST(DAT_CNO_GET_POLLFDS(cno, &list));
	CU_ASSERT_EQUAL(list.nfds, 2);
	CU_ASSERT_EQUAL(fds[1].events, POLLIN);
	CU_ASSERT_EQUAL(fds[1].revents, 0);
	MUST(DAT_CNO_ARM(cno, 0));
	CU_ASSERT_FALSE(any_readable(fds, list.nfds));
	rig_receive(&rig, 1);
	CU_ASSERT_TRUE(any_readable(fds, list.nfds));
	rig_empty(rig.recv, 1);
	MUST(DAT_CNO_ARM(cno, 0));
	CU_ASSERT_FALSE(any_readable(fds, list.nfds));
	MUST(rig_post_se(rig.recv, 1));
	CU_ASSERT_TRUE(any_readable(fds, list.nfds));
	rig_empty(rig.recv, 1);
	/* Attached during the sleep: the old list of descriptors still wakes. */
	MUST(DAT_CNO_ARM(cno, 0));
	before = list.change_index;
	MUST(dat_evd_modify_cno(rig.request, cno));
	CU_ASSERT_TRUE(any_readable(fds, list.nfds));
	list.nfds = 0;
	IS(DAT_CNO_GET_POLLFDS(cno, &list), E0(LENGTH_ERROR));
	CU_ASSERT_TRUE(list.change_index > before);
	CU_ASSERT_EQUAL(list.nfds, 3);
	before = list.change_index;
	MUST(DAT_CNO_ARM(cno, 0));
	CU_ASSERT_FALSE(any_readable(fds, 2));
	MUST(dat_evd_modify_cno(rig.request, DAT_HANDLE_NULL));
	CU_ASSERT_TRUE(any_readable(fds, 2));
	list.nfds = 0;
	IS(DAT_CNO_GET_POLLFDS(cno, &list), E0(LENGTH_ERROR));
	CU_ASSERT_TRUE(list.change_index > before);
	close_on(&rig, cno);
}

static const struct unit_test tests[] = {
	{ "a poll starts behind the last returned EVD", test_poll },
	{ "a poll returns completions and overflows, and leaves triggers unchanged",
	  test_poll_finds_completions },
	{ "the list of descriptors is complete, also after an attach during a sleep",
	  test_pollfds },
};

UNIT_MAIN("ev_poll", tests)
