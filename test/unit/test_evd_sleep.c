/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* Where the waiter of an EVD sleeps: on the CQ itself, where the device has that, or on its channel. */
#include "test/unit/evd_waiter.h"

static unsigned blocks_of_a_wait(const struct rig *rig)
{
	unsigned before = rig_cq(rig->recv)->blocks;
	struct waiter w;

	wait_start(&w, rig->recv, DAT_TIMEOUT_INFINITE, 1);
	MUST(rig_post_se(rig->recv, 1));
	IS(wait_end(&w), DAT_SUCCESS);
	CU_ASSERT_FALSE(wakefd_is_raised(&((struct dapl_evd *)rig->recv)->wake));
	return rig_cq(rig->recv)->blocks - before;
}

/* A CNO may look at the channel as well, or a consumer with the EVD's descriptor. */
static void where_it_sleeps(bool blocks)
{
	DAT_CNO_HANDLE cno;
	DAT_FD fd;
	struct rig rig;

	fake.blocks = blocks;
	rig_open(&rig, NULL);
	CU_ASSERT_EQUAL(blocks_of_a_wait(&rig), blocks);
	MUST(dat_cno_create(rig.ia, DAT_OS_WAIT_PROXY_AGENT_NULL, &cno));
	MUST(dat_evd_modify_cno(rig.recv, cno));
	CU_ASSERT_EQUAL(blocks_of_a_wait(&rig), 0);
	MUST(dat_evd_modify_cno(rig.recv, DAT_HANDLE_NULL));
	CU_ASSERT_EQUAL(blocks_of_a_wait(&rig), blocks);
	MUST(DAT_EVD_GET_FD(rig.recv, &fd));
	CU_ASSERT_EQUAL(blocks_of_a_wait(&rig), 0);
	MUST(dat_cno_free(cno));
	rig_close(&rig);
}

static void test_where_it_sleeps(void)
{
	where_it_sleeps(true);
	where_it_sleeps(false);
}

/* The CQ has fired for a waiter that is cancelled before it knows: the next one arms the CQ again. */
static void test_fired_for_a_cancelled_waiter(void)
{
	DAT_EP_ATTR attr = rig_attr();
	struct waiter w;
	struct ib_cq *cq;
	struct rig rig;

	fake.blocks = true;
	rig_open(&rig, &attr);
	cq = rig_cq(rig.recv);
	w = (struct waiter){ .evd = rig.recv, .timeout = DAT_TIMEOUT_INFINITE, .threshold = 1 };
	CU_ASSERT_EQUAL_FATAL(pthread_create(&w.thread, NULL, wait_cancelled, &w), 0);
	CU_ASSERT_TRUE(unit_wait_for(is_asleep, rig.recv, UNIT_PATIENCE));
	pthread_mutex_lock(&fake.lock);
	cq->armed = false;
	cq->fired = true;
	pthread_mutex_unlock(&fake.lock);
	CU_ASSERT_EQUAL(pthread_cancel(w.thread), 0);
	CU_ASSERT_TRUE_FATAL(unit_join(w.thread));
	MUST(rig_recv(&rig, 7));
	wait_start(&w, rig.recv, DAT_TIMEOUT_INFINITE, 1);
	rig_complete(rig.recv, fake.last.wr_id, DAT_DTO_SUCCESS, 3);
	IS(wait_end(&w), DAT_SUCCESS);
	CU_ASSERT_EQUAL(cq->arms, 2);
	rig_close(&rig);
}

static const struct unit_test tests[] = {
	{ "a waiter sleeps on the CQ itself if no other thread needs its channel",
	  test_where_it_sleeps },
	{ "a CQ that fired for a cancelled waiter is armed again",
	  test_fired_for_a_cancelled_waiter },
};

UNIT_MAIN("evd_sleep", tests)
