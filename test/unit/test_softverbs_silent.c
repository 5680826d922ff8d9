/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/*
 * Processes that do not answer: one of another version of softverbs or one that is stopped cannot be
 * linked, and requests to it end as without an answer. A stopped process that is linked is reached.
 */
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/mman.h>
#include "softverbs/attend.h"
#include "softverbs/link/runtime.h"
#include "test/unit/linked.h"
#include "test/unit/node.h"

#define RETRIES 3
/*
 * The transition to RTR asks, then the post, and perhaps a poll before the refusal is known; each end of
 * a period asks after that.
 */
#define FIRST 3

/* ---- not linked ---- */

/* Shared with the other process. */
static struct shared {
	atomic_uint hellos;   /* that it refused */
	atomic_uint lines[2]; /* in the logs of this and of the other process */
} * shared;

/* True in the other process: its hellos have another layout, and it refuses those of this process. */
static bool other_layout;

bool __wrap_sv_handshake_read(struct handshake *handshake, const void *payload, size_t size);
bool __real_sv_handshake_read(struct handshake *handshake, const void *payload, size_t size);
uint32_t __wrap_sv_handshake_layout(const void *payload, size_t size);
uint32_t __real_sv_handshake_layout(const void *payload, size_t size);
int __wrap_sv_link_send_locked(struct sv_link *link, enum sv_msg type, const void *payload,
			       size_t size, const int *fds, unsigned fd_count);
int __real_sv_link_send_locked(struct sv_link *link, enum sv_msg type, const void *payload,
			       size_t size, const int *fds, unsigned fd_count);

bool __wrap_sv_handshake_read(struct handshake *handshake, const void *payload, size_t size)
{
	if (!other_layout)
		return __real_sv_handshake_read(handshake, payload, size);
	atomic_fetch_add(&shared->hellos, 1);
	return false;
}

/* To the other process, this one's layout is a number that is not its own. */
uint32_t __wrap_sv_handshake_layout(const void *payload, size_t size)
{
	return __real_sv_handshake_layout(payload, size) + other_layout;
}

int __wrap_sv_link_send_locked(struct sv_link *link, enum sv_msg type, const void *payload,
			       size_t size, const int *fds, unsigned fd_count)
{
	struct handshake handshake;

	if (!other_layout || type != SV_MSG_HANDSHAKE)
		return __real_sv_link_send_locked(link, type, payload, size, fds, fd_count);
	memcpy(&handshake, payload, sizeof(handshake));
	handshake.layout = SV_LAYOUT + 1;
	return __real_sv_link_send_locked(link, type, &handshake, sizeof(handshake), fds, fd_count);
}

void __wrap_log_write(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

void __wrap_log_write(const char *fmt, ...)
{
	char line[256];
	va_list list;

	va_start(list, fmt);
	vsnprintf(line, sizeof(line), fmt, list);
	va_end(list);
	if (strstr(line, "another version of softverbs"))
		atomic_fetch_add(&shared->lines[other_layout], 1);
}

static int other_child(int fd, void *arg)
{
	other_layout = true;
	return reside(fd, arg);
}

static bool is_stopped(void *arg)
{
	siginfo_t info = { 0 };

	return !waitid(P_PID, (id_t) * (pid_t *)arg, &info, WSTOPPED | WNOHANG | WNOWAIT) &&
	       info.si_pid;
}

static int stopped_child(int fd, void *arg)
{
	if (sv_runtime_hold(&sv_data_client))
		return 1;
	process_say(fd, sv_runtime_peer_id());
	raise(SIGSTOP);
	(void)arg;
	return 0;
}

/* Starts the process and opens a QP that is connected with one of it. */
static void rig_open(struct process *process, int (*run)(int fd, void *arg), struct node *node,
		     uint8_t timeout)
{
	const struct node_options options = { .retry_cnt = RETRIES };
	uint64_t slot;

	memset(shared, 0, sizeof(*shared));
	CU_ASSERT_TRUE_FATAL(process_start(process, run, NULL));
	CU_ASSERT_TRUE_FATAL(process_hear(process->fd, &slot));
	CU_ASSERT_TRUE_FATAL(node_open(node, &options));
	node->options.timeout = timeout;
	CU_ASSERT_TRUE_FATAL(
		node_qp_connect(node->qp[0], (uint32_t)slot << 12 | 5, &node->options));
}

static void ends_without_an_answer(struct node *node)
{
	struct ibv_wc wc = { 0 };

	CU_ASSERT_EQUAL(node_send(node, 0, 7, 0, 8, IBV_SEND_SIGNALED), 0);
	CU_ASSERT_TRUE(node_poll(node, &wc));
	CU_ASSERT_EQUAL(wc.status, IBV_WC_RETRY_EXC_ERR);
	CU_ASSERT_EQUAL(wc.wr_id, 7);
	CU_ASSERT_EQUAL(sv_qp_state(node->qp[0]), IBV_QPS_ERR);
	CU_ASSERT_EQUAL(node_close(node), 0);
}

/* Each poll finds the request waiting. Both logs have the reason, once. */
static void refused_hellos_are_counted(void)
{
	struct process other;
	struct node node;

	rig_open(&other, other_child, &node, 14);
	ends_without_an_answer(&node);
	CU_ASSERT_TRUE(atomic_load(&shared->hellos) >= 1);
	CU_ASSERT_TRUE(atomic_load(&shared->hellos) <= FIRST + RETRIES + 1);
	CU_ASSERT_EQUAL(atomic_load(&shared->lines[0]), 1);
	CU_ASSERT_EQUAL(atomic_load(&shared->lines[1]), 1);
	process_say(other.fd, 0);
	CU_ASSERT_EQUAL(process_end(&other), 0);
}

/* With a timeout of 0 a request waits without limit; its peer is asked once in a second. */
static void endless_wait_asks_seldom(void)
{
	struct process other;
	struct node node;
	struct ibv_wc wc;
	uint64_t begin;

	rig_open(&other, other_child, &node, 0);
	begin = clock_now();
	CU_ASSERT_EQUAL(node_send(&node, 0, 7, 0, 8, IBV_SEND_SIGNALED), 0);
	while (clock_now() - begin < 300 * NSEC_PER_MSEC)
		CU_ASSERT_EQUAL_FATAL(ibv_poll_cq(node.cq, 1, &wc), 0);
	CU_ASSERT_TRUE(atomic_load(&shared->hellos) <=
		       FIRST + 1 + (clock_now() - begin) / NSEC_PER_SEC);
	CU_ASSERT_EQUAL(node_close(&node), 0);
	process_say(other.fd, 0);
	CU_ASSERT_EQUAL(process_end(&other), 0);
}

/* Its socket accepts the link, and nothing answers there. */
static void stopped_process_is_not_waited_for(void)
{
	struct process stopped;
	struct node node;

	rig_open(&stopped, stopped_child, &node, 10);
	CU_ASSERT_TRUE(unit_wait_for(is_stopped, &stopped.pid, UNIT_PATIENCE));
	ends_without_an_answer(&node);
	kill(stopped.pid, SIGCONT);
	process_kill(&stopped);
}

/* ---- linked before it stops ---- */

/* Posts one receive and stops at the first message; continues, and ends at the next. */
static int owner_child(int fd, void *arg)
{
	struct node node;

	(void)arg;
	if (!node_open(&node, &(struct node_options){ 0 }) || !node_connect(&node, 0, 1, fd) ||
	    node_recv(&node, 0, 1, 0, 8))
		return 1;
	process_say(fd, (uintptr_t)node.memory);
	process_say(fd, node.mr->rkey);
	process_sync(fd);
	raise(SIGSTOP);
	process_sync(fd);
	return node_close(&node);
}

static int remote_post(struct node *node, enum ibv_wr_opcode opcode, uint64_t address,
		       uint64_t rkey)
{
	struct ibv_sge sge = node_sge(node, 0, 8);
	struct ibv_send_wr wr = { .wr_id = opcode,
				  .sg_list = &sge,
				  .num_sge = 1,
				  .opcode = opcode,
				  .send_flags = IBV_SEND_SIGNALED },
			   *bad;

	if (opcode == IBV_WR_RDMA_WRITE) {
		wr.wr.rdma.remote_addr = address;
		wr.wr.rdma.rkey = (uint32_t)rkey;
	} else {
		wr.wr.atomic.remote_addr = address;
		wr.wr.atomic.rkey = (uint32_t)rkey;
		wr.wr.atomic.compare_add = 5;
	}
	return ibv_post_send(node->qp[0], &wr, &bad);
}

static void expect_success(struct node *node, uint64_t wr_id)
{
	struct ibv_wc wc = { 0 };

	CU_ASSERT_TRUE(node_poll(node, &wc));
	CU_ASSERT_EQUAL(wc.status, IBV_WC_SUCCESS);
	CU_ASSERT_EQUAL(wc.wr_id, wr_id);
}

static bool is_linked(void *arg)
{
	return atomic_load(&((struct sv_qp *)arg)->peer);
}

/* All tries of the queue pair take 4 ms. */
static void stopped_process_is_reached(void)
{
	const struct node_options options = { .timeout = 8, .retry_cnt = RETRIES };
	struct process owner;
	uint64_t address, rkey, begin;
	struct node node;
	struct ibv_wc wc;

	CU_ASSERT_TRUE_FATAL(process_start(&owner, owner_child, NULL));
	CU_ASSERT_TRUE_FATAL(node_open(&node, &options));
	CU_ASSERT_TRUE_FATAL(node_connect(&node, 0, 1, owner.fd));
	CU_ASSERT_TRUE_FATAL(process_hear(owner.fd, &address));
	CU_ASSERT_TRUE_FATAL(process_hear(owner.fd, &rkey));
	CU_ASSERT_TRUE_FATAL(unit_wait_for(is_linked, qp_of(node.qp[0]), UNIT_PATIENCE));
	process_say(owner.fd, 1);
	CU_ASSERT_TRUE_FATAL(unit_wait_for(is_stopped, &owner.pid, UNIT_PATIENCE));

	CU_ASSERT_EQUAL(node_send(&node, 0, 7, 0, 8, IBV_SEND_SIGNALED), 0);
	expect_success(&node, 7);
	CU_ASSERT_EQUAL(remote_post(&node, IBV_WR_RDMA_WRITE, address + 64, rkey), 0);
	expect_success(&node, IBV_WR_RDMA_WRITE);
	CU_ASSERT_EQUAL(remote_post(&node, IBV_WR_ATOMIC_FETCH_AND_ADD, address + 64, rkey), 0);
	begin = clock_now();
	while (clock_now() - begin < 200 * NSEC_PER_MSEC)
		CU_ASSERT_EQUAL_FATAL(ibv_poll_cq(node.cq, 1, &wc), 0);
	kill(owner.pid, SIGCONT);
	expect_success(&node, IBV_WR_ATOMIC_FETCH_AND_ADD);
	process_say(owner.fd, 1);
	CU_ASSERT_EQUAL(process_end(&owner), 0);
	CU_ASSERT_EQUAL(node_close(&node), 0);
}

static const struct unit_test tests[] = {
	{ "a process of another layout is asked once in each try", refused_hellos_are_counted },
	{ "a process of another layout is asked once in a second where tries have no end",
	  endless_wait_asks_seldom },
	{ "a process that is stopped before the link is not waited for without end",
	  stopped_process_is_not_waited_for },
	{ "a stopped process gets messages and writes, and makes an atomic when it continues",
	  stopped_process_is_reached },
};

int main(int argc, char **argv)
{
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		      0);
	if (shared == MAP_FAILED)
		return 1;
	return unit_main("softverbs_silent", tests, sizeof(tests) / sizeof(tests[0]), argc, argv);
}
