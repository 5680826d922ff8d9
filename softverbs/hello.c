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
	int fds[SV_HELLO_FDS] = { [2] = self->doorbell, [3] = -1 }, error;
	struct hello hello = {
		.magic = HELLO_MAGIC,
		.layout = SV_LAYOUT,
		.nonce = { self->nonce[0], self->nonce[1] },
		.canary = (uintptr_t)self->nonce,
		.modes = modes[sv_setting(SV_SET_COPY)].offers,
		.slot = self->slot,
	};

	if (hello.modes & MODE(SV_COPY_PVM) && !ptracer_set)
		ptracer_allow();
	if (hello.modes & MODE(SV_COPY_MEMFD)) {
		fds[3] = open("/proc/self/mem", O_RDWR | O_CLOEXEC);
		if (fds[3] < 0)
			return errno;
	}
	area_offer(&hello.offer, fds);
	error = link_send_locked(link, SV_MSG_HELLO, &hello, sizeof(hello), fds,
				 fds[3] < 0 ? SV_HELLO_FDS - 1 : SV_HELLO_FDS);
	close_all(&fds[3], 1);
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

/* Only the nonce in the right place proves that the number names the same process here as there. */
static bool pvm_works(const struct hello *hello, pid_t pid)
{
	uint64_t seen[2] = { 0 };
	struct iovec local = { seen, sizeof(seen) };
	struct iovec remote = { (void *)(uintptr_t)hello->canary, sizeof(seen) };

	/* 0: a process of another pid name space */
	return pid > 0 && process_vm_readv(pid, &local, 1, &remote, 1, 0) == sizeof(seen) &&
	       !memcmp(seen, hello->nonce, sizeof(seen));
}

static bool memory_works(const struct hello *hello, int memory)
{
	uint64_t seen[2] = { 0 };

	return pread(memory, seen, sizeof(seen), (off_t)hello->canary) == sizeof(seen) &&
	       !memcmp(seen, hello->nonce, sizeof(seen));
}

static int copy_choose(const struct hello *hello, pid_t pid, int memory, enum sv_copy *copy)
{
	uint32_t ways = modes[sv_setting(SV_SET_COPY)].goes & hello->modes;

	if (ways & MODE(SV_COPY_PVM) && pvm_works(hello, pid))
		*copy = SV_COPY_PVM;
	else if (ways & MODE(SV_COPY_MEMFD) && memory_works(hello, memory))
		*copy = SV_COPY_MEMFD;
	else if (ways & MODE(SV_COPY_BOUNCE))
		*copy = SV_COPY_BOUNCE;
	else
		return EACCES;
	return 0;
}

/* Ringing must neither block nor hit a file of another kind. */
static bool is_doorbell(int fd)
{
	static const char kind[] = "anon_inode:[eventfd]";
	char path[32], target[sizeof(kind)];
	int flags = fcntl(fd, F_GETFL);
	ssize_t length;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	if (flags < 0 || !(flags & O_NONBLOCK))
		return false;
	length = readlink(path, target, sizeof(target));
	if (length < 0)
		return errno == ENOENT; /* no /proc here */
	return length == sizeof(kind) - 1 && !memcmp(target, kind, sizeof(kind) - 1);
}

static int peer_fill(struct sv_peer *peer, const struct hello *hello, const struct ucred *cred,
		     const int *fds)
{
	int error;

	peer->slot = (uint16_t)hello->slot;
	peer->pid = cred->pid;
	memcpy(peer->nonce, hello->nonce, sizeof(peer->nonce));
	atomic_init(&peer->refs, 1);
	if (!is_doorbell(fds[2]))
		return EPROTO;
	error = copy_choose(hello, cred->pid, fds[3], &peer->copy);
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
		log_at(LOG_ERROR, "softverbs: hello of slot %u, process %d: %s", hello->slot,
		       (int)cred->pid, strerror(error));
		close_all(fds, fd_count);
		free(peer);
		errno = error;
		return NULL;
	}
	close_all(fds, 2); /* the mappings keep the areas */
	peer->doorbell = fds[2];
	peer->memory = -1;
	if (peer->copy == SV_COPY_MEMFD)
		peer->memory = fds[3];
	else
		close_all(&fds[3], 1);
	return peer;
}
