/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* The GID table: 127.0.0.1 first, then the host's IPv4 addresses, then its IPv6 addresses. */
#include <errno.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <pthread.h>
#include <string.h>
#include <sys/socket.h>
#include "softverbs/object/device.h"
#include "util/cancel.h"
#include "util/clock.h"
#include "util/log.h"

#define SNAPSHOT_AGE NSEC_PER_SEC /* perftest queries about fifty times in a row */

struct entry {
	union ibv_gid gid;
	uint32_t interface;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* guards all below */
static struct entry table[SV_GID_TABLE];
static unsigned filled;
static uint64_t expires;

static union ibv_gid gid_from_ipv4(struct in_addr addr)
{
	union ibv_gid gid = { .raw = { [10] = 0xff, [11] = 0xff } };

	memcpy(gid.raw + 12, &addr, sizeof(addr));
	return gid;
}

static union ibv_gid gid_from(const struct sockaddr *addr)
{
	union ibv_gid gid;

	if (addr->sa_family == AF_INET)
		return gid_from_ipv4(((const struct sockaddr_in *)(const void *)addr)->sin_addr);
	memcpy(&gid, &((const struct sockaddr_in6 *)(const void *)addr)->sin6_addr, sizeof(gid));
	return gid;
}

static int gid_find_locked(const union ibv_gid *gid)
{
	unsigned i;

	for (i = 0; i < filled; i++)
		if (!memcmp(&table[i].gid, gid, sizeof(*gid)))
			return (int)i;
	return -1;
}

static void gid_add_locked(union ibv_gid gid, uint32_t interface)
{
	if (filled < SV_GID_TABLE && gid_find_locked(&gid) < 0)
		table[filled++] = (struct entry){ .gid = gid, .interface = interface };
}

static void add_family_locked(const struct ifaddrs *list, int family)
{
	const struct ifaddrs *ifa;

	for (ifa = list; ifa; ifa = ifa->ifa_next) {
		if (!ifa->ifa_addr || ifa->ifa_addr->sa_family != family ||
		    !(ifa->ifa_flags & IFF_UP))
			continue;
		gid_add_locked(gid_from(ifa->ifa_addr), if_nametoindex(ifa->ifa_name));
	}
}

static void table_read_locked(void)
{
	struct ifaddrs *list;
	CANCEL_OFF_HERE;

	filled = 0;
	/* Before getifaddrs, which may fail: GID 0 must work in a container without addresses. */
	gid_add_locked(gid_from_ipv4((struct in_addr){ htonl(INADDR_LOOPBACK) }),
		       if_nametoindex("lo"));
	if (getifaddrs(&list)) {
		log_at(LOG_WARN, "soft0: getifaddrs: %s; only 127.0.0.1 is known", strerror(errno));
		return;
	}
	add_family_locked(list, AF_INET);
	add_family_locked(list, AF_INET6);
	freeifaddrs(list);
}

static void refresh_locked(void)
{
	uint64_t now = clock_now();

	if (filled && now < expires)
		return;
	expires = now + SNAPSHOT_AGE;
	table_read_locked();
}

/* A thread of the parent may have been reading the table. */
void sv_gid_fork_child(void)
{
	pthread_mutex_init(&lock, NULL);
	filled = 0;
}

bool sv_gid_at(unsigned index, union ibv_gid *gid, uint32_t *interface)
{
	bool found;

	pthread_mutex_lock(&lock);
	refresh_locked();
	found = index < filled;
	if (found) {
		*gid = table[index].gid;
		*interface = table[index].interface;
	}
	pthread_mutex_unlock(&lock);
	return found;
}

int sv_gid_index(const union ibv_gid *gid)
{
	static const unsigned char loopback[13] = { [10] = 0xff, [11] = 0xff, [12] = 127 };
	int index;

	if (!memcmp(gid->raw, loopback, sizeof(loopback)))
		return 0;
	pthread_mutex_lock(&lock);
	refresh_locked();
	index = gid_find_locked(gid);
	pthread_mutex_unlock(&lock);
	return index;
}

int ibv_query_gid(struct ibv_context *context, uint8_t port, int index, union ibv_gid *gid)
{
	uint32_t interface;

	(void)context;
	if (port != SV_PORT || index < 0 || index >= SV_GID_TABLE) {
		errno = EINVAL;
		return -1;
	}
	if (!sv_gid_at((unsigned)index, gid, &interface))
		memset(gid, 0, sizeof(*gid));
	return 0;
}

static int gid_fail(int error)
{
	errno = error;
	return error;
}

/* `size`: bytes of the caller's structure, which may be older or newer than this one. */
static void entry_copy(void *to, size_t size, const struct ibv_gid_entry *entry)
{
	memset(to, 0, size);
	memcpy(to, entry, size < sizeof(*entry) ? size : sizeof(*entry));
}

int _ibv_query_gid_ex(struct ibv_context *context, uint32_t port, uint32_t index,
		      struct ibv_gid_entry *entry, uint32_t flags, size_t size)
{
	struct ibv_gid_entry found = {
		.gid_index = index,
		.port_num = port,
		.gid_type = IBV_GID_TYPE_ROCE_V2,
	};

	(void)context;
	if (flags)
		return gid_fail(EOPNOTSUPP);
	if (port != SV_PORT || index >= SV_GID_TABLE)
		return gid_fail(EINVAL);
	if (!sv_gid_at(index, &found.gid, &found.ndev_ifindex))
		return gid_fail(ENODATA);
	entry_copy(entry, size, &found);
	return 0;
}

ssize_t _ibv_query_gid_table(struct ibv_context *context, struct ibv_gid_entry *entries,
			     size_t room, uint32_t flags, size_t size)
{
	char *to = (char *)entries;
	struct ibv_gid_entry entry;
	ssize_t count = 0;
	uint32_t i;

	for (i = 0; i < SV_GID_TABLE; i++) {
		int error = _ibv_query_gid_ex(context, SV_PORT, i, &entry, flags, sizeof(entry));

		if (error == ENODATA)
			break;
		if (!error && (size_t)count >= room)
			error = gid_fail(EINVAL);
		if (error)
			return -error;
		entry_copy(to + (size_t)count++ * size, size, &entry);
	}
	return count;
}
