/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* A descriptor of a peer's memory. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "softverbs/base/os.h"
#include "softverbs/rc/copy.h"

#define NONE (-2) /* the kernel did not allow it, or the process had no descriptor left */

/*
 * Whether the peer's end of the link is open. The sockets of a process close before its number is given to another one: so
 * what was opened before by that number is the peer's.
 */
static bool is_there(const struct sv_peer *peer)
{
	char byte;
	long size = syscall(SYS_recvfrom, peer->doorbell, &byte, sizeof(byte),
			    MSG_PEEK | MSG_DONTWAIT, NULL, NULL);

	return size > 0 || (size < 0 && errno == EAGAIN);
}

static int memory_open(const struct sv_peer *peer)
{
	char path[32];
	int file;

	snprintf(path, sizeof(path), "/proc/%d/mem", (int)peer->pid);
	file = sv_os_open(path, O_RDWR);
	if (file < 0 || is_there(peer))
		return file < 0 ? NONE : file;
	sv_os_close(file);
	return NONE;
}

int sv_peer_memory(struct sv_peer *peer)
{
	int file = atomic_load_explicit(&peer->memory, memory_order_relaxed), none = -1;

	if (file != none)
		return file;
	file = memory_open(peer);
	if (atomic_compare_exchange_strong(&peer->memory, &none, file))
		return file;
	if (file >= 0) /* another thread was first */
		sv_os_close(file);
	return none;
}
