/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/*
 * A FUSE file system whose server replies up to the opening of its only file and to nothing after
 * that: a process that reads, closes or stats the file blocks.
 */
#ifndef SILENT_FS_H
#define SILENT_FS_H

#include <fcntl.h>
#include <linux/fuse.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>
#include "test/unit/unit.h"

#define SILENT_NODE 2 /* node id of the file; the root has 1 */

static pid_t silent_server;

static inline struct fuse_attr silent_attr(uint64_t node)
{
	return (struct fuse_attr){
		.ino = node,
		.mode = node == SILENT_NODE ? S_IFREG | 0600 : S_IFDIR | 0700,
		.nlink = 1,
		.blksize = 1024, /* as files of /proc have it */
	};
}

static inline void silent_reply(int dev, uint64_t unique, const void *body, size_t size)
{
	struct fuse_out_header head = { .len = (uint32_t)(sizeof(head) + size), .unique = unique };
	struct iovec parts[2] = { { &head, sizeof(head) }, { (void *)(uintptr_t)body, size } };

	if (writev(dev, parts, 2) < 0)
		_exit(1);
}

static inline void silent_answer(int dev, const struct fuse_in_header *in)
{
	struct fuse_init_out init = { .major = FUSE_KERNEL_VERSION,
				      .minor = FUSE_KERNEL_MINOR_VERSION,
				      .max_write = 4096 };
	struct fuse_attr_out attr = { .attr = silent_attr(in->nodeid), .attr_valid = 0 };
	struct fuse_entry_out entry = { .nodeid = SILENT_NODE,
					.entry_valid = 60,
					.attr = silent_attr(SILENT_NODE) };
	struct fuse_open_out opened = { .fh = 1, .open_flags = FOPEN_DIRECT_IO };
	static bool open;

	switch (in->opcode) {
	case FUSE_INIT: silent_reply(dev, in->unique, &init, sizeof(init)); break;
	case FUSE_LOOKUP: silent_reply(dev, in->unique, &entry, sizeof(entry)); break;
	case FUSE_GETATTR:
		if (!open)
			silent_reply(dev, in->unique, &attr, sizeof(attr));
		break;
	case FUSE_OPEN:
		open = true;
		silent_reply(dev, in->unique, &opened, sizeof(opened));
		break;
	default: break;
	}
}

static inline void silent_serve(int dev)
{
	_Alignas(8) char request[FUSE_MIN_READ_BUFFER + 4096];

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	while (read(dev, request, sizeof(request)) > 0)
		silent_answer(dev, (const struct fuse_in_header *)(const void *)request);
	_exit(0);
}

/*
 * Returns the open file, or -1 if the process may not mount. Moves the process to a mount namespace
 * of its own.
 */
static inline int silent_file(void)
{
	char dir[128], path[160], options[96];
	static bool own_namespace;
	int dev = open("/dev/fuse", O_RDWR | O_CLOEXEC), fd;

	if (dev < 0)
		return -1;
	snprintf(dir, sizeof(dir), "%s/silent", unit_tmpdir());
	snprintf(path, sizeof(path), "%s/mem", dir);
	snprintf(options, sizeof(options), "fd=%d,rootmode=40000,user_id=%u,group_id=%u", dev,
		 geteuid(), getegid());
	if (!own_namespace) /* the namespace's end unmounts */
		own_namespace =
			!unshare(CLONE_NEWNS) && !mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL);
	mkdir(dir, 0700);
	if (!own_namespace || mount("silent", dir, "fuse", MS_NOSUID | MS_NODEV, options)) {
		close(dev);
		return -1;
	}
	silent_server = fork();
	if (!silent_server)
		silent_serve(dev);
	close(dev);
	fd = open(path, O_RDWR | O_CLOEXEC);
	umount2(dir, MNT_DETACH);
	return fd;
}

/* Kills the server: calls that block on the file return an error. */
static inline void silent_end(void)
{
	if (silent_server <= 0)
		return;
	kill(silent_server, SIGKILL);
	waitpid(silent_server, NULL, 0);
	silent_server = 0;
}

#endif
