/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* Takes system calls from a process, as a container may. */
#ifndef DENIED_H
#define DENIED_H

#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

/*
 * After this call these two system calls fail with EPERM in all threads of this process, and in its children. Returns false
 * if the system has no seccomp filters.
 */
static inline bool deny_calls(unsigned first, unsigned second)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, first, 1, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, second, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = { sizeof(code) / sizeof(code[0]), code };

	return !prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) &&
	       !syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &program);
}

/* The right to access other processes' memory, and its own, by process_vm_readv and process_vm_writev. */
static inline bool deny_process_vm(void)
{
	return deny_calls(SYS_process_vm_readv, SYS_process_vm_writev);
}

#endif
