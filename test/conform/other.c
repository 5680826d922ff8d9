/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* Another process of a suite of rdma_cm. */
#include <arpa/inet.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include "test/conform/other.h"
#include "test/conform/remote.h"

struct report {
	uint16_t value;
	union ibv_gid gid;
};

bool other_start(struct other *other, const char *role, uint16_t number)
{
	char text[8], host[INET6_ADDRSTRLEN];
	int ends[2];

	inet_ntop(AF_INET6, &device_gid, host, sizeof(host));
	snprintf(text, sizeof(text), "%u", number);
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends))
		return false;
	other->pid = fork();
	if (!other->pid) {
		dup2(ends[1], STDIN_FILENO);
		dup2(ends[1], STDOUT_FILENO);
		if (remote_net_enter())
			execl("/proc/self/exe", "other", "--act", role, text, host, (char *)NULL);
		_exit(127);
	}
	close(ends[1]);
	other->fd = ends[0];
	return other->pid > 0;
}

uint16_t other_reported(struct other *other)
{
	struct report report = { 0 };

	if (!readable(other->fd, PATIENCE) ||
	    read(other->fd, &report, sizeof(report)) != sizeof(report))
		return 0;
	other->gid = report.gid;
	return report.value;
}

void other_kill(struct other *other)
{
	CU_ASSERT_EQUAL(kill(other->pid, SIGKILL), 0);
	CU_ASSERT_EQUAL(waitpid(other->pid, NULL, 0), other->pid);
	close(other->fd);
}

void other_report(uint16_t value)
{
	struct report report = { value, device_gid };

	if (write(STDOUT_FILENO, &report, sizeof(report)) != sizeof(report))
		exit(2);
}
