/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/*
 * Edge-triggered polling over a device that publishes a completion, lets the consumer poll it and
 * arm, and only then tests whether its CQ is armed. The event of that arming is spurious, and the
 * next one must still occur.
 */
#include <sys/epoll.h>
#include "test/unit/ev_rig.h"

#define MANY 40 /* more channels than one poll of a CNO's descriptor returns */

/* Returns an epoll set that watches the descriptor edge-triggered. */
static int edge_open(int fd)
{
	struct epoll_event event = { .events = EPOLLIN | EPOLLET };
	int loop = epoll_create1(EPOLL_CLOEXEC);

	CU_ASSERT_TRUE_FATAL(loop >= 0);
	CU_ASSERT_EQUAL_FATAL(epoll_ctl(loop, EPOLL_CTL_ADD, fd, &event), 0);
	return loop;
}

static bool edge_came(int loop)
{
	struct epoll_event event;

	return epoll_wait(loop, &event, 1, 0) == 1;
}

/* Publishes a receive's completion; the device has not yet tested whether the CQ is armed. */
static void receive_published(struct rig *rig, uint64_t cookie)
{
	MUST(rig_recv(rig, cookie));
	fake_publish(rig_cq(rig->recv), &(struct ib_completion){ .wr_id = fake.last.wr_id,
								 .status = DAT_DTO_SUCCESS,
								 .qp_num = fake.qp->num });
}

typedef DAT_RETURN arm_call(struct rig *rig, DAT_CNO_HANDLE cno);

static DAT_RETURN arm_evd(struct rig *rig, DAT_CNO_HANDLE cno)
{
	(void)cno;
	return DAT_EVD_ARM(rig->recv, 0, 1);
}

static DAT_RETURN arm_evd_solicited(struct rig *rig, DAT_CNO_HANDLE cno)
{
	(void)cno;
	return DAT_EVD_ARM(rig->recv, DAT_EV_ARM_SOLICITED, 1);
}

static DAT_RETURN arm_evd_threshold(struct rig *rig, DAT_CNO_HANDLE cno)
{
	(void)cno;
	return DAT_EVD_ARM(rig->recv, 0, 2);
}

static DAT_RETURN arm_by_trywait(struct rig *rig, DAT_CNO_HANDLE cno)
{
	(void)cno;
	return DAT_TRYWAIT(rig->ia, &rig->recv, 1, NULL);
}

static DAT_RETURN arm_cno(struct rig *rig, DAT_CNO_HANDLE cno)
{
	(void)rig;
	return DAT_CNO_ARM(cno, 0);
}

static DAT_RETURN arm_cno_solicited(struct rig *rig, DAT_CNO_HANDLE cno)
{
	(void)rig;
	return DAT_CNO_ARM(cno, DAT_EV_ARM_SOLICITED);
}

/* The steps of an event loop around each sleep. */
static void late_rounds(struct rig *rig, DAT_CNO_HANDLE cno, arm_call *arm, int loop)
{
	struct ib_cq *cq = rig_cq(rig->recv);
	unsigned round;

	for (round = 0; round < 40; round++) {
		/*
		 * Published before the first arming in even rounds, before the second in odd ones.
		 */
		if (round % 2)
			MUST(arm(rig, cno));
		edge_came(loop);
		receive_published(rig, 1);
		rig_empty(rig->recv, 1);
		/* Arms one or more times before the device continues. */
		for (unsigned k = 0; k <= round % 20; k++)
			MUST(arm(rig, cno));
		CU_ASSERT_FALSE(edge_came(loop));
		fake_fire_if_armed(cq, true);
		CU_ASSERT_TRUE(edge_came(loop));
		rig_empty(rig->recv, 0);
		MUST(arm(rig, cno));
		edge_came(loop);
		receive_published(rig, 2);
		fake_fire_if_armed(cq, true);
		CU_ASSERT_TRUE(edge_came(loop));
		rig_empty(rig->recv, 1);
	}
}

static void test_late(void)
{
	static const struct {
		arm_call *arm;
		bool cno;
	} ways[] = {
		{ arm_evd, false },
		{ arm_evd_solicited, false },
		{ arm_evd_threshold, false },
		{ arm_by_trywait, false },
		{ arm_cno, true },
		{ arm_cno_solicited, true },
	};
	DAT_CNO_HANDLE cno;
	struct rig rig;
	unsigned i;
	int loop;

	for (i = 0; i < COUNT(ways); i++) {
		rig_open_ep(&rig);
		rig_connect(&rig);
		cno = rig_cno(&rig);
		if (ways[i].cno)
			MUST(dat_evd_modify_cno(rig.recv, cno));
		loop = edge_open(ways[i].cno ? rig_cno_fd(cno) : rig_evd_fd(rig.recv));
		late_rounds(&rig, cno, ways[i].arm, loop);
		close(loop);
		MUST(dat_evd_modify_cno(rig.recv, DAT_HANDLE_NULL));
		MUST(dat_cno_free(cno));
		rig_close(&rig);
	}
}

/* The list of descriptors behind a CNO, each watched edge-triggered. */
static void test_late_in_list(void)
{
	struct pollfd fds[8];
	DAT_EV_POLLFDS list = { .nfds = 8, .fds = fds };
	struct epoll_event event = { .events = EPOLLIN | EPOLLET };
	DAT_CNO_HANDLE cno;
	struct rig rig;
	int loop, i;

	rig_open_ep(&rig);
	rig_connect(&rig);
	cno = rig_cno(&rig);
	MUST(dat_evd_modify_cno(rig.recv, cno));
	MUST(DAT_CNO_GET_POLLFDS(cno, &list));
	loop = epoll_create1(EPOLL_CLOEXEC);
	for (i = 0; i < list.nfds; i++)
		CU_ASSERT_EQUAL(epoll_ctl(loop, EPOLL_CTL_ADD, fds[i].fd, &event), 0);
	late_rounds(&rig, cno, arm_cno, loop);
	close(loop);
	MUST(dat_evd_modify_cno(rig.recv, DAT_HANDLE_NULL));
	MUST(dat_cno_free(cno));
	rig_close(&rig);
}

/* All CQs of a large CNO make a spurious event first, and then a real one each. */
static void test_late_in_many(void)
{
	DAT_EVD_HANDLE evds[MANY], found;
	DAT_CNO_HANDLE cno;
	struct rig rig;
	int loop, i;

	rig_open(&rig, NULL);
	cno = rig_cno(&rig);
	for (i = 0; i < MANY; i++)
		evds[i] = rig_evd_on(&rig, cno, DAT_EVD_DTO_FLAG);
	loop = edge_open(rig_cno_fd(cno));
	MUST(DAT_CNO_ARM(cno, 0));
	for (i = 0; i < MANY; i++)
		fake_fire_if_armed(rig_cq(evds[i]), true);
	CU_ASSERT_TRUE(edge_came(loop));
	MUST(DAT_CNO_ARM(cno, 0));
	CU_ASSERT_FALSE(rig_readable(rig_cno_fd(cno)));
	for (i = 0; i < MANY; i++)
		CU_ASSERT_TRUE(rig_cq(evds[i])->armed);
	fake_fire_if_armed(rig_cq(evds[MANY - 1]), true);
	CU_ASSERT_TRUE(edge_came(loop));
	IS(dat_cno_wait(cno, 0, &found), DAT_QUEUE_EMPTY); /* spurious again */
	close(loop);
	for (i = 0; i < MANY; i++)
		MUST(dat_evd_free(evds[i]));
	MUST(dat_cno_free(cno));
	rig_close(&rig);
}

/* A thread that polls level-triggered is woken spuriously at most twice. */
static void test_late_by_level(void)
{
	unsigned woken = 0;
	struct rig rig;
	DAT_FD fd;

	rig_open_ep(&rig);
	rig_connect(&rig);
	fd = rig_evd_fd(rig.recv);
	receive_published(&rig, 1);
	rig_empty(rig.recv, 1);
	MUST(DAT_EVD_ARM(rig.recv, 0, 1));
	CU_ASSERT_FALSE(rig_readable(fd));
	fake_fire_if_armed(rig_cq(rig.recv), true);
	while (rig_readable(fd) && woken < 100) {
		rig_empty(rig.recv, 0);
		MUST(DAT_EVD_ARM(rig.recv, 0, 1));
		woken++;
	}
	CU_ASSERT_TRUE(woken == 1 || woken == 2);
	rig_receive(&rig, 2);
	CU_ASSERT_TRUE(rig_readable(fd));
	rig_empty(rig.recv, 1);
	rig_close(&rig);
}

static const struct unit_test tests[] = {
	{ "an edge comes after an event for a completion that was polled before the arming",
	  test_late },
	{ "an edge comes after such an event in the list of descriptors behind a CNO",
	  test_late_in_list },
	{ "an edge comes after such events of forty EVDs on a CNO", test_late_in_many },
	{ "a level is cleared after such an event", test_late_by_level },
};

UNIT_MAIN("ev_edge", tests)
