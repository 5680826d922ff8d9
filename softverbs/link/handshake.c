/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* The handshake of two processes: their identity, their areas, and how each may reach the other's memory. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/uio.h>
#include <unistd.h>
#include "softverbs/base/foreign.h"
#include "softverbs/base/lock_rank.h"
#include "softverbs/base/log_from.h"
#include "softverbs/link/runtime.h"
#include "softverbs/base/settings.h"
#include "util/log.h"

#define HELLO_MAGIC 0x73766831u

#define MODE(copy) (1u << (copy))

static bool ptracer_set; /* guarded by the links lock */

/* By value of SOFTVERBS_COPY: the ways that this process uses, and those that it offers. A descriptor of its
 * memory is passed only on request, because it allows access where the kernel's rules would deny it. */
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

/* In Yama's mode 1 only ancestors may access a process, unless the process permits others. */
static void ptracer_allow(void)
{
	int fd = open("/proc/sys/kernel/yama/ptrace_scope", O_RDONLY | O_CLOEXEC);
	char scope = '0';

	if (fd < 0)
		return; /* a kernel without Yama */
	if (read(fd, &scope, 1) == 1 && scope == '1' &&
	    !prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0)) {
		ptracer_set = true;
		log_at(LOG_NOTE,
		       "softverbs: Yama is asked to permit other processes of this user access to"
		       " this one's memory; SOFTVERBS_COPY=bounce forbids it");
	}
	close(fd);
}

void sv_handshake_end(void)
{
	if (ptracer_set)
		prctl(PR_SET_PTRACER, 0, 0, 0, 0);
	ptracer_set = false;
}

int sv_handshake_send_locked(struct sv_link *link)
{
	struct sv_peer *self = sv_peer_self();
	int fds[SV_HANDSHAKE_FDS] = { [2] = -1 }, error;
	struct handshake handshake = {
		.magic = HELLO_MAGIC,
		.layout = SV_LAYOUT,
		.nonce = { self->nonce[0], self->nonce[1] },
		.modes = modes[sv_setting(SV_SET_COPY)].offers,
		.slot = self->slot,
	};

	if (handshake.modes & MODE(SV_COPY_PVM) && !ptracer_set)
		ptracer_allow();
	if (handshake.modes & MODE(SV_COPY_MEMFD)) {
		fds[2] = open("/proc/self/mem", O_RDWR | O_CLOEXEC);
		if (fds[2] < 0)
			return errno;
	}
	sv_runtime_client()->area_offer(&handshake.offer, fds);
	error = sv_link_send_locked(link, SV_MSG_HANDSHAKE, &handshake, sizeof(handshake), fds,
				    fds[2] < 0 ? SV_HANDSHAKE_FDS - 1 : SV_HANDSHAKE_FDS);
	sv_close_all(&fds[2], 1);
	return error;
}

uint32_t sv_handshake_layout(const void *payload, size_t size)
{
	struct {
		uint32_t magic, layout;
	} head;

	if (size < sizeof(head))
		return 0;
	memcpy(&head, payload, sizeof(head));
	return head.magic == HELLO_MAGIC ? head.layout : 0;
}

bool sv_handshake_read(struct handshake *handshake, const void *payload, size_t size)
{
	if (size != sizeof(*handshake))
		return false;
	memcpy(handshake, payload, sizeof(*handshake));
	return handshake->magic == HELLO_MAGIC && handshake->layout == SV_LAYOUT &&
	       handshake->slot < SV_PEERS && handshake->slot != sv_runtime_peer_id();
}

/* Whether the kernel lets this process access the peer's memory. The probe touches no page of the peer, since
 * a page may belong to a user-space server that does not answer: nothing is mapped at the address, so a
 * permitted call fails with EFAULT. `pid` is the peer's number in this pid namespace, or 0 if it is in
 * another one. */
static bool pvm_works(pid_t pid)
{
	char byte;
	struct iovec local = { &byte, 1 }, remote = { (void *)UINTPTR_MAX, 1 };

	return pid > 0 && process_vm_readv(pid, &local, 1, &remote, 1, 0) < 0 && errno == EFAULT &&
	       process_vm_writev(pid, &local, 1, &remote, 1, 0) < 0 && errno == EFAULT;
}

static int copy_choose(const struct handshake *handshake, pid_t pid, int memory, enum sv_copy *copy)
{
	uint32_t ways = modes[sv_setting(SV_SET_COPY)].goes & handshake->modes;

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

static int peer_fill(struct sv_peer *peer, const struct handshake *handshake,
		     const struct ucred *cred, const int *fds)
{
	int error;

	lock_init(&peer->outbox.lock, SV_RANK_OUTBOX);
	peer->slot = (uint16_t)handshake->slot;
	peer->pid = cred->pid;
	memcpy(peer->nonce, handshake->nonce, sizeof(peer->nonce));
	atomic_init(&peer->refs, 1);
	peer->doorbell = -1;
	atomic_init(&peer->memory, -1);
	error = copy_choose(handshake, cred->pid, fds[2], &peer->copy);
	return error ? error : sv_runtime_client()->area_map(peer, &handshake->offer, fds);
}

struct sv_peer *sv_handshake_peer(const struct handshake *handshake, const struct ucred *cred,
				  int *fds, unsigned fd_count)
{
	struct sv_peer *peer = NULL;
	int error = EPROTO;

	if (fd_count == SV_HANDSHAKE_FDS ||
	    (fd_count == SV_HANDSHAKE_FDS - 1 && !(handshake->modes & MODE(SV_COPY_MEMFD)))) {
		peer = calloc(1, sizeof(*peer));
		error = peer ? peer_fill(peer, handshake, cred, fds) : ENOMEM;
	}
	if (error) {
		sv_log_from(sv_source_process(cred->pid), LOG_ERROR,
			    "softverbs: hello of slot %u, process %d: %s", handshake->slot,
			    (int)cred->pid, strerror(error));
		sv_foreign_close(fds, fd_count);
		free(peer);
		errno = error;
		return NULL;
	}
	sv_close_all(fds, 2); /* the mappings keep the areas alive */
	if (peer->copy == SV_COPY_MEMFD)
		peer->memory = fds[2];
	else
		sv_foreign_close(&fds[2], 1);
	return peer;
}
