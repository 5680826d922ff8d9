/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* Opens the device for a program, or for a room of the device itself. */
#ifndef SV_VERBS_CONTEXT_H
#define SV_VERBS_CONTEXT_H

#include "softverbs/base/api.h"
#include "softverbs/link/client.h"

/* As ibv_open_device, with what the runtime calls of the rooms above it. ibv_close_device closes it. */
struct ibv_context *sv_context_open(struct ibv_device *device, const struct sv_link_client *client);

#endif
