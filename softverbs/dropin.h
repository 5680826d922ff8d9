/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* What the drop-in libibverbs.so.1 exports beyond the installed headers: only binaries know these calls. */
#ifndef SV_DROPIN_H
#define SV_DROPIN_H

#include <stddef.h>
#include "softverbs/api.h"
#include <infiniband/sa.h>
#include <rdma/ib_user_sa.h>
#include <rdma/ib_user_verbs.h>

#define EXPORT __attribute__((visibility("default")))

/* As the kernel's sysfs tells them: RoCE v1 and InfiniBand are one. */
enum sysfs_gid_type {
	SYSFS_GID_IB_ROCE_V1,
	SYSFS_GID_ROCE_V2,
};

/* dropin_sysfs.c */
EXPORT const char *ibv_get_sysfs_path(void);
EXPORT int ibv_read_sysfs_file(const char *dir, const char *file, char *buf, size_t size);
EXPORT int ibv_read_ibdev_sysfs_file(char *buf, size_t size, void *dev, const char *format, ...);
EXPORT int ibv_query_gid_type(struct ibv_context *context, uint8_t port, unsigned int index,
			      enum sysfs_gid_type *type);
EXPORT int ibv_dontfork_range(void *base, size_t size);
EXPORT int ibv_dofork_range(void *base, size_t size);

/* dropin_kern.c */
EXPORT void ibv_copy_ah_attr_from_kern(struct ibv_ah_attr *to, struct ib_uverbs_ah_attr *from);
EXPORT void ibv_copy_qp_attr_from_kern(struct ibv_qp_attr *to, struct ib_uverbs_qp_attr *from);
EXPORT void ibv_copy_path_rec_from_kern(struct ibv_sa_path_rec *to, struct ib_user_path_rec *from);
EXPORT void ibv_copy_path_rec_to_kern(struct ib_user_path_rec *to, struct ibv_sa_path_rec *from);

#endif
