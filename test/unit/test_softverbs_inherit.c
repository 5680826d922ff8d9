/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/*
 * The software device in a forked child: inherited objects return ENODEV, and the parent continues.
 */
#include <errno.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>
#include <infiniband/verbs.h>
#include "test/unit/process.h"
#include "test/unit/unit.h"

static struct ibv_context *context;
static struct ibv_comp_channel *channel;
static struct ibv_pd *pd;
static struct ibv_mr *mr;
static struct ibv_cq *cq;
static struct ibv_srq *srq;
static struct ibv_qp *qp;
static char buffer[64];

static bool open_all(void)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_srq_init_attr srq_init = { .attr = { .max_wr = 4, .max_sge = 1 } };
	struct ibv_qp_init_attr init = {
		.qp_type = IBV_QPT_RC,
		.cap = { .max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1 },
	};

	context = list ? ibv_open_device(list[0]) : NULL;
	if (list)
		ibv_free_device_list(list);
	if (!context)
		return false;
	pd = ibv_alloc_pd(context);
	channel = ibv_create_comp_channel(context);
	mr = ibv_reg_mr(pd, buffer, sizeof(buffer), IBV_ACCESS_LOCAL_WRITE);
	init.send_cq = init.recv_cq = cq = ibv_create_cq(context, 8, NULL, channel, 0);
	srq = ibv_create_srq(pd, &srq_init);
	qp = ibv_create_qp(pd, &init);
	return pd && channel && mr && cq && srq && qp;
}

static void close_all(void)
{
	CU_ASSERT_EQUAL(ibv_destroy_qp(qp), 0);
	CU_ASSERT_EQUAL(ibv_destroy_srq(srq), 0);
	CU_ASSERT_EQUAL(ibv_destroy_cq(cq), 0);
	CU_ASSERT_EQUAL(ibv_destroy_comp_channel(channel), 0);
	CU_ASSERT_EQUAL(ibv_dereg_mr(mr), 0);
	CU_ASSERT_EQUAL(ibv_dealloc_pd(pd), 0);
	CU_ASSERT_EQUAL(ibv_close_device(context), 0);
}

/* Counts expectations, so that the child's exit status tells which one failed. */
static int step;
#define EXPECT(condition)            \
	do {                         \
		step++;              \
		if (!(condition))    \
			_exit(step); \
		errno = 0;           \
	} while (0)

static void expect_no_creation(void)
{
	struct ibv_srq_init_attr srq_init = { .attr = { .max_wr = 4, .max_sge = 1 } };
	struct ibv_qp_init_attr init = { .qp_type = IBV_QPT_RC, .send_cq = cq, .recv_cq = cq };

	EXPECT(!ibv_alloc_pd(context) && errno == ENODEV);
	EXPECT(!ibv_create_comp_channel(context) && errno == ENODEV);
	EXPECT(!ibv_create_cq(context, 4, NULL, NULL, 0) && errno == ENODEV);
	EXPECT(!ibv_reg_mr(pd, buffer, 8, IBV_ACCESS_LOCAL_WRITE) && errno == ENODEV);
	EXPECT(!ibv_create_srq(pd, &srq_init) && errno == ENODEV);
	EXPECT(!ibv_create_qp(pd, &init) && errno == ENODEV);
	EXPECT(!ibv_alloc_mw(pd, IBV_MW_TYPE_1) && errno == ENODEV);
}

static void expect_no_use(void)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_ERR };
	struct ibv_send_wr swr = { .opcode = IBV_WR_SEND }, *sbad;
	struct ibv_recv_wr rwr = { .wr_id = 1 }, *rbad;
	struct ibv_srq_attr srq_attr = { .srq_limit = 1 };
	struct ibv_qp_init_attr init;
	struct ibv_async_event event;
	struct ibv_cq *which;
	struct ibv_wc wc;
	void *arg;

	EXPECT(ibv_modify_qp(qp, &attr, IBV_QP_STATE) == ENODEV);
	EXPECT(ibv_query_qp(qp, &attr, IBV_QP_STATE, &init) == ENODEV);
	EXPECT(ibv_post_send(qp, &swr, &sbad) == ENODEV);
	EXPECT(ibv_post_recv(qp, &rwr, &rbad) == ENODEV);
	EXPECT(ibv_post_srq_recv(srq, &rwr, &rbad) == ENODEV);
	EXPECT(ibv_modify_srq(srq, &srq_attr, IBV_SRQ_LIMIT) == ENODEV);
	EXPECT(ibv_query_srq(srq, &srq_attr) == ENODEV);
	EXPECT(ibv_poll_cq(cq, 1, &wc) < 0);
	EXPECT(ibv_req_notify_cq(cq, 0) == ENODEV);
	EXPECT(ibv_get_cq_event(channel, &which, &arg) == -1 && errno == ENODEV);
	EXPECT(ibv_get_async_event(context, &event) == -1 && errno == ENODEV);
}

static void expect_no_end(void)
{
	EXPECT(ibv_destroy_qp(qp) == ENODEV);
	EXPECT(ibv_destroy_srq(srq) == ENODEV);
	EXPECT(ibv_destroy_cq(cq) == ENODEV);
	EXPECT(ibv_destroy_comp_channel(channel) == ENODEV);
	EXPECT(ibv_dereg_mr(mr) == ENODEV);
	EXPECT(ibv_dealloc_pd(pd) == ENODEV);
	EXPECT(ibv_close_device(context) == -1 && errno == ENODEV);
}

/* Runs the function in a child; returns 0 or the number of the expectation that failed. */
static int in_child(void (*function)(void))
{
	int status = -1;
	pid_t child = fork();

	if (!child) {
		function();
		_exit(0);
	}
	CU_ASSERT_EQUAL(waitpid(child, &status, 0), child);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -status;
}

static void inherited_objects(void)
{
	CU_ASSERT_TRUE_FATAL(open_all());
	CU_ASSERT_EQUAL(in_child(expect_no_creation), 0);
	CU_ASSERT_EQUAL(in_child(expect_no_use), 0);
	CU_ASSERT_EQUAL(in_child(expect_no_end), 0);
	close_all();
}

/* Opening the device in the child does not make inherited objects valid. */
static void open_then_expect(void)
{
	struct ibv_context *inherited = context, *own;

	own = ibv_open_device(context->device);
	EXPECT(own);
	context = inherited;
	expect_no_use();
	expect_no_end();
	EXPECT(!ibv_close_device(own));
}

static void inherited_objects_beside_new_ones(void)
{
	if (PROCESS_TSAN)
		return;
	CU_ASSERT_TRUE_FATAL(open_all());
	CU_ASSERT_EQUAL(in_child(open_then_expect), 0);
	close_all();
}

static void open_and_close(void)
{
	EXPECT(open_all());
	EXPECT(!ibv_destroy_qp(qp) && !ibv_destroy_srq(srq) && !ibv_destroy_cq(cq));
	EXPECT(!ibv_destroy_comp_channel(channel) && !ibv_dereg_mr(mr) && !ibv_dealloc_pd(pd));
	EXPECT(!ibv_close_device(context));
}

static void fork_before_and_after(void)
{
	CU_ASSERT_EQUAL(in_child(open_and_close), 0);
	CU_ASSERT_TRUE_FATAL(open_all());
	close_all();
	CU_ASSERT_EQUAL(in_child(open_and_close), 0);
}

static const struct unit_test tests[] = {
	{ "each call on an inherited object: ENODEV", inherited_objects },
	{ "the same after the child opened the device for itself",
	  inherited_objects_beside_new_ones },
	{ "fork before open and after close: both processes use the device",
	  fork_before_and_after },
};

UNIT_MAIN("test_softverbs_inherit", tests)
