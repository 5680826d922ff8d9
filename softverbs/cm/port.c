/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* Ports. A port number that a program asks for is claimed by a socket name, so that all processes of the user
 * agree. For port 0, the number is from a block of ports that the process has claimed by one name: an
 * identifier that only connects costs no descriptor. Such a port is claimed by its own name when it begins to
 * listen. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>
#include "softverbs/cm/cm.h"
#include "softverbs/link/name.h"
#include "softverbs/link/port_name.h"
#include "softverbs/link/runtime.h"
#include "util/log.h"

/* The part of IANA's dynamic ports that Linux assigns by itself. The ports that uDAPL programs use are below
 * (dtest: 45248) and above (dapltest: 62000 to 63000). */
#define EPHEMERAL_FIRST 49152u
#define EPHEMERAL_END	60992u
#define BLOCK		16u /* ports; FIRST and END are multiples of it */
#define BLOCKS		((EPHEMERAL_END - EPHEMERAL_FIRST) / BLOCK)
#define LISTEN_QUEUE	256

struct block {
	LIST_ENTRY(block) entry;
	uint16_t space, first;
	uint16_t used; /* bit (number - first) */
	int fd;
};

/* The cm lock guards all of these. */
static LIST_HEAD(, cm_port) ports = LIST_HEAD_INITIALIZER(ports);
static LIST_HEAD(, cm_port) listeners = LIST_HEAD_INITIALIZER(listeners);
static LIST_HEAD(, block) blocks = LIST_HEAD_INITIALIZER(blocks);
static unsigned block_count;

/* ---- blocks ---- */

static struct block *block_of_locked(uint16_t space, unsigned long number)
{
	struct block *block;

	LIST_FOREACH(block, &blocks, entry)
		if (block->space == space && number / BLOCK == block->first / BLOCK)
			break;
	return block;
}

/* Marks a port as used that another process claimed by name, or that a program of this process asked for. */
static void ephemeral_avoid_locked(uint16_t space, unsigned long number)
{
	struct block *block = block_of_locked(space, number);

	if (block)
		block->used |= (uint16_t)(1u << (number - block->first));
}

static void avoid_name(void *arg, const char *rest)
{
	const uint16_t *space = arg;

	ephemeral_avoid_locked(*space, strtoul(rest, NULL, 10));
}

static void blocks_scan_locked(uint16_t space)
{
	const struct cm_port *port;
	char prefix[16];

	snprintf(prefix, sizeof(prefix), "c/%x/", space);
	sv_name_scan(prefix, avoid_name, &space);
	LIST_FOREACH(port, &ports, entry) /* shared ports have no name */
		if (port->shared && !port->ephemeral && port->space == space)
			ephemeral_avoid_locked(space, port->number);
}

static int block_claim_locked(uint16_t space)
{
	static unsigned turn;
	struct block *block = calloc(1, sizeof(*block));
	char name[32];
	unsigned i;

	if (!block)
		return ENOMEM;
	if (!turn)
		turn = (unsigned)getpid() * 40503u;
	block->space = space;
	block->fd = -1;
	for (i = 0; i < BLOCKS && block->fd < 0; i++) {
		block->first = (uint16_t)(EPHEMERAL_FIRST + turn++ % BLOCKS * BLOCK);
		snprintf(name, sizeof(name), "e/%x/%u", space, block->first);
		block->fd = sv_name_claim(name);
		if (block->fd < 0 && errno != EADDRINUSE)
			break;
	}
	if (block->fd < 0) {
		free(block);
		return errno == EADDRINUSE ? EADDRNOTAVAIL : errno;
	}
	LIST_INSERT_HEAD(&blocks, block, entry);
	block_count++;
	return 0;
}

/* Claims several blocks if the process has many, since each time reads all names of the host. */
static int blocks_claim_locked(uint16_t space)
{
	unsigned wanted = block_count / 4 < 16 ? block_count / 4 + 1 : 16, got = 0;
	int error;

	do
		error = block_claim_locked(space);
	while (!error && ++got < wanted);
	if (!got)
		return error;
	blocks_scan_locked(space);
	return 0;
}

static struct block *block_with_room_locked(uint16_t space)
{
	struct block *block;

	LIST_FOREACH(block, &blocks, entry)
		if (block->space == space && block->used != UINT16_MAX)
			break;
	return block;
}

static int ephemeral_acquire_locked(uint16_t space, uint16_t *number)
{
	struct block *block;
	unsigned bit;
	int error;

	/* all ports of a new block may be claimed by other processes */
	while (!(block = block_with_room_locked(space))) {
		error = blocks_claim_locked(space);
		if (error)
			return error;
	}
	bit = (unsigned)__builtin_ctz(~(unsigned)block->used);
	block->used |= (uint16_t)(1u << bit);
	*number = (uint16_t)(block->first + bit);
	return 0;
}

static void block_free_locked(struct block *block)
{
	LIST_REMOVE(block, entry);
	block_count--;
	sv_name_release(block->fd);
	close(block->fd);
	free(block);
}

/* Keeps one empty block, so that a program that connects repeatedly does not claim a block each time. */
static void ephemeral_release_locked(uint16_t space, uint16_t number)
{
	struct block *block = block_of_locked(space, number), *other, *next;

	if (!block)
		return;
	block->used &= (uint16_t) ~(1u << (number - block->first));
	if (block->used)
		return;
	for (other = LIST_FIRST(&blocks); other; other = next) {
		next = LIST_NEXT(other, entry);
		if (other != block && other->space == space && !other->used)
			block_free_locked(other);
	}
}

void sv_cm_port_idle_locked(void)
{
	while (!LIST_EMPTY(&blocks))
		block_free_locked(LIST_FIRST(&blocks));
}

/* ---- conflicts ---- */

struct conflict {
	const struct cm_port *port;
	bool found;
};

static void conflict_test(void *arg, const char *rest)
{
	struct conflict *conflict = arg;
	struct sv_ip other;

	if (sv_ip_parse(&other, rest) && !sv_ip_same(&other, &conflict->port->ip) &&
	    sv_ip_overlaps(&other, &conflict->port->ip))
		conflict->found = true;
}

/* Claims the name of the port. A claim of the same address by another process makes the bind fail; a conflict
 * between a wildcard and an address is found by a scan of the names. */
static int name_claim(struct cm_port *port)
{
	struct conflict conflict = { .port = port };
	char name[96], prefix[32];

	sv_port_name(name, port->space, port->number, &port->ip);
	port->fd = sv_name_claim(name);
	if (port->fd < 0) {
		int error = errno;

		if (error == EADDRINUSE)
			sv_name_log_holder(name);
		return error;
	}
	snprintf(prefix, sizeof(prefix), "c/%x/%u/", port->space, port->number);
	sv_name_scan(prefix, conflict_test, &conflict);
	if (!conflict.found)
		return 0;
	sv_name_release(port->fd);
	close(port->fd);
	port->fd = -1;
	return EADDRINUSE;
}

static bool same_number(const struct cm_port *a, const struct cm_port *b)
{
	return a->space == b->space && a->number == b->number;
}

static bool in_use_here_locked(const struct cm_port *port)
{
	const struct cm_port *other;

	LIST_FOREACH(other, &listeners, entry)
		if (same_number(other, port) && sv_ip_overlaps(&other->ip, &port->ip))
			return true;
	LIST_FOREACH(other, &ports, entry)
		if (same_number(other, port) && sv_ip_overlaps(&other->ip, &port->ip) &&
		    !(other->shared && port->shared))
			return true;
	return false;
}

static bool number_is_left_locked(const struct cm_port *port)
{
	const struct cm_port *other;

	LIST_FOREACH(other, &listeners, entry)
		if (same_number(other, port))
			return true;
	LIST_FOREACH(other, &ports, entry)
		if (same_number(other, port))
			return true;
	return false;
}

/* ---- bind ---- */

static int port_claim_locked(struct cm_port *port, uint16_t number)
{
	int error = 0;

	if (!number) {
		port->ephemeral = true;
		return ephemeral_acquire_locked(port->space, &port->number);
	}
	port->number = number;
	if (in_use_here_locked(port))
		return EADDRINUSE;
	if (!port->shared)
		error = name_claim(port);
	if (!error)
		ephemeral_avoid_locked(port->space, number);
	return error;
}

int sv_cm_port_bind_locked(struct cm_id *id, const struct sv_ip *ip, uint16_t number)
{
	struct cm_port *port = calloc(1, sizeof(*port));
	int error;

	if (!port)
		return ENOMEM;
	port->fd = port->handler.fd = -1;
	port->space = (uint16_t)id->id.ps;
	port->ip = *ip;
	port->shared = id->reuse_addr;
	if (ip->any && id->addr_family_only && ip->families & SV_IPV6)
		port->ip.families = SV_IPV6;
	error = port_claim_locked(port, number);
	if (error) {
		free(port);
		return error;
	}
	LIST_INSERT_HEAD(&ports, port, entry);
	id->port = port;
	return 0;
}

/* Another process asks for the listener of this port. The answer is one message, after which the connection
 * is closed. */
static void port_ready(struct engine_fd *handler, uint32_t events)
{
	int fd = -1;

	(void)events;
	sv_cm_lock();
	if (handler->fd >= 0)
		fd = sv_runtime_accept(handler->fd);
	sv_cm_unlock();
	if (fd >= 0)
		sv_cm_lookup_answer(fd);
}

int sv_cm_port_listen_locked(struct cm_id *id)
{
	struct cm_port *port = id->port;
	int error = 0, fd;

	if (port->fd < 0)
		error = name_claim(port);
	if (!error && listen(port->fd, LISTEN_QUEUE))
		error = errno;
	if (error)
		return error;
	fd = port->fd;
	port->fd = -1;
	error = sv_engine_fd_add(&port->handler, fd, EPOLLIN, port_ready);
	if (error)
		return error;
	LIST_REMOVE(port, entry);
	LIST_INSERT_HEAD(&listeners, port, entry);
	port->listener = id;
	return 0;
}

static void port_free(struct engine_job *job)
{
	free((char *)job - offsetof(struct cm_port, job));
}

void sv_cm_port_release_locked(struct cm_id *id)
{
	struct cm_port *port = id->port;

	if (!port)
		return;
	id->port = NULL;
	LIST_REMOVE(port, entry);
	if (port->ephemeral || !number_is_left_locked(port))
		ephemeral_release_locked(port->space, port->number);
	sv_name_release(port->fd < 0 ? port->handler.fd : port->fd);
	if (port->fd >= 0)
		close(port->fd);
	if (port->handler.fd < 0) { /* never added to the engine */
		free(port);
		return;
	}
	sv_engine_fd_remove(&port->handler);
	sv_engine_defer(&port->job, port_free);
}

/* Finds the listener of an address; one on the address itself precedes a wildcard. Names cannot exclude that
 * both exist. */
struct cm_id *sv_cm_port_listener_locked(uint32_t space, uint16_t number, const struct sv_ip *ip)
{
	struct cm_port *port, *wild = NULL;

	LIST_FOREACH(port, &listeners, entry) {
		if (port->space != space || port->number != number ||
		    !sv_ip_overlaps(&port->ip, ip))
			continue;
		if (!port->ip.any)
			return port->listener;
		wild = port;
	}
	return wild ? wild->listener : NULL;
}

/* The engine closed its descriptors. The identifiers keep their ports, which have no effect any more. */
void sv_cm_port_fork_child(void)
{
	struct cm_port *port;

	LIST_FOREACH(port, &ports, entry)
		if (port->fd >= 0)
			close(port->fd);
	LIST_INIT(&ports);
	LIST_INIT(&listeners);
	sv_cm_port_idle_locked();
}
