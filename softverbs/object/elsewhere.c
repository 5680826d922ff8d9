/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* Warns a program that uses an address of another network namespace. */
#include <arpa/inet.h>
#include <errno.h>
#include <string.h>
#include "softverbs/link/transport.h"
#include "softverbs/link/ip.h"
#include "softverbs/object/device.h"
#include "softverbs/object/elsewhere.h"
#include "softverbs/link/name.h"
#include "util/log.h"

/* The GID table may be too small for all local addresses, so the kernel is asked too. */
static bool is_local(const union ibv_gid *gid)
{
	struct sockaddr_in6 six = { .sin6_family = AF_INET6 };
	struct sockaddr_in four = { .sin_family = AF_INET };

	if (sv_gid_index(gid) >= 0)
		return true;
	memcpy(&six.sin6_addr, gid, sizeof(six.sin6_addr));
	if (!IN6_IS_ADDR_V4MAPPED(&six.sin6_addr))
		return sv_ip_is_local((struct sockaddr *)&six) != EADDRNOTAVAIL;
	memcpy(&four.sin_addr, gid->raw + 12, sizeof(four.sin_addr));
	return sv_ip_is_local((struct sockaddr *)&four) != EADDRNOTAVAIL;
}

void sv_elsewhere_note(const union ibv_gid *gid)
{
	static const union ibv_gid none;
	static atomic_bool noted;
	char text[INET6_ADDRSTRLEN];
	int saved = errno;

	if (atomic_load_explicit(&noted, memory_order_relaxed) || sv_name_is_in_folder() ||
	    sv_transport()->is_on() || !memcmp(gid, &none, sizeof(none)) || is_local(gid) ||
	    atomic_exchange(&noted, true)) {
		errno = saved;
		return;
	}
	inet_ntop(AF_INET6, gid, text, sizeof(text));
	log_at(LOG_ERROR,
	       "soft0: %s is no address of this network namespace; processes of this host in "
	       "another"
	       " one are reached by SOFTVERBS_DIR, see softverbs(7)",
	       strncmp(text, "::ffff:", 7) ? text : text + 7);
	errno = saved;
}
