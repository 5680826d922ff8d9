/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* Claims, connects to and lists the names of this user, in the abstract socket namespace or in a folder. */
#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/un.h>
#include <unistd.h>
#include "softverbs/base/identity.h"
#include "softverbs/base/log_from.h"
#include "softverbs/link/name.h"
#include "softverbs/link/name_folder.h"
#include "softverbs/link/name_holder.h"
#include "softverbs/link/peer.h"
#include "softverbs/base/settings.h"
#include "util/log.h"

int sv_name_open(void)
{
	const char *path = sv_setting_text(SV_SET_DIR);

	return path ? sv_folder_open(path) : 0;
}

void sv_name_close(void)
{
	sv_folder_close();
}

void sv_name_fork_child(void)
{
	sv_folder_fork_child();
}

bool sv_name_is_in_folder(void)
{
	return sv_folder_is_open();
}

/* An abstract address begins with a zero byte and ends by its length, without a final zero. */
static socklen_t name_address(struct sockaddr_un *address, const char *name)
{
	int length;

	if (sv_folder_is_open())
		return sv_folder_address(address, name);
	memset(address, 0, sizeof(*address));
	address->sun_family = AF_UNIX;
	length = snprintf(address->sun_path + 1, sizeof(address->sun_path) - 1,
			  "softverbs/%d/%u/%s", SV_LAYOUT, (unsigned)geteuid(), name);
	return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)length);
}

static int close_with(int fd, int error)
{
	close(fd);
	errno = error;
	return -1;
}

int sv_name_claim(const char *name)
{
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	struct sockaddr_un address;

	if (fd < 0)
		return -1;
	if (sv_folder_is_open()
		    ? sv_folder_bind(fd, name)
		    : bind(fd, (struct sockaddr *)&address, name_address(&address, name)))
		return close_with(fd, errno);
	return fd;
}

void sv_name_log_holder(const char *name)
{
	struct sockaddr_un address;
	socklen_t size;
	uid_t uid;

	if (sv_folder_is_open())
		return; /* only this user can make names there */
	size = name_address(&address, name);
	if (sv_name_holder(&address, size - offsetof(struct sockaddr_un, sun_path), &uid) &&
	    uid != geteuid())
		sv_log_from(sv_source_user(uid), LOG_ERROR,
			    "softverbs: the name %s is held by user %u", name, (unsigned)uid);
}

void sv_name_release(int fd)
{
	if (sv_folder_is_open())
		sv_folder_release(fd);
}

int sv_name_connect(const char *name, struct ucred *peer)
{
	struct sockaddr_un address;
	socklen_t size = name_address(&address, name);
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), error;

	if (fd < 0)
		return -1;
	if (!size)
		return close_with(fd, ENAMETOOLONG);
	if (connect(fd, (struct sockaddr *)&address, size)) {
		error = errno;
		if (sv_folder_is_open() && error == ECONNREFUSED)
			sv_folder_refused(name);
		return close_with(fd, error == ENOENT ? ECONNREFUSED : error);
	}
	error = sv_identity_of_peer(fd, peer);
	if (error == EACCES) {
		sv_log_from(sv_source_user(peer->uid), LOG_ERROR,
			    "softverbs: the name %s is held by user %u", name, (unsigned)peer->uid);
		return close_with(fd, ECONNREFUSED);
	}
	return error ? close_with(fd, error) : fd;
}

static void abstract_scan(const char *prefix, void (*visit)(void *arg, const char *rest), void *arg)
{
	FILE *file = fopen("/proc/net/unix", "re");
	struct sockaddr_un whole;
	size_t room = 0, length;
	char *line = NULL, *path;
	unsigned state;

	if (!file) {
		log_at(LOG_NOTE,
		       "softverbs: /proc/net/unix: %s; ports of other processes are not seen",
		       strerror(errno));
		return;
	}
	name_address(&whole, prefix);
	whole.sun_path[0] = '@'; /* as the kernel prints the zero byte */
	length = strlen(whole.sun_path);
	while (getline(&line, &room, file) > 0) {
		path = strchr(line, '@');
		if (!path || strncmp(path, whole.sun_path, length))
			continue;
		/* Sockets accepted by a listener have its name, too; their state is SS_CONNECTED, 3. */
		if (sscanf(line, "%*s %*s %*s %*s %*s %x", &state) != 1 || state == 3)
			continue;
		path[strcspn(path, "\n")] = '\0';
		visit(arg, path + length);
	}
	free(line);
	fclose(file);
}

void sv_name_scan(const char *prefix, void (*visit)(void *arg, const char *rest), void *arg)
{
	if (sv_folder_is_open())
		sv_folder_scan(prefix, visit, arg);
	else
		abstract_scan(prefix, visit, arg);
}
