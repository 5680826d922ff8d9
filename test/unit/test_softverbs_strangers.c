/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/*
 * Effects that other users can have on a process whose names they see: filling its log, and
 * claiming names first.
 */
#include <arpa/inet.h>
#include <grp.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <linux/unix_diag.h>
#include <stdio.h>
#include <string.h>
#include <sys/un.h>
#include "softverbs/attend.h"
#include "softverbs/base/log_from.h"
#include "softverbs/link/name.h"
#include "softverbs/link/name_holder.h"
#include "softverbs/link/runtime.h"
#include "test/unit/linked.h"
#include "test/unit/node.h"

#define STRANGER 12345
#define FLOOD	 300 /* connections */
#define FEW	 20  /* most lines in a limited log */

static bool can_be_others(void)
{
	if (!geteuid())
		return true;
	fprintf(stderr, "skipped: only the superuser can be another user\n");
	return false;
}

static socklen_t address_of(struct sockaddr_un *address, uid_t uid, const char *name)
{
	int length;

	memset(address, 0, sizeof(*address));
	address->sun_family = AF_UNIX;
	length = snprintf(address->sun_path + 1, sizeof(address->sun_path) - 1,
			  "softverbs/%d/%u/%s", SV_LAYOUT, (unsigned)uid, name);
	return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)length);
}

/* ---- the log ---- */

struct flood {
	uid_t uid, victim;
	uint16_t slot;
	bool junk; /* sends bytes that start like a hello */
};

static int flood_child(int fd, void *arg)
{
	static const uint32_t junk[] = { SV_MSG_HANDSHAKE, 4, 0 };
	const struct flood *flood = arg;
	struct sockaddr_un address;
	char name[16], byte;
	socklen_t size;

	(void)fd;
	snprintf(name, sizeof(name), "s%u", flood->slot);
	size = address_of(&address, flood->victim, name);
	if (flood->uid && (setgroups(0, NULL) || setresuid(flood->uid, flood->uid, flood->uid)))
		return 1;
	for (unsigned i = 0; i < FLOOD; i++) {
		int socket_fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

		if (connect(socket_fd, (struct sockaddr *)&address, size))
			return 2;
		if (flood->junk && send(socket_fd, junk, sizeof(junk), MSG_NOSIGNAL) < 0)
			return 3;
		/* the process closes the connection after it has read from it */
		while (recv(socket_fd, &byte, 1, 0) > 0)
			;
		close(socket_fd);
	}
	return 0;
}

static unsigned lines_in(FILE *log)
{
	unsigned count = 0;
	char line[1024];

	rewind(log);
	while (fgets(line, sizeof(line), log))
		count++;
	return count;
}

/* Runs in a child whose standard error is a file. */
static int flooded_child(int fd, void *arg)
{
	struct flood flood = *(struct flood *)arg;
	struct process flooder;
	FILE *log = tmpfile();
	unsigned lines;

	(void)fd;
	setenv("SOFTVERBS_LOG", "7", 1);
	if (!log || dup2(fileno(log), 2) != 2 || sv_runtime_hold(&sv_data_client))
		return 1;
	flood.slot = sv_runtime_peer_id();
	flood.victim = geteuid();
	if (!process_start(&flooder, flood_child, &flood) || process_end(&flooder))
		return 2;
	sv_runtime_release();
	lines = lines_in(log);
	return lines > 0 && lines <= FEW ? 0 : 100 + (int)lines % 100;
}

static void others_cannot_fill_the_log(void)
{
	struct flood flood = { .uid = STRANGER };
	struct process process;

	if (PROCESS_TSAN || !can_be_others())
		return;
	CU_ASSERT_FATAL(process_start(&process, flooded_child, &flood));
	CU_ASSERT_EQUAL(process_end(&process), 0);
}

static void a_peer_cannot_fill_the_log(void)
{
	struct flood flood = { .junk = true };
	struct process process;

	if (PROCESS_TSAN)
		return;
	CU_ASSERT_FATAL(process_start(&process, flooded_child, &flood));
	CU_ASSERT_EQUAL(process_end(&process), 0);
}

static void sources_are_counted_apart(void)
{
	uint64_t one = sv_source_process(1u << 30), other = sv_source_user(1u << 30);
	unsigned admitted = 0;

	for (unsigned i = 0; i < FLOOD; i++)
		admitted += sv_log_admits(one);
	CU_ASSERT(admitted > 0 && admitted < FEW);
	CU_ASSERT_FALSE(sv_log_admits(one));
	CU_ASSERT_TRUE(sv_log_admits(other));
}

/* ---- names ---- */

/* Holds the name, listening or not, until a number arrives. */
static int squatter_child(int fd, void *arg)
{
	struct sockaddr_un address;
	socklen_t size = address_of(&address, geteuid(), arg);
	int taken;

	if (setgroups(0, NULL) || setresuid(STRANGER, STRANGER, STRANGER))
		return 1;
	taken = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	if (bind(taken, (struct sockaddr *)&address, size))
		return 1;
	return process_say(fd, 1) && process_sync(fd) ? 0 : 2;
}

/* unix_diag may be a module of the kernel, and missing. */
static bool kernel_reports_names(void)
{
	struct {
		struct nlmsghdr header;
		struct unix_diag_req body;
	} ask = {
		.header = { .nlmsg_len = sizeof(ask),
			    .nlmsg_type = SOCK_DIAG_BY_FAMILY,
			    .nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP },
		.body = { .sdiag_family = AF_UNIX, .udiag_states = UINT32_MAX },
	};
	_Alignas(struct nlmsghdr) char answer[4096];
	const struct nlmsghdr *header = (const void *)answer;
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_SOCK_DIAG);
	bool reports = fd >= 0 && send(fd, &ask, sizeof(ask), 0) == sizeof(ask) &&
		       recv(fd, answer, sizeof(answer), MSG_TRUNC) > 0 &&
		       header->nlmsg_type != NLMSG_ERROR;

	if (fd >= 0)
		close(fd);
	if (!reports)
		fprintf(stderr, "skipped: the kernel does not report the holders of names\n");
	return reports;
}

static void the_holder_of_a_name_is_known(void)
{
	char name[] = "c/106/1/strangers";
	struct process squatter;
	struct sockaddr_un address;
	size_t length =
		address_of(&address, geteuid(), name) - offsetof(struct sockaddr_un, sun_path);
	uid_t uid = 0;
	int fd;

	if (!kernel_reports_names())
		return;
	CU_ASSERT_EQUAL_FATAL(sv_name_open(), 0);
	CU_ASSERT_FALSE(sv_name_holder(&address, length, &uid));
	fd = sv_name_claim(name);
	CU_ASSERT_FATAL(fd >= 0);
	CU_ASSERT_TRUE(sv_name_holder(&address, length, &uid));
	CU_ASSERT_EQUAL(uid, geteuid());
	close(fd);
	if (can_be_others()) {
		CU_ASSERT_FATAL(process_start(&squatter, squatter_child, name));
		CU_ASSERT_TRUE(process_sync(squatter.fd));
		CU_ASSERT_EQUAL(sv_name_claim(name), -1);
		CU_ASSERT_EQUAL(errno, EADDRINUSE);
		CU_ASSERT_TRUE(sv_name_holder(&address, length, &uid));
		CU_ASSERT_EQUAL(uid, STRANGER);
		process_say(squatter.fd, 1);
		CU_ASSERT_EQUAL(process_end(&squatter), 0);
	}
	sv_name_close();
}

/* ---- addresses ---- */

static int qp_towards(struct ibv_qp *qp, const char *ip)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_RTR,
		.path_mtu = IBV_MTU_4096,
		.dest_qp_num = 0x123456,
		.ah_attr = { .is_global = 1, .port_num = 1 },
	};

	inet_pton(AF_INET6, ip, &attr.ah_attr.grh.dgid);
	return qp_to_init(qp) ||
	       ibv_modify_qp(qp, &attr,
			     IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
				     IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
				     IBV_QP_MIN_RNR_TIMER);
}

/* Runs in a child whose standard error is a file. */
static int far_child(int fd, void *arg)
{
	FILE *log = tmpfile();
	struct node node;

	(void)fd;
	(void)arg;
	if (!log || dup2(fileno(log), 2) != 2 ||
	    !node_open(&node, &(struct node_options){ .qps = 4 }))
		return 1;
	if (qp_towards(node.qp[0], "::ffff:127.0.0.1") || qp_towards(node.qp[1], "::1"))
		return 2;
	if (lines_in(log))
		return 3;
	if (qp_towards(node.qp[2], "::ffff:192.0.2.1") ||
	    qp_towards(node.qp[3], "::ffff:192.0.2.2"))
		return 4;
	return lines_in(log) == 1 ? node_close(&node) : 5;
}

static void a_far_address_is_noted_once(void)
{
	struct process process;

	if (PROCESS_TSAN)
		return;
	CU_ASSERT_FATAL(process_start(&process, far_child, NULL));
	CU_ASSERT_EQUAL(process_end(&process), 0);
}

static const struct unit_test tests[] = {
	{ "another user cannot fill the log by connecting", others_cannot_fill_the_log },
	{ "a process of the same user cannot fill the log by malformed bytes",
	  a_peer_cannot_fill_the_log },
	{ "the log lines of each source are counted separately", sources_are_counted_apart },
	{ "the log names the user whose process holds a name", the_holder_of_a_name_is_known },
	{ "a queue pair to an address that is not on this host causes one log line",
	  a_far_address_is_noted_once },
};

UNIT_MAIN("test_softverbs_strangers", tests)
