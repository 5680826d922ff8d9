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
#include "util/log.h"

#define HELLO_MAGIC 0x73766831u

#define MODE_PVM    (1u << SV_COPY_PVM)
#define MODE_BOUNCE (1u << SV_COPY_BOUNCE)

static bool ptracer_set;		/* links lock */

/* SOFTVERBS_COPY: the ways this process uses, and the ways it offers. */
static uint32_t copy_modes(void)
{
	const char *wish = secure_getenv("SOFTVERBS_COPY");

	if (!wish || !strcmp(wish, "auto"))
		return MODE_PVM | MODE_BOUNCE;
	if (!strcmp(wish, "pvm"))
		return MODE_PVM;
	if (!strcmp(wish, "bounce"))
		return MODE_BOUNCE;
	log_at(LOG_WARN, "softverbs: SOFTVERBS_COPY=%s: not one of auto, pvm, bounce; auto is used",
	       wish);
	return MODE_PVM | MODE_BOUNCE;
}

/* Yama's mode 1 lets only ancestors reach a process, unless the process itself says otherwise. */
static void ptracer_allow(void)
{
	int fd = open("/proc/sys/kernel/yama/ptrace_scope", O_RDONLY | O_CLOEXEC);
	char scope = '0';

	if (fd < 0)
		return;			/* a kernel without Yama */
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
	int fds[SV_HELLO_FDS] = { [2] = self->doorbell };
	struct hello hello = {
		.magic = HELLO_MAGIC,
		.layout = SV_LAYOUT,
		.nonce = { self->nonce[0], self->nonce[1] },
		.canary = (uintptr_t)self->nonce,
		.modes = copy_modes(),
		.slot = self->slot,
	};

	if (hello.modes & MODE_PVM && !ptracer_set)
		ptracer_allow();
	area_offer(&hello.offer, fds);
	return link_send_locked(link, SV_MSG_HELLO, &hello, sizeof(hello), fds, SV_HELLO_FDS);
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

	return process_vm_readv(pid, &local, 1, &remote, 1, 0) == sizeof(seen) &&
	       !memcmp(seen, hello->nonce, sizeof(seen));
}

static int copy_choose(const struct hello *hello, pid_t pid, enum sv_copy *copy)
{
	uint32_t modes = copy_modes() & hello->modes;

	if (modes & MODE_PVM && pvm_works(hello, pid))
		*copy = SV_COPY_PVM;
	else if (modes & MODE_BOUNCE)
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
		return errno == ENOENT;		/* no /proc here */
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
	error = copy_choose(hello, cred->pid, &peer->copy);
	return error ? error : area_map(peer, &hello->offer, fds);
}

struct sv_peer *hello_peer(const struct hello *hello, const struct ucred *cred, int *fds,
			   unsigned fd_count)
{
	struct sv_peer *peer = NULL;
	int error = EPROTO;

	if (fd_count == SV_HELLO_FDS) {
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
	close_all(fds, SV_HELLO_FDS - 1);	/* the mappings keep the areas */
	peer->doorbell = fds[2];
	return peer;
}
