/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* Protection domains and memory registrations. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <linux/capability.h>
#include <dat2/dat_ib_extensions.h>
#include "dapl/openib/openib.h"

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

/* Verbs require local write access with every remote right that writes (ibv_reg_mr(3)). */
static int mem_access_flags(const struct ib_device *device, uint32_t privileges)
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
	/* On iWARP the peer writes to the sink of a read (RFC 5040, RDMA read response). */
	if (device->attr.iwarp && (access & IBV_ACCESS_LOCAL_WRITE))
		access |= IBV_ACCESS_REMOTE_WRITE;
	return access;
}

/* True in the initial user namespace, the only one in which CAP_IPC_LOCK lifts the limit. */
static bool is_in_first_namespace(void)
{
	FILE *file = fopen("/proc/self/uid_map", "re");
	unsigned long inside = 1, outside = 1, count = 0;
	bool all = file && fscanf(file, "%lu %lu %lu", &inside, &outside, &count) == 3 && !inside &&
		   !outside && count == UINT32_MAX;

	if (file)
		fclose(file);
	return all;
}

/* Returns the bytes pinned for devices; *unlimited: the limit on them does not apply to this process. */
static uint64_t pinned_now(bool *unlimited)
{
	FILE *file = fopen("/proc/self/status", "re");
	uint64_t kilobytes = 0, effective = 0;
	char line[128];

	while (file && fgets(line, sizeof(line), file)) {
		sscanf(line, "VmPin: %" SCNu64, &kilobytes);
		sscanf(line, "CapEff: %" SCNx64, &effective);
	}
	if (file)
		fclose(file);
	*unlimited = effective >> CAP_IPC_LOCK & 1 && is_in_first_namespace();
	return kilobytes * 1024;
}

/* Logs that RLIMIT_MEMLOCK may be the cause: the kernel returns the same errno for it as for other shortages. */
static void memlock_blame(uint64_t length)
{
	struct rlimit limit;
	bool unlimited;
	uint64_t pinned = pinned_now(&unlimited);

	if (unlimited || getrlimit(RLIMIT_MEMLOCK, &limit) || limit.rlim_cur == RLIM_INFINITY ||
	    pinned + length <= limit.rlim_cur)
		return;
	log_at(LOG_WARN,
	       "memory region: %" PRIu64 " bytes beside %" PRIu64 " that are pinned exceed "
	       "RLIMIT_MEMLOCK, %" PRIu64 " bytes: raise it (ulimit -l, limits.conf(5))",
	       length, pinned, (uint64_t)limit.rlim_cur);
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
	int access = mem_access_flags(pd->device, privileges);
	struct ib_mr *new = calloc(1, sizeof(*new));
	int error;

	if (!new)
		return DAT_ERROR(DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_MEMORY_REGION);
	errno = EINVAL;
	/* If the device has windows, a region allows binding them, unless the device refuses that right. */
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
	if (error == ENOMEM)
		memlock_blame(length);
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
