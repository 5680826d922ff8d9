/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* The event extension on one EVD: version, descriptor, arming. */
#include <fcntl.h>
#include "test/unit/ev_rig.h"

static void test_version_and_attributes(void)
{
	static const char *const names[] = {
		"DAT_EVD_GET_FD",  "DAT_EVD_ARM", "DAT_EVD_DEQUEUE_N", "DAT_EVD_SIGNAL",
		"DAT_CNO_GET_FD",  "DAT_CNO_ARM", "DAT_CNO_SIGNAL",    "DAT_CNO_POLL",
		"DAT_CNO_POLLFDS", "DAT_TRYWAIT", "DAT_POLL_SET",      "DAT_WAIT_MEM",
	};
	DAT_UINT32 major = 7, minor = 7;
	unsigned found = 0, extension = 0, i, k;
	DAT_PROVIDER_ATTR attr;
	struct rig rig;

	rig_open(&rig, NULL);
	IS(DAT_EV_VERSION(rig.recv, &major, &minor), BAD_HANDLE1);
	IS(DAT_EV_VERSION(rig.ia, NULL, &minor), ARG(3));
	IS(DAT_EV_VERSION(rig.ia, &major, NULL), ARG(4));
	MUST(DAT_EV_VERSION(rig.ia, &major, &minor));
	CU_ASSERT_EQUAL(major, 1);
	CU_ASSERT_EQUAL(minor, 0);
	MUST(dat_ia_query(rig.ia, NULL, 0, NULL, DAT_PROVIDER_FIELD_ALL, &attr));
	for (i = 0; i < (unsigned)attr.num_provider_specific_attr; i++) {
		const DAT_NAMED_ATTR *named = &attr.provider_specific_attr[i];

		extension +=
			!strcmp(named->name, "DAT_EVENT_EXTENSION") && !strcmp(named->value, "1.0");
		extension +=
			!strcmp(named->name, "DAT_WAIT_POLICY") && !strcmp(named->value, "block");
		for (k = 0; k < COUNT(names); k++)
			found += !strcmp(named->name, names[k]) && !strcmp(named->value, "TRUE");
	}
	CU_ASSERT_EQUAL(found, COUNT(names));
	CU_ASSERT_EQUAL(extension, 2);
	rig_close(&rig);
}

/* ---- the descriptor ---- */

static void test_fd(void)
{
	DAT_EVD_HANDLE evds[3];
	struct rig rig;
	unsigned i;
	DAT_FD fd;

	rig_open(&rig, NULL);
	evds[0] = rig.request;
	evds[1] = rig.conn;
	evds[2] = rig.async;
	IS(DAT_EVD_GET_FD(rig.pz, &fd), BAD_EVD);
	IS(DAT_EVD_GET_FD(rig.recv, NULL), ARG(3));
	for (i = 0; i < COUNT(evds); i++) {
		fd = rig_evd_fd(evds[i]);
		CU_ASSERT_EQUAL(fd, rig_evd_fd(evds[i]));
		CU_ASSERT_TRUE(fcntl(fd, F_GETFD) & FD_CLOEXEC);
		CU_ASSERT_FALSE(rig_readable(fd));
	}
	MUST(dat_evd_free(rig.conn));
	fd = rig_evd_fd(rig.recv);
	MUST(dat_evd_free(rig.recv));
	CU_ASSERT_EQUAL(fcntl(fd, F_GETFD), -1);
	rig.conn = rig_evd(&rig, RIG_QLEN, DAT_EVD_CONNECTION_FLAG);
	rig.recv = rig_evd(&rig, RIG_QLEN, DAT_EVD_DTO_FLAG);
	rig_close(&rig);
}

struct fd_race {
	pthread_barrier_t *barrier;
	DAT_EVD_HANDLE evd;
	DAT_FD fd;
};

static void *get_fd(void *arg)
{
	struct fd_race *race = arg;

	pthread_barrier_wait(race->barrier);
	IS(DAT_EVD_GET_FD(race->evd, &race->fd), DAT_SUCCESS);
	return NULL;
}

static void test_fd_is_one(void)
{
	struct fd_race race[3];
	pthread_barrier_t barrier;
	pthread_t threads[3];
	unsigned round, i;
	struct rig rig;

	rig_open(&rig, NULL);
	pthread_barrier_init(&barrier, NULL, 3);
	for (round = 0; round < 50; round++) {
		DAT_EVD_HANDLE evd = rig_evd(&rig, 4, DAT_EVD_DTO_FLAG);

		for (i = 0; i < 3; i++) {
			race[i] = (struct fd_race){ &barrier, evd, -1 };
			CU_ASSERT_EQUAL_FATAL(pthread_create(&threads[i], NULL, get_fd, &race[i]),
					      0);
		}
		for (i = 0; i < 3; i++)
			CU_ASSERT_EQUAL(pthread_join(threads[i], NULL), 0);
		CU_ASSERT_TRUE(race[0].fd >= 0 && race[0].fd == race[1].fd &&
			       race[1].fd == race[2].fd);
		MUST(dat_evd_free(evd));
	}
	pthread_barrier_destroy(&barrier);
	rig_close(&rig);
}

static void test_no_descriptors_left(void)
{
	int fds[RIG_FDS], fd = 77;
	DAT_CNO_HANDLE cno = NULL;
	struct rlimit limit;
	unsigned count;
	struct rig rig;

	rig_open_ep(&rig);
	rig_connect(&rig);
	getrlimit(RLIMIT_NOFILE, &limit);
	count = rig_fds_out(fds);
	IS(DAT_EVD_GET_FD(rig.recv, &fd), E(INSUFFICIENT_RESOURCES, RESOURCE_MEMORY));
	IS(DAT_EVD_GET_FD(rig.conn, &fd), E(INSUFFICIENT_RESOURCES, RESOURCE_MEMORY));
	CU_ASSERT_EQUAL(fd, 77);
	IS(dat_cno_create(rig.ia, DAT_OS_WAIT_PROXY_AGENT_NULL, &cno),
	   E(INSUFFICIENT_RESOURCES, RESOURCE_MEMORY));
	CU_ASSERT_PTR_NULL(cno);
	/* Polling and arming need no descriptor and still work. */
	rig_receive(&rig, 1);
	IS(DAT_EVD_ARM(rig.recv, 0, 1), DAT_EV_BUSY);
	rig_empty(rig.recv, 1);
	rig_fds_back(fds, count);
	setrlimit(RLIMIT_NOFILE, &limit);
	CU_ASSERT_TRUE(rig_evd_fd(rig.recv) >= 0);
	rig_close(&rig);
}

/* ---- arming ---- */

static void test_arm_checks(void)
{
	struct evd_sleeper sleeper;
	DAT_EP_ATTR attr = rig_attr();
	struct rig rig;

	attr.recv_completion_flags = DAT_COMPLETION_UNSIGNALLED_FLAG;
	rig_open(&rig, &attr);
	IS(DAT_EVD_ARM(rig.pz, 0, 1), BAD_EVD);
	IS(DAT_EVD_ARM(rig.request, 2, 1), ARG(3));
	IS(DAT_EVD_ARM(rig.request, 0, 0), ARG(4));
	IS(DAT_EVD_ARM(rig.request, 0, RIG_QLEN + 1), ARG(4));
	IS(DAT_EVD_ARM(rig.request, 2, 0), ARG(3)); /* in order */
	IS(DAT_EVD_ARM(rig.recv, 0, 2), E(INVALID_STATE, INVALID_STATE_EVD_CONFIG_NOTIFY));
	IS(DAT_EVD_ARM(rig.recv, 0, 1), DAT_SUCCESS);
	MUST(dat_evd_set_unwaitable(rig.request));
	IS(DAT_EVD_ARM(rig.request, 0, 1), E(INVALID_STATE, INVALID_STATE_EVD_UNWAITABLE));
	MUST(dat_evd_clear_unwaitable(rig.request));
	evd_sleep_start(&sleeper, rig.request);
	IS(DAT_EVD_ARM(rig.request, 0, 1), E(INVALID_STATE, INVALID_STATE_EVD_WAITER));
	MUST(DAT_EVD_SIGNAL(rig.request));
	IS(evd_sleep_end(&sleeper), DAT_INTERRUPTED_CALL);
	fake.refuse = E0(INTERNAL_ERROR);
	IS(DAT_EVD_ARM(rig.conn, 0, 1), DAT_SUCCESS); /* without a CQ */
	fake.refuse = DAT_SUCCESS;
	MUST(dat_ep_free(rig.ep));
	rig.ep = DAT_HANDLE_NULL;
	MUST(dat_evd_free(rig.recv));
	rig.recv = rig_evd(&rig, RIG_QLEN, DAT_EVD_DTO_FLAG);
	fake.refuse = E0(INTERNAL_ERROR);
	IS(DAT_EVD_ARM(rig.recv, 0, 1), E0(INTERNAL_ERROR));
	IS(DAT_EVD_ARM(rig.recv, 0, 1), DAT_SUCCESS);
	attr.recv_completion_flags = DAT_COMPLETION_SOLICITED_WAIT_FLAG;
	MUST(dat_ep_create(rig.ia, rig.pz, rig.recv, rig.request, rig.conn, &attr, &rig.ep));
	IS(DAT_EVD_ARM(rig.recv, 0, 2), E(INVALID_STATE, INVALID_STATE_EVD_CONFIG_SOLICITED));
	IS(DAT_EVD_ARM(rig.recv, 0, 1), DAT_SUCCESS);
	CU_ASSERT_TRUE(rig_cq(rig.recv)->solicited_only);
	rig_close(&rig);
}

static void test_arm_fires(void)
{
	struct rig rig;
	DAT_FD fd;

	rig_open_ep(&rig);
	rig_connect(&rig);
	fd = rig_evd_fd(rig.recv);
	MUST(DAT_EVD_ARM(rig.recv, 0, 1));
	CU_ASSERT_FALSE(rig_readable(fd));
	rig_receive(&rig, 1); /* a completion */
	CU_ASSERT_TRUE(rig_readable(fd));
	IS(DAT_EVD_ARM(rig.recv, 0, 1), DAT_EV_BUSY);
	rig_empty(rig.recv, 1);
	MUST(DAT_EVD_ARM(rig.recv, 0, 1));
	CU_ASSERT_FALSE(rig_readable(fd));
	MUST(rig_post_se(rig.recv, 1)); /* a software event */
	CU_ASSERT_TRUE(rig_readable(fd));
	rig_empty(rig.recv, 1);
	MUST(DAT_EVD_ARM(rig.recv, 0, 1));
	CU_ASSERT_FALSE(rig_readable(fd));
	MUST(DAT_EVD_SIGNAL(rig.recv)); /* a signal */
	CU_ASSERT_TRUE(rig_readable(fd));
	IS(DAT_EVD_ARM(rig.recv, 0, 1), DAT_EV_BUSY);
	MUST(DAT_EVD_ARM(rig.recv, 0, 1));
	CU_ASSERT_FALSE(rig_readable(fd));
	MUST(dat_evd_set_unwaitable(rig.recv)); /* unwaitable */
	CU_ASSERT_TRUE(rig_readable(fd));
	MUST(dat_evd_clear_unwaitable(rig.recv));
	MUST(DAT_EVD_ARM(rig.recv, 0, 1));
	CU_ASSERT_FALSE(rig_readable(fd));
	rig_close(&rig); /* armed */
}

/* Arming a CQ at rest again calls the device and makes no system call. */
static void test_arm_is_cheap(void)
{
	struct rig rig;
	unsigned arms;
	DAT_FD fd;

	rig_open_ep(&rig);
	rig_connect(&rig);
	fd = rig_evd_fd(rig.recv);
	MUST(DAT_EVD_ARM(rig.recv, 0, 1));
	arms = rig_cq(rig.recv)->arms;
	CU_ASSERT_EQUAL(arms, 1);
	MUST(DAT_EVD_ARM(rig.recv, 0, 1));
	CU_ASSERT_EQUAL(rig_cq(rig.recv)->arms, arms + 1);
	CU_ASSERT_EQUAL(rig_cq(rig.recv)->collects, 0);
	rig_receive(&rig, 1);
	rig_empty(rig.recv, 1);
	MUST(DAT_EVD_ARM(rig.recv, 0, 1));
	CU_ASSERT_FALSE(rig_readable(fd));
	CU_ASSERT_EQUAL(rig_cq(rig.recv)->collects, 1);
	CU_ASSERT_EQUAL(rig_cq(rig.recv)->arms, arms + 2);
	CU_ASSERT_TRUE(rig_cq(rig.recv)->armed);
	for (arms = 0; arms < 64; arms++)
		MUST(DAT_EVD_ARM(rig.recv, 0, 1));
	CU_ASSERT_TRUE(rig_cq(rig.recv)->collects <= 1 + 1 + 64 / 16);
	rig_close(&rig);
}

/* The device delivers the event of an arming long after its completion was taken. */
static void test_late_event(void)
{
	uint64_t one = 1;
	unsigned looks;
	struct rig rig;
	DAT_FD fd;

	rig_open_ep(&rig);
	rig_connect(&rig);
	fd = rig_evd_fd(rig.recv);
	MUST(DAT_EVD_ARM(rig.recv, 0, 1));
	rig_cq(rig.recv)->armed = false;
	rig_receive(&rig, 1); /* the event is not delivered yet */
	rig_empty(rig.recv, 1);
	MUST(DAT_EVD_ARM(rig.recv, 0, 1));
	CU_ASSERT_TRUE(rig_cq(rig.recv)->armed);
	CU_ASSERT_EQUAL(write(rig_cq(rig.recv)->fd, &one, sizeof(one)), sizeof(one));
	for (looks = 0; rig_readable(fd) && looks < 100; looks++)
		MUST(DAT_EVD_ARM(rig.recv, 0, 1));
	CU_ASSERT_TRUE(looks < 20);
	rig_receive(&rig, 2);
	CU_ASSERT_TRUE(rig_readable(fd));
	rig_empty(rig.recv, 1);
	rig_close(&rig);
}

static void test_solicited(void)
{
	struct ib_completion plain = { .status = DAT_DTO_SUCCESS };
	struct rig rig;
	DAT_FD fd;

	rig_open_ep(&rig);
	rig_connect(&rig);
	fd = rig_evd_fd(rig.recv);
	MUST(DAT_EVD_ARM(rig.recv, DAT_EV_ARM_SOLICITED, 1));
	CU_ASSERT_TRUE(rig_cq(rig.recv)->solicited_only);
	MUST(rig_recv(&rig, 1));
	plain.wr_id = fake.last.wr_id;
	fake_complete(rig_cq(rig.recv), &plain, false);
	CU_ASSERT_FALSE(rig_readable(fd));
	/* every completion counts */
	IS(DAT_EVD_ARM(rig.recv, DAT_EV_ARM_SOLICITED, 1), DAT_EV_BUSY);
	rig_empty(rig.recv, 1);
	MUST(DAT_EVD_ARM(rig.recv, DAT_EV_ARM_SOLICITED, 1));
	MUST(rig_post_se(rig.recv, 1)); /* events other than completions always notify */
	CU_ASSERT_TRUE(rig_readable(fd));
	rig_empty(rig.recv, 1);
	MUST(DAT_EVD_ARM(rig.recv, 0, 1));
	CU_ASSERT_FALSE(rig_cq(rig.recv)->solicited_only);
	rig_close(&rig);
}

static void test_threshold(void)
{
	unsigned fired = 0, i;
	struct rig rig;
	DAT_FD fd;

	rig_open_ep(&rig);
	rig_connect(&rig);
	fd = rig_evd_fd(rig.recv);
	MUST(DAT_EVD_ARM(rig.recv, 0, RIG_QLEN));
	for (i = 1; i < RIG_QLEN; i++) {
		if (i % 2)
			rig_receive(&rig, i);
		else
			MUST(rig_post_se(rig.recv, i));
		fired += rig_readable(fd);
		IS(DAT_EVD_ARM(rig.recv, 0, RIG_QLEN), DAT_SUCCESS);
		CU_ASSERT_FALSE(rig_readable(fd));
	}
	CU_ASSERT_TRUE(fired <= RIG_QLEN);
	MUST(rig_post_se(rig.recv, i));
	CU_ASSERT_TRUE(rig_readable(fd));
	IS(DAT_EVD_ARM(rig.recv, 0, RIG_QLEN), DAT_EV_BUSY);
	rig_empty(rig.recv, RIG_QLEN);
	MUST(DAT_EVD_ARM(rig.recv, 0, RIG_QLEN));
	rig_close(&rig);
}

static void test_overflow(void)
{
	struct rig rig;
	DAT_FD fd;

	rig_open_ep(&rig);
	rig_connect(&rig);
	fd = rig_evd_fd(rig.recv);
	rig_receive(&rig, 1);
	MUST(DAT_EVD_ARM(rig.recv, 0, 2));
	CU_ASSERT_FALSE(rig_readable(fd));
	fake.upcalls.async(&fake.devices[0], IB_ASYNC_CQ_ERROR, rig.recv);
	CU_ASSERT_TRUE(rig_readable(fd));
	IS(DAT_EVD_ARM(rig.recv, 0, 2), DAT_EV_BUSY);
	IS(DAT_EVD_ARM(rig.recv, 0, 1), DAT_EV_BUSY);
	rig_take(rig.recv);
	IS(DAT_EVD_ARM(rig.recv, 0, 1), E0(INVALID_STATE));
	rig_take(rig.async);
	rig_close(&rig);
}

/* A resize arms the new CQ; a waiter and an armed descriptor do not hide events from each other. */
static void test_arm_survives_resize(void)
{
	struct rig rig;
	DAT_FD fd;

	rig_open_ep(&rig);
	rig_connect(&rig);
	fd = rig_evd_fd(rig.recv);
	MUST(DAT_EVD_ARM(rig.recv, 0, 1));
	rig_cq(rig.recv)->armed = false; /* a device that loses the arming */
	MUST(dat_evd_resize(rig.recv, 200));
	CU_ASSERT_TRUE(rig_cq(rig.recv)->armed);
	rig_receive(&rig, 1);
	CU_ASSERT_TRUE(rig_readable(fd));
	rig_empty(rig.recv, 1);
	rig_close(&rig);
}

/* If a resize makes the queue shorter than the threshold of an arming, a full queue notifies. */
static void test_resize_below_threshold(void)
{
	struct rig rig;
	DAT_FD fd;
	int i;

	rig_open_ep(&rig);
	rig_connect(&rig);
	fd = rig_evd_fd(rig.recv);
	for (i = 0; i < 3; i++)
		MUST(rig_post_se(rig.recv, 1));
	MUST(DAT_EVD_ARM(rig.recv, 0, RIG_QLEN));
	MUST(dat_evd_resize(rig.recv, 4));
	CU_ASSERT_FALSE(rig_readable(fd));
	MUST(rig_post_se(rig.recv, 1));
	CU_ASSERT_TRUE(rig_readable(fd));
	IS(DAT_EVD_ARM(rig.recv, 0, 4), DAT_EV_BUSY);
	MUST(dat_evd_resize(rig.recv, RIG_QLEN));
	MUST(DAT_EVD_ARM(rig.recv, 0, RIG_QLEN));
	CU_ASSERT_FALSE(rig_readable(fd));
	MUST(dat_evd_resize(rig.recv, 4)); /* full at once */
	CU_ASSERT_TRUE(rig_readable(fd));
	rig_empty(rig.recv, 4);
	rig_close(&rig);
}

/* Armed objects can be freed; their descriptors are closed with them. */
static void test_free_of_what_is_armed(void)
{
	DAT_EVD_HANDLE with_cq, without;
	DAT_CNO_HANDLE cno;
	struct rig rig;
	DAT_FD fds[3];
	int i;

	rig_open_ep(&rig);
	with_cq = rig_evd(&rig, RIG_QLEN, DAT_EVD_DTO_FLAG);
	without = rig_evd(&rig, RIG_QLEN, DAT_EVD_SOFTWARE_FLAG);
	MUST(dat_cno_create(rig.ia, DAT_OS_WAIT_PROXY_AGENT_NULL, &cno));
	fds[0] = rig_evd_fd(with_cq);
	fds[1] = rig_evd_fd(without);
	fds[2] = rig_cno_fd(cno);
	MUST(DAT_EVD_ARM(with_cq, 0, 1));
	MUST(DAT_EVD_ARM(without, 0, 1));
	MUST(DAT_CNO_ARM(cno, 0));
	MUST(dat_evd_free(with_cq));
	MUST(dat_evd_free(without));
	MUST(dat_cno_free(cno));
	for (i = 0; i < 3; i++)
		CU_ASSERT_TRUE(fcntl(fds[i], F_GETFD) == -1 && errno == EBADF);
	IS(DAT_EVD_ARM(with_cq, 0, 1), BAD_EVD);
	IS(DAT_EVD_SIGNAL(without), BAD_EVD);
	IS(DAT_CNO_ARM(cno, 0), E(INVALID_HANDLE, INVALID_HANDLE_CNO));
	rig_close(&rig);
}

static struct rig *under_way;
static uint64_t posted; /* wr_id of a receive */
static int (*notify)(struct ibv_cq *cq, int solicited_only);

static int notify_and_complete(struct ibv_cq *cq, int solicited_only)
{
	int error = notify(cq, solicited_only);

	rig_complete(under_way->recv, posted, DAT_DTO_SUCCESS, 10);
	return error;
}

/* A completion and a signal that occur while a CQ at rest is armed. */
static void test_arm_at_rest(void)
{
	struct rig rig;
	DAT_FD fd;

	rig_open_ep(&rig);
	rig_connect(&rig);
	fd = rig_evd_fd(rig.recv);
	under_way = &rig;
	MUST(rig_recv(&rig, 9));
	posted = fake.last.wr_id;
	notify = rig_cq(rig.recv)->store.notify;
	rig_cq(rig.recv)->store.notify = notify_and_complete;
	IS(DAT_EVD_ARM(rig.recv, 0, 1), DAT_EV_BUSY);
	rig_cq(rig.recv)->store.notify = notify;
	rig_empty(rig.recv, 1);
	IS(DAT_EVD_ARM(rig.recv, 0, 1), DAT_SUCCESS);
	CU_ASSERT_FALSE(rig_readable(fd));
	/* armed, and not polled again yet */
	rig_receive(&rig, 10);
	CU_ASSERT_TRUE(rig_readable(fd));
	IS(DAT_EVD_ARM(rig.recv, 0, 1), DAT_EV_BUSY);
	rig_empty(rig.recv, 1);
	MUST(DAT_EVD_ARM(rig.recv, 0, 1));
	CU_ASSERT_FALSE(rig_readable(fd));
	MUST(DAT_EVD_SIGNAL(rig.recv));
	IS(DAT_EVD_ARM(rig.recv, 0, 1), DAT_EV_BUSY);
	IS(DAT_EVD_ARM(rig.recv, 0, 1), DAT_SUCCESS);
	CU_ASSERT_FALSE(rig_readable(fd));
	MUST(DAT_EVD_ARM(rig.recv, DAT_EV_ARM_SOLICITED, 1));
	CU_ASSERT_TRUE(rig_cq(rig.recv)->solicited_only);
	MUST(DAT_EVD_ARM(rig.recv, 0, 1));
	CU_ASSERT_FALSE(rig_cq(rig.recv)->solicited_only);
	CU_ASSERT_FALSE(rig_readable(fd));
	MUST(rig_post_se(rig.recv, 1));
	CU_ASSERT_TRUE(rig_readable(fd));
	rig_empty(rig.recv, 1);
	MUST(DAT_EVD_ARM(rig.recv, 0, 1));
	CU_ASSERT_FALSE(rig_readable(fd));
	rig_close(&rig);
}

static const struct unit_test tests[] = {
	{ "version and named attributes of the extension", test_version_and_attributes },
	{ "every EVD has one descriptor, which is closed with it", test_fd },
	{ "concurrent first calls get one descriptor", test_fd_is_one },
	{ "without free descriptors: INSUFFICIENT_RESOURCES, and polling still works",
	  test_no_descriptors_left },
	{ "arming makes its checks in order", test_arm_checks },
	{ "an armed EVD fires for each kind of event", test_arm_fires },
	{ "arming an armed CQ at rest costs no system call", test_arm_is_cheap },
	{ "a completion, a signal and an event around the arming of a CQ at rest are found",
	  test_arm_at_rest },
	{ "an event that comes late is found", test_late_event },
	{ "solicited completions and all other events notify", test_solicited },
	{ "threshold 8: fires early at most 8 times, busy with 8", test_threshold },
	{ "an overflow fires; arming is busy while events are left, then INVALID_STATE",
	  test_overflow },
	{ "an arming survives a resize", test_arm_survives_resize },
	{ "a resize below the threshold of an arming lowers the threshold",
	  test_resize_below_threshold },
	{ "an armed object can be freed, and its descriptor is closed",
	  test_free_of_what_is_armed },
};

UNIT_MAIN("ev_evd", tests)
