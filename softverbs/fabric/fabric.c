/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* The fabric of a process: whether it is on, the port on which other hosts connect, searches. */
#include <arpa/inet.h>
#include <errno.h>
#include <net/if.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>
#include "softverbs/base/settings.h"
#include "softverbs/fabric/link.h"
#include "softverbs/fabric/data.h"
#include "softverbs/fabric/endpoint.h"
#include "softverbs/fabric/plugin.h"
#include "softverbs/fabric/progress.h"
#include "softverbs/fabric/ready_links.h"
#include "softverbs/fabric/ud.h"
#include "softverbs/fabric/transport.h"
#include "softverbs/link/runtime.h"
#include "util/clock.h"
#include "util/log.h"

#define BACKLOG	   256
#define ACCEPTS	   16
#define FULL_PAUSE (5 * NSEC_PER_MSEC) /* before it is seen whether there is room for links again */
#define LEAVE_TIME (200 * NSEC_PER_MSEC)

static struct {
	atomic_bool on;
	struct engine_fd listener; /* not open: no other host connects to this process */
	struct sv_timer pause;	   /* of the listener */
} fabric = { .listener.fd = -1 };

bool sv_fabric_is_on(void)
{
	return atomic_load_explicit(&fabric.on, memory_order_acquire);
}

/* ---- the port ---- */

static void listener_continue(struct sv_timer *timer)
{
	if (sv_fabric_link_has_room())
		sv_engine_fd_modify(&fabric.listener, EPOLLIN);
	else
		sv_engine_timer_arm(timer, clock_now() + FULL_PAUSE, listener_continue);
}

static void listener_ready(struct engine_fd *handler, uint32_t events)
{
	(void)events;
	for (unsigned i = 0; i < ACCEPTS; i++) {
		int fd;

		if (!sv_fabric_link_has_room()) {
			sv_engine_fd_modify(handler, 0);
			sv_engine_timer_arm(&fabric.pause, clock_now() + FULL_PAUSE,
					    listener_continue);
			return;
		}
		fd = sv_runtime_accept(handler->fd);
		if (fd < 0)
			return;
		sv_fabric_link_accept(fd);
	}
}

/* The address to listen on: that of the setting, which may be an address or an interface; else all. False if the
 * setting is neither. An interface is stored in `interface`. */
static bool address_choose(struct sockaddr_in6 *six, const char **interface)
{
	const char *text = sv_setting_text(SV_SET_FABRIC_ADDRESS);
	struct in_addr four;

	memset(six, 0, sizeof(*six));
	six->sin6_family = AF_INET6;
	six->sin6_port = htons((uint16_t)sv_setting(SV_SET_FABRIC_PORT));
	*interface = NULL;
	if (!text || inet_pton(AF_INET6, text, &six->sin6_addr) == 1)
		return true;
	if (inet_pton(AF_INET, text, &four) == 1) {
		six->sin6_addr.s6_addr[10] = six->sin6_addr.s6_addr[11] = 0xff;
		memcpy(&six->sin6_addr.s6_addr[12], &four, sizeof(four));
		return true;
	}
	*interface = text;
	return if_nametoindex(text);
}

/* Kernels without IPv6 have no socket for both. */
static int socket_open(const struct sockaddr_in6 *six)
{
	struct sockaddr_in four = { .sin_family = AF_INET, .sin_port = six->sin6_port };
	int fd = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), on = 1, off = 0;

	if (fd >= 0) {
		setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &on, sizeof(on));
		setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof(off));
		if (!bind(fd, (const struct sockaddr *)six, sizeof(*six)))
			return fd;
	} else if (errno == EAFNOSUPPORT) {
		memcpy(&four.sin_addr, &six->sin6_addr.s6_addr[12], sizeof(four.sin_addr));
		fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
		setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &on, sizeof(on));
		if (fd >= 0 && !bind(fd, (const struct sockaddr *)&four, sizeof(four)))
			return fd;
	}
	on = errno;
	if (fd >= 0)
		close(fd);
	errno = on;
	return -1;
}

static int listener_open(void)
{
	const char *interface;
	struct sockaddr_in6 six;
	int fd;

	if (!address_choose(&six, &interface))
		return EADDRNOTAVAIL;
	fd = socket_open(&six);
	if (fd < 0)
		return errno;
	if ((interface && setsockopt(fd, SOL_SOCKET, SO_BINDTODEVICE, interface,
				     (socklen_t)strlen(interface))) ||
	    listen(fd, BACKLOG)) {
		int error = errno;

		close(fd);
		return error;
	}
	return sv_engine_fd_add(&fabric.listener, fd, EPOLLIN, listener_ready);
}

const char *sv_fabric_wish(void)
{
	const char *wish = sv_setting_text(SV_SET_FABRIC);

	return wish && strcmp(wish, "off") ? wish : NULL;
}

/*
 * A provider of libfabric counts as sent what it has copied, and drops what it has not reported when it sees the
 * connection end. So a process that leaves tells its peers over their links how many messages it has sent, and waits until
 * they have handled them.
 */

/* True if something has not left yet, or the peer has not answered. */
static bool peer_leave_locked(struct fabric_peer *peer)
{
	uint8_t number[WIRE_LEAVE_SIZE];

	if (!peer->link)
		return false;
	if (!sv_fabric_endpoint_is_open())
		return peer->link->backlog.left != peer->link->backlog.queued;
	if (!peer->backlog.queued)
		return false;
	if (peer->leave == FABRIC_STAYS && peer->backlog.left == peer->backlog.queued) {
		wire_put(number, peer->order.sent, sizeof(number));
		if (sv_fabric_link_send_locked(peer->link, WIRE_LEAVE, number, sizeof(number)))
			return false;
		peer->leave = FABRIC_LEAVES;
	}
	return peer->leave != FABRIC_LEFT;
}

/*
 * A handler of a signal may end the process in the middle of any call, so no lock is waited for beyond the time. The
 * engine does what there is to do.
 */
void sv_fabric_leave(void)
{
	uint64_t end = clock_now() + LEAVE_TIME;
	bool waits = true;

	if (!sv_fabric_is_on())
		return;
	while (waits && clock_now() < end) {
		waits = sv_ud_waits_any() || sv_far_any_due();
		if (!waits && sv_fabric_trylock()) {
			waits = sv_fabric_peers_any_locked(peer_leave_locked);
			sv_fabric_unlock();
		} else {
			waits = true;
		}
		if (waits)
			poll(NULL, 0, 1);
	}
}

void sv_fabric_start(void)
{
	static atomic_flag at_exit = ATOMIC_FLAG_INIT;
	const char *wish = sv_fabric_wish();
	int error;

	if (!wish || !sv_fabric_plugin() || sv_fabric_key_read() || sv_fabric_endpoint_open(wish))
		return;
	error = sv_fabric_endpoint_is_open() ? 0 : sv_fabric_links_open();
	if (error) {
		log_at(LOG_ERROR, "softverbs: no fabric: %s", strerror(error));
		return;
	}
	atomic_store_explicit(&fabric.on, true, memory_order_release);
	/* before the destructors of libfabric */
	if (!atomic_flag_test_and_set(&at_exit) && atexit(sv_fabric_leave))
		log_at(LOG_WARN,
		       "softverbs: atexit: the last messages of this process may be lost");
	error = listener_open();
	if (error)
		log_at(LOG_ERROR, "softverbs: port %lu, on which other hosts connect: %s%s",
		       sv_setting(SV_SET_FABRIC_PORT), strerror(error),
		       error == EADDRINUSE ? "; another user or program has it" : "");
}

void sv_fabric_stop(void)
{
	atomic_store_explicit(&fabric.on, false, memory_order_release);
	sv_engine_fd_remove(&fabric.listener);
	sv_engine_timer_cancel(&fabric.pause);
	sv_far_dues_stop();
	sv_fabric_endpoint_flush();
	sv_fabric_ready_links_close();
	sv_fabric_links_close();
	sv_ud_waits_close();
	sv_ud_losses_log();
	sv_ud_losses_forget();
	sv_fabric_endpoint_close();
}

void sv_fabric_fork_prepare(void)
{
	sv_ud_waits_fork_prepare();
	sv_fabric_lock();
}

void sv_fabric_fork_parent(void)
{
	sv_fabric_unlock();
	sv_ud_waits_fork_parent();
}

void sv_fabric_fork_child(void)
{
	atomic_store_explicit(&fabric.on, false, memory_order_release);
	fabric.pause = (struct sv_timer){ .fire = NULL };
	sv_fabric_links_fork_child();
	sv_fabric_endpoint_fork_child();
	sv_fabric_ready_links_fork_child();
	sv_fabric_progress_fork_child();
	sv_fabric_peers_fork_child();
	sv_far_fork_child();
	sv_fabric_unlock();
	sv_ud_waits_fork_child();
	sv_ud_losses_forget(); /* the parent's */
}

/* ---- searches ---- */

static struct wire_target target_to(enum wire_target_kind kind)
{
	const struct sv_peer *self = sv_peer_self();

	return (struct wire_target){ .kind = (uint8_t)kind,
				     .from_slot = self->slot,
				     .from_nonce = { self->nonce[0], self->nonce[1] } };
}

int sv_fabric_find_port(const struct sv_ip *host, uint32_t space, uint16_t port, uint32_t cookie,
			sv_fabric_found *found)
{
	struct wire_target target = target_to(WIRE_TO_PORT);

	if (!sv_fabric_is_on())
		return ENETUNREACH;
	target.space = space;
	target.port = port;
	memcpy(target.address, &host->addr, sizeof(target.address));
	return sv_fabric_link_open(host, &target, cookie, found);
}

int sv_fabric_find_slot(const struct sv_ip *host, uint16_t slot, uint32_t cookie,
			sv_fabric_found *found)
{
	struct wire_target target = target_to(WIRE_TO_SLOT);

	if (!sv_fabric_is_on())
		return ENETUNREACH;
	target.slot = slot;
	return sv_fabric_link_open(host, &target, cookie, found);
}

int sv_fabric_check(const struct sv_ip *host, uint32_t cookie, sv_fabric_found *found)
{
	struct wire_target target = target_to(WIRE_TO_CHECK);

	return sv_fabric_is_on() ? sv_fabric_link_open(host, &target, cookie, found) : ENETUNREACH;
}
