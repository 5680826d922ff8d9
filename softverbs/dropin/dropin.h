/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/*
 * Room `dropin`: the names and versions that libibverbs.so.1 and librdmacm.so.1 have beyond the device's own, for programs
 * that were built with rdma-core; no behaviour of its own.
 *
 * This header declares the exports that the installed headers do not; only binaries use them. libibverbs.map and librdmacm.map are
 * the versions, sysfs.c what programs read below /sys/class/infiniband.
 * Locks: none.
 */
#ifndef SV_DROPIN_DROPIN_H
#define SV_DROPIN_DROPIN_H

#include <stdbool.h>
#include <stddef.h>
#include "softverbs/base/api.h"
#include <infiniband/sa.h>
#include <rdma/ib_user_sa.h>
#include <rdma/ib_user_verbs.h>

#define EXPORT __attribute__((visibility("default")))

/* As the kernel's sysfs reports them, where RoCE v1 and InfiniBand are one type. */
enum sysfs_gid_type {
	SYSFS_GID_IB_ROCE_V1,
	SYSFS_GID_ROCE_V2,
};

enum { SV_ATTRIBUTE_SIZE = 64 };

/*
 * dropin/attribute.c: writes the text of the device's attribute into `text`, which has room for
 * SV_ATTRIBUTE_SIZE bytes. `name` is relative to the device's folder ("ports/1/state"). Returns
 * false with errno as it would be for a file: ENOENT, or EINVAL for the empty entry of a table.
 */
bool sv_attribute_text(const char *name, char *text);

/* dropin/sysfs.c */
EXPORT const char *ibv_get_sysfs_path(void);
EXPORT int ibv_read_sysfs_file(const char *dir, const char *file, char *buf, size_t size);
EXPORT int ibv_read_ibdev_sysfs_file(char *buf, size_t size, void *dev, const char *format, ...);
EXPORT int ibv_query_gid_type(struct ibv_context *context, uint8_t port, unsigned int index,
			      enum sysfs_gid_type *type);
EXPORT int ibv_dontfork_range(void *base, size_t size);
EXPORT int ibv_dofork_range(void *base, size_t size);

/* dropin/kern.c */
EXPORT void ibv_copy_ah_attr_from_kern(struct ibv_ah_attr *to, struct ib_uverbs_ah_attr *from);
EXPORT void ibv_copy_qp_attr_from_kern(struct ibv_qp_attr *to, struct ib_uverbs_qp_attr *from);
EXPORT void ibv_copy_path_rec_from_kern(struct ibv_sa_path_rec *to, struct ib_user_path_rec *from);
EXPORT void ibv_copy_path_rec_to_kern(struct ib_user_path_rec *to, struct ibv_sa_path_rec *from);

#endif
