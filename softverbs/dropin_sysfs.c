/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* Calls about what the kernel would know of a device; this one has no entry in sysfs. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <stdio.h>
#include <sys/auxv.h>
#include <unistd.h>
#include "softverbs/dropin.h"

const char *ibv_get_sysfs_path(void)
{
	const char *path = getauxval(AT_SECURE) ? NULL : getenv("SYSFS_PATH");

	return path && *path ? path : "/sys";
}

/* The length of its text without the last newline; -1 and errno. */
int ibv_read_sysfs_file(const char *dir, const char *file, char *buf, size_t size)
{
	ssize_t length;
	char *path;
	int fd;

	if (!size) {
		errno = EINVAL;
		return -1;
	}
	if (asprintf(&path, "%s/%s", dir, file) < 0)
		return -1;
	fd = open(path, O_RDONLY | O_CLOEXEC);
	free(path);
	if (fd < 0)
		return -1;
	length = read(fd, buf, size);
	close(fd);
	if (length > 0 && (buf[length - 1] == '\n' || (size_t)length == size))
		length--;
	if (length >= 0)
		buf[length] = '\0';
	return (int)length;
}

int ibv_read_ibdev_sysfs_file(char *buf, size_t size, void *dev, const char *format, ...)
{
	(void)buf;
	(void)size;
	(void)dev;
	(void)format;
	errno = ENOENT;
	return -1;
}

/* An empty entry of the table has a type too: the first. */
int ibv_query_gid_type(struct ibv_context *context, uint8_t port, unsigned int index,
		       enum sysfs_gid_type *type)
{
	struct ibv_gid_entry entry = { 0 };
	int error = _ibv_query_gid_ex(context, port, index, &entry, 0, sizeof(entry));

	if (error && error != ENODATA) {
		errno = error;
		return -1;
	}
	*type = !error && entry.gid_type == IBV_GID_TYPE_ROCE_V2 ? SYSFS_GID_ROCE_V2
								 : SYSFS_GID_IB_ROCE_V1;
	return 0;
}

/* Nothing is pinned: a forked child may have its copy of any page. */
int ibv_dontfork_range(void *base, size_t size)
{
	(void)base;
	(void)size;
	return 0;
}

int ibv_dofork_range(void *base, size_t size)
{
	(void)base;
	(void)size;
	return 0;
}
