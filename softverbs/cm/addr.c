/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* Bind and resolve: an identifier gets its addresses, its port and the device. */
#include <arpa/inet.h>
#include <errno.h>
#include <string.h>
#include "softverbs/base/settings.h"
#include "softverbs/cm/cm.h"
#include "softverbs/object/elsewhere.h"
#include "util/clock.h"

#define WAY_COUNTS (10 * NSEC_PER_MSEC)

/* `local` is true if the address is known to belong to this host. */
static int bind_addr(struct cm_id *id, const struct sockaddr *addr, bool local)
{
	struct rdma_addr *route = &id->id.route.addr;
	uint16_t port;
	struct sv_ip ip;
	int error = sv_ip_from_sockaddr(&ip, &port, addr);

	if (error)
		return error;
	if (!ip.any && !local)
		error = sv_ip_is_local(addr);
	if (!ip.any && !error)
		error = sv_cm_device_bind(id);
	if (error)
		return error;
	sv_cm_lock();
	error = id->state == CM_IDLE ? sv_cm_port_bind_locked(id, &ip, port) : EINVAL;
	if (!error) {
		memcpy(&route->src_storage, addr, sv_ip_sockaddr_size(addr));
		sv_ip_set_port(&route->src_addr, id->port->number);
		id->state = CM_BOUND;
	}
	sv_cm_unlock();
	return error;
}

int rdma_bind_addr(struct rdma_cm_id *public, struct sockaddr *addr)
{
	struct cm_id *id = cm_id_of(public);
	int error;

	if (!sv_cm_id_is_ours(id))
		return sv_cm_fail(ENODEV);
	if (sv_cm_id_state(id) != CM_IDLE)
		return sv_cm_fail(EINVAL);
	error = bind_addr(id, addr, false);
	return error ? sv_cm_fail(error) : 0;
}

/* ---- resolve ---- */

/* The unspecified address as a target means this host. */
static void target_set(struct sockaddr *target, const struct sockaddr *addr, bool any)
{
	memcpy(target, addr, sv_ip_sockaddr_size(addr));
	if (!any)
		return;
	if (addr->sa_family == AF_INET)
		((struct sockaddr_in *)(void *)target)->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	else
		((struct sockaddr_in6 *)(void *)target)->sin6_addr = in6addr_loopback;
}

/* The kernel's answer about a target. */
struct way {
	int error;
	struct sockaddr_storage source; /* the source address that it would use */
	bool home;			/* the source is the target: an address of this host */
};

static bool addr_same_address(const struct sockaddr *a, const struct sockaddr *b)
{
	struct sv_ip first, second;
	uint16_t port;

	return !sv_ip_from_sockaddr(&first, &port, a) && !sv_ip_from_sockaddr(&second, &port, b) &&
	       sv_ip_same(&first, &second);
}

/* Many connections in a row have the same target, so the last answer of the kernel is reused for a short
 * time. */
static void way_find(struct way *way, const struct sockaddr *target)
{
	static _Thread_local struct {
		struct sockaddr_storage target;
		struct way way;
		uint64_t until;
	} last;
	uint64_t now = clock_now();

	if (now < last.until && addr_same_address((struct sockaddr *)&last.target, target)) {
		*way = last.way;
		return;
	}
	way->error = sv_ip_route(target, &way->source);
	way->home = !way->error && addr_same_address((struct sockaddr *)&way->source, target);
	memcpy(&last.target, target, sv_ip_sockaddr_size(target));
	last.way = *way;
	last.until = way->home ? now + WAY_COUNTS : 0;
}

static int bind_source(struct cm_id *id, const struct sockaddr *source,
		       const struct sockaddr *target, const struct way *way)
{
	/* zeros are the wildcard of both families */
	struct sockaddr_in6 wildcard = { .sin6_family = target->sa_family };

	if (source && source->sa_family != target->sa_family)
		return EINVAL;
	if (!source)
		source = (struct sockaddr *)&wildcard;
	return bind_addr(id, source, way->home && addr_same_address(source, target));
}

/* Replaces a source that is not bound, or is bound to the wildcard, by the one that the kernel chooses. */
static int source_resolve(struct cm_id *id, const struct way *way)
{
	struct rdma_addr *route = &id->id.route.addr;
	uint16_t port;
	struct sv_ip ip;

	if (way->error)
		return way->error == EACCES ? ENETUNREACH : way->error; /* a broadcast address */
	sv_ip_from_sockaddr(&ip, &port, &route->src_addr);
	if (!ip.any)
		return 0;
	memcpy(&route->src_storage, &way->source, sizeof(way->source));
	sv_ip_set_port(&route->src_addr, id->port->number);
	return 0;
}

static int resolve_addr(struct cm_id *id, const struct sockaddr *source,
			const struct sockaddr *addr, struct way *way)
{
	struct rdma_addr *route = &id->id.route.addr;
	struct sockaddr_storage target;
	uint16_t port;
	struct sv_ip ip;
	int error = sv_ip_from_sockaddr(&ip, &port, addr);

	if (error)
		return error;
	target_set((struct sockaddr *)&target, addr, ip.any);
	way_find(way, (struct sockaddr *)&target);
	if (id->state == CM_IDLE)
		error = bind_source(id, source, (struct sockaddr *)&target, way);
	if (error)
		return error;
	if (route->src_addr.sa_family != addr->sa_family)
		return EINVAL;
	memcpy(&route->dst_storage, &target, sv_ip_sockaddr_size(addr));
	error = source_resolve(id, way);
	return error ? error : sv_cm_device_bind(id);
}

/* Notes a target without a route, or on another host, as far as this network namespace knows. */
static void target_note(const struct sockaddr *target)
{
	union ibv_gid gid;
	uint16_t port;
	struct sv_ip ip;

	if (sv_ip_from_sockaddr(&ip, &port, target))
		return;
	gid = sv_ip_gid(&ip);
	sv_elsewhere_note(&gid);
}

/* The result is known at once, so the timeout is unused: the address of another host fails at once
 * without the fabric; with it, the kernel's route is all that is known of it. */
int rdma_resolve_addr(struct rdma_cm_id *public, struct sockaddr *source, struct sockaddr *target,
		      int timeout_ms)
{
	struct cm_id *id = cm_id_of(public);
	struct cm_event *event;
	enum cm_state state;
	int error, absent;
	struct way way;

	(void)timeout_ms;
	if (!sv_cm_id_is_ours(id))
		return sv_cm_fail(ENODEV);
	state = sv_cm_id_state(id);
	if (state != CM_IDLE && state != CM_BOUND)
		return sv_cm_fail(EINVAL);
	error = resolve_addr(id, source, target, &way);
	if (error == ENETUNREACH || error == EHOSTUNREACH)
		target_note(target);
	if (error)
		return sv_cm_fail(error);
	absent = way.home ? 0 : sv_ip_is_reachable(&public->route.addr.dst_addr);
	if (absent && absent != EADDRNOTAVAIL)
		return sv_cm_fail(absent);
	id->is_far = absent && sv_cm_far_reaches(&public->route.addr.dst_addr);
	if (id->is_far)
		absent = 0;
	if (absent)
		target_note(target);
	event = sv_cm_event_new(id, absent ? RDMA_CM_EVENT_ADDR_ERROR : RDMA_CM_EVENT_ADDR_RESOLVED,
				absent ? -ETIMEDOUT : 0);
	if (!event)
		return sv_cm_fail(ENOMEM);
	sv_cm_lock();
	if (!absent) {
		id->state = CM_ADDR_RESOLVED;
		sv_cm_route_fill(id);
	}
	sv_cm_event_post_locked(event);
	sv_cm_unlock();
	return sv_cm_sync_finish(id);
}

int rdma_resolve_route(struct rdma_cm_id *public, int timeout_ms)
{
	struct cm_id *id = cm_id_of(public);
	struct cm_event *event = NULL;
	int error = EINVAL;

	(void)timeout_ms;
	if (!sv_cm_id_is_ours(id))
		return sv_cm_fail(ENODEV);
	sv_cm_lock();
	if (id->state == CM_ADDR_RESOLVED) {
		event = sv_cm_event_new(id, RDMA_CM_EVENT_ROUTE_RESOLVED, 0);
		error = event ? 0 : ENOMEM;
	}
	if (!error) {
		id->state = CM_ROUTE_RESOLVED;
		public->route.path_rec = &id->path;
		public->route.num_paths = 1;
		sv_cm_event_post_locked(event);
	}
	sv_cm_unlock();
	return error ? sv_cm_fail(error) : sv_cm_sync_finish(id);
}

void sv_cm_route_fill(struct cm_id *id)
{
	uint16_t lid = sv_lid(); /* of both ends: each port has the same */
	struct rdma_addr *route = &id->id.route.addr;
	struct sv_ip source, target;
	uint16_t port;

	if (sv_ip_from_sockaddr(&source, &port, &route->src_addr) ||
	    sv_ip_from_sockaddr(&target, &port, &route->dst_addr))
		return;
	route->addr.ibaddr.sgid = sv_ip_gid(&source);
	route->addr.ibaddr.dgid = sv_ip_gid(&target);
	route->addr.ibaddr.pkey = htons(0xffff);
	id->path = (struct ibv_sa_path_rec){
		.sgid = route->addr.ibaddr.sgid,
		.dgid = route->addr.ibaddr.dgid,
		.dlid = htons(lid),
		.slid = htons(lid),
		.pkey = htons(0xffff),
		.hop_limit = 1,
		.reversible = 1,
		.numb_path = 1,
		.mtu_selector = 2, /* exactly this value */
		.mtu = IBV_MTU_4096,
		.rate_selector = 2,
		.rate = IBV_RATE_MAX,
		.packet_life_time_selector = 2,
		.packet_life_time = 0,
		.traffic_class = id->tos,
	};
}

static __be16 sockaddr_port(const struct sockaddr *addr)
{
	if (addr->sa_family == AF_INET6)
		return ((const struct sockaddr_in6 *)(const void *)addr)->sin6_port;
	return addr->sa_family == AF_INET
		       ? ((const struct sockaddr_in *)(const void *)addr)->sin_port
		       : 0;
}

__be16 rdma_get_src_port(struct rdma_cm_id *public)
{
	return sockaddr_port(&public->route.addr.src_addr);
}

__be16 rdma_get_dst_port(struct rdma_cm_id *public)
{
	return sockaddr_port(&public->route.addr.dst_addr);
}
