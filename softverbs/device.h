/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* The one device of a host: its limits, its addresses, its attributes. Needs no open context. */
#ifndef SV_DEVICE_H
#define SV_DEVICE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "softverbs/api.h"

enum sv_limit {
	SV_MAX_QP = 4096, /* of a slot: 12 bits of QPN */
	SV_MAX_CQ = 4096,
	SV_MAX_SRQ = 1024,
	SV_MAX_WR = 32768, /* of each queue, shared or not */
	SV_MAX_SGE = 30,
	SV_MAX_CQE = 4194303,
	SV_MAX_REGION = 65535, /* memory regions and windows together */
	SV_MAX_PD = 65535,
	SV_MAX_RD_ATOMIC = 16, /* either direction */
	SV_MAX_INLINE = 236,
	SV_MAX_MSG = 1 << 30,
	SV_PORT = 1,
	SV_GID_TABLE = 16,
	SV_COMP_VECTORS = 1,
};

struct ibv_device *device_soft(void);

/* The table's entry, false when it is empty or out of range. Interface 0: none. */
bool gid_at(unsigned index, union ibv_gid *gid, uint32_t *interface);
/* Where an address stands in the table; -1 if nowhere. All of 127/8 stands at index 0. */
int gid_index(const union ibv_gid *gid);

/* The slots of struct verbs_context that answer for the device. */
int device_query_ex(struct ibv_context *context, const struct ibv_query_device_ex_input *input,
		    struct ibv_device_attr_ex *attr, size_t size);
int device_query_port(struct ibv_context *context, uint8_t port, struct ibv_port_attr *attr,
		      size_t size);

#endif
