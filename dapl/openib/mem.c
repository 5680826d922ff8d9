/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* Protection domains and memory registrations. */
#include <errno.h>
#include <stdlib.h>
#include "dapl/openib/openib.h"
#include <dat2/dat_ib_extensions.h>

DAT_RETURN ib_pd_create(struct ib_device *device, struct ib_pd **pd)
{
	struct ib_pd *new = calloc(1, sizeof(*new));

	if (!new)
		return DAT_ERROR(DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_MEMORY);
	new->device = device;
	new->pd = ibv_alloc_pd(device->verbs);
	if (!new->pd) {
		ib_error(errno, "ibv_alloc_pd", device->attr.device_name);
		free(new);
		return DAT_ERROR(DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_PROTECTION_DOMAIN);
	}
	*pd = new;
	return DAT_SUCCESS;
}

DAT_RETURN ib_pd_destroy(struct ib_pd *pd)
{
	int error;

	if (!pd)
		return DAT_SUCCESS;
	error = ibv_dealloc_pd(pd->pd);
	if (error)
		return ib_error(error, "ibv_dealloc_pd", pd->device->attr.device_name);
	free(pd);
	return DAT_SUCCESS;
}

/* Verbs demand local write for every remote right that writes (ibv_reg_mr(3)). */
static int access_flags(const struct ib_device *device, uint32_t privileges)
{
	int access = 0;

	if (privileges & DAT_MEM_PRIV_REMOTE_READ_FLAG)
		access |= IBV_ACCESS_REMOTE_READ;
	if (privileges & DAT_MEM_PRIV_LOCAL_WRITE_FLAG)
		access |= IBV_ACCESS_LOCAL_WRITE;
	if (privileges & DAT_MEM_PRIV_REMOTE_WRITE_FLAG)
		access |= IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_LOCAL_WRITE;
	if (privileges & DAT_IB_MEM_PRIV_REMOTE_ATOMIC)
		access |= IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_LOCAL_WRITE;
	/* On iWARP the sink of a read is written by the peer (RFC 5040, RDMA read response). */
	if (device->attr.iwarp && (access & IBV_ACCESS_LOCAL_WRITE))
		access |= IBV_ACCESS_REMOTE_WRITE;
	return access;
}

static struct ibv_mr *reg_mr(struct ib_pd *pd, void *address, uint64_t length, int access,
			     bool zero_based)
{
	if (zero_based)
		return ibv_reg_mr_iova(pd->pd, address, length, 0, access);
	return ibv_reg_mr(pd->pd, address, length, access);
}

DAT_RETURN ib_mr_create(struct ib_pd *pd, void *address, uint64_t length, uint32_t privileges,
			bool zero_based, struct ib_mr **mr, uint32_t *lkey, uint32_t *rkey)
{
	const struct ib_attr *attr = &pd->device->attr;
	int access = access_flags(pd->device, privileges);
	struct ib_mr *new = calloc(1, sizeof(*new));
	int error;

	if (!new)
		return DAT_ERROR(DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_MEMORY_REGION);
	errno = EINVAL;
	/* Any region can later be bound to a window where there are windows, unless the device refuses the right. */
	if (attr->mw_type1 || attr->mw_type2)
		new->mr = reg_mr(pd, address, length, access | IBV_ACCESS_MW_BIND, zero_based);
	if (!new->mr && errno == EINVAL)
		new->mr = reg_mr(pd, address, length, access, zero_based);
	if (new->mr) {
		*lkey = new->mr->lkey;
		*rkey = new->mr->rkey;
		*mr = new;
		return DAT_SUCCESS;
	}
	error = errno;
	free(new);
	ib_error(error, "ibv_reg_mr", attr->device_name);
	switch (error) {
	case EFAULT:
	case EINVAL: return DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG3);
	case EPERM:
	case EACCES: return DAT_ERROR(DAT_PRIVILEGES_VIOLATION, 0);
	default: return DAT_ERROR(DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_MEMORY_REGION);
	}
}

DAT_RETURN ib_mr_destroy(struct ib_mr *mr)
{
	int error;

	if (!mr)
		return DAT_SUCCESS;
	error = ibv_dereg_mr(mr->mr);
	if (error)
		return ib_error(error, "ibv_dereg_mr", "memory region");
	free(mr);
	return DAT_SUCCESS;
}
