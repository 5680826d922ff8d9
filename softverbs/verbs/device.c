/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* The list of devices, which always has one entry. Starts no thread: programs fork after it. */
#include <endian.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include "softverbs/link/transport.h"
#include "softverbs/object/device.h"

/* Consumers may keep pointers to it. No file is at its path: the drop-in answers the calls of libibverbs that
 * read there. There is no character device, and so no path of one. */
static struct ibv_device soft = {
	.node_type = IBV_NODE_CA,
	.transport_type = IBV_TRANSPORT_IB,
	.name = "soft0",
	.dev_name = "softverbs0",
	.ibdev_path = "/sys/class/infiniband/soft0",
};

struct ibv_device *sv_device_soft(void)
{
	return &soft;
}

struct ibv_device **ibv_get_device_list(int *count)
{
	struct ibv_device **list = calloc(2, sizeof(*list));

	bool found = list && !sv_transport()->is_starting();

	if (count)
		*count = found;
	if (!list) {
		errno = ENOMEM;
		return NULL;
	}
	list[0] = found ? &soft : NULL;
	return list;
}

void ibv_free_device_list(struct ibv_device **list)
{
	free(list);
}

const char *ibv_get_device_name(struct ibv_device *device)
{
	return device->name;
}

int ibv_get_device_index(struct ibv_device *device)
{
	(void)device;
	return 0;
}

static uint64_t hash_bytes(uint64_t hash, const void *data, size_t size)
{
	const unsigned char *byte = data;

	while (size--)
		hash = (hash ^ *byte++) * 0x100000001b3ull; /* FNV-1a */
	return hash;
}

/* The same in all processes of this user until the next boot, since these can reach each other. Locally
 * administered and no group address, according to bits 1 and 0 of the first byte of an EUI-64. */
__be64 ibv_get_device_guid(struct ibv_device *device)
{
	uint64_t hash = 0xcbf29ce484222325ull;
	FILE *file = fopen("/proc/sys/kernel/random/boot_id", "re");
	uid_t uid = geteuid();
	char boot[64];

	(void)device;
	if (file) {
		hash = hash_bytes(hash, boot, fread(boot, 1, sizeof(boot), file));
		fclose(file);
	}
	hash = hash_bytes(hash, &uid, sizeof(uid));
	return htobe64((hash & ~(1ull << 56)) | 1ull << 57);
}
