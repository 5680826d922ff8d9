/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* libsoftverbs-fabric.so.1: the part of the fabric that needs libraries of others. It is opened on first use,
 * so that a process without the fabric loads none of them. */
#ifndef SV_FABRIC_PLUGIN_H
#define SV_FABRIC_PLUGIN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* They change with the structs. */
#define SV_PLUGIN_SYMBOL   "sv_fabric_plugin_1"
#define SV_ENDPOINT_SYMBOL "sv_endpoint_calls_1"

#define SV_DIGEST 32u

/* The name of an endpoint, as it travels: what kind it is, and its address. */
#define SV_KIND_MAX    32u
#define SV_ADDRESS_MAX 128u
struct sv_endpoint_name {
	char kind[SV_KIND_MAX]; /* libfabric's provider */
	uint32_t format;	/* of the address: one of libfabric's */
	uint32_t size;
	uint8_t address[SV_ADDRESS_MAX];
};

/* A message under way. */
struct sv_endpoint_op {
	void *context[8]; /* libfabric's */
	void *region;
	struct sv_endpoint_op *next, **link; /* all that are under way */
};

/* What an endpoint calls, from `read` and `close`, in their thread. It holds no lock then. */
struct sv_endpoint_events {
	void (*arrived)(const uint8_t *bytes, size_t size);
	void (*sent)(struct sv_endpoint_op *op, int error);
};

struct sv_endpoint; /* plugin/ofi.c */

/* An endpoint of libfabric for messages that are reliable and, to one peer, ordered. 0 or errno, unless noted. */
struct sv_endpoint_calls {
	/* `provider`: as fi_info -p takes it, or "auto". `source`: an address or interface of this host, or NULL.
	 * Messages are up to `longest` bytes. */
	int (*open)(const char *provider, const char *source, size_t longest,
		    const struct sv_endpoint_events *events, struct sv_endpoint **endpoint,
		    struct sv_endpoint_name *name);
	/* No other call is under way. Reports what was under way as sent, with an error. */
	void (*close)(struct sv_endpoint *endpoint);
	/* A peer of the same kind. `host`: its IP address (IPv4 is mapped), should its name have none. */
	int (*peer_add)(struct sv_endpoint *endpoint, const struct sv_endpoint_name *name,
			const uint8_t host[16], uint64_t *peer);
	void (*peer_remove)(struct sv_endpoint *endpoint,
			    uint64_t peer); /* nothing is under way to it */
	/*
	 * From any thread; messages to a peer, by one at a time. 0: it is gone. EINPROGRESS: `op` and `bytes` must
	 * stay until `sent`, which may have been called already. EAGAIN: not now, but after `read`.
	 */
	int (*send)(struct sv_endpoint *endpoint, uint64_t peer, struct sv_endpoint_op *op,
		    const void *bytes, size_t size);
	/* Makes progress and reports some of what has ended: how many. By one thread at a time. */
	unsigned (*read)(struct sv_endpoint *endpoint);
	/* A descriptor that becomes readable when `read` has work; -1 if the provider has none. */
	int (*wait_fd)(const struct sv_endpoint *endpoint);
	/* Whether the descriptor may be waited for now; if not, `read` has work. As `read`. */
	bool (*may_wait)(struct sv_endpoint *endpoint);
};

struct sv_fabric_plugin {
	/* HMAC-SHA-256 */
	void (*digest)(const void *key, size_t key_size, const void *data, size_t size,
		       uint8_t out[SV_DIGEST]);
};

/* NULL if there is none: the reason is logged once. */
const struct sv_fabric_plugin *sv_fabric_plugin(void);
/*
 * Those of libsoftverbs-ofi.so.1, which is built where libfabric is. The same. It is an object of its own because
 * libfabric may take seconds to load: a library of one of its providers waits for a device.
 */
const struct sv_endpoint_calls *sv_endpoint_calls(void);

#endif
