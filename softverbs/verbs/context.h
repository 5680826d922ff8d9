/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/*
 * Room `verbs`: the calls of libibverbs: create, query, change, poll, destroy.
 *
 * A call checks its arguments as the kernel does (qp_rules.c) and returns the same errno. qp_state.c has the changes of state,
 * cq_poll.c the poll, srq_resize.c the one change that several processes must see at once, cq_kept.c the completions of QPs that
 * are gone. This header opens the device for a program, or for a room of the device itself.
 * Locks: a QP's `modify`, and in it the short locks that the objects have.
 */
#ifndef SV_VERBS_CONTEXT_H
#define SV_VERBS_CONTEXT_H

#include "softverbs/base/api.h"
#include "softverbs/link/client.h"

/* As ibv_open_device, with what the runtime calls of the rooms above it. ibv_close_device closes it. */
struct ibv_context *sv_context_open(struct ibv_device *device, const struct sv_link_client *client);

#endif
