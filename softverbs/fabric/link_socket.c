/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* The TCP socket of a link. */
#include <errno.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>
#include "softverbs/base/settings.h"
#include "softverbs/fabric/link.h"

void sv_fabric_socket_set(int fd)
{
	int on = 1, least, time = (int)sv_setting(SV_SET_FABRIC_TIMEOUT), count = 3;
	unsigned limit = (unsigned)time * 1000;

	least = time < 4 ? 1 : time / 4;
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on));
	setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &least, sizeof(least));
	setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &least, sizeof(least));
	setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &count, sizeof(count));
	setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &limit, sizeof(limit));
}

int sv_fabric_socket_connect(const struct sv_ip *host, int *socket_fd)
{
	struct sockaddr_storage address;
	int fd, error = 0;

	sv_ip_sockaddr(host, (uint16_t)sv_setting(SV_SET_FABRIC_PORT), &address);
	fd = socket(address.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return errno;
	if (connect(fd, (struct sockaddr *)&address,
		    sv_ip_sockaddr_size((struct sockaddr *)&address)) &&
	    errno != EINPROGRESS)
		error = errno;
	if (error)
		close(fd);
	*socket_fd = fd;
	return error;
}

int sv_fabric_socket_error(int fd)
{
	socklen_t size = sizeof(int);
	int error = 0;

	return getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size) ? errno : error;
}

bool sv_fabric_socket_is_unread(int fd)
{
	char byte;

	return recv(fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) == 1;
}
