/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* Reads the counters of a device from sysfs; a counter that the kernel or device lacks is 0. */
#include <inttypes.h>
#include <stdio.h>
#include "dapl/openib/openib.h"

#define PATH_LENGTH   512
#define LENGTH(array) (sizeof(array) / sizeof((array)[0]))

static const char *const cm_folders[IB_CM_KINDS] = {
	[IB_CM_SENT] = "cm_tx_msgs",
	[IB_CM_RECEIVED] = "cm_rx_msgs",
	[IB_CM_SENT_AGAIN] = "cm_tx_retries",
	[IB_CM_DUPLICATES] = "cm_rx_duplicates",
};

static const char *const cm_messages[IB_KERNEL_CM_MESSAGES] = {
	"req", "mra", "rej", "rep", "rtu", "dreq", "drep", "lap", "apr",
};

static const char *const link_files[] = {
	"port_rcv_errors",
	"port_rcv_remote_physical_errors",
	"port_rcv_constraint_errors",
	"port_xmit_discards",
	"port_xmit_constraint_errors",
	"local_link_integrity_errors",
	"excessive_buffer_overrun_errors",
	"port_rcv_switch_relay_errors",
	"port_xmit_wait",
};

static const char *const diagnostic_files[] = {
	"rq_num_rae", "rq_num_oos",  "rq_num_rire", "rq_num_udsdprd", "sq_num_rae",
	"sq_num_oos", "sq_num_rire", "sq_num_rree", "sq_num_tree",
};

/* A missing file is not an error: this kernel lacks the counter. */
static bool file_read(const char *folder, const char *name, uint64_t *value)
{
	char path[2 * PATH_LENGTH];
	bool read;
	FILE *file;

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	file = fopen(path, "re");
	if (!file)
		return false;
	read = fscanf(file, "%" SCNu64, value) == 1;
	fclose(file);
	return read;
}

/* Newer kernels have the CM counters under the device, older ones in a class of their own. */
static void cm_read(const struct ib_device *device, const char *folder, const char *name,
		    uint64_t *value)
{
	char path[PATH_LENGTH];

	snprintf(path, sizeof(path), "/sys/class/infiniband/%s/ports/%u/%s",
		 device->attr.device_name, device->attr.port, folder);
	if (file_read(path, name, value))
		return;
	snprintf(path, sizeof(path), "/sys/class/infiniband_cm/%s/%u/%s", device->attr.device_name,
		 device->attr.port, folder);
	file_read(path, name, value);
}

static unsigned files_read(const char *folder, const char *const *names, unsigned count,
			   uint64_t *values)
{
	for (unsigned i = 0; i < count; i++)
		file_read(folder, names[i], &values[i]);
	return count;
}

unsigned ib_kernel_counters(const struct ib_device *device, enum ib_kernel_group group,
			    uint64_t values[IB_KERNEL_MOST])
{
	const char *own = device->verbs->device->ibdev_path;
	char folder[PATH_LENGTH];

	for (unsigned i = 0; i < IB_KERNEL_MOST; i++)
		values[i] = 0;
	if (group == IB_KERNEL_LINK) {
		snprintf(folder, sizeof(folder), "%s/ports/%u/counters", own, device->attr.port);
		return own[0] ? files_read(folder, link_files, LENGTH(link_files), values)
			      : LENGTH(link_files);
	}
	if (group == IB_KERNEL_DIAGNOSTICS) {
		snprintf(folder, sizeof(folder), "%s/diag_counters", own);
		return own[0] ? files_read(folder, diagnostic_files, LENGTH(diagnostic_files),
					   values)
			      : LENGTH(diagnostic_files);
	}
	for (unsigned kind = 0; own[0] && kind < IB_CM_KINDS; kind++)
		for (unsigned i = 0; i < IB_KERNEL_CM_MESSAGES; i++)
			cm_read(device, cm_folders[kind], cm_messages[i],
				&values[kind * IB_KERNEL_CM_MESSAGES + i]);
	return IB_KERNEL_MOST;
}
