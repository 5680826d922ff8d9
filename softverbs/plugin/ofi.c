/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* Messages of an endpoint of libfabric, and the memory that a provider wants registered. */
#include <errno.h>
#include <netinet/in.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <stdlib.h>
#include <string.h>
#include "softverbs/plugin/ofi.h"

#define BATCH 16u /* completions in one call of `read` */

int sv_ofi_error_of(ssize_t result)
{
	return result >= 0 ? 0 : -result < FI_ERRNO_OFFSET ? (int)-result : EIO;
}

/* ---- memory that a provider wants registered ---- */

int sv_ofi_region_open(struct sv_endpoint *endpoint, const void *bytes, size_t size,
		       uint64_t access, struct fid_mr **region)
{
	int mode = endpoint->info->domain_attr->mr_mode, error;

	*region = NULL;
	if (!(mode & FI_MR_LOCAL))
		return 0;
	error = fi_mr_reg(endpoint->domain, bytes, size, access, 0, 0, 0, region, NULL);
	if (!error && mode & FI_MR_ENDPOINT) {
		error = fi_mr_bind(*region, &endpoint->ep->fid, 0);
		if (!error)
			error = fi_mr_enable(*region);
	}
	return sv_ofi_error_of(error);
}

void sv_ofi_region_close(struct fid_mr *region)
{
	if (region)
		fi_close(&region->fid);
}

static void *region_desc(struct fid_mr *region)
{
	return region ? fi_mr_desc(region) : NULL;
}

/* ---- peers ---- */

/* An endpoint that takes messages at all addresses of its host has none in its name. False if the host's is of no use. */
static bool address_complete(uint8_t *address, uint32_t format, uint32_t size,
			     const uint8_t host[16])
{
	struct sockaddr_in *four = (void *)address;
	struct sockaddr_in6 *six = (void *)address;

	if (format == FI_SOCKADDR_IN && size == sizeof(*four) && !four->sin_addr.s_addr) {
		if (!IN6_IS_ADDR_V4MAPPED((const struct in6_addr *)(const void *)host))
			return false;
		memcpy(&four->sin_addr, host + 12, sizeof(four->sin_addr));
	} else if (format == FI_SOCKADDR_IN6 && size == sizeof(*six) &&
		   IN6_IS_ADDR_UNSPECIFIED(&six->sin6_addr)) {
		memcpy(&six->sin6_addr, host, sizeof(six->sin6_addr));
	}
	return true;
}

static int peer_add(struct sv_endpoint *endpoint, const struct sv_endpoint_name *name,
		    const uint8_t host[16], uint64_t *peer)
{
	_Alignas(struct sockaddr_in6) uint8_t address[SV_ADDRESS_MAX];
	struct sv_endpoint_name own;
	fi_addr_t made;

	/* the size of an address is not told to libfabric: it must be that of this kind */
	if (sv_ofi_name_read(endpoint, &own) || own.size != name->size ||
	    own.format != name->format)
		return EPROTO;
	memcpy(address, name->address, sizeof(address));
	if (!address_complete(address, name->format, name->size, host))
		return EAFNOSUPPORT;
	if (fi_av_insert(endpoint->av, address, 1, &made, 0, NULL) != 1)
		return EADDRNOTAVAIL;
	*peer = made;
	return 0;
}

static void peer_remove(struct sv_endpoint *endpoint, uint64_t peer)
{
	fi_addr_t address = peer;

	fi_av_remove(endpoint->av, &address, 1, 0);
}

/* ---- messages ---- */

void sv_ofi_receives_post(struct sv_endpoint *endpoint)
{
	while (endpoint->unposted) {
		struct receive *receive = endpoint->idle[endpoint->unposted - 1];

		if (fi_recv(endpoint->ep, receive->bytes, endpoint->longest,
			    region_desc(endpoint->region), FI_ADDR_UNSPEC, receive->context))
			return; /* the next `read` tries again */
		endpoint->unposted--;
	}
}

static void op_list(struct sv_endpoint *endpoint, struct sv_endpoint_op *op)
{
	pthread_mutex_lock(&endpoint->lock);
	op->next = endpoint->ops;
	op->link = &endpoint->ops;
	if (op->next)
		op->next->link = &op->next;
	endpoint->ops = op;
	pthread_mutex_unlock(&endpoint->lock);
}

static void op_unlist(struct sv_endpoint *endpoint, struct sv_endpoint_op *op)
{
	pthread_mutex_lock(&endpoint->lock);
	*op->link = op->next;
	if (op->next)
		op->next->link = op->link;
	pthread_mutex_unlock(&endpoint->lock);
	sv_ofi_region_close(op->region);
}

static int message_send(struct sv_endpoint *endpoint, uint64_t peer, struct sv_endpoint_op *op,
			const void *bytes, size_t size)
{
	struct fid_mr *region;
	int error;

	if (size <= endpoint->info->tx_attr->inject_size)
		return sv_ofi_error_of(fi_inject(endpoint->ep, bytes, size, peer));
	error = sv_ofi_region_open(endpoint, bytes, size, FI_SEND, &region);
	if (error)
		return error;
	op->region = region;
	op_list(endpoint, op);
	error = sv_ofi_error_of(
		fi_send(endpoint->ep, bytes, size, region_desc(region), peer, op->context));
	if (!error)
		return EINPROGRESS;
	op_unlist(endpoint, op);
	return error;
}

static struct receive *receive_of(struct sv_endpoint *endpoint, void *context)
{
	uintptr_t at = (uintptr_t)context, first = (uintptr_t)endpoint->receives;

	return at >= first && at < first + sizeof(endpoint->receives) ? context : NULL;
}

/* The contexts are the first members. */
static void completion(struct sv_endpoint *endpoint, void *context, size_t size, int error)
{
	struct receive *receive = receive_of(endpoint, context);
	struct sv_endpoint_op *op = context;

	if (!context)
		return; /* of a message that was injected: the link tells of its peer's end */
	if (receive) {
		if (!error)
			endpoint->events->arrived(receive->bytes, size);
		endpoint->idle[endpoint->unposted++] = receive;
	} else {
		op_unlist(endpoint, op);
		endpoint->events->sent(op, error);
	}
}

static unsigned messages_read(struct sv_endpoint *endpoint)
{
	struct fi_cq_msg_entry entries[BATCH];
	struct fi_cq_err_entry failed = { .err = 0 };
	ssize_t count = fi_cq_read(endpoint->cq, entries, BATCH);

	if (count == -FI_EAVAIL) {
		count = fi_cq_readerr(endpoint->cq, &failed, 0);
		if (count == 1)
			completion(endpoint, failed.op_context, 0, failed.err ? failed.err : EIO);
	} else {
		for (ssize_t i = 0; i < count; i++)
			completion(endpoint, entries[i].op_context, entries[i].len, 0);
	}
	sv_ofi_receives_post(endpoint);
	return count > 0 ? (unsigned)count : 0;
}

static int wait_fd(const struct sv_endpoint *endpoint)
{
	return endpoint->fd;
}

static bool may_wait(struct sv_endpoint *endpoint)
{
	struct fid *cq = &endpoint->cq->fid;

	return !endpoint->unposted && !fi_trywait(endpoint->fabric, &cq, 1);
}

__attribute__((visibility("default"))) const struct sv_endpoint_calls sv_endpoint_calls_1 = {
	.open = sv_ofi_open,
	.close = sv_ofi_close,
	.peer_add = peer_add,
	.peer_remove = peer_remove,
	.send = message_send,
	.read = messages_read,
	.wait_fd = wait_fd,
	.may_wait = may_wait,
};
