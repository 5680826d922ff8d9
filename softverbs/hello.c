/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/*
 * The greeting of two processes: who each is, where its areas are, and how each may reach the
 * other's memory.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/uio.h>
#include <unistd.h>
#include "softverbs/foreign.h"
#include "softverbs/log_from.h"
#include "softverbs/runtime.h"
#include "softverbs/settings.h"
#include "util/log.h"

#define HELLO_MAGIC 0x73766831u

#define MODE(copy) (1u << (copy))

static bool ptracer_set; /* links lock */

/*
 * SOFTVERBS_COPY: the ways this process goes, and the ways it offers. A descriptor of its memory is
 * passed to nobody unless asked for, for it serves where the kernel's rules deny access otherwise.
 */
static const struct {
	uint32_t goes, offers;
} modes[] = {
	[SV_WISH_AUTO] = { MODE(SV_COPY_PVM) | MODE(SV_COPY_MEMFD) | MODE(SV_COPY_BOUNCE),
			   MODE(SV_COPY_PVM) | MODE(SV_COPY_BOUNCE) },
	[SV_WISH_PVM] = { MODE(SV_COPY_PVM), MODE(SV_COPY_PVM) },
	[SV_WISH_MEMFD] = { MODE(SV_COPY_MEMFD) | MODE(SV_COPY_BOUNCE),
			    MODE(SV_COPY_MEMFD) | MODE(SV_COPY_BOUNCE) },
	[SV_WISH_BOUNCE] = { MODE(SV_COPY_BOUNCE), MODE(SV_COPY_BOUNCE) },
};

/* Yama's mode 1 lets only ancestors reach a process, unless the process itself says otherwise. */
static void ptracer_allow(void)
{
	int fd = open("/proc/sys/kernel/yama/ptrace_scope", O_RDONLY | O_CLOEXEC);
	char scope = '0';

	if (fd < 0)
		return; /* a kernel without Yama */
	if (read(fd, &scope, 1) == 1 && scope == '1' &&
	    !prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0)) {
		ptracer_set = true;
		log_at(LOG_NOTE, "softverbs: Yama is told to let other processes of this user reach"
				 " this one's memory; SOFTVERBS_COPY=bounce forbids it");
	}
	close(fd);
}

void hello_end(void)
{
	if (ptracer_set)
		prctl(PR_SET_PTRACER, 0, 0, 0, 0);
	ptracer_set = false;
}

int hello_send_locked(struct sv_link *link)
{
	struct sv_peer *self = peer_self();
	int fds[SV_HELLO_FDS] = { [2] = -1 }, error;
	struct hello hello = {
		.magic = HELLO_MAGIC,
		.layout = SV_LAYOUT,
		.nonce = { self->nonce[0], self->nonce[1] },
		.modes = modes[sv_setting(SV_SET_COPY)].offers,
		.slot = self->slot,
	};

	if (hello.modes & MODE(SV_COPY_PVM) && !ptracer_set)
		ptracer_allow();
	if (hello.modes & MODE(SV_COPY_MEMFD)) {
		fds[2] = open("/proc/self/mem", O_RDWR | O_CLOEXEC);
		if (fds[2] < 0)
			return errno;
	}
	area_offer(&hello.offer, fds);
	error = link_send_locked(link, SV_MSG_HELLO, &hello, sizeof(hello), fds,
				 fds[2] < 0 ? SV_HELLO_FDS - 1 : SV_HELLO_FDS);
	close_all(&fds[2], 1);
	return error;
}

bool hello_read(struct hello *hello, const void *payload, size_t size)
{
	if (size != sizeof(*hello))
		return false;
	memcpy(hello, payload, sizeof(*hello));
	return hello->magic == HELLO_MAGIC && hello->layout == SV_LAYOUT &&
	       hello->slot < SV_SLOTS && hello->slot != runtime_slot();
}

/*
 * Whether the kernel lets this process reach into the peer. No page of the peer is touched, for one
 * may lie behind a server in user space that does not answer: nothing is mapped at the address, so a
 * call that may look there fails by that. The number is the one by which the peer is known here; 0
 * if it is in another pid namespace.
 */
static bool pvm_works(pid_t pid)
{
	char byte;
	struct iovec local = { &byte, 1 }, remote = { (void *)UINTPTR_MAX, 1 };

	return pid > 0 && process_vm_readv(pid, &local, 1, &remote, 1, 0) < 0 && errno == EFAULT &&
	       process_vm_writev(pid, &local, 1, &remote, 1, 0) < 0 && errno == EFAULT;
}

static int copy_choose(const struct hello *hello, pid_t pid, int memory, enum sv_copy *copy)
{
	uint32_t ways = modes[sv_setting(SV_SET_COPY)].goes & hello->modes;

	if (ways & MODE(SV_COPY_PVM) && pvm_works(pid))
		*copy = SV_COPY_PVM;
	else if (ways & MODE(SV_COPY_MEMFD) && sv_foreign_is_memory(memory))
		*copy = SV_COPY_MEMFD;
	else if (ways & MODE(SV_COPY_BOUNCE))
		*copy = SV_COPY_BOUNCE;
	else
		return EACCES;
	return 0;
}

static int peer_fill(struct sv_peer *peer, const struct hello *hello, const struct ucred *cred,
		     const int *fds)
{
	int error;

	peer->slot = (uint16_t)hello->slot;
	peer->pid = cred->pid;
	memcpy(peer->nonce, hello->nonce, sizeof(peer->nonce));
	atomic_init(&peer->refs, 1);
	peer->doorbell = peer->memory = -1;
	error = copy_choose(hello, cred->pid, fds[2], &peer->copy);
	return error ? error : area_map(peer, &hello->offer, fds);
}

struct sv_peer *hello_peer(const struct hello *hello, const struct ucred *cred, int *fds,
			   unsigned fd_count)
{
	struct sv_peer *peer = NULL;
	int error = EPROTO;

	if (fd_count == SV_HELLO_FDS ||
	    (fd_count == SV_HELLO_FDS - 1 && !(hello->modes & MODE(SV_COPY_MEMFD)))) {
		peer = calloc(1, sizeof(*peer));
		error = peer ? peer_fill(peer, hello, cred, fds) : ENOMEM;
	}
	if (error) {
		sv_log_from(sv_source_process(cred->pid), LOG_ERROR,
			    "softverbs: hello of slot %u, process %d: %s", hello->slot,
			    (int)cred->pid, strerror(error));
		sv_foreign_close(fds, fd_count);
		free(peer);
		errno = error;
		return NULL;
	}
	close_all(fds, 2); /* the mappings keep the areas */
	if (peer->copy == SV_COPY_MEMFD)
		peer->memory = fds[2];
	else
		sv_foreign_close(&fds[2], 1);
	return peer;
}
