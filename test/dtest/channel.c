/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* The side channel: one TCP message of 128 bytes names the server's address and provider. */

#include <errno.h>
#include <netdb.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "tool.h"

enum { MESSAGE_SIZE = 128 };

static struct addrinfo *channel_lookup(const char *host, uint16_t port, int flags)
{
	struct addrinfo hints = { .ai_socktype = SOCK_STREAM, .ai_flags = flags };
	struct addrinfo *list;
	char service[8];
	int err;

	snprintf(service, sizeof(service), "%u", port);
	err = getaddrinfo(host, service, &hints, &list);
	if (!err)
		return list;
	complain("%s for %s port %u", gai_strerror(err), host ? host : "listening", port);
	return NULL;
}

int channel_listen(uint16_t port)
{
	struct addrinfo *list = channel_lookup(NULL, port, AI_PASSIVE), *ai;
	const int on = 1;
	int fd = -1, err = 0;

	if (!list)
		return -1;
	for (ai = list; ai; ai = ai->ai_next) {
		fd = socket(ai->ai_family, ai->ai_socktype | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
		if (fd >= 0 && !setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) &&
		    !bind(fd, ai->ai_addr, ai->ai_addrlen) && !listen(fd, 1))
			break;
		err = errno;
		if (fd >= 0)
			close(fd);
		fd = -1;
	}
	freeaddrinfo(list);
	if (fd < 0)
		complain("Couldn't listen to port %u: %s", port, strerror(err));
	return fd;
}

/* The fields are lid, qpn, scope and IPv4 address, in the byte order of the sockaddr. */
static void channel_format(char *message, const struct sockaddr *ia, const char *provider)
{
	unsigned int lid = 0, qpn = 0, scope = 0, ipv4 = 0;

	if (ia->sa_family == AF_INET) {
		ipv4 = ((const struct sockaddr_in *)ia)->sin_addr.s_addr;
	} else if (ia->sa_family == AF_INET6) {
		const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)ia;

		lid = in6->sin6_port;
		qpn = in6->sin6_flowinfo;
		scope = htonl(in6->sin6_scope_id);
	}
	snprintf(message, MESSAGE_SIZE, "%04x:%08x:%08x:%08x:%.*s", lid, qpn, scope, ipv4,
		 PROVIDER_SIZE - 1, provider);
}

bool channel_parse(const char *line, struct channel_news *news)
{
	unsigned int lid, qpn, scope, ipv4;

	memset(news, 0, sizeof(*news));
	if (sscanf(line, "%4x:%8x:%8x:%8x:%63[!-~]", &lid, &qpn, &scope, &ipv4, news->provider) !=
	    5)
		return false;
	if (ipv4) {
		struct sockaddr_in *in = (struct sockaddr_in *)&news->addr;

		in->sin_family = AF_INET;
		in->sin_addr.s_addr = ipv4;
	} else if (lid && qpn) {
		struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)&news->addr;

		in6->sin6_family = AF_INET6;
		in6->sin6_port = (in_port_t)lid;
		in6->sin6_flowinfo = qpn;
		in6->sin6_scope_id = ntohl(scope);
	}
	return true;
}

/* Moves all 128 bytes in either direction, or fails at the deadline. */
static bool message_move(int fd, char *message, short direction, uint64_t deadline)
{
	size_t done = 0;

	while (done < MESSAGE_SIZE) {
		struct pollfd pfd = { .fd = fd, .events = direction };
		ssize_t n;

		if (poll(&pfd, 1, clock_left_ms(deadline)) < 0 && errno != EINTR)
			return false;
		if (direction == POLLIN)
			n = recv(fd, message + done, MESSAGE_SIZE - done, MSG_DONTWAIT);
		else
			n = send(fd, message + done, MESSAGE_SIZE - done,
				 MSG_DONTWAIT | MSG_NOSIGNAL);
		if (n > 0)
			done += (size_t)n;
		else if (n == 0 || (errno != EAGAIN && errno != EINTR) || clock_passed(deadline))
			return false;
	}
	return true;
}

static bool news_send(int fd, const struct sockaddr *ia, const char *provider, uint64_t deadline)
{
	char message[MESSAGE_SIZE];

	memset(message, 0, sizeof(message));
	channel_format(message, ia, provider);
	return message_move(fd, message, POLLOUT, deadline);
}

/* Returns false if no client was served; the caller continues to listen. */
bool channel_answer(int listener, const struct sockaddr *ia, const char *provider, double seconds)
{
	return channel_exchange(listener, ia, provider, seconds, NULL);
}

bool channel_exchange(int listener, const struct sockaddr *ia, const char *provider, double seconds,
		      struct channel_news *client)
{
	uint64_t deadline = clock_after(seconds);
	int fd = accept(listener, NULL, NULL);
	char message[MESSAGE_SIZE + 1];
	bool done;

	if (fd < 0)
		return false;
	done = news_send(fd, ia, provider, deadline);
	if (!done)
		complain("Couldn't send data over the side channel");
	if (done && client) {
		memset(message, 0, sizeof(message));
		done = message_move(fd, message, POLLIN, deadline) &&
		       channel_parse(message, client);
		if (!done)
			complain("No valid data was received from the client");
	}
	close(fd);
	return done;
}

static int channel_connect(const struct addrinfo *ai, int limit_ms)
{
	int fd = socket(ai->ai_family, ai->ai_socktype | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	struct pollfd pfd = { .fd = fd, .events = POLLOUT };
	socklen_t size = sizeof(int);
	int err = 0;

	if (fd < 0)
		return -1;
	if (!connect(fd, ai->ai_addr, ai->ai_addrlen))
		return fd;
	if (errno == EINPROGRESS && poll(&pfd, 1, limit_ms) == 1 &&
	    !getsockopt(fd, SOL_SOCKET, SO_ERROR, &err, &size) && !err)
		return fd;
	close(fd);
	return -1;
}

/* After the first try: the user learns at once that there will be others, and how long. */
static void tries_tell(const char *host, uint16_t port, uint64_t deadline)
{
	int left = clock_left_ms(deadline) / 1000;
	time_t until = time(NULL) + (left < CHANNEL_TRIES ? left : CHANNEL_TRIES);
	struct tm clock;
	char text[16];

	strftime(text, sizeof(text), "%H:%M:%S", localtime_r(&until, &clock));
	say("No server answers at %s port %u yet: trying until %s", host, port, text);
}

static int channel_dial(const char *host, uint16_t port, uint64_t deadline,
			enum channel_result *result)
{
	struct addrinfo *list = channel_lookup(host, port, 0);
	int fd = -1;

	*result = list ? CHANNEL_NO_PEER : CHANNEL_FAILED;
	if (!list)
		return -1;
	for (int tries = 0; fd < 0 && tries < CHANNEL_TRIES && !clock_passed(deadline); tries++) {
		if (tries == 1)
			tries_tell(host, port, deadline);
		if (tries)
			clock_pause_ms(1000);
		for (struct addrinfo *ai = list; fd < 0 && ai; ai = ai->ai_next)
			fd = channel_connect(ai, 2000);
	}
	freeaddrinfo(list);
	return fd;
}

enum channel_result channel_ask(const char *host, uint16_t port, double seconds,
				struct channel_news *news)
{
	return channel_ask_and_tell(host, port, seconds, NULL, news);
}

enum channel_result channel_ask_and_tell(const char *host, uint16_t port, double seconds,
					 const struct sockaddr *ia, struct channel_news *news)
{
	uint64_t deadline = clock_after(seconds);
	enum channel_result result;
	char message[MESSAGE_SIZE + 1];
	int fd = channel_dial(host, port, deadline, &result);

	if (fd < 0)
		return result;
	result = CHANNEL_FAILED;
	memset(message, 0, sizeof(message));
	if (!message_move(fd, message, POLLIN, deadline))
		complain("Couldn't read remote address");
	else if (!channel_parse(message, news))
		complain("No valid data was received from the server");
	else if (ia && !news_send(fd, ia, news->provider, deadline))
		complain("Couldn't send data over the side channel");
	else
		result = CHANNEL_OK;
	close(fd);
	return result;
}
