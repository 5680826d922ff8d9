/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* Sockets over RDMA, which this device does not offer: rsocket() fails, and so no valid descriptor exists for
 * the other calls. rpoll, rselect and repoll call the system's functions, since all descriptors are ordinary ones. */
#include <errno.h>
#include "softverbs/base/api.h"
#pragma GCC visibility push(default)
#include <rdma/rsocket.h>
/* Declarations that the headers of an older rdma-core lack. */
#include <sys/epoll.h>
int repoll_create(int flags);
int repoll_ctl(int epfd, int op, int fd, struct epoll_event *event);
int repoll_wait(int epfd, struct epoll_event *events, int count, int timeout);
#pragma GCC visibility pop

/* Only rsocket() can be called with valid arguments. */
#pragma GCC diagnostic ignored "-Wunused-parameter"

static int no_rsockets(void)
{
	errno = ENOSYS;
	return -1;
}

int rsocket(int domain, int type, int protocol)
{
	return no_rsockets();
}

int rbind(int socket, const struct sockaddr *addr, socklen_t addrlen)
{
	return no_rsockets();
}

int rlisten(int socket, int backlog)
{
	return no_rsockets();
}

int raccept(int socket, struct sockaddr *addr, socklen_t *addrlen)
{
	return no_rsockets();
}

int rconnect(int socket, const struct sockaddr *addr, socklen_t addrlen)
{
	return no_rsockets();
}

int rshutdown(int socket, int how)
{
	return no_rsockets();
}

int rclose(int socket)
{
	return no_rsockets();
}

ssize_t rrecv(int socket, void *buf, size_t len, int flags)
{
	return no_rsockets();
}

ssize_t rrecvfrom(int socket, void *buf, size_t len, int flags, struct sockaddr *src_addr,
		  socklen_t *addrlen)
{
	return no_rsockets();
}

ssize_t rrecvmsg(int socket, struct msghdr *msg, int flags)
{
	return no_rsockets();
}

ssize_t rsend(int socket, const void *buf, size_t len, int flags)
{
	return no_rsockets();
}

ssize_t rsendto(int socket, const void *buf, size_t len, int flags,
		const struct sockaddr *dest_addr, socklen_t addrlen)
{
	return no_rsockets();
}

ssize_t rsendmsg(int socket, const struct msghdr *msg, int flags)
{
	return no_rsockets();
}

ssize_t rread(int socket, void *buf, size_t count)
{
	return no_rsockets();
}

ssize_t rreadv(int socket, const struct iovec *iov, int iovcnt)
{
	return no_rsockets();
}

ssize_t rwrite(int socket, const void *buf, size_t count)
{
	return no_rsockets();
}

ssize_t rwritev(int socket, const struct iovec *iov, int iovcnt)
{
	return no_rsockets();
}

int rpoll(struct pollfd *fds, nfds_t nfds, int timeout)
{
	return poll(fds, nfds, timeout);
}

int rselect(int nfds, fd_set *readfds, fd_set *writefds, fd_set *exceptfds, struct timeval *timeout)
{
	return select(nfds, readfds, writefds, exceptfds, timeout);
}

int rgetpeername(int socket, struct sockaddr *addr, socklen_t *addrlen)
{
	return no_rsockets();
}

int rgetsockname(int socket, struct sockaddr *addr, socklen_t *addrlen)
{
	return no_rsockets();
}

int rsetsockopt(int socket, int level, int optname, const void *optval, socklen_t optlen)
{
	return no_rsockets();
}

int rgetsockopt(int socket, int level, int optname, void *optval, socklen_t *optlen)
{
	return no_rsockets();
}

int rfcntl(int socket, int cmd, ...)
{
	return no_rsockets();
}

off_t riomap(int socket, void *buf, size_t len, int prot, int flags, off_t offset)
{
	return no_rsockets();
}

int riounmap(int socket, void *buf, size_t len)
{
	return no_rsockets();
}

size_t riowrite(int socket, const void *buf, size_t count, off_t offset, int flags)
{
	return (size_t)no_rsockets();
}

int repoll_create(int flags)
{
	return epoll_create1(flags);
}

int repoll_ctl(int epfd, int op, int fd, struct epoll_event *event)
{
	return epoll_ctl(epfd, op, fd, event);
}

int repoll_wait(int epfd, struct epoll_event *events, int count, int timeout)
{
	return epoll_wait(epfd, events, count, timeout);
}
