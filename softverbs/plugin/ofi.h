/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/*
 * Room `plugin`: libsoftverbs-ofi.so.1, the one object that needs libfabric. It is opened on demand, and fills the table in
 * fabric/plugin.h.
 *
 * This header is an endpoint of libfabric: what ofi_open.c and ofi.c share.
 * Locks: an endpoint's, for the operations under way.
 */
#ifndef SV_PLUGIN_OFI_H
#define SV_PLUGIN_OFI_H

#include <pthread.h>
#include <rdma/fabric.h>
#include <rdma/fi_domain.h>
#include "softverbs/fabric/plugin.h"

#define RECEIVES 64u /* posted buffers; a provider keeps or holds back what finds none */

struct receive {
	void *context[8]; /* struct fi_context2 of the mode FI_CONTEXT2; first */
	uint8_t *bytes;
};

struct sv_endpoint {
	const struct sv_endpoint_events *events;
	struct fi_info *info;
	struct fid_fabric *fabric;
	struct fid_domain *domain;
	struct fid_av *av;
	struct fid_cq *cq;
	struct fid_ep *ep;
	int fd;
	size_t longest;
	uint8_t *memory; /* of the receives */
	struct fid_mr *region;
	struct receive receives[RECEIVES];
	unsigned unposted; /* receives that wait for a place: the last ones of `idle` */
	struct receive *idle[RECEIVES];
	pthread_mutex_t lock; /* guards `ops` */
	struct sv_endpoint_op *ops;
};

/* ofi_open.c. 0 or errno. */
int sv_ofi_open(const char *provider, const char *source, size_t longest,
		const struct sv_endpoint_events *events, struct sv_endpoint **made,
		struct sv_endpoint_name *name);
void sv_ofi_close(struct sv_endpoint *endpoint);
int sv_ofi_name_read(const struct sv_endpoint *endpoint, struct sv_endpoint_name *name);

/* ofi.c */
int sv_ofi_error_of(
	ssize_t result); /* libfabric's errors are those of the system, and more above them */
/* NULL if the provider wants no memory registered. */
int sv_ofi_region_open(struct sv_endpoint *endpoint, const void *bytes, size_t size,
		       uint64_t access, struct fid_mr **region);
void sv_ofi_region_close(struct fid_mr *region); /* accepts NULL */
void sv_ofi_receives_post(struct sv_endpoint *endpoint);

/* The table of libsoftverbs-ofi.so.1. */
extern const struct sv_endpoint_calls sv_endpoint_calls_1;

#endif
