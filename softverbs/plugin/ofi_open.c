/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* Opens and closes an endpoint of libfabric: one RDM endpoint with an address vector and a completion queue, and a number
 * of posted receives. What a provider asks for is what fi_getinfo returned, whatever its name. */
#include <arpa/inet.h>
#include <errno.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_endpoint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "softverbs/plugin/ofi.h"

/* ---- the choice of a provider ---- */

static struct fi_info *hints_new(const char *provider)
{
	struct fi_info *hints = fi_allocinfo();

	if (!hints)
		return NULL;
	hints->caps = FI_MSG;
	hints->mode = FI_CONTEXT | FI_CONTEXT2;
	hints->ep_attr->type = FI_EP_RDM;
	hints->domain_attr->threading = FI_THREAD_SAFE;
	hints->domain_attr->resource_mgmt = FI_RM_ENABLED;
	hints->domain_attr->mr_mode =
		FI_MR_LOCAL | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY | FI_MR_ENDPOINT;
	hints->tx_attr->msg_order = hints->rx_attr->msg_order = FI_ORDER_SAS;
	if (strcmp(provider, "auto"))
		hints->fabric_attr->prov_name = strdup(provider); /* fi_freeinfo frees it */
	return hints;
}

/* One that can send these messages to another host: an address that is a text is a name of this host. */
static bool is_fit(const struct fi_info *info, size_t longest)
{
	return info->ep_attr->max_msg_size >= longest && info->addr_format != FI_ADDR_STR;
}

static bool is_address(const char *text)
{
	uint8_t address[16];

	return inet_pton(AF_INET, text, address) == 1 || inet_pton(AF_INET6, text, address) == 1;
}

/* Providers whose addresses are the host's take all of them, unless one is wanted: a peer knows one by which it reached
 * this host. The others have no such address, and find none. */
static int info_find(struct sv_endpoint *endpoint, const char *provider, const char *source)
{
	struct fi_info *hints = hints_new(provider), *list = NULL;
	const char *node = source ? source : "0.0.0.0";
	int error;

	if (!hints)
		return ENOMEM;
	if (!is_address(node)) {
		hints->domain_attr->name = strdup(node); /* an interface */
		node = NULL;
	}
	error = fi_getinfo(FI_VERSION(1, 17), node, NULL, node ? FI_SOURCE : 0, hints, &list);
	if (error && node && !source)
		error = fi_getinfo(FI_VERSION(1, 17), NULL, NULL, 0, hints, &list);
	for (const struct fi_info *info = list; info && !endpoint->info; info = info->next)
		if (is_fit(info, endpoint->longest))
			endpoint->info = fi_dupinfo(info);
	fi_freeinfo(list);
	fi_freeinfo(hints);
	return endpoint->info ? 0 : error ? sv_ofi_error_of(error) : ENODATA;
}

/* ---- open and close ---- */

static int receives_open(struct sv_endpoint *endpoint)
{
	size_t size = RECEIVES * endpoint->longest;
	int error;

	endpoint->memory = malloc(size);
	if (!endpoint->memory)
		return ENOMEM;
	error = sv_ofi_region_open(endpoint, endpoint->memory, size, FI_RECV, &endpoint->region);
	if (error)
		return error;
	for (unsigned i = 0; i < RECEIVES; i++) {
		endpoint->receives[i].bytes = endpoint->memory + i * endpoint->longest;
		endpoint->idle[endpoint->unposted++] = &endpoint->receives[i];
	}
	sv_ofi_receives_post(endpoint);
	return 0;
}

static int cq_open(struct sv_endpoint *endpoint)
{
	struct fi_cq_attr attr = { .format = FI_CQ_FORMAT_MSG,
				   .wait_obj = FI_WAIT_FD,
				   .size = RECEIVES + endpoint->info->tx_attr->size };
	int error = fi_cq_open(endpoint->domain, &attr, &endpoint->cq, NULL);

	if (!error && !fi_control(&endpoint->cq->fid, FI_GETWAIT, &endpoint->fd))
		return 0;
	endpoint->fd = -1;
	if (!error) {
		fi_close(&endpoint->cq->fid);
		endpoint->cq = NULL;
	}
	attr.wait_obj = FI_WAIT_NONE;
	return sv_ofi_error_of(fi_cq_open(endpoint->domain, &attr, &endpoint->cq, NULL));
}

static int objects_open(struct sv_endpoint *endpoint)
{
	struct fi_info *info = endpoint->info;
	struct fi_av_attr av = { .type = info->domain_attr->av_type };
	int error = fi_fabric(info->fabric_attr, &endpoint->fabric, NULL);

	if (!error)
		error = fi_domain(endpoint->fabric, info, &endpoint->domain, NULL);
	if (!error)
		error = fi_av_open(endpoint->domain, &av, &endpoint->av, NULL);
	if (error)
		return sv_ofi_error_of(error);
	error = cq_open(endpoint);
	if (error)
		return error;
	error = fi_endpoint(endpoint->domain, info, &endpoint->ep, NULL);
	if (!error)
		error = fi_ep_bind(endpoint->ep, &endpoint->av->fid, 0);
	if (!error)
		error = fi_ep_bind(endpoint->ep, &endpoint->cq->fid, FI_SEND | FI_RECV);
	if (!error)
		error = fi_enable(endpoint->ep);
	return error ? sv_ofi_error_of(error) : receives_open(endpoint);
}

int sv_ofi_name_read(const struct sv_endpoint *endpoint, struct sv_endpoint_name *name)
{
	size_t size = sizeof(name->address);
	int error;

	memset(name, 0, sizeof(*name));
	error = sv_ofi_error_of(fi_getname(&endpoint->ep->fid, name->address, &size));
	if (!error && size > sizeof(name->address))
		error = EMSGSIZE;
	snprintf(name->kind, sizeof(name->kind), "%s", endpoint->info->fabric_attr->prov_name);
	name->format = endpoint->info->addr_format;
	name->size = (uint32_t)size;
	return error;
}

/* What is under way to or from the memory of others ends with the endpoint. */
static void ops_end(struct sv_endpoint *endpoint)
{
	struct sv_endpoint_op *op;

	while ((op = endpoint->ops)) {
		endpoint->ops = op->next;
		sv_ofi_region_close(op->region);
		endpoint->events->sent(op, ECANCELED);
	}
}

void sv_ofi_close(struct sv_endpoint *endpoint)
{
	if (endpoint->ep)
		fi_close(&endpoint->ep->fid);
	ops_end(endpoint);
	sv_ofi_region_close(endpoint->region);
	if (endpoint->cq)
		fi_close(&endpoint->cq->fid);
	if (endpoint->av)
		fi_close(&endpoint->av->fid);
	if (endpoint->domain)
		fi_close(&endpoint->domain->fid);
	if (endpoint->fabric)
		fi_close(&endpoint->fabric->fid);
	fi_freeinfo(endpoint->info);
	free(endpoint->memory);
	pthread_mutex_destroy(&endpoint->lock);
	free(endpoint);
}

int sv_ofi_open(const char *provider, const char *source, size_t longest,
		const struct sv_endpoint_events *events, struct sv_endpoint **made,
		struct sv_endpoint_name *name)
{
	struct sv_endpoint *endpoint = calloc(1, sizeof(*endpoint));
	int error;

	if (!endpoint)
		return ENOMEM;
	pthread_mutex_init(&endpoint->lock, NULL);
	endpoint->events = events;
	endpoint->longest = longest;
	endpoint->fd = -1;
	error = info_find(endpoint, provider, source);
	if (!error)
		error = objects_open(endpoint);
	if (!error)
		error = sv_ofi_name_read(endpoint, name);
	if (error)
		sv_ofi_close(endpoint);
	else
		*made = endpoint;
	return error;
}
