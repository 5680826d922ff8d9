/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* Calls that read device attributes from sysfs. This device has no files there: what is asked of its folder is
 * answered here. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <stdio.h>
#include <sys/auxv.h>
#include <unistd.h>
#include "softverbs/dropin/dropin.h"
#include "softverbs/object/device.h"

static char sysfs_path[256];

static void sysfs_path_find(void)
{
	const char *wish = getauxval(AT_SECURE) ? NULL : getenv("SYSFS_PATH");
	size_t length;

	snprintf(sysfs_path, sizeof(sysfs_path), "%s", wish ? wish : "/sys");
	for (length = strlen(sysfs_path); length && sysfs_path[length - 1] == '/'; length--)
		sysfs_path[length - 1] = '\0';
}

const char *ibv_get_sysfs_path(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, sysfs_path_find);
	return sysfs_path;
}

/* Removes each slash that follows another one. */
static void slashes_join(char *path)
{
	char *to = path;

	for (; *path; path++)
		if (*path != '/' || path[1] != '/')
			*to++ = *path;
	*to = '\0';
}

/* The rest of a path that is in the folder of the device; NULL if it is not. */
static const char *attribute_of(const char *path)
{
	const char *folder = sv_device_soft()->ibdev_path;
	size_t length = strlen(folder);

	return !strncmp(path, folder, length) && path[length] == '/' ? path + length + 1 : NULL;
}

static ssize_t attribute_read(const char *name, char *buf, size_t size)
{
	char text[SV_ATTRIBUTE_SIZE];
	size_t length;

	if (!sv_attribute_text(name, text))
		return -1;
	length = strlen(text);
	text[length++] = '\n';
	length = length < size ? length : size;
	memcpy(buf, text, length);
	return (ssize_t)length;
}

static ssize_t file_read(const char *path, char *buf, size_t size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t length;

	if (fd < 0)
		return -1;
	length = read(fd, buf, size);
	close(fd);
	return length;
}

/* As rdma-core has it: returns the length of the text without its last newline, -1 with errno, or -1 without if
 * the buffer has no room for the null byte at its end. An empty text gets none. */
int ibv_read_sysfs_file(const char *dir, const char *file, char *buf, size_t size)
{
	const char *attribute;
	ssize_t length;
	char *path;

	if (asprintf(&path, "%s/%s", dir, file) < 0)
		return -1;
	slashes_join(path);
	attribute = attribute_of(path);
	length = attribute ? attribute_read(attribute, buf, size) : file_read(path, buf, size);
	free(path);
	if (length <= 0)
		return (int)length;
	if (buf[length - 1] == '\n')
		length--;
	else if ((size_t)length == size)
		return -1;
	buf[length] = '\0';
	return (int)length;
}

/* The description of a device that it wants is the provider libraries' own; none gets one here. */
int ibv_read_ibdev_sysfs_file(char *buf, size_t size, void *dev, const char *format, ...)
{
	(void)buf;
	(void)size;
	(void)format;
	errno = dev ? ENOENT : EINVAL;
	return -1;
}

/* An empty entry of the table has the first type. */
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

/* No-op: no page is pinned, so a forked child may have a copy of any page. */
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
