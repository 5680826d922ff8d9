/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* rdma_getaddrinfo: translates names and services to addresses and the other parameters of an identifier. */
#include <errno.h>
#include <netdb.h>
#include <stdlib.h>
#include <string.h>
#include "softverbs/cm/cm.h"

static struct addrinfo resolver_hints(const struct rdma_addrinfo *hints)
{
	struct addrinfo to = { .ai_socktype = SOCK_STREAM, .ai_protocol = IPPROTO_TCP };

	if (!hints)
		return to;
	if (hints->ai_flags & RAI_PASSIVE)
		to.ai_flags |= AI_PASSIVE;
	if (hints->ai_flags & RAI_NUMERICHOST)
		to.ai_flags |= AI_NUMERICHOST;
	if (hints->ai_flags & RAI_FAMILY)
		to.ai_family = hints->ai_family;
	if (hints->ai_qp_type == IBV_QPT_UD || hints->ai_port_space == RDMA_PS_UDP) {
		to.ai_socktype = SOCK_DGRAM;
		to.ai_protocol = IPPROTO_UDP;
	}
	return to;
}

static bool copy_address(struct sockaddr **to, socklen_t *to_size, const struct sockaddr *from,
			 socklen_t size)
{
	if (!size)
		return true;
	*to = malloc(size);
	if (!*to)
		return false;
	memcpy(*to, from, size);
	*to_size = size;
	return true;
}

void rdma_freeaddrinfo(struct rdma_addrinfo *info)
{
	struct rdma_addrinfo *next;

	for (; info; info = next) {
		next = info->ai_next;
		free(info->ai_src_addr);
		free(info->ai_dst_addr);
		free(info);
	}
}

static struct rdma_addrinfo *info_new(const struct rdma_addrinfo *hints,
				      const struct addrinfo *found)
{
	struct rdma_addrinfo *info = calloc(1, sizeof(*info));
	bool datagram = found && found->ai_socktype == SOCK_DGRAM, copied = true;

	if (!info)
		return NULL;
	if (hints) {
		info->ai_flags = hints->ai_flags;
		info->ai_family = hints->ai_family;
		info->ai_qp_type = hints->ai_qp_type;
		info->ai_port_space = hints->ai_port_space;
	}
	if (!info->ai_qp_type)
		info->ai_qp_type = datagram ? IBV_QPT_UD : IBV_QPT_RC;
	if (!info->ai_port_space)
		info->ai_port_space = datagram ? RDMA_PS_UDP : RDMA_PS_TCP;
	if (found && info->ai_flags & RAI_PASSIVE)
		copied = copy_address(&info->ai_src_addr, &info->ai_src_len, found->ai_addr,
				      found->ai_addrlen);
	else if (found)
		copied = copy_address(&info->ai_dst_addr, &info->ai_dst_len, found->ai_addr,
				      found->ai_addrlen);
	else
		copied = copy_address(&info->ai_dst_addr, &info->ai_dst_len, hints->ai_dst_addr,
				      hints->ai_dst_len);
	if (found)
		info->ai_family = found->ai_family;
	if (copied && hints && !info->ai_src_len)
		copied = copy_address(&info->ai_src_addr, &info->ai_src_len, hints->ai_src_addr,
				      hints->ai_src_len);
	if (copied)
		return info;
	rdma_freeaddrinfo(info);
	return NULL;
}

int rdma_getaddrinfo(const char *node, const char *service, const struct rdma_addrinfo *hints,
		     struct rdma_addrinfo **info)
{
	struct rdma_addrinfo *first = NULL, **last = &first;
	struct addrinfo wanted = resolver_hints(hints), *found = NULL, *entry;
	int error;

	if (!node && !service && !hints)
		return sv_cm_fail(EINVAL);
	error = node || service ? getaddrinfo(node, service, &wanted, &found) : 0;
	if (error)
		return error;
	entry = found;
	do {
		*last = info_new(hints, entry);
		if (!*last) {
			if (found)
				freeaddrinfo(found);
			rdma_freeaddrinfo(first);
			return sv_cm_fail(ENOMEM);
		}
		last = &(*last)->ai_next;
		entry = entry ? entry->ai_next : NULL;
	} while (entry);
	if (found)
		freeaddrinfo(found);
	*info = first;
	return 0;
}

/* Not offered: there is no subnet administration to ask, and rdma_getaddrinfo finds the addresses of a name. */
int rdma_resolve_addrinfo(struct rdma_cm_id *id, const char *node, const char *service,
			  const struct rdma_addrinfo *hints)
{
	(void)id;
	(void)node;
	(void)service;
	(void)hints;
	return sv_cm_fail(ENOTSUP);
}

int rdma_query_addrinfo(struct rdma_cm_id *id, struct rdma_addrinfo **info)
{
	(void)id;
	(void)info;
	return sv_cm_fail(ENOENT);
}
