/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* The device: its limits, its addresses, its attributes. These calls need no open context. */
#ifndef SV_OBJECT_DEVICE_H
#define SV_OBJECT_DEVICE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "softverbs/base/shared.h"
#include "softverbs/base/api.h"

enum sv_limit {
	SV_MAX_QP = 4096, /* of one process: 12 bits of the QPN */
	SV_MAX_CQ = 4096,
	SV_MAX_SRQ = 1024,
	SV_MAX_WR = 65536, /* entries of each queue, an SRQ included */
	SV_MAX_SGE = 30,
	SV_MAX_CQE = 4194303,
	SV_MAX_REGION = 65535, /* memory regions and windows together */
	SV_MAX_PD = 65535,
	SV_MAX_RD_ATOMIC = 16, /* as initiator and as responder */
	SV_MAX_INLINE = 236,
	SV_MAX_MSG = 1 << 30,
	SV_PORT = 1,
	SV_PHYS_LINK_UP = 5,
	SV_LANES = 4,
	SV_LANE_GBPS = 25,
	SV_GID_TABLE = 16,
	SV_PKEY_TABLE = 1,
	SV_COMP_VECTORS = 1,
};

struct ibv_device *sv_device_soft(void);

/*
 * Copies an entry of the GID table. False if the index is out of range or the entry empty.
 * `*interface` is 0 if the address has no network interface.
 */
bool sv_gid_at(unsigned index, union ibv_gid *gid, uint32_t *interface);
/*
 * The index of an address in the table, -1 if it is not there. Each address of 127/8 has index 0.
 */
SV_SHARED int sv_gid_index(const union ibv_gid *gid);
void sv_gid_fork_child(void);

/* The entries of struct verbs_context that report the device's attributes. */
int sv_device_query_ex(struct ibv_context *context, const struct ibv_query_device_ex_input *input,
		       struct ibv_device_attr_ex *attr, size_t size);
int sv_device_query_port(struct ibv_context *context, uint8_t port, struct ibv_port_attr *attr,
			 size_t size);

#endif
