/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* The verbs API: the functions that its header declares are exported, all others are hidden. */
#ifndef SV_BASE_API_H
#define SV_BASE_API_H

#include "verbs_have.h" /* made by tools/verbs-probe */

#pragma GCC visibility push(default)
#include <infiniband/verbs.h>

/* Declarations that the headers of an older rdma-core lack; this library exports them in any case. */
#if !VERBS_HAVE_FORK_STATUS
enum ibv_fork_status { IBV_FORK_DISABLED, IBV_FORK_ENABLED, IBV_FORK_UNNEEDED };
enum ibv_fork_status ibv_is_fork_initialized(void);
#endif
#if !VERBS_HAVE_RATE_1200_GBPS
#define IBV_RATE_800_GBPS  ((enum ibv_rate)23)
#define IBV_RATE_1200_GBPS ((enum ibv_rate)24)
#endif
struct ibv_dm *ibv_import_dm(struct ibv_context *context, uint32_t dm_handle);
void ibv_unimport_dm(struct ibv_dm *dm);
struct ibv_mr *ibv_reg_dmabuf_mr(struct ibv_pd *pd, uint64_t offset, size_t length, uint64_t iova,
				 int fd, int access);
int ibv_query_qp_data_in_order(struct ibv_qp *qp, enum ibv_wr_opcode op, uint32_t flags);
#pragma GCC visibility pop

#endif
