/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/*
 * Shared memory where the kernel promises no more than there is: pages are allocated with the object that needs them, or the
 * object is not created. A page that is missing later would end the process by SIGBUS.
 */
#include <errno.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "softverbs/base/os.h"
#include "test/unit/node.h"
#include "test/unit/system_call.h"

static bool strict;
static unsigned calls, fail_from; /* calls of fallocate; from that one on they fail */
static unsigned interrupt;	  /* that many are interrupted */

bool __wrap_sv_os_promises_strictly(void);

bool __wrap_sv_os_promises_strictly(void)
{
	return strict;
}

/* Files in shared memory have no other error than ENOSPC for want of memory. */
static long system_call(long number, const long *argument)
{
	if (number == SYS_fallocate && interrupt) {
		interrupt--;
		return system_call_fails(EINTR);
	}
	if (number == SYS_fallocate && ++calls >= fail_from)
		return system_call_fails(ENOSPC);
	return system_call_made(number, argument);
}

static void begin(bool is_strict)
{
	strict = is_strict;
	calls = interrupt = 0;
	fail_from = UINT32_MAX;
}

static uint64_t pages_of(int fd)
{
	struct stat st = { 0 };

	CU_ASSERT_EQUAL(fstat(fd, &st), 0);
	return (uint64_t)st.st_blocks * 512;
}

/* Bytes without pages in the part of a heap that is in use. */
static uint64_t missing(enum area_heap which, int fd)
{
	uint64_t used = sv_area_own()->heap[which].next, there = pages_of(fd);

	return used > there ? used - there : 0;
}

static void objects_have_their_pages(void)
{
	const struct area *area;
	struct node node;

	begin(true);
	CU_ASSERT_TRUE_FATAL(node_open(&node, &(struct node_options){ .qps = 4, .srq = 64 }));
	area = sv_area_own();
	CU_ASSERT_EQUAL(missing(HEAP_BY_OWNER, area->by_owner_fd), 0);
	CU_ASSERT_EQUAL(missing(HEAP_BY_PEERS, area->by_peers_fd), 0);
	CU_ASSERT_EQUAL(node_close(&node), 0);
}

/* Else a table is as long as the device allows, and takes the memory of what is in use. */
static void pages_come_when_they_are_touched(void)
{
	struct node node;

	begin(false);
	CU_ASSERT_TRUE_FATAL(node_open(&node, &(struct node_options){ .qps = 4, .srq = 64 }));
	CU_ASSERT_EQUAL(calls, 0);
	CU_ASSERT_TRUE(missing(HEAP_BY_OWNER, sv_area_own()->by_owner_fd) > 0);
	CU_ASSERT_EQUAL(node_close(&node), 0);
}

static void device_without_pages(void)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_context *context;

	CU_ASSERT_PTR_NOT_NULL_FATAL(list);
	begin(true);
	for (fail_from = 1; fail_from < 100; fail_from++) {
		calls = 0;
		errno = 0;
		context = ibv_open_device(list[0]);
		if (context)
			break;
		CU_ASSERT_EQUAL(errno, ENOMEM);
	}
	CU_ASSERT_TRUE(fail_from > 2 && fail_from < 100); /* each area was one that failed */
	CU_ASSERT_EQUAL(context ? ibv_close_device(context) : -1, 0);
	ibv_free_device_list(list);
}

static struct ibv_qp *qp_make(struct node *node)
{
	struct ibv_qp_init_attr attr = {
		.send_cq = node->cq,
		.recv_cq = node->cq,
		.qp_type = IBV_QPT_RC,
		.cap = { .max_send_wr = 64,
			 .max_recv_wr = 64,
			 .max_send_sge = 1,
			 .max_recv_sge = 1 },
	};

	return ibv_create_qp(node->pd, &attr);
}

/* All that a queue pair has failed to acquire is free again: the next ones need no page more. */
static void queue_pair_without_pages(void)
{
	struct ibv_qp *qp = NULL;
	struct node node;
	unsigned tries = 0;
	uint64_t used;

	begin(true);
	CU_ASSERT_TRUE_FATAL(node_open(&node, &(struct node_options){ 0 }));
	for (calls = 0, fail_from = 1; !qp && tries < 100; tries++, fail_from++, calls = 0) {
		errno = 0;
		qp = qp_make(&node);
		if (!qp)
			CU_ASSERT_EQUAL(errno, ENOMEM);
	}
	CU_ASSERT_TRUE(tries > 1 && tries < 100);
	CU_ASSERT_EQUAL(ibv_destroy_qp(qp), 0);
	used = pages_of(sv_area_own()->by_peers_fd);
	fail_from = 1;
	qp = qp_make(&node);
	CU_ASSERT_PTR_NOT_NULL_FATAL(qp);
	CU_ASSERT_EQUAL(ibv_destroy_qp(qp), 0);
	CU_ASSERT_EQUAL(pages_of(sv_area_own()->by_peers_fd), used);
	CU_ASSERT_EQUAL(node_close(&node), 0);
}

static void signal_interrupts_the_allocation(void)
{
	struct node node;

	begin(true);
	interrupt = 3;
	CU_ASSERT_TRUE_FATAL(node_open(&node, &(struct node_options){ 0 }));
	CU_ASSERT_EQUAL(interrupt, 0);
	CU_ASSERT_EQUAL(missing(HEAP_BY_OWNER, sv_area_own()->by_owner_fd), 0);
	CU_ASSERT_EQUAL(node_close(&node), 0);
}

static const struct unit_test tests[] = {
	{ "strict: objects have their pages", objects_have_their_pages },
	{ "else pages come when they are touched", pages_come_when_they_are_touched },
	{ "no page for the tables: ENOMEM, and later a device", device_without_pages },
	{ "no page for a queue pair: ENOMEM, and later one", queue_pair_without_pages },
	{ "a signal interrupts the allocation", signal_interrupts_the_allocation },
};

UNIT_MAIN("softverbs_strict", tests)
