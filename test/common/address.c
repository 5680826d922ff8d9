/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* Socket addresses: as text, and from a host name. */

#include <arpa/inet.h>
#include <netdb.h>
#include <stdio.h>
#include <string.h>

#include "common.h"

const char *address_text(const struct sockaddr *sa, char text[ADDRESS_TEXT])
{
	const void *bytes = NULL;

	if (sa && sa->sa_family == AF_INET)
		bytes = &((const struct sockaddr_in *)sa)->sin_addr;
	else if (sa && sa->sa_family == AF_INET6)
		bytes = &((const struct sockaddr_in6 *)sa)->sin6_addr;
	if (!bytes || !inet_ntop(sa->sa_family, bytes, text, ADDRESS_TEXT))
		snprintf(text, ADDRESS_TEXT, "unknown");
	return text;
}

bool address_resolve(const char *host, int family, struct sockaddr_storage *found)
{
	struct addrinfo hints = { .ai_family = family, .ai_socktype = SOCK_STREAM };
	struct addrinfo *list;
	int err = getaddrinfo(host, NULL, &hints, &list);

	if (err) {
		complain("Could not resolve %s: %s", host, gai_strerror(err));
		return false;
	}
	memset(found, 0, sizeof(*found));
	memcpy(found, list->ai_addr, list->ai_addrlen);
	freeaddrinfo(list);
	return true;
}
