/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* A process that forks while it uses the device. */
#include <sys/wait.h>
#include <unistd.h>
#include "test/conform/conform.h"

static bool ends_well(pid_t child)
{
	int status = -1;

	return waitpid(child, &status, 0) == child && !status;
}

/* The child lives until the other end of the pipe is closed. */
static pid_t fork_waiting(int *keep)
{
	int ends[2];
	pid_t child;
	char byte;

	CU_ASSERT_EQUAL_FATAL(pipe(ends), 0);
	child = fork();
	if (!child) {
		close(ends[1]);
		_exit(read(ends[0], &byte, 1) != 0);
	}
	close(ends[0]);
	*keep = ends[1];
	return child;
}

static void exchange(struct pair *pair, char value)
{
	memset(pair->a.buffer, value, 10000);
	memset(pair->b.buffer, 0, 10000);
	CU_ASSERT_EQUAL(post_rdma(&pair->a, IBV_WR_RDMA_WRITE, 1, 0, 10000, &pair->b, 0, 0), 0);
	CU_ASSERT_EQUAL(post_recv(&pair->b, 2, 20000, 8), 0);
	CU_ASSERT_EQUAL(post_send(&pair->a, 3, 0, 8, IBV_SEND_SIGNALED), 0);
	CU_ASSERT_TRUE(completes(pair->a.scq, 3, IBV_WC_SUCCESS, NULL));
	CU_ASSERT_TRUE(completes(pair->b.rcq, 2, IBV_WC_SUCCESS, NULL));
	CU_ASSERT_TRUE(pair->b.buffer[0] == value && pair->b.buffer[9999] == value);
	CU_ASSERT_EQUAL(pair->b.buffer[20000], value);
}

static void parent_goes_on(void)
{
	struct pair pair;
	pid_t child;
	int keep;

	if (!pair_open(&pair, NULL))
		return;
	exchange(&pair, 1);
	child = fork_waiting(&keep);
	CU_ASSERT_TRUE_FATAL(child > 0);
	exchange(&pair, 2);
	close(keep);
	CU_ASSERT_TRUE(ends_well(child));
	exchange(&pair, 3);
	pair_close(&pair);
}

static void writes_reach_the_parent_alone(void)
{
	int to_child[2], status;
	struct pair pair;
	pid_t child;
	char byte = 0;

	if (!pair_open(&pair, NULL))
		return;
	strcpy(pair.b.buffer, "before");
	CU_ASSERT_EQUAL_FATAL(pipe(to_child), 0);
	child = fork();
	if (!child) {
		close(to_child[1]);
		status = read(to_child[0], &byte, 1) != 1 || strcmp(pair.b.buffer, "before") != 0;
		_exit(status);
	}
	close(to_child[0]);
	strcpy(pair.a.buffer, "after");
	CU_ASSERT_EQUAL(post_rdma(&pair.a, IBV_WR_RDMA_WRITE, 1, 0, 6, &pair.b, 0,
				  IBV_SEND_SIGNALED),
			0);
	CU_ASSERT_TRUE(completes(pair.a.scq, 1, IBV_WC_SUCCESS, NULL));
	CU_ASSERT_STRING_EQUAL(pair.b.buffer, "after");
	CU_ASSERT_EQUAL(write(to_child[1], &byte, 1), 1);
	CU_ASSERT_TRUE(ends_well(child));
	close(to_child[1]);
	pair_close(&pair);
}

/* Opens a context in the child and makes a connection within it. */
static bool works_anew(struct ibv_device *which)
{
	struct ibv_context *inherited = device;
	struct pair_options options = { 0 };
	struct pair pair;
	bool good;

	memset(&pair, 0, sizeof(pair));
	device = ibv_open_device(which);
	good = device && side_open(&pair.a, &options, false) &&
	       side_open(&pair.b, &options, false) && !make_init(pair.a.qp, 0) &&
	       !make_init(pair.b.qp, 0) && !make_rtr(pair.a.qp, pair.b.qp->qp_num, NULL) &&
	       !make_rtr(pair.b.qp, pair.a.qp->qp_num, NULL) && !make_rts(pair.a.qp, NULL) &&
	       !post_recv(&pair.b, 1, 0, 64) && !post_send(&pair.a, 2, 0, 64, IBV_SEND_SIGNALED) &&
	       completes(pair.a.scq, 2, IBV_WC_SUCCESS, NULL) &&
	       completes(pair.b.rcq, 1, IBV_WC_SUCCESS, NULL) && side_release(&pair.a) &&
	       side_release(&pair.b) && !ibv_close_device(device);
	device = inherited;
	return good;
}

static void child_may_open_its_own(void)
{
	struct pair pair;
	pid_t child;

	if (under_thread_sanitizer) {
		skip("the thread sanitizer allows no threads after a fork");
		return;
	}
	if (!pair_open(&pair, NULL))
		return;
	exchange(&pair, 1);
	child = fork();
	if (!child)
		_exit(!works_anew(device->device));
	CU_ASSERT_TRUE(ends_well(child));
	exchange(&pair, 2);
	pair_close(&pair);
}

static const struct unit_test tests[] = {
	{ "the parent goes on, with a child alive and after its end", parent_goes_on },
	{ "after a fork messages still reach the parent", writes_reach_the_parent_alone },
	{ "a child may open the device for itself", child_may_open_its_own },
};

CONFORM_MAIN("conform_fork", tests)
